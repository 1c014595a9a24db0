"""What a workbook is to this package: worksheets of cells that hold a value and, maybe, a formula.

Produced by `pytest_cellprose.workbook.read` from an ``.xlsx`` file and by each encoding's decoder from its
text, so that whatever works on one works on the other. Words follow ECMA-376 part 1, chapter 18.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple, TypeAlias

from pytest_cellprose.workbook.formulas import Room, pattern, room, translate
from pytest_cellprose.workbook.refs import CellAddress, Range


class ErrorValue(str):
    """An error as the file stores it, ``#DIV/0!``; a `str` of its own type, so that text is not mistaken for it."""

    __slots__ = ()


SheetKind: TypeAlias = Literal["worksheet", "chartsheet", "dialogsheet", "macrosheet", "module", "missing"]
"""The last two have no part in the file: an entry that names none, which is how Excel writes the macro modules of
Excel 5, and one whose part is not there."""

Value: TypeAlias = "int | float | bool | str | ErrorValue | None"
"""Dates are numbers here (a serial under a date `Cell.number_format`); None is "no stored value"."""


class Formula:
    """One cell's formula. `text` is what ``<f>`` stores, without the leading ``=``.

    A cell of a shared formula carries its own text, translated from the group's first cell; readers may
    work it out only when it is asked for.
    """

    __slots__ = ("_text", "kind", "ref")

    def __init__(
        self, text: str, kind: Literal["normal", "array", "dataTable"] = "normal", ref: Range | None = None
    ) -> None:
        self._text = text
        self.kind = kind
        """``array`` for array and dynamic-array formulas, ``dataTable`` for what-if tables."""
        self.ref = ref
        """The cells that an array formula or data table fills; None for a normal formula."""

    @property
    def text(self) -> str:
        return self._text

    def pattern(self, row: int, column: int) -> str:
        """`pytest_cellprose.workbook.formulas.pattern` of the text, for the cell in which the formula stands."""
        return pattern(self.text, row, column)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Formula):
            return NotImplemented
        return (self.text, self.kind, self.ref) == (other.text, other.kind, other.ref)

    def __hash__(self) -> int:
        return hash((self.text, self.kind, self.ref))

    def __repr__(self) -> str:
        return f"Formula({self.text!r}, {self.kind!r}, {self.ref!r})"


class SharedGroup:
    """A shared formula: the text, and the cell that carries it in the file (ECMA-376 part 1, §18.3.1.40)."""

    __slots__ = ("_pattern", "_room", "column", "row", "text")

    def __init__(self, text: str, row: int, column: int) -> None:
        self.text = text
        self.row = row
        self.column = column
        self._pattern: str | None = None
        self._room: Room | None = None

    @property
    def pattern(self) -> str:
        """The pattern of every cell that the formula can be filled to: it is scanned once, not once a cell."""
        if self._pattern is None:
            self._pattern = pattern(self.text, self.row, self.column)
        return self._pattern

    def reaches(self, row: int, column: int) -> bool:
        """Whether every reference is still on the worksheet when the formula is filled to this cell."""
        if self._room is None:
            self._room = room(self.text)
        return self._room.holds(row - self.row, column - self.column)


class SharedFormula(Formula):
    """A cell's part of a shared formula; its text is worked out when it is asked for."""

    __slots__ = ("column", "group", "row")

    def __init__(self, group: SharedGroup, row: int, column: int) -> None:
        self.group = group
        self.row = row
        self.column = column
        self.kind = "normal"
        self.ref = None

    @property
    def text(self) -> str:
        return translate(self.group.text, self.row - self.group.row, self.column - self.group.column)

    def pattern(self, row: int, column: int) -> str:
        if (row, column) == (self.row, self.column) and self.group.reaches(row, column):
            return self.group.pattern
        return super().pattern(row, column)


class Cell(NamedTuple):
    """A cell that has a value or a formula. Style-only cells are not kept."""

    value: Value
    """The stored (cached) value. None with a formula: the file stores no result. ``""`` with a formula: the
    result is the empty string."""
    formula: Formula | None = None
    number_format: str = "General"


class Table(NamedTuple):
    """A worksheet table (ListObject)."""

    name: str
    ref: Range
    columns: tuple[str, ...]
    header_rows: int = 1
    totals_rows: int = 0


class DefinedName(NamedTuple):
    name: str
    text: str
    """What it refers to, without a leading ``=``."""
    sheet: str | None = None
    """The worksheet it is scoped to; None for the whole workbook."""
    hidden: bool = False


class Comment(NamedTuple):
    row: int
    column: int
    text: str


@dataclass(slots=True)
class Worksheet:
    """One sheet, in the order of the workbook's tabs."""

    name: str
    state: Literal["visible", "hidden", "veryHidden"] = "visible"
    kind: SheetKind = "worksheet"
    rows: dict[int, dict[int, Cell]] = field(default_factory=dict)
    """row -> column -> cell, both ascending; rows without cells are absent."""
    merged: tuple[Range, ...] = ()
    hidden_rows: tuple[tuple[int, int], ...] = ()
    """Spans of rows, first and last included, ascending and disjoint."""
    hidden_columns: tuple[tuple[int, int], ...] = ()
    tables: tuple[Table, ...] = ()
    comments: tuple[Comment, ...] = ()
    data_validations: tuple[Range, ...] = ()
    pictures: tuple[tuple[int, int], ...] = ()
    """``(row, column)`` of cells that show a picture, or something else without a text, as their value."""

    def cell(self, row: int, column: int) -> Cell | None:
        found = self.rows.get(row)
        return None if found is None else found.get(column)

    def cells(self) -> Iterator[tuple[int, int, Cell]]:
        """``(row, column, cell)``, row-major."""
        for row, columns in self.rows.items():
            for column, cell in columns.items():
                yield row, column, cell

    @property
    def extent(self) -> Range | None:
        """The smallest rectangle from A1 that holds every cell; None for an empty worksheet.

        It starts at A1 because truths and answers are clipped to it, and a blank cell above or left of the
        first value can be referred to like any other.
        """
        if not self.rows:
            return None
        return Range(1, 1, max(self.rows), max(max(columns) for columns in self.rows.values()))


@dataclass(slots=True)
class Workbook:
    """A workbook, read once: values and formulas together."""

    worksheets: tuple[Worksheet, ...]
    defined_names: tuple[DefinedName, ...] = ()
    external_links: tuple[str, ...] = ()
    """File names behind ``[1]``, ``[2]``, … in formulas, in that order."""
    date1904: bool = False
    source: Path | bytes | None = None
    """Where it was read from; None when it was decoded from a text."""
    sha256: str = ""
    """Of the file's bytes, lower-case hex; empty when decoded from a text."""

    @classmethod
    def read(cls, path: str | PathLike[str] | bytes | BinaryIO) -> Workbook:
        """Read an ``.xlsx`` or ``.xlsm``; raises `WorkbookError` naming the file and what is wrong with it."""
        from pytest_cellprose.workbook.read import read_workbook

        return read_workbook(path)

    @property
    def sheets_by_name(self) -> Mapping[str, Worksheet]:
        """Worksheets under their case-folded names: Excel compares them that way."""
        return {sheet.name.casefold(): sheet for sheet in self.worksheets}

    def sheet(self, name: str) -> Worksheet | None:
        """The worksheet of that name, compared as Excel does, without regard to case."""
        return self.sheets_by_name.get(name.casefold())

    def cell(self, address: CellAddress) -> Cell | None:
        sheet = self.sheet(address.sheet)
        return None if sheet is None else sheet.cell(address.row, address.column)


class WorkbookError(ValueError):
    """A file that cannot be read as a workbook. The message is one line: the file's name and the reason."""

    def __init__(self, reason: str, name: str = "") -> None:
        super().__init__(f"{name}: {reason}" if name else reason)
        self.reason = reason
        """The message without the name, with what to do about it."""

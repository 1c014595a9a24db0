"""Sets of cells, read from the addresses that questions and answers write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pytest_cellprose.workbook.refs import MAX_COLUMN, MAX_ROW, AddressError, Range, quote_sheet, split_sheet

HUGE = 100_000
"""Cells. A rectangle above this size is never expanded where the used extent is unknown."""


class Area(NamedTuple):
    """A rectangle of one worksheet."""

    sheet: str
    range: Range

    @classmethod
    def parse(cls, text: str, default_sheet: str) -> Area:
        """Read ``Model!C3:BI3``, ``'My sheet'!$A:$A`` or, on `default_sheet`, ``C3``.

        Raises `AddressError` for anything else.
        """
        sheet, address = split_sheet(text)
        if sheet == "":
            raise AddressError(f"{text!r} names no worksheet before the exclamation mark")
        return cls(default_sheet if sheet is None else sheet, Range.parse(address))

    def __str__(self) -> str:
        return f"{quote_sheet(self.sheet)}!{self.range}"


class Extents:
    """Where each worksheet's cells end, to clip whole columns and rows before they are expanded."""

    def __init__(self, known: Mapping[str, Range | None] | None = None) -> None:
        """`known`: worksheet -> used extent (None: an empty worksheet). No mapping: nothing is known."""
        self._known = None if known is None else {name.casefold(): extent for name, extent in known.items()}

    def clip(self, area: Area, otherwise: Range | None = None) -> Range | None:
        """The part of `area` that counts as cells, or None if it names none.

        A single cell is kept as it is, so that a cell outside the used extent stays a (wrong) cell. Where
        nothing is known, only whole columns, whole rows and `HUGE` rectangles are clipped, to `otherwise`.
        """
        if self._known is None:
            whole = area.range.last_row == MAX_ROW or area.range.last_column == MAX_COLUMN
            if area.range.size == 1 or (area.range.size <= HUGE and not whole):
                return area.range
            return None if otherwise is None else area.range.intersection(otherwise)
        if area.sheet.casefold() not in self._known:
            return None
        if area.range.size == 1:
            return area.range
        extent = self._known[area.sheet.casefold()]
        return None if extent is None else area.range.intersection(extent)


class CellSet:
    """Cells of several worksheets; each column of a worksheet is an integer with one bit per row.

    So a rectangle costs one operation a column whatever its height, and overlapping rectangles cost nothing
    extra: a reply that names a thousand nearly equal ranges is scored as fast as any other.
    """

    def __init__(self) -> None:
        self._columns: dict[tuple[str, int], int] = {}

    @classmethod
    def of(cls, areas: Iterable[Area]) -> CellSet:
        cells = cls()
        for area in areas:
            cells.add(area.sheet, area.range)
        return cells

    def add(self, sheet: str, area: Range) -> None:
        rows = ((1 << (area.last_row - area.first_row + 1)) - 1) << area.first_row
        name = sheet.casefold()
        for column in range(area.first_column, area.last_column + 1):
            self._columns[name, column] = self._columns.get((name, column), 0) | rows

    def __len__(self) -> int:
        return sum(rows.bit_count() for rows in self._columns.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CellSet) and self._columns == other._columns

    __hash__ = None  # type: ignore[assignment]

    def shared(self, other: CellSet) -> int:
        """How many cells both hold."""
        return sum((rows & other._columns.get(key, 0)).bit_count() for key, rows in self._columns.items())

    def box(self, sheet: str) -> Range | None:
        """The smallest rectangle from A1 that holds the set's cells of `sheet`; None without any."""
        found = [(column, rows) for (name, column), rows in self._columns.items() if name == sheet.casefold()]
        if not found:
            return None
        last_row = max(rows.bit_length() for _, rows in found) - 1
        return Range(1, 1, last_row, max(column for column, _ in found))

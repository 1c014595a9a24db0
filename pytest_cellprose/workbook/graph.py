"""Which cells a formula refers to, and which formulas refer to a cell.

Ranges stay ranges: a whole column is one entry, whatever the worksheet's size, and only the cells that are
asked for are spelled out. What the two directions mean, here and in every question's truth:

* *precedents* are every cell of every range that the formula refers to: names, tables, 3-D and spill references
  resolved, blanks included, clipped to the `extent` of their worksheet;
* *dependents* are every cell whose formula refers to the cell;
* a cell that an array formula or a data table fills has that formula, wherever the file stores it;
* "all" is the transitive closure, with what lies between. The cell itself is in it only if it is in a circle.

References to other workbooks, to names that are not defined and to deleted worksheets lead nowhere.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

from pytest_cellprose.workbook.formulas import Reference, is_dynamic, references, translate
from pytest_cellprose.workbook.model import Formula, Workbook
from pytest_cellprose.workbook.refs import AddressError, CellAddress, Range
from pytest_cellprose.workbook.tables import TableIndex

Reach: TypeAlias = Literal["direct", "all"]
Position: TypeAlias = tuple[int, int]
"""Row and column."""


class Area(NamedTuple):
    """A rectangle on one worksheet of the workbook, not clipped."""

    sheet: int
    """The worksheet's index."""
    range: Range


class Graph:
    """The references between the cells of a workbook, read from a file or decoded from a text."""

    def __init__(self, workbook: Workbook) -> None:
        self._workbook = workbook
        self._sheets = workbook.worksheets
        self._index = {sheet.name.casefold(): index for index, sheet in reversed(list(enumerate(self._sheets)))}
        self._extents = [sheet.extent for sheet in self._sheets]
        self._tables = TableIndex(workbook.worksheets)
        self._names = {
            (defined.name.casefold(), None if defined.sheet is None else self._index.get(defined.sheet.casefold())): (
                defined.text
            )
            for defined in workbook.defined_names
        }

    def precedents(self, cell: CellAddress, reach: Reach = "direct") -> set[CellAddress]:
        """The cells that the cell's formula refers to; with ``all``, also what those refer to, and so on.

        Empty for a cell without a formula. Raises `AddressError` if the workbook has no such worksheet.
        """
        sheet = self._sheet_index(cell)
        covered: dict[tuple[int, int], _Covered] = defaultdict(_Covered)
        waiting = [(sheet, cell.row, cell.column)]
        while waiting:
            at, row, column = waiting.pop()
            for area in self._areas(at, row, column):
                extent = self._extents[area.sheet]
                clipped = None if extent is None else area.range.intersection(extent)
                if clipped is None:
                    continue
                for letter in range(clipped.first_column, clipped.last_column + 1):
                    fresh = covered[area.sheet, letter].add(clipped.first_row, clipped.last_row)
                    if reach == "all":
                        waiting += self._formula_cells(area.sheet, letter, fresh)
        return {
            CellAddress(self._sheets[at].name, row, column) for (at, column), rows in covered.items() for row in rows
        }

    def dependents(self, cell: CellAddress, reach: Reach = "direct") -> set[CellAddress]:
        """The cells whose formula refers to the cell; with ``all``, also what refers to those, and so on.

        Raises `AddressError` if the workbook has no such worksheet.
        """
        search = _Search(self._referrers)
        found: set[tuple[int, int, int]] = set()
        waiting = [(self._sheet_index(cell), cell.row, cell.column)]
        while waiting:
            for sheet, area in search.referring_to(*waiting.pop()):
                filled = {(sheet, *place) for place in area.cells()} - found
                found |= filled
                if reach == "all":
                    waiting += filled
        return {CellAddress(self._sheets[sheet].name, row, column) for sheet, row, column in found}

    def is_dynamic(self, cell: CellAddress) -> bool:
        """Whether the cell's formula, or a defined name in it, has references that only calculating it gives."""
        sheet = self._sheet_index(cell)
        formula = self._formula(sheet, cell.row, cell.column)
        return formula is not None and self._text_is_dynamic(formula[0].text, sheet, frozenset())

    def _sheet_index(self, cell: CellAddress) -> int:
        index = self._index.get(cell.sheet.casefold())
        if index is None:
            raise AddressError(f"{cell}: the workbook has no worksheet {cell.sheet!r}")
        return index

    # Formulas and the cells they stand in

    def _own(self, sheet: int, row: int, column: int, formula: Formula) -> Range:
        """The cells that have the formula: its own, or all that it fills."""
        own = Range(row, column, row, column)
        extent = self._extents[sheet]
        if formula.ref is None or extent is None:
            return own
        return formula.ref.intersection(extent) or own

    @cached_property
    def _filled(self) -> list[list[tuple[Range, Position]]]:
        """By worksheet: what array formulas and data tables of several cells fill, and where they are stored."""
        return [
            [
                (self._own(index, row, column, cell.formula), (row, column))
                for row, column, cell in sheet.cells()
                if cell.formula is not None and cell.formula.ref is not None and cell.formula.ref.size > 1
            ]
            for index, sheet in enumerate(self._sheets)
        ]

    def _formula(self, sheet: int, row: int, column: int) -> tuple[Formula, Position] | None:
        """The formula of a cell, and the cell that its relative references start from."""
        cell = self._sheets[sheet].cell(row, column)
        if cell is not None and cell.formula is not None:
            return cell.formula, (row, column)
        for area, anchor in self._filled[sheet]:
            if area.contains(row, column):
                stored = self._sheets[sheet].cell(*anchor)
                if stored is not None and stored.formula is not None:
                    return stored.formula, anchor
        return None

    @cached_property
    def _formula_rows(self) -> list[dict[int, list[int]]]:
        """By worksheet: column -> the rows with a formula, ascending."""
        result = []
        for sheet, filled in zip(self._sheets, self._filled, strict=True):
            places = {(row, column) for row, column, cell in sheet.cells() if cell.formula is not None}
            for area, _ in filled:
                places.update(area.cells())
            columns: dict[int, list[int]] = defaultdict(list)
            for row, column in sorted(places):
                columns[column].append(row)
            result.append(dict(columns))
        return result

    def _formula_cells(
        self, sheet: int, column: int, spans: Iterable[tuple[int, int]]
    ) -> Iterator[tuple[int, int, int]]:
        rows = self._formula_rows[sheet].get(column)
        if rows is None:
            return
        for first, last in spans:
            for row in rows[bisect_left(rows, first) : bisect_right(rows, last)]:
                yield sheet, row, column

    def _areas(self, sheet: int, row: int, column: int) -> list[Area]:
        found = self._formula(sheet, row, column)
        if found is None:
            return []
        formula, at = found
        return self._resolved_text(formula.text, sheet, at, frozenset())

    @cached_property
    def _referrers(self) -> list[_RangeIndex]:
        """By worksheet: the ranges that formulas refer to, with worksheet and cells of each formula."""
        indexes = [_RangeIndex() for _ in self._sheets]
        for sheet, worksheet in enumerate(self._sheets):
            for row, column, cell in worksheet.cells():
                if cell.formula is not None:
                    own = self._own(sheet, row, column, cell.formula)
                    for area in self._resolved_text(cell.formula.text, sheet, (row, column), frozenset()):
                        indexes[area.sheet].add(area.range, (sheet, own))
        return indexes

    # From text to areas

    def _resolved_text(self, text: str, sheet: int, at: Position, seen: frozenset[str]) -> list[Area]:
        return [area for found in references(text) for area in self._resolved(found, sheet, at, seen)]

    def _resolved(self, found: Reference, sheet: int, at: Position, seen: frozenset[str]) -> list[Area]:
        """The areas of a reference in a formula of this worksheet and cell; `seen` are the names being resolved."""
        if found.kind == "intersection":
            areas = self._resolved(found.parts[0], sheet, at, seen)
            for part in found.parts[1:]:
                others = self._resolved(part, sheet, at, seen)
                areas = [
                    Area(one.sheet, both)
                    for one in areas
                    for other in others
                    if one.sheet == other.sheet and (both := one.range.intersection(other.range)) is not None
                ]
            return areas
        if found.book is not None:
            return []
        if found.kind == "structured":
            return [Area(*area) for area in self._tables.areas(found.text, sheet, at)]
        sheets = self._span(found, sheet)
        if found.kind == "name":
            areas = self._resolved_name(found, sheets[0], sheet, at, seen) if sheets else []
        elif found.range is not None:
            areas = [Area(index, found.range) for index in sheets]
        else:
            areas = []
        return [self._spilled(area) for area in areas] if found.spill else areas

    def _span(self, found: Reference, sheet: int) -> range | list[int]:
        """The worksheets of a reference: its own, or all from one tab to another."""
        if found.sheet is None:
            return [sheet]
        first = self._index.get(found.sheet.casefold())
        last = first if found.last_sheet is None else self._index.get(found.last_sheet.casefold())
        if first is None or last is None:
            return []
        return range(min(first, last), max(first, last) + 1)

    def _resolved_name(
        self, found: Reference, scope: int, sheet: int, at: Position, seen: frozenset[str]
    ) -> list[Area]:
        name = found.text.casefold()
        text = self._name_text(name, scope)
        if text is None:
            return [Area(*area) for area in self._tables.areas(f"{found.text}[]", sheet, at)]
        if name in seen:
            return []
        if self._workbook.source is not None:
            # Relative references of a name are stored as seen from A1. Decoded names have lost the difference.
            text = translate(text, at[0] - 1, at[1] - 1, wrap=True)
        return self._resolved_text(text, scope, at, seen | {name})

    def _name_text(self, name: str, scope: int) -> str | None:
        """A worksheet's own name comes before the workbook's (ECMA-376 part 1, §18.2.5)."""
        return self._names.get((name, scope), self._names.get((name, None)))

    def _spilled(self, area: Area) -> Area:
        """``A1#``: what the array formula in A1 fills."""
        cell = self._sheets[area.sheet].cell(area.range.first_row, area.range.first_column)
        formula = None if cell is None else cell.formula
        return area if formula is None or formula.ref is None else Area(area.sheet, formula.ref)

    def _text_is_dynamic(self, text: str, sheet: int, seen: frozenset[str]) -> bool:
        if is_dynamic(text):
            return True
        for found in references(text):
            for part in found.parts or (found,):
                scopes = self._span(part, sheet)
                name = part.text.casefold()
                if part.kind != "name" or part.book is not None or not scopes or name in seen:
                    continue
                inner = self._name_text(name, scopes[0])
                if inner is not None and self._text_is_dynamic(inner, scopes[0], seen | {name}):
                    return True
        return False


Referrer: TypeAlias = tuple[int, Range]
"""The worksheet's index and the cells of a formula: one, or all that an array formula fills."""
_Key: TypeAlias = tuple[int, int, int, int]


class _RangeIndex:
    """Ranges of one worksheet, found by a cell within them.

    Each is filed under a block as large as itself: rows and columns are halved again and again into blocks, and
    a range of height 5 lies in at most two of the blocks of 8 rows. A cell lies in one block of each size.
    """

    def __init__(self) -> None:
        self.blocks: dict[_Key, list[tuple[Range, Referrer]]] = defaultdict(list)
        self.levels: set[tuple[int, int]] = set()

    def add(self, area: Range, referrer: Referrer) -> None:
        tall = (area.last_row - area.first_row).bit_length()
        wide = (area.last_column - area.first_column).bit_length()
        self.levels.add((tall, wide))
        for row in range(area.first_row >> tall, (area.last_row >> tall) + 1):
            for column in range(area.first_column >> wide, (area.last_column >> wide) + 1):
                self.blocks[tall, row, wide, column].append((area, referrer))


class _Search:
    """A walk over the indexes of all worksheets that gives each formula once."""

    def __init__(self, indexes: list[_RangeIndex]) -> None:
        self._indexes = indexes
        self._left: dict[tuple[int, _Key], list[tuple[Range, Referrer]]] = {}
        self._given: set[Referrer] = set()

    def referring_to(self, sheet: int, row: int, column: int) -> Iterator[Referrer]:
        index = self._indexes[sheet]
        for tall, wide in index.levels:
            key = (tall, row >> tall, wide, column >> wide)
            entries = self._left.get((sheet, key))
            if entries is None:
                entries = index.blocks.get(key)
            if not entries:
                continue
            left = []
            for area, referrer in entries:
                if referrer in self._given:
                    continue
                if area.contains(row, column):
                    self._given.add(referrer)
                    yield referrer
                else:
                    left.append((area, referrer))
            self._left[sheet, key] = left  # what was given need not be looked at again: walks stay linear


class _Covered:
    """A growing set of rows, kept as disjoint ascending spans."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []

    def add(self, first: int, last: int) -> list[tuple[int, int]]:
        """Add a span; what of it is new."""
        start = bisect_left(self._lasts, first - 1)
        stop = bisect_right(self._firsts, last + 1)
        fresh = []
        following = first
        for at in range(start, stop):
            if following < self._firsts[at]:
                fresh.append((following, min(last, self._firsts[at] - 1)))
            following = max(following, self._lasts[at] + 1)
        if following <= last:
            fresh.append((following, last))
        if start < stop:
            first, last = min(first, self._firsts[start]), max(last, self._lasts[stop - 1])
        self._firsts[start:stop] = [first]
        self._lasts[start:stop] = [last]
        return fresh

    def __iter__(self) -> Iterator[int]:
        for first, last in zip(self._firsts, self._lasts, strict=True):
            yield from range(first, last + 1)

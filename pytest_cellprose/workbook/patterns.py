"""Formula patterns of a worksheet: which cells hold one formula filled over them, and which were typed over.

Two formulas have the same *pattern* when filling one to the other's cell gives the other (R1C1
equivalence). What "hard-coded" means is defined here and nowhere else (`hardcoded_cells`): the writer of
`cellprose_lean_gfm`, the question generator and the offline reader all ask this module.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from pytest_cellprose.workbook.model import Cell, Formula, Worksheet
from pytest_cellprose.workbook.number_formats import date_kind
from pytest_cellprose.workbook.refs import Range

Position: TypeAlias = tuple[int, int]
"""``(row, column)``"""

LARGEST_GAP = 2
"""So many neighbouring cells at most may be typed over for the formulas around them to count as one run."""
SMALLEST_RUN = 3
"""So many cells of a pattern must stand in a row or column before a number among them is suspicious."""


class Pattern(NamedTuple):
    """One formula and every cell it is filled to."""

    formula: Formula
    """That of the first cell, row-major."""
    cells: tuple[Position, ...]
    """The cells that hold it, row-major."""
    hardcoded: tuple[Position, ...] = ()
    """The cells among them that were typed over, row-major; each belongs to one pattern of its worksheet."""

    @property
    def is_block(self) -> bool:
        """One array formula or data table over a whole range, rather than one formula per cell."""
        return is_block(self.formula)

    @property
    def ranges(self) -> tuple[Range, ...]:
        """Rectangles that cover `cells` and `hardcoded` exactly, in the order of their first cells."""
        if self.is_block and self.formula.ref is not None:
            return (self.formula.ref,)
        return cover((*self.cells, *self.hardcoded))


def is_block(formula: Formula) -> bool:
    """Whether one formula fills a range of several cells: array formulas, spills and data tables."""
    return formula.kind == "dataTable" or (formula.kind == "array" and formula.ref is not None and formula.ref.size > 1)


def worksheet_patterns(worksheet: Worksheet) -> tuple[Pattern, ...]:
    """The patterns of a worksheet in the order of their first cells, row-major.

    An array formula of one cell only shares a pattern with others of its kind; one over several cells, and
    a data table, is a pattern of its own.
    """
    groups: dict[object, list[Position]] = {}
    for row, columns in worksheet.rows.items():
        for column, cell in columns.items():
            formula = cell.formula
            if formula is None:
                continue
            key: object
            if is_block(formula):
                key = (row, column)
            else:
                key = (formula.kind, formula.pattern(row, column))
            groups.setdefault(key, []).append((row, column))
    spilled = spilled_cells(worksheet)
    taken: set[Position] = set()
    patterns = []
    for cells in groups.values():
        typed_over: set[Position] = set()
        if len(cells) >= SMALLEST_RUN:
            typed_over = {
                gap
                for gap in _gaps(cells)
                if gap not in taken and gap not in spilled and _is_typed_number(worksheet.cell(*gap))
            }
            taken |= typed_over
        first = worksheet.rows[cells[0][0]][cells[0][1]].formula
        assert first is not None
        patterns.append(Pattern(first, tuple(cells), tuple(sorted(typed_over))))
    return tuple(patterns)


def hardcoded_cells(worksheet: Worksheet, patterns: Sequence[Pattern] | None = None) -> tuple[Position, ...]:
    """The cells where a number was typed over a run of formulas, row-major.

    *Hard-coded* is a numeric constant (typed, not the result of an array formula or data table, not shown
    as a date or time, not a boolean) that stands between two cells of one pattern in its row or its column,
    with at most `LARGEST_GAP` cells between the two and at least `SMALLEST_RUN` cells of the pattern in
    that row or column. A constant before the first or after the last formula of a run is an input, not a
    hard-code.

    `patterns` are those of the worksheet, if they are known already.
    """
    found = worksheet_patterns(worksheet) if patterns is None else patterns
    return tuple(sorted(position for each in found for position in each.hardcoded))


def spilled_cells(worksheet: Worksheet) -> set[Position]:
    """Cells without a formula of their own that an array formula or data table of another cell fills."""
    spilled: set[Position] = set()
    for row, columns in worksheet.rows.items():
        for column, cell in columns.items():
            if cell.formula is None or cell.formula.ref is None or not is_block(cell.formula):
                continue
            for filled_row, filled_column in _used(worksheet, cell.formula.ref):
                if (filled_row, filled_column) != (row, column):
                    spilled.add((filled_row, filled_column))
    return spilled


def _used(worksheet: Worksheet, area: Range) -> Iterator[Position]:
    """The used cells of a rectangle, at no more than the cost of the worksheet itself."""
    rows = worksheet.rows
    height = area.last_row - area.first_row + 1
    for row in range(area.first_row, area.last_row + 1) if height <= len(rows) else rows:
        for column in rows.get(row, ()):
            if area.contains(row, column):
                yield row, column


def _is_typed_number(cell: Cell | None) -> bool:
    return (
        cell is not None
        and cell.formula is None
        and isinstance(cell.value, int | float)
        and not isinstance(cell.value, bool)
        and date_kind(cell.number_format) is None
    )


def _gaps(cells: Sequence[Position]) -> Iterator[Position]:
    """What lies in the short gaps between cells of one row or one column."""
    rows: dict[int, list[int]] = defaultdict(list)
    columns: dict[int, list[int]] = defaultdict(list)
    for row, column in cells:
        rows[row].append(column)
        columns[column].append(row)
    for row, line in rows.items():
        for column in _between(line):
            yield row, column
    for column, line in columns.items():
        for row in _between(line):
            yield row, column


def _between(line: Sequence[int]) -> Iterator[int]:
    if len(line) < SMALLEST_RUN:
        return
    for left, right in pairwise(line):
        if 1 < right - left <= LARGEST_GAP + 1:
            yield from range(left + 1, right)


def spans(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """``1 2 3 7 9 10 -> (1, 3) (7, 7) (9, 10)``; the numbers ascend."""
    first = last = None
    for number in numbers:
        if last is not None and first is not None and number != last + 1:
            yield first, last
            first = number
        elif first is None:
            first = number
        last = number
    if first is not None and last is not None:
        yield first, last


def cover(cells: Iterable[Position]) -> tuple[Range, ...]:
    """Rectangles that hold exactly these cells, without overlap, in the order of their first cells.

    Cells are joined into vertical runs and equal neighbouring runs into rectangles, or the other way round,
    whichever is the shorter text.
    """
    positions = list(cells)
    if len(positions) == 1:
        ((row, column),) = positions
        return (Range(row, column, row, column),)
    vertical = sorted(
        Range(first_row, first_column, last_row, last_column)
        for first_column, last_column, first_row, last_row in _rectangles((c, r) for r, c in positions)
    )
    horizontal = sorted(Range(r, c, s, d) for r, s, c, d in _rectangles(positions))
    return tuple(min(vertical, horizontal, key=lambda ranges: len(",".join(map(str, ranges)))))


def _rectangles(points: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int, int, int]]:
    """``(first line, last line, first place, last place)`` of the runs in ``(line, place)`` pairs."""
    lines: dict[int, list[int]] = defaultdict(list)
    for line, place in points:
        lines[line].append(place)
    runs: dict[tuple[int, int], list[int]] = defaultdict(list)
    for line in sorted(lines):
        for run in spans(sorted(lines[line])):
            runs[run].append(line)
    for (first_place, last_place), along in runs.items():
        for first_line, last_line in spans(along):
            yield first_line, last_line, first_place, last_place

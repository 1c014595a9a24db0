"""Questions about a generated workbook, their truths taken from what the generator built.

Truths are as docs/questions.md has them: *trace* is every cell of every range that the formula refers to, *impact*
every cell whose formula refers to the cell, both clipped to the used extent; *hardcode* the numbers typed over a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from functools import cache, cached_property
from typing import Literal, TypeAlias

from pytest_cellprose.sets.synthetic.book import Book, Sheet
from pytest_cellprose.sets.synthetic.expression import Scalar
from pytest_cellprose.sets.synthetic.functions import day_of
from pytest_cellprose.workbook.refs import CellAddress, Range, quote_sheet

Reach: TypeAlias = Literal["direct", "all"]
Cells: TypeAlias = "set[CellAddress]"


class Questions:
    """The questions of one workbook, in the order asked; `entries` is what its question file holds."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.entries: list[dict[str, object]] = []

    def value(self, sheet: Sheet, cell: str, text: str, *, kind: Literal["", "date"] = "", unit: str = "") -> None:
        """Ask for a cell's value: a date's as ISO text, a percentage in points if `unit` is ``percent``."""
        where = Range.parse(cell)
        answer: Scalar = sheet.value(where.first_row, where.first_column)
        if kind == "date":
            answer = day_of(answer).isoformat()
        elif unit == "percent":
            assert isinstance(answer, float)
            answer *= 100
        if isinstance(answer, float):
            answer = float(format(answer, ".15g"))  # as many digits as Excel shows
            answer = int(answer) if answer.is_integer() else answer
        extra = {"type": str(kind)} if kind else {"unit": unit} if unit else {}
        self._add("value", sheet, text, _address(sheet, cell), answer, extra)

    def address(
        self, sheet: Sheet, cell: str, text: str, *, row: Sequence[str] = (), column: Sequence[str] = ()
    ) -> None:
        """Ask where something is: where a row and a column meet, or else where the cell's typed value is."""
        where = Range.parse(cell)
        about: dict[str, object] = {"row": list(row), "column": list(column)}
        if not row:
            value = sheet.value(where.first_row, where.first_column)
            is_date = isinstance(sheet.cells[where.first_row, where.first_column][0], date)
            about = {"value": day_of(value).isoformat() if is_date else value}
        self._add("address", sheet, text, about, [_address(sheet, cell)])

    def trace(self, sheet: Sheet, cell: str, text: str, reach: Reach = "direct") -> None:
        """Ask what a formula refers to, `text` saying "directly" or that everything behind it counts."""
        found = self._closure(CellAddress(sheet.name, *Range.parse(cell)[:2]), self._precedents, reach)
        self._add("trace", sheet, self._anywhere(text), _address(sheet, cell), self._ranges(found), {"reach": reach})

    def impact(self, sheet: Sheet, cell: str, text: str, reach: Reach = "direct") -> None:
        """Ask which formulas refer to a cell, `text` saying "directly" or that everything downstream counts."""
        found = self._closure(CellAddress(sheet.name, *Range.parse(cell)[:2]), self._dependents, reach)
        self._add("impact", sheet, self._anywhere(text), _address(sheet, cell), self._ranges(found), {"reach": reach})

    def hardcode(self, sheet: Sheet, area: str, text: str) -> None:
        """Ask which cells of a range hold a number typed over the run's formula."""
        inside = Range.parse(area)
        found = [
            _address(sheet, cell)
            for cell in sorted(sheet.overrides, key=lambda cell: Range.parse(cell))
            if inside.contains(*Range.parse(cell)[:2])
        ]
        self._add("hardcode", sheet, text, _address(sheet, area), found)

    def _anywhere(self, text: str) -> str:
        """Say that the cells to list may be on other worksheets, where there are any."""
        if len(self.book.sheets) == 1 or "any worksheet" in text:
            return text
        return f"{text} Include cells on any worksheet."

    def _add(
        self,
        kind: str,
        sheet: Sheet,
        text: str,
        about: object,
        answer: object,
        extra: dict[str, str] | None = None,
    ) -> None:
        text = f"Worksheet {sheet.name}: {text}"
        entry = {"id": f"q{len(self.entries) + 1}", "kind": kind, "text": text, "sheet": sheet.name}
        self.entries.append({**entry, "about": about, **(extra or {}), "answer": answer})

    @cached_property
    def _precedents(self) -> dict[CellAddress, Cells]:
        extents = {sheet.name: sheet.extent for sheet in self.book.sheets}

        @cache
        def cells_of(sheet: str, area: Range) -> frozenset[CellAddress]:
            inside = area.intersection(extents[sheet])
            return frozenset(CellAddress(sheet, *place) for place in inside.cells()) if inside else frozenset()

        return {
            cell: {found for area in formula.areas for found in cells_of(area.sheet, area.range)}
            for cell, formula in self.book.formulas()
        }

    @cached_property
    def _dependents(self) -> dict[CellAddress, Cells]:
        found: dict[CellAddress, Cells] = {}
        for cell, precedents in self._precedents.items():
            for precedent in precedents:
                found.setdefault(precedent, set()).add(cell)
        return found

    @staticmethod
    def _closure(start: CellAddress, edges: dict[CellAddress, Cells], reach: Reach) -> Cells:
        found = set(edges.get(start, ()))
        waiting = list(found) if reach == "all" else []
        while waiting:
            further = edges.get(waiting.pop(), set()) - found
            found |= further
            waiting.extend(further)
        return found

    def _ranges(self, cells: Cells) -> list[str]:
        """The cells as few ranges, by worksheet in the workbook's order."""
        return [
            f"{quote_sheet(sheet.name)}!{area}"
            for sheet in self.book.sheets
            for area in rectangles((cell.row, cell.column) for cell in cells if cell.sheet == sheet.name)
        ]


def rectangles(cells: Iterable[tuple[int, int]]) -> list[Range]:
    """Disjoint rectangles that cover the ``(row, column)`` cells: runs along a row, equal runs stacked."""
    runs: list[Range] = []
    for row, column in sorted(cells):
        last = runs[-1] if runs else None
        if last is not None and last.first_row == row and last.last_column == column - 1:
            runs[-1] = last._replace(last_column=column)
        else:
            runs.append(Range(row, column, row, column))
    stacked: list[Range] = []
    open_runs: dict[tuple[int, int, int], int] = {}  # columns and last row -> place in `stacked`
    for run in runs:
        above = open_runs.pop((run.first_column, run.last_column, run.first_row - 1), None)
        if above is None:
            above = len(stacked)
            stacked.append(run)
        stacked[above] = stacked[above]._replace(last_row=run.last_row)
        open_runs[run.first_column, run.last_column, run.last_row] = above
    return stacked


def _address(sheet: Sheet, address: str) -> str:
    return f"{quote_sheet(sheet.name)}!{address}"

"""What a workbook itself says about a question: the second path to every recorded truth."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_cellprose.questions.cellset import Area, CellSet, Extents
from pytest_cellprose.questions.locate import displayed, locate
from pytest_cellprose.questions.schema import Question, Scalar
from pytest_cellprose.questions.scoring import score
from pytest_cellprose.workbook.model import Workbook
from pytest_cellprose.workbook.patterns import hardcoded_cells
from pytest_cellprose.workbook.refs import CellAddress, Range

if TYPE_CHECKING:
    from pytest_cellprose.workbook.graph import Graph

SAME = 1e-9
"""Relative: numbers closer than this are one number in two notations."""


class Evidence:
    """A workbook to hold truths against."""

    def __init__(self, workbook: Workbook) -> None:
        self.workbook = workbook

    @classmethod
    def read(cls, path: Path) -> Evidence:
        """Raises `WorkbookError`."""
        return cls(Workbook.read(path))

    @cached_property
    def extents(self) -> dict[str, Range | None]:
        """Worksheet -> used extent."""
        return {sheet.name: sheet.extent for sheet in self.workbook.worksheets}

    @cached_property
    def _clipping(self) -> Extents:
        return Extents({name: None if extent is None else str(extent) for name, extent in self.extents.items()})

    @cached_property
    def _graph(self) -> Graph:
        from pytest_cellprose.workbook.graph import Graph

        return Graph(self.workbook)

    def against(self, question: Question) -> str | None:
        """What speaks against the question's truth; None if the workbook says the same at `about`.

        Of a computed question this is to be asked of the answer workbook. The question's worksheets exist
        (`check_against`). What is said may quote the workbook and the truth.
        """
        about = question.about
        if about is None:
            return 'no field "about" says which cell holds the truth'
        if not isinstance(about, str):
            return self._differs(question, locate(self.workbook, about, question.sheet), "the labels lead to")
        if question.kind == "hardcode":
            area = Area.parse(about, question.sheet)
            return self._differs(question, self._hardcoded(area), f"hard-coded in {area} are")
        cell = CellAddress.parse(about, question.sheet)
        if self.workbook.sheet(cell.sheet) is None:
            return f"there is no worksheet {cell.sheet!r}"
        return self._other_value(question, cell) if question.kind == "value" else self._other_links(question, cell)

    def _other_value(self, question: Question, address: CellAddress) -> str | None:
        cell = self.workbook.cell(address)
        shown = None if cell is None else displayed(cell, self.workbook.date1904)
        if shown is None:
            return f"{address} holds no value"
        if question.unit == "percent" and isinstance(shown, int | float) and not isinstance(shown, bool):
            shown = float(Decimal(repr(shown)) * 100)
        assert not isinstance(question.answer, tuple)
        if _is_same(question, question.answer, shown):
            return None
        return f"{address} holds {shown!r}, the recorded truth is {question.answer!r}"

    def _other_links(self, question: Question, start: CellAddress) -> str | None:
        links = self._graph.precedents if question.kind == "trace" else self._graph.dependents
        found = links(start, question.reach or "direct")
        dynamic = sorted(cell for cell in {start, *found} if self._graph.is_dynamic(cell))
        if dynamic:
            return f"{dynamic[0]} has a dynamic reference, such as OFFSET or INDIRECT: no text says what it refers to"
        return self._differs(question, found, f"{question.kind}, {question.reach}, of {start} is")

    def _hardcoded(self, area: Area) -> list[CellAddress]:
        sheet = self.workbook.sheet(area.sheet)
        if sheet is None:
            return []
        return [CellAddress(sheet.name, *place) for place in hardcoded_cells(sheet) if area.range.contains(*place)]

    def _differs(self, question: Question, found: Iterable[CellAddress], what: str) -> str | None:
        assert isinstance(question.answer, tuple)
        cells = sorted(found)
        there, truth = CellSet(), CellSet()
        for cell in cells:
            there.add(cell.sheet, Range(cell.row, cell.column, cell.row, cell.column))
        for text in question.answer:
            area = Area.parse(text, question.sheet)
            if clipped := self._clipping.clip(area):
                truth.add(area.sheet, clipped)
        if truth == there:
            return None
        listed = ", ".join(map(str, cells[:6])) + (f" and {len(cells) - 6} more" if len(cells) > 6 else "")
        return f"{what} {listed or 'no cell'}, the recorded truth is {', '.join(question.answer) or 'no cell'}"


def _is_same(question: Question, truth: Scalar, shown: Scalar) -> bool:
    """Whether a recorded truth is what a cell shows: graded right as an answer, and a number to its last digit.

    A truth may be rounded, 12.35 for 12.3482, but not more coarsely than its own digits say.
    """
    if isinstance(truth, bool) or isinstance(shown, bool) or not isinstance(truth, int | float):
        return isinstance(truth, bool) == isinstance(shown, bool) and score(question, shown) == 1
    number = _number(shown)
    if number is None or score(question, shown) < 1:
        return False
    exponent = Decimal(repr(truth)).normalize().as_tuple().exponent
    step = 10.0 ** min(0, exponent) if isinstance(exponent, int) else 0.0
    return math.isclose(number, truth, rel_tol=SAME) or abs(number - truth) <= step / 2 * (1 + SAME)


def _number(shown: Scalar) -> float | None:
    """Of a number, or of a text cell that holds one."""
    if not isinstance(shown, str):
        return float(shown)
    try:
        return float(shown.replace(",", ""))
    except ValueError:
        return None

"""`reader`, the offline model: a program that answers from the text that was sent, and from nothing else.

Not a language model. It decodes the workbook block of the prompt back into cells and looks the answers up, so its
accuracy is the ceiling that an encoding's text allows, and its token counts are exact.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pytest_cellprose.encodings.base import Encoding, Kept
from pytest_cellprose.models.tokens import count
from pytest_cellprose.providers.base import Reply, Request
from pytest_cellprose.questions.cellset import Area
from pytest_cellprose.questions.locate import displayed, locate
from pytest_cellprose.questions.prompts import workbook_block
from pytest_cellprose.questions.schema import Asked, Kind, Reach, Scalar
from pytest_cellprose.record.record import Usage
from pytest_cellprose.workbook.model import Workbook
from pytest_cellprose.workbook.patterns import cover, hardcoded_cells
from pytest_cellprose.workbook.refs import CellAddress, quote_sheet

if TYPE_CHECKING:
    from pytest_cellprose.workbook.graph import Graph

READER_VERSION = "1"
"""Changes whenever any answer could change."""

NEEDS: dict[Kind, Kept] = {
    "value": "values",
    "address": "addresses",
    "trace": "formulas",
    "impact": "formulas",
    "hardcode": "formulas",
}
"""What an encoding must keep for a question of a kind to be answered."""


class Reader:
    """The provider of the model `reader`."""

    def call(self, request: Request) -> Reply:
        """Answer `request.asked` from `request.prompt`; raises ValueError for an encoding without a decoder."""
        if request.encoding is None:
            raise ValueError("the reader needs to know the encoding of what it is to read")
        workbook = decoded(request.encoding, workbook_block(request.prompt))
        answers = answer_all(workbook, request.asked, request.encoding.keeps)
        text = json.dumps(answers, ensure_ascii=False)
        usage = Usage(input=count(request.system) + count(request.prompt), cached=0, output=count(text), reasoning=0)
        return Reply(text=text, returned_model=request.model_id, usage=usage)


def decoded(encoding: Encoding, block: str | None) -> Workbook:
    """The cells of a workbook block; without a block, no cells. Raises ValueError naming the encoding."""
    if block is None:
        return Workbook(worksheets=())
    if encoding.decode is None:
        raise ValueError(f"encoding {encoding.name!r} has no decoder: the reader cannot read it")
    return encoding.decode(block)


def answer_all(workbook: Workbook, asked: Iterable[Asked], keeps: frozenset[Kept]) -> dict[str, Any]:
    """The answers that can be found, by question id.

    A question is left out if the encoding does not keep what it needs, or if what it asks about is not there.
    If all are, each is answered with null: a reply without any key would be no answer at all.
    """
    questions = list(asked)
    cells = _Cells(workbook)
    answers = {question.id: cells.answer(question) for question in questions if NEEDS[question.kind] in keeps}
    found = {name: answer for name, answer in answers.items() if answer is not None}
    return found or {question.id: None for question in questions}


class _Cells:
    """A decoded workbook, to look answers up in; None is "not found"."""

    def __init__(self, workbook: Workbook) -> None:
        self._workbook = workbook

    @cached_property
    def _graph(self) -> Graph:
        from pytest_cellprose.workbook.graph import Graph

        return Graph(self._workbook)

    def answer(self, question: Asked) -> Any:
        about = question.about
        if about is None or question.computed:
            return None
        if not isinstance(about, str):
            return addresses(locate(self._workbook, about, question.sheet)) or None
        if question.kind == "hardcode":
            return self._hardcoded(Area.parse(about, question.sheet))
        start = CellAddress.parse(about, question.sheet)
        if question.kind == "value":
            return self._value(start, in_percent=question.unit == "percent")
        return self._linked(start, question.kind, question.reach or "direct")

    def _value(self, address: CellAddress, in_percent: bool) -> Scalar | None:
        cell = self._workbook.cell(address)
        shown = None if cell is None else displayed(cell, self._workbook.date1904)
        if in_percent and isinstance(shown, int | float) and not isinstance(shown, bool):
            return float(Decimal(repr(shown)) * 100)
        return shown

    def _hardcoded(self, area: Area) -> list[str] | None:
        worksheet = self._workbook.sheet(area.sheet)
        if worksheet is None:
            return None
        found = (place for place in hardcoded_cells(worksheet) if area.range.contains(*place))
        return addresses(CellAddress(worksheet.name, row, column) for row, column in found)

    def _linked(self, start: CellAddress, kind: Kind, reach: Reach) -> list[str] | None:
        if self._workbook.cell(start) is None and kind == "trace":
            return None
        linked = self._graph.precedents if kind == "trace" else self._graph.dependents
        return addresses(sorted(linked(start, reach)))  # a set has another order in every process


def addresses(cells: Iterable[CellAddress]) -> list[str]:
    """Cells as few worksheet-qualified ranges, in the order in which their worksheets come."""
    by_sheet: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for cell in cells:
        by_sheet[cell.sheet].append((cell.row, cell.column))
    return [f"{quote_sheet(sheet)}!{area}" for sheet, places in by_sheet.items() for area in cover(sorted(places))]

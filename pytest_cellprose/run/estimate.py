"""What a plan's live cells would cost, before any call (protocol section 8).

Input is counted: the exact system prompt and prompt of every cell, in o200k_base tokens. Output is an
assumption, written down here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pytest_cellprose.cell import count_prompt
from pytest_cellprose.models.pricing import cost_nanousd
from pytest_cellprose.record import CellId
from pytest_cellprose.run.encode import EncodingFault
from pytest_cellprose.run.session import RunSession

OUTPUT_TOKENS_PER_CALL = 100
OUTPUT_TOKENS_PER_QUESTION = 250
"""Answers take about 15 tokens a question; the rest is room for reasoning at medium effort. An assumption, not a
measurement: no live call has been made."""

METHOD = (
    f"input counted with o200k_base, output assumed: {OUTPUT_TOKENS_PER_CALL} tokens a call and "
    f"{OUTPUT_TOKENS_PER_QUESTION} a question; worst case: every call uses max_tokens"
)


@dataclass(frozen=True)
class Estimate:
    """Cost of some cells, in nano-dollars."""

    cells: int = 0
    expected: int = 0
    worst: int = 0
    unknown: tuple[str, ...] = ()
    """Encodings that gave no text, so that their cells are in no sum."""


def estimate(session: RunSession, cells: Iterable[CellId]) -> Estimate:
    """Expected and worst cost of the live cells among `cells`; the others cost nothing."""
    number, expected, worst = 0, 0, 0
    unknown: dict[str, None] = {}
    tokens: dict[tuple[str, str], int | None] = {}
    for cell in cells:
        model = session.spec.models[cell.model]
        if not model.live:
            continue
        number += 1
        key = (cell.workbook, cell.encoding)
        if key not in tokens:
            tokens[key] = _prompt_tokens(session, cell)
        prompt = tokens[key]
        if prompt is None:
            unknown[cell.encoding] = None
            continue
        assumed = OUTPUT_TOKENS_PER_CALL + OUTPUT_TOKENS_PER_QUESTION * session.questions(cell.workbook)
        expected += cost_nanousd(model.prices, prompt, min(assumed, model.max_tokens))
        worst += cost_nanousd(model.prices, prompt, model.max_tokens)
    return Estimate(number, expected, worst, tuple(unknown))


def _prompt_tokens(session: RunSession, cell: CellId) -> int | None:
    """The prompt does not depend on the model, so one count serves all models of a workbook and encoding."""
    try:
        return count_prompt(session.request(cell))
    except EncodingFault:
        return None

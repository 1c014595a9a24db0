"""What a plan's live cells would cost, before any call (protocol section 8).

Input is counted: the exact system prompt and prompt of every cell, in o200k_base tokens. Output is estimated, as
`pytest_cellprose.run.outputs` says.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pytest_cellprose.record import CellId
from pytest_cellprose.run.session import RunSession


@dataclass(frozen=True)
class Estimate:
    """Cost of some cells, in nano-dollars."""

    cells: int = 0
    expected: int = 0
    worst: int = 0
    greatest_excess: int = 0
    """The most by which one call can cost more than is expected of it."""
    unknown: tuple[str, ...] = ()
    """Encodings that gave no text, so that their cells are in no sum: nothing is sent for them."""


def estimate(session: RunSession, cells: Iterable[CellId]) -> Estimate:
    """Expected and worst cost of the live cells among `cells`; the others cost nothing."""
    number, expected, worst, excess = 0, 0, 0, 0
    unknown: dict[str, None] = {}
    for cell in cells:
        if not session.spec.models[cell.model].live:
            continue
        number += 1
        price = session.price(cell)
        if price is None:
            unknown[cell.encoding] = None
            continue
        expected += price.expected
        worst += price.worst
        excess = max(excess, price.worst - price.expected)
    return Estimate(number, expected, worst, excess, tuple(unknown))


def method(session: RunSession) -> str:
    """How the two sums come about, for a reader."""
    return f"input counted with o200k_base, {session.spec.outputs.method()}; worst case: every call uses max_tokens"

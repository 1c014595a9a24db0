"""What a plan's live cells would cost, before any call (protocol section 8).

Input is counted: the exact system prompt and prompt of every cell, in o200k_base tokens. Output is estimated, as
`pytest_cellprose.run.outputs` says.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from pytest_cellprose.models.pricing import CallPrice
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

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(
            cells=self.cells + other.cells,
            expected=self.expected + other.expected,
            worst=self.worst + other.worst,
            greatest_excess=max(self.greatest_excess, other.greatest_excess),
            unknown=tuple(dict.fromkeys([*self.unknown, *other.unknown])),
        )


def estimate(session: RunSession, cells: Iterable[CellId]) -> Estimate:
    """Expected and worst cost of the live cells among `cells`; the others cost nothing."""
    return sum(estimates(session, cells).values(), Estimate())


def estimates(session: RunSession, cells: Iterable[CellId]) -> dict[tuple[str, str], Estimate]:
    """The same for each model and encoding that has live cells, in the order of the plan."""
    prices: dict[tuple[str, str], list[CallPrice | None]] = defaultdict(list)
    for cell in cells:
        if session.spec.models[cell.model].live:
            prices[cell.model, cell.encoding].append(session.price(cell))
    matrix = session.spec.manifest.matrix
    pairs = product(matrix.models, matrix.encodings)
    return {pair: _summed(pair[1], prices[pair]) for pair in pairs if pair in prices}


def _summed(encoding: str, prices: Sequence[CallPrice | None]) -> Estimate:
    known = [price for price in prices if price is not None]
    return Estimate(
        cells=len(prices),
        expected=sum(price.expected for price in known),
        worst=sum(price.worst for price in known),
        greatest_excess=max((price.worst - price.expected for price in known), default=0),
        unknown=(encoding,) if len(known) < len(prices) else (),
    )


def method(session: RunSession) -> str:
    """How the two sums come about, for a reader."""
    return f"input counted with o200k_base, {session.spec.outputs.method()}; worst case: every call uses max_tokens"

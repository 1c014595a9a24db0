"""A plan's money, as it is shown and judged before the first call: costs, approval, caps (protocol section 8)."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product

from pytest_cellprose.measure.engine import Engine
from pytest_cellprose.models.pricing import CallPrice
from pytest_cellprose.questions.problem import Problem
from pytest_cellprose.record.record import CellId
from pytest_cellprose.store.spending import nanousd
from pytest_cellprose.wording import NANOUSD, counted, dollars

APPROVAL_ABOVE_USD = Decimal(5)
"""The protocol's section 8: the owner approves any run expected to cost more."""

_WIDTH = 110
_INDENT = "      "


def cost_lines(engine: Engine, cells: Collection[CellId]) -> list[str]:
    """Expected and worst cost per model, below it per encoding, and in all; empty if no cell is live."""
    costs = estimates(engine, cells)
    if not costs:
        return []
    lines = []
    width = max(map(len, engine.spec.models))
    for alias in engine.spec.models:
        of_model = {encoding: cost for (model, encoding), cost in costs.items() if model == alias}
        if of_model:
            lines.append(f"  {alias:<{width}}  {_cost(sum(of_model.values(), Estimate()))}")
            lines += _by_encoding(of_model)
    lines.append(f"  {'in all':<{width}}  {_cost(sum(costs.values(), Estimate()))}")
    lines += textwrap.wrap(f"({method(engine)})", _WIDTH, initial_indent="  ", subsequent_indent="   ")
    return lines


def _cost(cost: Estimate) -> str:
    unknown = f", unknown for {', '.join(cost.unknown)}" if cost.unknown else ""
    return f"{cost.cells:>6,} cells  expected {dollars(cost.expected)}, worst case {dollars(cost.worst)}{unknown}"


def _by_encoding(costs: Mapping[str, Estimate]) -> list[str]:
    shares = [
        f"{name} {dollars(cost.expected)} ({dollars(cost.worst)})".replace(" ", "\N{NO-BREAK SPACE}")
        for name, cost in costs.items()
        if not cost.unknown
    ]
    text = ", ".join(shares)
    wrapped = textwrap.wrap(text, _WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT, break_on_hyphens=False)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in wrapped]


def cap_lines(engine: Engine, cells: Collection[CellId], in_flight: int) -> list[str]:
    """Each cap, the greatest possible overshoot, and whether the cap will stop the run before its end.

    When a call is admitted, all that counts is within the cap at its expected cost; what can still cost more is
    what is in flight, `in_flight` calls at most.
    """
    lines = []
    for vendor, cap in engine.spec.caps.items():
        before = engine.spec.spent_before.get(vendor, 0)
        earlier = f" (of this {dollars(before)} spent by the runs that this one goes on from)" if before else ""
        of_vendor = estimate(engine, (cell for cell in cells if engine.spec.models[cell.model].vendor == vendor))
        calls = min(in_flight, of_vendor.cells)
        most = dollars(calls * of_vendor.greatest_excess)
        lines.append(
            f"cap for {vendor}: {dollars(cap)}{earlier}, to be exceeded by {most} at most "
            f"({counted(calls, 'call')} in flight, input as counted)"
        )
        if of_vendor.expected > cap - before:
            what = "what is left of the cap" if before else "the cap"
            lines.append(
                f"{what} for {vendor} is below the expected {dollars(of_vendor.expected)}: the run will stop short, "
                "incomplete and not publishable"
            )
    return lines


def shares(caps: Mapping[str, int], processes: int, apart: int) -> tuple[dict[str, int], dict[str, int]]:
    """Caps in nano-dollars for the processes that share the run's ledger together, and for each of the `apart`
    that have one of their own: an equal share for every process."""
    each = {vendor: cap // max(1, processes) for vendor, cap in caps.items()}
    return {vendor: cap - apart * each[vendor] for vendor, cap in caps.items()}, each


def share_lines(caps: Collection[str], processes: int, apart: int) -> list[str]:
    """How caps are divided when `apart` of the processes have ledgers of their own, on other machines."""
    if not apart or not caps:
        return []
    rest = processes - apart
    others = f"; the other {rest} share{'s' if rest == 1 else ''} the rest" if rest else ""
    one = "process that is started elsewhere has" if apart == 1 else "processes that are started elsewhere have"
    each = "" if apart == 1 else " each"
    return [f"of every cap the {apart} {one} 1/{processes}{each}{others}"]


def approval_problem(engine: Engine, cells: Iterable[CellId], approved: Decimal | None) -> Problem | None:
    """Why the cells may not be paid for; None if they may."""
    expected = estimate(engine, cells).expected
    limit = APPROVAL_ABOVE_USD if approved is None else approved
    if expected <= limit * NANOUSD or expected <= APPROVAL_ABOVE_USD * NANOUSD:
        return None
    needed = -(-expected // (NANOUSD // 100)) / 100  # whole cents, rounded up
    said = "nothing was approved" if approved is None else f"{approved} dollars were approved"
    return Problem(
        f"the selected cells are expected to cost {dollars(expected)}, and {said}",
        remedy=("--cellprose-approve-usd", f"{needed:.2f}"),
    )


def skipped_line(engine: Engine, skipped: Collection[CellId]) -> str | None:
    """One line for all cells that this mode skips: how many, what they would cost, which flag runs them."""
    if not skipped:
        return None
    cost = estimate(engine, skipped)
    unknown = f" (unknown for {', '.join(cost.unknown)})" if cost.unknown else ""
    return (
        f"{len(skipped):,} live cells skipped: they would cost about {dollars(cost.expected)}, at worst "
        f"{dollars(cost.worst)}{unknown}; --cellprose-live runs them"
    )


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


def estimate(engine: Engine, cells: Iterable[CellId]) -> Estimate:
    """Expected and worst cost of the live cells among `cells`; the others cost nothing."""
    return sum(estimates(engine, cells).values(), Estimate())


def estimates(engine: Engine, cells: Iterable[CellId]) -> dict[tuple[str, str], Estimate]:
    """The same for each model and encoding that has live cells, in the order of the plan."""
    prices: dict[tuple[str, str], list[CallPrice | None]] = defaultdict(list)
    for cell in cells:
        if engine.spec.models[cell.model].live:
            prices[cell.model, cell.encoding].append(engine.price(cell))
    matrix = engine.spec.manifest.matrix
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


def method(engine: Engine) -> str:
    """How the two sums come about, for a reader."""
    outputs, agents = engine.spec.outputs, engine.spec.manifest.agents
    said = f"input counted with o200k_base, {outputs.method()}; worst case: every call uses max_tokens"
    if agents is None:
        return said
    most = f", and one with tools its {dollars(nanousd(agents.max_call_usd))}, which its last answer may exceed"
    return f"{said}{most}; {outputs.episode_method(agents.encodings)}"

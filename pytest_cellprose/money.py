"""A plan's money, as it is shown and judged before the first call: costs, approval, caps (protocol section 8)."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal

from pytest_cellprose.draft import Problem
from pytest_cellprose.models.pricing import NANOUSD, dollars
from pytest_cellprose.record import CellId
from pytest_cellprose.run.estimate import Estimate, estimate, estimates, method
from pytest_cellprose.run.session import RunSession

APPROVAL_ABOVE_USD = Decimal(5)
"""The protocol's section 8: the owner approves any run expected to cost more."""

_WIDTH = 110
_INDENT = "      "


def cost_lines(session: RunSession, cells: Collection[CellId]) -> list[str]:
    """Expected and worst cost per model, below it per encoding, and in all; empty if no cell is live."""
    costs = estimates(session, cells)
    if not costs:
        return []
    lines = []
    width = max(map(len, session.spec.models))
    for alias in session.spec.models:
        of_model = {encoding: cost for (model, encoding), cost in costs.items() if model == alias}
        if of_model:
            lines.append(f"  {alias:<{width}}  {_cost(sum(of_model.values(), Estimate()))}")
            lines += _by_encoding(of_model)
    lines.append(f"  {'in all':<{width}}  {_cost(sum(costs.values(), Estimate()))}")
    lines += textwrap.wrap(f"({method(session)})", _WIDTH, initial_indent="  ", subsequent_indent="   ")
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


def cap_lines(session: RunSession, cells: Collection[CellId], in_flight: int) -> list[str]:
    """Each cap, the greatest possible overshoot, and whether the cap will stop the run before its end.

    When a call is admitted, all that counts is within the cap at its expected cost; what can still cost more is
    what is in flight, `in_flight` calls at most.
    """
    lines = []
    for vendor, cap in session.spec.caps.items():
        before = session.spec.spent_before.get(vendor, 0)
        earlier = f" (of this {dollars(before)} spent by the runs that this one goes on from)" if before else ""
        of_vendor = estimate(session, (cell for cell in cells if session.spec.models[cell.model].vendor == vendor))
        calls = min(in_flight, of_vendor.cells)
        most = dollars(calls * of_vendor.greatest_excess)
        lines.append(
            f"cap for {vendor}: {dollars(cap)}{earlier}, to be exceeded by {most} at most "
            f"({calls} {'call' if calls == 1 else 'calls'} in flight, input as counted)"
        )
        if of_vendor.expected > cap - before:
            what = "what is left of the cap" if before else "the cap"
            lines.append(
                f"{what} for {vendor} is below the expected {dollars(of_vendor.expected)}: the run will stop short, "
                "incomplete and not publishable"
            )
    return lines


def share_lines(caps: Collection[str], processes: int, apart: int) -> list[str]:
    """How caps are divided when `apart` of the processes have ledgers of their own, on other machines."""
    if not apart or not caps:
        return []
    rest = processes - apart
    others = f"; the other {rest} share{'s' if rest == 1 else ''} the rest" if rest else ""
    one = "process that is started elsewhere has" if apart == 1 else "processes that are started elsewhere have"
    each = "" if apart == 1 else " each"
    return [f"of every cap the {apart} {one} 1/{processes}{each}{others}"]


def approval_problem(session: RunSession, cells: Iterable[CellId], approved: Decimal | None) -> Problem | None:
    """Why the cells may not be paid for; None if they may."""
    expected = estimate(session, cells).expected
    limit = APPROVAL_ABOVE_USD if approved is None else approved
    if expected <= limit * NANOUSD or expected <= APPROVAL_ABOVE_USD * NANOUSD:
        return None
    needed = -(-expected // (NANOUSD // 100)) / 100  # whole cents, rounded up
    said = "nothing was approved" if approved is None else f"{approved} dollars were approved"
    return Problem(
        f"the selected cells are expected to cost {dollars(expected)}, and {said}",
        ("--cellprose-approve-usd", f"{needed:.2f}"),
    )


def skipped_line(session: RunSession, skipped: Collection[CellId]) -> str | None:
    """One line for all cells that this mode skips: how many, what they would cost, which flag runs them."""
    if not skipped:
        return None
    cost = estimate(session, skipped)
    unknown = f" (unknown for {', '.join(cost.unknown)})" if cost.unknown else ""
    return (
        f"{len(skipped):,} live cells skipped: they would cost about {dollars(cost.expected)}, at worst "
        f"{dollars(cost.worst)}{unknown}; --cellprose-live runs them"
    )


def workers(numprocesses: object, specs: Sequence[str]) -> int:
    """How many processes xdist will have: its ``-n``, or the ``--tx`` specifications such as ``3*popen``."""
    if isinstance(numprocesses, int):
        return max(1, numprocesses)
    counts = (spec.partition("*")[0] for spec in specs if "*" in spec)
    many = sum(int(count) for count in counts if count.isdecimal())
    return max(1, many + sum("*" not in spec for spec in specs))

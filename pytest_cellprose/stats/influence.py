"""How much of a comparison hangs on a single workbook: the ratio with each of them left out in turn."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from pytest_cellprose.stats.intervals import WorkbookMean


class LeaveOneOut(NamedTuple):
    """The ratio of cost per correct, challenger over baseline, over all workbooks but one."""

    lowest: float
    highest: float
    """May be infinite."""
    workbook: str
    """The one whose absence moves the ratio most, by the factor between the two ratios; the first by name among
    equals."""
    without_it: float | None
    """The ratio without that workbook; None: undefined, because without it neither side has anything right."""


def leave_one_out(
    challenger: Mapping[str, WorkbookMean | tuple[float | None, float]],
    baseline: Mapping[str, WorkbookMean | tuple[float | None, float]],
) -> LeaveOneOut | None:
    """The range of the ratio when each workbook is left out in turn.

    Both sides map workbook name -> (mean cost per call, mean accuracy), for the same workbooks. None where there is
    nothing to move: one workbook, unknown costs, or a ratio that is 0, infinite or undefined. Raises ValueError when
    the two sides are not about the same workbooks.
    """
    if challenger.keys() != baseline.keys():
        odd = ", ".join(sorted(challenger.keys() ^ baseline.keys()))
        raise ValueError(f"leave_one_out: both sides need the same workbooks; only one side has {odd}")
    names = sorted(challenger)
    costs = [[side[name][0] for name in names] for side in (challenger, baseline)]
    own_cost, their_cost = ([cost for cost in side if cost is not None] for side in costs)
    if len(names) < 2 or not len(names) == len(own_cost) == len(their_cost):
        return None
    own_right, their_right = ([side[name][1] for name in names] for side in (challenger, baseline))
    whole = _ratio(sum(own_cost), sum(own_right), sum(their_cost), sum(their_right))
    if whole is None or whole == 0 or math.isinf(whole):
        return None
    others = zip(*map(_of_others, (own_cost, own_right, their_cost, their_right)), strict=True)
    without = {name: _ratio(*sums) for name, sums in zip(names, others, strict=True)}
    known = [ratio for ratio in without.values() if ratio is not None]
    if not known:
        return None
    mover = max(names, key=lambda name: _factor(without[name], whole))
    return LeaveOneOut(min(known), max(known), mover, without[mover])


def _of_others(values: Sequence[float]) -> list[float]:
    """For each value the sum of the others: added up, not subtracted, so that nothing but zeros is 0."""
    before = [0.0, *accumulate(values)]
    after = [0.0, *accumulate(reversed(values))]
    return [before[place] + after[len(values) - 1 - place] for place in range(len(values))]


def _ratio(own_cost: float, own_right: float, their_cost: float, their_right: float) -> float | None:
    """Cost per correct over cost per correct; None for 0 / 0."""
    above, below = own_cost * their_right, their_cost * own_right
    if below == 0:
        return None if above == 0 else math.inf
    return above / below


def _factor(ratio: float | None, whole: float) -> float:
    """How far a ratio is from the whole one, up or down; to 0, infinite and undefined it is farthest."""
    return math.inf if not ratio or math.isinf(ratio) else abs(math.log(ratio / whole))

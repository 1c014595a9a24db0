"""The verdict on one baseline: win, loss or no difference, with the reason in words (protocol section 7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

from pytest_cellprose.stats.intervals import PairedBootstrap, WorkbookMean, paired_bootstrap

Word: TypeAlias = Literal["win", "loss", "no difference"]

GUARD = 0.01
"""A win may cost at most one point of accuracy against csv (protocol section 7)."""
SLACK = 1e-9
"""So that float rounding decides nothing."""
FEW = 10
"""Below so many workbooks a verdict carries their number."""
ONE_WORKBOOK = "one workbook"


class Verdict(NamedTuple):
    word: Word | None
    """None: what was measured is incomplete, and no verdict is taken from a part."""
    reason: str


class Comparison(NamedTuple):
    """Challenger against one baseline: one model, one set."""

    numbers: PairedBootstrap | None
    """Over the workbooks that both sides completed; None: there is none."""
    verdict: Verdict


def compare(
    challenger: Mapping[str, WorkbookMean],
    baseline: Mapping[str, WorkbookMean],
    guard: Mapping[str, WorkbookMean] | None,
    planned: int,
    *,
    whole: bool = True,
    reference: str = "csv",
    task: str = "workbook",
) -> Comparison:
    """Compare on the workbooks that both sides completed; a verdict needs all that are planned.

    Each side maps workbook name -> mean over the repeats, for the workbooks on which every planned repeat was
    measured; `guard` is the same for the encoding `reference`, against which a win must hold its accuracy, None when
    it is not in the plan. `planned` is how many workbooks the plan has. `whole`: whether everything else was measured
    that a verdict is made to wait for. `task` is what a workbook is called.
    """
    common = challenger.keys() & baseline.keys()
    if not common:
        return Comparison(None, Verdict(None, f"no {task} was completed on both sides"))
    numbers = paired_bootstrap({name: challenger[name] for name in common}, {name: baseline[name] for name in common})
    if len(common) < planned:
        return Comparison(numbers, Verdict(None, f"incomplete: {len(common)} of {planned} {task}s"))
    if not whole:
        return Comparison(numbers, Verdict(None, "incomplete: other cells of this set were not measured"))
    verdict = judge(numbers)
    if verdict.word == "win" and (guard is None or numbers.baseline_accuracy > 0):  # a side with nothing right has lost
        verdict = _guarded(verdict.reason, challenger, guard, planned, reference)
    if verdict.word is not None and verdict.reason != ONE_WORKBOOK and planned < FEW:
        verdict = verdict._replace(reason=f"{verdict.reason}; {planned} {task}{'s' if planned > 1 else ''} only")
    return Comparison(numbers, verdict)


def judge(numbers: PairedBootstrap) -> Verdict:
    """What costs and accuracies of the two sides say, first rule first; a win still has to hold its accuracy."""
    own, theirs = numbers.challenger_accuracy, numbers.baseline_accuracy
    if own == 0 and theirs == 0:
        return Verdict("no difference", "neither side answered anything right")
    if own == 0:
        return Verdict("loss", "the challenger answered nothing right")
    if theirs == 0:
        return Verdict("win", "the baseline answered nothing right")
    if numbers.workbooks == 1:
        return Verdict("no difference", ONE_WORKBOOK)
    if numbers.interval is None:
        return Verdict("no difference", "costs unknown: answered calls without reported tokens")
    low, high = numbers.interval
    if high < 1 - SLACK:
        return Verdict("win", "interval below 1")
    if low > 1 + SLACK:
        return Verdict("loss", "interval above 1")
    return Verdict("no difference", "interval includes 1")


def _guarded(
    ahead: str,
    challenger: Mapping[str, WorkbookMean],
    guard: Mapping[str, WorkbookMean] | None,
    planned: int,
    reference: str,
) -> Verdict:
    """A win, if accuracy holds against the reference; `ahead` is what speaks for one."""
    if guard is None:
        return Verdict("no difference", f"{ahead}, but no win without {reference} in the run to check accuracy against")
    if len(guard) < planned:
        done = f"{len(guard)} of {planned} workbooks"
        return Verdict(None, f"incomplete: {reference}, against which accuracy is checked, has {done}")
    lead = sum(challenger[name].accuracy - guard[name].accuracy for name in sorted(guard)) / planned
    if lead < -GUARD - SLACK:
        short = _more_than(-100 * lead, 100 * GUARD)
        return Verdict("no difference", f"{ahead}, but accuracy is {short} points below {reference} (1 is allowed)")
    return Verdict("win", ahead)


def _more_than(value: float, bound: float) -> str:
    """With two decimals, or as many as it takes to show more than `bound`."""
    return next(text for decimals in range(2, 18) if float(text := f"{value:.{decimals}f}") > bound)

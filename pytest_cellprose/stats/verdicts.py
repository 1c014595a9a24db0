"""The verdict on one baseline: win, loss or no difference, with the reason in words (DESIGN section 8)."""

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


class Verdict(NamedTuple):
    word: Word
    reason: str


class Comparison(NamedTuple):
    """Challenger against one baseline: one model, one set."""

    numbers: PairedBootstrap | None
    """None: no workbook was measured on both sides."""
    verdict: Verdict


def compare(
    challenger: Mapping[str, WorkbookMean],
    baseline: Mapping[str, WorkbookMean],
    csv: Mapping[str, WorkbookMean] | None,
    planned: int,
) -> Comparison:
    """Compare on the workbooks that both sides completed.

    Each side maps workbook name -> mean over the repeats, for the workbooks on which every planned repeat was
    measured; `csv` is the same for the encoding csv, None when it is not in the run. `planned` is how many
    workbooks the plan has: with fewer completed, the reason says so.
    """
    common = challenger.keys() & baseline.keys()
    if not common:
        return Comparison(None, Verdict("no difference", "no workbook was completed on both sides"))
    numbers = paired_bootstrap({name: challenger[name] for name in common}, {name: baseline[name] for name in common})
    guarded = sorted(common & csv.keys()) if csv else []
    lead = (
        sum(challenger[name].accuracy - csv[name].accuracy for name in guarded) / len(guarded)
        if csv and guarded
        else None
    )
    word, reason = judge(numbers, lead)
    if len(common) < planned:
        reason += f"; incomplete: {len(common)} of {planned} workbooks"
    elif 1 < len(common) < FEW:
        reason += f"; {len(common)} workbooks only"
    return Comparison(numbers, Verdict(word, reason))


def judge(numbers: PairedBootstrap, lead_over_csv: float | None) -> Verdict:
    """The rules, first match first.

    `lead_over_csv` is the challenger's accuracy minus csv's on the same workbooks, None when csv was not run:
    a win needs it, however it came about.
    """
    own, theirs = numbers.challenger_accuracy, numbers.baseline_accuracy
    if own == 0 and theirs == 0:
        return Verdict("no difference", "neither side answered anything right")
    if numbers.workbooks == 1:
        return Verdict("no difference", "one workbook")
    if own == 0:
        return Verdict("loss", "the challenger answered nothing right")
    if theirs == 0:
        return _guarded("the baseline answered nothing right", lead_over_csv)
    if numbers.interval is None:
        return Verdict("no difference", "costs unknown: answered calls without reported tokens")
    low, high = numbers.interval
    if high < 1 - SLACK:
        return _guarded("interval below 1", lead_over_csv)
    if low > 1 + SLACK:
        return Verdict("loss", "interval above 1")
    return Verdict("no difference", "interval includes 1")


def _guarded(ahead: str, lead_over_csv: float | None) -> Verdict:
    if lead_over_csv is None:
        return Verdict("no difference", f"{ahead}, but no win without csv in the run to check accuracy against")
    if lead_over_csv < -GUARD - SLACK:
        short = f"{-100 * lead_over_csv:.2f}"
        return Verdict("no difference", f"{ahead}, but accuracy is {short} points below csv (1 is allowed)")
    return Verdict("win", ahead)

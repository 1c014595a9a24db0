"""How numbers are written for people: the same in the terminal, in Markdown and on the page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from pytest_cellprose.report.model import Against, EncodingReport, ModelReport, Refused, Report, SetReport
from pytest_cellprose.store.manifest import SPREADSHEETS, MergedRun
from pytest_cellprose.wording import INFINITE, NOTHING, counted, dollar, dollar_column


def cost_columns(encodings: Iterable[EncodingReport]) -> tuple[list[str], list[str]]:
    """Cost per call and per correct; the control, which sends no workbook, sets no number of digits."""
    rows = list(encodings)
    compared = [row for row in rows if row.role != "control"]
    return (
        dollar_column([row.cost_per_call for row in rows], [row.cost_per_call for row in compared]),
        dollar_column([row.cost_per_correct for row in rows], [row.cost_per_correct for row in compared]),
    )


def percent(share: float | None) -> str:
    return NOTHING if share is None else f"{100 * share:.1f}%"


def points(difference: float | None) -> str:
    """A difference of two shares, in percentage points."""
    if difference is None:
        return NOTHING
    return f"{100 * difference + 0.0:+.1f}"


def tokens(value: float | None) -> str:
    """Rounded down, wherever tokens are shown."""
    return NOTHING if value is None else f"{math.floor(value):,}"


def ratio(value: float | None) -> str:
    if value is None:
        return NOTHING
    return INFINITE if math.isinf(value) else f"{_digits(value)}×"


def interval(ends: tuple[float, float] | None) -> str:
    if ends is None:
        return NOTHING
    return f"[{', '.join(INFINITE if math.isinf(end) else _digits(end) for end in ends)}]"


def percent_interval(ends: tuple[float, float] | None) -> str:
    return NOTHING if ends is None else f"[{100 * ends[0]:.1f}%, {100 * ends[1]:.1f}%]"


def points_interval(ends: tuple[float, float] | None) -> str:
    return NOTHING if ends is None else f"[{points(ends[0])}, {points(ends[1])}]"


def seconds(value: float | None) -> str:
    """Up to two minutes in seconds, then in minutes or hours."""
    if value is None:
        return NOTHING
    if value < 120:
        return f"{value:.1f} s"
    return f"{value / 60:.1f} min" if value < 7200 else f"{value / 3600:.1f} h"


def p_value(value: float | None) -> str:
    if value is None:
        return NOTHING
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def kinds(counts: dict[str, int]) -> str:
    """``3 truncated, 1 refused``."""
    return ", ".join(f"{n} {kind}" for kind, n in counts.items())


def _digits(value: float) -> str:
    """Two or three digits; near 1, where the verdict lies, never rounded onto it."""
    decimals = 2 if value < 10 else 1 if value < 100 else 0
    text = f"{value:.{decimals}f}"
    while float(text) == 1 and value != 1 and decimals < 10:
        decimals += 1
        text = f"{value:.{decimals}f}"
    return text


def size(report: Report, of_set: SetReport) -> str:
    """``14 workbooks, 243 questions``; a part of another suite's task is a part."""
    part = "question" if report.suite == SPREADSHEETS else "part"
    return f"{counted(of_set.workbooks, report.axes[1])}, {counted(of_set.questions, part)}"


def part(merged: MergedRun) -> str:
    """Where cells of a merged run are from."""
    shard = "" if merged.shard is None else f" (shard {merged.shard})"
    least = "at least " if merged.unreported else ""
    spent = f", {least}{dollar(merged.spent_nanousd / 1e9)} spent" if merged.spent_nanousd or least else ""
    return f"From run {merged.run}{shard}: {counted(len(merged.cells), 'cell')}{spent}"


def kept_from_starting(refused: Iterable[Refused]) -> str:
    """What caps, the wall clock and plugins did to a run."""
    cells: Counter[str] = Counter()
    for each in refused:
        cells[each.by] += len(each.cells)
    said = " and ".join(f"{number:,} by {by}" for by, number in cells.items())
    return f"cells kept from starting: {said}: this run is incomplete and is not published"


def used(refused: Refused) -> str:
    """How much of a limit was used: ``82 of 80 %``, ``$1.98 of $2.00``."""
    known = [value for value in (refused.used, refused.limit) if value is not None]
    said = " of ".join(_amount(value, refused.unit) for value in known) or NOTHING
    numbers = known and not any(isinstance(value, str) for value in known)
    return f"{said} {refused.unit}" if numbers and refused.unit not in ("", "USD") else said


def _amount(value: float | str, unit: str) -> str:
    if isinstance(value, str):
        return value
    return dollar(value) if unit == "USD" else f"{value:,}"


MOVED = 1.1
"""A single workbook whose absence moves the ratio by less than this factor is not worth a line."""


def is_moved(against: Against) -> bool:
    """Whether it says something how far the ratio moves without one workbook."""
    one = against.without_one
    if one is None or against.ratio is None or not one.ratio:
        return one is not None
    return max(one.ratio / against.ratio, against.ratio / one.ratio) >= MOVED


def long_prompts(against: Against) -> str | None:
    """How many prompts crossed a price tier, of the challenger and of the baseline; None if none did."""
    crossed = against.long_prompts
    if not (crossed.challenger or crossed.baseline):
        return None
    return f"long prompts {crossed.challenger:,} and {crossed.baseline:,}"


def measured(model: ModelReport) -> dict[str, Against]:
    """The comparisons for which something was measured on both sides."""
    return {name: against for name, against in model.against.items() if against.workbooks}


def compared_on(model: ModelReport, most: int | None = None) -> str | None:
    """Which workbooks the rows of an incomplete set are over; None if the set is complete.

    The shorter of two lists is given: those, or all but those; `most` names at most.
    """
    if model.complete:
        return None
    if not model.compared_on:
        return "incomplete: no workbook was completed by every encoding that was measured"
    lacking = [name for name in model.workbooks if name not in model.compared_on]
    if not lacking:
        return "incomplete: what is missing is in no row"
    but = len(lacking) <= len(model.compared_on)
    names = lacking if but else model.compared_on
    shown = names[:most]
    more = f", and {len(names) - len(shown):,} more" if len(names) > len(shown) else ""
    return (
        f"incomplete: rows are over the {len(model.compared_on):,} of {counted(len(model.workbooks), 'workbook')} that "
        f"every measured encoding completed: {'all but ' if but else ''}{', '.join(shown)}{more}"
    )


def spent(report: Report) -> str:
    """What a run's own calls cost, what is assumed of those that told no tokens, and what is not included."""
    parts = [f"{'at least ' if report.unreported else ''}{dollar(report.spent)}"]
    if report.unreported:
        said = f"{counted(report.unreported, 'call')} reported no usage"
        parts.append(f"{said}, for which {dollar(report.assumed)} is assumed")
    for earlier in report.lineage:
        total = earlier.total
        least = "at least " if total.unreported else ""
        parts.append(f"not included: {least}{dollar(total.spent / 1e9)} by run {earlier.run}, which it goes on from")
    return "; ".join(parts)

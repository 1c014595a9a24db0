"""The summary at the end of a run: a function of the report and the terminal's width that yields lines."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from pytest_cellprose.record.plain import visible
from pytest_cellprose.report import figures
from pytest_cellprose.report.groups import Group, groups
from pytest_cellprose.report.limitations import SET_LABELS
from pytest_cellprose.report.model import Against, Refused, Report, SetReport
from pytest_cellprose.wording import NOTHING, counted

if TYPE_CHECKING:
    from rich.console import RenderableType

NARROWEST = 80
"""In less, names and numbers would not stay whole: lines are then this long all the same."""

STYLES = {"win": "green", "loss": "red"}

_ASCII = str.maketrans({"×": "x", "–": "-", "−": "-", "∞": "inf", "·": "|", "…": "...", "─": "-"})


class _Look(NamedTuple):
    width: int
    unicode: bool

    def say(self, text: str) -> str:
        """As the terminal can show it. Before the layout, because signs may get longer."""
        return self.signs(visible(text))

    def signs(self, text: str) -> str:
        """The same, of a text of ours."""
        if self.unicode:
            return text
        return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")


def lines(report: Report, width: int = 80, colour: bool = False, unicode: bool = True) -> list[str]:
    """Lines of at most `width` characters (but 80 at least), without trailing blanks.

    `colour` adds ANSI escapes; without `unicode` there are ASCII characters only.
    """
    look = _Look(max(width, NARROWEST), unicode)
    parts: list[RenderableType] = []
    for name, of_set in report.sets.items():
        for group in groups(of_set, report.axes[0]):
            if parts:
                parts.append("")
            parts += _group(report, SET_LABELS[name], of_set, group, look)
    if parts:
        parts.append("")
    parts += [_hanging(look.say(line)) for line in _closing(report)]
    return _render(parts, look, colour)


def _group(report: Report, label: str, of_set: SetReport, group: Group, look: _Look) -> list[RenderableType]:
    from rich.padding import Padding
    from rich.text import Text

    def indented(text: str, style: str = "") -> RenderableType:
        return Padding(Text(look.say(text), style=style), (0, 0, 0, 2))

    size = figures.size(report, of_set)
    repeats = f", {report.repeats} repeats" if report.repeats > 1 else ""
    apart = " (reported apart)" if group.apart else ""
    parts: list[RenderableType] = [
        Text.assemble((look.say(f"{group.title}{apart}"), "bold"), look.say(f" · {label}: {size}{repeats}")),
        *(indented(note, "italic") for note in group.notes),
    ]
    for alias, model in group.models.items():
        if (said := figures.compared_on(model, most=6)) is not None:
            parts.append(indented(said if group.by_model else f"{alias}: {said}"))
    parts.append(Padding(_rows(group, look), (0, 0, 0, 2)))
    for model in group.models.values():
        compared = figures.measured(model)
        if compared:
            cost = "Nominal cost" if model.nominal else "Cost"
            parts.append(indented(f"{cost} per correct, {report.challenger} over each baseline (95%):"))
            parts.append(Padding(_verdicts(compared, look), (0, 0, 0, 4)))
        moved = {name: against for name, against in compared.items() if _influence(against)}
        if moved:
            tier = " (long prompts: above a price tier)" if any(map(figures.long_prompts, moved.values())) else ""
            parts.append(indented(f"The same, each {report.axes[1]} left out in turn{tier}:"))
            parts.append(Padding(_influences(moved, look), (0, 0, 0, 4)))
    return parts


_HEADS = ("accuracy", "tokens in", "tokens out", "cost/call", "cost/correct")
_TALL_HEADS = ("accuracy", "tokens\nin", "tokens\nout", "cost\nper call", "cost per\ncorrect")
"""With the calls beside them, the numbers have room in narrower columns."""


def _rows(group: Group, look: _Look) -> RenderableType:
    from rich import box
    from rich.table import Table

    rows = group.rows.values()
    failing = any(row.failures for row in rows)
    gap = 0 if failing and look.width < 90 else 1
    rule = box.Box(look.signs(str(box.SIMPLE_HEAD)), ascii=not look.unicode)
    table = Table(box=rule, show_edge=False, pad_edge=False, padding=(0, gap, 0, 0), header_style="")
    table.add_column(group.head, overflow="fold", min_width=10)
    for heading in _HEADS if group.complete else _TALL_HEADS:
        table.add_column(heading, justify="right", no_wrap=True)
    if failing:
        table.add_column("failed", justify="right", no_wrap=True)
    if not group.complete:
        table.add_column("calls", justify="right", no_wrap=True)
    for (name, row), call, correct in zip(group.rows.items(), *figures.cost_columns(rows), strict=True):
        cells = [
            name,
            figures.percent(row.accuracy),
            figures.tokens(row.input_tokens),
            figures.tokens(row.output_tokens),
            call,
            correct,
        ]
        if failing:
            cells.append(str(sum(row.failures.values()) or ""))
        if not group.complete:
            cells.append(f"{row.calls} of {row.planned}")
        bold = row.role == "challenger" and group.by_model
        table.add_row(*map(look.say, cells), style="bold" if bold else None)
    return table


def _verdicts(compared: Mapping[str, Against], look: _Look) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold", min_width=8)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    for name, against in compared.items():
        word = against.verdict or "no verdict"
        verdict = Text.assemble((word, STYLES.get(word, "")), look.say(f": {against.reason}"))
        ratio, interval = figures.ratio(against.ratio), figures.interval(against.interval)
        table.add_row(look.say(name), look.say(ratio), look.say(interval), verdict)
    return table


def _influences(moved: Mapping[str, Against], look: _Look) -> RenderableType:
    from rich.table import Table

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold", min_width=8)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    for name, against in moved.items():
        one = against.without_one
        ends = f"{figures.ratio(one.lowest)} to {figures.ratio(one.highest)}" if one else NOTHING
        table.add_row(*map(look.say, (name, ends, _influence(against))))
    return table


def _influence(against: Against) -> str:
    """Empty if there is nothing to say."""
    one = against.without_one
    farthest = f"farthest without {one.workbook}" if one and figures.is_moved(against) else None
    return "; ".join(filter(None, (farthest, figures.long_prompts(against))))


def _closing(report: Report) -> list[str]:
    """One line each: failures, faults, what was not run, and whether the run can be published.

    Cells that the mode skips are the plugin's to name: only it knows what they would cost.
    """
    cells = report.cells
    found: list[str] = []
    found += [f"{counted(number, 'cell')} kept from run {run}" for run, number in report.kept.items()]
    if report.stale:
        found.append(f"{counted(report.stale, 'stale cell')} called again: what is asked has changed")
    if report.after_fault:
        found.append(f"{counted(report.after_fault, 'cell')} measured in another try, after a fault")
    models = [model for of_set in report.sets.values() for model in of_set.models.values()]
    if cells.measured and not models:
        found.append("no table: an offline model is not judged by computed questions, and there are no others")
    failures: Counter[str] = Counter()
    for model in models:
        for encoding in model.encodings.values():
            failures.update(encoding.failures)
    if failures:
        said = figures.kinds(dict(sorted(failures.items())))
        found.append(f"{counted(cells.failed, 'model failure')}, scored 0: {said}")
    if report.faults:
        said = figures.kinds(dict(sorted(Counter(fault.kind for fault in report.faults).items())))
        first = report.faults[0].cell + (", …" if len(report.faults) > 1 else "")
        found.append(f"{counted(cells.faulted, 'cell')} faulted, without a score: {said} ({first})")
    if report.refused and report.mode != "final":  # there it is among the deviations
        found.append(figures.kept_from_starting(report.refused))
    found += [_not_started(refused) for refused in report.refused]
    if report.not_run:
        first = ", ".join(report.not_run[:1]) + (", …" if len(report.not_run) > 1 else "")
        found.append(f"{counted(cells.not_run, 'planned cell')} not run: {first}")
    found += [figures.part(part) for part in report.merged_from]
    if cells.in_other_shards:
        absent = ", ".join(map(str, report.missing_shards))
        here = f"shard {absent} is not here" if report.shard is None else f"this is shard {report.shard}"
        found.append(f"{here}: {counted(cells.in_other_shards, 'planned cell')} in other shards")
    if cells.lacking:
        measured = f"{cells.measured:,} of {cells.planned - cells.skipped:,} cells measured"
        found.append(f"incomplete, so there is no headline: {measured}")
    if report.spent or report.unreported or report.lineage:
        found.append(f"spent in all, at list price: {figures.spent(report)}")
    if report.mode == "final":
        found += [f"deviation: {deviation}" for deviation in report.deviations]
        found.append("publishable" if report.publishable else "not publishable")
    return found


def _not_started(refused: Refused) -> str:
    """Who, which limit, how much of it was used, when there is room again."""
    resets = f", resets {refused.resets}" if refused.resets else ""
    return (
        f"{refused.by}: {counted(len(refused.cells), 'call')} of {refused.vendor} not started: {refused.kind}, "
        f"{figures.used(refused)} used{resets}"
    )


def _hanging(line: str) -> RenderableType:
    """A long line goes on indented, so that each item still stands out."""
    from rich.table import Table
    from rich.text import Text

    head, colon, rest = line.partition(": ")
    if not colon:
        return Text(line)
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row(f"{head}:", Text(rest))
    return table


def _render(parts: list[RenderableType], look: _Look, colour: bool) -> list[str]:
    from rich.console import Console

    stream = io.StringIO()
    console = Console(
        file=stream,
        width=look.width,
        force_terminal=colour,
        no_color=not colour,
        color_system="standard" if colour else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    for part in parts:
        console.print(part)
    return [line.rstrip() for line in stream.getvalue().splitlines()]

"""The summary at the end of a run: a function of the report and the terminal's width that yields lines."""

from __future__ import annotations

import io
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from pytest_cellprose.report import figures
from pytest_cellprose.report.limitations import SET_LABELS
from pytest_cellprose.report.model import ModelReport, Report, SetReport
from pytest_cellprose.run.budget import kept_from_starting

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
        """Before the layout, because signs may get longer."""
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
        label = SET_LABELS[name]
        for alias, model in of_set.models.items():
            if parts:
                parts.append("")
            parts += _model(report, label, of_set, alias, model, look)
    if parts:
        parts.append("")
    parts += [_hanging(look.say(line)) for line in _closing(report)]
    return _render(parts, look, colour)


def _model(
    report: Report, label: str, of_set: SetReport, alias: str, model: ModelReport, look: _Look
) -> list[RenderableType]:
    from rich.padding import Padding
    from rich.text import Text

    size = f"{figures.count(of_set.workbooks, 'workbook')}, {figures.count(of_set.questions, 'question')}"
    repeats = f", {report.repeats} repeats" if report.repeats > 1 else ""
    apart = " (reported apart)" if model.status == "apart" else ""
    parts: list[RenderableType] = [
        Text.assemble((look.say(f"{alias}{apart}"), "bold"), look.say(f" · {label}: {size}{repeats}")),
    ]
    if model.note:
        parts.append(Padding(Text(look.say(model.note), style="italic"), (0, 0, 0, 2)))
    parts.append(Padding(_encodings(model, look), (0, 0, 0, 2)))
    if model.against:
        heading = f"Cost per correct, {report.challenger} over each baseline (95% interval):"
        parts.append(Padding(Text(look.say(heading)), (0, 0, 0, 2)))
        parts.append(Padding(_verdicts(model, look), (0, 0, 0, 4)))
    return parts


def _encodings(model: ModelReport, look: _Look) -> RenderableType:
    from rich import box
    from rich.table import Table

    failing = any(encoding.failures for encoding in model.encodings.values())
    gap = 0 if failing and look.width < 90 else 1
    rule = box.Box(look.say(str(box.SIMPLE_HEAD)), ascii=not look.unicode)
    table = Table(box=rule, show_edge=False, pad_edge=False, padding=(0, gap, 0, 0), header_style="")
    table.add_column("encoding", overflow="fold", min_width=10)
    for heading in ("accuracy", "tokens in", "tokens out", "cost/call", "cost/correct"):
        table.add_column(heading, justify="right", no_wrap=True)
    if failing:
        table.add_column("failed", justify="right", no_wrap=True)
    per_call, per_correct = figures.cost_columns(model)
    for (name, encoding), call, correct in zip(model.encodings.items(), per_call, per_correct, strict=True):
        cells = [
            name,
            figures.percent(encoding.accuracy),
            figures.tokens(encoding.input_tokens),
            figures.tokens(encoding.output_tokens),
            call,
            correct,
        ]
        if failing:
            cells.append(str(sum(encoding.failures.values()) or ""))
        table.add_row(*map(look.say, cells), style="bold" if encoding.role == "challenger" else None)
    return table


def _verdicts(model: ModelReport, look: _Look) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold", min_width=8)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    for name, against in model.against.items():
        word = against.verdict or "no verdict"
        verdict = Text.assemble((word, STYLES.get(word, "")), look.say(f": {against.reason}"))
        ratio, interval = figures.ratio(against.ratio), figures.interval(against.interval)
        table.add_row(look.say(name), look.say(ratio), look.say(interval), verdict)
    return table


def _closing(report: Report) -> list[str]:
    """One line each: failures, faults, what was not run, and whether the run can be published.

    Cells that the mode skips are the plugin's to name: only it knows what they would cost.
    """
    cells = report.cells
    found: list[str] = []
    found += [f"{figures.count(number, 'cell')} kept from run {run}" for run, number in report.kept.items()]
    if report.stale:
        found.append(f"{figures.count(report.stale, 'stale cell')} called again: what is asked has changed")
    if report.after_fault:
        found.append(f"{figures.count(report.after_fault, 'cell')} measured in another try, after a fault")
    failures: Counter[str] = Counter()
    for of_set in report.sets.values():
        for model in of_set.models.values():
            for encoding in model.encodings.values():
                failures.update(encoding.failures)
    if failures:
        said = figures.kinds(dict(sorted(failures.items())))
        found.append(f"{figures.count(cells.failed, 'model failure')}, scored 0: {said}")
    if report.faults:
        said = figures.kinds(dict(sorted(Counter(fault.kind for fault in report.faults).items())))
        first = report.faults[0].cell + (", …" if len(report.faults) > 1 else "")
        found.append(f"{figures.count(cells.faulted, 'cell')} faulted, without a score: {said} ({first})")
    bounded = kept_from_starting(Counter(fault.kind for fault in report.faults))
    if bounded is not None and report.mode != "final":  # there it is among the deviations
        found.append(bounded)
    if report.not_run:
        first = ", ".join(report.not_run[:1]) + (", …" if len(report.not_run) > 1 else "")
        found.append(f"{figures.count(cells.not_run, 'planned cell')} not run: {first}")
    found += [figures.part(part) for part in report.merged_from]
    if cells.in_other_shards:
        absent = ", ".join(map(str, report.missing_shards))
        here = f"shard {absent} is not here" if report.shard is None else f"this is shard {report.shard}"
        found.append(f"{here}: {figures.count(cells.in_other_shards, 'planned cell')} in other shards")
    if not report.complete:
        measured = f"{cells.measured:,} of {cells.planned - cells.skipped:,} cells measured"
        found.append(f"incomplete, so there is no headline: {measured}")
    if report.spent:
        found.append(f"spent in all, at list price: {figures.dollar(report.spent)}")
    if report.mode == "final":
        found += [f"deviation: {deviation}" for deviation in report.deviations]
        found.append("publishable" if report.publishable else "not publishable")
    return found


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

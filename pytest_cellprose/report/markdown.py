"""``report.md``: everything a run found, the verdicts and their limitations first."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pytest_cellprose.record.record import Prices
from pytest_cellprose.report import figures
from pytest_cellprose.report.escape import code, text
from pytest_cellprose.report.groups import Group, groups
from pytest_cellprose.report.limitations import SET_LABELS
from pytest_cellprose.report.markup import bullets, counts, sentence, table
from pytest_cellprose.report.model import Against, ModelReport, Refused, Report, SetReport
from pytest_cellprose.report.model_tables import (
    counted_tables,
    encodings_table,
    frontier_table,
    influence_table,
    kinds_tables,
    paired_table,
    resources_table,
)
from pytest_cellprose.wording import NOTHING, counted


def render(report: Report) -> str:
    """The whole page; GitHub-flavoured Markdown."""
    blocks = [
        f"# Run {report.run}",
        *_facts(report),
        *_headline(report),
        *(block for name, of_set in report.sets.items() for block in _set(report, SET_LABELS[name], of_set)),
        *_cases(report),
        *_failures(report),
        *_scope(report),
        *_models(report),
        *_reproduce(report),
    ]
    return "\n\n".join(blocks) + "\n"


def _facts(report: Report) -> Iterator[str]:
    cells = report.cells
    tree = {True: ", with uncommitted changes", False: ", clean", None: ""}[report.git.dirty]
    nominal = [
        alias
        for alias in dict.fromkeys(alias for of_set in report.sets.values() for alias in of_set.models)
        if any(of_set.models[alias].nominal for of_set in report.sets.values() if alias in of_set.models)
    ]
    unspent = f"; the costs of {', '.join(map(text, nominal))} are nominal and were not spent" if nominal else ""
    yield bullets(
        [
            f"Mode: {report.mode}",
            f"From {report.started} to {report.finished or 'an end that was not recorded'}",
            f"Commit: {report.git.commit or 'not a git repository'}{tree}",
            f"Compared: {code(report.challenger)} against every other {report.axes[0]} but `none`",
            f"Repeats: {report.repeats}",
            f"Cells: {cells.planned:,} planned, {cells.measured:,} measured (of these {cells.failed:,} model "
            f"failures), {cells.faulted:,} faulted, "
            + (f"{cells.refused:,} not let start, " if cells.refused else "")
            + f"{cells.skipped:,} skipped, {cells.not_run:,} not run"
            + (f", {cells.in_other_shards:,} in other shards" if cells.in_other_shards else ""),
            *([f"Shard: {report.shard}"] if report.shard else []),
            *(text(figures.part(part)) for part in report.merged_from),
            *(f"Kept from run {text(run)}: {counted(number, 'cell')}" for run, number in report.kept.items()),
            *([f"Inputs changed: {counted(report.stale, 'cell')} called again"] if report.stale else []),
            *([f"Measured after a fault: {counted(report.after_fault, 'cell')}"] if report.after_fault else []),
            f"Spent in all, at list price: {figures.spent(report)}{unspent}",
            *(f"Calls to {vendor} went to {host}" for vendor, host in report.hosts.items()),
            f"**{'Publishable' if report.publishable else 'Not publishable'}**{_why_not(report)}",
        ]
    )


def _why_not(report: Report) -> str:
    if report.publishable:
        return ""
    return ": see Deviations" if report.deviations else f": a {report.mode} run"


def _headline(report: Report) -> Iterator[str]:
    """Per set: who wins, model by model. Models reported apart or not for publication have tables of their own."""
    yield "## Verdicts"
    cells = report.cells
    compared = [
        (name, alias, model)
        for name, of_set in report.sets.items()
        for alias, model in of_set.models.items()
        if figures.measured(model)
    ]
    if cells.lacking:
        yield (
            f"There is no headline, because the run is incomplete: {cells.lacking:,} of "
            f"{cells.planned - cells.skipped:,} cells were not measured. The comparisons under each model below are "
            "over the workbooks that both sides completed; only those that lack nothing have a verdict."
        )
    elif not compared:
        yield f"Nothing was compared: no model was asked in {code(report.challenger)} and in another encoding."
    else:
        yield (
            f"Cost per correct answer of {code(report.challenger)} over each baseline, with the 95 % interval of a "
            "paired bootstrap over workbooks. A win: the whole interval is below 1, and accuracy is at most one "
            "point below csv. A loss: the whole interval is above 1. A side that has nothing right loses, whatever "
            "the interval. Models are not compared with each other."
        )
        if len(report.sets) > 1:
            yield "The headline is the held-out set's: format, prompt and runner may have been tuned on the other."
        for name in report.sets:
            plain = {alias: model for of, alias, model in compared if of == name and not model.note}
            if plain:
                yield f"### {sentence(SET_LABELS[name])}"
                yield _verdict_table(plain)
            for of, alias, model in compared:
                if of == name and model.note:
                    yield f"### {sentence(SET_LABELS[name])}, {text(alias)}"
                    yield f"*{text(model.note)}*"
                    yield _verdict_table({alias: model})
    yield "### Limitations"
    yield bullets(map(text, report.limitations))


def _verdict_table(models: dict[str, ModelReport]) -> str:
    rows = [
        [text(alias), *_against_cells(name, against)]
        for alias, model in models.items()
        for name, against in figures.measured(model).items()
    ]
    return table(["model", *_AGAINST], rows, right=("ratio",))


_AGAINST = ["baseline", "role", "ratio", "interval", "accuracy, points", "verdict", "reason"]


def _against_cells(name: str, against: Against) -> list[str]:
    difference = figures.points(against.accuracy_difference)
    if against.accuracy_interval:
        difference += f" {figures.points_interval(against.accuracy_interval)}"
    return [
        code(name),
        against.role,
        figures.ratio(against.ratio),
        figures.interval(against.interval),
        difference,
        f"**{against.verdict}**" if against.verdict else NOTHING,
        against.reason,
    ]


def _set(report: Report, label: str, of_set: SetReport) -> Iterator[str]:
    yield f"## {sentence(label)}: the numbers"
    yield f"{figures.size(report, of_set)}, {counted(report.repeats, 'repeat')}."
    if not of_set.models:
        yield (
            "No cell of this set was called, or none that counts: an offline model is not judged by computed questions."
        )
    for group in groups(of_set, report.axes[0]):
        yield f"### {text(group.title)} ({label}{', reported apart' if group.apart else ''})"
        for alias, model in group.models.items():
            if (said := figures.compared_on(model)) is not None:
                whose = "" if group.by_model else f"{text(alias)} is "
                yield f"{whose}{text(said)}." if whose else f"{sentence(text(said))}."
        for title, made in _tables(report, group):
            notes = "".join(f"*{text(note)}*\n\n" for note in group.notes)
            yield f"**{title}**\n\n{notes}{made}"


def _tables(report: Report, group: Group) -> Iterator[tuple[str, str]]:
    yield "Accuracy, tokens and cost, mean per call", encodings_table(group)
    for model in group.models.values():
        compared = figures.measured(model)
        if compared:
            cost = "Nominal cost" if model.nominal else "Cost"
            rows = [_against_cells(name, against) for name, against in compared.items()]
            title = f"{cost} per correct, {code(report.challenger)} over each baseline"
            yield title, table(_AGAINST, rows, right=("ratio",))
            yield "What hangs on one workbook", influence_table(compared)
    yield from kinds_tables(group)
    yield from counted_tables(group)
    yield "Frontier", frontier_table(group)
    yield "Resources", resources_table(group)
    for model in group.models.values():
        if model.paired.rows:
            yield "Paired comparisons", paired_table(model)


def _cases(report: Report) -> Iterator[str]:
    """Which questions were asked. Of those that were not, the reasons only: no truth is in a report."""
    rows = []
    for name in report.sets:
        of_set = [workbook for workbook in report.workbooks if workbook.set == name]
        asked = sum(workbook.questions for workbook in of_set)
        left_out = [reasons for workbook in of_set for reasons in workbook.uncertified.values()]
        counts = Counter(reason for reasons in left_out for reason in reasons)
        why = text(", ".join(f"{reason} ({number})" for reason, number in sorted(counts.items())))
        rows.append([SET_LABELS[name], f"{asked:,} of {asked + len(left_out):,}", why or NOTHING])
    yield "## Cases"
    yield (
        "Questions whose recorded truth is what the workbook says and what the scorer grades as right. The others "
        "were not asked; one may have several reasons."
    )
    yield table(["set", "certified", "left out"], rows, right=("certified",))
    listed = [
        f"{code(workbook.name)} {text(name)}: {text(', '.join(reasons))}"
        for workbook in report.workbooks
        for name, reasons in workbook.uncertified.items()
    ]
    if listed:
        yield bullets(listed)


def _failures(report: Report) -> Iterator[str]:
    rows = [
        [text(alias), code(encoding), label, counts(row.failures) or "0", counts(row.faults) or "0"]
        for label, of_set in ((SET_LABELS[name], of_set) for name, of_set in report.sets.items())
        for alias, model in of_set.models.items()
        for encoding, row in model.encodings.items()
        if row.failures or row.faults
    ]
    yield "## Failures and faults"
    if rows:
        yield table(["model", report.axes[0], "set", "failures (score 0)", "faults (no score)"], rows)
    else:
        yield "None."
    if report.faults:
        yield "Cells without a score:"
        yield bullets(
            f"{code(fault.cell)}: {text(fault.kind)}{f' ({text(fault.detail)})' if fault.detail else ''}"
            for fault in report.faults
        )
    if report.refused:
        yield "### Refused"
        yield "Calls that were not let start. Nothing was sent; a resumed run makes them."
        yield _refused(report.refused)


def _refused(refused: Iterable[Refused]) -> str:
    heads = ["by", "kind", "vendor", "calls", "used", "resets", "said of the last one"]
    rows = [
        [
            text(each.by),
            code(each.kind),
            text(each.vendor),
            f"{len(each.cells):,}",
            text(figures.used(each)),
            text(each.resets) if each.resets else NOTHING,
            text(each.detail or NOTHING),
        ]
        for each in refused
    ]
    return table(heads, rows, right=("calls",))


def _scope(report: Report) -> Iterator[str]:
    yield "## Deviations"
    yield bullets(map(text, report.deviations)) or "None."
    notes = [
        *(
            f"{text(out.model)} with {code(out.encoding)} is not in the plan: {text(out.reason)}"
            for out in report.planned_out
        ),
        *(text(f"{facts.entry.alias} was skipped: {facts.skipped}") for facts in report.models if facts.skipped),
    ]
    if report.not_here:
        notes.append(f"Workbooks not here: {text(', '.join(report.not_here))}")
    if report.not_run:
        notes.append(f"Not run: {', '.join(map(code, report.not_run))}")
    if notes:
        yield "## Left out"
        yield bullets(notes)


def _models(report: Report) -> Iterator[str]:
    rows = []
    for facts in report.models:
        rows.append(
            [
                text(facts.entry.alias),
                code(facts.entry.model_id),
                ", ".join(map(code, facts.returned)) or NOTHING,
                text(facts.entry.vendor),
                " then ".join(map(_price, facts.prices)) or NOTHING,
                facts.entry.prices_checked or NOTHING,
                text(_values(facts.settings)) or NOTHING,
                text(facts.entry.note or ""),
            ]
        )
    yield "## Models and prices"
    yield table(
        ["alias", "model id", "returned", "vendor", "$ per million in / out", "checked", "settings", "note"], rows
    )


def _price(prices: Prices) -> str:
    text = f"${prices.input} / ${prices.output}"
    if prices.above is not None:
        text += f"; prompts above {prices.above:,} tokens ${prices.input_above} / ${prices.output_above}"
    return f"{text} (nominal)" if prices.nominal else text


def _reproduce(report: Report) -> Iterator[str]:
    yield "## How to reproduce"
    commit = report.git.commit
    steps = [
        f"Check out commit `{commit}`." if commit else "The run was not made from a git repository.",
        *map(_command, [part.invocation for part in report.merged_from] or [report.invocation]),
        f"The inputs' digests are in `runs/{report.run}.json`; this page is made from it and the records by "
        f"`python -m pytest_cellprose report {report.run}`.",
        f"`python -m pytest_cellprose sets check --run {report.run}` says whether files, texts, code and "
        "commit are the run's.",
    ]
    yield bullets(steps)
    encodings = [f"{code(name)} {text(version)}" for name, version in report.encoding_versions.items()]
    frozen = {} if report.method is None else report.method.model_dump()
    yield bullets(
        [
            *([f"Experiment: `{report.experiment}`"] if report.experiment else []),
            *(f"SHA-256 of the {name}: `{digest}`" for name, digest in frozen.items() if digest),
            f"Versions: {text(_values(report.versions))}",
            f"Encodings: {', '.join(encodings)}",
        ]
    )
    settings = {key: _values(value) for key, value in report.settings.items()}
    if any(settings.values()):
        yield "Settings other than the defaults, and how costs were estimated:"
        yield bullets(text(f"{key.replace('_', ' ')}: {said}") for key, said in settings.items() if said)


def _values(value: Any) -> str:
    """A setting for a reader; empty if it was not set."""
    if isinstance(value, Mapping):
        said = {key: _values(item) for key, item in value.items()}
        return ", ".join(f"{key} {item}" for key, item in said.items() if item)
    if isinstance(value, list):
        return ", ".join(filter(None, map(_values, value)))
    return "" if value is None or value is False else "yes" if value is True else str(value)


def _command(invocation: Sequence[str]) -> str:
    """`invocation`: what followed ``pytest``."""
    return f"Run {code(shlex.join(['pytest', *invocation]))}."

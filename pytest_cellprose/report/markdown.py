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
from pytest_cellprose.report.model import Against, ModelReport, Refused, Report, SetReport
from pytest_cellprose.wording import NOTHING, counted, dollar


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
    yield _list(
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
                yield f"### {_sentence(SET_LABELS[name])}"
                yield _verdict_table(plain)
            for of, alias, model in compared:
                if of == name and model.note:
                    yield f"### {_sentence(SET_LABELS[name])}, {text(alias)}"
                    yield f"*{text(model.note)}*"
                    yield _verdict_table({alias: model})
    yield "### Limitations"
    yield _list(map(text, report.limitations))


def _verdict_table(models: dict[str, ModelReport]) -> str:
    rows = [
        [text(alias), *_against_cells(name, against)]
        for alias, model in models.items()
        for name, against in figures.measured(model).items()
    ]
    return _table(["model", *_AGAINST], rows, right=("ratio",))


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
    yield f"## {_sentence(label)}: the numbers"
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
                yield f"{whose}{text(said)}." if whose else f"{_sentence(text(said))}."
        for title, table in _tables(report, group):
            notes = "".join(f"*{text(note)}*\n\n" for note in group.notes)
            yield f"**{title}**\n\n{notes}{table}"


def _tables(report: Report, group: Group) -> Iterator[tuple[str, str]]:
    yield "Accuracy, tokens and cost, mean per call", _encodings(group)
    for model in group.models.values():
        compared = figures.measured(model)
        if compared:
            cost = "Nominal cost" if model.nominal else "Cost"
            rows = [_against_cells(name, against) for name, against in compared.items()]
            title = f"{cost} per correct, {code(report.challenger)} over each baseline"
            yield title, _table(_AGAINST, rows, right=("ratio",))
            yield "What hangs on one workbook", _influence(compared)
    yield from _kinds(group)
    yield from _counted(group)
    yield "Frontier", _frontier(group)
    yield "Resources", _resources(group)
    for model in group.models.values():
        if model.paired.rows:
            yield "Paired comparisons", _paired(model)


def _influence(compared: Mapping[str, Against]) -> str:
    heads = ["baseline", "ratio", "lowest", "highest", "farthest without", "then", "long prompts", "of the baseline"]
    rows = []
    for name, against in compared.items():
        one, crossed = against.without_one, against.long_prompts
        moved = [NOTHING] * 4
        if one is not None:
            moved = [
                figures.ratio(one.lowest),
                figures.ratio(one.highest),
                code(one.workbook),
                figures.ratio(one.ratio),
            ]
        rows.append(
            [code(name), figures.ratio(against.ratio), *moved, f"{crossed.challenger:,}", f"{crossed.baseline:,}"]
        )
    return _table(heads, rows, right=("ratio", "lowest", "highest", "then", "long prompts", "of the baseline")) + (
        "\n\nLowest and highest ratio when each workbook is left out in turn, and the workbook whose absence moves it "
        "most. *Long prompts* are priced at the rates of a higher tier: the challenger's, and the baseline's."
    )


def _encodings(group: Group) -> str:
    heads = [
        group.head,
        "accuracy",
        "by question",
        "input tokens",
        "output tokens",
        *_nominal(group, "cost per call", "cost per correct"),
        "calls",
        "failed",
        "faulted",
    ]
    rows = []
    for (name, row), call, correct in zip(group.rows.items(), *figures.cost_columns(group.rows.values()), strict=True):
        rows.append(
            [
                code(name),
                figures.percent(row.accuracy),
                figures.percent(row.accuracy_by_question),
                figures.tokens(row.input_tokens),
                figures.tokens(row.output_tokens),
                call,
                correct,
                f"{row.calls} of {row.planned}",
                _counts(row.failures) or "0",
                _counts(row.faults) or "0",
            ]
        )
    return (
        _table(heads, rows, right=("rest",))
        + "\n\nAccuracy is the mean over workbooks, the unit that is resampled; *by question* weighs every "
        "question alike."
    )


def _nominal(group: Group, *heads: str) -> list[str]:
    """Headings of costs."""
    return [f"nominal {head}" if group.nominal else head for head in heads]


def _counts(kinds: dict[str, int]) -> str:
    return text(figures.kinds(kinds))


def _kinds(group: Group) -> Iterator[tuple[str, str]]:
    kinds = sorted({kind for row in group.rows.values() for kind in row.by_kind})
    if not kinds:
        return
    rows = []
    for name, row in group.rows.items():
        cells = [code(name)]
        for kind in kinds:
            score = row.by_kind.get(kind)
            cells.append(f"{figures.percent(score.accuracy)} of {score.questions:,}" if score else NOTHING)
        rows.append([*cells, _counts(row.failures) or NOTHING])
    table = _table([group.head, *map(text, kinds), "failed calls"], rows, right=("rest",))
    yield "Where answers fail", table + "\n\nAccuracy on the questions of each kind, every question alike."


def _counted(group: Group) -> Iterator[tuple[str, str]]:
    rows = [
        [
            code(name),
            text(counted.counter),
            figures.tokens(counted.tokens),
            figures.ratio(counted.over_csv),
            figures.tokens(row.input_tokens),
        ]
        for name, row in group.rows.items()
        for counted in row.counted
    ]
    if rows:
        heads = [group.head, "tokenizer", "tokens of the prompt", "over csv", "input tokens billed"]
        yield "Tokenizer counts", _table(heads, rows, right=("rest",))


def _frontier(group: Group) -> str:
    heads = [
        group.head,
        "calls",
        "passes",
        "95% (Jeffreys)",
        *_nominal(group, "cost per call", "cost per pass"),
        "tokens per call",
        "median time",
    ]
    found = [(name, row.frontier, row.resources) for name, row in group.rows.items()]
    rows = [
        [
            code(name),
            str(frontier.calls),
            f"{frontier.passes} ({figures.percent(frontier.passes / frontier.calls)})",
            figures.percent_interval(frontier.pass_interval),
            dollar(frontier.cost_per_call),
            dollar(frontier.cost_per_pass),
            figures.tokens(frontier.tokens_per_call),
            figures.seconds(resources.median_seconds),
        ]
        for name, frontier, resources in found
        if frontier and resources
    ]
    return _table(heads, rows, right=("rest",)) + (
        "\n\nA pass is a call with every question right. Calls are counted, not workbooks: repeats of a workbook "
        "are not independent, so with repeats the interval is too narrow."
    )


def _resources(group: Group) -> str:
    heads = [
        group.head,
        "input per call",
        "output per call",
        "cached",
        "median time",
        "p90",
        "summed",
        *_nominal(group, "cost", "cost as billed"),
    ]
    rows = [
        [
            code(name),
            figures.tokens(used.input_per_call),
            figures.tokens(used.output_per_call),
            figures.percent(used.cached_share),
            figures.seconds(used.median_seconds),
            figures.seconds(used.p90_seconds),
            figures.seconds(used.summed_seconds),
            dollar(used.cost),
            dollar(used.cost_as_billed),
        ]
        for name, row in group.rows.items()
        if (used := row.resources)
    ]
    return _table(heads, rows, right=("rest",)) + (
        "\n\nInput includes cached tokens, and the cost prices them as uncached; *as billed* prices them at the "
        "cache rate and is in no verdict."
    )


def _paired(model: ModelReport) -> str:
    heads = ["A", "B", "workbooks", "both passed", "A only", "B only", "both failed", "tied", "p", "p (Holm)", ""]
    rows = [
        [
            code(row.a),
            code(row.b),
            str(row.workbooks),
            str(row.both_passed),
            str(row.a_only),
            str(row.b_only),
            str(row.both_failed),
            str(row.tied),
            figures.p_value(row.p),
            figures.p_value(row.p_holm),
            text(row.finding),
        ]
        for row in model.paired.rows
    ]
    left_out = max((row.left_out for row in model.paired.rows), default=0)
    note = text(model.paired.note)
    if left_out:
        note += f" Up to {counted(left_out, 'workbook')} per pair left out for want of a score."
    return f"{_table(heads, rows)}\n\n{note}"


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
    yield _table(["set", "certified", "left out"], rows, right=("certified",))
    listed = [
        f"{code(workbook.name)} {text(name)}: {text(', '.join(reasons))}"
        for workbook in report.workbooks
        for name, reasons in workbook.uncertified.items()
    ]
    if listed:
        yield _list(listed)


def _failures(report: Report) -> Iterator[str]:
    rows = [
        [text(alias), code(encoding), label, _counts(row.failures) or "0", _counts(row.faults) or "0"]
        for label, of_set in ((SET_LABELS[name], of_set) for name, of_set in report.sets.items())
        for alias, model in of_set.models.items()
        for encoding, row in model.encodings.items()
        if row.failures or row.faults
    ]
    yield "## Failures and faults"
    if rows:
        yield _table(["model", report.axes[0], "set", "failures (score 0)", "faults (no score)"], rows)
    else:
        yield "None."
    if report.faults:
        yield "Cells without a score:"
        yield _list(
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
    return _table(heads, rows, right=("calls",))


def _scope(report: Report) -> Iterator[str]:
    yield "## Deviations"
    yield _list(map(text, report.deviations)) or "None."
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
        yield _list(notes)


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
    yield _table(
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
    yield _list(steps)
    encodings = [f"{code(name)} {text(version)}" for name, version in report.encoding_versions.items()]
    frozen = {} if report.method is None else report.method.model_dump()
    yield _list(
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
        yield _list(text(f"{key.replace('_', ' ')}: {said}") for key, said in settings.items() if said)


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


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> str:
    """`right`: the headings of columns to align right, or ``rest`` for all but the first."""
    rule = ["---:" if head in right or ("rest" in right and i) else "---" for i, head in enumerate(heads)]
    return "\n".join(f"| {' | '.join(map(_cell, row))} |" for row in (heads, rule, *rows))


def _cell(shown: str) -> str:
    return shown.replace("|", "\\|").replace("\n", " ")


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _sentence(words: str) -> str:
    return words[0].upper() + words[1:]

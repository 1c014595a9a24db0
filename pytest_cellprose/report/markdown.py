"""``report.md``: everything a run found, the verdicts and their limitations first."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from pytest_cellprose.record import Prices
from pytest_cellprose.report import figures
from pytest_cellprose.report.limitations import SET_LABELS
from pytest_cellprose.report.model import Against, ModelReport, Report, SetReport


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
    yield _list(
        [
            f"Mode: {report.mode}",
            f"From {report.started} to {report.finished or 'an end that was not recorded'}",
            f"Commit: {report.git.commit or 'not a git repository'}{tree}",
            f"Compared: `{report.challenger}` against every other encoding but `none`",
            f"Repeats: {report.repeats}",
            f"Cells: {cells.planned:,} planned, {cells.measured:,} measured (of these {cells.failed:,} model "
            f"failures), {cells.faulted:,} faulted, {cells.skipped:,} skipped, {cells.not_run:,} not run"
            + (f", {cells.in_other_shards:,} in other shards" if cells.in_other_shards else ""),
            *([f"Shard: {report.shard}"] if report.shard else []),
            *map(figures.part, report.merged_from),
            *(f"Kept from run {run}: {figures.count(number, 'cell')}" for run, number in report.kept.items()),
            *([f"Inputs changed: {figures.count(report.stale, 'cell')} called again"] if report.stale else []),
            *([f"Measured after a fault: {figures.count(report.after_fault, 'cell')}"] if report.after_fault else []),
            f"Spent in all, at list price: {figures.dollar(report.spent)}",
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
    if not report.complete:
        cells = report.cells
        yield (
            f"There is no headline, because the run is incomplete: {cells.missing + cells.in_other_shards:,} of "
            f"{cells.planned - cells.skipped:,} cells were not measured. The comparisons under each model "
            "below are over the workbooks that both sides completed."
        )
    else:
        yield (
            f"Cost per correct answer of `{report.challenger}` over each baseline, with the 95 % interval of a "
            "paired bootstrap over workbooks. A win: the whole interval is below 1, and accuracy is at most one "
            "point below csv. A loss: the whole interval is above 1. Models are not compared with each other."
        )
        if len(report.sets) > 1:
            yield "The headline is the held-out set's: format, prompt and runner may have been tuned on the other."
        for name, of_set in report.sets.items():
            compared = {alias: model for alias, model in of_set.models.items() if model.against}
            plain = {alias: model for alias, model in compared.items() if not model.note}
            if plain:
                yield f"### {_sentence(SET_LABELS[name])}"
                yield _verdict_table(plain)
            for alias, model in compared.items():
                if model.note:
                    yield f"### {_sentence(SET_LABELS[name])}, {alias}"
                    yield f"*{model.note}*"
                    yield _verdict_table({alias: model})
    yield "### Limitations"
    yield _list(report.limitations)


def _verdict_table(models: dict[str, ModelReport]) -> str:
    rows = [
        [alias, *_against_cells(name, against)]
        for alias, model in models.items()
        for name, against in model.against.items()
    ]
    return _table(["model", *_AGAINST], rows, right=("ratio",))


_AGAINST = ["baseline", "role", "ratio", "interval", "accuracy, points", "verdict", "reason"]


def _against_cells(name: str, against: Against) -> list[str]:
    difference = figures.points(against.accuracy_difference)
    if against.accuracy_interval:
        difference += f" {figures.points_interval(against.accuracy_interval)}"
    return [
        f"`{name}`",
        against.role,
        figures.ratio(against.ratio),
        figures.interval(against.interval),
        difference,
        f"**{against.verdict}**" if against.verdict else figures.NOTHING,
        against.reason,
    ]


def _set(report: Report, label: str, of_set: SetReport) -> Iterator[str]:
    yield f"## {_sentence(label)}: the numbers"
    yield (
        f"{figures.count(of_set.workbooks, 'workbook')}, {figures.count(of_set.questions, 'question')}, "
        f"{figures.count(report.repeats, 'repeat')}."
    )
    if not of_set.models:
        yield "No cell of this set was called."
    for alias, model in of_set.models.items():
        yield f"### {alias} ({label}{', reported apart' if model.status == 'apart' else ''})"
        for title, text in _tables(report, model):
            note = f"*{model.note}*\n\n" if model.note else ""
            yield f"**{title}**\n\n{note}{text}"


def _tables(report: Report, model: ModelReport) -> Iterator[tuple[str, str]]:
    yield "Accuracy, tokens and cost, mean per call", _encodings(model)
    if model.against:
        rows = [_against_cells(name, against) for name, against in model.against.items()]
        yield f"Cost per correct, `{report.challenger}` over each baseline", _table(_AGAINST, rows, right=("ratio",))
    yield from _kinds(model)
    yield from _counted(model)
    yield "Frontier", _frontier(model)
    yield "Resources", _resources(model)
    if model.paired.rows:
        yield "Paired comparisons", _paired(model)


def _encodings(model: ModelReport) -> str:
    heads = [
        "encoding",
        "accuracy",
        "by question",
        "input tokens",
        "output tokens",
        "cost per call",
        "cost per correct",
        "calls",
        "failed",
        "faulted",
    ]
    rows = []
    for (name, row), call, correct in zip(model.encodings.items(), *figures.cost_columns(model), strict=True):
        rows.append(
            [
                f"`{name}`",
                figures.percent(row.accuracy),
                figures.percent(row.accuracy_by_question),
                figures.tokens(row.input_tokens),
                figures.tokens(row.output_tokens),
                call,
                correct,
                f"{row.calls} of {row.planned}",
                figures.kinds(row.failures) or "0",
                figures.kinds(row.faults) or "0",
            ]
        )
    return (
        _table(heads, rows, right=("rest",))
        + "\n\nAccuracy is the mean over workbooks, the unit that is resampled; *by question* weighs every "
        "question alike."
    )


def _kinds(model: ModelReport) -> Iterator[tuple[str, str]]:
    kinds = sorted({kind for row in model.encodings.values() for kind in row.by_kind})
    if not kinds:
        return
    rows = []
    for name, row in model.encodings.items():
        cells = [f"`{name}`"]
        for kind in kinds:
            score = row.by_kind.get(kind)
            cells.append(f"{figures.percent(score.accuracy)} of {score.questions:,}" if score else figures.NOTHING)
        rows.append([*cells, figures.kinds(row.failures) or figures.NOTHING])
    text = _table(["encoding", *kinds, "failed calls"], rows, right=("rest",))
    yield "Where answers fail", text + "\n\nMean score of the questions of each kind, over all calls."


def _counted(model: ModelReport) -> Iterator[tuple[str, str]]:
    rows = [
        [
            f"`{name}`",
            counted.counter,
            figures.tokens(counted.tokens),
            figures.ratio(counted.over_csv),
            figures.tokens(row.input_tokens),
        ]
        for name, row in model.encodings.items()
        for counted in row.counted
    ]
    if rows:
        heads = ["encoding", "tokenizer", "tokens of the prompt", "over csv", "input tokens billed"]
        yield "Tokenizer counts", _table(heads, rows, right=("rest",))


def _frontier(model: ModelReport) -> str:
    heads = [
        "encoding",
        "attempts",
        "passes",
        "95% (Jeffreys)",
        "mean score",
        "cost per attempt",
        "cost per pass",
        "tokens per attempt",
        "median time",
    ]
    found = [(name, row.frontier, row.resources) for name, row in model.encodings.items()]
    rows = [
        [
            f"`{name}`",
            str(frontier.attempts),
            f"{frontier.passes} ({figures.percent(frontier.passes / frontier.attempts)})",
            figures.percent_interval(frontier.pass_interval),
            f"{frontier.mean_score:.3f}",
            figures.dollar(frontier.cost_per_attempt),
            figures.dollar(frontier.cost_per_pass),
            figures.tokens(frontier.tokens_per_attempt),
            figures.seconds(resources.median_seconds),
        ]
        for name, frontier, resources in found
        if frontier and resources
    ]
    return _table(heads, rows, right=("rest",)) + (
        "\n\nA pass is a call with every question right. n counts attempts, not workbooks: repeats of a workbook "
        "are not independent, so with repeats the interval is too narrow."
    )


def _resources(model: ModelReport) -> str:
    heads = [
        "encoding",
        "input per attempt",
        "output per attempt",
        "cached",
        "median time",
        "p90",
        "summed",
        "wall clock",
        "cost",
        "as billed",
    ]
    rows = [
        [
            f"`{name}`",
            figures.tokens(used.input_per_attempt),
            figures.tokens(used.output_per_attempt),
            figures.percent(used.cached_share),
            figures.seconds(used.median_seconds),
            figures.seconds(used.p90_seconds),
            figures.seconds(used.summed_seconds),
            figures.seconds(used.wall_seconds),
            figures.dollar(used.cost),
            figures.dollar(used.cost_as_billed),
        ]
        for name, row in model.encodings.items()
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
            f"`{row.a}`",
            f"`{row.b}`",
            str(row.workbooks),
            str(row.both_passed),
            str(row.a_only),
            str(row.b_only),
            str(row.both_failed),
            str(row.tied),
            figures.p_value(row.p),
            figures.p_value(row.p_holm),
            row.finding,
        ]
        for row in model.paired.rows
    ]
    left_out = max((row.left_out for row in model.paired.rows), default=0)
    note = model.paired.note
    if left_out:
        note += f" Up to {figures.count(left_out, 'workbook')} per pair left out for want of a score."
    return f"{_table(heads, rows)}\n\n{note}"


def _cases(report: Report) -> Iterator[str]:
    """Which questions were asked. Of those that were not, the reasons only: no truth is in a report."""
    rows = []
    for name in report.sets:
        of_set = [workbook for workbook in report.workbooks if workbook.set == name]
        asked = sum(workbook.questions for workbook in of_set)
        left_out = [reasons for workbook in of_set for reasons in workbook.uncertified.values()]
        counts = Counter(reason for reasons in left_out for reason in reasons)
        why = ", ".join(f"{reason} ({number})" for reason, number in sorted(counts.items()))
        rows.append([SET_LABELS[name], f"{asked:,} of {asked + len(left_out):,}", why or figures.NOTHING])
    yield "## Cases"
    yield (
        "Questions whose recorded truth is what the workbook says and what the scorer grades as right. The others "
        "were not asked; one may have several reasons."
    )
    yield _table(["set", "certified", "left out"], rows, right=("certified",))
    listed = [
        f"`{workbook.name}` {name}: {', '.join(reasons)}"
        for workbook in report.workbooks
        for name, reasons in workbook.uncertified.items()
    ]
    if listed:
        yield _list(listed)


def _failures(report: Report) -> Iterator[str]:
    rows = [
        [alias, f"`{encoding}`", label, figures.kinds(row.failures) or "0", figures.kinds(row.faults) or "0"]
        for label, of_set in ((SET_LABELS[name], of_set) for name, of_set in report.sets.items())
        for alias, model in of_set.models.items()
        for encoding, row in model.encodings.items()
        if row.failures or row.faults
    ]
    yield "## Failures and faults"
    if rows:
        yield _table(["model", "encoding", "set", "failures (score 0)", "faults (no score)"], rows)
    else:
        yield "None."
    if report.faults:
        yield "Cells without a score:"
        yield _list(
            f"`{fault.cell}`: {fault.kind}{f' ({fault.detail})' if fault.detail else ''}" for fault in report.faults
        )


def _scope(report: Report) -> Iterator[str]:
    yield "## Deviations"
    yield _list(report.deviations) or "None."
    notes = [
        *(f"{out.model} with `{out.encoding}` is not in the plan: {out.reason}" for out in report.planned_out),
        *(f"{facts.entry.alias} was skipped: {facts.skipped}" for facts in report.models if facts.skipped),
    ]
    if report.not_here:
        notes.append(f"Workbooks not here: {', '.join(report.not_here)}")
    if report.not_run:
        notes.append(f"Not run: {', '.join(f'`{cell}`' for cell in report.not_run)}")
    if notes:
        yield "## Left out"
        yield _list(notes)


def _models(report: Report) -> Iterator[str]:
    rows = []
    for facts in report.models:
        rows.append(
            [
                facts.entry.alias,
                f"`{facts.entry.model_id}`",
                ", ".join(f"`{name}`" for name in facts.returned) or figures.NOTHING,
                facts.entry.vendor,
                " then ".join(map(_price, facts.prices)) or figures.NOTHING,
                facts.entry.prices_checked or figures.NOTHING,
                ", ".join(f"{key} {value}" for key, value in facts.settings.items()) or figures.NOTHING,
                facts.entry.note or "",
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
    versions = [f"{name} {version}" for name, version in report.versions.items()]
    encodings = [f"`{name}` {version}" for name, version in report.encoding_versions.items()]
    frozen = {} if report.method is None else report.method.model_dump()
    yield _list(
        [
            *([f"Experiment: `{report.experiment}`"] if report.experiment else []),
            *(f"SHA-256 of the {name}: `{digest}`" for name, digest in frozen.items() if digest),
            f"Versions: {', '.join(versions)}",
            f"Encodings: {', '.join(encodings)}",
        ]
    )
    if report.settings:
        yield _list(f"{key}: {value}" for key, value in report.settings.items())


def _command(invocation: Sequence[str]) -> str:
    return f"Run `{shlex.join(invocation)}`." if invocation else "The command line was not recorded."


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> str:
    """`right`: the headings of columns to align right, or ``rest`` for all but the first."""
    rule = ["---:" if head in right or ("rest" in right and i) else "---" for i, head in enumerate(heads)]
    return "\n".join(f"| {' | '.join(map(_cell, row))} |" for row in (heads, rule, *rows))


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]

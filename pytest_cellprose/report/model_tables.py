"""The tables of one model on one set, in Markdown: what each encoding came to, and where it came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pytest_cellprose.report import figures
from pytest_cellprose.report.escape import code, text
from pytest_cellprose.report.groups import Group
from pytest_cellprose.report.markup import counts, table
from pytest_cellprose.report.model import Against, ModelReport
from pytest_cellprose.wording import NOTHING, counted, dollar


def influence_table(compared: Mapping[str, Against]) -> str:
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
    return table(heads, rows, right=("ratio", "lowest", "highest", "then", "long prompts", "of the baseline")) + (
        "\n\nLowest and highest ratio when each workbook is left out in turn, and the workbook whose absence moves it "
        "most. *Long prompts* are priced at the rates of a higher tier: the challenger's, and the baseline's."
    )


def encodings_table(group: Group) -> str:
    heads = [
        group.head,
        "accuracy",
        "by question",
        "input tokens",
        "output tokens",
        *nominal_heads(group, "cost per call", "cost per correct"),
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
                counts(row.failures) or "0",
                counts(row.faults) or "0",
            ]
        )
    return (
        table(heads, rows, right=("rest",))
        + "\n\nAccuracy is the mean over workbooks, the unit that is resampled; *by question* weighs every "
        "question alike."
    )


def nominal_heads(group: Group, *heads: str) -> list[str]:
    """Headings of costs."""
    return [f"nominal {head}" if group.nominal else head for head in heads]


def kinds_tables(group: Group) -> Iterator[tuple[str, str]]:
    kinds = sorted({kind for row in group.rows.values() for kind in row.by_kind})
    if not kinds:
        return
    rows = []
    for name, row in group.rows.items():
        cells = [code(name)]
        for kind in kinds:
            score = row.by_kind.get(kind)
            cells.append(f"{figures.percent(score.accuracy)} of {score.questions:,}" if score else NOTHING)
        rows.append([*cells, counts(row.failures) or NOTHING])
    shown = table([group.head, *map(text, kinds), "failed calls"], rows, right=("rest",))
    yield "Where answers fail", shown + "\n\nAccuracy on the questions of each kind, every question alike."


def counted_tables(group: Group) -> Iterator[tuple[str, str]]:
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
        yield "Tokenizer counts", table(heads, rows, right=("rest",))


def frontier_table(group: Group) -> str:
    heads = [
        group.head,
        "calls",
        "passes",
        "95% (Jeffreys)",
        *nominal_heads(group, "cost per call", "cost per pass"),
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
    return table(heads, rows, right=("rest",)) + (
        "\n\nA pass is a call with every question right. Calls are counted, not workbooks: repeats of a workbook "
        "are not independent, so with repeats the interval is too narrow."
    )


def resources_table(group: Group) -> str:
    heads = [
        group.head,
        "input per call",
        "output per call",
        "cached",
        "median time",
        "p90",
        "summed",
        *nominal_heads(group, "cost", "cost as billed"),
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
    return table(heads, rows, right=("rest",)) + (
        "\n\nInput includes cached tokens, and the cost prices them as uncached; *as billed* prices them at the "
        "cache rate and is in no verdict."
    )


def paired_table(model: ModelReport) -> str:
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
    return f"{table(heads, rows)}\n\n{note}"

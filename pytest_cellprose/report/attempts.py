"""What one encoding's measured calls add up to: frontier, resources, question kinds, means per workbook."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean, median

from pytest_cellprose.report.attempt import Attempt
from pytest_cellprose.report.model import Counted, Frontier, KindScore, Resources
from pytest_cellprose.stats import WorkbookMean, jeffreys

NANO = 1_000_000_000


def passed(record: Attempt) -> bool:
    """Every question right."""
    return record.accuracy is not None and record.accuracy >= 1.0


def accuracy(record: Attempt) -> float:
    return record.accuracy or 0.0


def cost(record: Attempt) -> int | None:
    """Nano-dollars. A failure without a reply that could report tokens cost nothing that is known (protocol section
    5.6); a reply without usage has an unknown cost, which must not count as cheap."""
    if record.cost_nanousd is None and record.status == "failure":
        return 0 if record.usage_problem is None or record.kind in _MAYBE_FREE else None
    return record.cost_nanousd


_MAYBE_FREE = frozenset({"api_error", "context_exceeded"})
"""Failures whose calls a vendor may well not bill: what there is of a reply tells usage by chance only."""


def total_cost(records: Iterable[Attempt]) -> int | None:
    """Nano-dollars; None when one of them is unknown."""
    costs = [cost(record) for record in records]
    return None if None in costs else sum(known for known in costs if known is not None)


def by_workbook(records: Iterable[Attempt]) -> dict[str, list[Attempt]]:
    groups: dict[str, list[Attempt]] = defaultdict(list)
    for record in records:
        groups[record.cell.workbook].append(record)
    return dict(groups)


def workbook_mean(records: Sequence[Attempt]) -> WorkbookMean:
    """The repeats of one workbook; cost in dollars."""
    spent = total_cost(records)
    return WorkbookMean(
        cost=None if spent is None else spent / len(records) / NANO,
        accuracy=fmean(accuracy(record) for record in records),
    )


def mean_tokens(groups: Iterable[Sequence[Attempt]], field: str) -> float | None:
    """Mean over workbooks of the mean over the repeats that reported them; `field` is ``input`` or ``output``."""
    means = []
    for records in groups:
        reported = [getattr(record, field) for record in records]
        if known := [tokens for tokens in reported if tokens is not None]:
            means.append(fmean(known))
    return fmean(means) if means else None


def counted(records: Sequence[Attempt], csv: Sequence[Attempt]) -> list[Counted]:
    """Per tokenizer; the ratio to csv over the workbooks that both were counted on."""
    own, theirs = _counts(records), _counts(csv)
    result = []
    for counter, counts in sorted(own.items()):
        common = sorted(counts.keys() & theirs.get(counter, {}).keys())
        below = sum(theirs[counter][name] for name in common) if common else 0
        result.append(
            Counted(
                counter=counter,
                tokens=fmean(counts.values()),
                over_csv=sum(counts[name] for name in common) / below if below else None,
            )
        )
    return result


def _counts(records: Iterable[Attempt]) -> dict[str, dict[str, float]]:
    counts: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        if record.counter:
            counts[record.counter][record.cell.workbook].append(record.counted)
    return {
        counter: {name: fmean(found) for name, found in sorted(workbooks.items())}
        for counter, workbooks in counts.items()
    }


def question_mean(records: Iterable[Attempt]) -> float | None:
    """Mean over all answers asked for; None when nothing was asked."""
    scores = [score for _, score in _scores(records)]
    return fmean(scores) if scores else None


def kind_scores(records: Iterable[Attempt]) -> dict[str, KindScore]:
    """Per kind of question, sorted by name."""
    scores: dict[str, list[float]] = defaultdict(list)
    for kind, score in _scores(records):
        scores[kind].append(score)
    return {
        kind: KindScore(questions=len(found), right=sum(score >= 1 for score in found), accuracy=fmean(found))
        for kind, found in sorted(scores.items())
    }


def _scores(records: Iterable[Attempt]) -> Iterator[tuple[str, float]]:
    """Kind and score of every question asked; a failed call scores 0 on each."""
    for record in records:
        for (_, kind), score in record.scored():
            yield kind, score


def outcome_kinds(records: Iterable[Attempt]) -> dict[str, int]:
    """Failure or fault kind -> how many, sorted by name."""
    return dict(sorted(Counter(record.kind or "unnamed" for record in records).items()))


def frontier(records: Sequence[Attempt]) -> Frontier | None:
    """None without a call."""
    n = len(records)
    passes = sum(map(passed, records))
    interval = jeffreys(passes, n)
    if interval is None:
        return None
    spent = total_cost(records)
    return Frontier(
        calls=n,
        passes=passes,
        pass_interval=interval,
        cost_per_call=None if spent is None else spent / n / NANO,
        cost_per_pass=spent / passes / NANO if spent is not None and passes else None,
        tokens_per_call=_per_call(records, "input", "output"),
    )


def resources(records: Sequence[Attempt]) -> Resources | None:
    """None without a call."""
    if not records:
        return None
    seconds = sorted(record.seconds for record in records)
    spent = total_cost(records)
    inputs = sum(record.input or 0 for record in records)
    cached = [record.cached for record in records if record.cached is not None]
    billed = [record.cost_as_billed_nanousd for record in records if record.cost_as_billed_nanousd is not None]
    return Resources(
        input_per_call=_per_call(records, "input"),
        output_per_call=_per_call(records, "output"),
        cached_share=sum(cached) / inputs if cached and inputs else None,
        median_seconds=median(seconds),
        p90_seconds=seconds[9 * (len(seconds) - 1) // 10],
        summed_seconds=sum(seconds),
        cost=None if spent is None else spent / NANO,
        cost_as_billed=sum(billed) / NANO if billed else None,
    )


def _per_call(records: Sequence[Attempt], *fields: str) -> int | None:
    """Mean over the calls that reported all of these tokens, rounded down; None when none did."""
    reported = [[getattr(record, field) for field in fields] for record in records]
    known = [sum(tokens) for tokens in reported if None not in tokens]
    return sum(known) // len(known) if known else None

"""What a report keeps of each cell: a record without its reply, its answers and the provider's own usage object.

A run of 100,000 cells has to be read in memory that does not grow with its replies.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from statistics import fmean, median
from typing import Any, TypeVar

from pytest_cellprose.record.outcomes import Status, policy
from pytest_cellprose.record.record import CellId, Host, ModelUsed, NotStarted, Prices, Record, UsageProblem
from pytest_cellprose.report.model import Counted, Frontier, KindScore, Resources
from pytest_cellprose.stats import WorkbookMean, jeffreys

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One call of one cell; the fields mean what `Record`'s do."""

    cell: CellId
    status: Status
    kind: str | None
    detail: str | None
    model: ModelUsed
    prices: Prices
    input: int | None
    cached: int | None
    output: int | None
    counter: str | None
    """Which tokenizer counted the prompt; None if none did."""
    counted: int
    cost_nanousd: int | None
    cost_as_billed_nanousd: int | None
    usage_problem: UsageProblem | None
    assumed_nanousd: int | None
    host: Host | None
    started: datetime
    seconds: float
    kinds: Mapping[str, str]
    """Question id -> question kind, of every question that was asked."""
    scores: tuple[float, ...]
    """In the order of `kinds`; a question without a score has 0."""
    accuracy: float | None
    kept_from: str | None
    long_prompts: int
    """Requests whose prompt had more tokens than the price's tier allows: one, but for agents, that ask in turns."""
    not_started: NotStarted | None
    replaced: bool
    """Whether a stale record of an earlier run was called again."""

    def without(self, questions: set[str]) -> Attempt:
        """As if these questions had not been asked."""
        if self.accuracy is None or not questions & self.kinds.keys():
            return self
        left = [(name, kind, score) for (name, kind), score in self.scored() if name not in questions]
        return replace(
            self,
            kinds={name: kind for name, kind, _ in left},
            scores=tuple(score for _, _, score in left),
            accuracy=fmean(score for _, _, score in left) if left else 0.0,
        )

    def scored(self) -> Iterable[tuple[tuple[str, str], float]]:
        """``((question id, kind), score)`` of every question that was asked."""
        return zip(self.kinds.items(), self.scores, strict=True)

    def key(self) -> tuple[Any, ...]:
        """Orders the attempts of one cell: the latest that is not a fault is greatest, else the latest fault.

        "Latest" is by the call's own start, so that the order of lines in the store, which parallel workers
        decide, changes nothing.
        """
        return self.status != "fault", self.started


class Attempts:
    """Makes attempts of records; equal parts, most of all the plan's own, are one object in all of them."""

    def __init__(self, planned: Iterable[CellId]) -> None:
        self._shared: dict[Hashable, Any] = {cell: cell for cell in planned}

    def of(self, record: Record) -> Attempt:
        share, kinds, model = self._share, record.kinds, record.model
        scores = record.scores or {}
        outcome, usage, counted = record.outcome, record.usage, record.counted_tokens
        return Attempt(
            cell=share(record.cell, record.cell),
            status=outcome.status,
            kind=outcome.kind,
            detail=outcome.detail,
            model=share(("model", model.requested, model.returned, repr(model.settings)), model),
            prices=share(record.prices, record.prices),
            input=usage.input,
            cached=usage.cached,
            output=usage.output,
            counter=None if counted is None else counted.counter,
            counted=0 if counted is None else counted.n,
            cost_nanousd=record.cost_nanousd,
            cost_as_billed_nanousd=record.cost_as_billed_nanousd,
            usage_problem=usage.problem,
            assumed_nanousd=record.assumed_nanousd,
            host=share(record.host, record.host),
            started=datetime.fromisoformat(record.started),
            seconds=record.seconds,
            kinds=share(("kinds", *kinds.items()), kinds),
            scores=tuple(share(score, score) for score in (scores.get(name, 0.0) for name in kinds)),
            accuracy=record.accuracy,
            kept_from=record.kept_from,
            long_prompts=_long_prompts(record),
            not_started=outcome.not_started,
            replaced=record.replaces is not None,
        )

    def _share(self, key: Hashable, value: T) -> T:
        return self._shared.setdefault(key, value)  # type: ignore[no-any-return]


def _long_prompts(record: Record) -> int:
    """By each request's own input; a request that reported none says nothing."""
    above = record.prices.above
    if above is None:
        return 0
    requests = [record.usage] if record.turns is None else record.turns
    return sum(usage.input is not None and usage.input > above for usage in requests)


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
        return 0 if record.usage_problem is None or policy(record.status, record.kind).billed != "yes" else None
    return record.cost_nanousd


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

"""What a report keeps of each cell: a record without its reply, its answers and the provider's own usage object.

A run of 100,000 cells has to be read in memory that does not grow with its replies.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from statistics import fmean
from typing import Any, Literal, TypeVar

from pytest_cellprose.record import CellId, Host, ModelUsed, NotStarted, Prices, Record, UsageProblem

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One call of one cell; the fields mean what `Record`'s do."""

    cell: CellId
    status: Literal["scored", "failure", "fault"]
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

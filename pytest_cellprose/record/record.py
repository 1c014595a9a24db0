"""What is stored of one call: the record, one JSON line in the run's store.

Everything that a report says is worked out from records and the run's manifest, so a record holds plain JSON
types only and is complete in itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from pytest_cellprose.record.outcomes import NOT_STARTED, Policy, Status, policy
from pytest_cellprose.record.plain import plain

RECORD_SCHEMA = 1

SetName: TypeAlias = Literal["development", "heldout"]


def utc_now() -> str:
    """The time as records and manifests write it: UTC, ISO 8601, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Frozen(BaseModel):
    """A value object that is written to JSON under its field names."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True)


# a plan has thousands of them, so it is no pydantic model; a record validates and writes it like one
@dataclass(frozen=True, slots=True, kw_only=True)
class CellId:
    """One cell of the benchmark; ordered and compared by its four coordinates."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    model: str
    encoding: str
    workbook: str
    repeat: int
    """1-based."""

    def __str__(self) -> str:
        """The id in brackets of a pytest node id: ``haiku55-cellprose_lean_gfm-budget-rep1``."""
        return f"{self.model}-{self.encoding}-{self.workbook}-rep{self.repeat}"


class Git(Frozen):
    """The benchmark repository's state before the run wrote anything."""

    commit: str | None = None
    """40 hex digits; None outside a repository."""
    dirty: bool | None = None
    """Untracked files count; None outside a repository."""
    diff_sha256: str | None = None
    """If dirty: SHA-256 of what differs from the commit, with names and contents of untracked files."""


PORTS = {"http": 80, "https": 443}
"""Scheme -> the port of an address that names none."""


class Host(Frozen):
    """Where calls go; of an address everything else, credentials and path, is left out."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        name = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{name}" + ("" if self.port == PORTS.get(self.scheme) else f":{self.port}")


class ModelUsed(Frozen):
    requested: str
    """The exact model id that was sent."""
    returned: str | None = None
    """The model id that came back."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """max_tokens, effort and whatever else was sent explicitly."""


class Prices(Frozen):
    """US dollars per million tokens, as decimal strings so that nothing is rounded."""

    input: str
    output: str
    cache_read: str | None = None
    """Only for `Record.cost_as_billed_nanousd`."""
    above: int | None = None
    """A request whose prompt has more tokens than this is priced, whole, at the two rates below."""
    input_above: str | None = None
    output_above: str | None = None
    nominal: bool = False
    """Not a real price: the offline reader costs nothing, and borrows another model's prices."""


UsageProblem: TypeAlias = Literal["missing", "half", "not_a_count", "zero", "too_many", "contradictory"]
"""Why what was said of a call's tokens is no report of them: nothing was said; one side is missing; what is there is no
whole number; none at all were counted; more than the model takes; a part is more than its whole."""


class Usage(Frozen):
    """Tokens of one call. None: not reported."""

    input: int | None = None
    """All input tokens, cached ones included."""
    cached: int | None = None
    output: int | None = None
    """All output tokens, reasoning included."""
    reasoning: int | None = None
    problem: UsageProblem | None = None
    """Why what was said counts as not reported; None if it counts, or if there was no reply to say anything."""
    raw: Annotated[Any, BeforeValidator(plain)] = None
    """The provider's own usage object, verbatim, in plain JSON."""


class TurnUsage(Usage):
    """One turn of an episode; a `Usage` is one of which no more is known."""

    model_config = ConfigDict(from_attributes=True)

    reply: str | None = None
    """The model's words; None also for the last turn, whose words are `Record.reply`."""
    cost_nanousd: int | None = None
    """At the price tier that the turn's own prompt selects; None when no tokens were reported."""
    cost_as_billed_nanousd: int | None = None
    seconds: float = 0.0
    """Until the reply was there, without the tools that it called."""


CallProblem: TypeAlias = Literal["no_object", "unknown_tool", "misfit"]
"""Why a tool call was answered with an error and no tool ran: its arguments are no JSON object; there is no such tool;
the arguments do not fit the tool's schema."""


class Clip(Frozen):
    """A text of any length, or its two ends."""

    head: str
    left_out: int = 0
    """Characters between the two."""
    tail: str = ""


def is_none(value: object) -> bool:
    """For fields that are not written when they are None."""
    return value is None


class ToolStep(Frozen):
    """One tool call of an episode."""

    turn: int
    """1-based: the turn that made it."""
    name: str
    """Its first characters, as the model wrote it."""
    arguments: Clip
    """As the model wrote them; JSON or not."""
    result: Clip | None = None
    """What the model was told; None: the episode ended before."""
    problem: CallProblem | None = None
    exit_code: int | None = Field(default=None, exclude_if=is_none)
    """Of a command that came to its end."""
    output_bytes: int | None = Field(default=None, exclude_if=is_none)
    """Of all that a command wrote, however much of it the model was told."""
    seconds: float = 0.0
    """Of the tool."""


class CountedTokens(Frozen):
    counter: str
    """Which tokenizer counted, with its version: ``toktok-rs 0.3.0 o200k_base``."""
    n: int
    """System prompt and prompt together."""


class NotStarted(Frozen):
    """Why a call was not allowed to start. Nothing was sent; a resumed run makes the call."""

    by: str
    """Who refused: ``a vendor's cap``, ``the wall clock``, ``a plugin`` or what the plugin calls itself."""
    limit: int | float | str | None = None
    """Which limit: how much it allows in `unit`, or in words."""
    used: int | float | str | None = None
    """How much of it was used."""
    unit: str = ""
    """Of both, if they are numbers: ``USD``, ``s``, ``%``, …"""
    resets: str | None = None
    """When there is room again, ISO 8601; None: not known, or never."""


class Outcome(Frozen):
    """``scored``: an answer was scored. ``failure``: the model's, scores 0. ``fault``: the path's or ours, no score."""

    status: Status
    kind: str | None = None
    """Which failure or fault (`pytest_cellprose.record.outcomes`); None when scored."""
    detail: str | None = None
    """One line for a reader: sub-kind, status code, what happened."""
    not_started: NotStarted | None = None
    """Set for a call that was refused before anything was sent; a fault then, whatever its kind is called."""

    @classmethod
    def of(cls, policy: Policy, detail: str) -> Outcome:
        """Of a failure or a fault."""
        return cls(status=policy.status, kind=policy.name, detail=detail)

    @property
    def policy(self) -> Policy:
        """What follows from it. A refusal may use any word, and means the same by all of them."""
        return policy(self.status, self.kind) if self.not_started is None else NOT_STARTED


class Record(Frozen):
    """One call of one cell."""

    schema_: int = Field(default=RECORD_SCHEMA, alias="schema")
    run: str
    git: Git
    cell: CellId
    set: SetName
    encoding_version: str
    inputs_id: str
    """Hash of the exact request."""
    prompt_sha256: str
    model: ModelUsed
    prices: Prices
    usage: Usage
    turns: list[TurnUsage] | None = None
    """Agents only: usage and cost of every turn; `usage` is their sum."""
    tool_trace: list[ToolStep] | None = Field(default=None, exclude_if=is_none)
    """Agents only: every tool call in its order; a one-shot record does not have the key."""
    counted_tokens: CountedTokens | None = None
    cost_nanousd: int | None = None
    """At list price, all input uncached; None when no tokens were reported."""
    cost_as_billed_nanousd: int | None = None
    assumed_nanousd: int | None = None
    """What the call was expected to cost, where it may be billed and nobody told its tokens: this counts against the
    vendor's cap. None: its cost is known, or nothing was billed."""
    started: str
    """UTC, ISO 8601."""
    seconds: float
    attempts: int = 1
    limited: int = 0
    """Of the attempts, those refused for too many requests (HTTP 429)."""
    outcome: Outcome
    answers: dict[str, Any] | None = None
    """The answer object found in the reply, keys as the model wrote them; None if there is none."""
    kinds: dict[str, str] = Field(default_factory=dict)
    """Question id -> question kind, of every question that was asked."""
    scores: dict[str, float] | None = None
    """Question id -> score in [0, 1]; None for a fault."""
    accuracy: float | None = None
    """Mean of the scores; None for a fault."""
    reply: str | None = None
    redacted: bool = False
    """A key was taken out of the reply after it was scored: the scores are those of the reply as it came, and stay."""
    host: Host | None = None
    """Where the request was sent; None if it was not, or if the provider does not tell."""
    kept_from: str | None = None
    """The run that made the call, if this run took it over; its scores are today's."""
    replaces: str | None = None
    """The run whose record of this cell was stale: it had been asked something else."""

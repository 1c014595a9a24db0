"""What calling a model means here: one request, one reply, and two ways of going wrong (docs/ARCHITECTURE.md).

A request may offer tools and carry the turns that came before, so that an agent's loop is a sequence of requests. A
provider is made once per process and vendor, on first use. It decides between reply, failure and fault by
exception type and status, never by message text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, runtime_checkable

from pytest_cellprose.encodings.base import Encoding
from pytest_cellprose.files import digest
from pytest_cellprose.questions.asked import Asked
from pytest_cellprose.record.outcomes import FAILURES
from pytest_cellprose.record.plain import plain
from pytest_cellprose.record.record import CountedTokens, Usage


@dataclass(frozen=True)
class Tool:
    """A tool that the model may call."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON Schema of its arguments."""

    @property
    def text(self) -> str:
        """All that a model is told of it, for counting: each vendor has a form of its own."""
        return json.dumps([self.name, self.description, plain(self.parameters)])


@dataclass(frozen=True)
class ToolCall:
    """What the model wants of a tool."""

    id: str
    name: str
    arguments: str
    """JSON, as the model wrote it: it need not be valid."""


@dataclass(frozen=True)
class ToolResult:
    id: str
    """Of the call that it answers."""
    text: str


@dataclass(frozen=True)
class Turn:
    """One turn that is over: what the model said, and what its tools answered."""

    said: Sequence[Any]
    """`Reply.said`, resent as it came, so that reasoning and its signatures are kept."""
    results: Sequence[ToolResult] = ()
    told: str = ""
    """What the model is told next, as the user's words; empty: nothing but the results."""


@dataclass(frozen=True)
class Request:
    """One call. What goes over the wire is `model_id`, `system`, `prompt`, `max_tokens` and `settings`."""

    model_id: str
    system: str
    prompt: str
    max_tokens: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Explicit settings beside max_tokens, such as ``effort``: those of `ModelSpec.settings`."""
    encoding: Encoding | None = None
    """How the workbook block was written. For the offline reader; never sent."""
    asked: Sequence[Asked] = ()
    """The questions without their truths. For the offline reader; never sent."""
    tools: Sequence[Tool] = ()
    world_digest: str = ""
    """Of what the tools act on; never sent."""
    turns: Sequence[Turn] = ()
    """What came after the prompt, oldest first."""

    @property
    def inputs_id(self) -> str:
        """Hash of all that goes over the wire: it changes when what a model is asked changes, and only then."""
        told = [self.system, self.prompt, self.model_id, self.max_tokens, dict(self.settings)]
        if self.tools or self.turns:
            told += [[asdict(tool) for tool in self.tools], [asdict(turn) for turn in self.turns]]
        if self.world_digest:
            told.append(self.world_digest)
        return digest(told)

    @property
    def prompt_sha256(self) -> str:
        """Hash of what the model is told, whichever model it is."""
        return digest([self.system, self.prompt])


@dataclass(frozen=True)
class Reply:
    """A call that ended as the protocol of its vendor says a call ends."""

    text: str
    returned_model: str | None = None
    """The model id that the provider says answered."""
    usage: Usage = field(default_factory=Usage)
    attempts: int = 1
    """How often the request was sent, retries included."""
    limited: int = 0
    """How many of these were refused for too many requests (HTTP 429)."""
    calls: Sequence[ToolCall] = ()
    """Tools that the model wants called before it goes on; only if the request offered tools."""
    said: Sequence[Any] = ()
    """The vendor's own items of this turn, for `Turn.said`: those that it takes back; only if the request offered
    tools."""
    paused: bool = False
    """The vendor wants the turn sent back as it is, and goes on with it then; only if the request offered tools."""


class ModelFailure(Exception):
    """The model's failure: scores 0 on every question, keeps its tokens, is never retried.

    `kind` is one of `pytest_cellprose.record.outcomes.FAILURES`.
    """

    def __init__(self, kind: str, detail: str, reply: Reply | None = None, attempts: int = 1, limited: int = 0) -> None:
        if kind not in FAILURES:
            raise ValueError(f"{kind!r} is no kind of failure: known are {', '.join(FAILURES)}")
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        self.detail = detail
        self.reply = reply
        """What there was of a reply: partial text, the usage that was reported."""
        self.attempts = reply.attempts if reply is not None else attempts
        self.limited = reply.limited if reply is not None else limited


class PathFault(Exception):
    """The path to the model failed: no score. In final mode it counts as the failure ``api_error``."""

    def __init__(self, kind: str, detail: str, reply: Reply | None = None, attempts: int = 1, limited: int = 0) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        """``transport``, ``time_out``, ``redirect``, ``authentication``, …"""
        self.detail = detail
        self.reply = reply
        self.attempts = reply.attempts if reply is not None else attempts
        self.limited = reply.limited if reply is not None else limited


class Provider(Protocol):
    """Calls the models of one vendor. Called from several threads at once."""

    def call(self, request: Request) -> Reply:
        """Raises `ModelFailure` or `PathFault`; anything else is a bug and ends the test with its traceback."""
        ...


@runtime_checkable
class CountsTokens(Protocol):
    """A provider that has its own way of counting a prompt; the others' are counted in o200k_base tokens."""

    def counted_tokens(self, request: Request) -> CountedTokens | None:
        """Tokens of system prompt and prompt; None where there is no count. Never raises for what a host does."""
        ...


@runtime_checkable
class KeepsSecrets(Protocol):
    """A provider that has a key, which is to be in nothing that is stored."""

    def redacted(self, value: Any) -> Any:
        """Plain JSON that a model or its host said, with the key's name in place of the key. Never raises."""
        ...


def lacking(provider: type[Provider]) -> str | None:
    """What the environment lacks for a provider's calls, in one sentence that names the variable; None if nothing.

    A provider that needs keys or addresses says so in a class method ``not_ready() -> str | None``.
    """
    check: Callable[[], str | None] | None = getattr(provider, "not_ready", None)
    return None if check is None else check()


def called_address(provider: type[Provider]) -> str | None:
    """The URL that a provider's calls go to, as the environment has it now; None if it does not tell.

    A provider whose calls leave the machine says so in a class method ``address() -> str | None``.
    """
    told: Callable[[], str | None] | None = getattr(provider, "address", None)
    return told() if callable(told) else None

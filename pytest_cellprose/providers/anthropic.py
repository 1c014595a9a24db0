"""Anthropic's models through the Messages API.

Streamed, temperature untouched, no ``cache_control`` anywhere: any cache read or write that is reported all the same
is the failure ``cache_leak`` (protocol section 5.4).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pytest_cellprose.providers.base import ModelFailure, Reply, Request, Tool, ToolCall, ToolResult
from pytest_cellprose.providers.hosts import OWN_ADDRESSES
from pytest_cellprose.providers.raw import at, name_at, taken_back_name, text_at
from pytest_cellprose.providers.usage import anthropic_cache_tokens, anthropic_usage, as_count
from pytest_cellprose.providers.wire import Account, Line, OnLine
from pytest_cellprose.record.outcomes import CACHE_LEAK, CONTEXT_EXCEEDED, REFUSED, TRUNCATED
from pytest_cellprose.record.record import CountedTokens

if TYPE_CHECKING:
    from pytest_cellprose.providers.http import Patience

ACCOUNT = Account(
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    other_key_variable="ANTHROPIC_AUTH_TOKEN",
    own_url=OWN_ADDRESSES["anthropic"],
)

COUNTER = "anthropic count_tokens"
_COUNT_SECONDS = 60.0
"""Nobody waits longer for a count: the cell is measured without it."""

_ENDINGS = {
    "max_tokens": TRUNCATED.name,
    "refusal": REFUSED.name,
    "model_context_window_exceeded": CONTEXT_EXCEEDED.name,
}
"""Stop reason -> failure. Every other stop reason is a reply."""
_PAUSED = "pause_turn"
_THOUGHTS = frozenset({"thinking", "redacted_thinking"})


class Anthropic(OnLine):
    """Makes its client when it is made: on first use, once per process."""

    account = ACCOUNT

    def __init__(self, patience: Patience | None = None) -> None:
        import anthropic

        from pytest_cellprose.providers.http import Patience

        self._line = Line(anthropic, ACCOUNT, patience or Patience())
        if self._line.problem is None:
            self._client = anthropic.Anthropic(**_credential(), **self._line.options())
            self._api = self._client.messages  # imports the rest of the SDK now, outside any call's time

    def call(self, request: Request) -> Reply:
        seen = _Seen(tools=bool(request.tools))
        with self._line.call(seen.reply) as call:
            self._line.read(self._api.with_streaming_response.create(**body(request), stream=True), seen.take)
            if not seen.finished or seen.stop_reason is None:
                raise self._line.cut(call)
            reply = seen.reply()
            read, written = anthropic_cache_tokens(seen.usage)
            if read or written:
                raise ModelFailure(CACHE_LEAK.name, f"{read} tokens read from a cache, {written} written to it", reply)
            if seen.stop_reason in _ENDINGS:
                raise ModelFailure(_ENDINGS[seen.stop_reason], seen.ending, reply)
            return self._line.done(call, reply)

    def counted_tokens(self, request: Request) -> CountedTokens | None:
        """The vendor's own count of system prompt and prompt; None if there is no telling, whatever the reason."""
        from anthropic import AnthropicError
        from httpx2 import HTTPError

        if self._line.problem is not None:
            return None
        question: Any = {"role": "user", "content": request.prompt}
        try:
            with self._line.aside(_COUNT_SECONDS):
                counted = self._api.count_tokens(model=request.model_id, system=request.system, messages=[question])
        except (AnthropicError, HTTPError, ValueError, TypeError):
            return None
        n = as_count(getattr(counted, "input_tokens", None))
        return None if n is None else CountedTokens(counter=COUNTER, n=n)


def _credential() -> dict[str, Any]:
    """Said explicitly, so that the SDK looks for no profile on disk."""
    from os import environ

    if environ.get(ACCOUNT.key_variable):
        return {"api_key": ACCOUNT.key}
    return {"auth_token": ACCOUNT.key}


def body(request: Request) -> dict[str, Any]:
    """The arguments of ``messages.create`` beside ``stream``."""
    said: dict[str, Any] = {
        "model": request.model_id,
        "max_tokens": request.max_tokens,
        "system": request.system,
        "messages": _messages(request),
    }
    settings = request.settings
    if "thinking" in settings:
        said["thinking"] = {"type": settings["thinking"]}
    if "effort" in settings:
        said["output_config"] = {"effort": settings["effort"]}
    if request.tools:
        said["tools"] = [_tool(tool) for tool in request.tools]
    return said


def _messages(request: Request) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": request.prompt}]
    for turn in request.turns:
        if turn.said:  # a message without content is refused
            messages.append({"role": "assistant", "content": list(turn.said)})
        told = [_result(result) for result in turn.results]
        if turn.told:
            told.append({"type": "text", "text": turn.told})
        if told:
            messages.append({"role": "user", "content": told})
    return messages


def _tool(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}


def _result(result: ToolResult) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": result.id, "content": result.text}


_GROWS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("partial_json", "input"),
}
"""Type of a delta -> its field, and the field of the content block that it goes on with."""


class _Block:
    """A content block while it is told."""

    def __init__(self, begun: Mapping[str, Any]) -> None:
        self._begun = begun
        self._more: dict[str, list[str]] = defaultdict(list)

    def take(self, delta: Any) -> None:
        told, field = _GROWS.get(text_at(delta, "type"), (None, ""))
        if told is not None:
            self._more[field].append(text_at(delta, told))

    @property
    def text(self) -> str:
        """Of an answer; empty for every other kind of block."""
        return self._field("text") if self._begun.get("type") == "text" else ""

    @property
    def call(self) -> ToolCall | None:
        if self._begun.get("type") != "tool_use":
            return None
        arguments = "".join(self._more["input"]) or json.dumps(self._begun.get("input"))
        return ToolCall(name_at(self._begun, "id") or "", name_at(self._begun, "name") or "", arguments)

    def whole(self) -> dict[str, Any]:
        """The block as the API takes it back."""
        told = {field: self._field(field) for field in self._more if field != "input"}
        if self._begun.get("type") == "tool_use":
            told["name"] = taken_back_name(self._begun.get("name"))
        return {**self._begun, **told, **({"input": self._input()} if self._more["input"] else {})}

    def _field(self, name: str) -> str:
        return (name_at(self._begun, name) or "") + "".join(self._more[name])

    def _input(self) -> Any:
        try:
            told = json.loads("".join(self._more["input"]))
        except (ValueError, RecursionError):  # the model's own mistake, which its tool answers
            return {}
        return told if isinstance(told, dict) else {}  # nothing else is taken back


class _Seen:
    """What a stream has told so far."""

    def __init__(self, *, tools: bool) -> None:
        self.usage: dict[str, Any] | None = None
        self.stop_reason: str | None = None
        self.category: str | None = None
        self.finished = False
        self._tools = tools
        self._model: str | None = None
        self._blocks: dict[Any, _Block] = {}
        self._output_told = False

    def take(self, event: Mapping[str, Any]) -> bool:
        kind = None if self.finished else event.get("type")
        if kind == "content_block_start":
            begun = event.get("content_block")
            self._blocks[event.get("index")] = _Block(begun if isinstance(begun, Mapping) else {})
        elif kind == "content_block_delta":
            self._blocks.setdefault(event.get("index"), _Block({"type": "text"})).take(event.get("delta"))
        elif kind == "message_start":
            self._model = name_at(event, "message", "model")
            self._add_usage(at(event, "message", "usage"))
        elif kind == "message_delta":
            self.stop_reason = name_at(event, "delta", "stop_reason") or self.stop_reason
            self.category = name_at(event, "delta", "stop_details", "category") or self.category
            self._add_usage(event.get("usage"))
            self._output_told = self._output_told or at(event, "usage", "output_tokens") is not None
        elif kind == "message_stop":
            self.finished = True
        return self.finished

    def _add_usage(self, usage: Any) -> None:
        """Counts are totals so far, so that a later event's replace an earlier one's; what it leaves out stays."""
        if usage is None:
            return
        if not isinstance(usage, Mapping):
            usage = {"usage": usage}
        before = self.usage or {}
        self.usage = before | {name: told for name, told in usage.items() if told is not None or name not in before}

    @property
    def ending(self) -> str:
        return f"stop_reason {self.stop_reason}" + (f", category {self.category}" if self.category else "")

    def reply(self) -> Reply:
        blocks = list(self._blocks.values())
        return Reply(
            text="".join(block.text for block in blocks),
            returned_model=self._model,
            usage=anthropic_usage(self.usage, ended=self._output_told),
            calls=[call for block in blocks if self._tools and (call := block.call)],
            said=_taken_back([block.whole() for block in blocks]) if self._tools else [],
            paused=self._tools and self.stop_reason == _PAUSED,
        )


def _taken_back(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The blocks of a turn that the API takes back: it refuses blank text, and thoughts that nothing follows."""
    kept = [block for block in blocks if block.get("type") != "text" or text_at(block, "text").strip()]
    while kept and kept[-1].get("type") in _THOUGHTS:
        kept.pop()
    return kept

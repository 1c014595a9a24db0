"""Anthropic's models through the Messages API.

Streamed, temperature untouched, no ``cache_control`` anywhere: any cache read or write that is reported all the same
is the failure ``cache_leak`` (protocol section 5.4).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pytest_cellprose.providers.base import ModelFailure, Reply, Request, Tool, ToolCall, ToolResult
from pytest_cellprose.providers.usage import anthropic_cache_tokens, anthropic_usage
from pytest_cellprose.providers.wire import Account, Line
from pytest_cellprose.record import CountedTokens

if TYPE_CHECKING:
    from pytest_cellprose.providers.http import Patience

ACCOUNT = Account("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", other_key_variable="ANTHROPIC_AUTH_TOKEN")

COUNTER = "anthropic count_tokens"
_COUNT_SECONDS = 60.0
"""Nobody waits longer for a count: the cell is measured without it."""

_ENDINGS = {
    "max_tokens": "truncated",
    "refusal": "refused",
    "model_context_window_exceeded": "context_exceeded",
}
"""Stop reason -> failure. Every other stop reason is a reply."""


class Anthropic:
    """Makes its client when it is made: on first use, once per process."""

    def __init__(self, patience: Patience | None = None) -> None:
        import anthropic

        from pytest_cellprose.providers.http import Patience

        self._line = Line(anthropic, ACCOUNT, patience or Patience())
        if self._line.problem is None:
            self._client = anthropic.Anthropic(**_credential(), **self._line.options())
            self._api = self._client.messages  # imports the rest of the SDK now, outside any call's time

    @classmethod
    def not_ready(cls) -> str | None:
        return ACCOUNT.problem()

    def call(self, request: Request) -> Reply:
        seen = _Seen()
        with self._line.call(seen.reply) as call:
            with self._api.stream(**body(request)) as stream:
                self._line.read(stream, seen.take)
                if request.tools and seen.finished:
                    seen.said = [_said(block) for block in stream.get_final_message().content]
            if not seen.finished or seen.stop_reason is None:
                raise self._line.cut(call)
            reply = seen.reply()
            read, written = anthropic_cache_tokens(seen.usage)
            if read or written:
                raise ModelFailure("cache_leak", f"{read} tokens read from a cache, {written} written to it", reply)
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
        n = getattr(counted, "input_tokens", None)
        return CountedTokens(counter=COUNTER, n=n) if isinstance(n, int) else None


def _credential() -> dict[str, Any]:
    """Said explicitly, so that the SDK looks for no profile on disk."""
    from os import environ

    if environ.get(ACCOUNT.key_variable):
        return {"api_key": ACCOUNT.key}
    return {"auth_token": ACCOUNT.key}


def body(request: Request) -> dict[str, Any]:
    """The arguments of ``messages.stream``; the SDK adds ``stream`` to what is sent."""
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
        messages.append({"role": "assistant", "content": list(turn.said)})
        if turn.results:
            messages.append({"role": "user", "content": [_result(result) for result in turn.results]})
    return messages


def _tool(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}


def _result(result: ToolResult) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": result.id, "content": result.text}


def _said(block: Any) -> dict[str, Any]:
    said: dict[str, Any] = block.to_dict()
    said.pop("parsed_output", None)  # the SDK's own, which the API does not take
    return said


class _Seen:
    """What a stream has told so far."""

    def __init__(self) -> None:
        self.model: str | None = None
        self.usage: dict[str, Any] | None = None
        self.stop_reason: str | None = None
        self.category: str | None = None
        self.finished = False
        self.said: list[dict[str, Any]] = []
        self._texts: list[str] = []

    def take(self, event: Any) -> bool:
        kind = event.type
        if kind == "content_block_delta":
            if event.delta.type == "text_delta":
                self._texts.append(event.delta.text)
        elif kind == "message_start":
            self.model = event.message.model
            self._add_usage(event.message.usage)
        elif kind == "message_delta":
            self.stop_reason = event.delta.stop_reason
            self.category = getattr(event.delta.stop_details, "category", None)
            self._add_usage(event.usage)
        elif kind == "message_stop":
            self.finished = True
        return self.finished

    def _add_usage(self, usage: Any) -> None:
        """Counts are totals so far, so that a later event's replace an earlier one's; what it leaves out stays."""
        told = {name: value for name, value in usage.to_dict().items() if value is not None}
        self.usage = {**(self.usage or {}), **told}

    @property
    def ending(self) -> str:
        return f"stop_reason {self.stop_reason}" + (f", category {self.category}" if self.category else "")

    def reply(self) -> Reply:
        calls = [
            ToolCall(block["id"], block["name"], json.dumps(block["input"]))
            for block in self.said
            if isinstance(block, Mapping) and block.get("type") == "tool_use"
        ]
        return Reply(
            text="".join(self._texts),
            returned_model=self.model,
            usage=anthropic_usage(self.usage),
            calls=calls,
            said=self.said,
        )

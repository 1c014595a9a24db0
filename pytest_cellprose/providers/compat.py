"""Open-weight models on any host that speaks Chat Completions.

Caching is whatever the host does (protocol section 4). `max_tokens` goes by its old name, which hosts other than
OpenAI know.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pytest_cellprose.providers.base import ModelFailure, Reply, Request, Tool, ToolCall
from pytest_cellprose.providers.raw import at, name_at, taken_back_name, text_at
from pytest_cellprose.providers.usage import chat_usage
from pytest_cellprose.providers.wire import Account, Line, OnLine
from pytest_cellprose.record.outcomes import REFUSED, TRUNCATED
from pytest_cellprose.record.record import CountedTokens

if TYPE_CHECKING:
    from pytest_cellprose.providers.http import Patience

ACCOUNT = Account("CELLPROSE_COMPAT_API_KEY", "CELLPROSE_COMPAT_BASE_URL", key_required=False, url_required=True)

_NO_KEY = "none"
"""Sent where the host wants no key: the SDK makes no client without one."""
_CLOSING = b"[DONE]"
_ENDINGS = {"length": TRUNCATED.name, "content_filter": REFUSED.name}
"""Finish reason -> failure. Every other finish reason is a reply."""
_REASONING = ("reasoning_content", "reasoning")
"""What hosts call a model's reasoning. Some refuse a turn with tool calls that comes back without it."""


class Compat(OnLine):
    """Makes its client when it is made: on first use, once per process."""

    account = ACCOUNT

    def __init__(self, patience: Patience | None = None) -> None:
        import openai

        from pytest_cellprose.providers.http import Patience

        self._line = Line(openai, ACCOUNT, patience or Patience())
        if self._line.problem is None:
            self._client = openai.OpenAI(api_key=ACCOUNT.key or _NO_KEY, **self._line.options())
            # taken from OPENAI_ORG_ID and OPENAI_PROJECT_ID, which are no business of another host
            self._client.organization = self._client.project = None
            self._completions = self._client.chat.completions

    def call(self, request: Request) -> Reply:
        seen = _Seen(tools=bool(request.tools))
        with self._line.call(seen.reply) as call:
            self._line.read(self._completions.with_streaming_response.create(**body(request), stream=True), seen.take)
            # the closing line is dropped by the SDK, so that a stream without it looks whole
            if not (seen.whole or (seen.finish_reason is not None and _CLOSING in call.tail)):
                raise self._line.cut(call)
            reply = seen.reply()
            if seen.refused:
                raise ModelFailure(REFUSED.name, "the message is a refusal", reply)
            if seen.finish_reason in _ENDINGS:
                raise ModelFailure(_ENDINGS[seen.finish_reason], f"finish_reason {seen.finish_reason}", reply)
            return self._line.done(call, reply)

    def counted_tokens(self, request: Request) -> CountedTokens | None:
        """None: an open-weight model's tokenizer is its own (protocol section 5.5)."""
        return None


def body(request: Request) -> dict[str, Any]:
    """The arguments of ``chat.completions.create`` beside ``stream``."""
    said: dict[str, Any] = {
        "model": request.model_id,
        "messages": _messages(request),
        "max_tokens": request.max_tokens,
        "stream_options": {"include_usage": True},
    }
    if "effort" in request.settings:
        said["reasoning_effort"] = request.settings["effort"]
    if request.tools:
        said["tools"] = [_tool(tool) for tool in request.tools]
    return said


def _messages(request: Request) -> list[Any]:
    messages: list[Any] = [
        {"role": "system", "content": request.system},
        {"role": "user", "content": request.prompt},
    ]
    for turn in request.turns:
        messages += turn.said
        messages += [{"role": "tool", "tool_call_id": done.id, "content": done.text} for done in turn.results]
        if turn.told:
            messages.append({"role": "user", "content": turn.told})
    return messages


def _tool(tool: Tool) -> dict[str, Any]:
    told = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": told}


class _Call:
    """A tool call while it is told."""

    def __init__(self, position: int) -> None:
        self.id = ""
        self._name = ""
        self._arguments: list[str] = []
        self._position = position

    def take(self, delta: Mapping[str, Any]) -> None:
        self.id = self.id or name_at(delta, "id") or ""
        self._name = self._name or name_at(delta, "function", "name") or ""
        self._arguments.append(text_at(delta, "function", "arguments"))

    @property
    def whole(self) -> ToolCall:
        """With an id of ours where the host gave none: a result has to name its call."""
        return ToolCall(self.id or f"call_{self._position}", self._name, "".join(self._arguments))


def _taken_back(text: str, reasoning: Mapping[str, str], calls: list[ToolCall]) -> list[dict[str, Any]]:
    """The assistant's message as hosts take it back; none, if there is nothing to it.

    They read a call's arguments as a JSON object and refuse every later request if it is none.
    """
    if not calls:
        return [{"role": "assistant", "content": text, **reasoning}] if text.strip() else []
    told = [
        {
            "id": call.id,
            "type": "function",
            "function": {
                "name": taken_back_name(call.name),
                "arguments": call.arguments if _is_object(call.arguments) else "{}",
            },
        }
        for call in calls
    ]
    return [{"role": "assistant", "content": text or None, **reasoning, "tool_calls": told}]


def _is_object(arguments: str) -> bool:
    try:
        return isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        return False


class _Seen:
    """What a stream has told so far."""

    def __init__(self, *, tools: bool) -> None:
        self.finish_reason: str | None = None
        self.refused = False
        self._tools = tools
        self._calls: list[_Call] = []
        self._at_index: dict[Any, _Call] = {}
        self._reasoning: dict[str, list[str]] = {}
        self._model: str | None = None
        self._usage: Any = None
        self._texts: list[str] = []

    @property
    def whole(self) -> bool:
        """Whether the end was told, and the usage that comes last."""
        return self.finish_reason is not None and self._usage is not None

    def take(self, chunk: Mapping[str, Any]) -> bool:
        # hosts leave out what they have no use for, even what OpenAI requires
        self._model = name_at(chunk, "model") or self._model
        usage = chunk.get("usage")
        self._usage = self._usage if usage is None else usage  # the last chunk's, or a running total in each
        for choice in chunk.get("choices") or ():
            self.finish_reason = name_at(choice, "finish_reason") or self.finish_reason
            self._texts.append(text_at(choice, "delta", "content"))
            self.refused = self.refused or bool(at(choice, "delta", "refusal"))
            if self._tools:
                self._take_turn(at(choice, "delta"))
        return self.whole

    def _take_turn(self, delta: Any) -> None:
        """What a one-shot call has no use for: tool calls, and the reasoning that goes back with them."""
        for name in _REASONING:
            if told := text_at(delta, name):
                self._reasoning.setdefault(name, []).append(told)
        for part in at(delta, "tool_calls") or ():
            index, told_id = at(part, "index"), name_at(part, "id")
            call = self._at_index.get(index)
            # some hosts tell calls one after the other under one index, or under none
            if call is None or (told_id is not None and call.id and told_id != call.id):
                call = self._at_index[index] = _Call(len(self._calls))
                self._calls.append(call)
            call.take(part)

    def reply(self) -> Reply:
        text, calls = "".join(self._texts), [call.whole for call in self._calls]
        reasoning = {name: "".join(told) for name, told in self._reasoning.items()}
        return Reply(
            text=text,
            returned_model=self._model,
            usage=chat_usage(self._usage),
            calls=calls,
            said=_taken_back(text, reasoning, calls) if self._tools else [],
        )

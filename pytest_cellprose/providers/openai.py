"""OpenAI's models through the Responses API.

Streamed and read to its last event: ``responses.stream`` would raise on an ordinary truncation and lose its usage.
Nothing is stored at OpenAI, the tier is the default one, temperature is left alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_cellprose.models.tokens import recorded_count
from pytest_cellprose.providers.base import ModelFailure, Reply, Request, Tool, ToolCall
from pytest_cellprose.providers.usage import openai_usage
from pytest_cellprose.providers.wire import Account, Line, StreamError
from pytest_cellprose.record import CountedTokens

if TYPE_CHECKING:
    from pytest_cellprose.providers.http import Patience

ACCOUNT = Account("OPENAI_API_KEY", "OPENAI_BASE_URL")

_LAST = frozenset({"response.completed", "response.incomplete", "response.failed"})
_INCOMPLETE = {"max_output_tokens": "truncated", "content_filter": "refused"}
"""Reason of an incomplete response -> failure."""


class OpenAI:
    """Makes its client when it is made: on first use, once per process."""

    def __init__(self, patience: Patience | None = None) -> None:
        import openai

        from pytest_cellprose.providers.http import Patience

        self._line = Line(openai, ACCOUNT, patience or Patience())
        if self._line.problem is None:
            self._client = openai.OpenAI(**self._line.options())
            self._responses = self._client.responses  # imports the rest of the SDK now, outside any call's time

    @classmethod
    def not_ready(cls) -> str | None:
        return ACCOUNT.problem()

    def call(self, request: Request) -> Reply:
        seen = _Seen(tools=bool(request.tools))
        with self._line.call(seen.reply) as call:
            with self._responses.create(**body(request), stream=True) as stream:
                self._line.read(stream, seen.take)
            if seen.status is None:
                raise self._line.cut(call)
            reply = seen.reply()
            if seen.refused:
                raise ModelFailure("refused", "the output is a refusal", reply)
            if seen.status == "incomplete":
                raise ModelFailure(_INCOMPLETE.get(seen.reason or "", "truncated"), f"incomplete: {seen.reason}", reply)
            return self._line.done(call, reply)

    def counted_tokens(self, request: Request) -> CountedTokens | None:
        """By o200k_base. That GPT-6 uses it is an assumption: tiktoken does not name its encoding."""
        return recorded_count(request.system, request.prompt)


def body(request: Request) -> dict[str, Any]:
    """The arguments of ``responses.create`` beside ``stream``."""
    said: dict[str, Any] = {
        "model": request.model_id,
        "instructions": request.system,
        "input": request.prompt if not request.turns else _items(request),
        "max_output_tokens": request.max_tokens,
        "store": False,
        "service_tier": "default",  # left out, a project's own setting would decide, at another price
    }
    settings = request.settings
    if "effort" in settings:
        said["reasoning"] = {"effort": settings["effort"]}
    if "prompt_cache" in settings:
        said["prompt_cache_options"] = {"mode": settings["prompt_cache"]}
    if request.tools:
        said["tools"] = [_tool(tool) for tool in request.tools]
        said["include"] = ["reasoning.encrypted_content"]  # nothing is stored, so reasoning has to be resent
    return said


def _items(request: Request) -> list[Any]:
    items: list[Any] = [{"role": "user", "content": request.prompt}]
    for turn in request.turns:
        items += turn.said
        items += [{"type": "function_call_output", "call_id": done.id, "output": done.text} for done in turn.results]
    return items


def _tool(tool: Tool) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
        "strict": False,
    }


class _Seen:
    """What a stream has told so far."""

    def __init__(self, *, tools: bool) -> None:
        self.status: str | None = None
        """Of the last event; None before it."""
        self.reason: str | None = None
        self.refused = False
        self._tools = tools
        self._model: str | None = None
        self._usage: dict[str, Any] | None = None
        self._deltas: list[str] = []
        self._text: str | None = None
        self._calls: list[ToolCall] = []
        self._said: list[Any] = []

    def take(self, event: Any) -> bool:
        kind = event.type
        if kind == "response.output_text.delta":
            self._deltas.append(event.delta)
        elif kind == "response.created":
            self._model = event.response.model
        elif kind in _LAST:
            self._end(kind, event.response)
            return True
        elif kind == "error":
            raise StreamError(filter(None, ["error", event.code]), event.message)
        return False

    def _end(self, kind: str, response: Any) -> None:
        self._model = response.model or self._model
        self._usage = None if response.usage is None else response.usage.to_dict()
        # the response's own status counts: a server may name the event "completed" and say "incomplete" inside
        named = kind.removeprefix("response.")
        status = named if response.status in (None, "completed") else response.status
        if status == "failed":
            error = response.error
            raise StreamError(filter(None, ["failed", getattr(error, "code", None)]), getattr(error, "message", ""))
        output = response.output or []
        parts = [part for item in output if item.type == "message" for part in item.content]
        if any(part.type == "output_text" for part in parts):
            self._text = "".join(part.text for part in parts if part.type == "output_text")
        self.refused = any(part.type == "refusal" for part in parts)
        self.reason = getattr(response.incomplete_details, "reason", None)
        if self._tools:
            self._calls = [
                ToolCall(item.call_id, item.name, item.arguments) for item in output if item.type == "function_call"
            ]
            self._said = [item.to_dict() for item in output]
        self.status = status

    def reply(self) -> Reply:
        return Reply(
            text="".join(self._deltas) if self._text is None else self._text,
            returned_model=self._model,
            usage=openai_usage(self._usage),
            calls=self._calls,
            said=self._said,
        )

"""OpenAI's models through the Responses API.

Streamed and read to its last event, which tells everything again: ``responses.stream`` of the SDK would raise on an
ordinary truncation and lose its usage.
Nothing is stored at OpenAI, the tier is the default one, temperature is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pytest_cellprose.models.tokens import recorded_count
from pytest_cellprose.providers.base import ModelFailure, PathFault, Reply, Request, Tool, ToolCall
from pytest_cellprose.providers.hosts import OWN_ADDRESSES
from pytest_cellprose.providers.raw import name_at, taken_back_name, text_at
from pytest_cellprose.providers.usage import openai_usage
from pytest_cellprose.providers.wire import Account, Line, OnLine, StreamError
from pytest_cellprose.record.outcomes import CUT_STREAM, REFUSED, TRUNCATED
from pytest_cellprose.record.record import CountedTokens

if TYPE_CHECKING:
    from pytest_cellprose.providers.http import Patience

ACCOUNT = Account("OPENAI_API_KEY", "OPENAI_BASE_URL", own_url=OWN_ADDRESSES["openai"])

_LAST = frozenset({"response.completed", "response.incomplete", "response.failed"})
_INCOMPLETE = {"max_output_tokens": TRUNCATED.name, "content_filter": REFUSED.name}
"""Reason of an incomplete response -> failure."""
_STOPPED = "cancelled"
"""Status of a response that somebody stopped before its end."""


class OpenAI(OnLine):
    """Makes its client when it is made: on first use, once per process."""

    account = ACCOUNT

    def __init__(self, patience: Patience | None = None) -> None:
        import openai

        from pytest_cellprose.providers.http import Patience

        self._line = Line(openai, ACCOUNT, patience or Patience())
        if self._line.problem is None:
            self._client = openai.OpenAI(api_key=ACCOUNT.key, **self._line.options())
            self._responses = self._client.responses  # imports the rest of the SDK now, outside any call's time

    def call(self, request: Request) -> Reply:
        seen = _Seen(tools=bool(request.tools))
        with self._line.call(seen.reply) as call:
            self._line.read(self._responses.with_streaming_response.create(**body(request), stream=True), seen.take)
            if seen.status is None:
                raise self._line.cut(call)
            if seen.status == _STOPPED:
                raise PathFault(CUT_STREAM.name, f"the response's last event says {seen.status}")
            reply = seen.reply()
            if seen.refused:
                raise ModelFailure(REFUSED.name, "the output is a refusal", reply)
            if seen.status == "incomplete":
                kind = _INCOMPLETE.get(seen.reason or "", TRUNCATED.name)
                raise ModelFailure(kind, f"incomplete: {seen.reason}", reply)
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
        if turn.told:
            items.append({"role": "user", "content": turn.told})
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
        self._usage: Any = None
        self._deltas: list[str] = []
        self._text: str | None = None
        self._output: list[Mapping[str, Any]] = []

    def take(self, event: Mapping[str, Any]) -> bool:
        kind = None if self.status else event.get("type")
        if kind == "response.output_text.delta":
            self._deltas.append(text_at(event, "delta"))
        elif kind == "response.created":
            self._model = name_at(event, "response", "model")
        elif kind in _LAST:
            self._end(str(kind), event["response"])
        elif kind == "error":
            raise StreamError(filter(None, ["error", name_at(event, "code")]), text_at(event, "message"))
        return self.status is not None

    def _end(self, kind: str, response: Mapping[str, Any]) -> None:
        self._model = name_at(response, "model") or self._model
        self._usage = response.get("usage")
        # the response's own status counts: a server may name the event "completed" and say "incomplete" inside
        named, own = kind.removeprefix("response."), name_at(response, "status")
        status = named if own in (None, "completed") else own
        if status == "failed":
            words = filter(None, ["failed", name_at(response, "error", "code")])
            raise StreamError(words, name_at(response, "error", "message") or "")
        self._output = _objects(response.get("output"))
        messages = [item for item in self._output if item.get("type") == "message"]
        parts = [part for message in messages for part in _objects(message.get("content"))]
        texts = [part for part in parts if part.get("type") == "output_text"]
        if texts:
            self._text = "".join(text_at(part, "text") for part in texts)
        self.refused = any(part.get("type") == "refusal" for part in parts)
        self.reason = name_at(response, "incomplete_details", "reason")
        self.status = status

    def reply(self) -> Reply:
        output = self._output if self._tools else []
        return Reply(
            text="".join(self._deltas) if self._text is None else self._text,
            returned_model=self._model,
            usage=openai_usage(self._usage),
            calls=[
                ToolCall(*(name_at(item, name) or "" for name in ("call_id", "name", "arguments")))
                for item in output
                if item.get("type") == "function_call"
            ],
            said=_taken_back(output),
        )


def _taken_back(items: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The items of a turn that the API takes back: it refuses reasoning that nothing follows."""
    last = max((place for place, item in enumerate(items, 1) if item.get("type") != "reasoning"), default=0)
    return [
        {**item, "name": taken_back_name(item.get("name"))} if item.get("type") == "function_call" else item
        for item in items[:last]
    ]


def _objects(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a list; whatever else a host put there says nothing."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []

"""Open-weight models on any host that speaks Chat Completions.

One-shot only, and caching is whatever the host does (protocol section 4). `max_tokens` goes by its old name, which
hosts other than OpenAI know.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pytest_cellprose.providers.base import ModelFailure, Reply, Request
from pytest_cellprose.providers.raw import at, name_at, text_at
from pytest_cellprose.providers.usage import chat_usage
from pytest_cellprose.providers.wire import Account, Line
from pytest_cellprose.record.record import CountedTokens

if TYPE_CHECKING:
    from pytest_cellprose.providers.http import Patience

ACCOUNT = Account("CELLPROSE_COMPAT_API_KEY", "CELLPROSE_COMPAT_BASE_URL", key_required=False, url_required=True)

_NO_KEY = "none"
"""Sent where the host wants no key: the SDK makes no client without one."""
_CLOSING = b"[DONE]"
_ENDINGS = {"length": "truncated", "content_filter": "refused"}
"""Finish reason -> failure. Every other finish reason is a reply."""


class Compat:
    """Makes its client when it is made: on first use, once per process."""

    def __init__(self, patience: Patience | None = None) -> None:
        import openai

        from pytest_cellprose.providers.http import Patience

        self._line = Line(openai, ACCOUNT, patience or Patience())
        if self._line.problem is None:
            self._client = openai.OpenAI(api_key=ACCOUNT.key or _NO_KEY, **self._line.options())
            # taken from OPENAI_ORG_ID and OPENAI_PROJECT_ID, which are no business of another host
            self._client.organization = self._client.project = None
            self._completions = self._client.chat.completions

    @classmethod
    def not_ready(cls) -> str | None:
        return ACCOUNT.problem()

    @classmethod
    def address(cls) -> str | None:
        return ACCOUNT.address or None

    def redacted(self, value: Any) -> Any:
        return self._line.redacted(value)

    def call(self, request: Request) -> Reply:
        seen = _Seen()
        with self._line.call(seen.reply) as call:
            self._line.read(self._completions.with_streaming_response.create(**body(request), stream=True), seen.take)
            # the closing line is dropped by the SDK, so that a stream without it looks whole
            if not (seen.whole or (seen.finish_reason is not None and _CLOSING in call.tail)):
                raise self._line.cut(call)
            reply = seen.reply()
            if seen.refused:
                raise ModelFailure("refused", "the message is a refusal", reply)
            if seen.finish_reason in _ENDINGS:
                raise ModelFailure(_ENDINGS[seen.finish_reason], f"finish_reason {seen.finish_reason}", reply)
            return self._line.done(call, reply)

    def counted_tokens(self, request: Request) -> CountedTokens | None:
        """None: an open-weight model's tokenizer is its own (protocol section 5.5)."""
        return None


def body(request: Request) -> dict[str, Any]:
    """The arguments of ``chat.completions.create`` beside ``stream``. Raises `ValueError` for tools."""
    if request.tools:
        raise ValueError("open-weight models are one-shot only (protocol section 4): they are offered no tools")
    said: dict[str, Any] = {
        "model": request.model_id,
        "messages": [{"role": "system", "content": request.system}, {"role": "user", "content": request.prompt}],
        "max_tokens": request.max_tokens,
        "stream_options": {"include_usage": True},
    }
    if "effort" in request.settings:
        said["reasoning_effort"] = request.settings["effort"]
    return said


class _Seen:
    """What a stream has told so far."""

    def __init__(self) -> None:
        self.finish_reason: str | None = None
        self.refused = False
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
        return self.whole

    def reply(self) -> Reply:
        return Reply(text="".join(self._texts), returned_model=self._model, usage=chat_usage(self._usage))

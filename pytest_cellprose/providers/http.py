"""HTTP under the SDKs: attempts counted, waits bounded, and a wall clock on every call.

The SDKs' own retries are the only retry layer. What they get wrong for a benchmark is put right by hooks on the HTTP
client, which both SDKs offer to their users: Anthropic's obeys a ``Retry-After`` of any length, both retry a quota
that is used up, both bound the gaps of a stream but never the whole, neither tells how often it sent a request, and
neither knows the byte order mark that an event stream may begin with.
"""

from __future__ import annotations

import codecs
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2


@dataclass(frozen=True)
class Patience:
    """How long a call may take, in seconds."""

    connect: float = 10.0
    read: float = 600.0
    """Of silence. The SDKs' own default: a model that reasons may say nothing for minutes."""
    wall: float = 1800.0
    """For the whole call, retries and waits included."""
    retry_after: float = 120.0
    """Longest ``Retry-After`` that is slept through; a longer one ends the call."""
    retries: int = 3
    """Protocol section 5.6."""

    @property
    def timeout(self) -> httpx2.Timeout:
        return httpx2.Timeout(self.read, connect=self.connect)


NO_QUOTA = frozenset(
    {
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_error",
        "contract_spend_limit_reached",
        "enforced_spend_limit_reached",
        "linked_organization_spend_limit_reached",
    }
)
"""Error types and codes of an account that has nothing left: waiting does not help."""


_TAIL = 64
"""Bytes of a body's end that are kept: room for a stream's closing line."""


@dataclass
class Call:
    """One call while it runs."""

    patience: Patience
    deadline: float
    """Of `time.monotonic`."""
    attempts: int = 0
    limited: int = 0
    """Attempts that were answered with 429."""
    expired: bool = False
    """The wall clock ended it."""
    content_type: str = ""
    """Of the last response."""
    tail: bytes = b""
    """How the body ended, or as much of its end as was read; decompressed."""

    @property
    def left(self) -> float:
        return self.deadline - time.monotonic()

    @property
    def is_event_stream(self) -> bool:
        return "text/event-stream" in self.content_type

    def check_clock(self) -> None:
        if self.left <= 0:
            self.expired = True
            raise httpx2.ReadTimeout(f"the call took over {self.patience.wall:g} seconds")


CURRENT: ContextVar[Call | None] = ContextVar("CURRENT", default=None)
"""The call that this thread is in; requests outside one are left alone."""

HOOKS: Mapping[str, list[Any]]
"""For an HTTP client's ``event_hooks``; filled in below."""


def _before(request: httpx2.Request) -> None:
    call = CURRENT.get()
    if call is None:
        return
    call.check_clock()
    call.attempts += 1
    timeouts = request.extensions.get("timeout", {})
    request.extensions["timeout"] = {
        kind: call.left if seconds is None else min(seconds, max(call.left, 0.001))
        for kind, seconds in timeouts.items()
    }


def _after(response: httpx2.Response) -> None:
    call = CURRENT.get()
    if call is None:
        return
    call.content_type = response.headers.get("content-type", "")
    if response.is_redirect:  # never followed, and not asked for again
        response.headers["x-should-retry"] = "false"
    elif response.is_error:
        call.limited += response.status_code == 429
        wait = retry_after(response.headers)
        too_long = wait is not None and wait > min(call.patience.retry_after, call.left)
        if too_long or (response.status_code == 429 and NO_QUOTA & error_words(_body(response))):
            response.headers["x-should-retry"] = "false"  # what both SDKs obey
    elif isinstance(response.stream, httpx2.SyncByteStream):
        response.stream = _Plain(response, _Clocked(response.stream, call), call)
        response.headers.pop("content-encoding", None)  # undone in there


HOOKS = {"request": [_before], "response": [_after]}


class _Clocked(httpx2.SyncByteStream):
    """A body that is cut when the call's time is over: the read time-out alone lets a trickle go on for ever."""

    def __init__(self, stream: httpx2.SyncByteStream, call: Call) -> None:
        self._stream = stream
        self._call = call

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._stream:
            self._call.check_clock()
            yield chunk

    def close(self) -> None:
        self._stream.close()


class _Plain(httpx2.SyncByteStream):
    """A body as its reader wants it: decompressed, and without a byte order mark."""

    def __init__(self, response: httpx2.Response, stream: httpx2.SyncByteStream, call: Call) -> None:
        self._packed = httpx2.Response(
            response.status_code, headers=response.headers, stream=stream, request=response.request
        )
        self._call = call

    def __iter__(self) -> Iterator[bytes]:
        for chunk in _without_mark(self._packed.iter_bytes()):
            self._call.tail = (self._call.tail + chunk)[-_TAIL:]
            yield chunk

    def close(self) -> None:
        self._packed.close()


def _without_mark(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Without UTF-8's byte order mark, which the first chunks may hold in parts."""
    begun, rest = b"", iter(chunks)
    for chunk in rest:
        begun += chunk
        if not codecs.BOM_UTF8.startswith(begun):
            break
    yield begun.removeprefix(codecs.BOM_UTF8)
    yield from rest


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a response asks to wait, as the SDKs read it; None if it does not."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after")
    seconds = _number(text)
    if seconds is not None or text is None:
        return seconds
    try:
        return parsedate_to_datetime(text).timestamp() - time.time()
    except ValueError:
        return None


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _body(response: httpx2.Response) -> object:
    response.read()
    try:
        return json.loads(response.content)
    except ValueError:
        return None


def error_words(body: object) -> frozenset[str]:
    """Type and codes of an error body of either vendor: what outcomes are decided by, beside the status."""
    if not isinstance(body, Mapping):
        return frozenset()
    inner = body.get("error")
    error = inner if isinstance(inner, Mapping) else body
    details = error.get("details")
    found = [error.get("type"), error.get("code"), details.get("error_code") if isinstance(details, Mapping) else None]
    return frozenset(word for word in found if isinstance(word, str) and word)

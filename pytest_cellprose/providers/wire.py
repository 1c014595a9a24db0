"""A vendor's line: its key and address, one call at a time, and what ended it.

Reply, failure or fault is decided by exception type, status and error code, never by message text (protocol section
5.6). No key leaves this module in what is told of an error: a server may well repeat it.

Events are read as the JSON that came, before the SDK makes a model of it: what is odd in one that has been paid for is
judged here, and never by a warning or an error in between.
"""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urljoin, urlsplit

from pytest_cellprose.providers.base import ModelFailure, PathFault, Reply
from pytest_cellprose.providers.secrets import Secret
from pytest_cellprose.record.outcomes import (
    API_FAULT,
    AUTHENTICATION,
    CONTEXT_EXCEEDED,
    CUT_STREAM,
    MALFORMED_STREAM,
    NOT_A_STREAM,
    QUOTA,
    REDIRECT,
    REFUSED,
    STREAM_ERROR,
    TIME_OUT,
    TRANSPORT,
)

if TYPE_CHECKING:
    from types import ModuleType

    import httpx2

    from pytest_cellprose.providers.http import Call, Patience

TOO_LONG = frozenset({"context_length_exceeded", "exceed_context_size_error", "request_too_large"})
"""Error types and codes of a prompt that does not fit: OpenAI's, llama.cpp's and Anthropic's."""
FILTERED = frozenset({"content_filter"})
"""Error codes of a request that a filter stopped."""

_UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, RuntimeError, AssertionError)
"""What the SDKs let through, or break with, when an event is not what it should be."""
_DETAIL = 300
"""Characters of a server's message that are kept."""


class MalformedStream(Exception):
    """An event that cannot be read."""


class StreamError(Exception):
    """An error that a server told inside a stream that had begun well."""

    def __init__(self, words: Iterable[str], message: str) -> None:
        super().__init__(message)
        self.words = frozenset(words)
        self.message = message


@dataclass(frozen=True)
class Account:
    """Where a vendor's key and address are in the environment."""

    key_variable: str
    url_variable: str
    other_key_variable: str | None = None
    """A second name, which counts when the first is not set."""
    key_required: bool = True
    url_required: bool = False
    own_url: str = ""
    """Called where the variable is not set: said to the SDK, which would look for an address in other places too."""

    @property
    def address(self) -> str:
        """Where calls go; empty if nothing says."""
        return self.url or self.own_url

    @property
    def key(self) -> str:
        names = [self.key_variable, *filter(None, [self.other_key_variable])]
        return next((value for name in names if (value := os.environ.get(name))), "")

    @property
    def url(self) -> str:
        return os.environ.get(self.url_variable, "")

    def problem(self) -> str | None:
        """What is wrong with the environment, in one sentence without any value of a key; None if nothing is."""
        if self.key_required and not self.key:
            return f"{self.key_variable} is not set: put the key there, or leave its models out (--cellprose-models)"
        if not all("!" <= character <= "~" for character in self.key):
            return f"{self.key_variable} is no key: it holds a blank, a line end or a character beyond ASCII"
        if self.url_required and not self.url:
            return (
                f"{self.url_variable} is not set: put the address of the host there, such as http://localhost:8080/v1"
            )
        if self.url and not _is_address(self.url):
            return f"{self.url_variable} is no address: it begins with http:// or https:// and names a host"
        return None


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # of the port
        return False


class OnLine:
    """What a provider on a `Line` tells of its account."""

    account: ClassVar[Account]
    _line: Line

    @classmethod
    def not_ready(cls) -> str | None:
        return cls.account.problem()

    @classmethod
    def address(cls) -> str | None:
        return cls.account.address or None

    def redacted(self, value: Any) -> Any:
        return self._line.redacted(value)


class Line:
    """Makes calls through one SDK; one for each provider. Calls may run at the same time."""

    def __init__(self, sdk: ModuleType, account: Account, patience: Patience) -> None:
        self.sdk = sdk
        self.account = account
        self.patience = patience
        self._secret = Secret(account.key_variable, account.key)
        self.problem = account.problem()

    def options(self) -> dict[str, Any]:
        """What either SDK's client is made with, beside its key."""
        from pytest_cellprose.providers.http import HOOKS

        timeout = self.patience.timeout
        return {
            "max_retries": self.patience.retries,
            "timeout": timeout,
            "base_url": self.account.address,
            "http_client": self.sdk.DefaultHttpxClient(event_hooks=HOOKS, timeout=timeout, follow_redirects=False),
        }

    @contextmanager
    def call(self, so_far: Callable[[], Reply]) -> Iterator[Call]:
        """Around one call: what it raises becomes a `ModelFailure` or `PathFault`, with what there is of a reply.

        `so_far` gives text, model and usage as far as they were told; tokens told before a failure count.
        """
        from pytest_cellprose.providers.http import CURRENT, Call

        if self.problem is not None:
            raise PathFault(AUTHENTICATION.name, self.problem, attempts=0)
        call = Call(self.patience, time.monotonic() + self.patience.wall)
        token = CURRENT.set(call)
        try:
            yield call
        except (ModelFailure, PathFault) as ended:
            raise self._told_of(ended, ended.reply or so_far(), call) from None
        except Exception as error:
            ended_by = self._ending(error, call)
            if ended_by is None:
                raise
            # `from None`: the SDK's exception holds headers and bodies, which a traceback might show
            raise self._told_of(ended_by, so_far(), call) from None
        finally:
            CURRENT.reset(token)

    @contextmanager
    def aside(self, seconds: float) -> Iterator[None]:
        """Around a request beside the calls, which takes no longer than this and whose errors are the caller's."""
        from pytest_cellprose.providers.http import CURRENT, Call

        token = CURRENT.set(Call(self.patience, time.monotonic() + seconds))
        try:
            yield
        finally:
            CURRENT.reset(token)

    def read(self, opened: AbstractContextManager[Any], take: Callable[[Mapping[str, Any]], bool]) -> None:
        """Send the request and hand every event to `take`, which says whether the reply is whole by now.

        From then on nothing can harm it; what still comes is read too, so that the connection can serve the next
        call. Raises `MalformedStream` for an event that cannot be read.
        """
        from httpx2 import StreamError as BodyGone

        whole = False
        try:
            with opened as response:
                try:
                    for event in response.parse(to=self.sdk.Stream[object]):
                        if event is not None:
                            whole = take(_mapping(event))
                except BodyGone:  # a RuntimeError, but the transport's
                    raise
                except _UNREADABLE as error:
                    raise MalformedStream(type(error).__name__) from None
        except Exception:
            if not whole:
                raise

    def done(self, call: Call, reply: Reply) -> Reply:
        """The finished reply, as it came, with the call's attempts."""
        return replace(reply, attempts=call.attempts, limited=call.limited)

    def redacted(self, value: Any) -> Any:
        """Plain JSON of a reply, for the store."""
        return self._secret.out_of_reply(value)

    def cut(self, call: Call) -> PathFault:
        """The stream ended without its last event."""
        if call.is_event_stream:
            return PathFault(CUT_STREAM.name, "the stream ended without its last event")
        told = call.content_type.partition(";")[0].strip() or "no content type"
        return PathFault(
            NOT_A_STREAM.name, f"{self._host()} answered {told} instead of an event stream: is the address right?"
        )

    def _ending(self, error: Exception, call: Call) -> ModelFailure | PathFault | None:
        import httpx2

        from pytest_cellprose.providers.http import error_words

        sdk = self.sdk
        if call.expired:
            return PathFault(TIME_OUT.name, f"the call took over {self.patience.wall:g} seconds")
        if isinstance(error, sdk.APITimeoutError | httpx2.TimeoutException):
            return PathFault(TIME_OUT.name, f"{_time_out(error)}: nothing came from {self._host()}")
        if isinstance(error, sdk.APIStatusError):
            status = error.status_code
            if 300 <= status < 400:
                return self._redirected(error.response)
            words, message = error_words(error.body), _message(error.body)
            return self._told(status if status >= 400 else None, words, message)
        if isinstance(error, StreamError):
            return self._told(None, error.words, error.message)
        if isinstance(error, sdk.APIConnectionError | httpx2.HTTPError | httpx2.StreamError | ssl.SSLError):
            root = _root(error)
            return PathFault(TRANSPORT.name, f"no reply from {self._host()}: {type(root).__name__}: {root}")
        if isinstance(error, sdk.APIError):  # OpenAI's SDK raises it bare for an error inside a stream
            return self._told(None, error_words(error.body), _message(error.body))
        if isinstance(error, MalformedStream):
            if not call.is_event_stream:
                return self.cut(call)
            return PathFault(MALFORMED_STREAM.name, f"an event of {self._host()} cannot be read: {error}")
        return None

    def _told(self, status: int | None, words: frozenset[str], message: str) -> ModelFailure | PathFault:
        """What a server said went wrong. `status` is None inside a stream, whose own 200 says nothing."""
        from pytest_cellprose.providers.http import NO_QUOTA

        where = "in the stream" if status is None else f"HTTP {status}"
        detail = " ".join([where, *sorted(words), *(["-", message] if message else [])])
        if status == 401 or "authentication_error" in words:
            return PathFault(AUTHENTICATION.name, f"{self.account.key_variable} was refused: {detail}")
        if status == 402 or words & NO_QUOTA:
            return PathFault(QUOTA.name, detail)
        if status == 413 or words & TOO_LONG:
            return ModelFailure(CONTEXT_EXCEEDED.name, detail)
        if words & FILTERED:
            return ModelFailure(REFUSED.name, detail)
        return PathFault((STREAM_ERROR if status is None else API_FAULT).name, detail)

    def _host(self) -> str:
        """Host and port, and which variable they are from; never the user and password that an address may hold."""
        parts = urlsplit(self.account.url) if self.account.url else None
        if parts is None or not parts.hostname:
            return "the vendor's host"
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.hostname}{port} ({self.account.url_variable})"

    def _redirected(self, response: httpx2.Response) -> PathFault:
        """A host that sends the prompt to another one: nobody named that, so it does not go there."""
        location = response.headers.get("location")
        where = "without saying where" if location is None else f"to {_bare(str(response.url), location)}"
        return PathFault(
            REDIRECT.name,
            f"{self._host()} redirects {where} (HTTP {response.status_code}): nothing is sent there; if that is the "
            f"right address, put it into {self.account.url_variable}",
        )

    def _told_of(self, ended: ModelFailure | PathFault, reply: Reply, call: Call) -> ModelFailure | PathFault:
        """The same without the key in its words, with the call's attempts and with what there is of a reply."""
        detail = self._secret.out_of_error(" ".join(ended.detail.split()))[:_DETAIL]
        told = reply.text or reply.returned_model or reply.usage.raw is not None
        kept = self.done(call, reply) if told else None
        return type(ended)(ended.kind, detail, kept, call.attempts, call.limited)


def _mapping(event: object) -> Mapping[str, Any]:
    if not isinstance(event, Mapping):
        raise TypeError("an event is no object")
    return event


def _bare(base: str, location: str) -> str:
    """Scheme, host, port and path of a location, as seen from an address; neither credentials nor a query."""
    try:
        parts = urlsplit(urljoin(base, location))
        name = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
        return f"{parts.scheme}://{name}{'' if parts.port is None else f':{parts.port}'}{parts.path}"
    except ValueError:
        return "an address that cannot be read"


def _root(error: BaseException) -> BaseException:
    """The transport's own error below the SDK's."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _time_out(error: BaseException) -> str:
    """Which of HTTP's time-outs it was: ``ConnectTimeout``, ``ReadTimeout``, …"""
    import httpx2

    below: BaseException | None = error
    while below is not None and not isinstance(below, httpx2.TimeoutException):
        below = below.__cause__
    return type(error if below is None else below).__name__


def _message(body: object) -> str:
    """A server's own words, for a reader only."""
    if isinstance(body, str):  # an HTML page, say
        return ""
    inner = body.get("error") if isinstance(body, Mapping) else None
    error = inner if isinstance(inner, Mapping) else body
    message = error.get("message") if isinstance(error, Mapping) else None
    return message if isinstance(message, str) else ""

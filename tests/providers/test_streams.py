"""Whole streams in odd forms: each is a reply that was paid for, and is one here."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tests.providers.conftest import PROVIDERS, Vendor
from tests.providers.vendor_server import CHAT, MESSAGES, RESPONSES, Answer, Play, frames, message_events

PATHS = dict(zip(PROVIDERS, (MESSAGES, RESPONSES, CHAT), strict=True))
TEXT = Answer().text
MARK = b"\xef\xbb\xbf"


def sending(chunks: Iterable[bytes], headers: dict[str, str] | None = None, *, dropped: bool = False) -> Play:
    """A body of these chunks."""

    def play(handler: Any, body: dict[str, Any]) -> None:
        handler.send_response(200)
        told = {"content-type": "text/event-stream", "transfer-encoding": "chunked", **(headers or {})}
        for name, value in told.items():
            handler.send_header(name, value)
        handler.end_headers()
        for chunk in chunks:
            handler.chunk(chunk)
        if dropped:
            handler.drop()
        else:
            handler.chunk(b"")

    return play


def whole(vendor: Vendor, answer: Answer | None = None, *, usage: bool = True) -> list[bytes]:
    asked = {"model": "model-1", "stream_options": {"include_usage": usage}}
    return frames(PATHS[vendor.name], asked, answer or Answer())


# --- Anthropic's events ----------------------------------------------------------------------------------------------


def changed(change: Callable[[list[dict[str, Any]]], None], answer: Answer | None = None) -> Play:
    events = message_events({"model": "model-1"}, answer or Answer())
    change(events)
    return sending([f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events])


def of_kind(events: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    return next(event for event in events if event["type"] == kind)


def no_usage_at_the_start(events: list[dict[str, Any]]) -> None:
    del of_kind(events, "message_start")["message"]["usage"]


def null_usage_at_the_start(events: list[dict[str, Any]]) -> None:
    of_kind(events, "message_start")["message"]["usage"] = None


def no_usage_at_the_end(events: list[dict[str, Any]]) -> None:
    del of_kind(events, "message_delta")["usage"]


def no_usage_at_all(events: list[dict[str, Any]]) -> None:
    no_usage_at_the_start(events)
    no_usage_at_the_end(events)


def a_second_delta(events: list[dict[str, Any]]) -> None:
    late = {"type": "message_delta", "delta": {"stop_reason": None}, "usage": {"output_tokens": 21}}
    events.insert(len(events) - 1, late)


def an_empty_second_delta(events: list[dict[str, Any]]) -> None:
    events.insert(len(events) - 1, {"type": "message_delta"})


def no_start(events: list[dict[str, Any]]) -> None:
    events.remove(of_kind(events, "message_start"))


def no_start_of_the_block(events: list[dict[str, Any]]) -> None:
    events.remove(of_kind(events, "content_block_start"))


def text_at_the_start_of_the_block(events: list[dict[str, Any]]) -> None:
    first = of_kind(events, "content_block_delta")
    of_kind(events, "content_block_start")["content_block"]["text"] = first["delta"]["text"]
    events.remove(first)


def a_kind_nobody_knows(events: list[dict[str, Any]]) -> None:
    events.insert(1, {"type": "something_new", "content": 7})
    of_kind(events, "message_delta")["delta"]["stop_details"] = "none"


@pytest.mark.parametrize(
    ("change", "counts"),
    [
        (no_usage_at_the_start, (None, 20)),
        (null_usage_at_the_start, (None, 20)),
        (no_usage_at_the_end, (100, None)),
        (no_usage_at_all, (None, None)),
        (a_second_delta, (100, 21)),
        (an_empty_second_delta, (100, 20)),
        (no_start, (None, 20)),
        (no_start_of_the_block, (100, 20)),
        (text_at_the_start_of_the_block, (100, 20)),
        (a_kind_nobody_knows, (100, 20)),
    ],
)
def test_a_whole_message_in_an_odd_form_is_a_reply(
    anthropic: Vendor, change: Callable[[list[dict[str, Any]]], None], counts: tuple[int | None, int | None]
) -> None:
    reply = anthropic.call(changed(change))
    assert (reply.text, (reply.usage.input, reply.usage.output)) == (TEXT, counts)


def test_a_stop_reason_stays_what_it_was_told_to_be(anthropic: Vendor) -> None:
    failure = anthropic.failure(changed(a_second_delta, Answer(stop="max_tokens")))
    assert failure.kind == "truncated"


# --- bytes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pieces", [1, 2, 3, 4])
def test_a_byte_order_mark_before_a_stream_is_no_part_of_it(vendor: Vendor, pieces: int) -> None:
    events = whole(vendor)[1:] if vendor.name == "compat" else whole(vendor)  # so that the first one says something
    content = MARK + b"".join(events)
    cuts = [content[place : place + 1] for place in range(pieces - 1)] + [content[pieces - 1 :]]
    reply = vendor.call(sending(cuts))
    assert (reply.text, reply.usage.input, reply.usage.output) == (TEXT, 100, 20)


@pytest.mark.parametrize("mark", [b"", MARK], ids=["plain", "mark"])
def test_a_compressed_stream_is_read_like_any_other(vendor: Vendor, mark: bytes) -> None:
    packed = gzip.compress(mark + b"".join(whole(vendor, usage=False)))
    reply = vendor.call(sending([packed[:5], packed[5:]], {"content-encoding": "gzip"}))
    assert reply.text == TEXT


# --- after the end ---------------------------------------------------------------------------------------------------


def test_a_connection_that_is_dropped_after_the_end_loses_nothing(vendor: Vendor) -> None:
    events = whole(vendor)
    told = events[:-1] if vendor.name == "compat" else events  # without the closing line, which tells nothing more
    reply = vendor.call(sending(told, dropped=True))
    assert (reply.text, reply.usage.output) == (TEXT, 20)


AS_ERRORS = pytest.mark.filterwarnings(  # of connections that other tests left behind nothing is said here
    "error", "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
HUNDREDS = [100, 100.0, "100"]
OF = {"anthropic": "input_tokens", "openai": "input_tokens", "compat": "prompt_tokens"}


@AS_ERRORS
@pytest.mark.parametrize("hundred", [*HUNDREDS, 100.5, None, True, -5, [], {"n": 1}], ids=repr)
def test_no_form_of_usage_loses_a_reply_even_where_warnings_are_errors(vendor: Vendor, hundred: object) -> None:
    sent, got = OF[vendor.name], OF[vendor.name].replace("input", "output").replace("prompt", "completion")
    raw = {sent: hundred, got: 20, "total_tokens": hundred, "service_tier": 5}
    reply = vendor.call(Answer(usage=raw))
    assert (reply.text, reply.attempts) == (TEXT, 1)
    assert reply.usage.input == (100 if any(hundred is known for known in HUNDREDS) else None)
    assert reply.usage.raw == raw


@AS_ERRORS
def test_no_other_field_of_an_odd_type_loses_a_reply(vendor: Vendor) -> None:
    reply = vendor.call(Answer(model=5))  # type: ignore[arg-type]
    assert (reply.text, reply.returned_model) == (TEXT, None)

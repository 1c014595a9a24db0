"""How calls end badly, over real HTTP: failures of the model and faults of the path, told apart by type and status."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

import pytest

from pytest_cellprose.providers.base import lacking
from tests.providers.conftest import AT_ONCE, KEYS, PROVIDERS, QUICK, REQUEST, URL_VARIABLES, Vendor
from tests.providers.vendor_server import (
    MESSAGES,
    RESPONSES,
    Answer,
    echo_key,
    error,
    frames,
    html,
    interrupted,
    plain_json,
    serving,
    silence,
    status,
    stream,
    trickle,
)

ALWAYS = 4  # one call and three retries

# --- the model's failures --------------------------------------------------------------------------------------------

TRUNCATED = {"anthropic": "max_tokens", "openai": "incomplete/max_output_tokens", "compat": "length"}
REFUSED = {"anthropic": "refusal", "openai": "incomplete/content_filter", "compat": "content_filter"}


def test_truncated_keeps_text_and_tokens(vendor: Vendor) -> None:
    failure = vendor.failure(Answer(text='{"q1": 4', stop=TRUNCATED[vendor.name]))
    assert failure.kind == "truncated"
    assert failure.reply is not None
    assert (failure.reply.text, failure.reply.usage.input, failure.reply.usage.output) == ('{"q1": 4', 100, 20)
    assert failure.reply.returned_model == "model-1"
    assert failure.attempts == 1


def test_a_response_s_own_status_counts_and_not_the_name_of_its_event(openai: Vendor) -> None:
    incomplete = b"".join(frames(RESPONSES, {"model": "m"}, Answer(stop="incomplete/max_output_tokens")))
    misnamed = incomplete.replace(b"response.incomplete", b"response.completed")
    assert openai.failure(interrupted(misnamed, after=0)).kind == "truncated"


def test_a_response_that_leaves_out_what_has_no_use_is_a_reply(openai: Vendor) -> None:
    # as llama.cpp's server streams one: no model at the beginning, no index, no sequence number, fewer details
    begun = {"id": "resp_1", "object": "response", "status": "in_progress"}
    text = {"type": "output_text", "text": '{"q1": 42}', "annotations": [], "logprobs": []}
    item = {"type": "message", "status": "completed", "id": "msg_1", "content": [text], "role": "assistant"}
    usage = {"input_tokens": 57, "output_tokens": 9, "total_tokens": 66, "input_tokens_details": {"cached_tokens": 0}}
    ended = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "small"}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
        {"type": "response.output_item.added", "item": {**item, "status": "in_progress", "content": []}},
        {"type": "response.content_part.added", "item_id": "msg_1", "part": {"type": "output_text", "text": ""}},
        {"type": "response.output_text.delta", "item_id": "msg_1", "delta": '{"q1": 42}'},
        {"type": "response.output_text.done", "item_id": "msg_1", "text": '{"q1": 42}'},
        {"type": "response.output_item.done", "item": item},
        {"type": "response.completed", "response": {**ended, "output": [item], "usage": usage}},
    ]
    told = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
    reply = openai.call(interrupted("".join(told).encode(), after=0))
    assert (reply.text, reply.returned_model) == ('{"q1": 42}', "small")
    assert (reply.usage.input, reply.usage.cached, reply.usage.output, reply.usage.reasoning) == (57, 0, 9, None)


def test_refused_by_the_way_it_stopped(vendor: Vendor) -> None:
    failure = vendor.failure(Answer(stop=REFUSED[vendor.name]))
    assert failure.kind == "refused"
    assert failure.reply is not None
    assert failure.reply.usage.input == 100


def test_refused_by_an_item_of_the_output(openai: Vendor, compat: Vendor) -> None:
    for vendor in (openai, compat):
        failure = vendor.failure(Answer(refusal="I cannot help with that"))
        assert (failure.kind, failure.reply and failure.reply.usage.output) == ("refused", 20)


def test_an_answer_about_a_refusal_is_no_refusal(vendor: Vendor) -> None:
    text = '{"q1": "refused: content_filter, max_tokens, context_length_exceeded"}'
    assert vendor.call(Answer(text=text)).text == text


@pytest.mark.parametrize(
    ("name", "play"),
    [
        ("anthropic", Answer(stop="model_context_window_exceeded")),
        ("anthropic", error(413, type="request_too_large")),
        ("openai", error(400, type="invalid_request_error", code="context_length_exceeded")),
        ("openai", Answer(stop="failed/context_length_exceeded")),
        ("compat", error(400, type="invalid_request_error", code="context_length_exceeded")),
        ("compat", error(400, type="exceed_context_size_error", code=400)),  # llama.cpp
    ],
)
def test_a_prompt_that_does_not_fit(request: pytest.FixtureRequest, name: str, play: Any) -> None:
    vendor: Vendor = request.getfixturevalue(name)
    assert vendor.failure(play).kind == "context_exceeded"


@pytest.mark.parametrize("leak", ["cache_read_input_tokens", "cache_creation_input_tokens"])
@pytest.mark.parametrize("stop", [None, "max_tokens"])
def test_any_use_of_anthropic_s_cache_is_a_leak(anthropic: Vendor, leak: str, stop: str | None) -> None:
    failure = anthropic.failure(Answer(usage={"input_tokens": 100, leak: 7, "output_tokens": 20}, stop=stop))
    assert failure.kind == "cache_leak"
    assert failure.reply is not None
    assert failure.reply.usage.input == 107


def test_cached_tokens_of_others_are_recorded_and_no_failure(openai: Vendor, compat: Vendor) -> None:
    details = {"cached_tokens": 60, "cache_write_tokens": 5}
    one = openai.call(Answer(usage={"input_tokens": 100, "input_tokens_details": details, "output_tokens": 20}))
    two = compat.call(Answer(usage={"prompt_tokens": 100, "prompt_tokens_details": details, "completion_tokens": 20}))
    assert [(reply.usage.input, reply.usage.cached) for reply in (one, two)] == [(100, 60), (100, 60)]


# --- faults of the path ----------------------------------------------------------------------------------------------

ENDS_EARLY = {"anthropic": [1, 2, 3, 5, 7], "openai": [1, 2, 3], "compat": [2, 3, 4]}
"""How many of a stream's last events may be missing before it is no whole reply."""


def test_a_stream_that_ends_early_is_no_reply(vendor: Vendor) -> None:
    for missing in ENDS_EARLY[vendor.name]:
        fault = vendor.fault(stream(ends_before=missing))
        assert (fault.kind, fault.attempts) == ("cut_stream", 1), missing


def test_a_response_that_was_cancelled_is_not_whole(openai: Vendor) -> None:
    for name in (b"response.cancelled", b"response.completed"):  # the event's; the response's own status counts
        cancelled = b"".join(frames(RESPONSES, {"model": "m"}, Answer(stop="cancelled")))
        fault = openai.fault(interrupted(cancelled.replace(b"response.cancelled", name), after=0))
        assert (fault.kind, fault.attempts) == ("cut_stream", 1)
        assert fault.reply is not None
        assert fault.reply.text == '{"q1": 42}'


def test_a_connection_dropped_in_a_stream(vendor: Vendor) -> None:
    fault = vendor.fault(stream(dropped_before=3))
    assert (fault.kind, fault.attempts) == ("transport", 1)
    assert "RemoteProtocolError" in fault.detail


def test_what_follows_the_last_event_harms_nothing(anthropic: Vendor, openai: Vendor) -> None:
    for vendor in (anthropic, openai):
        whole = b"".join(frames(MESSAGES if vendor.name == "anthropic" else RESPONSES, {"model": "m"}, Answer()))
        for rest in (b"event: error\ndata: not json\n\n", IN_STREAM[vendor.name]):
            assert vendor.call(interrupted(whole + rest, after=0)).text == '{"q1": 42}'


def test_one_connection_serves_a_vendor_s_calls(anthropic: Vendor, openai: Vendor) -> None:
    for vendor in (anthropic, openai):  # for Chat Completions the SDK itself hangs up at the closing line
        for _ in range(3):
            vendor.call()
    assert len({seen.port for seen in openai.server.journal}) == 2


def test_tokens_told_before_a_stream_broke_are_kept(anthropic: Vendor) -> None:
    for play in (stream(dropped_before=3), stream(ends_before=3), silence(1.3, after=4)):
        fault = anthropic.fault(play)
        assert fault.reply is not None
        assert (fault.reply.usage.input, fault.reply.returned_model) == (100, "model-1")
        assert fault.reply.text.startswith('{"q1"')


def test_tokens_of_a_response_that_failed_are_kept(openai: Vendor) -> None:
    fault = openai.fault(Answer(stop="failed/server_error"))
    assert fault.kind == "stream_error"
    assert "server_error" in fault.detail
    assert fault.reply is not None
    assert (fault.reply.usage.input, fault.reply.usage.output) == (100, 20)


@pytest.mark.parametrize(
    "event",
    [
        b'event: message_delta\ndata: {"type": "message_delta", "del\n\n',
        b"event: response.completed\ndata: not json\n\n",
        b"event: content_block_delta\ndata: \xff\xfe\n\n",
    ],
    ids=["cut", "no-json", "no-utf8"],
)
def test_an_event_that_cannot_be_read(vendor: Vendor, event: bytes) -> None:
    fault = vendor.fault(interrupted(event))
    assert fault.kind == "malformed_stream"


@pytest.mark.parametrize(
    "data",
    ['{"type": "content_block_delta", "index": 9, "delta": {"type": "text_delta", "text": "x"}}', "7", "[]", '"x"'],
)
def test_json_that_is_no_event_never_passes_for_a_reply(vendor: Vendor, data: str) -> None:
    name = "content_block_delta" if vendor.name == "anthropic" else "response.completed"
    fault = vendor.fault(interrupted(f"event: {name}\ndata: {data}\n\n".encode()))
    assert fault.kind in ("malformed_stream", "cut_stream")


def test_a_last_event_without_its_response(openai: Vendor) -> None:
    fault = openai.fault(interrupted(b'event: response.completed\ndata: {"type": "response.completed"}\n\n'))
    assert fault.kind == "malformed_stream"


IN_STREAM = {
    "anthropic": b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n',
    "openai": b'event: error\ndata: {"type":"error","code":"server_error","message":"busy","sequence_number":3}\n\n',
    "compat": b'data: {"error":{"code":"server_error","type":"busy","message":"busy"}}\n\n',
}


def test_an_error_told_in_a_stream_is_not_retried(vendor: Vendor) -> None:
    fault = vendor.fault(interrupted(IN_STREAM[vendor.name]))
    assert (fault.kind, fault.attempts) == ("stream_error", 1)
    assert ("overloaded_error" if vendor.name == "anthropic" else "server_error") in fault.detail


@pytest.mark.parametrize("play", [html(), plain_json()], ids=["html", "json"])
def test_a_body_that_is_no_stream_is_named_with_its_type_and_variable(vendor: Vendor, play: Any) -> None:
    fault = vendor.fault(play)
    assert fault.kind == "not_a_stream"
    assert URL_VARIABLES[vendor.name] in fault.detail
    assert "text/html" in fault.detail or "application/json" in fault.detail


@pytest.mark.parametrize("code", [400, 403, 404, 409, 422, 429, 500, 502, 503, 504, 529])
def test_a_status_is_told_with_the_fault(anthropic: Vendor, openai: Vendor, code: int) -> None:
    for vendor in (anthropic, openai):
        fault = vendor.fault(*[status(code, headers=AT_ONCE)] * ALWAYS)
        assert fault.kind == "api_error"
        assert fault.detail.startswith(f"HTTP {code} kind_{code}")
        retried = code in (409, 429) or code >= 500
        assert fault.attempts == (4 if retried else 1)


def test_an_error_page_is_told_by_its_status(vendor: Vendor) -> None:
    fault = vendor.fault(html(404))
    assert (fault.kind, fault.detail) == ("api_error", "HTTP 404")


@pytest.mark.parametrize(
    ("name", "play"),
    [
        ("openai", error(429, type="insufficient_quota", code="insufficient_quota")),
        ("compat", error(429, code="insufficient_quota")),
        ("anthropic", error(402, type="billing_error")),
        ("anthropic", error(429, type="rate_limit_error", details={"error_code": "enforced_spend_limit_reached"})),
    ],
)
def test_an_exhausted_quota_is_not_retried(request: pytest.FixtureRequest, name: str, play: Any) -> None:
    vendor: Vendor = request.getfixturevalue(name)
    fault = vendor.fault(*[play] * ALWAYS)
    assert (fault.kind, fault.attempts) == ("quota", 1)
    assert len(vendor.server.bodies) == 1


def test_words_in_a_message_decide_nothing(vendor: Vendor) -> None:
    misleading = "context_length_exceeded insufficient_quota authentication_error refused"
    fault = vendor.fault(error(400, type="invalid_request_error", message=misleading))
    assert fault.kind == "api_error"


# --- redirects -------------------------------------------------------------------------------------------------------


def to(location: str | None, code: int = 307, **headers: str) -> Any:
    """A redirect, to `location`."""
    told = {"location": location} if location is not None else {}
    return lambda handler, _: handler.raw(code, b"", {**told, **{k.replace("_", "-"): v for k, v in headers.items()}})


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_its_address_named(vendor: Vendor, code: int) -> None:
    with serving() as other:
        secret = other.address.replace("http://", "http://me:secret-word@")
        fault = vendor.fault(to(f"{secret}/elsewhere?token=secret-token#part", code))
        assert other.journal == []
    assert (fault.kind, fault.attempts, fault.reply) == ("redirect", 1, None)
    assert f"redirects to {other.address}/elsewhere (HTTP {code})" in fault.detail
    assert URL_VARIABLES[vendor.name] in fault.detail
    assert "secret" not in fault.detail


def test_a_redirect_to_itself_is_asked_four_times_at_most(vendor: Vendor) -> None:
    for headers in ({}, {"x_should_retry": "true"}):
        vendor.server.journal.clear()
        vendor.server.default = to("/v1/messages", **headers)
        assert vendor.fault().kind == "redirect"
        assert len(vendor.server.journal) == 1
    fault = vendor.fault(*[status(500, headers=AT_ONCE)] * 3)
    assert (fault.kind, fault.attempts) == ("redirect", 4)


@pytest.mark.parametrize("location", [None, "", "http://[", "//127.0.0.1:99999/x"])
def test_a_redirect_to_nowhere_is_a_redirect_all_the_same(vendor: Vendor, location: str | None) -> None:
    assert vendor.fault(to(location)).kind == "redirect"


def test_counting_follows_no_redirect_either(anthropic: Vendor) -> None:
    with serving() as other:
        anthropic.server.count = to(f"{other.address}/v1/messages/count_tokens")
        assert anthropic.provider.counted_tokens(REQUEST) is None  # type: ignore[attr-defined]
        assert other.journal == []


# --- the environment -------------------------------------------------------------------------------------------------

KEY_OF = dict(zip(PROVIDERS, KEYS, strict=True))


def test_a_key_that_is_refused_is_named_by_its_variable(vendor: Vendor) -> None:
    fault = vendor.fault(error(401, type="authentication_error"))
    assert (fault.kind, fault.attempts) == ("authentication", 1)
    assert fault.detail.startswith(f"{KEY_OF[vendor.name]} was refused: HTTP 401")


@pytest.mark.parametrize("code", [400, 401, 403, 429, 500])
def test_a_key_that_a_server_repeats_is_in_no_text(vendor: Vendor, code: int) -> None:
    vendor = replace(vendor, patience=replace(QUICK, retries=0))
    fault = vendor.fault(echo_key(code))
    key = KEYS[KEY_OF[vendor.name]]
    assert key not in repr(fault) + str(fault) + fault.detail
    assert f"[{KEY_OF[vendor.name]}]" in fault.detail
    # nothing that a traceback would print holds it either
    assert fault.__suppress_context__
    assert fault.__cause__ is None


def test_a_key_in_a_reply_is_left_for_scoring_and_taken_out_for_the_store(vendor: Vendor) -> None:
    key = KEYS[KEY_OF[vendor.name]]
    spoken = {"anthropic": "input_tokens", "openai": "input_tokens", "compat": "prompt_tokens"}[vendor.name]
    usage = {spoken: 5, "output_tokens": 1, "completion_tokens": 1, "told": [{"key": f"Bearer {key}"}]}
    reply = vendor.call(Answer(text=f'{{"q1": "{key}"}}', model=f"m-{key}", usage=usage))
    assert reply.text == f'{{"q1": "{key}"}}'
    assert reply.usage.input == 5
    stored = vendor.provider.redacted([reply.text, reply.returned_model, reply.usage.raw])  # type: ignore[attr-defined]
    assert key not in repr(stored)
    assert stored[0] == f'{{"q1": "[{KEY_OF[vendor.name]}]"}}'


@pytest.mark.parametrize("key", ["k", "B5", "kind", "0123456789abcde"])
def test_a_short_key_is_taken_out_of_errors_as_a_word_and_of_no_reply(
    vendor: Vendor, environment: pytest.MonkeyPatch, key: str
) -> None:
    environment.setenv(KEY_OF[vendor.name], key)
    reply = vendor.call(Answer(text=f'{{"q1": "{key}", "q2": "Stock!{key}33"}}'))
    assert reply.text == f'{{"q1": "{key}", "q2": "Stock!{key}33"}}'
    assert vendor.provider.redacted(reply.text) == reply.text  # type: ignore[attr-defined]
    fault = vendor.fault(error(400, type="invalid_request_error", message=f"no key {key}, ask{key}kinder"))
    assert fault.detail == f"HTTP 400 invalid_request_error - no key [{KEY_OF[vendor.name]}], ask{key}kinder"


@pytest.mark.parametrize("value", [None, "", "two words", "ends\n", "kéy"])
def test_what_is_wrong_with_a_key_is_known_before_any_call(
    vendor: Vendor, environment: pytest.MonkeyPatch, value: str | None
) -> None:
    variable = KEY_OF[vendor.name]
    if value is None:
        environment.delenv(variable)
    else:
        environment.setenv(variable, value)
    sentence = lacking(PROVIDERS[vendor.name])
    if vendor.name == "compat" and not value:
        assert sentence is None  # a host may want no key
        return
    assert sentence is not None
    assert sentence.startswith(variable)
    assert "\n" not in sentence
    assert not value or value not in sentence
    fault = vendor.fault()
    assert (fault.kind, fault.attempts) == ("authentication", 0)
    assert vendor.server.journal == []


@pytest.mark.parametrize("address", ["localhost:8080", "http://", "ftp://host/v1", "http://host:99999/v1"])
def test_what_is_wrong_with_an_address_is_known_before_any_call(
    vendor: Vendor, environment: pytest.MonkeyPatch, address: str
) -> None:
    environment.setenv(URL_VARIABLES[vendor.name], address)
    sentence = lacking(PROVIDERS[vendor.name])
    assert sentence is not None
    assert sentence.startswith(f"{URL_VARIABLES[vendor.name]} is no address")


def test_an_open_weight_host_has_to_be_named(compat: Vendor, environment: pytest.MonkeyPatch) -> None:
    environment.delenv("CELLPROSE_COMPAT_BASE_URL")
    sentence = lacking(PROVIDERS["compat"])
    assert sentence is not None
    assert sentence.startswith("CELLPROSE_COMPAT_BASE_URL is not set")


def test_a_host_that_is_not_there_is_named_without_its_password(
    vendor: Vendor, environment: pytest.MonkeyPatch
) -> None:
    environment.setenv(URL_VARIABLES[vendor.name], "http://me:secret-word@127.0.0.1:9/v1")
    fault = replace(vendor, patience=replace(QUICK, retries=0)).fault()
    assert fault.kind == "transport"
    assert f"127.0.0.1:9 ({URL_VARIABLES[vendor.name]})" in fault.detail
    assert "Connection refused" in fault.detail
    assert "secret-word" not in fault.detail


# --- time ------------------------------------------------------------------------------------------------------------


def test_silence_before_and_in_a_stream_is_a_time_out(vendor: Vendor) -> None:
    vendor = replace(vendor, patience=replace(QUICK, read=1, retries=0))
    for play in (silence(2.5), silence(2.5, after=2)):
        fault = vendor.fault(play)
        assert (fault.kind, fault.attempts) == ("time_out", 1)
        assert "ReadTimeout" in fault.detail


def test_a_trickle_is_ended_by_the_wall_clock(vendor: Vendor) -> None:
    vendor = replace(vendor, patience=replace(QUICK, wall=0.4))
    vendor.call()  # imports and connects, which no clock should see here
    started = time.monotonic()
    fault = vendor.fault(trickle(3))
    assert fault.kind == "time_out"
    assert "0.4 seconds" in fault.detail
    assert time.monotonic() - started < 10


def test_retries_count_as_attempts_and_end_in_one_reply(vendor: Vendor) -> None:
    for code in (429, 500, 529):
        storm = [status(code, headers=AT_ONCE)] * 3
        reply = vendor.call(*storm, Answer(text='{"q1": 1}'))
        assert (reply.text, reply.attempts) == ('{"q1": 1}', 4)


def test_a_failure_after_retries_tells_them_too(vendor: Vendor) -> None:
    storm = [status(529, headers=AT_ONCE)] * 2
    failure = vendor.failure(*storm, Answer(stop=TRUNCATED[vendor.name]))
    assert failure.attempts == 3


@pytest.mark.parametrize("header", [{"retry-after": "121"}, {"retry-after-ms": "3600000"}], ids=["seconds", "ms"])
def test_a_wait_of_over_two_minutes_is_not_slept_through(vendor: Vendor, header: dict[str, str]) -> None:
    patient = replace(vendor, patience=replace(QUICK, wall=1800))
    for forced in ({}, {"x-should-retry": "true"}):
        fault = patient.fault(*[status(429, headers={**header, **forced})] * ALWAYS)
        assert (fault.kind, fault.attempts) == ("api_error", 1)


def test_a_wait_beyond_the_wall_clock_is_not_slept_through(vendor: Vendor) -> None:
    fault = replace(vendor, patience=replace(QUICK, wall=5)).fault(
        *[status(503, headers={"retry-after": "60"})] * ALWAYS
    )
    assert (fault.kind, fault.attempts) == ("api_error", 1)


def test_a_date_to_wait_for_is_understood(anthropic: Vendor) -> None:
    late = {"retry-after": "Fri, 31 Dec 2100 23:59:59 GMT"}
    assert anthropic.fault(*[status(429, headers=late)] * ALWAYS).attempts == 1
    past = {"retry-after": "Fri, 31 Dec 1999 23:59:59 GMT", "x-should-retry": "false"}
    assert anthropic.fault(status(429, headers=past)).attempts == 1

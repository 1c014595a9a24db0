"""Tools over real HTTP: calls made at once, odd calls, what goes back, and how a turn with tools may end."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pytest_cellprose.providers.base import ModelFailure, Reply, Tool, ToolCall, ToolResult, Turn
from tests.providers.conftest import REQUEST, Vendor
from tests.providers.vendor_server import Answer, Play

BASH = Tool("bash", "Runs a command", {"type": "object", "properties": {"command": {"type": "string"}}})
WITH_TOOLS = replace(REQUEST, tools=[BASH])
LS = ("call-1", "bash", '{"command": "ls"}')
PWD = ("call-2", "bash", '{"command": "pwd"}')


def called(vendor: Vendor, *script: Play | Answer) -> Reply:
    vendor.server.script = list(script)
    return vendor.provider.call(WITH_TOOLS)


def resent(vendor: Vendor, *turns: Turn) -> list[dict[str, Any]]:
    """What goes over the wire after the prompt."""
    vendor.server.script = []
    vendor.provider.call(replace(WITH_TOOLS, turns=turns))
    body = vendor.server.bodies[-1]
    sent: list[dict[str, Any]] = body["input"] if vendor.name == "openai" else body["messages"]
    return sent[2 if vendor.name == "compat" else 1 :]


def results(vendor: Vendor, sent: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Id and text of every tool result, in the order in which they go out."""
    if vendor.name == "anthropic":
        blocks = [block for message in sent if message["role"] == "user" for block in message["content"]]
        return [(block["tool_use_id"], block["content"]) for block in blocks if block["type"] == "tool_result"]
    if vendor.name == "openai":
        return [(item["call_id"], item["output"]) for item in sent if item.get("type") == "function_call_output"]
    return [(message["tool_call_id"], message["content"]) for message in sent if message["role"] == "tool"]


def test_calls_made_at_once_come_and_are_answered_in_their_order(vendor: Vendor) -> None:
    reply = called(vendor, Answer(text="I look", tools=[LS, PWD]))
    assert [(call.id, call.name, call.arguments) for call in reply.calls] == [LS, PWD]
    sent = resent(vendor, Turn(reply.said, [ToolResult("call-1", "book.xlsx"), ToolResult("call-2", "/box")]))
    assert results(vendor, sent) == [("call-1", "book.xlsx"), ("call-2", "/box")]


def test_every_turn_goes_back_in_its_order(vendor: Vendor) -> None:
    first = called(vendor, Answer(text="", thinking="hm", tools=[LS]))
    second = called(vendor, Answer(text="", thinking="so", tools=[PWD]))
    sent = resent(
        vendor,
        Turn(first.said, [ToolResult("call-1", "book.xlsx")]),
        Turn(second.said, [ToolResult("call-2", "/box")]),
    )
    assert results(vendor, sent) == [("call-1", "book.xlsx"), ("call-2", "/box")]
    told = json.dumps(sent)
    kept = {"anthropic": "signature", "openai": "encrypted_content", "compat": "reasoning_content"}[vendor.name]
    assert told.count(f'"{kept}"') == 2
    assert told.index("call-1") < told.index("call-2")


@pytest.mark.parametrize("arguments", ['{"command": ls}', "[1]", "7", "", "[" * 2000])
def test_arguments_of_any_kind_come_as_they_were_written_and_can_go_back(vendor: Vendor, arguments: str) -> None:
    reply = called(vendor, Answer(text="", tools=[("call-1", "bash", arguments)]))
    [call] = reply.calls
    # Messages begins a call with an empty object, which stays where nothing follows
    assert call.arguments == ("{}" if vendor.name == "anthropic" and not arguments else arguments)
    sent = resent(vendor, Turn(reply.said, [ToolResult("call-1", "no JSON object")]))
    assert results(vendor, sent) == [("call-1", "no JSON object")]
    if vendor.name != "openai":  # hosts of Chat Completions and Messages take an object and nothing else
        told = [part for message in sent if message["role"] == "assistant" for part in _calls(message)]
        assert [isinstance(part, dict) for part in told] == [True]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("bash", "bash"),
        ("B-a_9" * 25, "B-a_9" * 25),
        ("functions.bash", "functions_bash"),
        ("run it!", "run_it_"),
        ("b\x00sh", "b_sh"),
        ("", "_"),
        ("x" * 200, "x" * 64),
        ("écrire", "_crire"),
    ],
)
def test_a_name_that_no_tool_can_have_goes_back_as_one_that_a_tool_can(vendor: Vendor, name: str, told: str) -> None:
    """Vendors refuse a whole request for it; what the model wrote stays in the call."""
    reply = called(vendor, Answer(text="", tools=[("call-1", name, "{}")]))
    assert [call.name for call in reply.calls] == [name]
    sent = resent(vendor, Turn(reply.said, [ToolResult("call-1", "there is no such tool")]))
    assert results(vendor, sent) == [("call-1", "there is no such tool")]
    assert _names(sent) == [told]


def _names(sent: list[dict[str, Any]]) -> list[str]:
    """Of every call that goes back."""
    names = [item["name"] for item in sent if item.get("type") == "function_call"]
    names += [call["function"]["name"] for message in sent for call in message.get("tool_calls", ())]
    content = [block for message in sent if isinstance(message.get("content"), list) for block in message["content"]]
    return names + [block["name"] for block in content if block["type"] == "tool_use"]


def _calls(message: dict[str, Any]) -> list[Any]:
    if "tool_calls" in message:
        return [json.loads(call["function"]["arguments"]) for call in message["tool_calls"]]
    return [block["input"] for block in message["content"] if block["type"] == "tool_use"]


def test_what_a_model_is_told_next_is_the_user_s(vendor: Vendor) -> None:
    reply = called(vendor, Answer(text="", thinking="hm"))
    assert (reply.text, list(reply.calls)) == ("", [])
    sent = resent(vendor, Turn(reply.said, told="Answer now."))
    words: Any = [{"type": "text", "text": "Answer now."}] if vendor.name == "anthropic" else "Answer now."
    # an empty turn, and thoughts that nothing follows, are taken back by no vendor
    assert sent == [{"role": "user", "content": words}]


def test_words_beside_results_follow_them(vendor: Vendor) -> None:
    reply = called(vendor, Answer(text="", tools=[LS]))
    sent = resent(vendor, Turn(reply.said, [ToolResult("call-1", "book.xlsx")], told="Answer now."))
    told = json.dumps(sent)
    assert told.index("book.xlsx") < told.index("Answer now.")
    assert sent[-1]["role"] == "user"


@pytest.mark.parametrize("text", ["", " \n"])
def test_blank_text_is_no_part_of_what_messages_takes_back(anthropic: Vendor, text: str) -> None:
    def blank(handler: Any, body: dict[str, Any]) -> None:
        from .vendor_server import frames

        told = frames(handler.path, body, Answer(text="xx", tools=[LS]))
        handler.begin_stream()
        for frame in told:
            handler.chunk(frame.replace(b'"text": "x"', b'"text": ' + json.dumps(text[:1]).encode()))
        handler.chunk(b"")

    reply = called(anthropic, blank)
    assert [block["type"] for block in reply.said] == ["tool_use"]


def test_a_turn_that_pauses_says_so_and_goes_back_as_it_was(anthropic: Vendor) -> None:
    reply = called(anthropic, Answer(text="Let me", thinking="hm", stop="pause_turn"))
    assert (reply.paused, reply.text, list(reply.calls)) == (True, "Let me", [])
    assert resent(anthropic, Turn(reply.said)) == [
        {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "hm", "signature": "s1"}, {"type": "text", "text": "Let me"}],
        }
    ]


def test_without_tools_a_pause_is_the_reply_that_it_was(anthropic: Vendor) -> None:
    reply = anthropic.call(Answer(stop="pause_turn"))
    assert (reply.text, reply.paused, list(reply.said)) == ('{"q1": 42}', False, [])


@pytest.mark.parametrize("name", ["anthropic", "compat"])
def test_a_stop_reason_that_nobody_knows_is_a_reply(name: str, request: pytest.FixtureRequest) -> None:
    reply = called(request.getfixturevalue(name), Answer(text="I look", tools=[LS], stop="brand_new"))
    assert (reply.text, [call.id for call in reply.calls], reply.paused) == ("I look", ["call-1"], False)


@pytest.mark.parametrize(
    ("name", "stop", "kind"),
    [
        ("anthropic", "max_tokens", "truncated"),
        ("anthropic", "refusal", "refused"),
        ("anthropic", "model_context_window_exceeded", "context_exceeded"),
        ("openai", "incomplete/max_output_tokens", "truncated"),
        ("openai", "incomplete/content_filter", "refused"),
        ("compat", "length", "truncated"),
        ("compat", "content_filter", "refused"),
    ],
)
def test_a_turn_that_breaks_off_is_a_failure_with_its_calls_and_tokens(
    name: str, stop: str, kind: str, request: pytest.FixtureRequest
) -> None:
    with pytest.raises(ModelFailure) as failed:
        called(request.getfixturevalue(name), Answer(text="I look", tools=[LS], stop=stop))
    reply = failed.value.reply
    assert failed.value.kind == kind
    assert reply is not None
    assert (reply.text, reply.usage.input, reply.usage.output) == ("I look", 100, 20)
    assert reply.calls == [ToolCall(*LS)]


def test_cached_input_in_a_later_turn_is_a_leak_too(anthropic: Vendor) -> None:
    usage = {"input_tokens": 100, "cache_read_input_tokens": 50, "output_tokens": 5}
    with pytest.raises(ModelFailure, match="cache_leak"):
        called(anthropic, Answer(tools=[LS], usage=usage))


# --- calls as hosts of Chat Completions tell them --------------------------------------------------------------------


def chat(*deltas: list[dict[str, Any]], finish: str = "tool_calls") -> Play:
    """A stream with these lists of ``tool_calls``."""

    def play(handler: Any, body: dict[str, Any]) -> None:
        handler.begin_stream()
        for calls in deltas:
            handler.chunk(_frame({"choices": [{"index": 0, "delta": {"tool_calls": calls}}]}))
        handler.chunk(_frame({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}))
        handler.chunk(_frame({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 20}}))
        handler.chunk(b"data: [DONE]\n\n")
        handler.chunk(b"")

    return play


def _frame(event: object) -> bytes:
    return f"data: {json.dumps(event)}\n\n".encode()


def part(arguments: str, **fields: Any) -> dict[str, Any]:
    name = fields.pop("name", None)
    return {**fields, "function": {"arguments": arguments, **({} if name is None else {"name": name})}}


@pytest.mark.parametrize(
    "play",
    [
        pytest.param(
            chat(
                [part("", index=0, id="a", name="bash")],
                [part("", index=1, id="b", name="read")],
                [part('{"x":', index=1), part('{"y":', index=0)],
                [part(" 1}", index=0)],
                [part(" 2}", index=1)],
            ),
            id="by-turns",
        ),
        pytest.param(
            chat([part('{"y": 1}', index=0, id="a", name="bash"), part('{"x": 2}', index=1, id="b", name="read")]),
            id="whole-in-one-chunk",
        ),
        pytest.param(
            chat(
                [part('{"y":', index=0, id="a", name="bash")],
                [part(" 1}", index=0, id="a", name="bash")],
                [part('{"x":', index=0, id="b", name="read")],
                [part(" 2}", index=0, id="b", name="read")],
            ),
            id="one-index-for-all",
        ),
        pytest.param(
            chat([part('{"y": 1}', id="a", name="bash")], [part('{"x": 2}', id="b", name="read")], finish="stop"),
            id="no-index-and-an-ordinary-end",
        ),
    ],
)
def test_calls_are_put_together_however_a_host_tells_them(compat: Vendor, play: Play) -> None:
    calls = called(compat, play).calls
    assert [(call.id, call.name, json.loads(call.arguments)) for call in calls] == [
        ("a", "bash", {"y": 1}),
        ("b", "read", {"x": 2}),
    ]


def test_calls_without_an_id_get_one_each(compat: Vendor) -> None:
    reply = called(compat, chat([part("{}", index=0, name="bash"), part("{}", index=1, name="bash")]))
    ids = [call.id for call in reply.calls]
    assert len({*ids}) == 2
    sent = resent(compat, Turn(reply.said, [ToolResult(name, "done") for name in ids]))
    assert [call["id"] for call in sent[0]["tool_calls"]] == ids == [name for name, _ in results(compat, sent)]


def test_a_host_s_own_name_for_reasoning_is_kept(compat: Vendor) -> None:
    def play(handler: Any, body: dict[str, Any]) -> None:
        handler.begin_stream()
        for thought in ("h", "m"):
            handler.chunk(_frame({"choices": [{"index": 0, "delta": {"reasoning": thought}}]}))
        chat([part("{}", index=0, id="a", name="bash")])(_Begun(handler), body)

    reply = called(compat, play)
    assert reply.said[0]["reasoning"] == "hm"
    assert reply.text == ""


class _Begun:
    """A handler whose stream has begun."""

    def __init__(self, handler: Any) -> None:
        self.chunk: Callable[[bytes], None] = handler.chunk

    def begin_stream(self) -> None:
        pass


def test_one_shot_takes_no_notice_of_calls_that_nobody_offered(vendor: Vendor) -> None:
    reply = vendor.call(Answer(text="I look", tools=[LS]))
    assert (reply.text, list(reply.calls), list(reply.said)) == ("I look", [], [])

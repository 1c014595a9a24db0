"""What goes over the wire, field by field (protocol sections 4 and 5), and what comes back of an ordinary call."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_cellprose.models.registry import builtin_models
from pytest_cellprose.providers.base import Reply, Request, Tool, ToolCall, ToolResult, Turn
from tests.providers.conftest import KEYS, PROVIDERS, QUICK, REQUEST, Vendor
from tests.providers.vendor_server import COUNT, Answer, VendorServer, html, status

MODELS = builtin_models()


def sent(server: VendorServer, vendor: str, request: Request) -> dict[str, Any]:
    PROVIDERS[vendor](QUICK).call(request)
    return server.bodies[-1]


def as_registered(alias: str) -> Request:
    model = MODELS[alias]
    return Request(model.model_id, "the system prompt", "the prompt", model.max_tokens, model.settings)


@pytest.mark.parametrize(
    ("alias", "model_id"),
    [
        ("haiku55", "claude-haiku-5-5"),
        ("sonnet55", "claude-sonnet-5-5"),
        ("opus55", "claude-opus-5-5"),
        ("fable51", "claude-fable-5-1"),
    ],
)
def test_a_messages_request_holds_this_and_nothing_else(anthropic: Vendor, alias: str, model_id: str) -> None:
    assert sent(anthropic.server, "anthropic", as_registered(alias)) == {
        "model": model_id,
        "max_tokens": 16000,
        "system": "the system prompt",
        "messages": [{"role": "user", "content": "the prompt"}],
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "medium"},
        "stream": True,
    }


def test_a_model_apart_has_its_thinking_switched_off(anthropic: Vendor) -> None:
    body = sent(anthropic.server, "anthropic", as_registered("haiku45"))
    assert body["thinking"] == {"type": "disabled"}
    assert "output_config" not in body


@pytest.mark.parametrize(
    ("alias", "model_id"), [("gpt6luna", "gpt-6-luna"), ("gpt61sol", "gpt-6.1-sol"), ("gpt6astra", "gpt-6-astra")]
)
def test_a_responses_request_holds_this_and_nothing_else(openai: Vendor, alias: str, model_id: str) -> None:
    assert sent(openai.server, "openai", as_registered(alias)) == {
        "model": model_id,
        "instructions": "the system prompt",
        "input": "the prompt",
        "max_output_tokens": 16000,
        "reasoning": {"effort": "medium"},
        "store": False,
        "service_tier": "default",
        "prompt_cache_options": {"mode": "explicit"},
        "stream": True,
    }


def test_a_chat_request_holds_this_and_nothing_else(compat: Vendor) -> None:
    assert sent(compat.server, "compat", REQUEST) == {
        "model": "model-1",
        "messages": [
            {"role": "system", "content": "the system prompt"},
            {"role": "user", "content": "the prompt"},
        ],
        "max_tokens": 4000,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_an_effort_of_its_own_is_sent(server: VendorServer, environment: pytest.MonkeyPatch) -> None:
    request = replace(REQUEST, settings={"effort": "low"})
    assert sent(server, "anthropic", request)["output_config"] == {"effort": "low"}
    assert sent(server, "openai", request)["reasoning"] == {"effort": "low"}
    assert sent(server, "compat", request)["reasoning_effort"] == "low"


def test_each_key_goes_to_its_own_host_only(vendor: Vendor, environment: pytest.MonkeyPatch) -> None:
    environment.setenv("OPENAI_ORG_ID", "org-mine")
    environment.setenv("OPENAI_PROJECT_ID", "proj-mine")
    vendor.call()
    headers = vendor.server.journal[-1].headers
    key = dict(zip(PROVIDERS, KEYS.values(), strict=True))[vendor.name]
    assert headers["authorization"] == f"Bearer {key}"
    told = " ".join(headers.values())
    assert [other for other in KEYS.values() if other in told] == [key]
    assert ("org-mine" in told, "proj-mine" in told) == ((vendor.name == "openai"),) * 2


def test_a_host_may_want_no_key(compat: Vendor, environment: pytest.MonkeyPatch) -> None:
    environment.delenv("CELLPROSE_COMPAT_API_KEY")
    assert compat.call().text == '{"q1": 42}'


def test_anthropic_takes_the_sdk_s_other_variable_too(anthropic: Vendor, environment: pytest.MonkeyPatch) -> None:
    environment.delenv("ANTHROPIC_API_KEY")
    environment.setenv("ANTHROPIC_AUTH_TOKEN", "token-0123456789")
    anthropic.call()
    assert anthropic.server.journal[-1].headers["authorization"] == "Bearer token-0123456789"


def test_an_ordinary_reply(vendor: Vendor) -> None:
    reply = vendor.call(Answer(text='Here: {"q1": "Zürich 🎉"}', model="model-1-2026-10"))
    assert (reply.text, reply.returned_model, reply.attempts) == ('Here: {"q1": "Zürich 🎉"}', "model-1-2026-10", 1)
    assert (reply.usage.input, reply.usage.output) == (100, 20)
    assert (reply.calls, reply.said) == ([], []) or (reply.calls, reply.said) == ((), ())


def test_usage_is_kept_verbatim(anthropic: Vendor, openai: Vendor, compat: Vendor) -> None:
    messages = {
        "input_tokens": 900,
        "output_tokens": 30,
        "output_tokens_details": {"thinking_tokens": 12},
        "service_tier": "standard",
        "something_new": {"kind": "x", "n": 3},
    }
    responses = {
        "input_tokens": 900,
        "input_tokens_details": {"cached_tokens": 50, "cache_write_tokens": 0},
        "output_tokens": 30,
        "output_tokens_details": {"reasoning_tokens": 12},
        "total_tokens": 930,
        "something_new": [1, None],
    }
    chat = {"prompt_tokens": 900, "completion_tokens": 30, "total_tokens": 930, "something_new": {"n": 3}}
    for vendor, raw in ((anthropic, messages), (openai, responses), (compat, chat)):
        assert vendor.call(Answer(usage=raw)).usage.raw == raw


def test_thinking_is_no_part_of_the_answer(anthropic: Vendor) -> None:
    assert anthropic.call(Answer(thinking='Let me see {"q1": 7}')).text == '{"q1": 42}'


def test_a_host_that_tells_no_usage_leaves_it_unknown(compat: Vendor) -> None:
    def without_usage(handler: Any, body: dict[str, Any]) -> None:
        from tests.providers.vendor_server import frames

        handler.begin_stream()
        for frame in frames(handler.path, {**body, "stream_options": {}}, Answer()):
            handler.chunk(frame)
        handler.chunk(b"")

    reply = compat.call(without_usage)
    assert reply.text == '{"q1": 42}'
    assert (reply.usage.input, reply.usage.output, reply.usage.raw) == (None, None, None)


# --- counting --------------------------------------------------------------------------------------------------------


def test_anthropic_counts_system_and_prompt_itself(anthropic: Vendor) -> None:
    anthropic.server.count = 4321
    counted = anthropic.provider.counted_tokens(as_registered("haiku55"))  # type: ignore[attr-defined]
    assert (counted.counter, counted.n) == ("anthropic count_tokens", 4321)
    assert anthropic.server.journal[-1].path == COUNT
    assert anthropic.server.journal[-1].body == {
        "model": "claude-haiku-5-5",
        "system": "the system prompt",
        "messages": [{"role": "user", "content": "the prompt"}],
    }


@pytest.mark.parametrize(
    "play",
    [
        status(404),
        status(401),
        status(429, headers={"retry-after": "7200"}),
        html(),
        status(200, {"input_tokens": "x"}),
    ],
    ids=["404", "401", "429", "html", "no-number"],
)
def test_a_count_that_fails_is_no_count(anthropic: Vendor, play: Any) -> None:
    anthropic.server.count = play
    assert anthropic.provider.counted_tokens(REQUEST) is None  # type: ignore[attr-defined]


def test_openai_is_counted_here_and_open_weights_not_at_all(openai: Vendor, compat: Vendor) -> None:
    counted = openai.provider.counted_tokens(REQUEST)  # type: ignore[attr-defined]
    assert counted.counter.endswith(" o200k_base")
    assert counted.n == 3 + 2  # "the system prompt", "the prompt": each word is one token
    assert compat.provider.counted_tokens(REQUEST) is None  # type: ignore[attr-defined]
    assert openai.server.journal == []


# --- an agent's turns ------------------------------------------------------------------------------------------------

BASH = Tool("bash", "Runs a command", {"type": "object", "properties": {"command": {"type": "string"}}})
LS = ("call-1", "bash", {"command": "ls"})


def two_turns(vendor: Vendor) -> tuple[Reply, dict[str, Any]]:
    first = replace(REQUEST, tools=[BASH])
    vendor.server.script = [Answer(text="", thinking="hm", tool=LS), Answer()]
    provider = vendor.provider
    reply = provider.call(first)
    assert [(call.id, call.name) for call in reply.calls] == [("call-1", "bash")]
    assert reply.calls[0] == ToolCall("call-1", "bash", '{"command": "ls"}')
    done = Turn(reply.said, [ToolResult("call-1", "book.xlsx")])
    assert provider.call(replace(first, turns=[done])).text == '{"q1": 42}'
    return reply, vendor.server.bodies[-1]


def test_messages_turns_are_resent_with_thinking_and_its_signature(anthropic: Vendor) -> None:
    _, body = two_turns(anthropic)
    assert body["tools"] == [{"name": "bash", "description": "Runs a command", "input_schema": dict(BASH.parameters)}]
    assert body["messages"] == [
        {"role": "user", "content": "the prompt"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s1"},
                {"type": "tool_use", "id": "call-1", "name": "bash", "input": {"command": "ls"}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "call-1", "content": "book.xlsx"}],
        },
    ]
    assert "cache_control" not in str(body)


def test_responses_turns_are_resent_with_sealed_reasoning(openai: Vendor) -> None:
    _, body = two_turns(openai)
    assert body["store"] is False
    assert body["include"] == ["reasoning.encrypted_content"]
    kinds = [item.get("type", item.get("role")) for item in body["input"]]
    assert kinds == ["user", "reasoning", "function_call", "function_call_output"]
    assert body["input"][1]["encrypted_content"] == "sealed"
    assert body["input"][3] == {"type": "function_call_output", "call_id": "call-1", "output": "book.xlsx"}


def test_chat_turns_are_resent_as_messages_with_the_reasoning_of_their_calls(compat: Vendor) -> None:
    _, body = two_turns(compat)
    function = {"name": "bash", "description": "Runs a command", "parameters": dict(BASH.parameters)}
    assert body["tools"] == [{"type": "function", "function": function}]
    assert body["messages"] == [
        {"role": "system", "content": "the system prompt"},
        {"role": "user", "content": "the prompt"},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "hm",
            "tool_calls": [
                {"id": "call-1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "call-1", "content": "book.xlsx"},
    ]


def test_tools_and_turns_are_part_of_what_a_model_is_asked() -> None:
    with_tools = replace(REQUEST, tools=[BASH])
    with_turns = replace(with_tools, turns=[Turn([{"type": "text", "text": "a"}])])
    assert len({REQUEST.inputs_id, with_tools.inputs_id, with_turns.inputs_id}) == 3

"""Agents as their users start them: the real SDKs over real HTTP, turn by turn.

What goes over the wire is held against bodies written down from the vendors' documentation, not from our providers:
"Tool use with Claude" and "Extended thinking" of the Messages API, "Function calling" and "Reasoning" of the Responses
API. The streams of the first turns are as these pages show them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pytest_cellprose.questions.prompts import AGENT_SYSTEM, CORRECTION
from pytest_cellprose.sandbox.tools import TOOLS
from tests.integration.conftest import Bench, one_process
from tests.integration.test_live_models import AT_ONCE, IN_ORDER, INTERRUPTED, committed
from tests.providers.vendor_server import MESSAGES, RESPONSES, Answer, Play, VendorServer, error, status, stream

pytestmark = one_process("each turn is sent once and looked at")

ONE = ("--cellprose-encodings=agent_xlsx", "--cellprose-workbooks=alpha", "--cellprose-sandbox=unsafe", IN_ORDER)
VENDORS = ("haiku55", "gpt6luna")
both = pytest.mark.parametrize("model", VENDORS)

ANSWER = '{"q1": -1, "q2": "Model!B5"}'
LS = ("call_1", "bash", '{"command": "ls"}')
ECHO = ("call_2", "bash", '{"command": "echo 42"}')
PROMPT = (
    "The workbook is the file workbook.xlsx in your working directory, an Excel workbook.\n\nQuestions:\nq1 [Model] "
)


def tokens(model: str, sent: int, got: int, *, thought: int = 0, cached: int = 0) -> Mapping[str, Any]:
    """Usage as the model's vendor tells it; `sent` with what is cached, `got` with what is thought."""
    if model == "haiku55":
        cache = {"cache_read_input_tokens": cached} if cached else {}
        details = {"thinking_tokens": thought}
        return {"input_tokens": sent - cached, **cache, "output_tokens": got, "output_tokens_details": details}
    return {
        "input_tokens": sent,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
        "output_tokens": got,
        "output_tokens_details": {"reasoning_tokens": thought},
        "total_tokens": sent + got,
    }


def looks(model: str = "haiku55", sent: int = 1000, got: int = 40, **fields: Any) -> Answer:
    """A turn that lists the working directory; it costs 120,000 nano-dollars."""
    return Answer(**{"text": "", "thinking": "hm", "tools": [LS], "usage": tokens(model, sent, got), **fields})


def played(bench: Bench, server: VendorServer, model: str, *script: Play | Answer, more: Sequence[str] = ()) -> Any:
    """The exit code of a run of one cell, whose model says this."""
    server.script = list(script)
    return bench.run("--cellprose-live", f"--cellprose-models={model}", *ONE, *more).ret


def the_record(bench: Bench) -> dict[str, Any]:
    (record,) = bench.records()
    return record


def ending(record: Mapping[str, Any]) -> tuple[str, str | None]:
    return record["outcome"]["status"], record["outcome"]["kind"]


def sent_after_prompt(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    items = body["messages"] if "messages" in body else body["input"]
    return [] if isinstance(items, str) else list(items[1:])  # Responses takes a prompt alone as text


# --- what goes over the wire -----------------------------------------------------------------------------------------


def events(*told: dict[str, Any]) -> Play:
    """A stream of these events."""

    def play(handler: Any, body: dict[str, Any]) -> None:
        handler.begin_stream()
        for event in told:
            handler.chunk(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        handler.chunk(b"")

    return play


def block(index: int, begun: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    told = [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    end = {"type": "content_block_stop", "index": index}
    return [{"type": "content_block_start", "index": index, "content_block": begun}, *told, end]


MESSAGES_TURN = events(
    {
        "type": "message_start",
        "message": {
            "id": "msg_01",
            "type": "message",
            "role": "assistant",
            "content": [],
            "model": "claude-haiku-5-5",
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 1000, "output_tokens": 2},
        },
    },
    *block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "Two "},
        {"type": "thinking_delta", "thinking": "looks."},
        {"type": "signature_delta", "signature": "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pk="},
    ),
    *block(1, {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIw"}),
    {"type": "ping"},
    *block(
        2,
        {"type": "text", "text": ""},
        {"type": "text_delta", "text": "Let me "},
        {"type": "text_delta", "text": "look."},
    ),
    *block(
        3,
        {"type": "tool_use", "id": "toolu_01", "name": "bash", "input": {}},
        {"type": "input_json_delta", "partial_json": ""},
        {"type": "input_json_delta", "partial_json": '{"comm'},
        {"type": "input_json_delta", "partial_json": 'and": "ls"}'},
    ),
    *block(
        4,
        {"type": "tool_use", "id": "toolu_02", "name": "bash", "input": {}},
        {"type": "input_json_delta", "partial_json": '{"command": "echo 42"}'},
    ),
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": {"output_tokens": 40, "output_tokens_details": {"thinking_tokens": 8}},
    },
    {"type": "message_stop"},
)

MESSAGES_SAID = {
    "role": "assistant",
    "content": [
        {
            "type": "thinking",
            "thinking": "Two looks.",
            "signature": "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pk=",
        },
        {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIw"},
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "toolu_01", "name": "bash", "input": {"command": "ls"}},
        {"type": "tool_use", "id": "toolu_02", "name": "bash", "input": {"command": "echo 42"}},
    ],
}


def test_messages_turn_by_turn(bench: Bench, server: VendorServer) -> None:
    second = Answer(text="", thinking="And?", tools=[("toolu_03", "bash", '{"command": "echo 43"}')])
    assert played(bench, server, "haiku55", MESSAGES_TURN, second, Answer(text=ANSWER)) == 0
    assert {seen.path for seen in server.journal} == {MESSAGES}
    first, *later = server.bodies
    said = {
        "model": "claude-haiku-5-5",
        "max_tokens": 16000,
        "system": AGENT_SYSTEM,
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "medium"},
        "tools": [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters} for tool in TOOLS
        ],
        "stream": True,
    }
    prompt = first["messages"][0]["content"]
    assert prompt.startswith(PROMPT)
    asked = {"role": "user", "content": prompt}
    assert first == {**said, "messages": [asked]}
    told = [step["result"]["head"] for step in the_record(bench)["tool_trace"]]
    assert ["workbook.xlsx" in told[0], "42" in told[1], "43" in told[2]] == [True] * 3
    two = [
        asked,
        MESSAGES_SAID,
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_01", "content": told[0]},
                {"type": "tool_result", "tool_use_id": "toolu_02", "content": told[1]},
            ],
        },
    ]
    three = [
        *two,
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "And?", "signature": "s1"},
                {"type": "tool_use", "id": "toolu_03", "name": "bash", "input": {"command": "echo 43"}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_03", "content": told[2]}]},
    ]
    assert later == [{**said, "messages": two}, {**said, "messages": three}]
    assert "cache_control" not in json.dumps(server.bodies)
    record = the_record(bench)
    assert [turn["reply"] for turn in record["turns"]] == ["Let me look.", "", None]
    assert (record["turns"][0]["input"], record["turns"][0]["output"]) == (1000, 40)
    assert record["turns"][0]["reasoning"] == 8


REASONING = {
    "id": "rs_01",
    "type": "reasoning",
    "summary": [],
    "encrypted_content": "gAAAAABoISQ24OyVRYbkYfukdJoqdzWT-3uiErKInHDC8Gf3Pfs=",
}
WORDS = {
    "id": "msg_01",
    "type": "message",
    "status": "completed",
    "role": "assistant",
    "content": [{"type": "output_text", "annotations": [], "logprobs": [], "text": "Let me look."}],
}
CALLS = [
    {
        "id": f"fc_0{number}",
        "type": "function_call",
        "status": "completed",
        "arguments": json.dumps({"command": command}),
        "call_id": f"call_0{number}",
        "name": "bash",
    }
    for number, command in ((1, "ls"), (2, "echo 42"))
]
RESPONSE = {"id": "resp_01", "object": "response", "created_at": 1, "model": "gpt-6-luna", "error": None, "tools": []}
RESPONSES_TURN = events(
    {"type": "response.created", "response": {**RESPONSE, "status": "in_progress", "output": [], "usage": None}},
    {"type": "response.output_item.added", "output_index": 0, "item": {**REASONING, "encrypted_content": "gAAA"}},
    {"type": "response.output_item.done", "output_index": 0, "item": REASONING},
    {"type": "response.output_item.added", "output_index": 1, "item": {**WORDS, "status": "in_progress"}},
    {"type": "response.output_text.delta", "item_id": "msg_01", "output_index": 1, "content_index": 0, "delta": "Let "},
    {"type": "response.output_text.delta", "item_id": "msg_01", "output_index": 1, "content_index": 0, "delta": "me"},
    {"type": "response.output_item.done", "output_index": 1, "item": WORDS},
    {"type": "response.output_item.added", "output_index": 2, "item": {**CALLS[0], "arguments": ""}},
    {"type": "response.function_call_arguments.delta", "item_id": "fc_01", "output_index": 2, "delta": '{"command"'},
    {"type": "response.function_call_arguments.done", "item_id": "fc_01", "output_index": 2, "arguments": "{}"},
    {
        "type": "response.completed",
        "response": {
            **RESPONSE,
            "status": "completed",
            "output": [REASONING, WORDS, *CALLS],
            "usage": tokens("gpt6luna", 1000, 40, thought=8),
        },
    },
)


def test_responses_turn_by_turn(bench: Bench, server: VendorServer) -> None:
    second = Answer(text="", tools=[("call_03", "bash", '{"command": "echo 43"}')])
    assert played(bench, server, "gpt6luna", RESPONSES_TURN, second, Answer(text=ANSWER)) == 0
    assert {seen.path for seen in server.journal} == {RESPONSES}
    first, *later = server.bodies
    said = {
        "model": "gpt-6-luna",
        "instructions": AGENT_SYSTEM,
        "max_output_tokens": 16000,
        "reasoning": {"effort": "medium"},
        "prompt_cache_options": {"mode": "explicit"},
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "service_tier": "default",
        "tools": [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                "strict": False,
            }
            for tool in TOOLS
        ],
        "stream": True,
    }
    assert first["input"].startswith(PROMPT)
    assert first == {**said, "input": first["input"]}
    told = [step["result"]["head"] for step in the_record(bench)["tool_trace"]]
    assert ["workbook.xlsx" in told[0], "42" in told[1], "43" in told[2]] == [True] * 3
    two = [
        {"role": "user", "content": first["input"]},
        REASONING,
        WORDS,
        *CALLS,
        {"type": "function_call_output", "call_id": "call_01", "output": told[0]},
        {"type": "function_call_output", "call_id": "call_02", "output": told[1]},
    ]
    third_call = {"call_id": "call_03", "name": "bash", "arguments": '{"command": "echo 43"}'}
    three = [
        *two,
        {"id": "r1", "type": "reasoning", "summary": [], "encrypted_content": "sealed"},
        {"id": "f1", "type": "function_call", "status": "completed", **third_call},
        {"type": "function_call_output", "call_id": "call_03", "output": told[2]},
    ]
    assert later == [{**said, "input": two}, {**said, "input": three}]
    record = the_record(bench)
    assert [turn["reply"] for turn in record["turns"]] == ["Let me look.", "", None]
    assert (record["turns"][0]["input"], record["turns"][0]["output"]) == (1000, 40)
    assert record["turns"][0]["reasoning"] == 8


# --- what it costs ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "sent", "costs"),
    [
        # $0.10 and $0.50 a million; above 100,000 tokens of input $0.50 and $2.50
        ("haiku55", (60_000, 100_000, 100_001), (6_010_000, 10_010_000, 50_050_500)),
        # the same; above 272,000 $0.20 and $0.75
        ("gpt6luna", (60_000, 272_000, 272_001), (6_010_000, 27_210_000, 54_415_200)),
    ],
)
def test_each_turn_costs_what_its_own_tier_says(
    bench: Bench, server: VendorServer, model: str, sent: tuple[int, ...], costs: tuple[int, ...]
) -> None:
    told = [tokens(model, each, 20, thought=place) for place, each in enumerate(sent, 1)]
    script = [looks(usage=told[0]), looks(usage=told[1]), Answer(text=ANSWER, usage=told[2])]
    assert played(bench, server, model, *script) == 0
    record = the_record(bench)
    assert tuple(turn["input"] for turn in record["turns"]) == sent
    assert tuple(turn["cost_nanousd"] for turn in record["turns"]) == costs
    usage = record["usage"]
    assert (usage["input"], usage["output"], usage["reasoning"]) == (sum(sent), 60, 6)
    assert record["cost_nanousd"] == record["cost_as_billed_nanousd"] == sum(costs)
    assert record["scores"]["q2"] == 1.0
    vendor = "anthropic" if model == "haiku55" else "openai"
    ledger = bench.written("ledger.json")
    assert ledger["vendors"][vendor] == {"spent": sum(costs), "assumed": 0, "calls": 1, "unreported": 0}
    assert ledger["open"] == {}


def test_tokens_that_openai_took_from_its_cache_are_listed_and_billed_apart(bench: Bench, server: VendorServer) -> None:
    cached = tokens("gpt6luna", 2000, 20, cached=1500)
    assert played(bench, server, "gpt6luna", looks("gpt6luna"), Answer(text=ANSWER, usage=cached)) == 0
    record = the_record(bench)
    assert [turn["cached"] for turn in record["turns"]] == [0, 1500]
    assert (record["usage"]["cached"], record["cost_nanousd"]) == (1500, 120_000 + 210_000)
    assert record["cost_as_billed_nanousd"] == 120_000 + 500 * 100 + 1500 * 10 + 20 * 500


def test_a_cache_that_is_read_on_a_later_turn_is_a_leak(bench: Bench, server: VendorServer) -> None:
    leak = Answer(text=ANSWER, usage=tokens("haiku55", 2000, 20, cached=1500))
    assert played(bench, server, "haiku55", looks(), leak) == 0
    record = the_record(bench)
    assert ending(record) == ("failure", "cache_leak")
    assert record["outcome"]["detail"].startswith("1500 tokens read from a cache")
    assert [turn["cost_nanousd"] for turn in record["turns"]] == [120_000, 210_000]
    assert (record["cost_nanousd"], record["usage"]["input"]) == (330_000, 3000)
    assert set(record["scores"].values()) == {0.0}


# --- how a later turn may end ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "fields", "kind"),
    [
        ("haiku55", {"stop": "max_tokens"}, "truncated"),
        ("haiku55", {"stop": "max_tokens", "tools": [ECHO]}, "truncated"),
        ("haiku55", {"stop": "refusal"}, "refused"),
        ("haiku55", {"stop": "model_context_window_exceeded"}, "context_exceeded"),
        ("gpt6luna", {"stop": "incomplete/max_output_tokens"}, "truncated"),
        ("gpt6luna", {"stop": "incomplete/max_output_tokens", "tools": [ECHO]}, "truncated"),
        ("gpt6luna", {"stop": "incomplete/content_filter"}, "refused"),
        ("gpt6luna", {"stop": "incomplete/steered"}, "truncated"),
        ("gpt6luna", {"refusal": "I will not"}, "refused"),
    ],
)
def test_a_later_turn_that_breaks_off_is_that_failure_with_all_it_cost(
    bench: Bench, server: VendorServer, model: str, fields: dict[str, Any], kind: str
) -> None:
    broke = Answer(**{"text": ANSWER, "usage": tokens(model, 2000, 20), **fields})
    assert played(bench, server, model, looks(model), broke) == 0
    record = the_record(bench)
    assert ending(record) == ("failure", kind)
    assert (len(server.bodies), record["cost_nanousd"]) == (2, 120_000 + 210_000)
    assert set(record["scores"].values()) == {0.0}
    assert [step["result"] for step in record["tool_trace"]][1:] == [None] * len(fields.get("tools", []))


@pytest.mark.parametrize(
    ("model", "play"),
    [
        ("haiku55", error(413, type="request_too_large")),
        ("gpt6luna", error(400, type="invalid_request_error", code="context_length_exceeded")),
    ],
)
def test_a_history_that_grew_too_long_is_the_model_s_failure(
    bench: Bench, server: VendorServer, model: str, play: Play
) -> None:
    assert played(bench, server, model, looks(model), play) == 0
    record = the_record(bench)
    assert (ending(record), record["cost_nanousd"]) == (("failure", "context_exceeded"), 120_000)
    assert (len(record["turns"]), len(server.bodies)) == (2, 2)


@both
def test_a_key_that_is_refused_on_a_later_turn_ends_the_run_and_keeps_what_was_paid(
    bench: Bench, server: VendorServer, model: str
) -> None:
    assert played(bench, server, model, looks(model), error(401, type="authentication_error")) == INTERRUPTED
    record = the_record(bench)
    assert (ending(record), record["cost_nanousd"]) == (("fault", "authentication"), 120_000)
    assert bench.written("ledger.json")["open"] == {}


@pytest.mark.parametrize("stop", ["end_turn", "stop_sequence", "brand_new"])
def test_calls_are_answered_whatever_the_reason_that_a_turn_ended(
    bench: Bench, server: VendorServer, stop: str
) -> None:
    assert played(bench, server, "haiku55", looks(), looks(stop=stop), Answer(text=ANSWER, stop=stop)) == 0
    record = the_record(bench)
    assert (ending(record), len(record["turns"]), record["scores"]["q2"]) == (("scored", None), 3, 1.0)
    assert [step["exit_code"] for step in record["tool_trace"]] == [0, 0]


def test_a_turn_that_pauses_is_sent_back_and_goes_on(bench: Bench, server: VendorServer) -> None:
    paused = Answer(text="So far", thinking="hm", stop="pause_turn")
    assert played(bench, server, "haiku55", looks(), paused, Answer(text=ANSWER)) == 0
    before, last = map(sent_after_prompt, server.bodies[1:])
    said = [{"type": "thinking", "thinking": "hm", "signature": "s1"}, {"type": "text", "text": "So far"}]
    assert last == [*before, {"role": "assistant", "content": said}]
    record = the_record(bench)
    assert (ending(record), [turn["reply"] for turn in record["turns"]]) == (("scored", None), ["", "So far", None])


@both
def test_an_empty_reply_is_corrected_once(bench: Bench, server: VendorServer, model: str) -> None:
    empty = Answer(text="", thinking="hm", usage=tokens(model, 1000, 10))
    assert played(bench, server, model, looks(model), empty, Answer(text=ANSWER)) == 0
    before, last = map(sent_after_prompt, server.bodies[1:])
    words: Any = [{"type": "text", "text": CORRECTION}] if model == "haiku55" else CORRECTION
    # thoughts that nothing follows are taken back by neither vendor
    assert last == [*before, {"role": "user", "content": words}]
    assert ending(the_record(bench)) == ("scored", None)


@both
def test_a_second_empty_reply_is_no_answer(bench: Bench, server: VendorServer, model: str) -> None:
    empty = Answer(text="", usage=tokens(model, 1000, 0))
    assert played(bench, server, model, looks(model), empty, empty) == 0
    record = the_record(bench)
    assert (ending(record), len(server.bodies)) == (("failure", "no_answer"), 3)
    assert record["cost_nanousd"] == 120_000 + 100_000 + 100_000


@both
def test_a_storm_on_a_later_turn_is_waited_out(bench: Bench, server: VendorServer, model: str) -> None:
    storm = [status(code, headers=AT_ONCE) for code in (429, 529, 429)]
    assert played(bench, server, model, looks(model), *storm, Answer(text=ANSWER)) == 0
    record = the_record(bench)
    assert (ending(record), record["attempts"], record["limited"]) == (("scored", None), 5, 2)
    assert len(record["turns"]) == 2
    assert all(body == server.bodies[1] for body in server.bodies[1:])


@both
def test_a_storm_on_a_later_turn_that_does_not_end_is_a_fault_that_keeps_the_first(
    bench: Bench, server: VendorServer, model: str
) -> None:
    storm = [status(429, headers=AT_ONCE)] * 4
    assert played(bench, server, model, looks(model), *storm, looks(model), Answer(text=ANSWER)) == 0
    fault, again = bench.records()
    assert (ending(fault), fault["attempts"], fault["limited"]) == (("fault", "api_error"), 5, 4)
    assert fault["cost_nanousd"] == 120_000
    assert fault["assumed_nanousd"] > 120_000
    assert ending(again) == ("scored", None)
    assert len(sent_after_prompt(server.bodies[-1])) == len(sent_after_prompt(server.bodies[1]))


CUT = [pytest.param(stream(ends_before=2), id="ends"), pytest.param(stream(dropped_before=2), id="is-dropped")]


@both
@pytest.mark.parametrize("cut", CUT)
def test_a_later_turn_whose_stream_is_cut_is_a_fault_and_its_cell_is_played_again(
    bench: Bench, server: VendorServer, model: str, cut: Play
) -> None:
    assert played(bench, server, model, looks(model), cut, looks(model), Answer(text=ANSWER)) == 0
    fault, again = bench.records()
    assert ending(fault)[0] == "fault"
    assert ending(fault)[1] in ("cut_stream", "transport")
    assert (fault["accuracy"], len(fault["turns"])) == (None, 2)
    assert fault["assumed_nanousd"] is None or fault["assumed_nanousd"] > 120_000
    assert (ending(again), len(again["turns"])) == (("scored", None), 2)
    assert sent_after_prompt(server.bodies[2]) == []  # from its beginning
    vendor = bench.written("ledger.json")["vendors"]["anthropic" if model == "haiku55" else "openai"]
    assert vendor["calls"] == 2
    assert vendor["spent"] + vendor["assumed"] > 120_000 + again["cost_nanousd"]


def test_tokens_that_were_told_before_a_cut_count(bench: Bench, server: VendorServer) -> None:
    cut = stream(Answer(text=ANSWER, usage=tokens("haiku55", 2000, 20)), ends_before=1)
    assert played(bench, server, "haiku55", looks(), cut, looks(), Answer(text=ANSWER)) == 0
    fault, _ = bench.records()
    assert ending(fault) == ("fault", "cut_stream")
    assert [turn["cost_nanousd"] for turn in fault["turns"]] == [120_000, 210_000]
    assert (fault["cost_nanousd"], fault["assumed_nanousd"]) == (330_000, None)


@both
def test_in_a_final_run_it_is_a_failure_that_keeps_what_it_cost(bench: Bench, server: VendorServer, model: str) -> None:
    committed(bench)
    server.script = [looks(model), stream(ends_before=2)]
    final = ("--cellprose-final", "--cellprose-reps=1", "--cellprose-allow-dirty")
    result = bench.run(*final, f"--cellprose-models={model}", *ONE)
    assert result.ret == 0
    record = the_record(bench)
    assert ending(record) == ("failure", "api_error")
    assert record["outcome"]["detail"].startswith("cut_stream: ")
    assert (set(record["scores"].values()), len(server.bodies)) == ({0.0}, 2)
    assert record["turns"][0]["cost_nanousd"] == 120_000
    assert record["cost_nanousd"] == 120_000
    assert record["assumed_nanousd"] > 120_000

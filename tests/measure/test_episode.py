"""Episodes: how they go on, what ends them, what they cost, and what is kept of them."""

# ruff: noqa: F811 (fixtures of another folder)

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import pytest

from pytest_cellprose.measure.episode import Limits, Played, play
from pytest_cellprose.measure.turns import clipped, expected_input, recorded_turns, tool_trace, totals
from pytest_cellprose.models.pricing import cost_nanousd
from pytest_cellprose.providers.base import ModelFailure, PathFault, Reply, Request, Tool, ToolCall, Turn
from pytest_cellprose.questions.prompts import CORRECTION
from pytest_cellprose.record.record import CellId, Git, ModelUsed, Prices, Record, Usage
from pytest_cellprose.suites.base import PlayedCall, PlayedTurn
from tests.providers.conftest import Vendor, anthropic, compat, environment, openai, server, vendor  # noqa: F401
from tests.providers.vendor_server import Answer, status

PRICES = Prices(input="1", output="5", cache_read="0.1")
"""A thousand nano-dollars a token in, five thousand out."""
TIERED = Prices(input="1", output="5", above=1000, input_above="2", output_above="10")
ADD = Tool(
    "add",
    "Adds two numbers",
    {
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
)
SAY = Tool("say", "Says it", {"type": "object"})
ONE_SHOT = Request("model-1", "the system prompt", "the prompt", 4000)
ASKED = replace(ONE_SHOT, tools=[ADD, SAY])
FAR = Limits(turns=20)
TOLD = Usage(input=100, output=10)


class Sums:
    """A world that adds, and keeps what it was called with."""

    digest = "sums"

    def __init__(self, answer: Callable[[str, Mapping[str, Any]], Any] | None = None) -> None:
        self.called: list[tuple[str, Mapping[str, Any]]] = []
        self._answer = answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        self.called.append((name, arguments))
        told: str = str(sum(arguments.values())) if self._answer is None else self._answer(name, arguments)
        return told


class Scripted:
    """A model that says this; it keeps what it was asked."""

    def __init__(self, *script: Reply | ModelFailure | PathFault | Exception) -> None:
        self.requests: list[Request] = []
        self._script = list(script)

    def call(self, request: Request) -> Reply:
        self.requests.append(request)
        said = self._script.pop(0)
        if isinstance(said, Reply):
            return said
        raise said


def add(a: object, b: object, id: str = "c1") -> ToolCall:
    return ToolCall(id, "add", json.dumps({"a": a, "b": b}))


def said(text: str = "", *calls: ToolCall, usage: Usage = TOLD, **fields: Any) -> Reply:
    return Reply(text=text, usage=usage, calls=calls, said=[{"said": text}], **fields)


def played(*script: Any, limits: Limits = FAR, world: Any = None, prices: Prices = PRICES, **more: Any) -> Played:
    return play(Scripted(*script), ASKED, world or Sums(), limits, prices=prices, **more)


def ending(result: Played) -> tuple[str, str | None]:
    return result.outcome.status, result.outcome.kind


# --- one shot --------------------------------------------------------------------------------------------------------


def test_one_shot_is_one_call_with_the_very_request_whatever_the_limits() -> None:
    model = Scripted(said("42", returned_model="model-1-b", attempts=3, limited=2))
    result = play(model, ONE_SHOT, None, Limits(turns=0, nanousd=0, seconds=0), prices=PRICES)
    assert len(model.requests) == 1
    assert model.requests[0] is ONE_SHOT
    assert (ending(result), result.reply, result.returned_model) == (("scored", None), "42", "model-1-b")
    [turn] = result.turns
    summed = totals(result.turns)
    assert (summed.usage, summed.cost_nanousd) == (turn.usage, 100 * 1000 + 10 * 5000)
    assert (summed.attempts, summed.limited, summed.assumed_nanousd) == (3, 2, None)


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_reply_of_one_shot_is_left_to_its_check(text: str) -> None:
    model = Scripted(said(text))
    result = play(model, ONE_SHOT, None, FAR, prices=PRICES)
    assert (len(model.requests), ending(result), result.reply) == (1, ("scored", None), text)


def test_one_shot_that_says_no_usage_keeps_the_problem_and_the_vendor_s_object() -> None:
    result = play(Scripted(said("42", usage=Usage(input=5, raw={"in": 5}))), ONE_SHOT, None, FAR, prices=PRICES)
    summed = totals(result.turns)
    assert (summed.usage.problem, summed.usage.raw, summed.cost_nanousd) == ("half", {"in": 5}, None)
    assert summed.assumed_nanousd is None


@pytest.mark.parametrize("broke", [PathFault("transport", "gone"), PathFault("authentication", "no key", attempts=0)])
def test_one_shot_whose_path_breaks_is_that_fault(broke: PathFault) -> None:
    result = play(Scripted(broke), ONE_SHOT, None, FAR, prices=PRICES)
    assert (ending(result), result.outcome.detail) == (("fault", broke.kind), broke.detail)
    assert [turn.reply for turn in result.turns] == [None]
    summed = totals(result.turns)
    assert (summed.usage, summed.cost_nanousd, summed.attempts) == (Usage(), None, broke.attempts)


def test_a_provider_s_bug_comes_through() -> None:
    with pytest.raises(ZeroDivisionError):
        play(Scripted(ZeroDivisionError()), ONE_SHOT, None, FAR, prices=PRICES)


# --- turns -----------------------------------------------------------------------------------------------------------


def test_turns_go_on_until_a_reply_without_calls() -> None:
    model, world = Scripted(said("I add", add(1, 2)), said("", add(3, 4, "c2")), said("7")), Sums()
    result = play(model, ASKED, world, FAR, prices=PRICES)
    assert (ending(result), result.reply) == (("scored", None), "7")
    assert world.called == [("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": 4})]
    assert [len(request.turns) for request in model.requests] == [0, 1, 2]
    first, second = model.requests[-1].turns
    assert (first.said, [(done.id, done.text) for done in first.results]) == ([{"said": "I add"}], [("c1", "3")])
    assert [(done.id, done.text) for done in second.results] == [("c2", "7")]
    assert {request.inputs_id for request in model.requests[:1]} == {ASKED.inputs_id}


def test_calls_at_once_are_all_answered_in_their_order() -> None:
    calls = [add(n, n, f"c{n}") for n in range(1000)]
    model = Scripted(said("", *calls), said("done"))
    result = play(model, ASKED, Sums(), FAR, prices=PRICES)
    [turn] = model.requests[-1].turns
    assert [(done.id, done.text) for done in turn.results] == [(f"c{n}", str(2 * n)) for n in range(1000)]
    assert [made.result for made in result.turns[0].calls] == [str(2 * n) for n in range(1000)]


@pytest.mark.parametrize(
    ("name", "arguments", "problem", "told"),
    [
        ("add", "{", "no_object", "Expecting"),
        ("add", "", "no_object", "Expecting value"),
        ("add", "[1, 2]", "no_object", "an array"),
        ("add", "7", "no_object", "a number"),
        ("add", "null", "no_object", "null"),
        ("add", '{"a": NaN, "b": 1}', "no_object", "NaN"),
        ("add", '{"a": 1' + "0" * 5000 + ', "b": 1}', "no_object", "digits"),
        ("add", "[" * 100_000, "no_object", "nested"),
        ("say", '{"x": ' * 50_000 + "1" + "}" * 50_000, "no_object", "nested"),
        ("say", '{"x": "\\ud83d"}', "no_object", "surrogates"),
        ("add", '{"a": 1}', "misfit", "'b' is a required property"),
        ("add", '{"a": 1, "b": "2"}', "misfit", "not of type 'number'"),
        ("add", '{"a": 1, "b": 2, "c": 3}', "misfit", "'c' was unexpected"),
        ("add", json.dumps({"a": 1, "b": "x" * 1_000_000}), "misfit", "do not fit"),
        ("subtract", '{"a": 1, "b": 2}', "unknown_tool", "there is add, say"),
        ("", "{}", "unknown_tool", "there is add, say"),
        ("x\ud83d", "{}", "unknown_tool", "there is add, say"),
    ],
)
def test_what_is_wrong_with_a_call_is_its_answer(name: str, arguments: str, problem: str, told: str) -> None:
    world = Sums()
    model = Scripted(said("", ToolCall("c1", name, arguments), add(1, 2, "c2")), said("3"))
    result = play(model, ASKED, world, FAR, prices=PRICES)
    assert ending(result) == ("scored", None)
    wrong, right = model.requests[-1].turns[0].results
    assert wrong.text.startswith("Error: ")
    assert told in wrong.text
    assert len(wrong.text) < 1000
    assert (right.text, world.called) == ("3", [("add", {"a": 1, "b": 2})])
    assert [made.problem for made in result.turns[0].calls] == [problem, None]


def test_a_tool_is_to_have_a_schema_and_a_world_before_anything_is_sent() -> None:
    model = Scripted(said("3"))
    with pytest.raises(ValueError, match="'odd' are no JSON Schema"):
        play(model, replace(ASKED, tools=[Tool("odd", "", {"type": "strange"})]), Sums(), FAR, prices=PRICES)
    with pytest.raises(ValueError, match="world"):
        play(model, ASKED, None, FAR, prices=PRICES)
    assert model.requests == []


def test_what_a_tool_says_can_always_be_sent() -> None:
    world = Sums(lambda name, arguments: "a\ud83d")
    model = Scripted(replace(said("", add(1, 2)), said=[{"text": "b\ud83d"}]), said("3"))
    play(model, ASKED, world, FAR, prices=PRICES)
    [turn] = model.requests[-1].turns
    json.dumps([turn.said, turn.results[0].text], ensure_ascii=False).encode("utf-8")


def test_a_paused_turn_goes_back_and_goes_on() -> None:
    model = Scripted(said("Let me", paused=True), said("7"))
    result = play(model, ASKED, Sums(), FAR, prices=PRICES)
    assert (result.reply, model.requests[-1].turns) == ("7", (Turn([{"said": "Let me"}]),))


def test_every_turn_is_heard_before_its_tools_run() -> None:
    order: list[object] = []

    def answer(name: str, arguments: Mapping[str, Any]) -> str:
        order.append("tool")
        return "3"

    def heard(turn: PlayedTurn) -> None:
        order.append((turn.cost_nanousd, [made.result for made in turn.calls]))

    broke = ModelFailure("truncated", "max_tokens", said("I", usage=Usage(input=50, output=4)))
    played(said("", add(1, 2)), broke, world=Sums(answer), heard=heard)
    assert order == [(150_000, [None]), "tool", (70_000, [])]


# --- empty replies ---------------------------------------------------------------------------------------------------


def test_an_empty_reply_is_corrected_once() -> None:
    model = Scripted(said("", add(1, 2)), said(" \n"), said("", add(3, 4)), said("7"))
    result = play(model, ASKED, Sums(), FAR, prices=PRICES)
    assert (ending(result), result.reply, len(result.turns)) == (("scored", None), "7", 4)
    assert [turn.told for turn in model.requests[-1].turns] == ["", CORRECTION, ""]


def test_a_second_empty_reply_is_no_answer() -> None:
    result = played(said(""), said("", add(1, 2)), said(""))
    assert ending(result) == ("failure", "no_answer")
    assert totals(result.turns).usage.input == 300


# --- limits ----------------------------------------------------------------------------------------------------------


def test_the_turn_after_the_last_is_not_asked_and_the_last_one_s_tools_do_not_run() -> None:
    world = Sums()
    result = played(said("", add(1, 2)), said("", add(3, 4)), limits=Limits(turns=2), world=world)
    assert (ending(result), len(result.turns)) == (("failure", "turn_limit"), 2)
    assert len(world.called) == 1
    assert [[made.result for made in turn.calls] for turn in result.turns] == [["3"], [None]]


@pytest.mark.parametrize(
    ("last", "kind"),
    [(said(""), "no_answer"), (said("x", paused=True), "turn_limit"), (said("3"), None)],
)
def test_what_the_last_turn_allowed_may_be(last: Reply, kind: str | None) -> None:
    assert played(said("", add(1, 2)), last, limits=Limits(turns=2)).outcome.kind == kind


def test_a_turn_whose_input_alone_goes_beyond_the_budget_is_not_asked() -> None:
    # The first turn costs 150,000. The second is expected to send 100 + 10 tokens and the "3": 111,000.
    script = [said("", add(1, 2)), said("3")]
    assert ending(played(*script, limits=Limits(9, nanousd=261_000))) == ("scored", None)
    over = played(*script, limits=Limits(9, nanousd=260_999))
    assert (ending(over), len(over.turns)) == (("failure", "budget_exceeded"), 1)
    assert totals(over.turns).cost_nanousd == 150_000


def test_the_budget_knows_tiers() -> None:
    # 990 tokens in are below the tier and cost 1,000 each; the 1,001 that come next are above it and cost 2,000 each.
    first = said("", add(1, 2), usage=Usage(input=990, output=10))
    enough = 990 * 1000 + 10 * 5000 + 1001 * 2000
    second = said("3", usage=Usage(input=1001, output=1))
    result = played(first, second, prices=TIERED, limits=Limits(9, nanousd=enough))
    assert [turn.cost_nanousd for turn in result.turns] == [1_040_000, 1001 * 2000 + 10_000]
    assert totals(result.turns).cost_nanousd == 3_052_000
    assert played(first, prices=TIERED, limits=Limits(9, nanousd=enough - 1)).outcome.kind == "budget_exceeded"


def test_a_first_turn_that_is_too_dear_sends_nothing() -> None:
    model = Scripted(said("3"))
    result = play(model, ASKED, Sums(), Limits(9, nanousd=1), prices=PRICES)
    assert (ending(result), list(result.turns), model.requests) == (("failure", "budget_exceeded"), [], [])
    summed = totals(result.turns)
    assert (summed.usage, summed.cost_nanousd, summed.attempts) == (Usage(), None, 0)


def test_turns_that_tell_no_tokens_count_as_expected() -> None:
    silent = said("", add(1, 2), usage=Usage())
    result = played(*[silent] * 20, limits=Limits(20, nanousd=1_000_000))
    assert result.outcome.kind == "budget_exceeded"
    assert 1 < len(result.turns) < 20


def test_time_is_looked_at_between_tools_and_between_turns() -> None:
    def answer(name: str, arguments: Mapping[str, Any]) -> str:
        time.sleep(0.05)
        return "3"

    script = [said("", add(1, 2), add(3, 4, "c2"))]
    result = played(*script, world=Sums(answer), limits=Limits(9, seconds=0.04))
    assert ending(result) == ("fault", "time_out")
    assert [made.result for made in result.turns[0].calls] == ["3", None]
    single = played(said("", add(1, 2)), world=Sums(answer), limits=Limits(9, seconds=0.04))
    assert (ending(single), single.turns[0].calls[0].result) == (("fault", "time_out"), "3")


# --- what breaks later -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "broke",
    [
        PathFault("transport", "gone", attempts=4, limited=1),
        PathFault("cut_stream", "ended", Reply("half", usage=Usage(input=120), attempts=4, limited=1)),
        ModelFailure("context_exceeded", "HTTP 400", attempts=4, limited=1),
    ],
    ids=["transport", "cut", "too-long"],
)
def test_a_later_turn_that_breaks_keeps_those_before_it(broke: ModelFailure | PathFault) -> None:
    result = played(said("I add", add(1, 2)), said("", add(3, 4)), broke)
    assert ending(result) == ("fault" if isinstance(broke, PathFault) else "failure", broke.kind)
    assert [turn.answered for turn in result.turns] == [True, True, False]
    assert [made.result for turn in result.turns for made in turn.calls] == ["3", "7"]
    summed = totals(result.turns)
    assert (summed.usage, summed.cost_nanousd) == (Usage(input=200, output=20), 300_000)
    assert (summed.attempts, summed.limited) == (6, 1)
    # it may be billed all the same: at least for the 111 tokens that it was expected to send
    assert summed.assumed_nanousd is not None
    assert summed.assumed_nanousd >= 300_000 + 111_000


def test_a_later_turn_that_was_never_sent_costs_nothing() -> None:
    summed = totals(played(said("", add(1, 2)), PathFault("authentication", "no key", attempts=0)).turns)
    assert (summed.cost_nanousd, summed.assumed_nanousd) == (150_000, None)


def test_a_failure_with_tokens_adds_them() -> None:
    broke = ModelFailure("truncated", "max_tokens", said("I", usage=Usage(input=50, output=4)))
    result = played(said("", add(1, 2)), broke)
    assert (ending(result), result.reply) == (("failure", "truncated"), "I")
    assert (totals(result.turns).usage.output, totals(result.turns).cost_nanousd) == (14, 220_000)


def test_a_world_that_raises_is_a_fault_that_loses_no_turn_and_quotes_nothing() -> None:
    def answer(name: str, arguments: Mapping[str, Any]) -> str:
        raise KeyError("held-out text")

    result = played(said("", add(1, 2), add(3, 4)), world=Sums(answer))
    assert (ending(result), totals(result.turns).cost_nanousd) == (("fault", "world"), 150_000)
    assert "held-out" not in str(result.outcome)
    assert "add raised KeyError (test_episode.py:" in str(result.outcome.detail)
    assert isinstance(result.raised, KeyError)
    assert [made.result for made in result.turns[0].calls] == [None, None]


# --- totals ----------------------------------------------------------------------------------------------------------


def test_one_turn_without_usage_makes_the_whole_cost_unknown() -> None:
    for silent in (said("I add", add(1, 2), usage=Usage()), said("", add(1, 2), usage=Usage(input=100, output=0))):
        result = played(said("", add(5, 6)), silent, said("3"))
        summed = totals(result.turns)
        assert (summed.usage.input, summed.cost_nanousd, summed.cost_as_billed_nanousd) == (None, None, None)
        assert summed.usage.problem == ("missing" if silent.text else "zero")
        # two turns at 150,000, and what the silent one was expected to send: 110 tokens and "11"
        assert summed.assumed_nanousd is not None
        assert summed.assumed_nanousd >= 300_000 + 111_000


def turn(usage: Usage, **fields: Any) -> PlayedTurn:
    cost = None if usage.input is None or usage.output is None else cost_nanousd(PRICES, usage.input, usage.output)
    return PlayedTurn("", usage, cost_nanousd=cost, cost_as_billed_nanousd=cost, **fields)


def test_totals_are_sums_and_a_detail_that_one_turn_left_out_is_unknown() -> None:
    turns = [
        turn(Usage(input=100, cached=40, output=10, reasoning=3, raw={"n": 1}), attempts=2, limited=1),
        turn(Usage(input=200, cached=0, output=20, raw={"n": 2}), attempts=3, limited=2),
    ]
    summed = totals(turns)
    assert summed.usage == Usage(input=300, cached=40, output=30, reasoning=None)
    assert (summed.cost_nanousd, summed.attempts, summed.limited) == (150_000 + 300_000, 5, 3)


def test_what_is_expected_begins_at_the_last_turn_that_told_its_tokens() -> None:
    turns = [turn(Usage(input=500, output=50)), turn(Usage()), turn(Usage())]
    request = replace(ASKED, turns=[Turn([], told="one"), Turn([], told="two"), Turn([], told="three")])
    assert expected_input(request, turns) == 500 + 50 + 3  # each word is one token of o200k_base
    assert expected_input(replace(ONE_SHOT, turns=()), ()) == 5  # "the system prompt", "the prompt"


# --- what is kept ----------------------------------------------------------------------------------------------------


def masked(value: Any) -> Any:
    return json.loads(json.dumps(value).replace("sk-secret", "KEY"))


def test_a_trace_has_every_call_and_no_half_of_a_key() -> None:
    long = "x" * 1996 + "sk-secret" + "y" * 3000  # the key lies across the place where the text is cut
    turns: Sequence[PlayedTurn] = [
        PlayedTurn("sk-secret 1", Usage(input=1, output=1, raw={"k": "sk-secret"}), [PlayedCall(add(1, 2), long)]),
        PlayedTurn("end", Usage(input=2, output=2), [PlayedCall(ToolCall("c", "n" * 500, "{"), None, "unknown_tool")]),
    ]
    first, second = tool_trace(turns, masked)
    assert (first.turn, first.name, first.arguments.head) == (1, "add", '{"a": 1, "b": 2}')
    assert first.result is not None
    assert first.result.head + first.result.tail == "x" * 1996 + "KEYy" + "y" * 2000
    assert first.result.left_out == 1996 + 3 + 3000 - 4000
    assert (second.turn, len(second.name), second.result, second.problem) == (2, 100, None, "unknown_tool")
    kept = recorded_turns(turns, masked)
    assert [(one.reply, one.input, one.raw) for one in kept] == [("KEY 1", 1, {"k": "KEY"}), (None, 2, None)]


def test_a_record_keeps_a_trace_and_one_shot_has_no_such_key() -> None:
    result = played(said("I add", add(1, 2)), said("3"))
    fields: dict[str, Any] = {
        "run": "r",
        "git": Git(),
        "cell": CellId(model="m", encoding="e", workbook="w", repeat=1),
        "set": "development",
        "encoding_version": "1",
        "inputs_id": "",
        "prompt_sha256": "",
        "model": ModelUsed(requested="m"),
        "prices": PRICES,
        "usage": totals(result.turns).usage,
        "started": "2026-10-01T00:00:00.000Z",
        "seconds": 0.0,
        "outcome": result.outcome,
    }
    one_shot = Record(**fields).model_dump(mode="json")
    assert "tool_trace" not in one_shot
    assert one_shot["turns"] is None
    kept = Record(**fields, turns=recorded_turns(result.turns, masked), tool_trace=tool_trace(result.turns, masked))
    assert Record.model_validate_json(kept.model_dump_json()) == kept
    # what was written before turns had a cost can be read
    older = Record.model_validate({**one_shot, "turns": [{"input": 1, "output": 2, "raw": None}]})
    assert [(one.input, one.cost_nanousd) for one in older.turns or ()] == [(1, None)]


@pytest.mark.parametrize("length", [0, 1, 3999, 4000, 4001, 10_000])
def test_a_clip_tells_how_much_it_left_out(length: int) -> None:
    text = "".join(chr(0x4E00 + n) for n in range(length))
    clip = clipped(text)
    assert len(clip.head) + clip.left_out + len(clip.tail) == length
    assert text.startswith(clip.head)
    assert text.endswith(clip.tail)
    assert (clip.left_out == 0) == (length <= 4000)


# --- over real HTTP --------------------------------------------------------------------------------------------------


def over_http(vendor: Vendor, *script: Any, limits: Limits = FAR, world: Sums | None = None) -> Played:
    vendor.server.script = list(script)
    return play(vendor.provider, ASKED, world or Sums(), limits, prices=PRICES)


def test_an_episode_with_each_vendor(vendor: Vendor) -> None:
    result = over_http(
        vendor,
        Answer(text="I add", thinking="hm", tools=[("c1", "add", '{"a": 1, "b": 2}'), ("c2", "add", "{")]),
        Answer(text="", tools=[("c3", "subtract", "[1]"), ("c4", "say", '{"x": "\\ud83d"}')]),
        Answer(text=""),
        Answer(text="3", model="model-1-b"),
    )
    assert (ending(result), result.reply, result.returned_model) == (("scored", None), "3", "model-1-b")
    problems = [made.problem for turn in result.turns for made in turn.calls]
    assert problems == [None, "no_object", "unknown_tool", "no_object"]
    assert totals(result.turns).usage.input == 400
    assert totals(result.turns).cost_nanousd == 4 * (100 * 1000 + 20 * 5000)
    last = json.dumps(vendor.server.bodies[-1])
    assert last.index('"c1"') < last.index('"c2"') < last.index('"c3"') < last.index(CORRECTION)


def test_a_later_turn_that_no_vendor_answers(vendor: Vendor) -> None:
    first = Answer(text="I add", tools=[("c1", "add", '{"a": 1, "b": 2}')])
    result = over_http(vendor, status(429, headers={"retry-after-ms": "1"}), first, status(400))
    assert (ending(result), len(result.turns)) == (("fault", "api_error"), 2)
    summed = totals(result.turns)
    assert (summed.cost_nanousd, summed.attempts, summed.limited) == (200_000, 3, 1)


def test_anthropic_s_pause_goes_on(anthropic: Vendor) -> None:
    result = over_http(anthropic, Answer(text="Let me", stop="pause_turn"), Answer(text="3"))
    assert (result.reply, len(result.turns)) == ("3", 2)
    assert [message["role"] for message in anthropic.server.bodies[-1]["messages"]] == ["user", "assistant"]


def test_one_shot_sends_the_same_bytes_as_a_call(vendor: Vendor) -> None:
    vendor.provider.call(ONE_SHOT)
    result = play(vendor.provider, ONE_SHOT, None, FAR, prices=PRICES)
    one, other = vendor.server.bodies
    assert (one, result.reply, len(result.turns)) == (other, '{"q1": 42}', 1)

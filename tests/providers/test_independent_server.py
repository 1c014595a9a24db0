"""The real SDKs and our providers before servers that nobody of this project wrote.

Two of them, both MIT: llmock 0.2.2 (from PyPI) and aimock 1.43.0 (from npm, for Node 20). Opt-in: install them
somewhere of their own (llmock would autoload a pytest plugin in our environment) and name their commands. aimock's
is called ``llmock`` as well, for history's sake.

    python3 -m venv DIR && DIR/bin/pip install llmock==0.2.2
    npm install --prefix DIR @copilotkit/aimock@1.43.0
    CELLPROSE_LLMOCK=DIR/bin/llmock CELLPROSE_AIMOCK=DIR/node_modules/.bin/llmock pytest tests -m independent

What either can say of an episode with tools: llmock reads the tools that a request offers, writes arguments to fit
their schema, and answers in words once the last turn holds a result in its vendor's form. aimock answers the second
turn only where it finds the result under its call's id, and, when it is strict, refuses a turn of Messages that comes
back without its signed thoughts. Neither checks what comes back of Responses' reasoning.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self
from urllib.request import Request as HttpRequest
from urllib.request import urlopen

import pytest

from pytest_cellprose.measure.episode import Limits, Played, play
from pytest_cellprose.providers.base import ModelFailure, PathFault, Provider, Reply, Tool
from pytest_cellprose.record.record import Prices
from tests.providers.conftest import PROVIDERS, QUICK, REQUEST

pytestmark = pytest.mark.independent

ANSWER = '{"q1": 1}'
CUT_ANSWER = '{"q1": 1'
USAGE = {"prompt_tokens": 1234, "completion_tokens": 56, "input_tokens": 1234, "output_tokens": 56}
"""By the names of all three protocols."""


@dataclass
class LlMock:
    """Counts tokens itself, so that a test can only say that there are some."""

    address: str

    @property
    def anthropic(self) -> str:
        return self.address + "/anthropic"

    def behave(self, *behaviors: dict[str, Any]) -> None:
        post(self.address + "/_llmock/reset")
        post(self.address + "/_llmock/scenario", {"behaviors": list(behaviors)})

    def unscripted(self) -> None:
        post(self.address + "/_llmock/reset")

    def answer(self, text: str) -> None:
        self.behave({"type": "reply", "text": text})

    def truncate(self, text: str) -> None:
        self.behave({"type": "reply", "text": text, "finish_reason": "length", "times": 1})

    def fail(self, status: int, times: int) -> None:
        self.behave({"type": "fail", "status": status, "times": times}, {"type": "reply", "text": ANSWER})

    def call_tool(self, command: str) -> None:
        """Call the tool in a first turn, and answer in a second one."""
        calls = [{"name": "bash", "arguments": {"command": command}}]
        first = {"type": "reply", "text": "I look", "tool_calls": calls, "times": 1}
        self.behave(first, {"type": "reply", "text": ANSWER})

    def received(self) -> list[dict[str, Any]]:
        """The bodies of the requests since the last script."""
        found = get(self.address + "/_llmock/requests")
        return [entry["body"] for entry in (found if isinstance(found, list) else found["requests"])]


@dataclass
class AiMock:
    """Tells the usage that a test sets, without any detail of it."""

    address: str

    @property
    def anthropic(self) -> str:
        return self.address

    def answer(self, text: str, **more: Any) -> None:
        post(self.address + "/__aimock/reset")
        fixture = {"match": {}, "response": {"content": text, "usage": USAGE, **more}}
        post(self.address + "/__aimock/fixtures", {"fixtures": [fixture]})

    def truncate(self, text: str) -> None:
        self.answer(text, finishReason="length")

    def fail(self, status: int, times: int) -> None:
        self.answer(ANSWER)
        for _ in range(times):
            post(self.address + "/__aimock/error", {"status": status, "body": {"message": "busy", "type": "busy"}})

    def call_tool(self, command: str, *, gives: str = "book.xlsx", **more: Any) -> None:
        """Call the tool in a first turn, and answer in a second one if it brings what the call gives."""
        post(self.address + "/__aimock/reset")
        call = {"id": "call_7", "name": "bash", "arguments": json.dumps({"command": command})}
        first = {"content": "I look", "toolCalls": [call], "usage": USAGE, **more}
        result = {"toolCallId": "call_7", "toolResultContains": gives}
        script = [
            {"match": {"hasToolResult": False}, "response": first},
            {"match": result, "response": {"content": ANSWER, "usage": USAGE}},
        ]
        post(self.address + "/__aimock/fixtures", {"fixtures": script})

    def disturb(self, **rates: float) -> None:
        self.answer(ANSWER)
        post(self.address + "/__aimock/chaos", rates)

    def received(self) -> list[dict[str, Any]]:
        """The bodies of the requests since the last script, in aimock's own common form."""
        return [entry["body"] for entry in get(self.address + "/__aimock/journal")]


def post(url: str, body: object = None) -> None:
    content = b"" if body is None else json.dumps(body).encode()
    urlopen(HttpRequest(url, content, {"content-type": "application/json"})).read()


def get(url: str) -> Any:
    return json.loads(urlopen(url).read())


def running(variable: str, *arguments: str) -> Iterator[str]:
    """The server whose command a variable names; yields its address."""
    command = os.environ.get(variable, "")
    if not shutil.which(command):
        pytest.skip(f"no such independent server: name its command in {variable}")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    said = [command, *arguments, "--host", "127.0.0.1", "--port", str(port)]
    server = subprocess.Popen(said, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with socket.socket() as knock:
                if knock.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(10)


@pytest.fixture(scope="module")
def llmock() -> Iterator[LlMock]:
    for address in running("CELLPROSE_LLMOCK", "serve", "--log-level", "error"):
        yield LlMock(address)


@pytest.fixture(scope="module")
def aimock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AiMock]:
    no_fixtures: Path = tmp_path_factory.mktemp("fixtures")
    for address in running("CELLPROSE_AIMOCK", "--fixtures", str(no_fixtures), "--log-level", "silent"):
        yield AiMock(address)


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AiMock]:
    """aimock that refuses what it finds wrong."""
    fixtures: Path = tmp_path_factory.mktemp("fixtures")
    nobody_asks = {"match": {"userMessage": "nobody asks this"}, "response": {"content": "no"}}
    (fixtures / "one.json").write_text(json.dumps({"fixtures": [nobody_asks]}))  # without any it does not start
    for address in running("CELLPROSE_AIMOCK", "--fixtures", str(fixtures), "--log-level", "silent", "--strict"):
        yield AiMock(address)


@pytest.fixture(params=["llmock", "aimock"])
def independent(request: pytest.FixtureRequest) -> LlMock | AiMock:
    chosen: LlMock | AiMock = request.getfixturevalue(request.param)
    return chosen


def made(name: str, server: LlMock | AiMock, environment: pytest.MonkeyPatch) -> Provider:
    environment.setenv("ANTHROPIC_BASE_URL", server.anthropic)
    environment.setenv("OPENAI_BASE_URL", server.address + "/v1")
    environment.setenv("CELLPROSE_COMPAT_BASE_URL", server.address + "/v1")
    server.answer(ANSWER)
    provider: Provider = PROVIDERS[name](QUICK)
    return provider


@pytest.fixture(params=list(PROVIDERS))
def vendor(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def provider(vendor: str, independent: LlMock | AiMock, environment: pytest.MonkeyPatch) -> Provider:
    return made(vendor, independent, environment)


def call(provider: Provider) -> Reply:
    return provider.call(replace(REQUEST, model_id="gpt-4o", settings={"effort": "medium"}))


def test_an_ordinary_reply(provider: Provider, independent: LlMock | AiMock) -> None:
    reply = call(provider)
    assert reply.text == ANSWER
    assert (reply.returned_model, reply.attempts) == ("gpt-4o", 1)
    assert reply.usage.input
    assert reply.usage.output
    (body,) = independent.received()
    assert body["stream"] is True
    assert not {"temperature", "top_p", "top_k"} & body.keys()
    assert "cache_control" not in str(body)
    assert REQUEST.system in str(body)
    assert REQUEST.prompt in str(body)


@pytest.mark.parametrize("status", [429, 500, 529])
def test_a_storm_that_ends_is_one_reply(provider: Provider, independent: LlMock | AiMock, status: int) -> None:
    independent.fail(status, times=2)
    reply = call(provider)
    assert reply.text == ANSWER
    assert reply.attempts == 3
    assert reply.limited == (2 if status == 429 else 0)
    assert len(independent.received()) == 3


@pytest.mark.parametrize("status", [429, 500, 529])
def test_a_storm_that_does_not_end_is_one_fault(provider: Provider, independent: LlMock | AiMock, status: int) -> None:
    independent.fail(status, times=9)
    with pytest.raises(PathFault) as caught:
        call(provider)
    assert (caught.value.kind, caught.value.attempts) == ("api_error", 4)
    assert caught.value.detail.startswith(f"HTTP {status} ")
    assert caught.value.reply is None
    assert len(independent.received()) == 4


def test_a_refused_key(provider: Provider, independent: LlMock | AiMock) -> None:
    independent.fail(401, times=1)
    with pytest.raises(PathFault) as caught:
        call(provider)
    assert (caught.value.kind, caught.value.attempts) == ("authentication", 1)


def test_a_truncated_reply(provider: Provider, independent: LlMock | AiMock) -> None:
    independent.truncate(CUT_ANSWER)
    with pytest.raises(ModelFailure) as caught:
        call(provider)
    assert caught.value.kind == "truncated"
    assert caught.value.reply is not None
    assert caught.value.reply.text == CUT_ANSWER
    assert caught.value.reply.usage.input
    assert caught.value.reply.usage.output


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        ("disconnect", "transport"),
        ("truncate", "cut_stream"),
        ("malformed", "malformed_stream"),
        ("stall", "time_out"),
    ],
)
def test_broken_streams_of_llmock(
    vendor: str, llmock: LlMock, environment: pytest.MonkeyPatch, kind: str, fault: str
) -> None:
    provider = made(vendor, llmock, environment)
    llmock.behave({"type": "stream_fault", "kind": kind, "times": 1})
    with pytest.raises(PathFault) as caught:
        call(provider)
    assert caught.value.kind == fault


def test_usage_as_aimock_was_told_to_say_it(vendor: str, aimock: AiMock, environment: pytest.MonkeyPatch) -> None:
    usage = call(made(vendor, aimock, environment)).usage
    assert (usage.input, usage.output) == (1234, 56)
    assert not usage.cached
    assert usage.reasoning is None
    assert usage.raw is not None


@pytest.mark.parametrize(
    ("rates", "kind", "attempts"),
    [
        ({"dropRate": 1}, "api_error", 4),
        ({"disconnectRate": 1}, "transport", 4),
        ({"malformedRate": 1}, "not_a_stream", 1),
        ({"rateLimitRate": 1}, "api_error", 4),
    ],
    ids=["drop", "disconnect", "malformed", "limit"],
)
def test_chaos_of_aimock(
    vendor: str,
    aimock: AiMock,
    environment: pytest.MonkeyPatch,
    rates: dict[str, float],
    kind: str,
    attempts: int,
) -> None:
    provider = made(vendor, aimock, environment)
    aimock.disturb(**rates)
    with pytest.raises(PathFault) as caught:
        call(provider)
    assert (caught.value.kind, caught.value.attempts) == (kind, attempts)


def test_what_aimock_has_no_route_for(vendor: str, aimock: AiMock, environment: pytest.MonkeyPatch) -> None:
    """Anthropic's token counting is one: the count stays empty and the call is not harmed."""
    provider: Any = made(vendor, aimock, environment)
    counted = provider.counted_tokens(replace(REQUEST, model_id="gpt-4o"))
    assert (counted is None) == (vendor in ("anthropic", "compat"))
    assert call(provider).text == ANSWER


# --- episodes with tools ---------------------------------------------------------------------------------------------

PARAMETERS = {
    "type": "object",
    "properties": {"command": {"type": "string"}},
    "required": ["command"],
    "additionalProperties": False,
}
ASKED = replace(
    REQUEST, model_id="gpt-4o", settings={"effort": "medium"}, tools=[Tool("bash", "Runs a command", PARAMETERS)]
)


class Shell:
    """A world that always lists one file, and keeps its commands."""

    digest = "shell"

    def __init__(self) -> None:
        self.commands: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        self.commands.append(arguments["command"])
        return "book.xlsx"


def played(provider: Provider, shell: Shell, **more: Any) -> Played:
    prices = Prices(input="0.10", output="0.50")
    return play(provider, replace(ASKED, **more), shell, Limits(turns=5), prices=prices)


def test_an_episode_of_two_turns(provider: Provider, independent: LlMock | AiMock) -> None:
    independent.call_tool("ls")
    shell = Shell()
    result = played(provider, shell)
    assert (result.outcome.status, result.reply, shell.commands) == ("scored", ANSWER, ["ls"])
    first, second = result.turns
    assert first.reply == "I look"
    assert [(made.call.name, made.result) for made in first.calls] == [("bash", "book.xlsx")]
    assert first.cost_nanousd
    assert second.cost_nanousd
    if isinstance(independent, AiMock):
        assert [(turn.usage.input, turn.usage.output) for turn in result.turns] == [(1234, 56)] * 2
        assert first.calls[0].call.id == "call_7"
    asked, resent = (json.dumps(body) for body in independent.received())
    call_id = first.calls[0].call.id
    assert (asked.count(call_id), resent.count(call_id)) == (0, 2)  # the call, and what it gave
    assert (asked.count("book.xlsx"), resent.count("book.xlsx")) == (0, 1)
    assert "Runs a command" in asked
    assert "cache_control" not in asked + resent


def test_llmock_reads_the_offer_and_the_results_as_it_knows_them(
    vendor: str, llmock: LlMock, environment: pytest.MonkeyPatch
) -> None:
    """Unscripted: it finds the tool and its schema in the request, and ends the loop when it finds a result."""
    provider = made(vendor, llmock, environment)
    llmock.unscripted()
    shell = Shell()
    result = played(provider, shell)
    assert (result.outcome.status, len(result.turns), len(shell.commands)) == ("scored", 2, 1)
    assert [made.problem for made in result.turns[0].calls] == [None]
    assert result.reply


@pytest.mark.parametrize(("kind", "problem"), [("malformed_arguments", "no_object"), ("unknown_tool", "unknown_tool")])
def test_broken_calls_of_llmock_are_answered(
    vendor: str, llmock: LlMock, environment: pytest.MonkeyPatch, kind: str, problem: str
) -> None:
    provider = made(vendor, llmock, environment)
    llmock.behave({"type": "tool_fault", "kind": kind, "times": 1})
    shell = Shell()
    result = played(provider, shell)
    assert (result.outcome.status, len(result.turns), shell.commands) == ("scored", 2, [])
    assert [made.problem for made in result.turns[0].calls] == [problem]


def test_a_strict_aimock_takes_back_what_it_said(vendor: str, strict: AiMock, environment: pytest.MonkeyPatch) -> None:
    """With thoughts before the call: signed ones in Messages, sealed ones in Responses."""
    provider = made(vendor, strict, environment)
    model = {"anthropic": "claude-haiku-5-5", "openai": "gpt-5", "compat": "deepseek-r1"}[vendor]
    strict.call_tool("ls", reasoning="I should look")
    shell = Shell()
    # aimock looks after thoughts where thinking is "enabled", the older way
    result = played(provider, shell, model_id=model, settings={"thinking": "enabled"})
    assert (result.outcome.detail, result.reply, shell.commands) == (None, ANSWER, ["ls"])
    assert len(strict.received()) == 2


def test_a_strict_aimock_refuses_a_turn_without_its_thoughts(strict: AiMock, environment: pytest.MonkeyPatch) -> None:
    """So that the test above says something."""
    provider = made("anthropic", strict, environment)
    strict.call_tool("ls", reasoning="I should look")

    class Forgets:
        def call(self, request: Any) -> Reply:
            reply = provider.call(request)
            return replace(reply, said=[block for block in reply.said if block["type"] != "thinking"])

    result = played(Forgets(), Shell(), model_id="claude-haiku-5-5", settings={"thinking": "enabled"})
    assert (result.outcome.status, result.outcome.kind) == ("fault", "api_error")
    assert "must begin with a `thinking` block" in str(result.outcome.detail)


def test_aimock_finds_no_answer_where_the_result_is_another(
    vendor: str, aimock: AiMock, environment: pytest.MonkeyPatch
) -> None:
    provider = made(vendor, aimock, environment)
    aimock.call_tool("ls", gives="another.xlsx")
    result = played(provider, Shell())
    assert (result.outcome.status, len(result.turns), result.turns[0].answered) == ("fault", 2, True)
    assert str(result.outcome.detail).startswith("HTTP 404 ")

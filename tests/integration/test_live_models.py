"""Live runs as their users start them: the real SDKs against a local server that speaks the vendors' protocols."""

from __future__ import annotations

import socket
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import anthropic.resources.messages  # noqa: F401  # what a run in this process needs is here before it
import openai.resources.chat
import openai.resources.responses  # noqa: F401
import pytest

import pytest_cellprose.providers.anthropic
import pytest_cellprose.providers.compat
import pytest_cellprose.providers.http
import pytest_cellprose.providers.openai  # noqa: F401
from pytest_cellprose.questions.prompts import SYSTEM
from tests.integration.conftest import KEYS, Bench, as_written, one_process
from tests.providers.vendor_server import (
    MESSAGES,
    RESPONSES,
    Answer,
    VendorServer,
    echo_key,
    error,
    html,
    serving,
    status,
    stream,
)

AT_ONCE = {"retry-after-ms": "1"}
INTERRUPTED, USAGE_ERROR = 2, 4
IN_ORDER = "--cellprose-inflight=1"
"""One call at a time, so that the server's scripted answers are those of the cells in their order."""
TWO = ("--cellprose-live", "--cellprose-models", "haiku55,gpt6luna", IN_ORDER)


# Input tokens on both sides of each tier's edge -> nano-dollars with 20 tokens of output, worked out by hand from the
# protocol's prices: $0.10/$0.50 a million; haiku55 above 100,000 tokens $0.50/$2.50, gpt6luna above 272,000 $0.20/$0.75
COSTS = {
    "haiku55": {100_000: 10_010_000, 100_001: 50_050_500},
    "gpt6luna": {272_000: 27_210_000, 272_001: 54_415_200},
}


def at_the_edge(handler: Any, body: dict[str, Any]) -> None:
    """Answers with input tokens at the tier's edge or one above it, in turn."""
    alias = "haiku55" if handler.path == MESSAGES else "gpt6luna"
    earlier = sum(seen.path == handler.path for seen in handler.server_state.journal)
    tokens = sorted(COSTS[alias])[earlier % 2]
    usage: dict[str, Any] = {"input_tokens": tokens, "output_tokens": 20}
    if handler.path == RESPONSES:
        usage |= {
            "input_tokens_details": {"cached_tokens": 90_000, "cache_write_tokens": 0},
            "total_tokens": tokens + 20,
        }
    stream(Answer(text='{"q1": -1, "q2": "Model!B5"}', usage=usage))(handler, body)


def test_every_cell_is_recorded_with_its_exact_cost(bench: Bench, server: VendorServer) -> None:
    server.default = at_the_edge
    result = bench.run(*TWO)
    assert result.ret == 0
    records = bench.records()
    assert len(records) == len(set(bench.ids())) == 2 * 6 * 2
    told = {alias: Counter(r["usage"]["input"] for r in records if r["cell"]["model"] == alias) for alias in COSTS}
    assert told == {alias: dict.fromkeys(costs, 6) for alias, costs in COSTS.items()}
    for record in records:
        assert record["cost_nanousd"] == COSTS[record["cell"]["model"]][record["usage"]["input"]]
        assert record["outcome"]["status"] == "scored"
        assert record["scores"]["q2"] == 1.0
        assert record["attempts"] == 1
    luna = next(r for r in records if r["usage"]["input"] == 272_000)
    assert luna["usage"]["cached"] == 90_000
    assert luna["cost_as_billed_nanousd"] == 182_000 * 100 + 90_000 * 10 + 20 * 500
    haiku = next(r for r in records if r["cell"]["model"] == "haiku55")
    assert haiku["model"]["settings"] == {"max_tokens": 16000, "effort": "medium", "thinking": "adaptive"}
    assert haiku["counted_tokens"] == {"counter": "anthropic count_tokens", "n": 17}
    assert luna["counted_tokens"]["counter"].endswith("o200k_base")
    assert luna["counted_tokens"]["n"] > 100


def test_only_the_workbook_block_and_its_label_differ_between_encodings(
    bench: Bench, server: VendorServer, workers: tuple[str, ...]
) -> None:
    bench.run(*TWO, "--cellprose-workbooks", "alpha")
    by_path: dict[str, list[dict[str, Any]]] = {MESSAGES: [], RESPONSES: []}
    for seen in server.journal:
        by_path.get(seen.path, []).append(dict(seen.body))
    prompts = {
        MESSAGES: [body.pop("messages")[0]["content"] for body in by_path[MESSAGES]],
        RESPONSES: [body.pop("input") for body in by_path[RESPONSES]],
    }
    for bodies in by_path.values():
        assert len(bodies) == 6
        assert all(body == bodies[0] for body in bodies)
        assert "cache_control" not in str(bodies)
        assert not {"temperature", "top_p", "top_k"} & bodies[0].keys()
    assert by_path[MESSAGES][0]["system"] == by_path[RESPONSES][0]["instructions"] == SYSTEM
    in_order = sorted if workers else list
    assert in_order(prompts[MESSAGES]) == in_order(prompts[RESPONSES])
    questions = [text[text.rindex("q1") :] for text in prompts[MESSAGES]]
    assert len(set(questions)) == 1
    assert all(f"q{n}" in questions[0] for n in (1, 2, 3, 4, 5))


@pytest.mark.parametrize("model", ["haiku55", "gpt6luna"])
def test_a_storm_ends_with_each_cell_measured_once(bench: Bench, server: VendorServer, model: str) -> None:
    plays = [*(status(code, headers=AT_ONCE) for code in (429, 500, 529)), stream(Answer())]

    def storm(handler: Any, body: dict[str, Any]) -> None:  # for each cell, whichever is called first
        tries = server.bodies.count(body)
        plays[tries - 1](handler, body)

    server.default = storm
    result = bench.run(
        "--cellprose-live", f"--cellprose-models={model}", "--cellprose-encodings=csv,markdown", IN_ORDER
    )
    assert result.ret == 0
    records = bench.records()
    assert len(records) == len(set(bench.ids())) == 4
    assert {(r["outcome"]["status"], r["attempts"], r["limited"]) for r in records} == {("scored", 4, 1)}
    assert len(server.bodies) == 16


def test_a_storm_that_does_not_end_is_one_honest_fault_for_each_cell(bench: Bench, server: VendorServer) -> None:
    server.default = status(529, {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}, AT_ONCE)
    result = bench.run(*TWO, "--cellprose-encodings", "csv", "--cellprose-workbooks", "alpha")
    assert result.ret == 1
    outcomes = [(r["outcome"]["status"], r["outcome"]["kind"], r["accuracy"], r["attempts"]) for r in bench.records()]
    assert outcomes == [("fault", "api_error", None, 4)] * 4  # each once more at the end
    result.stdout.fnmatch_lines(
        ["*haiku55-csv-alpha-rep1 was not measured: api_error: HTTP 529 overloaded_error - busy"]
    )


def committed(bench: Bench) -> None:
    for arguments in (["init"], ["add", "-A"], ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-m", "all"]):
        subprocess.run(["git", *arguments], cwd=bench.pytester.path, check=True, capture_output=True)


FINAL = ("--cellprose-final", "--cellprose-encodings=csv", "--cellprose-reps=2", "--cellprose-allow-dirty", IN_ORDER)


@one_process("the server's answers are in the order of its calls")
def test_in_a_final_run_it_is_a_failure_that_scores_nothing(bench: Bench, server: VendorServer) -> None:
    committed(bench)
    server.script = [stream(ends_before=2), *[status(500, headers=AT_ONCE)] * 4]
    result = bench.run(*FINAL, "--cellprose-models=gpt6luna")
    assert result.ret == 0
    first, second, *rest = bench.records()
    assert [r["outcome"]["kind"] for r in (first, second)] == ["api_error", "api_error"]
    assert first["outcome"]["detail"].startswith("cut_stream: ")
    assert second["outcome"]["detail"].startswith("HTTP 500 ")
    assert {r["accuracy"] for r in (first, second)} == {0.0}
    assert [r["outcome"]["status"] for r in rest] == ["scored", "scored"]


@one_process("the server's answers are in the order of its calls")
def test_in_a_final_run_an_account_s_fault_is_no_score(bench: Bench, server: VendorServer) -> None:
    committed(bench)
    server.script = [error(429, code="insufficient_quota"), error(401, type="authentication_error")]
    result = bench.run(*FINAL, "--cellprose-models=gpt6luna")
    assert result.ret == INTERRUPTED
    outcomes = [(r["outcome"]["status"], r["outcome"]["kind"], r["accuracy"]) for r in bench.records()]
    assert outcomes == [("fault", "quota", None), ("fault", "authentication", None)]


def test_a_refused_key_stops_the_run_and_keeps_its_records(
    bench: Bench, server: VendorServer, workers: tuple[str, ...]
) -> None:
    server.script = [Answer(text='{"q1": -1}')]
    server.default = error(401, type="authentication_error")
    encodings = "--cellprose-encodings=csv,markdown,toon,none"
    result = bench.run("--cellprose-live", "--cellprose-models=haiku55", encodings, IN_ORDER)
    assert result.ret == INTERRUPTED
    outcomes = Counter(r["outcome"]["kind"] for r in bench.records())
    assert outcomes[None] == 1
    assert 1 <= outcomes["authentication"] <= (2 if workers else 1)
    assert all(r["accuracy"] is None for r in bench.records() if r["outcome"]["kind"] == "authentication")
    result.stdout.fnmatch_lines(["*cellprose: ANTHROPIC_API_KEY was refused: HTTP 401*"])


def test_a_refused_key_ends_the_look_ahead_too(bench: Bench, server: VendorServer) -> None:
    server.default = error(401, type="authentication_error")
    arguments = ["--cellprose-live", "--cellprose-models=haiku55", "--cellprose-encodings=csv,none"]
    result = bench.run(*arguments, "--cellprose-reps=20", "--cellprose-inflight=4")
    assert result.ret == INTERRUPTED
    assert len(server.journal) == len(bench.records()) <= 4 + 4  # the first four, and what their ends let start
    result.stdout.fnmatch_lines(["*cellprose: ANTHROPIC_API_KEY was refused: HTTP 401*"])


def test_missing_keys_are_all_named_before_anything_is_called(
    bench: Bench, server: VendorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in KEYS:
        monkeypatch.delenv(name)
    result = bench.run(*TWO, "--cellprose-encodings=csv")
    assert result.ret == USAGE_ERROR
    output = result.stdout.str() + result.stderr.str()
    assert "ANTHROPIC_API_KEY is not set" in output
    assert "OPENAI_API_KEY is not set" in output
    assert "Traceback" not in output
    assert server.journal == []
    assert not bench.results.exists()
    assert bench.run("--collect-only", "-q", *TWO).ret == 0


def test_one_vendor_s_broken_host_loses_no_cell_of_another(
    bench: Bench, server: VendorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving() as hotel:
        hotel.default = html()
        monkeypatch.setenv("ANTHROPIC_BASE_URL", hotel.address)
        result = bench.run(*TWO, "--cellprose-encodings=csv", "--cellprose-fault-retries=0")
    assert result.ret == 1
    kinds = Counter((r["cell"]["model"], r["outcome"]["kind"]) for r in bench.records())
    assert kinds[("haiku55", "not_a_stream")] == 2
    assert sum(n for (model, _), n in kinds.items() if model == "gpt6luna") == 2
    result.stdout.fnmatch_lines(["*(ANTHROPIC_BASE_URL) answered text/html instead of an event stream*"])


def test_an_open_weight_model_of_any_host(bench: Bench, server: VendorServer) -> None:
    server.default = Answer(
        text='{"q1": -1, "q2": "Model!B5"}',
        usage={"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010},
    )
    result = bench.run(
        "--cellprose-live",
        "--cellprose-openweight=open=some/model-7b,0.20,0.60",
        "--cellprose-models=open",
        "-k",
        "csv",
    )
    assert result.ret == 0
    records = bench.records()
    assert {(r["cell"]["model"], r["cost_nanousd"], r["counted_tokens"]) for r in records} == {("open", 206_000, None)}
    assert {body["model"] for body in server.bodies} == {"some/model-7b"}


def everything_written(folder: Path) -> str:
    return "".join(path.read_text(encoding="utf-8", errors="replace") for path in folder.rglob("*") if path.is_file())


def test_no_key_is_in_anything_that_a_run_writes_or_prints(
    bench: Bench, server: VendorServer, workers: tuple[str, ...]
) -> None:
    def say_key(handler: Any, body: dict[str, Any]) -> None:
        key = handler.headers["x-api-key"] or handler.headers["authorization"].removeprefix("Bearer ")
        stream(Answer(text=f'{{"q1": "{key}"}}', model=f"m {key}"))(handler, body)

    server.script = [say_key, echo_key(400), echo_key(403), say_key]
    server.default = echo_key(401)
    loud = ("-l", "-vv", "-rA", "--tb=long", "--log-level=DEBUG", "--show-capture=all", "--full-trace")
    result = bench.run(*TWO, "--cellprose-encodings=csv,markdown,toon", "--junitxml=results/junit.xml", *loud)
    assert result.ret == INTERRUPTED
    if workers:  # whose calls get the server's answers in any order
        assert len(bench.records()) >= 2
    else:
        assert 5 <= len(bench.records()) <= 6  # a call of the other vendor may have been under way
    output = result.stdout.str() + result.stderr.str() + everything_written(bench.results)
    assert "[ANTHROPIC_API_KEY]" in output
    for key in KEYS.values():
        assert key not in output


def test_without_the_flag_no_socket_is_opened(
    bench: Bench, server: VendorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[object] = []

    def forbidden(self: socket.socket, address: object) -> None:
        opened.append(address)
        raise AssertionError(f"a socket was opened to {address}")

    monkeypatch.setattr(socket.socket, "connect", forbidden)
    monkeypatch.setattr(socket.socket, "connect_ex", forbidden)
    for arguments in (("-k", "csv"), ("-k", "haiku55"), ("--collect-only", "--cellprose-live"), ("--collect-only",)):
        assert bench.run(*arguments).ret == 0
    assert opened == []
    assert server.journal == []


@as_written
def test_without_the_flag_no_sdk_is_imported(bench: Bench, server: VendorServer) -> None:
    bench.pytester.makeconftest(
        "import sys\n"
        "def pytest_unconfigure():\n"
        "    print('sdks:', sorted({'anthropic', 'openai', 'httpx2'} & set(sys.modules)))\n"
    )
    result = bench.pytester.runpytest_subprocess("-q", "-s", "--cellprose-encodings=csv")
    result.stdout.fnmatch_lines(["*sdks: []*"])

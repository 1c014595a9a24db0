"""Agents in a plan: which models may have them, what they may spend, what is on record of them, and how they end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from pytest_cellprose.__main__ import main
from tests.integration.conftest import HOUSE, TEST_CELLS, WAY, Bench, needs_sandbox

USAGE_ERROR = 4
AGENT = ("--cellprose-encodings=agent_xlsx",)


EXPLORER = """
from pytest_cellprose import ToolCall
import json

class Explorer:
    def call(self, request):
        turn = len(request.turns)
        with Path(__file__).with_name("calls.log").open("a") as log:
            log.write(f"{turn}\\n")
        usage = Usage(input=1000 * (1 + turn), output=10, cached=0)
        if request.tools and turn < TURNS:
            said = [{"turn": turn}]
            calls = [ToolCall(f"c{turn}-{n}", "bash", json.dumps({"command": command}))
                     for n, command in enumerate(COMMANDS[min(turn, len(COMMANDS) - 1)])]
            return Reply(text=f"turn {turn}", returned_model="house-8b", usage=usage, calls=calls, said=said)
        return Reply(text='{"q1": -1, "q2": "Model!B5"}', returned_model="house-8b", usage=usage)
"""


def explorer(bench: Bench, commands: list[list[str]], turns: int | None = None) -> None:
    """A live model that calls these commands, a list a turn, before it answers."""
    settings = f"TURNS = {len(commands) if turns is None else turns}\nCOMMANDS = {commands!r}\n"
    rest = HOUSE[HOUSE.index("def pytest_cellprose_providers") :].replace("House}", "Explorer}")
    imports = HOUSE[: HOUSE.index("class House")]
    bench.pytester.makeconftest(imports + settings + EXPLORER + rest)


def live(*more: str) -> tuple[str, ...]:
    return ("--cellprose-live", "--cellprose-models=house", *AGENT, *more)


def the_record(bench: Bench) -> dict[str, Any]:
    (record,) = bench.records()
    return record


# --- the plan --------------------------------------------------------------------------------------------------------


def test_a_plan_has_agents_only_when_they_are_named(bench: Bench) -> None:
    result = bench.run("--collect-only", "-q")
    assert "agent_xlsx" not in result.stdout.str()


def test_a_final_plan_has_both(bench: Bench) -> None:
    result = bench.run("--collect-only", "--cellprose-final", "--cellprose-models=haiku55", "--cellprose-allow-dirty")
    said = result.stdout.str()
    assert "× 8 encodings ×" in said
    assert "test_cell[haiku55-agent_xlsx-alpha-rep1]" in said
    assert "test_cell[haiku55-agent_cellprose-alpha-rep3]" in said
    assert "agent_xlsx absent" not in said
    assert "agent_cellprose absent" not in said


def test_open_weight_models_are_planned_out_and_refused_when_named(bench: Bench) -> None:
    openweight = "--cellprose-openweight=qwen=Qwen/Q,0.1,0.4"
    sentence = "open-weight models are asked in one shot only (protocol section 4): not qwen"
    planned = bench.run("--collect-only", openweight, "--cellprose-models=qwen", "--cellprose-final")
    assert f"left out: qwen with agent_xlsx: {sentence}" in planned.stdout.str()
    refused = bench.run("--collect-only", openweight, "--cellprose-models=qwen", *AGENT)
    assert refused.ret == USAGE_ERROR
    assert f"qwen with agent_xlsx: {sentence}" in refused.stderr.str()


@pytest.mark.parametrize(
    ("model", "encoding", "told"),
    [
        ("reader", "agent_xlsx", "'agent_xlsx' is a file, to be explored with tools"),
        ("reader_agent", "csv", "encoding 'csv' is a text in the prompt, with no file to explore"),
    ],
)
def test_a_program_reads_what_it_can_read(bench: Bench, model: str, encoding: str, told: str) -> None:
    refused = bench.run(f"--cellprose-models={model}", f"--cellprose-encodings={encoding}")
    assert refused.ret == USAGE_ERROR
    assert told in refused.stderr.str()


def test_without_a_sandbox_agents_are_refused_with_what_to_do(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    explorer(bench, [["true"]])
    monkeypatch.setenv("PATH", str(bench.pytester.mkdir("nothing")))
    refused = bench.run(*live())
    assert refused.ret == USAGE_ERROR
    said = refused.stderr.str()
    assert "agents need a sandbox" in said
    assert "bubblewrap" in said
    assert not (bench.pytester.path / "calls.log").exists()
    assert not list(bench.results.glob("*"))
    shown = bench.run("--collect-only", *live())
    assert shown.ret == 0
    assert "agents need a sandbox" in shown.stdout.str()


def test_an_unsafe_sandbox_is_told_and_never_gets_held_out_workbooks(bench: Bench) -> None:
    bench.add("gamma", scale=3, heldout=True)
    explorer(bench, [["true"]])
    shown = bench.run("--collect-only", *live("--cellprose-sandbox=unsafe"))
    assert "what a model writes runs as you" in shown.stdout.str()
    refused = bench.run(
        "--cellprose-final", "--cellprose-models=house", "--cellprose-sandbox=unsafe", "--cellprose-allow-dirty", *AGENT
    )
    assert refused.ret == USAGE_ERROR
    assert "an agent could read the answers to held-out workbooks" in refused.stderr.str()


@needs_sandbox
@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("--cellprose-max-turns=39", "--cellprose-max-turns: 39, not the protocol's 40"),
        ("--cellprose-max-call-usd=2", "--cellprose-max-call-usd: 2, not the protocol's 1"),
        ("--cellprose-sandbox=unsafe", "agents' commands are not kept from the rest of the machine"),
    ],
)
def test_other_limits_than_the_protocol_s_are_not_publishable(bench: Bench, option: str, told: str) -> None:
    plan = ("--collect-only", "--cellprose-final", "--cellprose-models=haiku55", "--cellprose-allow-dirty")
    assert told in bench.run(*plan, option).stdout.str()
    assert told not in bench.run(*plan).stdout.str()


def test_what_a_cell_is_expected_to_cost(bench: Bench) -> None:
    """Six turns of an agent are assumed, each of which sends all before it again; the worst is the cap of a call."""
    explorer(bench, [["true"]])
    said = bench.run("--collect-only", *live("--cellprose-sandbox=unsafe", "--cellprose-max-call-usd=0.5")).stdout.str()
    assert "worst case $1.00" in said  # two workbooks
    assert "6 for agent_xlsx" in said
    assert "one with tools its $0.50" in said


# --- a run -----------------------------------------------------------------------------------------------------------


@needs_sandbox
def test_a_cell_keeps_its_turns_commands_and_costs(bench: Bench, workers: tuple[str, ...]) -> None:
    explorer(bench, [["ls", "cat missing"], ["python3 -c 'import openpyxl; print(openpyxl.__version__)'"]])
    result = bench.run(*live("--cellprose-workbooks=alpha"), *workers)
    assert result.ret == 0, result.stdout.str()
    record = the_record(bench)
    assert record["scores"]["q2"] == 1.0
    assert [turn["input"] for turn in record["turns"]] == [1000, 2000, 3000]
    assert [turn["cost_nanousd"] for turn in record["turns"]] == [1_020_000, 2_020_000, 3_020_000]
    assert record["cost_nanousd"] == 6_060_000
    assert [turn["reply"] for turn in record["turns"]] == ["turn 0", "turn 1", None]
    assert record["reply"].startswith('{"q1"')
    assert record["counted_tokens"] is None
    steps = record["tool_trace"]
    assert [(step["turn"], step["name"], step["exit_code"]) for step in steps] == [
        (1, "bash", 0),
        (1, "bash", 1),
        (2, "bash", 0),
    ]
    assert steps[0]["result"]["head"].strip() == "workbook.xlsx"
    assert steps[0]["output_bytes"] == len("workbook.xlsx\n")
    assert json.loads(steps[1]["arguments"]["head"]) == {"command": "cat missing"}
    assert all(step["seconds"] > 0 for step in steps)
    ledger = bench.written("ledger.json")
    assert ledger["vendors"]["house"] == {"spent": 6_060_000, "assumed": 0, "calls": 1, "unreported": 0}
    assert ledger["open"] == {}
    (path,) = bench.results.glob("runs/*.json")
    agents = json.loads(path.read_text())["agents"]
    assert (agents["encodings"], agents["max_turns"], agents["max_call_usd"]) == (["agent_xlsx"], 40, "1")
    assert agents["sandbox"]["level"] == "bubblewrap"


@needs_sandbox
def test_the_text_under_test_is_a_file_too(bench: Bench) -> None:
    from pytest_cellprose import encode

    explorer(bench, [["ls; cat workbook.md"]])
    encodings = "--cellprose-encodings=agent_cellprose"
    result = bench.run("--cellprose-live", "--cellprose-models=house", encodings, "--cellprose-workbooks=alpha")
    assert result.ret == 0, result.stdout.str()
    told = the_record(bench)["tool_trace"][0]["result"]["head"]
    assert told.split() == f"workbook.md\n{encode(bench.cells / 'alpha.xlsx')}".split()


@needs_sandbox
@pytest.mark.parametrize(
    ("option", "kind", "turns"),
    [
        ("--cellprose-max-turns=3", "turn_limit", 3),
        # 1,000 + 2,000 + 3,000 tokens in at a thousand nano-dollars each; the fourth would send these 3,000 again
        ("--cellprose-max-call-usd=0.009", "budget_exceeded", 3),
    ],
)
def test_limits_end_a_cell_as_a_failure_that_keeps_what_it_cost(
    bench: Bench, option: str, kind: str, turns: int
) -> None:
    explorer(bench, [["true"]], turns=99)
    result = bench.run(*live("--cellprose-workbooks=alpha", option))
    assert result.ret == 0, result.stdout.str()
    record = the_record(bench)
    assert (record["outcome"]["status"], record["outcome"]["kind"]) == ("failure", kind)
    assert len(record["turns"]) == turns
    assert record["cost_nanousd"] == sum(1000 * 1000 * n + 10 * 2000 for n in range(1, turns + 1))
    assert set(record["scores"].values()) == {0.0}


@needs_sandbox
def test_a_run_with_other_limits_calls_again(bench: Bench) -> None:
    explorer(bench, [["true"]])
    bench.run(*live("--cellprose-workbooks=alpha"))
    (first,) = (path.stem for path in bench.results.glob("runs/*.json"))
    calls = bench.pytester.path / "calls.log"
    assert len(calls.read_text().split()) == 2
    same = bench.run(*live("--cellprose-workbooks=alpha", f"--cellprose-resume={first}"))
    assert same.ret == 0
    assert len(calls.read_text().split()) == 2
    other = bench.run(*live("--cellprose-workbooks=alpha", f"--cellprose-resume={first}", "--cellprose-max-turns=7"))
    assert other.ret == 0
    assert len(calls.read_text().split()) == 4


@needs_sandbox
def test_the_program_answers_everything_in_both(bench: Bench, workers: tuple[str, ...]) -> None:
    both = "--cellprose-encodings=agent_xlsx,agent_cellprose"
    result = bench.run("--cellprose-models=reader_agent", both, *workers)
    assert result.ret == 0, result.stdout.str()
    assert [record["accuracy"] for record in bench.records()] == [1.0] * 4
    assert not [record for record in bench.records() if len(record["turns"]) != 3]


# --- transcripts -----------------------------------------------------------------------------------------------------


@needs_sandbox
def test_a_transcript_is_readable_and_safe(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    explorer(bench, [["printf 'a\\033[31mred\\033[0m\\n'; false"]])
    bench.run(*live("--cellprose-workbooks=alpha"))
    (run,) = (path.stem for path in bench.results.glob("runs/*.json"))
    capsys.readouterr()
    assert main(["report", run, "--out", str(bench.results), "--transcript", "house-agent_xlsx-alpha-rep1"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    lines = out.splitlines()
    assert lines[2].startswith("turn 1 · 1,000 tokens in, 10 out · $0.0010 · ")
    assert lines[3:5] == ["  turn 0", "  bash:"]
    assert lines[5] == "  > printf 'a\\033[31mred\\033[0m\\n'; false"
    assert lines[6].startswith("  exit code 1 · ")
    assert "turn 2 · 2,000 tokens in, 10 out" in out
    assert lines[-1].split() == ["q5", "0.00", "null"]
    assert main(["report", run, "--out", str(bench.results), "--transcript", "house-csv-alpha-rep1"]) == 1
    assert "no record of a cell 'house-csv-alpha-rep1'" in capsys.readouterr().err


@needs_sandbox
def test_a_held_out_transcript_is_shown_to_who_asks_for_answers(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.add("gamma", scale=3, heldout=True)
    explorer(bench, [["echo SECRET-OUTPUT"]])
    subprocess.run(["git", "init", "-q"], cwd=bench.pytester.path, check=True)
    final = ("--cellprose-final", "--cellprose-models=house", "--cellprose-allow-dirty", "--cellprose-reps=1")
    result = bench.run(*final, *AGENT)
    assert result.ret == 0, result.stdout.str()
    assert "SECRET-OUTPUT" not in result.stdout.str()
    (run,) = (path.stem for path in bench.results.glob("runs/*.json"))
    asked = ["report", run, "--out", str(bench.results), "--transcript", "house-agent_xlsx-gamma-rep1"]
    capsys.readouterr()
    assert main(asked) == 1
    shown = capsys.readouterr()
    assert "SECRET-OUTPUT" not in shown.out + shown.err
    assert "--with-answers" in shown.err
    assert main([*asked, "--with-answers"]) == 0
    assert "SECRET-OUTPUT" in capsys.readouterr().out


# --- how it ends -----------------------------------------------------------------------------------------------------

BOXES = """
from pathlib import Path
import json, time
import pytest
from pytest_cellprose import (
    Check, ModelSpec, Opening, Prices, Reply, Suite, Task, Tool, ToolCall, Usage, Variant
)

HERE = Path(__file__)

class Box:
    digest = "box 1"
    def __enter__(self):
        return self
    def __exit__(self, *why):
        pass
    def call(self, name, arguments):
        with HERE.with_name("tools.log").open("a") as log:
            log.write("t")
        time.sleep(SECONDS)
        return "well"

class Boxes(Suite):
    name, axes = "boxes", ("label", "box")
    def tasks(self, folder):
        return [Task(f"box{n}", "1", {"gold": "state"}) for n in range(BOXES)]
    def variants(self):
        return [Variant("plain", "1")]
    def opening(self, task, variant):
        return Opening("Use the tool.", "Look.", [Tool("look", "Looks.", {"type": "object"})])
    def world(self, task, variant):
        return Box()
    def check(self, task, episode, world):
        return Check({"gold": 1.0}, {"gold": 1})

class House:
    def call(self, request):
        with HERE.with_name("turns.log").open("a") as log:
            log.write("t")
        usage = Usage(input=10_000, output=1)
        calls = [ToolCall("c1", "look", "{}")] if len(request.turns) < TURNS else []
        return Reply(text="" if calls else "done", returned_model="house-8b", usage=usage, calls=calls)

def pytest_cellprose_suites():
    return [Boxes()]
"""


@pytest.fixture
def boxes(pytester: pytest.Pytester) -> Callable[..., Bench]:
    """A suite whose tools take their time; a turn costs 20 dollars, and an episode is expected to cost some 60."""

    def make(*, seconds: float, turns: int, boxes: int = 1) -> Bench:
        pytester.makepyprojecttoml('[tool.pytest]\ntestpaths = ["cells"]\n')
        cells = pytester.mkdir("cells")
        (cells / "test_cells.py").write_text(TEST_CELLS, encoding="utf-8")
        (cells / "split.json").write_text('{"schema": 1, "suite": "boxes"}', encoding="utf-8")
        numbers = f"SECONDS, TURNS, BOXES = {seconds}, {turns}, {boxes}\n"
        pytester.makeconftest(numbers + BOXES + HOUSE[HOUSE.index("def pytest_cellprose_providers") :])
        return Bench(pytester, cells)

    return make


DOLLARS = 10_000 * 2_000_000 + 9_000_000
"""Nano-dollars of a turn."""
BIG = ("--cellprose-live", "--cellprose-models=dear", "--cellprose-max-call-usd=900", "--cellprose-approve-usd=1000")


def started(bench: Bench, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "pytest", *BIG, *arguments]
    return subprocess.Popen(
        command,
        cwd=bench.pytester.path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def wait_until(bench: Bench, name: str, count: int) -> None:
    path, deadline = bench.pytester.path / name, time.monotonic() + 60
    while not path.exists() or path.stat().st_size < count:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_ctrl_c_ends_an_episode_after_its_turn_and_its_cost_is_known(
    boxes: Callable[..., Bench], workers: tuple[str, ...]
) -> None:
    bench = boxes(seconds=1.0, turns=30)
    process = started(bench, *workers)
    wait_until(bench, "tools.log", 2)
    os.killpg(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 2, said
    record = the_record(bench)
    assert (record["outcome"]["status"], record["outcome"]["kind"]) == ("fault", "interrupted")
    turns = len(record["turns"])
    assert 2 <= turns < 10
    assert record["cost_nanousd"] == turns * DOLLARS
    ledger = bench.written("ledger.json")
    assert ledger["vendors"]["house"]["spent"] == turns * DOLLARS
    assert ledger["open"] == {}


def test_a_killed_run_knows_of_every_turn_that_was_answered(boxes: Callable[..., Bench]) -> None:
    bench = boxes(seconds=300.0, turns=30)
    process = started(bench)
    wait_until(bench, "tools.log", 1)
    process.kill()
    process.communicate()
    (ledger,) = bench.results.glob("*/ledger.json")
    from pytest_cellprose.store.ledger import Ledger

    (held,) = Ledger(ledger).state().open.values()
    assert held.spent == DOLLARS  # its tool had begun to run: the turn was booked before
    (run,) = (path.stem for path in bench.results.glob("runs/*.json"))
    capped = bench.pytester.runpytest(
        *WAY, *BIG, f"--cellprose-resume={run}", "--cellprose-vendor-cap-usd=house=900", "--collect-only"
    )
    capped.stdout.fnmatch_lines(["*cap for house: $900.00 (of this $* spent by the runs that this one goes on from)*"])


def test_a_cap_counts_the_turns_of_episodes_that_run(boxes: Callable[..., Bench]) -> None:
    """Two episodes at once that cost more than was expected of them: there is no room for a third."""
    bench = boxes(seconds=0.3, turns=3, boxes=6)
    arguments = (*BIG, "--cellprose-vendor-cap-usd=house=130", "--cellprose-inflight=2", "--cellprose-fault-retries=0")
    result = bench.pytester.runpytest(*WAY, *arguments)
    kinds = [record["outcome"]["kind"] for record in bench.records()]
    spent = bench.written("ledger.json")["vendors"]["house"]["spent"]
    assert spent == 2 * 4 * DOLLARS
    assert sorted(kinds, key=str) == [None, None, *["spend_cap"] * 4]
    assert result.ret == 1

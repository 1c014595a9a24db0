"""The script for the first live calls: shows the price, spends only when told to, and finds what is not as assumed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pytest_cellprose.record.record import (
    CellId,
    Clip,
    CountedTokens,
    Git,
    ModelUsed,
    Outcome,
    Prices,
    Record,
    ToolStep,
    TurnUsage,
    Usage,
)
from tests.integration.conftest import HOUSE, Bench, bench  # noqa: F401
from tests.integration.test_agents import explorer

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "first_live_check.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("first_live_check", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def record(**fields: Any) -> Record:
    usage = {"input": 1000, "output": 400, "reasoning": 300, "cached": 0, "raw": {"input_tokens": 1000}}
    return Record.model_validate(
        {
            "run": "r",
            "git": Git(),
            "cell": CellId(model="haiku55", encoding="csv", workbook="w", repeat=1),
            "set": "development",
            "encoding_version": "1",
            "inputs_id": "i",
            "prompt_sha256": "p",
            "model": ModelUsed(requested="claude-haiku-5-5", returned=fields.pop("returned", "claude-haiku-5-5")),
            "prices": Prices(input="0.10", output="0.50"),
            "usage": Usage.model_validate({**usage, **fields.pop("usage", {})}),
            "counted_tokens": CountedTokens(counter="c", n=995),
            "started": "2026-12-01T10:00:00Z",
            "seconds": 1.0,
            "outcome": Outcome(status="scored"),
            "kinds": {"q1": "value", "q2": "value"},
            **fields,
        }
    )


def test_a_call_that_is_as_assumed_has_no_findings(script: ModuleType) -> None:
    assert list(script.findings(record())) == []


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"returned": "claude-haiku-5-5-20261001"}, "claude-haiku-5-5-20261001 answered"),
        ({"attempts": 3}, "3 attempts"),
        ({"usage": {"output": None}}, "usage is not complete"),
        ({"usage": {"raw": None}}, "usage is not complete"),
        ({"usage": {"cached": 7}}, "7 tokens came from a cache"),
        ({"usage": {"reasoning": None}}, "reasoning tokens are not reported"),
        ({"usage": {"reasoning": 401}}, "401 reasoning tokens are more than all 400"),
        ({"usage": {"output": 601}}, "601 tokens of output, where 600 are assumed"),
        ({"counted_tokens": None}, "no count"),
        ({"counted_tokens": CountedTokens(counter="c", n=1100)}, "1000 tokens billed, 1100 counted by c"),
        ({"outcome": Outcome(status="failure", kind="no_answer", detail="d")}, "failure no_answer"),
        ({"outcome": Outcome(status="fault", kind="transport", detail="d")}, "fault transport"),
    ],
)
def test_what_is_not_as_assumed_is_told(script: ModuleType, fields: dict[str, Any], told: str) -> None:
    (finding,) = script.findings(record(**fields))
    assert finding.startswith("haiku55-csv-w-rep1: ")
    assert told in finding


def turn(sent: int, got: int, **more: Any) -> TurnUsage:
    told = {"input": sent, "output": got, "reasoning": 30, "cached": 0, "raw": {"input_tokens": sent}}
    return TurnUsage.model_validate({**told, **more})


LOOK = ToolStep(turn=1, name="bash", arguments=Clip(head='{"command": "ls"}'), result=Clip(head="book.xlsx"))
TWO = [turn(1000, 100), turn(1150, 100)]


def episode(**fields: Any) -> Record:
    """Two turns, the second of which sends again what the first one sent and said, and 50 tokens more."""
    turns = fields.pop("turns", TWO)
    cell = CellId(model="haiku55", encoding="agent_xlsx", workbook="w", repeat=1)
    told = {"cell": cell, "turns": turns, "tool_trace": [LOOK], "attempts": len(turns), "counted_tokens": None}
    summed = {"input": 2150, "output": 200, "reasoning": 60, "raw": None}
    return record(**{**told, "usage": summed, **fields})


def test_an_episode_that_is_as_assumed_has_no_findings(script: ModuleType) -> None:
    assert list(script.findings(episode())) == []


MANY = [turn(1000 + 150 * number, 100) for number in range(7)]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"attempts": 4}, ": 4 attempts at 2 turns"),
        ({"turns": MANY}, ": 7 turns, where 6 are assumed"),
        ({"tool_trace": []}, ": no tool was called"),
        ({"tool_trace": [LOOK.model_copy(update={"problem": "misfit"})]}, ", turn 1: a call of bash was answered"),
        ({"turns": [TWO[0], turn(1150, 100, cached=900)]}, ", turn 2: 900 tokens came from a cache"),
        ({"turns": [TWO[0], turn(1150, 100, reasoning=None)]}, ", turn 2: reasoning tokens are not reported"),
        ({"turns": [TWO[0], turn(1150, 100, raw=None)]}, ", turn 2: usage is not complete"),
        ({"turns": [turn(1000, 100, output=None), TWO[1]]}, ", turn 1: usage is not complete"),
        ({"turns": [TWO[0], turn(1085, 100)]}, ", turn 2: 1085 tokens in, after 1070 that were sent and said and 30"),
        (
            {"turns": [TWO[0], turn(300, 100)]},
            "tokens in, after 1070 that were sent and said: what came before was lost",
        ),
        ({"outcome": Outcome(status="failure", kind="cache_leak", detail="d")}, ": failure cache_leak"),
        ({"outcome": Outcome(status="fault", kind="world", detail="d")}, ": fault world"),
    ],
)
def test_what_is_not_as_assumed_of_an_episode_is_told(script: ModuleType, fields: dict[str, Any], told: str) -> None:
    (finding,) = script.findings(episode(**fields))
    assert finding.startswith("haiku55-agent_xlsx-w-rep1")
    assert told in finding


def test_a_table_has_a_line_for_each_turn(script: ModuleType) -> None:
    _, cell, *turns = script.table([episode()])
    assert cell.startswith("haiku55-agent_xlsx-w-rep1: scored")
    assert turns == [
        "    turn 1: bash; usage as reported: {'input_tokens': 1000}",
        "    turn 2: no tool; usage as reported: {'input_tokens': 1150}",
    ]


def commands(script: ModuleType, *arguments: str) -> list[dict[str, str]]:
    """Each run's options with their values."""
    found = script.pytest_commands(script._parser().parse_args(arguments))
    return [dict(part.removeprefix("--cellprose-").partition("=")[::2] for part in command) for command in found]


def test_every_vendor_that_is_called_has_a_cap(script: ModuleType) -> None:
    def cap(models: str) -> str:
        (found,) = commands(script, "--models", models, "--cap-usd", "0.1")
        return found["vendor-cap-usd"]

    assert cap("haiku55,gpt6luna") == "anthropic=0.1,openai=0.1"
    assert cap("haiku55,opus55@low") == "anthropic=0.1"


def test_agents_are_a_run_of_their_own_with_one_model_of_each_vendor(script: ModuleType) -> None:
    calls, agents = commands(script, "--agents", "--models", "haiku55,opus55@low,gpt6luna", "--cap-usd", "0.1")
    assert (calls["models"], calls["encodings"]) == ("haiku55,opus55@low,gpt6luna", "cellprose_lean_gfm,csv")
    assert "max-call-usd" not in calls
    assert (agents["models"], agents["encodings"]) == ("haiku55,gpt6luna", "agent_xlsx")
    assert (agents["vendor-cap-usd"], agents["max-call-usd"]) == ("anthropic=0.1,openai=0.1", "0.1")
    assert agents["workbooks"] == calls["workbooks"]


def test_agents_are_priced_before_anything_is_asked(bench: Bench) -> None:  # noqa: F811
    explorer(bench, [["ls"]])
    chosen = ("--models", "house", "--encodings", "csv", "--workbooks", "alpha", "--agents")

    command = [sys.executable, str(SCRIPT), *chosen, "--spend", "--", "--cellprose-sandbox=unsafe"]
    spent = subprocess.run(command, cwd=bench.pytester.path, capture_output=True, text=True, check=False)
    assert spent.returncode == 1
    plans, _, calls = spent.stdout.partition(" passed")
    assert plans.count("1 cells  expected $") >= 2
    assert "6 for agent_xlsx" in plans
    assert "house-csv-alpha-rep1: scored" in calls
    assert "house-agent_xlsx-alpha-rep1, turn 1: usage is not complete" in spent.stdout
    assert "    turn 1: bash; usage as reported: None" in spent.stdout
    assert bench.ids() == ["house-agent_xlsx-alpha-rep1", "house-csv-alpha-rep1"]


def test_a_refused_plan_of_agents_makes_no_call(bench: Bench) -> None:  # noqa: F811
    chosen = ("--models", "open", "--encodings", "csv", "--workbooks", "alpha", "--agents", "--spend")
    command = [sys.executable, str(SCRIPT), *chosen, "--", "--cellprose-openweight=open=some/model-7b,0.20,0.60"]
    refused = subprocess.run(command, cwd=bench.pytester.path, capture_output=True, text=True, check=False)
    assert refused.returncode == 4
    assert "open-weight models are asked in one shot only" in refused.stdout + refused.stderr
    assert refused.stdout.count("collected 1 item") == 1  # the plan of the calls was accepted
    assert "The plan is refused" in refused.stdout
    assert not bench.results.exists()


def test_it_shows_the_price_and_calls_only_when_told_to(bench: Bench) -> None:  # noqa: F811
    bench.pytester.makeconftest(HOUSE)

    def check(*arguments: str) -> subprocess.CompletedProcess[str]:
        chosen = ("--models", "house", "--encodings", "csv", "--workbooks", "alpha")
        command = [sys.executable, str(SCRIPT), *chosen, *arguments]
        return subprocess.run(command, cwd=bench.pytester.path, capture_output=True, text=True, check=False)

    shown = check()
    assert shown.returncode == 0
    assert "1 cells  expected $0.0" in shown.stdout
    assert "Nothing was called" in shown.stdout
    assert not bench.results.exists()

    spent = check("--spend")
    assert spent.returncode == 1
    assert "To look at:\n  house-csv-alpha-rep1: usage is not complete" in spent.stdout
    assert len(bench.records()) == 1

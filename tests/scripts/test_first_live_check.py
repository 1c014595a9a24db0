"""The script for the first live calls: shows the price, spends only when told to, and finds what is not as assumed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pytest_cellprose.record.record import CellId, CountedTokens, Git, ModelUsed, Outcome, Prices, Record, Usage
from tests.integration.conftest import HOUSE, Bench, bench  # noqa: F401

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


def test_every_vendor_that_is_called_has_a_cap(script: ModuleType) -> None:
    def cap(models: str) -> str:
        options = script._parser().parse_args(["--models", models, "--cap-usd", "0.1"])
        (found,) = (part for part in script.pytest_command(options) if "vendor-cap" in part)
        return str(found.partition("=")[2])

    assert cap("haiku55,gpt6luna") == "anthropic=0.1,openai=0.1"
    assert cap("haiku55,opus55@low") == "anthropic=0.1"


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

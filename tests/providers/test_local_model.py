"""A run of the benchmark on a real model: llama.cpp's server, which speaks all three protocols.

Opt-in: ``scripts/local_model.sh`` builds and starts the server and says what to export. Streams, token counts,
overflow and answers that cannot be read are real here. How right the answers are is not the point: the model has 135
million parameters.

The three smallest development workbooks, in all six encodings, through each protocol: 54 calls of one run, minutes on
two cores.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request as HttpRequest
from urllib.request import urlopen

import pytest

from pytest_cellprose.providers.base import ModelFailure, Provider, Request
from pytest_cellprose.providers.http import Patience
from tests.providers.conftest import PROVIDERS

SERVER = os.environ.get("CELLPROSE_LOCAL_MODEL", "").rstrip("/")
pytestmark = [
    pytest.mark.local_model,
    pytest.mark.skipif(not SERVER, reason="no local model: CELLPROSE_LOCAL_MODEL is not set (scripts/local_model.sh)"),
]

CELLS = Path(__file__).resolve().parents[2] / "cells"
WORKBOOKS = ("unit_economics", "budget", "project_plan")
TOO_LONG = "sales"
ENCODINGS = ("cellprose_lean_gfm", "markitdown", "csv", "markdown", "toon", "none")
ALIASES = {"anthropic": "local_messages", "openai": "local_responses", "compat": "local_chat"}
MAX_TOKENS = 96
"""Few, so that both ways of ending happen and a run takes minutes."""
REGISTRY = f"""
[local_messages]
model_id = "smollm2-135m"
vendor = "anthropic"
max_tokens = {MAX_TOKENS}
effort = "low"
efforts = ["low"]
thinking = "adaptive"
input = "0.10"
output = "0.50"

[local_responses]
model_id = "smollm2-135m"
vendor = "openai"
max_tokens = {MAX_TOKENS}
effort = "low"
efforts = ["low"]
prompt_cache = "explicit"
input = "0.10"
output = "0.50"

[local_chat]
model_id = "smollm2-135m"
vendor = "compat"
max_tokens = {MAX_TOKENS}
input = "0.10"
output = "0.50"
"""
ADDRESSES = {
    "ANTHROPIC_BASE_URL": SERVER,
    "OPENAI_BASE_URL": SERVER + "/v1",
    "CELLPROSE_COMPAT_BASE_URL": SERVER + "/v1",
    "ANTHROPIC_API_KEY": "sk-not-needed-here",
    "OPENAI_API_KEY": "sk-not-needed-here",
}


@dataclass(frozen=True)
class Run:
    """One run of the plugin, as a user starts it."""

    returncode: int
    output: str
    records: list[dict[str, Any]]

    def of(self, alias: str) -> list[dict[str, Any]]:
        return [record for record in self.records if record["cell"]["model"] == alias]


def run_benchmark(folder: Path, *arguments: str) -> Run:
    (folder / "models.toml").write_text(REGISTRY, encoding="utf-8")
    (folder / "pyproject.toml").write_text('[tool.pytest]\ncellprose_registry = ["models.toml"]\n', encoding="utf-8")
    (folder / "test_cells.py").write_text("def test_cell(cell):\n    cell.run()\n", encoding="utf-8")
    cells = folder / "cells"
    cells.mkdir()
    for name in (*WORKBOOKS, TOO_LONG):
        for ending in (".xlsx", ".json"):
            shutil.copy(CELLS / (name + ending), cells)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--cellprose-live", "--cellprose-cells=cells"]
    # the server has one slot: what waits in its queue would only use up the time of its call
    models = [f"--cellprose-models={','.join(ALIASES.values())}", "--cellprose-inflight=1"]
    done = subprocess.run(
        [*command, *models, *arguments],
        cwd=folder,
        env={**os.environ, **ADDRESSES},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    files = sorted(folder.glob("results/*/records-*.jsonl"))
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    return Run(done.returncode, done.stdout + done.stderr, [json.loads(line) for line in lines])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_benchmark(tmp_path_factory.mktemp("run"), f"--cellprose-workbooks={','.join(WORKBOOKS)}")


def test_every_cell_ends_in_an_outcome_of_the_model(run: Run) -> None:
    assert run.returncode == 0, run.output
    cells = Counter((r["cell"]["model"], r["cell"]["encoding"], r["cell"]["workbook"]) for r in run.records)
    planned = [(m, e, w) for m in ALIASES.values() for e in ENCODINGS for w in WORKBOOKS]
    assert cells == Counter(planned)
    assert {r["outcome"]["kind"] for r in run.records} <= {None, "truncated", "no_answer"}
    assert {r["attempts"] for r in run.records} == {1}
    assert {r["model"]["returned"] for r in run.records} == {"smollm2-135m"}


def test_what_has_no_answer_scores_nothing_and_counts(run: Run) -> None:
    failed = [r for r in run.records if r["outcome"]["kind"] is not None]
    assert failed
    for record in failed:
        assert record["accuracy"] == 0.0
        assert set(record["scores"].values()) == {0.0}
        assert record["reply"]
        assert record["usage"]["output"] > 0


def test_a_reply_at_the_limit_is_truncated_where_the_server_says_so(run: Run) -> None:
    told = [record for alias in ("local_messages", "local_chat") for record in run.of(alias)]
    truncated = [record for record in told if record["outcome"]["kind"] == "truncated"]
    assert truncated
    assert {record["usage"]["output"] for record in truncated} == {MAX_TOKENS}
    # through Responses, llama.cpp calls a response that it cut "completed"
    assert {r["outcome"]["kind"] for r in run.of("local_responses")} <= {None, "no_answer"}


def test_a_prompt_has_the_same_tokens_through_every_protocol(run: Run) -> None:
    told: dict[tuple[str, str], set[int]] = {}
    for record in run.records:
        told.setdefault((record["cell"]["encoding"], record["cell"]["workbook"]), set()).add(record["usage"]["input"])
    assert len(told) == len(ENCODINGS) * len(WORKBOOKS)
    assert all(len(counts) == 1 for counts in told.values()), told


def test_the_vendor_s_count_beside_a_call_is_what_the_call_reports(run: Run) -> None:
    for record in run.of("local_messages"):
        assert record["counted_tokens"] == {"counter": "anthropic count_tokens", "n": record["usage"]["input"]}


def test_costs_are_tokens_times_prices(run: Run) -> None:
    for record in run.records:
        usage = record["usage"]
        assert record["cost_nanousd"] == usage["input"] * 100 + usage["output"] * 500
        assert usage["output"] <= MAX_TOKENS
        assert not usage["cached"]


def test_a_workbook_beyond_the_model_s_context_is_the_model_s_failure(tmp_path: Path) -> None:
    run = run_benchmark(tmp_path, f"--cellprose-workbooks={TOO_LONG}", "--cellprose-encodings=csv")
    assert run.returncode == 0, run.output
    outcomes = {r["cell"]["model"]: (r["outcome"]["kind"], r["accuracy"], r["attempts"]) for r in run.records}
    assert outcomes == dict.fromkeys(ALIASES.values(), ("context_exceeded", 0.0, 1))
    assert all("exceed_context_size_error" in r["outcome"]["detail"] for r in run.records)


def test_input_tokens_are_those_of_the_server_s_own_tokenizer(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ADDRESSES.items():
        monkeypatch.setenv(name, value)
    request = Request("smollm2-135m", "Be brief.", "Zürich, 東京 and =SUM(B4:G4)?", max_tokens=8)
    messages = [{"role": "system", "content": request.system}, {"role": "user", "content": request.prompt}]
    prompt = asked("/apply-template", {"messages": messages})["prompt"]
    tokens = asked("/tokenize", {"content": prompt, "add_special": True, "parse_special": True})["tokens"]
    for name in PROVIDERS:
        assert usage_of(PROVIDERS[name](Patience()), request) == len(tokens)


def usage_of(provider: Provider, request: Request) -> int | None:
    """Input tokens that a call reports, whether or not its reply was cut."""
    try:
        return provider.call(request).usage.input
    except ModelFailure as failure:
        return failure.reply.usage.input if failure.reply is not None else None


def asked(path: str, body: object) -> Any:
    content = json.dumps(body).encode()
    return json.loads(urlopen(HttpRequest(SERVER + path, content, {"content-type": "application/json"})).read())

"""Expected output: as recorded for the same model and settings, else the documented assumption."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_cellprose.measure.expected_output import Outputs
from pytest_cellprose.models.registry import ModelSpec, builtin_models
from pytest_cellprose.plan.outputs import recorded_outputs

HAIKU = builtin_models()["haiku55"]


def store_run(
    out: Path, run: str, lines: list[dict[str, Any]], *, skipped: bool = False, heldout: bool = False
) -> None:
    manifest = {
        "models": [{"alias": "haiku55", "model_id": HAIKU.model_id}],
        "matrix": {"skipped_models": {"haiku55": "not live"} if skipped else {}},
    }
    (out / "runs").mkdir(parents=True, exist_ok=True)
    (out / "runs" / f"{run}.json").write_text(json.dumps(manifest))
    (out / run).mkdir()
    name = "records-heldout.jsonl" if heldout else "records-development.jsonl"
    (out / run / name).write_text("".join(json.dumps(line) + "\n" for line in lines))


def line(
    encoding: str, output: int | None, questions: int, *, model: ModelSpec = HAIKU, status: str = "scored"
) -> dict[str, Any]:
    return {
        "cell": {"encoding": encoding},
        "model": {"requested": model.model_id, "settings": {"max_tokens": model.max_tokens, **model.settings}},
        "usage": {"output": output},
        "kinds": {f"q{number}": "value" for number in range(questions)},
        "outcome": {"status": status},
    }


def test_without_records_it_is_the_assumption(tmp_path: Path) -> None:
    outputs = recorded_outputs(tmp_path, [HAIKU])
    assert outputs == Outputs()
    assert outputs.expected("haiku55", "csv", 4) == 100 + 4 * 250
    assert outputs.method() == "output assumed: 100 tokens a call and 250 a question"


def test_records_of_the_encoding_count_before_those_of_the_model(tmp_path: Path) -> None:
    store_run(tmp_path, "1", [line("csv", 300, 3)] * 5)
    store_run(tmp_path, "2", [line("toon", 500, 1)] * 2)
    outputs = recorded_outputs(tmp_path, [HAIKU])
    assert outputs.expected("haiku55", "csv", 4) == 400
    # 7 calls in all: 2,500 tokens about 17 questions
    assert outputs.expected("haiku55", "toon", 17) == 2_500
    assert outputs.expected("haiku55", "markdown", 17) == 2_500
    assert outputs.expected("sonnet55", "csv", 4) == 1_100
    assert "2 earlier runs: haiku55 (7)" in outputs.method()
    assert "else assumed" in outputs.method()


def test_few_calls_do_not_replace_the_assumption(tmp_path: Path) -> None:
    store_run(tmp_path, "1", [line("csv", 1, 1)] * 4)
    outputs = recorded_outputs(tmp_path, [HAIKU])
    assert outputs.expected("haiku55", "csv", 4) == 1_100
    assert outputs.method().startswith("output assumed")


def test_a_fraction_of_a_token_is_rounded_up(tmp_path: Path) -> None:
    store_run(tmp_path, "1", [line("csv", 10, 3)] * 5)
    assert recorded_outputs(tmp_path, [HAIKU]).expected("haiku55", "csv", 1) == 4


@pytest.mark.parametrize(
    "other",
    [
        line("csv", 9, 1, model=HAIKU.model_copy(update={"effort": "low"})),
        line("csv", 9, 1, model=HAIKU.model_copy(update={"max_tokens": 50})),
        line("csv", 9, 1, model=HAIKU.model_copy(update={"model_id": "claude-haiku-4-5"})),
        line("csv", 9, 1, status="fault"),
        line("csv", None, 1),
        line("csv", 9, 0),
        {"model": "haiku"},
        {},
    ],
)
def test_other_settings_faults_and_unknown_lines_do_not_count(tmp_path: Path, other: dict[str, Any]) -> None:
    store_run(tmp_path, "1", [other] * 9)
    assert recorded_outputs(tmp_path, [HAIKU]) == Outputs()


def test_held_out_records_and_runs_that_skipped_the_model_are_not_read(tmp_path: Path) -> None:
    store_run(tmp_path, "1", [line("csv", 9, 1)] * 9, heldout=True)
    store_run(tmp_path, "2", [line("csv", 9, 1)] * 9, skipped=True)
    assert recorded_outputs(tmp_path, [HAIKU]) == Outputs()


def test_damaged_files_are_passed_by(tmp_path: Path) -> None:
    store_run(tmp_path, "1", [line("csv", 9, 1)] * 5)
    with (tmp_path / "1" / "records-development.jsonl").open("a") as stream:
        stream.write('{"cell": {"enc\n[1]\n')
    (tmp_path / "runs" / "2.json").write_text("{")
    (tmp_path / "runs" / "3.json").write_text("[]")
    assert recorded_outputs(tmp_path, [HAIKU]).expected("haiku55", "csv", 2) == 18


def test_the_latest_runs_are_read(tmp_path: Path) -> None:
    for number in range(30):
        store_run(tmp_path, f"{number:02}", [line("csv", number, 1)] * 5)
    outputs = recorded_outputs(tmp_path, [HAIKU])
    assert outputs.runs == [f"{number:02}" for number in range(29, 9, -1)]

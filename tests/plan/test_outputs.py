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


def episode(*turns: tuple[int | None, int | None]) -> dict[str, Any]:
    told = [{"input": tokens_in, "output": tokens_out} for tokens_in, tokens_out in turns]
    return {**line("agent_xlsx", 9_999, 3), "turns": told}


def test_recorded_episodes_count_by_their_turns_and_not_as_calls_in_one_shot(tmp_path: Path) -> None:
    """At $0.10 and $0.50 per million, a turn above 100,000 tokens at $0.50 and $2.50."""
    store_run(tmp_path, "1", [episode((1_000, 100), (200_000, 1_000)), episode((3_000, 300))])
    outputs = recorded_outputs(tmp_path, [HAIKU])
    spent = 1_000 * 100 + 100 * 500 + 200_000 * 500 + 1_000 * 2_500 + 3_000 * 100 + 300 * 500
    assert outputs.episode("haiku55", "agent_xlsx", HAIKU.prices, 1_000) == spent // 2
    assert outputs.recorded == {}
    assert outputs.expected("haiku55", "csv", 4) == 1_100
    assert "as recorded for haiku55 (2)" in outputs.episode_method(["agent_xlsx"])


def test_an_episode_of_which_a_turn_told_nothing_is_passed_by(tmp_path: Path) -> None:
    store_run(tmp_path, "1", [episode((1_000, 100), (None, None))])
    assert recorded_outputs(tmp_path, [HAIKU]).episodes == {}


def test_without_records_an_episode_sends_all_before_it_again_each_turn() -> None:
    """Six turns of 400 tokens, whose tools answer 1,200: the table of assumed turns."""
    inputs = [1_000 + turn * 1_600 for turn in range(6)]
    expected = sum(tokens * 100 + 400 * 500 for tokens in inputs)
    assert Outputs().episode("haiku55", "agent_xlsx", HAIKU.prices, 1_000) == expected
    assert "6 for agent_xlsx" in Outputs().episode_method(["agent_xlsx"])

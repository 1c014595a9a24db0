"""``--cellprose-resume``: what was paid for is kept where the same was asked, and nothing else is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.integration.conftest import HOUSE, Bench

LIVE = ["--cellprose-live", "--cellprose-models", "house", "--cellprose-encodings", "csv,cellprose_lean_gfm"]


def calls(bench: Bench) -> int:
    log = bench.pytester.path / "calls.log"
    return len(log.read_text().splitlines()) if log.exists() else 0


def runs(bench: Bench) -> list[str]:
    return sorted(path.stem for path in (bench.results / "runs").glob("*.json"))


def records_of(bench: Bench, run: str) -> list[dict[str, Any]]:
    lines = (bench.results / run / "records-development.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def started(bench: Bench, *arguments: str, house: str = HOUSE) -> str:
    bench.pytester.makeconftest(house)
    bench.run(*LIVE, *arguments)
    return runs(bench)[-1]


def test_everything_is_kept_when_nothing_changed(bench: Bench) -> None:
    first = started(bench)
    result = bench.run(*LIVE, "--cellprose-resume", first, "-v")
    assert result.ret == 0
    assert calls(bench) == 4
    assert result.stdout.str().count("KEPT SCORED 0.20") == 4
    result.stdout.fnmatch_lines([f"*resuming {first}*", f"4 cells kept from run {first}"])
    second = runs(bench)[-1]
    assert second != first
    old, new = ({str(r["cell"]): r for r in records_of(bench, run)} for run in (first, second))
    assert {record["kept_from"] for record in new.values()} == {first}
    for cell, record in new.items():
        assert {**record, "run": first, "kept_from": None} == old[cell]
    report = json.loads((bench.results / second / "report.json").read_text())
    assert report["kept"] == {first: 4}
    assert set(report["kept_cells"][first]) == set(bench.ids())
    assert report["spent"] == 0
    assert report["publishable"] is False
    assert any(f"taken over from run {first}" in deviation for deviation in report["deviations"])


def test_only_what_is_missing_is_called(bench: Bench) -> None:
    first = started(bench, "-k", "alpha")
    assert bench.run(*LIVE, "--cellprose-resume", first, "--cellprose-reps", "2").ret == 0
    assert calls(bench) == 8
    kept = [record["kept_from"] for record in records_of(bench, runs(bench)[-1])]
    assert kept.count(first) == 2
    assert kept.count(None) == 6


def test_a_changed_truth_is_scored_again_and_not_called(bench: Bench) -> None:
    first = started(bench)
    path = bench.cells / "alpha.json"
    content = json.loads(path.read_text())
    content["questions"][1]["about"] = {"row": ["Units"], "column": ["Jan"]}
    content["questions"][1]["answer"] = ["Model!B2"]
    path.write_text(json.dumps(content))
    assert bench.run(*LIVE, "--cellprose-resume", first).ret == 0
    assert calls(bench) == 4
    scores = {r["cell"]["workbook"]: r["scores"]["q2"] for r in records_of(bench, runs(bench)[-1])}
    assert scores == {"alpha": 0.0, "beta": 1.0}


def test_a_changed_question_makes_its_workbooks_cells_stale(bench: Bench) -> None:
    first = started(bench)
    path = bench.cells / "alpha.json"
    path.write_text(path.read_text().replace("What is the total revenue?", "What is the revenue in total?"))
    result = bench.run(*LIVE, "--cellprose-resume", first)
    assert result.ret == 0
    assert calls(bench) == 4 + 2
    result.stdout.fnmatch_lines(
        [f"2 cells kept from run {first}", "2 stale cells called again: what is asked has changed"]
    )
    replaced = {r["cell"]["workbook"]: r["replaces"] for r in records_of(bench, runs(bench)[-1])}
    assert replaced == {"alpha": first, "beta": None}
    assert len(records_of(bench, first)) == 4


@pytest.mark.parametrize(
    ("ending", "called_again"),
    [("PathFault('transport', 'cable cut')", True), ("ModelFailure('truncated', 'cut')", False)],
)
def test_faults_run_again_and_failures_are_left_alone(bench: Bench, ending: str, called_again: bool) -> None:
    broken = HOUSE.replace(
        "        return Reply", f"        raise __import__('pytest_cellprose').{ending}\n        return Reply"
    )
    first = started(bench, "--cellprose-fault-retries=0", house=broken)
    bench.pytester.makeconftest(HOUSE)
    assert bench.run(*LIVE, "--cellprose-resume", first).ret == 0
    assert calls(bench) == (8 if called_again else 4)
    accuracy = {record["accuracy"] for record in records_of(bench, runs(bench)[-1])}
    assert accuracy == ({0.2} if called_again else {0.0})


def test_a_resumed_run_can_be_resumed_and_names_who_made_the_call(bench: Bench) -> None:
    first = started(bench, "-k", "alpha")
    bench.run(*LIVE, "--cellprose-resume", first)
    second = runs(bench)[-1]
    bench.run(*LIVE, "--cellprose-resume", second)
    assert calls(bench) == 4
    kept = [record["kept_from"] for record in records_of(bench, runs(bench)[-1])]
    assert sorted(kept) == sorted([first, first, second, second])


def test_a_resumed_run_that_ended_early_loses_nothing_of_the_one_before(bench: Bench) -> None:
    first = started(bench)
    bench.run(*LIVE, "--cellprose-resume", first, "-k", "alpha")
    second = runs(bench)[-1]
    assert len(records_of(bench, second)) == 2
    assert bench.run(*LIVE, "--cellprose-resume", second).ret == 0
    assert calls(bench) == 4
    assert {record["kept_from"] for record in records_of(bench, runs(bench)[-1])} == {first}


def test_kept_cells_need_no_approval(bench: Bench) -> None:
    bench.pytester.makeconftest(HOUSE)
    dear = ["--cellprose-live", "--cellprose-models", "dear", "--cellprose-encodings", "csv"]
    assert bench.run(*dear).ret == 4
    assert bench.run(*dear, "--cellprose-approve-usd", "100").ret == 0
    assert bench.run(*dear, "--cellprose-resume", runs(bench)[-1]).ret == 0
    assert calls(bench) == 2


def test_a_final_run_resumes_nothing(bench: Bench) -> None:
    first = started(bench)
    result = bench.run("--cellprose-final", "--cellprose-models", "house", "--cellprose-resume", first)
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*--cellprose-resume: a final run is one invocation*"])


def test_a_run_that_is_not_there_is_refused(bench: Bench) -> None:
    started(bench)
    result = bench.run(*LIVE, "--cellprose-resume", "20200101T000000Z-000000")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*--cellprose-resume: no run '20200101T000000Z-000000'*the last one is*"])

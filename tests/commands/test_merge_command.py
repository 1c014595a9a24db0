"""``report --merge``: shards of one plan, put together."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from pytest_cellprose.__main__ import main
from tests.integration.conftest import HOUSE, Bench, bench  # noqa: F401

LIVE = ("--cellprose-live", "--cellprose-models", "house", "--cellprose-encodings", "cellprose_lean_gfm,csv")
CALL = (1000 * 1000 + 20 * 2000) / 1e9
"""Dollars of every call to the house."""


@pytest.fixture
def house(bench: Bench) -> Bench:  # noqa: F811
    bench.pytester.makeconftest(HOUSE)
    return bench


def shard(bench: Bench, number: int, of: int = 2, *more: str) -> Path:  # noqa: F811
    """Run a shard as a job of a CI matrix does, and bring its artifact; returns the folder of the run."""
    assert bench.run(*LIVE, "--cellprose-shard", f"{number}/{of}", *more).ret == 0
    artifact = bench.pytester.path / "artifacts" / f"shard-{number}-of-{of}-{len(more)}"
    shutil.move(bench.results, artifact)
    (manifest,) = (artifact / "runs").glob("*.json")
    return artifact / manifest.stem


def merged(bench: Bench, *runs: Path) -> int:  # noqa: F811
    return main(["report", "--merge", "--out", str(bench.results), *map(str, runs)])


def manifest_of(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def verdicts(text: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in text.items() if name not in ("run", "deviations")}


def edited(run: Path, **fields: str) -> None:
    path = run.parent / "runs" / f"{run.name}.json"
    path.write_text(json.dumps(manifest_of(path) | fields), encoding="utf-8")


def test_shards_that_another_report_module_showed_go_together(house: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    """Not those that another provider, scorer or reader measured."""
    parts = [shard(house, 1), shard(house, 2)]
    edited(parts[1], package_sha256="0" * 64)
    assert merged(house, *parts) == 0
    (together,) = map(manifest_of, (house.results / "runs").glob("*.json"))
    assert together["package_sha256"] == ""
    edited(parts[1], measuring_sha256="0" * 64)
    assert merged(house, *parts) == 1
    assert "different experiments: measuring_sha256" in capsys.readouterr().err


def test_all_shards_make_the_report_of_the_whole_plan(house: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert house.run(*LIVE).ret == 0
    whole = house.written("verdicts.json")
    (alone,) = map(manifest_of, (house.results / "runs").glob("*.json"))
    shutil.rmtree(house.results)
    parts = [shard(house, 1), shard(house, 2)]
    capsys.readouterr()
    assert merged(house, *parts) == 0
    told = capsys.readouterr().out
    report = house.written("report.json")
    assert verdicts(house.written("verdicts.json")) == verdicts(whole)
    assert report["complete"]
    assert not report["publishable"]
    assert report["cells"]["measured"] == report["cells"]["planned"] == 4
    assert report["spent"] == pytest.approx(4 * CALL)
    # which cells came from which run, and their records as they were there
    assert report["run"] not in {part.name for part in parts}
    assert [part["run"] for part in report["merged_from"]] == [part.name for part in parts]
    assert [str(part["shard"]["number"]) for part in report["merged_from"]] == ["1", "2"]
    for part, origin in zip(parts, report["merged_from"], strict=True):
        lines = (part / "records-development.jsonl").read_text(encoding="utf-8").splitlines()
        assert all(line in (house.results / report["run"] / "records-development.jsonl").read_text() for line in lines)
        cells = [record["cell"] for record in map(json.loads, lines)]
        assert sorted(origin["cells"]) == sorted(
            f"{c['model']}-{c['encoding']}-{c['workbook']}-rep{c['repeat']}" for c in cells
        )
        assert origin["spent_nanousd"] == pytest.approx(2 * CALL * 1e9)
        assert f"From run {part.name} (shard {origin['shard']['number']}/2): 2 cells" in told
    # the merged run is a run like any other
    assert main(["report", "--out", str(house.results), report["run"]]) == 0
    assert house.written("report.json") == report
    manifest = manifest_of(house.results / "runs" / f"{report['run']}.json")
    for name in ("experiment", "encoded", "inputs_sha256"):
        assert manifest[name] == alone[name]
    assert main(["sets", "check", "--out", str(house.results), "--run", report["run"], str(house.cells)]) == 0


def test_fewer_shards_make_a_report_that_says_what_is_missing(house: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    house.add("gamma")
    parts = [shard(house, 1, 3), shard(house, 3, 3)]
    manifest = parts[1].parent / "runs" / f"{parts[1].name}.json"
    assert merged(house, parts[0], manifest) == 0
    assert "shard 2/3 is not here: 2 planned cells in other shards" in capsys.readouterr().out
    report = house.written("report.json")
    assert not report["complete"]
    assert (report["cells"]["in_other_shards"], report["cells"]["not_run"]) == (2, 0)
    assert report["missing_shards"] == [{"number": 2, "of": 3}]


def test_a_cell_that_was_taken_over_counts_once(house: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    first = shard(house, 1)
    again = shard(house, 1, 2, "--cellprose-resume", str(first))
    manifest = again.parent / "runs" / f"{again.name}.json"
    right = manifest.read_text()
    digest = json.loads(right)["encoded"]["sha256"]["alpha"]["csv"]
    manifest.write_text(right.replace(digest, "0" * 64))
    assert merged(house, first, again) == 1
    assert f"{first.name} and {again.name} made different texts of alpha in csv\n" in capsys.readouterr().err
    assert not house.results.exists()
    manifest.write_text(right)
    assert merged(house, first, again, shard(house, 2)) == 0
    report = house.written("report.json")
    assert report["complete"]
    assert report["kept"] == {}
    assert report["spent"] == pytest.approx(4 * CALL)
    assert [len(part["cells"]) for part in report["merged_from"]] == [2, 0, 2]


def test_a_run_and_what_a_machine_of_it_still_has(house: Bench) -> None:
    assert house.run(*LIVE).ret == 0
    (folder,) = (path.parent for path in house.results.glob("*/report.json"))
    # the machine's own store has all; of the run's, the last two lines are lost
    there = house.pytester.path / "there"
    shutil.copytree(house.results, there)
    records = folder / "records-development.jsonl"
    records.write_text("".join(records.read_text(encoding="utf-8").splitlines(keepends=True)[:2]), encoding="utf-8")
    assert merged(house, folder, there / folder.name) == 0
    (report,) = (
        json.loads(path.read_text()) for path in house.results.glob("*/report.json") if path.parent.name != folder.name
    )
    assert report["complete"]
    assert report["spent"] == pytest.approx(4 * CALL)


def test_runs_that_do_not_go_together_are_refused(house: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    one = shard(house, 1)
    twice = shard(house, 1, 2, "--cellprose-inflight=1")
    house.add("gamma")
    other = shard(house, 1, 3)
    capsys.readouterr()
    cases = [
        ((one,), 2, "at least two runs"),
        ((one, twice), 1, f"was measured by {one.name} and by {twice.name}"),
        ((one, other), 1, f"{one.name} and {other.name} are different experiments: matrix.workbooks"),
        ((one, Path("nowhere")), 1, "no run 'nowhere'"),
    ]
    for runs, code, told in cases:
        assert merged(house, *runs) == code
        (line,) = capsys.readouterr().err.splitlines()
        assert told in line
    for mode, told in (("final", "is a final run: it is one invocation"), ("development", "a development run")):
        manifest = other.parent / "runs" / f"{other.name}.json"
        manifest.write_text(manifest.read_text().replace('"mode": "live"', f'"mode": "{mode}"'), encoding="utf-8")
        assert merged(house, one, other) == 1
        assert told in capsys.readouterr().err
        manifest.write_text(manifest.read_text().replace(f'"mode": "{mode}"', '"mode": "live"'), encoding="utf-8")
    assert not house.results.exists()

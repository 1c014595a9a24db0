"""``--cellprose-shard K/N``: a CI matrix runs one plan in pieces."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.integration.conftest import HOUSE, Bench
from tests.integration.test_gate import committed

READER = ("--cellprose-models", "reader", "--cellprose-encodings", "cellprose_lean_gfm,csv")


def manifests(bench: Bench) -> list[dict[str, Any]]:
    files = sorted((bench.results / "runs").glob("*.json"))
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def test_shards_run_every_cell_once(bench: Bench) -> None:
    processes: list[tuple[str, ...]] = [(), ("-n", "2")]
    for number, workers in enumerate(processes, start=1):
        result = bench.run(*READER, "--cellprose-reps", "2", "--cellprose-shard", f"{number}/2", *workers)
        assert result.ret == 0
        result.assert_outcomes(passed=4)
        result.stdout.fnmatch_lines(
            [
                f"cellprose: shard {number}/2: 4 cells of these*",
                f"this is shard {number}/2: 4 planned cells in other shards",
                "incomplete, so there is no headline: 4 of 8 cells measured",
            ]
        )
    assert len(bench.ids()) == len(set(bench.ids())) == 8
    one, two = manifests(bench)
    assert (one["shard"], two["shard"]) == ({"number": 1, "of": 2}, {"number": 2, "of": 2})
    assert one["matrix"] == two["matrix"]
    assert not one["publishable"]


def test_a_shards_report_tells_other_shards_cells_from_cells_that_were_not_run(bench: Bench) -> None:
    assert bench.run(*READER, "--cellprose-shard", "2/2", "-k", "csv").ret == 0
    report = bench.written("report.json")
    assert report["cells"] == {
        "planned": 4, "measured": 1, "failed": 0, "faulted": 0, "refused": 0, "skipped": 0, "not_run": 1,
        "in_other_shards": 2,
    }  # fmt: skip
    assert report["not_run"] == ["reader-cellprose_lean_gfm-beta-rep1"]
    assert report["shard"] == {"number": 2, "of": 2}
    assert not report["complete"]
    assert "2 of 4 planned cells are in shards that are not here (1/2)" in report["deviations"]
    page = next(bench.results.glob("*/report.md")).read_text(encoding="utf-8")
    assert "1 not run, 2 in other shards" in page


def test_costs_and_approval_concern_the_shards_cells(bench: Bench) -> None:
    bench.pytester.makeconftest(HOUSE)
    dear = ("--cellprose-live", "--cellprose-models", "dear", "--cellprose-encodings", "csv", "--cellprose-shard")
    plan = bench.run("--collect-only", *dear, "1/2")
    plan.stdout.fnmatch_lines(["1 of 2 planned cells selected (shard 1/2: 1 cells)", "  dear *1 cells  expected $*"])
    refused = bench.run(*dear, "1/2")
    assert refused.ret == 4
    whole = bench.run(*dear[:-1])
    approve = [text.partition("approve-usd ")[2] for text in (refused.stdout.str(), whole.stdout.str())]
    half, full = (float(text.split()[0]) for text in approve)
    assert half == pytest.approx(full / 2, abs=0.02)


def test_a_shard_that_cannot_be_is_refused(bench: Bench) -> None:
    for text in ("0/2", "3/2", "2", "a/b", "1/0"):
        result = bench.run(*READER, "--cellprose-shard", text)
        assert result.ret == 4
        result.stderr.fnmatch_lines([f"*--cellprose-shard: '{text}' is not K/N with K from 1 to N*"])
    result = bench.run(*READER, "--cellprose-shard", "1/3")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*--cellprose-shard: 3 shards of a plan that has 2 parts *: at most 2*"])
    committed(bench)
    result = bench.run("--cellprose-final", *READER, "--cellprose-shard", "1/2")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*--cellprose-shard: a final run is one invocation*"])
    assert not bench.results.exists()

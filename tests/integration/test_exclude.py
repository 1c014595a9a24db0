"""``--cellprose-exclude RUN``: a fresh sample leaves out the held-out workbooks that were looked at before."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tests.integration.conftest import Bench

NAMES = {f"sealed{number}" for number in range(6)}
FINAL = ("--cellprose-final", "--cellprose-models", "reader", "--cellprose-encodings", "csv", "--cellprose-reps", "2")


@pytest.fixture
def sealed(bench: Bench) -> Bench:
    """Six held-out workbooks, committed."""
    for number, name in enumerate(sorted(NAMES)):
        bench.add(name, scale=number + 5, heldout=True)
    (bench.pytester.path / ".gitignore").write_text("__pycache__/\n.pytest_cache/\n")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for command in (["init"], ["add", "-A"], ["commit", "-m", "all"]):
        subprocess.run([*git, *command], cwd=bench.pytester.path, check=True, capture_output=True)
    return bench


def manifests(bench: Bench) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted((bench.results / "runs").glob("*.json"))]


def drawn(manifest: dict[str, Any]) -> set[str]:
    return {book["name"] for book in manifest["matrix"]["workbooks"] if book["set"] == "heldout"}


def test_a_fresh_sample_shares_nothing_with_the_last_and_both_are_recorded(sealed: Bench) -> None:
    assert sealed.run(*FINAL, "--cellprose-subset", "2").ret == 0
    (first,) = manifests(sealed)
    result = sealed.run(*FINAL, "--cellprose-subset", "3", "--cellprose-exclude", first["run"])
    assert result.ret == 0
    second = next(manifest for manifest in manifests(sealed) if manifest["run"] != first["run"])
    assert len(drawn(first)) == 2
    assert len(drawn(second)) == 3
    assert not drawn(first) & drawn(second)
    assert second["settings"]["excluded_runs"] == [first["run"]]
    assert set(second["settings"]["excluded_workbooks"]) == drawn(first)
    assert any("3 of 6 held-out workbooks" in text and first["run"] in text for text in second["deviations"])
    result.stdout.fnmatch_lines([f"cellprose: held-out workbooks: 2 left out that were looked at by {first['run']}"])

    # the same seed goes on where the last draw ended: together they are the larger draw
    assert sealed.run(*FINAL, "--cellprose-subset", "5").ret == 0
    third = next(m for m in manifests(sealed) if m["run"] not in (first["run"], second["run"]))
    assert drawn(third) == drawn(first) | drawn(second)

    # several runs, comma-separated or each with its option, as ids, folders or manifests: what is left is the rest
    runs = f"{first['run']},results/{second['run']}"
    rest = sealed.run("--collect-only", "-q", *FINAL, "--cellprose-exclude", runs)
    several = sealed.run(
        "--collect-only", "-q", *FINAL,
        "--cellprose-exclude", f"results/runs/{first['run']}.json", "--cellprose-exclude", second["run"],
    )  # fmt: skip
    for plan in (rest, several):
        held_out = {line.split("-")[2] for line in plan.outlines if "::" in line} - {"alpha", "beta"}
        assert held_out == NAMES - drawn(first) - drawn(second)

    none_left = sealed.run(*FINAL, "--cellprose-exclude", f"{third['run']},{first['run']}", "--cellprose-subset", "1")
    assert none_left.ret == 0  # the sixth
    every = ",".join(manifest["run"] for manifest in manifests(sealed))
    refused = sealed.run(*FINAL, "--cellprose-exclude", every)
    assert refused.ret == 4
    refused.stderr.fnmatch_lines(["*every held-out workbook was looked at by those runs: none is left"])


def test_a_workbook_that_was_looked_at_is_left_out_under_another_name(sealed: Bench) -> None:
    assert sealed.run(*FINAL, "--cellprose-subset", "1").ret == 0
    (manifest,) = manifests(sealed)
    (seen,) = drawn(manifest)
    folder = sealed.pytester.mkdir("mine")
    (folder / "rw_new.json").write_bytes((sealed.cells / f"{seen}.json").read_bytes())
    plan = sealed.run(
        "--collect-only", "-q", *FINAL, "--cellprose-cells", "mine", "--cellprose-exclude", manifest["run"],
        "--cellprose-allow-dirty",
    )  # fmt: skip
    assert plan.ret == 0
    held_out = {line.split("-")[2] for line in plan.outlines if "::" in line} - {"alpha", "beta"}
    assert held_out == NAMES - {seen}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((*FINAL, "--cellprose-exclude", "20000101T000000Z-000000"), "*--cellprose-exclude: no run '20000101T*"),
        (("--cellprose-exclude", "some-run"), "*--cellprose-exclude*goes with --cellprose-final*"),
        ((*FINAL, "--cellprose-exclude", ","), "*--cellprose-exclude: ',' is not a list of runs*"),
    ],
)
def test_an_exclusion_that_means_nothing_is_refused(sealed: Bench, arguments: tuple[str, ...], told: str) -> None:
    result = sealed.run(*arguments)
    assert result.ret == 4
    result.stderr.fnmatch_lines([told])
    assert not sealed.results.exists()

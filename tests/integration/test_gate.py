"""Held-out data, live calls and money: what is refused, how, and that nothing has happened by then."""

from __future__ import annotations

import subprocess

import pytest

from tests.integration.conftest import HOUSE, Bench

USAGE_ERROR = 4


@pytest.fixture
def sealed(bench: Bench) -> Bench:
    """Beside the two development workbooks: one listed as held out, one by its name, one by not being listed."""
    bench.add("gamma", scale=5, heldout=True)
    bench.add("rw_delta", scale=7, listed=False)
    bench.add("epsilon", scale=9, listed=False)
    return bench


def git(bench: Bench, *arguments: str) -> None:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments]
    subprocess.run(command, cwd=bench.pytester.path, check=True, capture_output=True)


def committed(bench: Bench) -> None:
    (bench.pytester.path / ".gitignore").write_text("__pycache__/\n.pytest_cache/\n")
    git(bench, "init")
    git(bench, "add", "-A")
    git(bench, "commit", "-m", "all")


def test_development_leaves_held_out_workbooks_alone(sealed: Bench) -> None:
    result = sealed.run("--cellprose-models", "reader")
    assert result.ret == 0
    assert {record["cell"]["workbook"] for record in sealed.records()} == {"alpha", "beta"}


@pytest.mark.parametrize("name", ["gamma", "rw_delta", "epsilon", "sb_never_seen"])
@pytest.mark.parametrize("live", [(), ("--cellprose-live",)], ids=["development", "live"])
def test_a_held_out_workbook_named_by_option_is_refused(sealed: Bench, name: str, live: tuple[str, ...]) -> None:
    result = sealed.run("--cellprose-workbooks", f"alpha,{name}", *live)
    assert result.ret == USAGE_ERROR
    result.stderr.fnmatch_lines(
        [f"*workbook '{name}' is held out: only a final run may use it", "*accepted: pytest *--cellprose-final"]
    )
    assert not sealed.results.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("-k", "gamma"),
        ("-k", "csv and rw_"),
        ("-k", "alpha or epsilon"),
        ("-k", "reader-csv-gamma"),
        ("-k", "csv-rw_del"),
        ("-k", "gamma-rep1"),
        ("-k", "rw_delta-rep2"),
        ("-k", "lta-rep"),
        ("-k", "alpha or test_cell[reader-csv-epsilon-rep1]"),
        ("-k", "haiku55@low-csv-gamma"),
        ("-k", "reader-csv-gamma-rep1-0.5"),
        ("cells/test_cells.py::test_cell[reader-csv-gamma-rep1-0.5]",),
        ("cells/test_cells.py::test_cell[reader-csv-gamma-rep1]",),
        ("-n", "2", "-k", "gamma"),
        ("--collect-only", "-k", "gamma"),
    ],
)
def test_a_held_out_workbook_named_in_a_selection_is_refused(sealed: Bench, arguments: tuple[str, ...]) -> None:
    result = sealed.run(*arguments)
    assert result.ret == USAGE_ERROR
    result.stderr.fnmatch_lines(["*is held out: only a final run may use it"])
    assert not sealed.results.exists()


@pytest.mark.parametrize(
    "expression",
    ["not gamma", "alpha and not rw_delta", "a", "reader and csv", "csv-alpha", "alpha-rep1", "csv-", "rep1"],
)
def test_a_keyword_that_singles_out_nothing_held_out_is_fine(sealed: Bench, expression: str) -> None:
    result = sealed.run("--cellprose-models", "reader", "-k", expression)
    assert result.ret == 0
    assert {record["cell"]["workbook"] for record in sealed.records()} <= {"alpha", "beta"}


def test_a_held_out_workbook_is_so_by_digest_wherever_it_lies(sealed: Bench) -> None:
    folder = sealed.pytester.mkdir("mine")
    (folder / "innocent.json").write_bytes((sealed.cells / "gamma.json").read_bytes())
    (folder / "gamma.xlsx").write_bytes((sealed.cells / "gamma.xlsx").read_bytes())
    result = sealed.run("--cellprose-cells", "mine", "--cellprose-workbooks", "innocent")
    assert result.ret == USAGE_ERROR
    result.stderr.fnmatch_lines(["*workbook 'innocent' is held out*"])


def test_a_final_run_needs_a_repository(sealed: Bench) -> None:
    result = sealed.run("--cellprose-final", "--cellprose-models", "reader")
    assert result.ret == USAGE_ERROR
    result.stderr.fnmatch_lines(["*needs the benchmark under git*"])


def test_a_final_run_needs_a_clean_tree_or_a_recorded_exception(sealed: Bench) -> None:
    committed(sealed)
    (sealed.pytester.path / "untracked.txt").write_text("x")
    arguments = ["--cellprose-final", "--cellprose-models", "reader", "--cellprose-encodings", "csv"]
    result = sealed.run(*arguments)
    assert result.ret == USAGE_ERROR
    result.stderr.fnmatch_lines(["*clean working tree*", "*accepted: *--cellprose-final*--cellprose-allow-dirty"])
    assert not sealed.results.exists()

    allowed = sealed.run(*arguments, "--cellprose-allow-dirty")
    assert allowed.ret == 0
    (manifest,) = (sealed.results / "runs").glob("*.json")
    assert "uncommitted changes" in manifest.read_text()
    assert sealed.records()[0]["git"]["dirty"] is True


def test_a_final_run_has_both_sets_and_three_repeats(sealed: Bench) -> None:
    committed(sealed)
    result = sealed.run(
        "--cellprose-final", "--cellprose-models", "reader", "--cellprose-encodings", "csv,cellprose_lean_gfm"
    )
    assert result.ret == 0
    records = sealed.records()
    assert len(records) == 5 * 2 * 3
    assert {r["cell"]["workbook"] for r in records if r["set"] == "heldout"} == {"gamma", "rw_delta", "epsilon"}
    assert {r["git"]["dirty"] for r in records} == {False}
    result.stdout.fnmatch_lines(["cellprose: not publishable: *agent_xlsx absent*"])
    assert len(list(sealed.results.glob("*/records-heldout.jsonl"))) == 1
    verdicts = sealed.written("verdicts.json")
    assert verdicts["publishable"] is False
    assert set(verdicts["sets"]) == {"development", "heldout"}


def test_a_final_run_with_a_cell_left_out_exits_1(sealed: Bench) -> None:
    committed(sealed)
    result = sealed.run(
        "--cellprose-final", "--cellprose-models", "reader", "--cellprose-encodings", "csv", "-k", "not rep3"
    )
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*5 of 15 planned cells were not run*"])


def test_a_subset_is_drawn_by_seed_and_a_smaller_one_is_a_prefix(sealed: Bench) -> None:
    committed(sealed)

    def drawn(number: int, seed: int) -> set[str]:
        result = sealed.run(
            "--collect-only", "-q", "--cellprose-final", "--cellprose-models", "reader", "--cellprose-encodings", "csv",
            "--cellprose-subset", str(number), "--cellprose-seed", str(seed),
        )  # fmt: skip
        assert result.ret == 0
        return {line.split("-")[1 + 1] for line in result.outlines if "::" in line} - {"alpha", "beta"}

    for seed in (1, 2, 3):
        one, two, all_three = drawn(1, seed), drawn(2, seed), drawn(9, seed)
        assert len(one) == 1
        assert len(two) == 2
        assert one < two < all_three == {"gamma", "rw_delta", "epsilon"}
    assert len({frozenset(drawn(1, seed)) for seed in range(8)}) > 1


def test_a_known_held_out_workbook_that_is_not_here_is_refused_in_a_final_run(sealed: Bench) -> None:
    (sealed.cells / "gamma.xlsx").unlink()
    committed(sealed)
    arguments = ["--cellprose-final", "--cellprose-models", "reader", "--cellprose-encodings", "csv"]
    result = sealed.run(*arguments)
    assert result.ret == USAGE_ERROR
    result.stderr.fnmatch_lines(["*1 held-out workbook not here (gamma)*"])


NOBODY = """
from pytest_cellprose import ModelSpec, Prices

def pytest_cellprose_models():
    prices = Prices(input="1", output="2")
    return [ModelSpec(alias="lost", model_id="lost-1", vendor="nobody", prices=prices, max_tokens=4000)]
"""


def test_live_models_without_a_provider_are_refused_by_name(bench: Bench) -> None:
    bench.pytester.makeconftest(NOBODY)
    result = bench.run("--cellprose-live", "--cellprose-models", "lost")
    assert result.ret == USAGE_ERROR
    result.stderr.fnmatch_lines(["*no provider for nobody*lost*"])
    plan = bench.run("--collect-only", "--cellprose-live", "--cellprose-models", "lost")
    assert plan.ret == 0
    plan.stdout.fnmatch_lines(["*the gate would refuse: no provider for nobody*"])


def test_an_expected_cost_over_five_dollars_needs_approval(bench: Bench) -> None:
    bench.pytester.makeconftest(HOUSE)
    (bench.cells / "test_cells.py").write_text(  # a parameter of the test's own, which stands in its id too
        "import pytest\n@pytest.mark.parametrize('share', [0.5])\ndef test_cell(cell, share):\n    cell.run()\n"
    )
    arguments = ["--cellprose-live", "--cellprose-models", "dear", "--cellprose-encodings", "csv"]
    result = bench.run(*arguments)
    assert result.ret == USAGE_ERROR
    output = result.stdout.str() + result.stderr.str()
    assert "expected to cost $" in output
    assert "nothing was approved" in output
    assert not bench.results.exists()
    assert not (bench.pytester.path / "calls.log").exists()
    needed = output.partition("--cellprose-approve-usd ")[2].split()[0]

    short = bench.run(*arguments, "--cellprose-approve-usd", "6")
    assert short.ret == USAGE_ERROR
    approved = bench.run(*arguments, "--cellprose-approve-usd", needed)
    assert approved.ret == 0
    assert len(bench.records()) == 2


def test_money_is_judged_on_what_is_left_after_deselection(bench: Bench) -> None:
    bench.pytester.makeconftest(HOUSE)
    arguments = ["--cellprose-live", "--cellprose-models", "dear,house", "--cellprose-encodings", "csv"]
    assert bench.run(*arguments, "-k", "house").ret == 0


def test_the_plan_shows_what_the_gate_would_say_of_the_money(bench: Bench) -> None:
    bench.pytester.makeconftest(HOUSE)
    result = bench.run(
        "--collect-only", "--cellprose-live", "--cellprose-models", "dear", "--cellprose-encodings", "csv"
    )
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*the gate would refuse: the selected cells are expected to cost $*"])

"""Plugins that shuffle, repeat or rerun tests: a cell is called once, in the plan's order, whatever they do."""

from __future__ import annotations

import sys

import pytest

from tests.integration.conftest import HOUSE, Bench, deselected, own_workers
from tests.integration.test_gate import committed

LIVE = (
    "--cellprose-live",
    "--cellprose-models",
    "house",
    "--cellprose-encodings",
    "csv,none",
    "--cellprose-fault-retries=0",
)
PACKAGES = {
    "flaky": "flaky",
    "random_order": "random_order",
    "randomly": "pytest_randomly",
    "repeat": "pytest_repeat",
    "rerunfailures": "pytest_rerunfailures",
    "pytest-retry": "pytest_retry",
}

# The csv cells are measured and fail their test, the cells of the control are faults; and a test that takes no cell.
TESTS = """
import pytest

{mark}
def test_cell(cell):
    assert cell.run().accuracy > 0.5

{mark}
def test_shaky(attempts=[]):
    attempts.append(1)
    assert len(attempts) > 1
"""
FAULTY = HOUSE.replace(
    "        return Reply(",
    "        if 'Units' not in request.prompt:\n"
    "            raise __import__('pytest_cellprose').PathFault('transport', 'cable cut')\n"
    "        return Reply(",
)
ONCE = [f"house-{encoding}-{workbook}-rep1" for encoding in ("csv", "none") for workbook in ("alpha", "beta")]


def loading(*names: str) -> list[str]:
    """Arguments that load plugins, which are skipped where they are not installed."""
    for name in names:
        pytest.importorskip(PACKAGES[name])
    return [argument for name in names for argument in ("-p", name)]


def calls(bench: Bench) -> int:
    log = bench.pytester.path / "calls.log"
    return len(log.read_text().split()) if log.exists() else 0


def failed_once(bench: Bench, result: pytest.RunResult) -> None:
    """Four cells with a failed test each, and the test of no cell that its plugin had passed in the end."""
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()
    assert result.ret == 1
    outcomes = result.parseoutcomes()
    assert (outcomes["failed"], outcomes["passed"]) == (4, 1)
    assert bench.ids() == ONCE
    assert calls(bench) == 4


@pytest.fixture(autouse=True)
def fresh_pytest_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps what it was configured with in its module, which a test of another file may have imported before."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "pytest_retry"]:
        monkeypatch.delitem(sys.modules, name)


@pytest.mark.parametrize(
    ("plugin", "arguments", "mark"),
    [
        ("rerunfailures", ["--reruns=2"], ""),
        ("flaky", ["--force-flaky", "--max-runs=3"], ""),
        ("pytest-retry", [], "@pytest.mark.flaky(retries=2)"),
    ],
)
def test_a_failed_cell_is_not_repeated_and_another_test_is(
    bench: Bench, plugin: str, arguments: list[str], mark: str
) -> None:
    bench.pytester.makeconftest(FAULTY)
    (bench.cells / "test_cells.py").write_text(TESTS.format(mark=mark), encoding="utf-8")
    failed_once(bench, bench.run(*LIVE, *loading(plugin), *arguments))


@own_workers
@pytest.mark.parametrize(
    ("plugins", "arguments"),
    [
        (["rerunfailures", "randomly", "random_order"], ["--reruns=2", "--randomly-seed=3", "--random-order"]),
        (["pytest-retry"], ["--retries=2"]),
    ],
    ids=["reruns and shuffling", "retries"],
)
def test_nor_in_a_worker(bench: Bench, plugins: list[str], arguments: list[str]) -> None:
    bench.pytester.makeconftest(FAULTY)
    (bench.cells / "test_cells.py").write_text(TESTS.format(mark=""), encoding="utf-8")
    failed_once(bench, bench.run(*LIVE, *loading(*plugins), *arguments, "-n", "2"))


def test_a_held_out_failure_stays_withheld_from_a_plugin_that_retries(bench: Bench) -> None:
    bench.add("rw_gamma", scale=5)
    (bench.cells / "test_cells.py").write_text(
        "def test_cell(cell):\n    assert cell.run().reply == 'the secret'\n", encoding="utf-8"
    )
    committed(bench)
    final = ("--cellprose-final", "--cellprose-models", "reader", "--cellprose-encodings", "cellprose_lean_gfm")
    result = bench.run(*final, *loading("pytest-retry"), "--retries=1", "-k", "rw_gamma and rep1")
    result.assert_outcomes(failed=1, deselected=deselected(8))
    assert "AssertionError: what it says is withheld, the workbook is held out" in result.stdout.str()
    assert "Model!" not in result.stdout.str()


OTHERS = "import pytest\n\n@pytest.mark.parametrize('n', range(12))\ndef test_other(n):\n    assert n != 11\n"


def test_cells_keep_the_plans_order_and_other_tests_their_plugins_order(bench: Bench) -> None:
    bench.with_a_cache_of_its_own()
    (bench.cells / "test_cells.py").write_text(OTHERS + "\ndef test_cell(cell):\n    assert cell.run().accuracy == 1\n")
    reader = ("--cellprose-models", "reader", "--cellprose-reps", "2")
    assert bench.run(*reader).ret == 1  # for --ff to know of failures

    def order(*arguments: str) -> tuple[list[str], list[str]]:
        result = bench.run("--collect-only", "-q", *reader, *arguments)
        names = [line.partition("::")[2] for line in result.outlines if "::" in line]
        return [n for n in names if "test_cell" in n], [n for n in names if "test_other" in n]

    cells, others = order()
    assert len(cells) == 24
    assert len(others) == 12
    ways = {
        "randomly": [*loading("randomly"), "--randomly-seed=3"],
        "random_order": [*loading("random_order"), "--random-order", "--random-order-seed=3"],
        "failed first": ["--ff"],
        "all": [*loading("randomly", "random_order"), "--randomly-seed=3", "--random-order", "--ff"],
    }
    for way, arguments in ways.items():
        found, shuffled = order(*arguments)
        assert found == cells, way
        assert shuffled != others, way
        assert sorted(shuffled) == sorted(others), way


def test_runs_with_the_same_seed_are_runs_of_their_own(bench: Bench) -> None:
    for _ in range(2):
        assert (
            bench.run("--cellprose-models", "reader", "-k", "csv", *loading("randomly"), "--randomly-seed=3").ret == 0
        )
    assert len({record["run"] for record in bench.records()}) == 2


@own_workers
def test_a_repeated_test_shares_the_one_call_of_its_cell(bench: Bench) -> None:
    bench.pytester.makeconftest(HOUSE)
    result = bench.run(*LIVE, *loading("repeat"), "--count=2", "-n", "2")
    assert result.ret == 0
    result.assert_outcomes(passed=8)
    assert bench.ids() == ONCE
    assert calls(bench) == 4


@pytest.mark.parametrize(
    ("plugins", "arguments", "told"),
    [
        ([], ["-n", "2", "--dist=each"], "*pytest-xdist: --dist=each*every cell: use --dist=load*"),
        ([], ["-f", "--cellprose-live"], "*pytest-xdist: -f (--looponfail)*leave it out*"),
        (["flaky", "pytest-retry"], [], "*pytest-retry and flaky*-p no:pytest-retry or -p no:flaky*"),
    ],
)
def test_what_cannot_be_reconciled_is_refused_before_anything_runs(
    bench: Bench, plugins: list[str], arguments: list[str], told: str
) -> None:
    bench.pytester.makeconftest(HOUSE)
    result = bench.run("--cellprose-models", "reader", *loading(*plugins), *arguments)
    assert result.ret == 4
    result.stderr.fnmatch_lines([told])
    assert not bench.results.exists()
    assert calls(bench) == 0

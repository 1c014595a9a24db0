"""Cells that the path to the model failed run once more at the end of the run (docs/live.md)."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import pytest

from tests.integration.conftest import HOUSE, Bench, one_process, own_workers

LIVE = ["--cellprose-live", "--cellprose-models", "house", "--cellprose-encodings", "csv,markdown"]


def house(fails: str) -> str:
    """The fake model; `fails` decides, by how often a prompt came `before`, whether a call ends in a fault."""
    return HOUSE.replace(
        "        with Path",
        "        from pytest_cellprose import ModelFailure, PathFault\n"
        "        seen = Path(__file__).with_name(f'seen-{request.prompt_sha256[:12]}')\n"
        "        before = seen.read_text().count('x') if seen.exists() else 0\n"
        "        with seen.open('a') as log: log.write('x')\n"
        f"        if {fails}: raise PathFault(KIND, 'cable cut')\n"
        "        with Path",
    )


def live(bench: Bench, *arguments: str, fails: str = "before == 0", kind: str = "transport") -> pytest.RunResult:
    bench.pytester.makeconftest(house(fails).replace("KIND", repr(kind)))
    return bench.run(*LIVE, *arguments)


def outcomes(bench: Bench) -> dict[str, list[str]]:
    """Every cell with what its calls came to, in their order."""
    found: dict[str, list[str]] = {}
    for record in sorted(bench.records(), key=lambda record: record["started"]):
        cell = record["cell"]
        found.setdefault(f"{cell['encoding']}-{cell['workbook']}", []).append(
            record["outcome"]["kind"] or record["outcome"]["status"]
        )
    return found


def test_what_faulted_is_measured_in_one_more_pass(bench: Bench) -> None:
    result = live(bench, "-v", "--junitxml=out.xml")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*4 passed, 4 rerun in *"])
    assert outcomes(bench) == {
        f"{encoding}-{name}": ["transport", "scored"] for encoding in ("csv", "markdown") for name in ("alpha", "beta")
    }
    report = bench.written("report.json")
    assert report["cells"]["measured"] == 4
    assert report["complete"] is True
    assert report["after_fault"] == 4
    result.stdout.fnmatch_lines(["4 cells measured in another try, after a fault"])
    cases = ET.parse(bench.pytester.path / "out.xml").getroot().findall(".//testcase")
    assert sorted(case.get("name", "") for case in cases) == sorted(f"test_cell[{cell}]" for cell in set(bench.ids()))
    assert [list(case) for case in cases if case.find("failure") is not None] == []


def test_only_what_faulted_runs_again_and_its_failure_counts_once(bench: Bench) -> None:
    result = live(bench, fails="'| Price' in request.prompt")
    assert result.ret == 1
    result.assert_outcomes(passed=2, failed=2)
    assert outcomes(bench) == {
        "csv-alpha": ["scored"],
        "csv-beta": ["scored"],
        "markdown-alpha": ["transport", "transport"],
        "markdown-beta": ["transport", "transport"],
    }
    assert bench.written("report.json")["cells"]["faulted"] == 2


@pytest.mark.parametrize(("retries", "calls"), [("0", 1), ("1", 2), ("3", 4)])
def test_how_many_passes_there_are(bench: Bench, retries: str, calls: int) -> None:
    result = live(bench, "-k", "csv-alpha", "--cellprose-fault-retries", retries, fails="True")
    assert result.ret == 1
    result.assert_outcomes(failed=1)
    assert outcomes(bench) == {"csv-alpha": ["transport"] * calls}


def test_a_model_that_fails_is_never_asked_again(bench: Bench) -> None:
    bench.pytester.makeconftest(house("before == 0").replace("PathFault(KIND", "ModelFailure('truncated'"))
    result = bench.run(*LIVE)
    result.assert_outcomes(passed=4)
    assert {tuple(found) for found in outcomes(bench).values()} == {("truncated",)}


def test_an_encoding_that_raised_runs_again(bench: Bench) -> None:
    bench.pytester.makeconftest(
        HOUSE + "\nfrom pytest_cellprose import Encoding\n"
        "def write(workbook):\n"
        "    tried = Path(__file__).with_name('tried')\n"
        "    with tried.open('a') as log: log.write('x')\n"
        "    if len(tried.read_text()) <= 2: raise OSError('the font server is away')\n"
        "    return 'text'\n"
        "def pytest_cellprose_encodings():\n"
        "    return [Encoding('mine', version='1', label='mine', encode=write)]\n"
    )
    result = bench.run(*LIVE[:-1], "mine", "--cellprose-workbooks", "alpha")
    assert result.ret == 0
    assert outcomes(bench) == {"mine-alpha": ["encoding", "scored"]}  # the first try was for the price
    assert bench.written("ledger.json")["vendors"]["house"]["calls"] == 1


def test_nothing_runs_again_after_a_refused_key(bench: Bench) -> None:
    result = live(bench, fails="True", kind="authentication")
    assert result.ret != 0
    assert all(found == ["authentication"] for found in outcomes(bench).values())
    assert "rerun" not in result.stdout.str()


def test_nothing_runs_again_after_a_cap(bench: Bench) -> None:
    # a call costs $0.00104 and is expected to cost more; the first faults and may have been billed
    result = live(bench, "--cellprose-vendor-cap-usd", "house=0.006", "--cellprose-reps", "8")
    assert result.ret == 1
    found = outcomes(bench)
    assert any("spend_cap" in kinds for kinds in found.values())
    faulted = sum(record["outcome"]["kind"] == "transport" for record in bench.records())
    assert faulted >= 1
    assert not any(record["outcome"]["status"] == "scored" and "rep1" in str(record) for record in bench.records())
    passed, failed = (result.parseoutcomes().get(name, 0) for name in ("passed", "failed"))
    assert failed == sum(record["outcome"]["status"] == "fault" for record in bench.records())
    assert passed + failed == 32


def test_a_test_that_swallows_the_fault_runs_again(bench: Bench) -> None:
    (bench.cells / "test_cells.py").write_text(
        "import pytest\ndef test_cell(cell):\n    try: cell.run()\n    except Exception: pytest.skip('another time')\n",
        encoding="utf-8",
    )
    result = live(bench)
    result.assert_outcomes(passed=4)


def test_fixtures_are_made_anew(bench: Bench) -> None:
    (bench.cells / "test_cells.py").write_text(
        "import pytest\n"
        "@pytest.fixture(scope='module')\n"
        "def module(): return []\n"
        "@pytest.fixture\n"
        "def mine(cell, record_property, tmp_path):\n"
        "    record_property('n', 1)\n"
        "    yield []\n"
        "def test_cell(cell, mine, module, request):\n"
        "    assert mine == [] and len(request.node.user_properties) == 1\n"
        "    mine.append(1)\n"
        "    cell.run()\n",
        encoding="utf-8",
    )
    result = live(bench)
    result.assert_outcomes(passed=4)


@one_process("what -x leaves of two failures")
def test_the_first_failure_under_x_is_one_that_ran_again(bench: Bench) -> None:
    result = live(bench, "-x", fails="'| Price' in request.prompt")
    assert result.ret == 1
    result.assert_outcomes(passed=2, failed=2)  # the second of the two is reported as it was before


def test_a_final_run_makes_each_call_once(bench: Bench) -> None:
    result = bench.run("--cellprose-final", "--cellprose-models", "reader", "--cellprose-fault-retries", "1")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*--cellprose-fault-retries: in a final run a call is made once*"])


@pytest.mark.parametrize("wrong", ["-1", "many", "1.5"])
def test_a_wrong_number_is_refused(bench: Bench, wrong: str) -> None:
    result = bench.run(f"--cellprose-fault-retries={wrong}")
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"*--cellprose-fault-retries: '{wrong}' is not a whole number from 0*"])


def test_the_spending_of_both_calls_is_in_the_ledger(bench: Bench) -> None:
    live(bench)
    ledger: dict[str, Any] = bench.written("ledger.json")
    assert ledger["vendors"]["house"]["calls"] == 8
    assert ledger["vendors"]["house"]["assumed"] > 0  # a fault without usage may have been billed
    assert ledger["open"] == {}


@own_workers
def test_a_worker_that_dies_in_the_second_pass_leaves_no_success_behind(bench: Bench) -> None:
    bench.pytester.makeconftest(
        house("before == 0")
        .replace("KIND", "'transport'")
        .replace(
            '        with Path(__file__).with_name("calls.log")',
            '        import os; os._exit(1)\n        with Path(__file__).with_name("calls.log")',
        )
    )
    result = bench.run(*LIVE, "-n", "1", "--cellprose-inflight", "1")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["4 tests were to run again and did not, for their worker ended: *csv-alpha*"])
    assert bench.written("report.json")["cells"]["faulted"] == 4


def test_tests_that_share_a_cell_share_its_faults(bench: Bench) -> None:
    two = "def test_one(cell):\n    cell.run()\ndef test_two(cell):\n    cell.run()\n"
    (bench.cells / "test_cells.py").write_text(two, encoding="utf-8")
    result = live(bench, "-k", "csv-alpha", fails="before < 2")
    assert result.ret == 1
    result.assert_outcomes(failed=2)
    assert outcomes(bench) == {"csv-alpha": ["transport", "transport"]}
    assert live(bench, "-k", "csv-beta").ret == 0
    assert outcomes(bench)["csv-beta"] == ["transport", "scored"]

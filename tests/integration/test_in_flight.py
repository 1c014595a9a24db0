"""Live calls run ahead of the tests that take them: how many, in which order, and what is never called."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.integration.conftest import Bench, as_written, deselected, one_process

# Each call writes a line when it starts and one when it ends. A vendor's calls wait until as many have started as
# TOGETHER says next, so that a busy machine changes nothing in how many are seen at once.
SLOW = """
import threading, time
from pathlib import Path
from pytest_cellprose import ModelSpec, Prices, Reply, Usage

LOG, LOCK = Path(__file__).with_name("calls.log"), threading.Condition()
STARTED = {"house": 0, "barn": 0}

def note(text):
    with LOCK, LOG.open("a") as log:
        log.write(f"{time.time():.4f} {text}\\n")

def wait_for_others(vendor):
    with LOCK:
        STARTED[vendor] += 1
        LOCK.notify_all()
        enough = min((number for number in TOGETHER.get(vendor, ()) if number >= STARTED[vendor]), default=0)
        LOCK.wait_for(lambda: STARTED[vendor] >= enough, 60)

class House:
    def call(self, request):
        name = f"{request.model_id} {request.prompt_sha256[:8]}"
        note(f"start {name}")
        wait_for_others(request.model_id)
        time.sleep(0.1)
        note(f"end {name}")
        return Reply(text='{"q1": 1}', usage=Usage(input=1000, output=20), LIMITED)

def pytest_cellprose_providers():
    return {"house": House, "barn": House}

def pytest_cellprose_models():
    prices = Prices(input="1", output="2")
    return [ModelSpec(alias=name, model_id=name, vendor=name, max_tokens=4000, prices=prices)
            for name in ("house", "barn")]
"""


def house(limited: str = "limited=0", together: dict[str, Sequence[int]] | None = None) -> str:
    return SLOW.replace("LIMITED", limited).replace("TOGETHER", repr(together or {}))


def live(
    bench: Bench, *arguments: str, limited: str = "limited=0", together: dict[str, Sequence[int]] | None = None
) -> pytest.RunResult:
    bench.pytester.makeconftest(house(limited, together))
    names = [] if "--cellprose-models" in arguments else ["--cellprose-models", "house"]
    return bench.run("--cellprose-live", "--cellprose-encodings", "csv,none", *names, *arguments)


def log(bench: Bench) -> list[tuple[float, str, str]]:
    lines = (bench.pytester.path / "calls.log").read_text().splitlines()
    return sorted((float(when), what, who) for when, what, who in (line.split(" ", 2) for line in lines))


def most_at_once(calls: list[tuple[float, str, str]]) -> int:
    running, most = 0, 0
    for _, what, _ in calls:
        running += 1 if what == "start" else -1
        most = max(most, running)
    return most


@pytest.mark.parametrize("number", [1, 8])
def test_calls_overlap_as_far_as_allowed(bench: Bench, workers: tuple[str, ...], number: int) -> None:
    arguments = ("--cellprose-reps", "6", "--cellprose-inflight", str(number))
    result = live(bench, *arguments, together={"house": [number]})
    assert result.ret == 0
    result.assert_outcomes(passed=24)
    assert len(bench.ids()) == len(set(bench.ids())) == 24
    processes = 2 if workers else 1
    assert number <= most_at_once(log(bench)) <= number * processes


@one_process("in which order it calls; tests/integration/test_workers.py has each worker's")
def test_calls_start_in_the_plans_order(bench: Bench) -> None:
    live(bench, "--cellprose-reps", "6", "--cellprose-inflight", "4", together={"house": range(4, 25, 4)})
    records = sorted(bench.records(), key=lambda record: record["started"])
    places = [
        (r["cell"]["repeat"], r["cell"]["workbook"], ["csv", "none"].index(r["cell"]["encoding"])) for r in records
    ]
    displaced = [abs(place - sorted(places).index(cell)) for place, cell in enumerate(places)]
    assert max(displaced) < 4


@one_process("the order of its reports")
def test_tests_report_in_order_each_with_its_own_record(bench: Bench) -> None:
    (bench.cells / "test_cells.py").write_text(
        "def test_cell(cell):\n    assert cell.run().cell == cell.id\n", encoding="utf-8"
    )
    result = live(bench, "--cellprose-reps", "2", "-v")
    shown = [line.partition("[")[2].partition("]")[0] for line in result.outlines if "SCORED" in line]
    assert shown == [
        f"house-{encoding}-{workbook}-rep{repeat}"
        for repeat in (1, 2)
        for workbook in ("alpha", "beta")
        for encoding in ("csv", "none")
    ]


def test_a_number_for_each_vendor(bench: Bench, workers: tuple[str, ...]) -> None:
    arguments = ["--cellprose-models", "house,barn", "--cellprose-reps", "4", "--cellprose-inflight", "2,barn=5"]
    assert live(bench, *arguments, together={"house": [2], "barn": [5]}).ret == 0
    running = {"house": 0, "barn": 0}
    most = dict(running)
    for _, what, who in log(bench):
        vendor = who.split()[0]
        running[vendor] += 1 if what == "start" else -1
        most[vendor] = max(most[vendor], running[vendor])
    processes = 2 if workers else 1
    assert 2 <= most["house"] <= 2 * processes
    assert 5 <= most["barn"] <= 5 * processes


def test_deselected_and_skip_marked_tests_are_never_called_ahead(bench: Bench) -> None:
    (bench.cells / "test_cells.py").write_text(
        "import pytest\ndef test_cell(cell, request):\n    cell.run()\n@pytest.fixture(autouse=True)\ndef _(): pass\n",
        encoding="utf-8",
    )
    bench.pytester.makepyfile(
        **{
            "cells/conftest": "import pytest\n"
            "def pytest_collection_modifyitems(items):\n"
            "    for item in items:\n"
            "        if 'none-beta' in item.name: item.add_marker(pytest.mark.skip)\n"
            "        if 'csv-beta' in item.name: item.add_marker(pytest.mark.skipif(True, reason='not now'))\n"
        }
    )
    result = live(bench, "--cellprose-reps", "3", "-k", "not rep3")
    result.assert_outcomes(passed=4, skipped=4, deselected=deselected(4))
    assert {record["cell"]["workbook"] for record in bench.records()} == {"alpha"}
    assert len(log(bench)) == 2 * 4


def test_a_call_under_way_is_let_finish_recorded_and_listed(bench: Bench) -> None:
    (bench.cells / "test_cells.py").write_text(
        "import pytest\n"
        "def test_cell(cell):\n"
        "    if cell.workbook == 'beta': pytest.skip('not this one')\n"
        "    cell.run()\n",
        encoding="utf-8",
    )
    result = live(bench)
    result.assert_outcomes(passed=2, skipped=2)
    started = sum(what == "start" for _, what, _ in log(bench))
    assert len(bench.ids()) == started >= 3
    if started > 2:
        result.stdout.fnmatch_lines([f"{started - 2} calls were under way when the run ended: *recorded*beta*"])


# Put behind: all calls but the first of the plan last until the session ends.
UNTIL_THE_END = """
OVER = threading.Event()

def pytest_sessionfinish():
    OVER.set()
"""


@one_process("what it starts before it stops; tests/integration/test_ctrl_c.py has -x with workers")
def test_after_the_first_failure_no_more_calls_are_started(bench: Bench) -> None:
    (bench.cells / "test_cells.py").write_text("def test_cell(cell):\n    assert not cell.run()\n", encoding="utf-8")
    slow = house().replace("time.sleep(0.1)", "'Revenue,2500' in request.prompt or OVER.wait(60)")
    bench.pytester.makeconftest(slow + UNTIL_THE_END)
    arguments = ("--cellprose-live", "--cellprose-models=house", "--cellprose-encodings=csv,markdown,none")
    result = bench.run(*arguments, "--cellprose-inflight", "3", "-x")
    result.assert_outcomes(failed=1)
    calls = log(bench)
    # three at the start, and the one that took the place of the first
    assert sum(what == "start" for _, what, _ in calls) == len(bench.ids()) <= 3 + 1
    assert sum(what == "end" for _, what, _ in calls) == len(bench.ids())


@as_written
def test_ctrl_c_lets_calls_finish(bench: Bench) -> None:
    (bench.cells / "test_cells.py").write_text(
        "def test_cell(cell):\n    cell.run()\n    raise KeyboardInterrupt\n", encoding="utf-8"
    )
    bench.pytester.makeconftest(house())
    result = bench.pytester.runpytest_subprocess(
        "--cellprose-live", "--cellprose-models", "house", "--cellprose-encodings", "csv", "--cellprose-reps", "20"
    )
    assert result.ret == 2
    assert len(bench.ids()) == sum(what == "end" for _, what, _ in log(bench)) >= 2
    assert bench.written("report.json")["cells"]["measured"] == len(bench.ids())


@one_process("its limits, one after the other")
def test_too_many_requests_slow_a_vendor_down(bench: Bench) -> None:
    arguments = ("--cellprose-reps", "8", "--cellprose-inflight", "8")
    live(bench, *arguments, limited="attempts=2, limited=1", together={"house": [8]})
    assert {record["limited"] for record in bench.records()} == {1}
    calls = log(bench)
    ends = [when for when, what, _ in calls if what == "end"]
    late = [call for call in calls if call[0] > ends[7]]  # what had started before the limit fell has ended
    assert most_at_once(calls) == 8
    assert most_at_once(late) == 1
    history = bench.written("ledger.json")["limits"]
    assert {(limit["vendor"], limit["process"]) for limit in history} == {("house", "main")}
    assert [limit["calls"] for limit in history] == [4, 2, 1]


@pytest.mark.parametrize("wrong", ["0", "many", "house=", "=3", "house=-1"])
def test_a_wrong_number_is_refused(bench: Bench, wrong: str) -> None:
    result = bench.run(f"--cellprose-inflight={wrong}")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*--cellprose-inflight*"])


def test_the_offline_reader_is_never_called_ahead(bench: Bench) -> None:
    (bench.cells / "test_cells.py").write_text(
        "import threading\ndef test_cell(cell):\n    cell.run()\n"
        "    assert not [thread for thread in threading.enumerate() if 'reader' in thread.name]\n",
        encoding="utf-8",
    )
    assert bench.run("--cellprose-models", "reader", "-k", "csv").ret == 0
    assert Path(bench.results).is_dir()

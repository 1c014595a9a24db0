"""Ctrl-C and SIGTERM: calls under way finish, a second one gives them up, and what there is is reported."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from tests.integration.conftest import HOUSE, Bench, own_workers

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a terminal's Ctrl-C is a POSIX signal here")

STARTED = "started.log"


class Ended:
    """A run in a process group of its own, as a terminal has it, and what became of it."""

    def __init__(self, bench: Bench, seconds: float, *arguments: str, more: str = "") -> None:
        self.bench = bench
        bench.pytester.makeconftest(
            HOUSE.replace(
                "        with Path",
                f"        with Path(__file__).with_name({STARTED!r}).open('a') as log: log.write('x')\n"
                f"        import time; time.sleep({seconds})\n"
                "        with Path",
            )
            + more
        )
        command = [
            sys.executable, "-m", "pytest", "--cellprose-live", "--cellprose-models", "house", "--cellprose-encodings",
            "csv,none", "--cellprose-reps", "20", "--cellprose-inflight", "4", *arguments,
        ]  # fmt: skip
        self.log = bench.pytester.path / "output.txt"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command, cwd=bench.pytester.path, stdout=log, stderr=log, start_new_session=True
            )

    @property
    def started(self) -> int:
        path = self.bench.pytester.path / STARTED
        return path.stat().st_size if path.exists() else 0

    @property
    def output(self) -> str:
        return self.log.read_text()

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 90
        while not condition():
            assert self.process.poll() is None, self.output
            assert time.monotonic() < deadline, self.output
            time.sleep(0.02)

    def interrupt(self, number: signal.Signals = signal.SIGINT) -> None:
        os.killpg(self.process.pid, number)

    def kinds(self) -> list[str]:
        return [record["outcome"]["kind"] or record["outcome"]["status"] for record in self.bench.records()]


def test_calls_under_way_finish_and_no_more_start(bench: Bench, workers: tuple[str, ...]) -> None:
    run = Ended(bench, 1.0, *workers)
    run.until(lambda: run.started >= 4)
    run.interrupt()
    assert run.process.wait(60) == 2, run.output
    assert run.kinds() == ["scored"] * run.started
    assert run.started < 40
    report = bench.written("report.json")
    assert report["cells"]["measured"] == run.started
    assert report["cells"]["not_run"] == 80 - run.started
    assert bench.written("ledger.json")["open"] == {}
    assert "under way (Ctrl-C gives them up)" in run.output
    assert f"to go on with what was not measured: --cellprose-resume {report['run']}" in run.output
    assert "Traceback" not in run.output
    assert "INTERNALERROR" not in run.output


@own_workers
def test_the_controller_alone_may_be_told(bench: Bench) -> None:
    run = Ended(bench, 1.0, "-n", "2")
    run.until(lambda: run.started >= 6)
    os.kill(run.process.pid, signal.SIGINT)
    assert run.process.wait(60) == 2, run.output
    assert run.kinds() == ["scored"] * run.started
    assert run.started < 40
    assert bench.written("report.json")["cells"]["measured"] == run.started


def test_a_second_one_gives_the_calls_up(bench: Bench, workers: tuple[str, ...]) -> None:
    run = Ended(bench, 300.0, *workers)
    processes = 2 if workers else 1
    run.until(lambda: run.started == 4 * processes)
    run.interrupt()
    run.until(lambda: "waiting" in run.output)
    run.interrupt()
    assert run.process.wait(60) == 2, run.output
    assert run.kinds() == ["interrupted"] * run.started
    assert bench.written("report.json")["cells"]["faulted"] == run.started
    assert len(bench.written("ledger.json")["open"]) == run.started  # they may be billed, and count as reserved
    assert "Traceback" not in run.output


@pytest.mark.parametrize("alone", [False, True], ids=["all-processes", "the-one-that-was-started"])
def test_sigterm_lets_calls_finish_too(bench: Bench, workers: tuple[str, ...], alone: bool) -> None:
    run = Ended(bench, 1.0, *workers)
    run.until(lambda: run.started >= 6)
    if alone:
        run.process.send_signal(signal.SIGTERM)
    else:
        run.interrupt(signal.SIGTERM)
    assert run.process.wait(60) == 2, run.output
    assert run.kinds() == ["scored"] * run.started
    assert run.started < 40
    report = bench.written("report.json")
    assert report["cells"]["measured"] == run.started
    assert bench.written("ledger.json")["open"] == {}
    assert f"to go on with what was not measured: --cellprose-resume {report['run']}" in run.output
    assert "Traceback" not in run.output
    assert "INTERNALERROR" not in run.output


@own_workers
def test_a_worker_that_is_told_to_end_ends_its_calls_and_the_run(bench: Bench) -> None:
    conftest = "\nimport os\n" + (
        "def pytest_sessionstart(session):\n"
        "    if getattr(session.config, 'workerinput', {}).get('workerid') == 'gw0':\n"
        "        (Path(__file__).parent / 'gw0.pid').write_text(str(os.getpid()))\n"
    )
    run = Ended(bench, 1.0, "-n", "2", more=conftest)
    run.until(lambda: run.started >= 6)
    os.kill(int((bench.pytester.path / "gw0.pid").read_text()), signal.SIGTERM)
    assert run.process.wait(60) == 2, run.output
    assert run.kinds() == ["scored"] * run.started
    assert run.started < 40


def test_a_run_without_live_calls_leaves_sigterm_alone(bench: Bench) -> None:
    bench.pytester.makepyfile(
        test_signal="import signal\ndef test_it():\n    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL\n"
    )
    bench.run("cells", "test_signal.py").assert_outcomes(passed=13, skipped=72)


@own_workers
def test_a_failure_under_x_stops_the_other_worker_too(bench: Bench) -> None:
    (bench.cells / "test_cells.py").write_text(
        "def test_cell(cell, request):\n    cell.run()\n    assert request.config.workerinput['workerid'] != 'gw1'\n",
        encoding="utf-8",
    )
    run = Ended(bench, 1.0, "-n", "2", "-x")
    assert run.process.wait(60) in (1, 2), run.output
    assert run.kinds() == ["scored"] * run.started
    assert run.started < 40

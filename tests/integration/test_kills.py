"""SIGKILL at random moments: every call that returned is in the store exactly once, and nothing is called twice.

A provider notes, on disk, that it starts a call and that it is about to return. Between that note and the appended
record lies a window that nothing can close: the calls in flight of a killed process may be lost, and no others.
`CELLPROSE_KILLS` is the number of kills in all: 50 take a minute or two, so that by default there are fewer.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import OTHER_PLUGINS
from tests.integration.conftest import TEST_CELLS, as_written, questions_about, sha256, write_workbook

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL and process groups are POSIX"),
    as_written,
]

ENVIRONMENT = dict(os.environ)
"""pytest changes the environment for each test, which a process that a thread starts meanwhile may not survive."""
KILLS = int(os.environ.get("CELLPROSE_KILLS", "4"))
IN_FLIGHT = 3
EVERY_CALL = 10**6
PROVIDER = """
import os, random, time, uuid
from pathlib import Path
from pytest_cellprose import ModelSpec, Prices, Reply, Usage

def wait_to_be_let():
    place = Path(__file__).with_name("calls.log").read_text().count(" start ")
    while place > int(Path(__file__).with_name("let").read_text() or 0):
        time.sleep(0.005)

def note(what, call):
    log = os.open(Path(__file__).with_name("calls.log"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(log, f"{os.getpid()} {what} {call}\\n".encode())
    os.fsync(log)
    os.close(log)

class House:
    def call(self, request):
        call = uuid.uuid4().hex
        note("start", call)
        wait_to_be_let()
        time.sleep(random.uniform(0.01, SECONDS))
        reply = Reply(text=f'{call} {{"q1": -1, "q2": "Model!B5"}}', usage=Usage(input=1000, output=20))
        note("returned", call)
        return reply

def pytest_cellprose_providers():
    return {"house": House}

def pytest_cellprose_models():
    return [ModelSpec(alias="house", model_id="house-8b", vendor="house", max_tokens=4000,
                      prices=Prices(input="1", output="2"))]
"""


@dataclass
class Project:
    """A project whose runs are killed and resumed; each run is a process group."""

    folder: Path
    repeats: int
    seconds: float
    """The longest call."""
    random: random.Random
    runs: list[str] = field(default_factory=list)
    killed: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        cells = self.folder / "cells"
        cells.mkdir(parents=True)
        (self.folder / "pyproject.toml").write_text('[tool.pytest]\ntestpaths = ["cells"]\n')
        (self.folder / "conftest.py").write_text(PROVIDER.replace("SECONDS", str(self.seconds)))
        self.let(EVERY_CALL)
        (cells / "test_cells.py").write_text(TEST_CELLS)
        digests = {}
        for scale, name in enumerate(("alpha", "beta"), start=1):
            workbook = write_workbook(cells / f"{name}.xlsx", scale)
            (cells / f"{name}.json").write_text(json.dumps(questions_about(workbook, scale)))
            digests[name] = sha256(workbook)
        (cells / "split.json").write_text(json.dumps({"schema": 1, "development": digests, "heldout": {}}))

    def let(self, calls: int) -> None:
        """Let so many of the calls that start go on; those after them wait, so that no run ends before it is killed."""
        (self.folder / "let").write_text(str(calls))

    @property
    def planned(self) -> int:
        return 2 * 2 * self.repeats

    @contextlib.contextmanager
    def running(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        command = [
            sys.executable, "-m", "pytest", "-v", "-p", "no:hypothesispytest", "-p", "no:anyio",
            *(f"-pno:{name}" for name in OTHER_PLUGINS),
            "--cellprose-live", "--cellprose-models=house", "--cellprose-encodings=csv,none",
            f"--cellprose-reps={self.repeats}", f"--cellprose-inflight={IN_FLIGHT}", *arguments,
        ]  # fmt: skip
        if self.runs:
            command.append(f"--cellprose-resume={self.runs[-1]}")
        # workers inherit standard error, so that the pipe's end is the end of all of them
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env=ENVIRONMENT,
        )
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def ended(self, process: subprocess.Popen[str]) -> str:
        """What a run printed, once its last process is gone; its run id is noted."""
        output, _ = process.communicate(timeout=90)
        known = sorted(path.stem for path in (self.folder / "results" / "runs").glob("*.json"))
        self.runs += [run for run in known if run not in self.runs]
        return output

    def calls(self, what: str) -> dict[str, int]:
        """Call -> process, of the calls that started or returned."""
        try:
            lines = (self.folder / "calls.log").read_text().splitlines()
        except FileNotFoundError:
            return {}
        return {call: int(pid) for pid, found, call in map(str.split, lines) if found == what}

    def records(self, run: str) -> list[dict[str, Any]]:
        """Those of a run's lines that are whole."""
        found = []
        with contextlib.suppress(FileNotFoundError):
            for line in (self.folder / "results" / run / "records-development.jsonl").read_bytes().splitlines():
                with contextlib.suppress(ValueError):
                    found.append(json.loads(line))
        return found

    def wait_for_calls(self, more: int, process: subprocess.Popen[str]) -> bool:
        """Until so many calls have been started from now, and then a random moment; False if the run ends before."""
        wanted = len(self.calls("start")) + more
        self.let(wanted + IN_FLIGHT)
        while len(self.calls("start")) < wanted:
            if process.poll() is not None:
                return False
            time.sleep(0.003)
        time.sleep(self.random.uniform(0, self.seconds))
        return process.poll() is None


def cell_of(record: dict[str, Any]) -> str:
    cell = record["cell"]
    return f"{cell['model']}-{cell['encoding']}-{cell['workbook']}-rep{cell['repeat']}"


def check_every_call(project: Project, kills: int) -> None:
    """What holds over all runs of a project, however they ended."""
    called = [record for run in project.runs for record in project.records(run) if record["kept_from"] is None]
    made = [record for record in called if record["outcome"]["status"] == "scored"]
    others = [record["outcome"]["kind"] for record in called if record["outcome"]["status"] != "scored"]
    assert set(others) <= {"interrupted"}  # the tests that a killed worker ran
    assert len(others) <= len(project.killed)
    stored = Counter(record["reply"].split()[0] for record in made)
    assert set(stored.values()) <= {1}
    returned = project.calls("returned")
    assert stored.keys() <= returned.keys()
    lost = [pid for call, pid in returned.items() if call not in stored]
    assert set(lost) <= project.killed
    assert len(lost) <= IN_FLIGHT * kills
    measured = Counter(map(cell_of, made))
    assert set(measured.values()) <= {1}  # what was stored is never called again, in no run
    assert len(project.calls("start")) <= project.planned + IN_FLIGHT * len(project.killed)


def check_complete(project: Project, output: str) -> None:
    """The last run measured or kept each planned cell once, and says so."""
    assert f"{project.planned} passed" in output
    earlier = [record for run in project.runs[:-1] for record in project.records(run)]
    kept = {cell_of(record) for record in earlier if record["outcome"]["status"] == "scored"}
    assert output.count("KEPT SCORED") == len(kept)
    last = project.records(project.runs[-1])
    assert len(last) == len({cell_of(record) for record in last}) == project.planned
    report = json.loads((project.folder / "results" / project.runs[-1] / "report.json").read_text())
    assert report["complete"]
    assert report["cells"]["measured"] == project.planned


def check_reported(project: Project, output: str) -> None:
    """Every cell that the last run reported as measured is in its store."""
    shown = [line for line in output.splitlines() if "SCORED" in line]
    cells = {cell for line in shown for cell in re.findall(r"test_cell\[(.+?)\]", line)}
    assert cells <= set(map(cell_of, project.records(project.runs[-1])))


def kill_again_and_again(project: Project, kills: int, arguments: tuple[str, ...], *, group: bool) -> None:
    """Kill a run's controller, or all of its processes at once, resume it, and so on; then let it end."""
    output = ""
    for _ in range(kills):
        with project.running(*arguments) as process:
            assert project.wait_for_calls(project.random.randint(1, 7), process), project.ended(process)
            (os.killpg if group else os.kill)(process.pid, signal.SIGKILL)
            project.let(EVERY_CALL)
            process.wait()
            started = len(project.calls("start"))
            output = project.ended(process)
        project.killed |= {process.pid, *project.calls("start").values()}
        # a worker without its controller starts no call but those that had been let through
        assert len(project.calls("start")) <= started + 2 * IN_FLIGHT
        check_reported(project, output)
        check_every_call(project, kills * (2 if arguments else 1))
    with project.running(*arguments) as process:
        output = project.ended(process)
    check_complete(project, output)
    check_every_call(project, kills * (2 if arguments else 1))


def kill_workers(project: Project, kills: int) -> None:
    """Kill one worker after the other in one run; the others go on, and what is left is resumed."""
    with project.running("-n2", "--max-worker-restart=99") as process:
        while len(project.killed) < kills and project.wait_for_calls(project.random.randint(2, 9), process):
            alive = sorted(set(list(project.calls("start").values())[-4:]) - project.killed)
            if alive:
                victim = project.random.choice(alive)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)
                    project.killed.add(victim)
        project.let(EVERY_CALL)
        output = project.ended(process)
    assert len(project.killed) == kills
    assert process.returncode == 1  # the test that a killed worker ran has failed
    check_reported(project, output)
    check_every_call(project, kills)
    report = json.loads((project.folder / "results" / project.runs[-1] / "report.json").read_text())
    measured = [record for record in project.records(project.runs[-1]) if record["outcome"]["status"] == "scored"]
    cells = report["cells"]
    assert cells["measured"] == len(measured) >= project.planned - kills
    assert cells["not_run"] + cells["faulted"] == project.planned - len(measured)
    with project.running() as process:
        output = project.ended(process)
    check_complete(project, output)
    check_every_call(project, kills)


SCENARIOS: dict[str, tuple[float, Callable[[Project, int], None]]] = {
    "workers": (0.44, kill_workers),
    "controller": (0.17, lambda project, kills: kill_again_and_again(project, kills, ("-n2",), group=False)),
    "group": (0.17, lambda project, kills: kill_again_and_again(project, kills, ("-n2",), group=True)),
    "one-process": (0.24, lambda project, kills: kill_again_and_again(project, kills, (), group=True)),
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[None]]]:
    """All scenarios, two at a time, since most of their time is spent waiting."""
    with ThreadPoolExecutor(2) as pool:

        def start(name: str, seed: int) -> Future[None]:
            share, scenario = SCENARIOS[name]
            kills = max(1, round(share * KILLS))
            repeats = 6 + 3 * kills
            project = Project(tmp_path_factory.mktemp(name) / "project", repeats, 0.06, random.Random(seed))
            return pool.submit(scenario, project, kills)

        yield {name: start(name, seed) for seed, name in enumerate(SCENARIOS)}


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_returned_call_is_stored_once(outcomes: dict[str, Future[None]], name: str) -> None:
    outcomes[name].result()

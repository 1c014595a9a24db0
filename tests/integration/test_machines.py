"""Workers that do not share the run's folder: their own copies, their own store, and what comes back from them."""

from __future__ import annotations

import json
import os
import platform
import shutil
import site
import socket
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import execnet
import pytest

from tests.integration.conftest import HOUSE, Bench, as_written, write_workbook
from tests.integration.test_gate import committed

pytestmark = as_written
LIVE = ("--cellprose-models", "house", "--cellprose-encodings", "csv,none")
CALL = 1000 * 1000 + 20 * 2000
"""Nano-dollars of every call to the house."""


class Elsewhere:
    """A copy of the project in a folder of its own, as it would lie on another machine."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.bench = bench
        self.path = folder
        shutil.copytree(bench.pytester.path, folder, ignore=shutil.ignore_patterns("results", "elsewhere*", "*.log"))

    @property
    def calls(self) -> int:
        log = self.path / "calls.log"
        return len(log.read_text().splitlines()) if log.exists() else 0

    def records(self) -> list[dict[str, Any]]:
        files = sorted(self.path.glob("results/*/records-*.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def house(bench: Bench) -> Bench:
    bench.pytester.makeconftest(HOUSE)
    return bench


@pytest.fixture
def elsewhere(house: Bench, tmp_path: Path) -> Elsewhere:
    return Elsewhere(house, tmp_path / "elsewhere")


@pytest.fixture(scope="module")
def other_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of another environment, with what is installed in this one."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=os.name != "nt")
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    here = [*site.getsitepackages(), str(Path(__file__).resolve().parents[2])]
    (packages / "here.pth").write_text("\n".join(f"import site; site.addsitedir({path!r})" for path in here))
    return python


def run(bench: Bench, *arguments: str, mode: str = "--cellprose-live") -> pytest.RunResult:
    """In a process of its own: xdist sends its pytest to other folders, and asks the process for its command line."""
    command = [sys.executable, "-m", "pytest", "-p", "no:randomly", mode, *LIVE, "--dist", "load", *arguments]
    return bench.pytester.run(*command)


def at(folder: Path, python: Path | None = None) -> list[str]:
    return ["--tx", f"popen//chdir={folder}" + (f"//python={python}" if python else "")]


def test_records_come_back_and_stay_durable_there(house: Bench, tmp_path: Path, other_python: Path) -> None:
    house.add("gamma", heldout=True)
    committed(house)
    there = Elsewhere(house, tmp_path / "there")
    arguments = [*at(there.path, other_python), "--tx", "popen", "--junitxml=junit.xml"]
    result = run(
        house, *arguments, "--cellprose-vendor-cap-usd", "house=1", "--cellprose-allow-dirty", mode="--cellprose-final"
    )
    assert result.ret == 0
    result.assert_outcomes(passed=18)  # 2 encodings, 3 workbooks, 3 repeats
    result.stdout.fnmatch_lines(["*of every cap the 1 process that is started elsewhere has 1/2; the other 1 shares*"])
    assert len(house.ids()) == len(set(house.ids())) == 18
    assert there.calls == 9
    # each is stored there, and here as it is there; held-out ones in their own file on both sides
    theirs = there.records()
    assert len(theirs) == 9
    assert {record["set"] for record in theirs} == {"development", "heldout"}
    assert all(record in house.records() for record in theirs)
    (own,) = there.path.glob("results/runs/*.json")
    (run_id,) = {record["run"] for record in house.records()}
    assert own.stem == run_id
    # no reply and no other part of a record leaves with the reports
    assert "Model!B5" not in (house.pytester.path / "junit.xml").read_text() + result.stdout.str()
    # what was spent there is in the run's ledger
    ledger = house.written("ledger.json")
    assert ledger["vendors"]["house"] == {"spent": 18 * CALL, "assumed": 0, "calls": 18, "unreported": 0}
    assert ledger["open"] == {}
    books = json.loads((there.path / "results" / run_id / "ledger-0.json").read_text())
    assert books["vendors"]["house"]["calls"] == 9
    assert house.written("report.json")["spent"] == pytest.approx(18 * CALL / 1e9)
    assert not list(house.results.glob("*/.shared-by"))


@pytest.fixture
def socket_server(elsewhere: Elsewhere) -> Iterator[str]:
    """execnet's server on this machine's loopback; its address."""
    script = Path(execnet.__file__).parent / "script" / "socketserver.py"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, "-u", str(script), address]
    server = subprocess.Popen(command, cwd=elsewhere.path.parent, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        assert "Entering Accept loop" in server.stdout.readline()
        yield address
    finally:
        server.kill()
        server.wait()


def test_a_worker_behind_a_socket_has_its_share_of_the_cap(elsewhere: Elsewhere, socket_server: str) -> None:
    # a call is expected to cost some $0.0031 and costs $0.00104: of a half of $0.012 the fifth has no room
    result = run(
        elsewhere.bench, "--tx", f"socket={socket_server}//chdir={elsewhere.path}", "--tx", "popen",
        "--cellprose-reps", "6", "--cellprose-vendor-cap-usd", "house=0.012",
    )  # fmt: skip
    assert result.ret == 1
    assert 0 < elsewhere.calls * CALL <= 6_000_000
    stopped = [record for record in elsewhere.records() if record["outcome"]["kind"] == "spend_cap"]
    assert len(stopped) == 12 - elsewhere.calls > 0
    assert "over the cap of $0.0060" in stopped[0]["outcome"]["detail"]
    records = elsewhere.bench.records()
    assert all(record in records for record in elsewhere.records())
    spent = elsewhere.bench.written("ledger.json")["vendors"]["house"]["spent"]
    assert spent == sum(record["cost_nanousd"] or 0 for record in records) <= 12_000_000


def test_of_a_resumed_run_s_cap_what_is_left_is_shared(house: Bench, tmp_path: Path) -> None:
    assert house.run("--cellprose-live", *LIVE, "-k", "csv").ret == 0
    (path,) = (house.results / "runs").glob("*.json")
    there = Elsewhere(house, tmp_path / "there")
    shutil.copytree(house.results, there.path / "results")  # what is taken over has to be there too
    # two calls were made: of the cap's rest, $0.0064, a half is enough for one call here and one there
    cap = f"house={(2 * CALL + 6_400_000) / 1e9:.9f}"
    more = ("--cellprose-resume", path.stem, "--cellprose-vendor-cap-usd", cap, "--cellprose-reps", "3")
    result = run(house, *at(there.path), "--tx", "popen", *more)
    assert result.ret == 1
    new = [record for record in house.records() if record["run"] != path.stem]
    refused = [record["outcome"]["detail"] for record in new if record["outcome"]["kind"] == "spend_cap"]
    assert len({record["cell"]["repeat"] for record in new}) == 3
    called = sum(record["attempts"] > 0 and record["kept_from"] is None for record in new)
    assert called == 2
    assert any("$0.0021 spent by the runs that this one goes on from, $0.0010 spent" in detail for detail in refused)
    assert any("over the cap of $0.0032" in detail for detail in refused)


OWN = """
from pytest_cellprose import Encoding

def write(workbook):
    return "text"

def pytest_cellprose_encodings():
    return [Encoding("mine", version="1", label="", encode=write)]
"""


def test_other_files_and_other_code_are_refused_before_any_call(bench: Bench, tmp_path: Path) -> None:
    bench.pytester.makeconftest(HOUSE + OWN)
    there = Elsewhere(bench, tmp_path / "there")
    write_workbook(there.path / "cells" / "alpha.xlsx", scale=2)
    (there.path / "cells" / "beta.json").unlink()
    (there.path / "conftest.py").write_text(HOUSE + OWN.replace('"text"', '"another text"'))
    result = run(bench, *at(there.path), "--tx", "popen", "--cellprose-encodings", "mine")
    assert result.ret == 4
    text = result.stdout.str() + result.stderr.str()
    assert f"gw0 on {platform.node()}, {there.path}:" in text
    assert f"not there: {there.path / 'cells' / 'beta.json'}" in text
    assert f"not the planned content (by SHA-256): {there.path / 'cells' / 'alpha.xlsx'}" in text
    assert "the code of encoding 'mine' is not the same there" in text
    assert "bring that machine what the run was planned with" in text
    for unwanted in ("INTERNALERROR", "Traceback", "Different tests"):
        assert unwanted not in text
    assert there.calls == 0
    assert not (bench.pytester.path / "calls.log").exists()
    assert not bench.results.exists()


def test_a_key_that_is_missing_there_is_named(bench: Bench, tmp_path: Path) -> None:
    lacking = "    @classmethod\n    def not_ready(cls):\n        import os\n"
    lacking += "        return None if os.environ.get('HOUSE_KEY') else 'HOUSE_KEY is not set'\n\n    def call("
    bench.pytester.makeconftest(HOUSE.replace("    def call(", lacking))
    there = Elsewhere(bench, tmp_path / "there")
    bench.pytester._monkeypatch.setenv("HOUSE_KEY", "a key")
    result = run(bench, "--tx", f"popen//chdir={there.path}//env:HOUSE_KEY=")
    assert result.ret == 4
    result.stdout.fnmatch_lines(["*HOUSE_KEY is not set", "*environment variables do not travel*"])
    assert there.calls == 0


def test_what_a_worker_stored_before_it_died_comes_with_the_one_that_replaces_it(bench: Bench, tmp_path: Path) -> None:
    dying = """
def pytest_runtest_teardown(item):
    flag = Path(__file__).with_name("died")
    if "there" in __file__ and "none" in item.name and not flag.exists():
        flag.touch()
        import os; os._exit(1)
"""
    bench.pytester.makeconftest(HOUSE + dying)
    there = Elsewhere(bench, tmp_path / "there")
    result = run(bench, *at(there.path), "--cellprose-inflight", "1", "--max-worker-restart", "1")
    assert result.ret == 1
    result.assert_outcomes(passed=3, failed=1)
    # the test that was running has no report, and its record is here all the same
    assert len(bench.ids()) == len(set(bench.ids())) == 4
    assert all(record in bench.records() for record in there.records())
    ledger = bench.written("ledger.json")
    assert ledger["vendors"]["house"]["calls"] in {4, 4 - len(ledger["open"])}
    assert len(ledger["open"]) <= 1  # the next call: under way (made again), or stored and not settled yet

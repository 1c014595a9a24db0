"""Every finished cell's record survives whatever ends the run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from pytest_cellprose.run.store import open_run

from .conftest import HOUSE, Bench

SLOW = HOUSE.replace("        with Path", "        import time; time.sleep(0.15)\n        with Path")


@pytest.mark.skipif(sys.platform == "win32", reason="process groups are killed by POSIX signals")
def test_kill_9_of_the_process_group_loses_no_finished_cell(bench: Bench, workers: tuple[str, ...]) -> None:
    bench.pytester.makeconftest(SLOW)
    command = [
        sys.executable, "-m", "pytest", "-v", "--cellprose-live", "--cellprose-models", "house",
        "--cellprose-encodings", "csv,none", "--cellprose-reps", "20", *workers,
    ]  # fmt: skip
    process = subprocess.Popen(
        command, cwd=bench.pytester.path, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    reported = 0
    assert process.stdout is not None
    deadline = time.monotonic() + 60
    while reported < 9 and time.monotonic() < deadline:
        reported += "SCORED" in process.stdout.readline()
    os.killpg(process.pid, signal.SIGKILL)
    rest = process.stdout.read()
    process.wait()
    reported += rest.count("SCORED")

    (manifest,) = (bench.results / "runs").glob("*.json")
    store = open_run(bench.results, manifest.stem)
    records = list(store.records())
    assert len(records) >= reported >= 9
    assert len({str(record.cell) for record in records}) == len(records) < 80
    assert all(record.accuracy == 0.2 for record in records)
    assert store.manifest().finished is None
    assert len(store.damaged_lines()) <= 1


def test_a_line_cut_short_is_left_out_named_and_does_not_spoil_the_next(bench: Bench) -> None:
    bench.run("--cellprose-models", "reader", "-k", "csv")
    (file,) = bench.results.glob("*/records-development.jsonl")
    whole = file.read_bytes()
    file.write_bytes(whole[:-40])
    store = open_run(bench.results, file.parent.name)
    (kept,) = store.records()
    assert store.damaged_lines() == [f"{file}, line 2"]
    store.append(kept, store.manifest())
    assert [record.cell for record in store.records()] == [kept.cell, kept.cell]
    assert len(file.read_bytes().splitlines()) == 3


def test_a_results_folder_that_cannot_be_written_is_one_clear_error(bench: Bench) -> None:
    bench.results.write_text("a file is in the way")
    result = bench.run("--cellprose-models", "reader", "-k", "csv and alpha")
    assert result.ret == 1
    assert "could not be written" in result.stdout.str()
    assert bench.results.read_text() == "a file is in the way"


def test_ctrl_c_leaves_records_and_a_report(bench: Bench) -> None:
    (bench.cells / "test_cells.py").write_text(
        "def test_cell(cell):\n    cell.run()\n    if cell.workbook == 'beta':\n        raise KeyboardInterrupt\n",
        encoding="utf-8",
    )
    arguments = ["--cellprose-models", "reader", "--cellprose-encodings", "csv,none"]
    result = bench.pytester.runpytest_subprocess(*arguments)
    assert result.ret == 2
    assert len(bench.records()) == 3
    report = bench.written("report.json")
    assert json.dumps(report)
    assert report["cells"]["not_run"] == 1

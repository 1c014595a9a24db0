"""Every finished cell's record survives whatever ends the run."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_cellprose.__main__ import main
from pytest_cellprose.store.records import open_run
from tests.integration.conftest import HOUSE, Bench, as_written

LIVE = ["--cellprose-live", "--cellprose-models=house", "--cellprose-encodings=csv,none"]

# `ON_CALL` runs in the provider, when a call has been made and before it returns; `number` counts the calls.
BROKEN = """
import errno, os, pathlib, shutil, time
FULL, AWAY = (pathlib.Path(__file__).with_name(name) for name in ("full", "away"))
sync = os.fsync

def fsync(descriptor):
    if FULL.exists() and "results" in os.readlink(f"/proc/self/fd/{descriptor}"):
        raise OSError(errno.ENOSPC, "No space left on device")
    sync(descriptor)

os.fsync = fsync

def quietly(do, *arguments):
    try:
        do(*arguments)
    except OSError:  # another call that ended at the same moment did it
        pass

""" + HOUSE.replace(
    "        return Reply",
    """        number = len(pathlib.Path(__file__).with_name("calls.log").read_text().splitlines())
        results = pathlib.Path(__file__).with_name("results")
        ON_CALL
        return Reply""",
).replace("text='", "text='SAID ")


@pytest.fixture
def rescue(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's temporary folder, for the runs of this test."""
    folder = bench.pytester.mkdir("tmp")
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def broken(bench: Bench, on_call: str, *arguments: str) -> pytest.RunResult:
    """A live run in processes of its own: 24 cells, three calls at a time in each."""
    bench.pytester.makeconftest(BROKEN.replace("ON_CALL", on_call))
    return bench.pytester.runpytest_subprocess(*LIVE, "--cellprose-reps=6", "--cellprose-inflight=3", *arguments)


def calls(bench: Bench) -> int:
    return len((bench.pytester.path / "calls.log").read_text().splitlines())


def put_back(result: pytest.RunResult) -> None:
    """Run the commands that a run printed for its rescued records."""
    lines = result.outlines
    start = next(number for number, line in enumerate(lines) if "rescued; put them back" in line)
    commands = itertools.takewhile(lambda line: line.startswith("  "), lines[start + 1 :])
    subprocess.run(["sh", "-ec", "\n".join(commands)], check=True)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="asks /proc which file is written")
def test_a_disk_that_fills_up_ends_the_run_and_loses_no_call(
    bench: Bench, workers: tuple[str, ...], rescue: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = broken(bench, "if number >= 3: FULL.touch()", *workers)
    made, processes = calls(bench), 2 if workers else 1
    assert result.ret == 1
    assert "Traceback" not in result.stdout.str()
    assert "SAID" not in result.stdout.str()
    result.stdout.fnmatch_lines(["*No space left on device*"])
    assert 3 <= made <= 3 + 2 * 3 * processes
    stored, (file,) = len(bench.records()), rescue.glob("*.jsonl")
    assert file.stat().st_mode & 0o777 == 0o600
    assert made == stored + len(file.read_bytes().splitlines()) - 1  # its first line is empty

    (bench.pytester.path / "full").unlink()
    put_back(result)
    (run,) = (path.stem for path in (bench.results / "runs").glob("*.json"))
    capsys.readouterr()
    assert main(["report", "--out", str(bench.results), run]) == 0
    assert bench.written("report.json")["cells"]["measured"] == made
    resumed = broken(bench, "pass", f"--cellprose-resume={run}", *workers)
    assert resumed.ret == 0
    resumed.stdout.fnmatch_lines([f"{made} cells kept from run {run}"])
    assert calls(bench) == 24


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be removed there")
def test_results_that_are_taken_away_while_the_run_is_under_way(
    bench: Bench, workers: tuple[str, ...], rescue: Path
) -> None:
    away = bench.pytester.path / "away"
    result = broken(bench, "if number >= 3 and not AWAY.exists(): quietly(results.rename, AWAY)", *workers)
    assert result.ret == 1
    assert "Traceback" not in result.stdout.str()
    result.stdout.fnmatch_lines(["*removed*while the run was under way*"])
    put_back(result)
    (run,) = (path.stem for path in (bench.results / "runs").glob("*.json"))
    assert main(["report", "--out", str(bench.results), run]) == 0
    rescued = bench.ids()
    before = [json.loads(line) for path in away.glob("*/*.jsonl") for line in path.read_text().splitlines()]
    assert len(before) + len(rescued) == calls(bench) <= 3 + 2 * 3 * 2
    assert bench.written("report.json")["cells"]["measured"] == len(rescued) == len(set(rescued))


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be removed there")
@as_written
def test_a_lock_that_is_taken_away_ends_the_run(bench: Bench, rescue: Path) -> None:
    result = broken(bench, "if number >= 3: [quietly(lock.unlink) for lock in results.glob('*/.run.lock')]")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*.run.lock was removed or replaced while the run was under way*"])
    assert calls(bench) <= 3 + 3
    put_back(result)
    assert len(bench.ids()) == len(set(bench.ids())) == calls(bench)


@as_written
def test_a_report_that_cannot_be_written_is_one_clear_line(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    result = broken(bench, "(next(results.glob('*/.home')).parent / 'report.md').mkdir(exist_ok=True)")
    assert result.ret == 1
    assert "Traceback" not in result.stdout.str()
    result.stdout.fnmatch_lines(["the report could not be written: *report.md*"])
    assert len(bench.ids()) == 24
    (run,) = (path.stem for path in (bench.results / "runs").glob("*.json"))
    assert main(["report", "--out", str(bench.results), run]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "report.md" in line


def test_a_running_run_is_not_resumed_but_reported_and_a_killed_one_is_resumed(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.pytester.makeconftest(BROKEN.replace("ON_CALL", "time.sleep(60 if number > 4 else 0)"))
    command = [sys.executable, "-m", "pytest", *LIVE, "--cellprose-reps=6", "--cellprose-inflight=2"]
    with subprocess.Popen(command, cwd=bench.pytester.path, stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while len(bench.records()) < 4 and time.monotonic() < deadline:
            time.sleep(0.02)
        (run,) = (path.stem for path in (bench.results / "runs").glob("*.json"))
        resume = [*LIVE, f"--cellprose-resume={run}"]
        refused = bench.run(*resume)
        assert refused.ret == 4
        refused.stderr.fnmatch_lines([f"*{run} is still running (process {process.pid} on *): wait for it or stop it*"])
        capsys.readouterr()
        assert main(["report", "--out", str(bench.results), run]) == 0
        assert f"{run} is still running (process {process.pid} on" in capsys.readouterr().out
        assert bench.written("report.json")["cells"]["measured"] == 4
        process.kill()
    bench.pytester.makeconftest(HOUSE)
    resumed = bench.run(*resume, "--cellprose-reps=1")
    assert resumed.ret == 0
    resumed.stdout.fnmatch_lines([f"4 cells kept from run {run}"])


def test_a_moved_results_folder_opens_and_a_copy_beside_its_original_is_not_resumed(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    reader = ["--cellprose-models=reader", "--cellprose-encodings=csv"]
    bench.run(*reader)
    (run,) = (path.stem for path in (bench.results / "runs").glob("*.json"))
    copy, moved = bench.pytester.path / "copy", bench.pytester.path / "moved"
    shutil.copytree(bench.results, copy)
    refused = bench.run(*reader, f"--cellprose-resume={copy / run}")
    assert refused.ret == 4
    refused.stderr.fnmatch_lines([f"*{copy / run} is a copy of {bench.results / run}: resume that one, or delete it*"])
    assert main(["report", str(copy / run)]) == 0

    bench.results.rename(moved)
    shutil.rmtree(copy)
    capsys.readouterr()
    assert main(["report", str(moved / run)]) == 0
    kept = bench.run(*reader, f"--cellprose-resume={moved / run}")
    assert kept.ret == 0
    kept.stdout.fnmatch_lines([f"2 cells kept from run {run}"])
    shutil.copytree(moved, copy)  # a copy of what was moved is one as well
    refused = bench.run(*reader, f"--cellprose-resume={copy / 'runs' / run}.json")
    refused.stderr.fnmatch_lines([f"*is a copy of {moved / run}: *"])
    shutil.rmtree(moved)
    assert bench.run(*reader, f"--cellprose-resume={copy / run}").ret == 0
    assert str(bench.pytester.path) not in (copy / "runs" / f"{run}.json").read_text()


def test_a_manifest_without_its_records_says_what_it_knows(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    reader = ["--cellprose-models=reader", "--cellprose-encodings=csv"]
    bench.run(*reader)
    (manifest,) = (bench.results / "runs").glob("*.json")
    run = manifest.stem
    shutil.rmtree(bench.results / run)  # git clones no more than the manifest
    capsys.readouterr()
    assert main(["report", "--out", str(bench.results), run]) == 1
    told = capsys.readouterr()
    assert f"{run}: development run of 2 cells" in told.out
    assert "its records are not here, only its manifest" in told.err
    assert not (bench.results / run).exists()
    refused = bench.run(*reader, f"--cellprose-resume={run}")
    assert refused.ret == 4
    refused.stderr.fnmatch_lines(["*--cellprose-resume: * its records are not here, only its manifest*"])


def test_a_manifest_under_another_name_is_refused(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.run("--cellprose-models=reader", "--cellprose-encodings=csv")
    (manifest,) = (bench.results / "runs").glob("*.json")
    renamed = manifest.rename(manifest.with_name("mine.json"))
    capsys.readouterr()
    assert main(["report", str(renamed)]) == 1
    assert f"is the manifest of run {manifest.stem}, not of mine" in capsys.readouterr().err


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
    assert result.ret == 4
    assert "could not be written there: Not a directory: nothing was called" in result.stdout.str()
    assert bench.results.read_text() == "a file is in the way"


@as_written
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

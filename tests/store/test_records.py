"""The store: one durable line per record, readable whatever happened to its writers."""

from __future__ import annotations

import errno
import gc
import json
import multiprocessing
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_cellprose.files import replace_text
from pytest_cellprose.record.record import Record
from pytest_cellprose.report.analysis import analyse
from pytest_cellprose.store.identity import new_run_id
from pytest_cellprose.store.layout import StoreError
from pytest_cellprose.store.manifest import Manifest
from pytest_cellprose.store.records import Index, Store, line_of, open_run
from tests.report.report_factories import manifest as make_manifest
from tests.report.report_factories import record as make_record


def test_what_is_appended_is_read(tmp_path: Path, plan: Manifest, some: Record) -> None:
    store = Store(tmp_path, plan.run)
    assert not store.exists
    store.append(some, plan)
    store.append(some.model_copy(update={"set": "heldout"}), plan)
    assert store.exists
    assert store.manifest() == plan
    assert [record.set for record in store.records()] == ["development", "heldout"]
    assert store.find(some.cell) is not None


def test_held_out_records_have_a_file_that_git_ignores(tmp_path: Path, plan: Manifest, some: Record) -> None:
    import subprocess

    plan = plan.model_copy(update={"run": new_run_id()})
    store = Store(tmp_path / "results", plan.run)
    store.append(some.model_copy(update={"set": "heldout"}), plan)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    status = subprocess.run(
        ["git", "-C", str(tmp_path), "status", "--porcelain", "--untracked-files=all"],
        capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert status == ["??", f"results/runs/{plan.run}.json"]


@given(cut=st.integers(min_value=1, max_value=2000))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
def test_a_last_line_cut_anywhere_loses_itself_only(tmp_path: Path, plan: Manifest, some: Record, cut: int) -> None:
    store = Store(tmp_path, f"{plan.run}-{cut}")
    for _ in range(2):
        store.append(some, plan)
    path = store.records_path(some.set)
    size = path.stat().st_size // 2
    os.truncate(path, 2 * size - min(cut, size - 1))
    assert list(store.records()) == [some] if cut > 1 else [some, some]
    store.append(some, plan)
    assert len(list(store.records())) == (2 if cut > 1 else 3)


def append_many(out: Path, plan: Manifest, record: Record, number: int) -> None:
    for _ in range(number):
        Store(out, plan.run).append(record, plan)


def test_processes_do_not_interleave(tmp_path: Path, plan: Manifest, some: Record) -> None:
    big = some.model_copy(update={"reply": "x" * 200_000})
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=append_many, args=(tmp_path, plan, big, 5)) for _ in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    store = Store(tmp_path, plan.run)
    assert list(store.records()) == [big] * 15
    assert store.damaged_lines() == []


def test_a_full_disk_leaves_the_file_as_it_was(
    tmp_path: Path, plan: Manifest, some: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path, plan.run)
    store.append(some, plan)
    before = store.records_path(some.set).read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match=r"could not be written.*No space left"):
        store.append(some, plan)
    monkeypatch.undo()
    assert store.records_path(some.set).read_bytes() == before
    store.append(some, plan)
    assert len(list(store.records())) == 2


def test_a_run_is_found_by_id_folder_and_manifest(tmp_path: Path, plan: Manifest, some: Record) -> None:
    store = Store(tmp_path, plan.run)
    store.append(some, plan)
    for run in (plan.run, str(store.folder), str(store.manifest_path)):
        assert open_run(tmp_path, run).manifest() == plan
    with pytest.raises(StoreError, match=rf"no run 'other'.*{plan.run}"):
        open_run(tmp_path, "other")


def test_another_schema_is_refused_by_name(tmp_path: Path, plan: Manifest, some: Record) -> None:
    store = Store(tmp_path, plan.run)
    store.append(some, plan)
    path = store.records_path(some.set)
    line = json.loads(path.read_bytes())
    path.write_text(json.dumps({**line, "schema": 7}) + "\n", encoding="utf-8")
    with pytest.raises(StoreError, match="line 1: schema 7 is not known"):
        list(store.records())


def test_a_replaced_file_is_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.json"
    replace_text(path, "old")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        replace_text(path, "new")
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["report.json"]


def write_run(out: Path, cells: int, reply: int) -> Store:
    """A run of which every cell has a reply of so many characters."""
    plan = make_manifest(["reader"], workbooks=[f"w{n}" for n in range(cells // 3)])
    store = Store(out, plan.run)
    store.folder.mkdir(parents=True)
    store.write_manifest(plan)
    with store.records_path("development").open("wb") as stream:
        for number, cell in enumerate(plan.matrix.cells()):
            raw = {"said": "y" * reply}
            record = make_record(cell, reply=f"{number} " + "x" * reply, usage={"input": 9, "output": 9, "raw": raw})
            stream.write(line_of(record))
    return store


def peak(task: Callable[[], object]) -> int:
    """Bytes."""
    task()  # what it imports and caches is not counted
    gc.collect()
    tracemalloc.start()
    try:
        task()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_streaming_takes_the_same_memory_however_many_records_there_are(tmp_path: Path) -> None:
    few, many = (write_run(tmp_path / str(cells), cells, 2000) for cells in (30, 900))
    assert peak(lambda: sum(1 for _ in many.records())) < 1.5 * peak(lambda: sum(1 for _ in few.records()))


@pytest.mark.parametrize(
    "task",
    [lambda store: analyse(store.manifest(), store.records()), lambda store: Index(store).measured()],
    ids=["report", "index"],
)
def test_no_reply_is_held_in_memory(tmp_path: Path, task: Callable[[Store], object]) -> None:
    cells = 300
    small, large = (write_run(tmp_path / str(reply), cells, reply) for reply in (10, 5000))
    more = peak(lambda: task(large)) - peak(lambda: task(small))
    assert more < 20 * 5000  # a few lines at a time, and not 300 replies with their usage: 3 MB


def test_an_index_reads_what_was_added_and_gives_back_whole_records(
    tmp_path: Path, plan: Manifest, some: Record
) -> None:
    store = Store(tmp_path, plan.run)
    index = Index(store)
    assert index.measured() == {}
    for reply in ("ä first", "second"):
        store.append(some.model_copy(update={"reply": reply}), plan)
        assert index.measured()[some.cell].read().reply == reply
    with store.records_path(some.set).open("ab") as stream:
        stream.write(b'{"schema": 1, "run')
    assert index.measured()[some.cell].read().reply == "second"
    store.append(some.model_copy(update={"reply": "after the cut line"}), plan)
    found = store.find(some.cell)
    assert found is not None
    assert found.reply == index.measured()[some.cell].read().reply == "after the cut line"

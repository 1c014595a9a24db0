"""The store: one durable line per record, readable whatever happened to its writers."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_cellprose.record import Record
from pytest_cellprose.run.manifest import Manifest
from pytest_cellprose.run.store import Store, StoreError, open_run, replace_text
from tests.report.report_factories import manifest as make_manifest
from tests.report.report_factories import record as make_record


@pytest.fixture
def plan() -> Manifest:
    return make_manifest(["reader"])


@pytest.fixture
def some(plan: Manifest) -> Record:
    return make_record(next(plan.matrix.cells()))


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

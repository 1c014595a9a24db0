"""A process's way to its store: the run's lock, and records that the store does not take."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_cellprose.record.record import Record
from pytest_cellprose.store.keeper import Keeper, NoMoreCalls
from pytest_cellprose.store.layout import StoreError
from pytest_cellprose.store.lock import RunLock, holder_of, note_home, original_of
from pytest_cellprose.store.manifest import Manifest
from pytest_cellprose.store.records import Store

SECRET = "what the model said about a held-out workbook"


@pytest.fixture
def rescue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's temporary folder, for this test."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def keeper(tmp_path: Path, plan: Manifest, rescue: Path) -> Keeper:
    made = Keeper(Store(tmp_path / "results", plan.run), lambda: plan)
    made.open()
    return made


def full_disk(below: Path) -> Callable[[int], None]:
    """`os.fsync` as it is when the disk that holds `below` is full."""
    sync = os.fsync

    def fsync(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").readlink().is_relative_to(below):
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(descriptor)

    return fsync


needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="asks /proc which file is written")


def test_an_open_run_is_held_by_this_process_until_it_is_closed(keeper: Keeper) -> None:
    folder = keeper.store.folder
    holder = holder_of(folder)
    assert holder is not None
    assert holder.pid == os.getpid()
    with pytest.raises(StoreError, match=f"still running .process {os.getpid()} on "):
        keeper.store.require_resumable()
    keeper.close()
    assert holder_of(folder) is None
    keeper.store.require_resumable()


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from pytest_cellprose.store.lock import RunLock\n"
        "lock = RunLock.take(Path(sys.argv[1])); print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        holder = holder_of(tmp_path)
        assert holder is not None
        assert holder.pid == process.pid
        with pytest.raises(TimeoutError):
            RunLock.take(tmp_path)
        process.send_signal(signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)
    assert holder_of(tmp_path) is None
    RunLock.take(tmp_path).release()


def replace_lock(folder: Path) -> None:
    (folder / ".run.lock").unlink()
    (folder / ".run.lock").touch()


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be removed there")
@pytest.mark.parametrize("follower", [False, True], ids=["controller", "worker"])
@pytest.mark.parametrize(
    ("lose", "told"),
    [
        (lambda folder: (folder / ".run.lock").unlink(), "was removed"),
        (replace_lock, "was removed or replaced|has ended"),
        (shutil.rmtree, "was removed while the run was under way"),
    ],
    ids=["deleted", "replaced", "no-folder"],
)
def test_a_lost_lock_ends_the_run_before_the_next_call(
    keeper: Keeper, plan: Manifest, lose: Callable[[Path], object], told: str, follower: bool
) -> None:
    mine = keeper
    if follower:
        mine = Keeper(keeper.store, lambda: plan)
        mine.follow()
    mine.check()
    lose(keeper.store.folder)
    for _ in range(2):
        with pytest.raises(NoMoreCalls, match=told):
            mine.check()


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be removed there")
def test_a_record_that_comes_back_after_the_folder_was_removed_is_rescued_whole(
    keeper: Keeper, some: Record, rescue: Path
) -> None:
    keeper.keep(some)
    shutil.rmtree(keeper.store.folder)
    late = some.model_copy(update={"reply": "said late"})
    with pytest.raises(StoreError, match="was removed while the run was under way"):
        keeper.keep(late)
    assert not keeper.store.folder.exists()
    (file,) = rescue.glob("*.jsonl")
    assert [json.loads(line)["reply"] for line in file.read_bytes().splitlines() if line] == ["said late"]
    keeper.store.manifest_path.unlink()
    first, *commands, last = keeper.rescued()
    assert first.startswith("1 record rescued")
    assert last == f"and go on with --cellprose-resume {keeper.store.run}"
    subprocess.run(["sh", "-ec", "\n".join(commands)], check=True)
    assert keeper.store.manifest().run == some.run
    assert list(keeper.store.records()) == [late]


@needs_proc
def test_what_a_full_disk_does_not_take_is_rescued_and_can_be_put_back(
    keeper: Keeper, some: Record, rescue: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper.keep(some)
    secret = some.model_copy(update={"set": "heldout", "reply": SECRET})
    monkeypatch.setattr(os, "fsync", full_disk(keeper.store.out))
    for record in (secret, some.model_copy(update={"reply": "more"}), secret):
        with pytest.raises(StoreError, match=r"No space left on device; it is in .*rescued-") as caught:
            keeper.keep(record)
        assert SECRET not in str(caught.value)
    with pytest.raises(NoMoreCalls, match="No space left"):
        keeper.check()
    monkeypatch.undo()
    monkeypatch.setattr(tempfile, "tempdir", str(rescue))
    assert SECRET not in "".join([*keeper.rescued(), keeper.failure or ""])
    files = sorted(rescue.glob("*.jsonl"))
    assert [path.name.partition("rescued-")[2] for path in files] == ["development.jsonl", "heldout.jsonl"]
    assert [stat.S_IMODE(path.stat().st_mode) for path in files] == [0o600, 0o600]
    with keeper.store.records_path("development").open("ab") as stream:
        stream.write(b'{"schema": 1, "run": ')  # a process was killed here as well
    first, *commands, _ = keeper.rescued()
    assert first.startswith("3 records rescued")
    subprocess.run(["sh", "-ec", "\n".join(commands)], check=True)
    assert [record.reply for record in keeper.store.records()] == [some.reply, "more", SECRET, SECRET]
    assert len(keeper.store.damaged_lines()) == 1


@needs_proc
def test_what_can_be_written_nowhere_waits_in_memory_and_is_tried_again(
    keeper: Keeper, some: Record, tmp_path: Path, rescue: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", full_disk(tmp_path))
    with pytest.raises(StoreError, match="kept in memory until the run ends"):
        keeper.keep(some)
    keeper.finish()
    assert f"LOST: {some.cell}" in str(keeper.failure)
    assert list(keeper.store.records()) == []


@needs_proc
def test_memory_is_put_into_the_store_when_the_disk_has_room_again(
    keeper: Keeper, some: Record, tmp_path: Path, rescue: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", full_disk(tmp_path))
    with pytest.raises(StoreError):
        keeper.keep(some)
    monkeypatch.undo()
    keeper.finish()
    assert list(keeper.store.records()) == [some]
    assert "LOST" not in str(keeper.failure)


def test_what_another_process_rescued_ends_this_ones_calls(keeper: Keeper, some: Record, rescue: Path) -> None:
    keeper.check()
    (rescue / f"cellprose-{keeper.store.run}-rescued-heldout.jsonl").touch()
    with pytest.raises(NoMoreCalls, match="another process of the run could not store a record"):
        keeper.check()


@needs_proc
def test_a_full_disk_is_told_before_the_first_call(
    tmp_path: Path, plan: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "results"
    monkeypatch.setattr(os, "fsync", full_disk(out))
    with pytest.raises(StoreError, match="No space left on device: nothing was called"):
        Keeper(Store(out, plan.run), lambda: plan).open()
    assert not out.exists()


def test_a_copy_is_told_from_a_moved_folder(tmp_path: Path) -> None:
    folder = tmp_path / "results" / "run"
    folder.mkdir(parents=True)
    assert original_of(folder) is None
    note_home(folder)
    assert original_of(folder) is None
    copy = tmp_path / "copy"
    shutil.copytree(folder.parent, copy)
    assert original_of(copy / "run") == folder
    shutil.rmtree(folder.parent)
    assert original_of(copy / "run") is None
    (tmp_path / "link").symlink_to(copy)
    note_home(copy / "run")
    assert original_of(tmp_path / "link" / "run") is None

"""What a run's processes do so that nothing that was paid for is lost: open the store before the first call, keep
every record, and stop when one cannot be kept.

A record that the store does not take goes, whole, to a file in the system's temporary folder; if that fails too it is
kept in memory and tried again when the session ends. Either way no further call is started.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import get_args

from filelock import FileLock

from pytest_cellprose.files import append_line
from pytest_cellprose.record.record import Record, SetName
from pytest_cellprose.store.layout import PROBE, StoreError, ledger_files, rescued_manifest, rescued_records
from pytest_cellprose.store.lock import Follower, RunLock, note_home
from pytest_cellprose.store.manifest import Manifest
from pytest_cellprose.store.records import Store, line_of
from pytest_cellprose.wording import counted

_PROBE_BYTES = 1 << 20
"""More than a record has: a disk that does not take it is full."""


class NoMoreCalls(StoreError):
    """Nothing was sent: the run is over, or what comes back could not be stored."""


class Keeper:
    """One process's way to the store of its run. Safe to use from many threads."""

    def __init__(self, store: Store, manifest: Callable[[], Manifest]) -> None:
        """`manifest`: the run's, as it is when it is asked for."""
        self.store = store
        self.failure: str | None = None
        """Why the run ends; None while everything is well."""
        self._manifest = manifest
        self._lock: RunLock | None = None
        self._over: Callable[[], str | None] = _never
        self._taken_away: Callable[[], str | None] = _never
        self._used = False
        self._unwritten: list[Record] = []
        self._mutex = threading.Lock()

    @property
    def is_open(self) -> bool:
        return self._lock is not None

    def open(self) -> None:
        """Before the first call, in the process that planned the run: take its lock and show that it can be written.

        Raises `StoreError`.
        """
        folder = self.store.folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = RunLock.take(folder)
            note_home(folder)
            self.store.write_manifest(self._manifest())
            _probe(folder / PROBE)
        except OSError as error:
            if self.is_open:
                self.discard()
            raise StoreError(
                f"{folder}: the run's records could not be written there: {error.strerror or error}: nothing was "
                "called; make room or name another folder with --cellprose-out"
            ) from None
        self._over = self._taken_away = self._lock.lost

    def follow(self) -> None:
        """In a worker on the controller's machine: heed the lock that the controller holds."""
        lock = Follower(self.store.folder)
        self._over, self._taken_away = lock.over, lock.lost

    def check(self) -> None:
        """Before a call: raises `NoMoreCalls` if none may start."""
        self._used = True
        if self.failure is None:
            over = self._over()
            if over is not None:
                self.fail(over)
            elif any(self._rescue_path(name).exists() for name in get_args(SetName)):
                self.fail("another process of the run could not store a record")
        if self.failure is not None:
            raise NoMoreCalls(f"not called: {self.failure}")

    def keep(self, record: Record) -> None:
        """Store a record, on disk when this returns. Raises `StoreError` if it is elsewhere; the run ends then."""
        try:
            self._append(record)
        except StoreError as error:
            rescued = self._rescue(record)
            where = f"it is in {rescued}" if rescued else "it is kept in memory until the run ends"
            self.fail(str(error))
            raise StoreError(f"{error}; {where}") from None

    def fail(self, reason: str) -> None:
        """Start no more calls. The first reason is told, or that the folder was taken away, which explains others."""
        taken_away = self._taken_away()
        with self._mutex:
            self.failure = self.failure or taken_away or reason

    def finish(self) -> None:
        """When the session ends: try again what is only in memory."""
        taken_away = self._taken_away() if self._used else None  # a run of which nothing runs has no folder
        if taken_away is not None:
            self.fail(taken_away)
        left, self._unwritten = self._unwritten, []
        for record in left:
            try:
                self._append(record)
            except StoreError:
                self._rescue(record)
        if self._unwritten:
            cells = ", ".join(str(record.cell) for record in self._unwritten)
            self.failure = f"{self.failure}; records that could be written nowhere are LOST: {cells}"

    def rescued(self) -> list[str]:
        """What to do about rescued records: sentences and shell commands, none if nothing was rescued."""
        files = [(name, self._rescue_path(name)) for name in get_args(SetName) if self._rescue_path(name).is_file()]
        if not files:
            return []
        folder, number = self.store.folder, sum(_lines(path) for _, path in files)
        lines = [f"{counted(number, 'record')} rescued; put them back, once, with"]
        lines.append(f"  mkdir -p {shlex.quote(str(folder))}")
        if not self.store.exists and (manifest := self._rescued_manifest()) is not None:
            target = self.store.manifest_path
            lines.append(f"  mkdir -p {shlex.quote(str(target.parent))}")
            lines.append(f"  cp {shlex.quote(str(manifest))} {shlex.quote(str(target))}")
        for name, path in files:
            lines.append(f"  cat {shlex.quote(str(path))} >> {shlex.quote(str(self.store.records_path(name)))}")
        lines.append(f"and go on with --cellprose-resume {self.store.run}")
        return lines

    def close(self) -> None:
        """The session is over: let go of the lock."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was recorded: no record and, of calls that ended without one, no money."""
        return not self.store.has_records and not ledger_files(self.store.folder)

    def discard(self) -> None:
        """Leave nothing behind of a run in which nothing was recorded."""
        self.close()
        with contextlib.suppress(OSError):
            self.store.manifest_path.unlink(missing_ok=True)
        if self.is_empty:
            shutil.rmtree(self.store.folder, ignore_errors=True)
        self.store.remove_empty_folders()

    def _append(self, record: Record) -> None:
        taken_away = self._taken_away()
        if taken_away is not None:  # nothing is written into a folder that is not the one the run began in
            raise StoreError(f"{taken_away}: the record of {record.cell} could not be written")
        self.store.append(record, self._manifest())

    def _rescue(self, record: Record) -> Path | None:
        """Write a record outside the results; None if that fails too, and then it waits in memory."""
        path = self._rescue_path(record.set)
        try:
            with FileLock(path.with_suffix(".lock"), mode=0o600):
                if not path.exists():
                    _create_private(path)
                    append_line(path, b"\n")  # keeps the rest of a cut line from spoiling the first one put back
                append_line(path, line_of(record))
        except OSError:
            with self._mutex:
                self._unwritten.append(record)
            return None
        return path

    def _rescue_path(self, set_name: SetName) -> Path:
        return rescued_records(self.store.run, set_name)

    def _rescued_manifest(self) -> Path | None:
        path = rescued_manifest(self.store.run)
        try:
            if not path.exists():
                _create_private(path)
            path.write_text(self._manifest().model_dump_json(indent=1) + "\n", encoding="utf-8")
        except OSError:
            return None
        return path


def _never() -> str | None:
    return None


def _probe(path: Path) -> None:
    """Raises OSError if nothing can be written there."""
    try:
        append_line(path, b" " * _PROBE_BYTES)
    finally:
        path.unlink(missing_ok=True)


def _create_private(path: Path) -> None:
    """A file that only its owner can read; never somebody else's, and never through a link that waits there."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, stat.S_IRUSR | stat.S_IWUSR))


def _lines(path: Path) -> int:
    with path.open("rb") as stream:
        return sum(not line.isspace() for line in stream)

"""Who runs a run: an operating system's lock on ``<run>/.run.lock``, held until the session is over.

The lock is free by itself when its process ends, however it ends. Who holds it is said beside it, in ``.run.holder``,
for a lock may keep its own file from being read. The processes of a run ask before every call whether the lock is
still theirs: a results folder that was taken away, or a run whose controller died, must not go on spending.
"""

from __future__ import annotations

import contextlib
import os
import socket
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import ValidationError

from pytest_cellprose.record.record import Frozen, utc_now
from pytest_cellprose.store.layout import HOLDER_FILE, HOME_FILE, LOCK_FILE


class Holder(Frozen):
    """The process that runs a run."""

    pid: int
    host: str
    since: str
    """UTC, ISO 8601."""

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


@dataclass(frozen=True)
class RunLock:
    """The lock of a run's folder, held by this process."""

    folder: Path
    _lock: FileLock
    _file: tuple[int, int]

    @classmethod
    def take(cls, folder: Path) -> RunLock:
        """Raises OSError; `TimeoutError` if another process holds it."""
        lock = FileLock(folder / LOCK_FILE)
        try:
            lock.acquire(timeout=1)
        except Timeout:
            raise TimeoutError(f"{folder}: another process runs this run") from None
        holder = Holder(pid=os.getpid(), host=socket.gethostname(), since=utc_now())
        (folder / HOLDER_FILE).write_text(holder.model_dump_json() + "\n", encoding="utf-8")
        found = _identity(folder / LOCK_FILE)
        if found is None:
            raise FileNotFoundError(f"{folder / LOCK_FILE} is gone")
        return cls(folder, lock, found)

    def lost(self) -> str | None:
        """Why the lock is no longer this process's; None while it is.

        A held file's number is given to no other file, so that another number is another file.
        """
        return None if _identity(self.folder / LOCK_FILE) == self._file else _gone(self.folder)

    def release(self) -> None:
        self._lock.release()


def holder_of(folder: Path) -> Holder | None:
    """Who runs the run in this folder now; None if nobody does, or if that cannot be told."""
    path = folder / LOCK_FILE
    if not path.is_file():
        return None
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return _read_holder(folder / HOLDER_FILE)
    except (OSError, NotImplementedError):  # a folder that nobody can write, a file system without locks
        return None
    lock.release()
    return None


class Follower:
    """A worker's view of the lock that its controller holds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file: tuple[int, int] | None = None

    def lost(self) -> str | None:
        """Why nothing must be written into the folder: it is not the one that the controller locked; else None.

        The lock is there when the first test runs. While it is held no other file has its number.
        """
        found = _identity(self.folder / LOCK_FILE)
        self._file = self._file or found
        return _gone(self.folder) if found is None or found != self._file else None

    def over(self) -> str | None:
        """Why no call may start: the lock is lost, or nobody holds it; None while the controller lives."""
        lost = self.lost()
        if lost is not None or holder_of(self.folder) is not None:
            return lost
        return self.lost() or f"{self.folder}: the process that ran this run has ended"


def _gone(folder: Path) -> str:
    if not folder.is_dir():
        return f"{folder} was removed while the run was under way"
    return f"{folder / LOCK_FILE} was removed or replaced while the run was under way"


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _read_holder(path: Path) -> Holder:
    try:
        return Holder.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return Holder(pid=0, host="an unknown host", since="")


def note_home(folder: Path) -> None:
    """Say that the run lives in this folder now."""
    (folder / HOME_FILE).write_text(f"{folder.resolve()}\n", encoding="utf-8")


def note_moved(folder: Path) -> None:
    """The same for a folder that was found elsewhere, if it can be written: a later copy is then told from it."""
    if (folder / HOME_FILE).is_file() and _home(folder) != folder.resolve():
        with contextlib.suppress(OSError):
            note_home(folder)


def original_of(folder: Path) -> Path | None:
    """The folder that this one was copied from, if it is still there; None for a moved one, or where nothing says."""
    home = _home(folder)
    if home is None:
        return None
    try:
        return home if home.is_dir() and not home.samefile(folder) else None
    except OSError:
        return None


def _home(folder: Path) -> Path | None:
    try:
        text = (folder / HOME_FILE).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return Path(text) if text else None

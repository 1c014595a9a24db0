"""How many commands of agents run at a time, in all processes of a run together."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

_PAUSE = 0.02
"""Seconds between two looks whether a slot is free; only as many threads of a process look as there are slots."""


class Slots:
    """So many locks in a folder that the processes share: who has one may run a command."""

    def __init__(self, number: int, folder: Path) -> None:
        self._number = number
        self._folder = folder
        self._threads = threading.Semaphore(number)

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Wait for a slot and keep it. Raises OSError if the folder cannot be used."""
        with self._threads:
            self._folder.mkdir(parents=True, exist_ok=True)
            lock = self._acquired()
            try:
                yield
            finally:
                lock.release()

    def _acquired(self) -> FileLock:
        locks = [FileLock(self._folder / f"{place}.lock") for place in range(self._number)]
        while True:
            for lock in locks:
                try:
                    lock.acquire(timeout=0)
                except Timeout:
                    continue
                return lock
            time.sleep(_PAUSE)

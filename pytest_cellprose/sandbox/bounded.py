"""A process that is run with an end: a bounded output, a bounded time, and nothing that goes on after it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from pytest_cellprose.sandbox.base import Ended, Ran

_CHUNK = 1 << 16
_LOOK_SECONDS = 0.2
"""Between two looks at what a command uses."""
_GRACE_SECONDS = 2.0
"""For a pipe to end after every process that we know of was killed: whoever still holds it is not waited for."""


@dataclass(frozen=True)
class Program:
    """How a command is started."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    folder: Path | None = None
    """Where it starts; None: its arguments say so."""
    arguments: bytes = b""
    """What is handed over by a file descriptor, whose number is ``{fd}`` in `argv`: no other process sees it."""
    stop: Callable[[], object] = lambda: None
    """What else ends it, besides killing its process group."""


@dataclass
class _Kept:
    """The two ends of an output, and how much there was."""

    most: int
    head: bytearray = field(default_factory=bytearray)
    tail: deque[bytes] = field(default_factory=deque)
    total: int = 0

    def add(self, chunk: bytes) -> None:
        self.total += len(chunk)
        room = self.most // 2 - len(self.head)
        self.head += chunk[:room]
        if len(chunk) > room:
            self.tail.append(chunk[max(0, room) :])
            while sum(map(len, self.tail)) - len(self.tail[0]) >= self.most // 2:
                self.tail.popleft()

    def ends(self) -> tuple[bytes, int, bytes]:
        """Head, bytes left out, tail."""
        rest = b"".join(self.tail)
        tail = rest[-(self.most // 2) :]
        left_out = self.total - len(self.head) - len(tail)
        return (bytes(self.head) + tail, 0, b"") if left_out == 0 else (bytes(self.head), left_out, tail)


def run_bounded(
    program: Program, said: bytes, *, seconds: float, output_bytes: int, look: Callable[[int], Ended | None]
) -> Ran:
    """Run a program that reads `said` from its stdin, and kill it and all it started when it is over.

    `look` gets the process's id now and then, and names the limit that is broken, if one is. Raises OSError if the
    program cannot be started.
    """
    began = time.monotonic()
    process = _started(program)
    assert process.stdin is not None
    assert process.stdout is not None
    kept = _Kept(output_bytes)
    reader = threading.Thread(target=_read, args=(process.stdout, kept), daemon=True)
    writer = threading.Thread(target=_write, args=(process.stdin, said), daemon=True)
    reader.start()
    writer.start()
    try:
        ended = _wait(process, began + seconds, look)
    finally:
        _kill(process, program)
    reader.join(_GRACE_SECONDS)
    head, left_out, tail = kept.ends()
    code = process.returncode
    exit_code = None if ended != "exit" else code if code >= 0 else 128 - code
    return Ran(head, tail, left_out, exit_code, ended, time.monotonic() - began)


def _started(program: Program) -> subprocess.Popen[bytes]:
    arguments = os.memfd_create("arguments") if program.arguments else None
    try:
        if arguments is not None:
            os.write(arguments, program.arguments)
            os.lseek(arguments, 0, os.SEEK_SET)
        return subprocess.Popen(
            [part.replace("{fd}", str(arguments)) for part in program.argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(program.environment),
            cwd=program.folder,
            start_new_session=True,
            pass_fds=() if arguments is None else (arguments,),
        )
    finally:
        if arguments is not None:
            os.close(arguments)


def _read(pipe: IO[bytes], kept: _Kept) -> None:
    with contextlib.suppress(OSError, ValueError):
        while chunk := os.read(pipe.fileno(), _CHUNK):
            kept.add(chunk)


def _write(pipe: IO[bytes], said: bytes) -> None:
    with contextlib.suppress(OSError, ValueError):
        pipe.write(said)
        pipe.close()


def _wait(process: subprocess.Popen[bytes], deadline: float, look: Callable[[int], Ended | None]) -> Ended:
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            return "time_out"
        try:
            process.wait(min(left, _LOOK_SECONDS))
        except subprocess.TimeoutExpired:
            broken = look(process.pid)
            if broken is not None:
                return broken
        else:
            return "exit"


def _kill(process: subprocess.Popen[bytes], program: Program) -> None:
    program.stop()
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


def memory_of(pid: int) -> int:
    """Bytes that a process and all that it started have in memory; what cannot be read counts nothing."""
    total, left = 0, [pid]
    page = os.sysconf("SC_PAGE_SIZE")
    while left:
        one = left.pop()
        with contextlib.suppress(OSError, ValueError, IndexError):
            total += int(Path(f"/proc/{one}/statm").read_bytes().split()[1]) * page
            left += map(int, Path(f"/proc/{one}/task/{one}/children").read_bytes().split())
    return total

"""What a sandbox is: a working directory with some files, in which commands run that are taken for hostile."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

Level: TypeAlias = Literal["bubblewrap", "container", "unsafe"]
Ended: TypeAlias = Literal["exit", "time_out", "memory", "disk"]
"""By itself; or killed for its time, for the memory of all its processes, or for what it left in the directory."""


@dataclass(frozen=True)
class Limits:
    """Of one command and all its processes, where nothing else is said."""

    seconds: float = 30.0
    """If the command does not name its own."""
    most_seconds: float = 120.0
    """That a command may name."""
    output_bytes: int = 16_000
    """Of stdout and stderr together that are kept: half from either end."""
    memory_bytes: int = 2 << 30
    """Of one process's address space, and of all that the processes have in memory."""
    processes: int = 128
    """At a time, threads included."""
    cpu_seconds: int = 120
    """Of one process."""
    file_bytes: int = 64 << 20
    """Of one file."""
    disk_bytes: int = 256 << 20
    """Of all files in the working directory, and of each other place that can be written."""
    files: int = 10_000
    """In the working directory."""

    def facts(self) -> dict[str, int | float]:
        """As plain JSON: they are part of what a model is asked."""
        return asdict(self)


LIMITS = Limits()


@dataclass(frozen=True)
class Ran:
    """A command that is over."""

    head: bytes
    """Stdout and stderr together, in the order in which they came."""
    tail: bytes
    """Of an output that was too long."""
    left_out: int
    """Bytes between the two."""
    exit_code: int | None
    """As a shell gives it; None: it was killed."""
    ended: Ended
    seconds: float

    @property
    def output_bytes(self) -> int:
        """Of all that it wrote."""
        return len(self.head) + self.left_out + len(self.tail)


@dataclass(frozen=True)
class Answer:
    """What a tool answers."""

    text: str
    """What the model is told."""
    exit_code: int | None = None
    """Of a command that came to its end."""
    output_bytes: int | None = None
    """Of all that a command wrote."""


class SandboxError(RuntimeError):
    """A sandbox that cannot be made here; the message says why."""


class Sandbox(AbstractContextManager["Sandbox"], Protocol):
    """Made for one attempt; closing it leaves no process and no file behind."""

    def run(self, command: str, seconds: float | None = None) -> Ran:
        """Run a command by ``bash`` in the directory where the last one ended; nothing of it runs on afterwards.

        `seconds`: how long it may take, at most `Limits.most_seconds`. Raises `SandboxError` if nothing could be run.
        """
        ...


class Sandboxes(Protocol):
    """One way of making them, in one process. May be used by many threads."""

    level: Level

    def facts(self) -> Mapping[str, str | int | float]:
        """Plain JSON of what a command finds: the level, the limits, the versions of Python and openpyxl.

        Found once, by a command in a sandbox. Raises `SandboxError`.
        """
        ...

    def open(self, files: Mapping[str, Path | bytes]) -> Sandbox:
        """One with these files, name -> content, in its working directory. Their times and modes tell nothing."""
        ...

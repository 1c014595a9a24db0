"""Which sandbox a run has, whether it works here, and how its commands are run."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TypeAlias

from pytest_cellprose.sandbox import bubblewrap, container, unsafe
from pytest_cellprose.sandbox.base import LIMITS, Ended, Level, Limits, Ran, Sandbox, SandboxError, Sandboxes
from pytest_cellprose.sandbox.bounded import Program, memory_of, run_bounded
from pytest_cellprose.sandbox.box import Box, remove_stale
from pytest_cellprose.sandbox.slots import Slots

_VERSIONS = """python3 -c '
import json, platform, openpyxl
print(json.dumps({"python": platform.python_version(), "openpyxl": openpyxl.__version__}))
'"""
_Start: TypeAlias = Callable[[Box, int | None, Limits], Program]
"""How a command is started in a box, by the user that owns it (None: ourselves)."""
_CONTAINER = "container:"
_UNSAFE = "unsafe"


@dataclass(frozen=True)
class Probed:
    """Whether a sandbox works on this machine."""

    facts: Mapping[str, str | int | float] = field(default_factory=dict)
    """What it says of itself; empty if it does not work."""
    problem: str | None = None
    """Why it does not."""
    remedy: str = ""
    """What to do about it."""


def sandboxes(choice: str | None, slots: int, slots_folder: Path) -> Sandboxes:
    """Those of ``--cellprose-sandbox``; None: bubblewrap. Nothing is tried yet.

    Of all processes that name the same folder, `slots` commands run at a time.
    """
    shared = Slots(slots, slots_folder)
    if choice is None:
        return _Sandboxes(
            "bubblewrap", shared, bubblewrap.program, own_user=bubblewrap.own_user, packages=bubblewrap.packages
        )
    if choice == _UNSAFE:
        return _Sandboxes("unsafe", shared, lambda box, user, limits: unsafe.program(box, limits))
    image = choice.removeprefix(_CONTAINER)

    def in_image(box: Box, user: int | None, limits: Limits) -> Program:
        return container.program(box, image, user, limits)

    return _Sandboxes("container", shared, in_image, own_user=bubblewrap.own_user, more={"image": image})


def probe(made: Sandboxes) -> Probed:
    """Run a real command in one."""
    try:
        return Probed(made.facts())
    except SandboxError as error:
        return Probed(problem=str(error), remedy=_REMEDIES[made.level])


_REMEDIES: Mapping[Level, str] = {
    "bubblewrap": "install it (`apt install bubblewrap`, `dnf install bubblewrap`, `pacman -S bubblewrap`; it needs "
    "user namespaces, which some hosts and containers switch off), take --cellprose-sandbox=container:IMAGE",
    "container": "start docker or podman, and take an image that has bash, and python3 with openpyxl",
    "unsafe": "install bash, and python3 with openpyxl",
}


class _Sandboxes:
    def __init__(
        self,
        level: Level,
        slots: Slots,
        program: _Start,
        *,
        own_user: Callable[[], int | None] = lambda: None,
        packages: Callable[[], list[Path]] = list,
        more: Mapping[str, str] | None = None,
    ) -> None:
        self.level = level
        self._slots = slots
        self._program = program
        self._own_user = own_user
        self._packages = packages
        self._more = dict(more or {})
        self._facts: Mapping[str, str | int | float] | None = None
        self._finding = threading.Lock()

    def facts(self) -> Mapping[str, str | int | float]:
        with self._finding:
            if self._facts is None:
                remove_stale()
                self._facts = {"level": self.level, **self._more, **self._versions(), **LIMITS.facts()}
            return self._facts

    def open(self, files: Mapping[str, Path | bytes]) -> Sandbox:
        user = self._own_user()
        return _Opened(Box(files, LIMITS, user, self._packages()), self._slots, self._program, user)

    def _versions(self) -> Mapping[str, str]:
        with self.open({}) as sandbox:
            ran = sandbox.run(_VERSIONS)
        try:
            found = json.loads(ran.head)
            return {"python": str(found["python"]), "openpyxl": str(found["openpyxl"])}
        except (ValueError, KeyError, TypeError):
            said = " ".join(ran.head.decode("utf-8", "replace").split())[-300:]
            raise SandboxError(f"the {self.level} sandbox does not work here: {said or 'no output'}") from None


class _Opened:
    """One sandbox, from its first command to its last."""

    def __init__(self, box: Box, slots: Slots, start: _Start, user: int | None) -> None:
        self._slots = slots
        self._user = user
        self._start = start
        self._box = box

    def __enter__(self) -> _Opened:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._box.close()

    def run(self, command: str, seconds: float | None = None) -> Ran:
        allowed = LIMITS.seconds if seconds is None else min(max(seconds, 1.0), LIMITS.most_seconds)
        program = self._start(self._box, self._user, LIMITS)
        try:
            with self._slots.taken():
                ran = run_bounded(
                    program,
                    command.encode("utf-8", "replace"),
                    seconds=allowed,
                    output_bytes=LIMITS.output_bytes,
                    look=self._broken(),
                )
        except OSError as error:
            raise SandboxError(f"a command could not be started: {error}") from None
        if ran.ended == "disk" or self._box.over_quota():
            self._box.refill()
            return Ran(ran.head, ran.tail, ran.left_out, None, "disk", ran.seconds)
        return ran

    def _broken(self) -> Callable[[int], Ended | None]:
        """Which limit is broken; the folder is looked at less often the longer a look takes."""
        next_look = 0.0

        def look(pid: int) -> Ended | None:
            nonlocal next_look
            if memory_of(pid) > LIMITS.memory_bytes:
                return "memory"
            now = time.monotonic()
            if now >= next_look:
                over = self._box.over_quota()
                next_look = time.monotonic() + 5 * (time.monotonic() - now)
                return "disk" if over else None
            return None

        return look

"""How far a run is, while it runs: a line below pytest's own output on a terminal, a plain line a minute elsewhere.

The line is drawn from what is at hand and cheap: the reports of tests, and the ledger. It is taken away before pytest
writes anything and drawn again afterwards, so that pytest's output is what it would be without.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TextIO

import pytest

from pytest_cellprose.record.plain import visible
from pytest_cellprose.session.letters import PROPERTY
from pytest_cellprose.wording import counted, dollars

if TYPE_CHECKING:
    from pytest_cellprose.measure.engine import Engine
    from pytest_cellprose.session.controller import ControllerRun

WATCH = pytest.StashKey["Progress"]()
DRAW_SECONDS = 0.5
LOG_SECONDS = 60.0
"""Between two plain lines, where nobody looks at a terminal."""
_LEAST_DONE = 3
"""Cells that must be done before it can be said how long the others take."""
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True)
class State:
    """What there is to say."""

    doing: str = ""
    """Before the first cell; empty afterwards."""
    planned: int = 0
    """Selected cells that the mode lets run."""
    done: int = 0
    failures: int = 0
    faults: int = 0
    in_flight: int = 0
    spent: int = 0
    """Nano-dollars."""
    expected: int = 0
    """Of all that is planned; 0: nothing costs anything."""
    seconds: float = 0.0
    """Since the first cell was to run."""


def line(state: State, width: int) -> str:
    """The state in one line of at most `width` characters."""
    if state.doing:
        return _cut(f"cellprose: {state.doing}", width)
    parts = [f"{state.done:,} of {counted(state.planned, 'cell')}"]
    if state.expected:
        parts.append(f"{dollars(state.spent)} of {dollars(state.expected)}")
    if state.failures:
        parts.append(counted(state.failures, "failure"))
    if state.faults:
        parts.append(counted(state.faults, "fault"))
    if state.in_flight:
        parts.append(f"{state.in_flight:,} in flight")
    if state.planned > state.done >= _LEAST_DONE:
        parts.append(f"{_time(state.seconds / state.done * (state.planned - state.done))} left")
    return _cut(f"cellprose: {' · '.join(parts)}", width)


def _cut(text: str, width: int) -> str:
    text = visible(text)
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


def _time(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 2:
        return f"{max(1, round(seconds)):,} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"


class Screen:
    """A text file that may show one line below where its writer is.

    Whatever is written goes through as it is; the line is erased before, and drawn again after it.
    """

    def __init__(self, file: TextIO, width: Callable[[], int]) -> None:
        self._file = file
        self._width = width
        self._lock = threading.RLock()
        self._column = 0
        self._shown = ""
        """The line; empty: none is shown."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, text: str) -> int:
        if not text:
            return 0
        with self._lock:
            shown = self._shown
            self._erase()
            self._column = _column_after(self._column, text)
            written = self._file.write(text)
            if shown:
                self.draw(shown)
            return written

    def draw(self, text: str) -> None:
        """Show a line below, in place of the last one."""
        with self._lock:
            self._file.write(f"\n\r\x1b[2K{text}{self._back()}")
            self._file.flush()
            self._shown = text

    def say(self, text: str) -> None:
        """A line of its own, which stays."""
        with self._lock:
            self.write(f"{chr(10) if self._column else ''}{text}\n")
            self._file.flush()

    def clear(self) -> None:
        with self._lock:
            self._erase()
            self._file.flush()

    def _erase(self) -> None:
        if self._shown:
            self._file.write(f"\n\r\x1b[2K{self._back()}")
            self._shown = ""

    def _back(self) -> str:
        """To where the writer was: one line up, in its column."""
        return f"\x1b[1A\x1b[{self._column % max(1, self._width()) + 1}G"


def _column_after(column: int, text: str) -> int:
    plain = _ESCAPE.sub("", text)
    ended = max(plain.rfind("\n"), plain.rfind("\r"))
    return column + len(plain) if ended < 0 else len(plain) - ended - 1


@dataclass
class Progress:
    """One run's line, as a plugin of pytest: it counts reports, and draws in a thread of its own."""

    screen: Screen
    width: Callable[[], int]
    live: bool
    """On a terminal; else a plain line now and then."""
    state: State = State(doing="planning")
    run: ControllerRun | None = None
    engine: Engine | None = None
    texts: int = 0
    """How many the plan may need."""
    began: float = 0.0
    _seen: set[str] = field(default_factory=set)
    """Cells that a report was about: one that runs again is done once."""
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._keep_drawing, name="cellprose-progress", daemon=True)
        self._thread.start()

    def watch(self, engine: Engine, texts: int) -> None:
        """The plan is there, and so many of its texts are being made."""
        self.engine, self.texts = engine, texts

    def stop(self) -> None:
        """Show nothing more; may be called several times."""
        self._over.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(5)
        if self.live:
            self.screen.clear()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Any:
        self._begin()
        try:
            return (yield)
        finally:
            self.stop()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        found = next((json.loads(str(value)) for name, value in report.user_properties if name == PROPERTY), None)
        if found is None or report.when != "call":
            return
        if not self.state.planned:
            self._begin()
        state, again = self.state, found["cell"] in self._seen
        self._seen.add(found["cell"])
        self.state = replace(
            state,
            done=state.done + (not again),
            failures=state.failures + (found["status"] == "failure"),
            faults=state.faults + (found["status"] == "fault" and not again),
        )

    def pytest_unconfigure(self) -> None:
        self.stop()

    def _begin(self) -> None:
        """Count from here; with workers nothing is selected before their first report."""
        run = self.run
        if run is None or not run.selected:
            return
        from pytest_cellprose.plan.cost import estimate

        cells = [cell for cell in run.selected if run.runs(cell)]
        self.began = time.monotonic()
        self.state = State(planned=len(cells), expected=estimate(run.engine, cells).expected)

    def _keep_drawing(self) -> None:
        while not self._over.wait(DRAW_SECONDS if self.live else LOG_SECONDS):
            text = line(self._now(), self.width() - 1 if self.live else 200)
            with suppress(OSError, ValueError):  # a terminal that went away
                if self.live:
                    self.screen.draw(text)
                else:
                    self.screen.say(text)

    def _now(self) -> State:
        state, engine = self.state, self.engine
        if state.doing and engine is not None:
            made = engine.texts_made
            doing = f"encoding {made:,} of {self.texts:,}" if made < self.texts else "collecting"
            return replace(state, doing=doing)
        if not state.planned:
            return replace(state, doing=state.doing or "collecting")
        in_flight, spent = 0, 0
        if state.expected and engine is not None:
            ledger = engine.ledger.look()
            in_flight = len(ledger.open)
            spent = sum(account.counted for account in ledger.vendors.values())
        return replace(state, in_flight=in_flight, spent=spent, seconds=time.monotonic() - self.began)


@contextmanager
def watching(config: pytest.Config) -> Iterator[Callable[[ControllerRun | None], ControllerRun | None]]:
    """Show how far the planning is; what is given the run goes on until its tests are over.

    Nothing under ``-q``, with a debugger, where output is not captured, or where nothing runs.
    """
    option = config.option
    quiet = config.get_verbosity() < 0 or option.collectonly or option.capture == "no"
    if quiet or option.usepdb or getattr(option, "trace", False):
        yield lambda run: run
        return
    progress = _taken_up(config)
    progress.start()

    def watch(run: ControllerRun | None) -> ControllerRun | None:
        progress.run = run
        return run

    try:
        yield watch
    finally:
        if progress.run is None:
            progress.stop()


def _taken_up(config: pytest.Config) -> Progress:
    """The line of a session, with pytest's terminal behind it."""
    writer = config.get_terminal_writer()

    def width() -> int:
        return int(writer.fullwidth)

    file = writer._file
    on_terminal = file.isatty() and os.environ.get("TERM", "dumb") != "dumb" and os.name != "nt"
    screen = Screen(file, width)
    writer._file = screen
    progress = Progress(screen, width, live=on_terminal and not config.pluginmanager.has_plugin("sugar"))
    config.stash[WATCH] = progress
    config.pluginmanager.register(progress, "cellprose-progress")
    return progress

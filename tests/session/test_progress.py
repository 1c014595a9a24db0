"""The line of progress: what it says, and that pytest's own output is on the screen as it would be without it."""

from __future__ import annotations

import io
import os
import re
import select
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyte
import pytest

from pytest_cellprose.session.progress import Screen, State, line
from tests.integration.conftest import HOUSE, Bench, bench  # noqa: F401

DOLLAR = 10**9


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (State(doing="planning"), "planning"),
        (State(doing="encoding 12 of 84"), "encoding 12 of 84"),
        (State(planned=84), "0 of 84 cells"),
        (State(planned=84, done=2, seconds=10), "2 of 84 cells"),
        (State(planned=84, done=4, seconds=10), "4 of 84 cells · 3 min left"),
        (State(planned=84, done=80, seconds=100), "80 of 84 cells · 5 s left"),
        (State(planned=9_000, done=9, seconds=90), "9 of 9,000 cells · 25.0 h left"),
        (State(planned=84, done=84, seconds=100), "84 of 84 cells"),
        (
            State(planned=84, done=4, failures=1, faults=2, in_flight=8, spent=DOLLAR // 2, expected=4 * DOLLAR),
            "4 of 84 cells · $0.50 of $4.00 · 1 failure · 2 faults · 8 in flight · 1 s left",
        ),
        (State(planned=1, done=0, expected=DOLLAR), "0 of 1 cell · $0.00 of $1.00"),
    ],
)
def test_what_is_said(state: State, said: str) -> None:
    assert line(state, 200) == f"cellprose: {said}"


def test_it_fits_the_width() -> None:
    wide = State(planned=84, done=4, failures=1, faults=2, in_flight=8, spent=1, expected=4 * DOLLAR)
    assert len(line(wide, 40)) == 40
    assert line(wide, 40).endswith("…")


class Terminal(io.StringIO):
    """A terminal in memory."""

    def __init__(self, columns: int = 40, lines: int = 6) -> None:
        super().__init__()
        self.screen = pyte.Screen(columns, lines)
        self.screen.set_mode(pyte.modes.LNM)  # as a tty's driver has it: a line feed goes to the first column
        self._stream = pyte.Stream(self.screen)

    def write(self, text: str) -> int:
        self._stream.feed(text)
        return len(text)

    @property
    def lines(self) -> list[str]:
        return [text.rstrip() for text in self.screen.display]


WRITTEN = ["one line\n", "tests/a.py ", ".", ".", "\x1b[32m.\x1b[0m", "5", "\n", "x" * 30, "\n", "", "last ", "words"]


@pytest.mark.parametrize("at", ["always", "never", "odd"])
@pytest.mark.parametrize("height", [3, 6, 40])
def test_what_is_written_stands_as_without_the_line(at: str, height: int) -> None:
    plain, shown = Terminal(lines=height), Terminal(lines=height)
    screen = Screen(shown, lambda: 40)
    for number, text in enumerate(WRITTEN):
        plain.write(text)
        if at == "always" or (at == "odd" and number % 2):
            screen.draw(f"progress {number}")
        screen.write(text)
    if at != "never":
        assert any(text.startswith("progress") for text in shown.lines)
    screen.clear()
    found = [text for text in shown.lines if text]
    expected = [text for text in plain.lines if text]
    assert found == expected[-len(found) :]
    assert len(found) >= min(len(expected), height - 1)  # the line takes the last row of a screen that is full


def test_a_plain_line_has_a_line_of_its_own() -> None:
    terminal = Terminal()
    screen = Screen(terminal, lambda: 40)
    screen.write("tests/a.py ..")
    screen.say("cellprose: 2 of 9 cells")
    screen.write("..")
    assert terminal.lines[:3] == ["tests/a.py ..", "cellprose: 2 of 9 cells", ".."]


SLOW = HOUSE.replace("        with Path", "        import time; time.sleep(0.2)\n        with Path")


def on_a_terminal(bench: Bench, *arguments: str, seen: Callable[[list[str]], object]) -> list[str]:  # noqa: F811
    """A run on a pseudo-terminal of 100 columns: `seen` gets the screen again and again; the last screen."""
    pty = pytest.importorskip("pty")
    command = [sys.executable, "-m", "pytest", "--cellprose-live", "--cellprose-models=house", *arguments]
    pid, descriptor = pty.fork()
    if pid == 0:  # the child
        os.chdir(bench.pytester.path)
        os.environ.update(TERM="xterm", COLUMNS="100", LINES="50")
        os.execv(sys.executable, command)
    screen = pyte.Screen(100, 50)
    stream = pyte.ByteStream(screen)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if select.select([descriptor], [], [], 0.05)[0]:
            try:
                read = os.read(descriptor, 1 << 16)
            except OSError:  # the child has ended
                break
            if not read:
                break
            stream.feed(read)
        seen([text.rstrip() for text in screen.display])
    os.close(descriptor)
    os.waitpid(pid, 0)
    return [text.rstrip() for text in screen.display]


@pytest.mark.parametrize("more", [(), ("-n", "2")], ids=["one-process", "two-workers"])
def test_a_run_shows_it_and_leaves_nothing_of_it(bench: Bench, more: tuple[str, ...]) -> None:  # noqa: F811
    bench.pytester.makeconftest(SLOW)
    found: list[str] = []
    arguments = ("--cellprose-encodings=csv,toon", "--cellprose-reps=3", "--cellprose-inflight=1", *more)

    def seen(lines: list[str]) -> None:
        found.extend(text for text in lines if re.match(r"cellprose: \d+ of 12 cells · \$", text))

    last = on_a_terminal(bench, *arguments, seen=seen)
    assert any("in flight" in text for text in found)
    assert any(re.search(r"cellprose: [1-9]", text) for text in found)
    assert not [text for text in last if re.match(r"cellprose: \d+ of", text)]
    assert any(re.search(r"=+ 12 passed in", text) for text in last)
    if not more:
        assert any(re.match(r"cells/test_cells\.py \d{12} +\[100%\]", text) for text in last)


@pytest.mark.parametrize("more", ["-q", "--pdb"])
def test_nothing_is_drawn_where_it_would_disturb(bench: Bench, more: str) -> None:  # noqa: F811
    bench.pytester.makeconftest(SLOW)
    found: list[str] = []

    def seen(lines: list[str]) -> None:
        found.extend(text for text in lines if re.match(r"cellprose: (\d+ of \d+ cells|encoding|planning)", text))

    last = on_a_terminal(bench, "--cellprose-encodings=csv", more, seen=seen)
    assert found == []
    assert any("2 passed" in text for text in last)


def test_a_log_is_plain(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    """Where there is no terminal: whole lines now and then, and no escapes."""
    from pytest_cellprose.session import progress

    monkeypatch.setattr(progress, "LOG_SECONDS", 0.3)
    bench.pytester.makeconftest(SLOW)
    more = ("--cellprose-live", "--cellprose-models=house", "--cellprose-encodings=csv", "--cellprose-inflight=1")
    result = bench.run(*more, "--cellprose-reps=4")
    result.assert_outcomes(passed=8)
    assert "\x1b" not in result.stdout.str()
    assert [text for text in result.outlines if re.fullmatch(r"cellprose: \d of 8 cells · \$\S+ of \$\S+.*", text)]


def test_the_ledger_that_is_looked_at_stays_as_it_is(tmp_path: Path) -> None:
    from pytest_cellprose.store.ledger import Ledger, LedgerState

    path = tmp_path / "ledger.json"
    assert Ledger(path).look() == LedgerState()
    path.write_bytes(LedgerState().model_dump_json().encode() + b"\n" + b'{"half a li')
    before = path.read_bytes()
    assert Ledger(path).look() == LedgerState()
    assert path.read_bytes() == before
    path.write_bytes(b"no ledger")
    assert Ledger(path).look() == LedgerState()

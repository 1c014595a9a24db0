"""Real sandboxes, and what there must not be any more when they are closed."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_cellprose.sandbox.base import Answer, Sandbox, Sandboxes
from pytest_cellprose.sandbox.choose import probe, sandboxes
from pytest_cellprose.sandbox.tools import answer

WORKBOOK = b"not a workbook, but bytes"
SECRET = "sk-live-SECRET"


class Shell:
    """A sandbox as a model meets it."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox

    def bash(self, command: str, timeout: float | None = None) -> Answer:
        more = {} if timeout is None else {"timeout": timeout}
        return answer(self.sandbox, "bash", {"command": command, **more})

    def read(self, path: str, **lines: int) -> Answer:
        return answer(self.sandbox, "read_file", {"path": path, **lines})


@pytest.fixture(scope="session")
def bubblewrap(tmp_path_factory: pytest.TempPathFactory) -> Sandboxes:
    made = sandboxes(None, 2, tmp_path_factory.mktemp("slots"))
    found = probe(made)
    if found.problem is not None:
        pytest.skip(f"no sandbox: {found.problem}")
    return made


@pytest.fixture
def shell(bubblewrap: Sandboxes, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    """One with a workbook in it, in a process that has a key; whatever happens in it, this machine is as it was."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    mounts = Path("/proc/self/mountinfo").read_text()
    before = _processes()
    with bubblewrap.open({"workbook.xlsx": WORKBOOK}) as sandbox:
        yield Shell(sandbox)
    assert Path("/proc/self/mountinfo").read_text() == mounts
    assert not list(Path(tempfile.gettempdir()).glob(f"cellprose-box-{os.getpid()}-*"))
    deadline = time.monotonic() + 5  # a killed process is gone when its parent has heard of it
    while new := [pid for pid in _processes() - before if _in_a_sandbox(pid)]:
        assert time.monotonic() < deadline, new
        time.sleep(0.05)


def _processes() -> set[int]:
    return {int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()}


def _in_a_sandbox(pid: int) -> bool:
    """Whether a process that came meanwhile is a sandbox's: it has other namespaces than ours."""
    try:
        return Path(f"/proc/{pid}/ns/net").readlink() != Path("/proc/self/ns/net").readlink()
    except OSError:
        return False

"""The agent baselines (protocol section 1): a workbook as a file, which a model explores with tools in a sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from pytest_cellprose.encodings.base import Encoding
from pytest_cellprose.files import digest
from pytest_cellprose.method.roles import CHALLENGER, REPORTED
from pytest_cellprose.sandbox.base import Answer, Sandbox, Sandboxes
from pytest_cellprose.sandbox.tools import answer
from pytest_cellprose.suites.base import Variant

AGENT_VERSION = "1"
"""Changes whenever what an agent is handed or told could change without a change of a prompt or of an encoding."""


@dataclass(frozen=True, kw_only=True)
class FileVariant(Variant):
    """A workbook that lies in a model's working directory."""

    file: str
    """Its neutral name there."""
    encoding: Encoding | None = None
    """What its text is written by; None: the workbook's own file."""


def file_variants(encodings: Mapping[str, Encoding]) -> list[FileVariant]:
    """The protocol's two. `agent_cellprose` is the text under test as a file, where that encoding is known."""
    found = [FileVariant("agent_xlsx", AGENT_VERSION, "an Excel workbook", file="workbook.xlsx")]
    text = encodings.get(CHALLENGER)
    if text is not None:
        version = f"{AGENT_VERSION}, {text.version}"
        found.append(FileVariant(REPORTED, version, text.label, file="workbook.md", encoding=text))
    return found


class FileWorld:
    """A sandbox with one file in it; opened for one attempt."""

    def __init__(self, sandboxes: Sandboxes, name: str, content: Path | bytes, sha256: str) -> None:
        """`sha256`: of the content."""
        self._sandboxes = sandboxes
        self._files = {name: content}
        self._open = ExitStack()
        self._sandbox: Sandbox | None = None
        self.digest = digest([{name: sha256}, dict(sandboxes.facts())])

    def __enter__(self) -> FileWorld:
        self._sandbox = self._open.enter_context(self._sandboxes.open(self._files))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._open.close()

    def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        assert self._sandbox is not None, "opened by `with`"
        return answer(self._sandbox, name, arguments)

"""The held-out sets as ``heldout.json`` pins them: workbooks by their bytes and by what they hold, question files by
their bytes (protocol section 3).

A pinned workbook is held out wherever it lies and whatever it is called. ``python -m pytest_cellprose.sets.pinned
cells`` writes the file anew from a folder that holds both sets, as `sets build` makes them.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Literal

from pydantic import Field

from pytest_cellprose.cache import TextCache
from pytest_cellprose.encodings.keys import reader_digest
from pytest_cellprose.files import sha256_of
from pytest_cellprose.record.record import Frozen
from pytest_cellprose.workbook.model import Value, Workbook, WorkbookError

HELDOUT_FILE = "heldout.json"


class PinnedFile(Frozen):
    """A workbook of a held-out set; digests are SHA-256, hex."""

    sha256: str
    """Of its bytes."""
    content: str
    """`content_sha256`."""
    questions: str | None = None
    """Of its question file's bytes; None for a workbook that only holds the answers to another's questions."""


class Pinned(Frozen):
    """All of them, by name."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    workbooks: dict[str, PinnedFile]

    @cached_property
    def planned(self) -> dict[str, PinnedFile]:
        """Those that are asked about."""
        return {name: file for name, file in self.workbooks.items() if file.questions is not None}

    @cached_property
    def _files(self) -> frozenset[str]:
        return frozenset(file.sha256 for file in self.workbooks.values())

    @cached_property
    def _contents(self) -> frozenset[str]:
        return frozenset(file.content for file in self.workbooks.values())

    def holds(self, sha256: str, content: str = "") -> bool:
        """Whether a file of these digests is one of them; an empty digest is not known."""
        return sha256 in self._files or content in self._contents  # neither has an empty one

    def has_questions(self, sha256: str) -> bool:
        """Whether a question file of this digest is one of theirs."""
        return any(file.questions == sha256 for file in self.planned.values())


@cache
def pinned() -> Pinned:
    text = files(__package__).joinpath(HELDOUT_FILE).read_text(encoding="utf-8")
    return Pinned.model_validate_json(text)


def other_questions(folder: Path, names: Iterable[str]) -> list[str]:
    """A line for each question file in `folder` that is not the pinned one."""
    lines = []
    for name in names:
        path, file = folder / f"{name}.json", pinned().planned.get(name)
        if path.is_file() and (file is None or sha256_of(path) != file.questions):
            lines.append(f"{name}: not the questions that are pinned; results are not comparable with others'")
    return lines


def content_sha256(workbook: Workbook) -> str:
    """SHA-256 over what the reader makes of a workbook: names of worksheets, and each cell's place, value and formula.

    Packing a file anew, or saving it with another program that keeps these, leaves it as it is.
    """
    total = hashlib.sha256()
    for sheet in workbook.worksheets:
        total.update(_line([sheet.name]))
        for row, column, cell in sheet.cells():
            formula = None if cell.formula is None else cell.formula.text
            total.update(_line([row, column, _plain(cell.value), formula]))
    return total.hexdigest()


def _plain(value: Value) -> object:
    """A whole number and the same float alike: which of them it is depends on how the file writes it."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _line(parts: list[object]) -> bytes:
    return json.dumps(parts, ensure_ascii=True).encode() + b"\n"


def content_of(path: Path, sha256: str, texts: TextCache) -> str:
    """The content digest of a file, worked out once for each digest of its bytes; empty if it cannot be read."""

    def make() -> str:
        try:
            return content_sha256(Workbook.read(path))
        except WorkbookError:
            return ""

    return texts.get_or_make(make, "content", sha256, reader_digest())


def _pinned_in(cells: Path) -> Iterator[tuple[str, PinnedFile]]:
    from pytest_cellprose.sets.discover import discover
    from pytest_cellprose.sets.split import always_held_out

    for found in discover([cells]).found:
        if always_held_out(found.name):
            yield found.name, _pinned(found.workbook_path, found.questions_sha256)
            for path in sorted(set(found.answer_paths.values())):
                yield path.stem, _pinned(path)


def _pinned(path: Path, questions: str | None = None) -> PinnedFile:
    workbook = Workbook.read(path)
    return PinnedFile(sha256=workbook.sha256, content=content_sha256(workbook), questions=questions)


def main(cells: str) -> None:
    found = Pinned(workbooks=dict(_pinned_in(Path(cells))))
    text = json.dumps(found.model_dump(mode="json", exclude_none=True), indent=1) + "\n"
    Path(__file__).with_name(HELDOUT_FILE).write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

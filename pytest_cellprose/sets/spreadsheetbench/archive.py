"""The published SpreadsheetBench data: ``dataset.json`` and a pair of workbooks for each task.

Two layouts are read, as a folder or as the published archive (``.tar.gz``, ``.zip``):

* v0.1, the 912 tasks: ``spreadsheet/<id>/1_<id>_input.xlsx`` and ``1_<id>_answer.xlsx``; the second and third test
  cases are other numbers for the same instruction and are passed over;
* verified_400: pairs whose names end in ``init.xlsx`` and ``golden.xlsx``, as its public description says. This was
  not tried on the original.
"""

from __future__ import annotations

import json
import re
import tarfile
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple, TypeAlias

DATASET = "dataset.json"

Role: TypeAlias = Literal["input", "answer"]
_ENDINGS: dict[str, Role] = {"input": "input", "init": "input", "answer": "answer", "golden": "answer"}
_WORKBOOK = re.compile(r"(?:.*_)?(input|init|answer|golden)\.xlsx", re.IGNORECASE)


class SourceError(ValueError):
    """Published data that cannot be read; one line: what was found where, and what was expected."""


class Task(NamedTuple):
    """One entry of ``dataset.json``."""

    id: str
    instruction: str
    type: str
    """``Cell-Level Manipulation`` or ``Sheet-Level Manipulation``."""
    answer_position: str
    """The cells that the official evaluation compares."""


class Pair(NamedTuple):
    """The first test case of a task, as ``.xlsx`` bytes."""

    input: bytes
    answer: bytes


class Published(NamedTuple):
    tasks: list[Task]
    """All of them, in the order of ``dataset.json``."""
    pairs: dict[str, Pair]
    """Task id -> its workbooks; tasks whose pair is not complete are missing."""


def read_published(source: Path, wanted: Collection[str]) -> Published:
    """Read the data in one pass; only the pairs of the `wanted` task ids are kept. Raises `SourceError`."""
    datasets: list[tuple[int, str, bytes]] = []
    found: dict[str, dict[Role, list[bytes]]] = defaultdict(lambda: defaultdict(list))
    try:
        for name, read in _members(source):
            path = PurePosixPath(name)
            if path.name == DATASET:
                datasets.append((len(path.parts), name, read()))
            elif (place := _place(path)) is not None and place[0] in wanted:
                found[place[0]][place[1]].append(read())
    except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, RuntimeError) as error:
        raise SourceError(f"{source}: cannot be read: {error}") from None
    if not datasets:
        raise SourceError(f"{source}: found no {DATASET}, expected the published SpreadsheetBench data")
    _, name, content = min(datasets)
    pairs = {
        task: Pair(roles["input"][0], roles["answer"][0])
        for task, roles in found.items()
        if len(roles["input"]) == len(roles["answer"]) == 1
    }
    return Published(_tasks(content, f"{source}: {name}"), pairs)


def _members(source: Path) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Every file with its path inside the source, in the order in which it can be read without going back."""
    if source.is_dir():
        for path in sorted(source.rglob("*")):
            if path.is_file():
                yield path.relative_to(source).as_posix(), path.read_bytes
    elif not source.is_file():
        raise SourceError(f"{source}: no such file or folder, expected the published SpreadsheetBench data")
    elif zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as archive:
            for entry in archive.infolist():
                if not entry.is_dir():
                    yield entry.filename, partial(archive.read, entry)
    elif tarfile.is_tarfile(source):
        with tarfile.open(source) as tar:
            for member in tar:
                if member.isfile() and (stream := tar.extractfile(member)) is not None:
                    yield member.name, stream.read
    else:
        raise SourceError(f"{source}: neither a folder nor a .tar.gz or .zip archive")


def _place(path: PurePosixPath) -> tuple[str, Role] | None:
    """The task and the role of a workbook by its path; None for other files and for the further test cases."""
    task = path.parent.name
    if path.parent.parent.name != "spreadsheet" or path.name.startswith(("._", "~$")) or "__MACOSX" in path.parts:
        return None
    match = _WORKBOOK.fullmatch(path.name)
    case = re.match(rf"(\d+)_{re.escape(task)}_", path.name)
    if match is None or (case is not None and case[1] != "1"):
        return None
    return task, _ENDINGS[match[1].lower()]


def _tasks(content: bytes, where: str) -> list[Task]:
    entries: Any = None
    with suppress(ValueError):  # not UTF-8, or not JSON
        entries = json.loads(content.decode("utf-8-sig"))
    if not isinstance(entries, list):
        raise SourceError(f"{where}: expected a JSON list of tasks")
    tasks = [_task(entry, f"{where}, task number {number}") for number, entry in enumerate(entries, 1)]
    repeated = [task for task, times in Counter(task.id for task in tasks).items() if times > 1]
    if repeated:
        raise SourceError(f"{where}: task ids found more than once: {', '.join(repeated)}")
    return tasks


def _task(entry: Any, where: str) -> Task:
    if not isinstance(entry, dict):
        raise SourceError(f"{where}: expected an object")
    keys = ("id", "instruction", "instruction_type", "answer_position")
    missing = [key for key in keys if not isinstance(entry.get(key), str | int)]
    if missing:
        raise SourceError(f"{where}: found no text in {', '.join(missing)}")
    return Task(*(str(entry[key]) for key in keys))

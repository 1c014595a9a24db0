"""Fetch the public workbooks that the ``rw_`` questions are about: copied from a folder, or downloaded.

Either way a workbook is only taken if it is, byte for byte, the one that the questions were written for.
"""

from __future__ import annotations

import hashlib
import json
from http.client import HTTPException
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import quote

from pytest_cellprose.files import replace_bytes, sha256_of
from pytest_cellprose.record.record import Frozen
from pytest_cellprose.sets.pinned import other_questions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PUBLIC_COPIES = "https://raw.githubusercontent.com"
"""Serves ``/OWNER/REPOSITORY/COMMIT/PATH``: a file as it was at a commit, so the address cannot change its meaning."""
PATIENCE = 60.0
"""Seconds that a server may stay silent."""


class Pinned(Frozen):
    """One public workbook, told apart from every other by its digest."""

    file: str
    bytes: int
    sha256: str
    source_repo: str
    """``OWNER/REPOSITORY`` of a public copy; publishers replace their files, a commit stays."""
    commit: str
    path: str
    """Within that repository."""
    publisher: str
    publisher_page: str
    licence: str
    note: str | None = None
    """Why the public copy is not the workbook, if it is not."""

    @property
    def name(self) -> str:
        """As the benchmark knows it: the stem of its question file."""
        return f"rw_{PurePosixPath(self.file).stem}"

    def address(self, base: str = PUBLIC_COPIES) -> str:
        return f"{base}/{self.source_repo}/{self.commit}/{quote(self.path)}"


class IncompleteError(ValueError):
    """Some workbooks are not there; the message is the whole report, those that are there included."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = tuple(lines)
        super().__init__("\n".join(self.lines))


class _NotTakenError(Exception):
    """Why one workbook was not taken."""


def pinned_workbooks() -> tuple[Pinned, ...]:
    """What ``manifest.json`` beside this module lists, ordered by file name."""
    manifest = json.loads(files(__package__).joinpath("manifest.json").read_text(encoding="utf-8"))
    return tuple(Pinned(**fields) for fields in manifest["workbooks"])


def build_realworld(
    source: Path | None, folder: Path, base: str = PUBLIC_COPIES, workbooks: Sequence[Pinned] | None = None
) -> list[str]:
    """Put every pinned workbook into `folder`: from the folder `source`, or downloaded from `base` if it is None.

    `workbooks` are those of `pinned_workbooks` by default.
    Returns a line for each workbook and one that counts them. What is there already, with the pinned SHA-256, is
    left alone. A workbook that cannot be had, or has another SHA-256, stops no other; in the end `IncompleteError`
    is raised with all lines. Raises `OSError` if `source` is no folder or `folder` cannot be written to.
    """
    if source is not None and not source.is_dir():
        raise NotADirectoryError(f"{source}: not a folder, expected one that holds the workbooks")
    folder.mkdir(parents=True, exist_ok=True)
    workbooks = pinned_workbooks() if workbooks is None else workbooks
    lines = []
    missing = 0
    for workbook in workbooks:
        try:
            done = _provide(workbook, source, folder, base)
        except _NotTakenError as error:
            missing += 1
            done = f"NOT THERE: {error}"
        lines.append(f"{workbook.name}: {done}")
    lines += other_questions(folder, (workbook.name for workbook in workbooks))
    lines.append(f"{len(workbooks) - missing} of {len(workbooks)} workbooks are in {folder}")
    if missing:
        raise IncompleteError(lines)
    return lines


def _provide(workbook: Pinned, source: Path | None, folder: Path, base: str) -> str:
    """What was done to have one workbook in `folder`; raises `_NotTakenError`."""
    target = folder / workbook.file
    if target.is_file() and sha256_of(target) == workbook.sha256:
        return f"{workbook.file} is there already, SHA-256 as pinned"
    if source is None:
        content, done = _downloaded(workbook, base), f"downloaded {workbook.address(base)}"
    else:
        content, done = _read(source / workbook.file), f"copied {source / workbook.file}"
    found = hashlib.sha256(content).hexdigest()
    if found != workbook.sha256:
        raise _NotTakenError(
            f"{done}, but its SHA-256 is {found}, expected {workbook.sha256}: "
            "another version, whose answers may differ, was not kept"
        )
    replace_bytes(target, content)
    return f"{done}, {len(content):,} bytes, SHA-256 as pinned"


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _NotTakenError(f"{path} cannot be read: {error.strerror or error}") from None


def _downloaded(workbook: Pinned, base: str) -> bytes:
    from urllib.error import URLError
    from urllib.request import urlopen

    address = workbook.address(base)
    if PurePosixPath(workbook.path).suffix.lower() != ".xlsx":
        raise _NotTakenError(
            f"the public copy {address} is no .xlsx ({workbook.note or 'it was converted'}); "
            f"give a folder that holds {workbook.file} with --from DIR"
        )
    try:
        with urlopen(address, timeout=PATIENCE) as reply:
            content: bytes = reply.read(workbook.bytes + 1)  # a longer file is another one: no need of the rest
    except (OSError, HTTPException) as error:  # an HTTPError says its status, a bare URLError only wraps the cause
        reason = error.reason if type(error) is URLError else error
        raise _NotTakenError(
            f"{address} cannot be downloaded: {reason or type(error).__name__}; give a folder with --from DIR"
        ) from None
    return content

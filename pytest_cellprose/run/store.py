"""The store of a run: one JSON line per record, durable before its test reports (DESIGN section 7).

Under the out folder::

    runs/<run id>.json                     the manifest, to be committed
    <run id>/records-development.jsonl     replies included
    <run id>/records-heldout.jsonl         never committed
    <run id>/report.json, verdicts.json, report.md
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, get_args

from filelock import FileLock
from pydantic import BaseModel, ValidationError

from pytest_cellprose.record import RECORD_SCHEMA, CellId, Record, SetName
from pytest_cellprose.run.manifest import MANIFEST_SCHEMA, Manifest

_IGNORE_ALL_BUT_MANIFESTS = "*\n!runs/\n!runs/*.json\n"


M = TypeVar("M", bound=BaseModel)


class StoreError(ValueError):
    """A run that cannot be read or written; the message names the file and what is wrong."""


@dataclass(frozen=True)
class Store:
    """One run's folder and manifest. Safe to use from many processes at once."""

    out: Path
    run: str
    _mutex: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @property
    def folder(self) -> Path:
        return self.out / self.run

    @property
    def manifest_path(self) -> Path:
        return self.out / "runs" / f"{self.run}.json"

    def records_path(self, set_name: SetName) -> Path:
        return self.folder / f"records-{set_name}.jsonl"

    @property
    def exists(self) -> bool:
        return self.manifest_path.is_file()

    def lock(self, name: str = "store") -> FileLock:
        """A lock that every process of the run shares."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return FileLock(self.folder / f".{name}.lock")

    def begin(self, manifest: Manifest) -> None:
        """Have the manifest on disk, whichever process writes it. Raises `StoreError` if it cannot be written."""
        if self.exists:
            return
        try:
            with self.lock():
                if not self.exists:
                    self.write_manifest(manifest)
        except OSError as error:
            raise StoreError(f"{self.manifest_path}: the manifest could not be written: {error}") from error

    def append(self, record: Record, manifest: Manifest) -> None:
        """Write one record, on disk when this returns; the first one brings the manifest with it.

        Raises `StoreError` if it cannot be written; the file then holds what it held before.
        """
        line = (json.dumps(record.model_dump(mode="json"), ensure_ascii=False) + "\n").encode("utf-8")
        try:
            # threads queue at the mutex, so that only processes have to look again and again whether the file is free
            with self._mutex, self.lock().acquire(poll_interval=0.005):
                if not self.exists:
                    self.write_manifest(manifest)
                _append_line(self.records_path(record.set), line)
        except OSError as error:
            raise StoreError(f"{self.folder}: the record of {record.cell} could not be written: {error}") from error

    def write_manifest(self, manifest: Manifest) -> None:
        """Replace the manifest, whole or not at all."""
        self.manifest_path.parent.mkdir(parents=True, exist_ok=True)
        ignore = self.out / ".gitignore"
        if not ignore.exists():
            ignore.write_text(_IGNORE_ALL_BUT_MANIFESTS, encoding="utf-8")
        replace_text(self.manifest_path, manifest.model_dump_json(indent=1) + "\n")

    def manifest(self) -> Manifest:
        """Raises `StoreError` for a missing, damaged or foreign manifest."""
        try:
            text = self.manifest_path.read_bytes()
        except OSError as error:
            raise StoreError(f"{self.manifest_path}: cannot be read: {error.strerror}") from None
        fields = _json_object(text)
        if fields is None:
            raise StoreError(f"{self.manifest_path}: not a JSON object")
        return _validated(Manifest, fields, MANIFEST_SCHEMA, str(self.manifest_path))

    def records(self) -> Iterator[Record]:
        """Every readable record, streamed, development first. Lines that a crash cut short are left out."""
        for where, fields in self._lines():
            if fields is not None:
                yield _validated(Record, fields, RECORD_SCHEMA, where)

    def damaged_lines(self) -> list[str]:
        """Where a line was cut short by a crash."""
        return [where for where, fields in self._lines() if fields is None]

    def _lines(self) -> Iterator[tuple[str, dict[str, Any] | None]]:
        for set_name in get_args(SetName):
            path = self.records_path(set_name)
            if not path.is_file():
                continue
            with path.open("rb") as stream:
                for number, line in enumerate(stream, start=1):
                    yield f"{path}, line {number}", _json_object(line)

    def find(self, cell: CellId) -> Record | None:
        """The last record of a cell that was measured, or whose call was interrupted and is not made again."""
        found = None
        for record in self.records():
            if record.cell == cell and (record.outcome.status != "fault" or record.outcome.kind == "interrupted"):
                found = record
        return found

    @property
    def process_died(self) -> bool:
        """Whether a process of the run died, so that what it recorded may be in no report of a test."""
        return self._mark_of_death.exists()

    def note_death(self) -> None:
        """Tell all processes of the run that one died."""
        with self.lock():
            self._mark_of_death.touch()

    @property
    def _mark_of_death(self) -> Path:
        return self.folder / ".process-died"


def open_run(out: Path, run: str) -> Store:
    """The store that RUN means in options and commands: a run id, a run's folder, or its manifest.

    Raises `StoreError` if there is no such run.
    """
    path = Path(run)
    if path.suffix == ".json" and path.is_file():
        store = Store(path.resolve().parent.parent, path.stem)
    elif path.is_dir() and (path.resolve().parent / "runs" / f"{path.resolve().name}.json").is_file():
        store = Store(path.resolve().parent, path.resolve().name)
    else:
        store = Store(out, run)
    if not store.exists:
        known = sorted(file.stem for file in (out / "runs").glob("*.json"))
        hint = f"the last one is {known[-1]}" if known else "there are none"
        raise StoreError(f"no run {run!r} under {out}: {hint}")
    return store


def replace_text(path: Path, text: str) -> None:
    """Write a file whole or not at all: a reader never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _append_line(path: Path, line: bytes) -> None:
    with path.open("ab+", buffering=0) as stream:
        end = stream.seek(0, os.SEEK_END)
        if end:
            stream.seek(end - 1)
            if stream.read(1) != b"\n":  # a process died while writing: keep its rest from spoiling this line
                line = b"\n" + line
        try:
            while line:
                line = line[stream.write(line) :]
            os.fsync(stream.fileno())
        except OSError:
            os.truncate(path, end)
            raise


def _json_object(line: bytes) -> dict[str, Any] | None:
    """A record's line is one JSON object; what a crash cut short is not."""
    try:
        fields = json.loads(line)
    except ValueError:
        return None
    return fields if isinstance(fields, dict) else None


def _validated(model: type[M], fields: dict[str, Any], schema: int, where: str) -> M:
    found = fields.get("schema")
    if found != schema:
        raise StoreError(f"{where}: schema {found!r} is not known to this version ({schema} is)")
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        raise StoreError(f"{where}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None

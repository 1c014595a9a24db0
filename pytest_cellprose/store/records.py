"""The store of a run: one JSON line per record, durable before its test reports (docs/ARCHITECTURE.md).

Which file lies where, `pytest_cellprose.store.layout` says.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeVar, get_args

from filelock import FileLock
from pydantic import BaseModel, ValidationError

from pytest_cellprose.files import append_line, replace_text
from pytest_cellprose.record.record import RECORD_SCHEMA, CellId, Record, SetName
from pytest_cellprose.store.layout import (
    DEATH_MARK,
    GITIGNORE,
    IGNORED,
    INTERRUPTION_MARK,
    StoreError,
    lock_file,
    manifest_file,
    manifest_files,
    record_files,
    records_file,
)
from pytest_cellprose.store.lock import holder_of, note_moved, original_of
from pytest_cellprose.store.manifest import MANIFEST_SCHEMA, Manifest

M = TypeVar("M", bound=BaseModel)


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
        return manifest_file(self.out, self.run)

    def records_path(self, set_name: SetName) -> Path:
        return records_file(self.folder, set_name)

    @property
    def exists(self) -> bool:
        return self.manifest_path.is_file()

    @property
    def has_records(self) -> bool:
        return bool(record_files(self.folder))

    def lock(self, name: str = "store") -> FileLock:
        """A lock that every process of the run shares."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return FileLock(lock_file(self.folder, name))

    @cached_property
    def _file_lock(self) -> FileLock:
        return FileLock(self.folder / ".store.lock")

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
        line = line_of(record)
        try:
            # threads queue at the mutex, so that only processes have to look again and again whether the file is free
            self.folder.mkdir(parents=True, exist_ok=True)
            with self._mutex, self._file_lock.acquire(poll_interval=0.005):
                if not self.exists:
                    self.write_manifest(manifest)
                append_line(self.records_path(record.set), line)
        except OSError as error:
            raise StoreError(f"{self.folder}: the record of {record.cell} could not be written: {error}") from error

    def write_manifest(self, manifest: Manifest) -> None:
        """Replace the manifest, whole or not at all."""
        self.manifest_path.parent.mkdir(parents=True, exist_ok=True)
        ignore = self.out / GITIGNORE
        if not ignore.exists():
            ignore.write_text(IGNORED, encoding="utf-8")
        replace_text(self.manifest_path, manifest.model_dump_json(indent=1) + "\n")

    def remove_empty_folders(self) -> None:
        """Remove what `write_manifest` made around a manifest that is gone, where nothing else is in it."""
        with contextlib.suppress(OSError):
            self.manifest_path.parent.rmdir()
            ignore = self.out / GITIGNORE
            if list(self.out.iterdir()) == [ignore] and ignore.read_text("utf-8") == IGNORED:
                ignore.unlink()
            self.out.rmdir()

    def manifest(self) -> Manifest:
        """Raises `StoreError` for a missing, damaged or foreign manifest."""
        try:
            text = self.manifest_path.read_bytes()
        except OSError as error:
            raise StoreError(f"{self.manifest_path}: cannot be read: {error.strerror}") from None
        manifest = read_manifest(text, str(self.manifest_path))
        if manifest.run != self.run:
            raise StoreError(
                f"{self.manifest_path}: is the manifest of run {manifest.run}, not of {self.run}: "
                f"its name must be {manifest.run}.json"
            )
        return manifest

    def require_folder(self) -> None:
        """Raises `StoreError` where only the manifest is, as in a repository that was cloned."""
        if not self.folder.is_dir():
            raise StoreError(
                f"{self.run}: its records are not here, only its manifest ({self.manifest_path}): "
                f"bring its folder to {self.folder}"
            )

    def require_resumable(self) -> None:
        """Raises `StoreError` for a run that still runs, a copy beside its original, and one without its records."""
        self.manifest()
        self.require_folder()
        holder = holder_of(self.folder)
        if holder is not None:
            raise StoreError(f"{self.run} is still running ({holder}): wait for it or stop it")
        original = original_of(self.folder)
        if original is not None:
            raise StoreError(f"{self.folder} is a copy of {original}: resume that one, or delete it")
        note_moved(self.folder)

    def records(self, damaged: Callable[[str], object] = lambda where: None) -> Iterator[Record]:
        """Every readable record, streamed, development first.

        Lines that a crash cut short are left out; `damaged` hears of each, where it is.
        """
        for place, record in self._lines():
            if record is None:
                damaged(str(place))
            else:
                yield record

    def damaged_lines(self) -> list[str]:
        """Where a line was cut short by a crash."""
        return [str(place) for place, record in self._lines() if record is None]

    def find(self, cell: CellId, tries: int | None = None) -> Record | None:
        """The last record of a cell that was measured, or whose call was interrupted and is not made again.

        Also its last fault, once there are as many as `tries`.
        """
        found = self._index.measured().get(cell)
        if found is None and tries is not None:
            found = self._index.faulted(cell, tries)
        return None if found is None else found.read()

    @cached_property
    def _index(self) -> Index:
        return Index(self, same_run=True)

    @property
    def process_died(self) -> bool:
        """Whether a process of the run died, so that what it recorded may be in no report of a test."""
        return (self.folder / DEATH_MARK).exists()

    def note_death(self) -> None:
        """Tell all processes of the run that one died."""
        self._mark(DEATH_MARK)

    @property
    def interrupted(self) -> bool:
        """Whether the run was told to end: an episode goes on no further than the turn that is under way."""
        return (self.folder / INTERRUPTION_MARK).exists()

    def note_interruption(self) -> None:
        """Tell all processes of the run that it is to end."""
        self._mark(INTERRUPTION_MARK)

    def _mark(self, name: str) -> None:
        with contextlib.suppress(OSError):  # a folder that is gone ends the run by itself
            (self.folder / name).touch()

    def _lines(self) -> Iterator[tuple[Place, Record | None]]:
        for set_name in get_args(SetName):
            yield from _lines_from(Place(self.records_path(set_name), 1, 0))


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a records file."""

    path: Path
    number: int
    """1-based."""
    offset: int
    """Bytes before it."""
    length: int = 0
    """Its own bytes."""

    def __str__(self) -> str:
        return f"{self.path}, line {self.number}"


@dataclass(frozen=True, slots=True)
class Measured:
    """A stored record, by its place."""

    place: Place
    run: str
    inputs_id: str

    def read(self) -> Record:
        """Raises `StoreError` if the file is not what it was."""
        try:
            with self.place.path.open("rb") as stream:
                stream.seek(self.place.offset)
                line = stream.readline()
        except OSError as error:
            raise StoreError(f"{self.place}: cannot be read: {error.strerror}") from None
        record = _validated(Record, line, RECORD_SCHEMA, str(self.place))
        if record is None:
            raise StoreError(f"{self.place}: is not the record that was there before")
        return record


class Index:
    """Where a store has the last record of each cell that was measured; the records themselves stay on disk.

    A run's replies may be more than memory holds, and every process of a run that resumes it has this index.
    """

    def __init__(self, store: Store, *, same_run: bool = False) -> None:
        """`same_run`: as the run itself asks, which makes an interrupted call no second time."""
        self._same_run = same_run
        self._measured: dict[CellId, Measured] = {}
        self._faults: dict[CellId, list[Measured]] = {}
        self._next = [Place(store.records_path(name), 1, 0) for name in get_args(SetName)]
        self._mutex = threading.Lock()

    def measured(self) -> Mapping[CellId, Measured]:
        """As the store is now: what was added since the last time is read."""
        with self._mutex:
            self._next = [self._read(place) for place in self._next]
        return self._measured

    def faulted(self, cell: CellId, tries: int) -> Measured | None:
        """Where a cell's last fault is, if there were that many when the store was last read."""
        faults = self._faults.get(cell, [])
        return faults[-1] if len(faults) >= tries else None

    def _read(self, start: Place) -> Place:
        """Take in whole lines from a place on; returns the place after them."""
        end = start
        for place, record in _lines_from(start, unfinished=False):
            if record is not None:
                found = Measured(place, record.run, record.inputs_id)
                if self._counts(record):
                    self._measured[record.cell] = found
                else:
                    self._faults.setdefault(record.cell, []).append(found)
            end = Place(place.path, place.number + 1, place.offset + place.length)
        return end

    def _counts(self, record: Record) -> bool:
        row = record.outcome.policy
        return row.stands if self._same_run else row.kept


def _lines_from(start: Place, *, unfinished: bool = True) -> Iterator[tuple[Place, Record | None]]:
    """A file's lines from a place on; `unfinished`: also the last one where its line end is missing."""
    if not start.path.is_file():
        return
    offset = start.offset
    with start.path.open("rb") as stream:
        stream.seek(offset)
        for number, line in enumerate(stream, start=start.number):
            if not unfinished and not line.endswith(b"\n"):
                return
            if not line.isspace():  # rescued lines are put back behind an empty one
                place = Place(start.path, number, offset, len(line))
                yield place, _validated(Record, line, RECORD_SCHEMA, str(place))
            offset += len(line)


def lineage(store: Store) -> list[Store]:
    """A run and those it goes back to by being resumed, the latest first, as far as they are here."""
    runs = [store]
    while True:
        try:
            before = runs[-1].manifest().settings.get("resumed_from")
        except StoreError:
            before = None
        older = Store(store.out, before) if isinstance(before, str) else None
        if older is None or not older.exists or older in runs:
            return runs
        runs.append(older)


def read_manifest(content: bytes, where: str) -> Manifest:
    """Raises `StoreError` for a damaged or foreign manifest; `where` names it."""
    manifest = _validated(Manifest, content, MANIFEST_SCHEMA, where)
    if manifest is None:
        raise StoreError(f"{where}: not a JSON object")
    return manifest


def open_run(out: Path, run: str) -> Store:
    """The store that RUN means in options and commands: a run id, a run's folder, or its manifest.

    Raises `StoreError` if there is no such run.
    """
    path = Path(run)
    if path.suffix == ".json" and path.is_file():
        store = Store(path.resolve().parent.parent, path.stem)
    elif path.is_dir() and manifest_file(path.resolve().parent, path.resolve().name).is_file():
        store = Store(path.resolve().parent, path.resolve().name)
    else:
        store = Store(out, run)
    if not store.exists:
        if path.is_dir():
            raise StoreError(f"{path}: has no manifest: a run's is {path.name}.json in the folder runs beside it")
        known = [file.stem for file in manifest_files(out)]
        hint = f"the last one is {known[-1]}" if known else "there are none"
        raise StoreError(f"no run {run!r} under {out}: {hint}")
    return store


def line_of(record: Record) -> bytes:
    """A record as its line. What UTF-8 cannot hold, a lone surrogate in what a provider said, becomes a ``?``."""
    text = json.dumps(record.model_dump(mode="json"), ensure_ascii=False) + "\n"
    return text.encode("utf-8", "replace")


def _validated(model: type[M], line: bytes, schema: int, where: str) -> M | None:
    """None for what is no JSON object, which is what a crash leaves of a line. Raises `StoreError`."""
    try:
        value = model.model_validate_json(line)
    except ValidationError as error:
        fields = _json_object(line)
        if fields is None:
            return None
        _require_schema(fields.get("schema"), schema, where)
        first = error.errors()[0]
        raise StoreError(f"{where}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    _require_schema(getattr(value, "schema_", None), schema, where)
    return value


def _require_schema(found: object, schema: int, where: str) -> None:
    if found != schema:
        raise StoreError(f"{where}: schema {found!r} is not known to this version ({schema} is)")


def _json_object(line: bytes) -> dict[str, object] | None:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None

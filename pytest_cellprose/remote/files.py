"""A process that may be on another machine: where it finds its files, whether they are the planned ones, and how
what it stores reaches the run.

It is a worker of pytest-xdist that was not started as a plain local process (``--tx ssh=…``, ``socket=…``,
``popen//chdir=…``). Every such process has a ledger of its own with its share of the caps. Whether it shares the
run's store is found out and not assumed: the controller leaves a token there, and who reads it, shares it.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pytest_cellprose.files import sha256_of
from pytest_cellprose.measure.spec import RunSpec
from pytest_cellprose.record.record import CellId, Frozen, Record
from pytest_cellprose.store.identity import versions
from pytest_cellprose.store.layout import TOKEN_FILE, record_files
from pytest_cellprose.store.manifest import Manifest
from pytest_cellprose.store.records import Store
from pytest_cellprose.suites.base import Suite, TaskSource
from pytest_cellprose.wording import some

_NOT_MEASURED = frozenset({"pytest", "pytest-xdist", "execnet"})
"""Packages that carry a call and have no hand in what it says. xdist brings its own pytest to other machines."""


class Origin(Frozen):
    """What a process elsewhere must know of the controller to find its own files."""

    root: Path
    """The controller's rootdir."""
    cells: list[Path]
    """The controller's cells folders, in order: the process has its own by the same settings."""
    code_sha256: str
    """Of the code that runs in workers."""
    token: str
    """What the token file in the run's folder says."""
    ancestor_sha256: dict[str, str]
    """Record file of the run that is resumed -> SHA-256."""


def leave_token(store: Store) -> str:
    """Put a random token into the run's folder, for processes that share it to read."""
    token = secrets.token_hex(16)
    store.folder.mkdir(parents=True, exist_ok=True)
    (store.folder / TOKEN_FILE).write_text(token, encoding="ascii")
    return token


def reads_token(store: Store, token: str) -> bool:
    try:
        return (store.folder / TOKEN_FILE).read_text(encoding="ascii") == token
    except (OSError, UnicodeDecodeError):
        return False


def remove_token(store: Store) -> None:
    """And the folders that were made for it, if nothing else came to lie in them."""
    (store.folder / TOKEN_FILE).unlink(missing_ok=True)
    for folder in (store.folder, store.out):
        try:
            folder.rmdir()
        except OSError:  # something was stored
            return


def record_digests(ancestor: Path | None) -> dict[str, str]:
    """The record files of a run's folder, with their digests."""
    if ancestor is None:
        return {}
    return {path.name: sha256_of(path) for path in record_files(ancestor)}


def relocated(
    spec: RunSpec, origin: Origin, root: Path, cells: Sequence[Path], out: Path, cache: Path | None
) -> RunSpec:
    """The controller's plan with the files as they lie here.

    A file below the controller's rootdir is looked for at the same place below `root`, one in another cells folder in
    the folder that the same setting names here, and any other under its full path.
    """
    places = [(origin.root, root), *zip(origin.cells, cells, strict=False)]

    def here(path: Path) -> Path:
        for theirs, ours in places:
            if path.is_relative_to(theirs):
                return ours / path.relative_to(theirs)
        return path

    ancestor = spec.ancestor
    if ancestor is not None:
        ancestor = out / ancestor.name if ancestor.parent == spec.out else here(ancestor)
    return spec.model_copy(
        update={
            "sources": {
                name: TaskSource(
                    folder=here(source.folder), files={kind: here(path) for kind, path in source.files.items()}
                )
                for name, source in spec.sources.items()
            },
            "out": out,
            "cache": cache,
            "ancestor": ancestor,
        }
    )


def software_problems(manifest: Mapping[str, object], planned_sha256: str, code_sha256: str) -> list[str]:
    """Why this installation, whose code has `code_sha256`, would not measure what was planned.

    `manifest` is unread JSON: it may be of a version whose manifests this one cannot read.
    """
    planned = manifest.get("versions")
    there = versions()
    problems = [
        f"{name} is {there.get(name, 'not installed')} there and {wanted} where the run was planned"
        for name, wanted in (planned.items() if isinstance(planned, dict) else ())
        if name not in _NOT_MEASURED and _release(name, there.get(name)) != _release(name, wanted)
    ]
    if not problems and planned_sha256 != code_sha256:
        problems.append("the code of pytest-cellprose is not the same there")
    return [f"{problem}: install the same" for problem in problems]


def _release(name: str, version: str | None) -> str | None:
    """Python's patch releases do not matter."""
    return version.rpartition(".")[0] if name == "python" and version else version


def input_problems(spec: RunSpec, origin: Origin, suite: Suite, vendors: Collection[str]) -> list[str]:
    """What of the plan is missing here or is not the same: files by their digests, variants by their code."""
    manifest = spec.manifest
    problems = []
    noun = manifest.axes[0]
    variants = {variant.name: variant for variant in suite.variants()}
    for name in manifest.matrix.encodings:
        variant = variants.get(name)
        if variant is None or variant.version != manifest.encoding_versions[name]:
            problems.append(f"{noun} {name!r} is {'not registered' if variant is None else variant.version} there")
        elif suite.code_sha256(variant) != manifest.encoding_code[name]:
            problems.append(f"the code of {noun} {name!r} is not the same there")
    running = [model for model in spec.models.values() if model.alias not in manifest.matrix.skipped_models]
    unknown = sorted({model.vendor for model in running} - {*vendors})
    problems += [f"no provider for {vendor!r} there" for vendor in unknown]
    absent, other = [], []
    for path, digest in _planned_files(spec, origin):
        if not path.is_file():
            absent.append(str(path))
        elif sha256_of(path) != digest:
            other.append(str(path))
    if absent:
        problems.append(f"not there: {some(absent)}")
    if other:
        problems.append(f"not the planned content (by SHA-256): {some(other)}")
    return problems


def _planned_files(spec: RunSpec, origin: Origin) -> list[tuple[Path, str]]:
    files = []
    for entry in spec.manifest.matrix.workbooks:
        source = spec.sources[entry.name]
        digests = {"questions": entry.questions_sha256, "workbook": entry.workbook_sha256}
        files += [(path, digests[kind]) for kind, path in source.files.items() if kind in digests]
    if spec.ancestor is not None:
        files += [(spec.ancestor / name, digest) for name, digest in origin.ancestor_sha256.items()]
    return files


@dataclass(frozen=True)
class SendingStore(Store):
    """A store of this machine alone: what is durable here is also kept to be sent to the run's store."""

    _unsent: deque[str] = field(default_factory=deque, repr=False, compare=False)

    def append(self, record: Record, manifest: Manifest) -> None:
        super().append(record, manifest)
        self._unsent.append(_line(record))

    def find(self, cell: CellId, tries: int | None = None) -> Record | None:
        """Another process may have died before it sent what it stored here."""
        record = super().find(cell, tries)
        if record is not None:
            self._unsent.append(_line(record))
        return record

    def recall(self) -> None:
        """Send again what an earlier process of this run stored here: it may have died before it did."""
        self._unsent.extend(_line(record) for record in self.records() if record.run == self.run)

    def unsent(self) -> list[str]:
        """Records as JSON, each once; those of calls that end meanwhile come with the next."""
        lines = []
        while self._unsent:
            lines.append(self._unsent.popleft())
        return lines


def _line(record: Record) -> str:
    return record.model_dump_json()

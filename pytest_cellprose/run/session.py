"""One process's share of a run: it turns planned cells into stored records.

The controller makes a `RunSpec` once; every process builds its `RunSession` from the same one and checks
nothing again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Lock

from pytest_cellprose.cell import Ask, measure, not_encoded, request_of
from pytest_cellprose.digest import sha256_of
from pytest_cellprose.encodings import BUILTIN
from pytest_cellprose.encodings.base import Encoding
from pytest_cellprose.models.registry import ModelSpec
from pytest_cellprose.providers.base import Provider, Request, lacking
from pytest_cellprose.questions.schema import QuestionFile, load_questions
from pytest_cellprose.record import CellId, Frozen, Record, SetName
from pytest_cellprose.run.cache import TextCache, encoding_key, reader_digest
from pytest_cellprose.run.encode import LIMIT_SECONDS, EncodingFault, encode_text
from pytest_cellprose.run.manifest import Manifest
from pytest_cellprose.run.store import Store
from pytest_cellprose.workbook.model import Workbook
from pytest_cellprose.workbook.refs import Range


class WorkbookSource(Frozen):
    """Where a planned workbook's two files are."""

    questions: Path
    workbook: Path


class RunSpec(Frozen):
    """A finished plan, in plain types: what the controller hands to every process of the run."""

    manifest: Manifest
    sources: dict[str, WorkbookSource]
    models: dict[str, ModelSpec]
    out: Path
    cache: Path | None


class InputChanged(RuntimeError):
    """A file of the plan is not what it was when the run was planned."""


class RunSession:
    """Measures cells of one run in this process."""

    def __init__(
        self,
        spec: RunSpec,
        encodings: Mapping[str, Encoding],
        providers: Mapping[str, type[Provider]],
    ) -> None:
        self.spec = spec
        self.store = Store(spec.out, spec.manifest.run)
        self.encodings = encodings
        self._provider_types = providers
        self._providers: dict[str, Provider] = {}
        self._making_provider = Lock()
        self._cache = TextCache(spec.cache)
        self._entries = {entry.name: entry for entry in spec.manifest.matrix.workbooks}
        # The plan's order visits a workbook's cells together, so a few of each are enough.
        self._questions = lru_cache(maxsize=4)(self._load_questions)
        self._workbook = lru_cache(maxsize=1)(self._load_workbook)
        self._text = lru_cache(maxsize=32)(self._load_text)

    @cached_property
    def set_of(self) -> dict[str, SetName]:
        return {name: entry.set for name, entry in self._entries.items()}

    def request(self, cell: CellId) -> Request:
        """The exact request of a cell; raises `EncodingFault` if its encoding gives no text."""
        return request_of(self._ask(cell, self._text(cell.workbook, cell.encoding)))

    def questions(self, workbook: str) -> int:
        """How many questions are asked about a workbook."""
        return self._entries[workbook].questions

    def not_ready(self, cells: Iterable[CellId]) -> list[str]:
        """What the environment lacks for calling the models of `cells`: a sentence for each vendor."""
        vendors = {self.spec.models[name].vendor for name in {cell.model for cell in cells}}
        said = [lacking(self._provider_types[vendor]) for vendor in sorted(vendors & self._provider_types.keys())]
        return [sentence for sentence in said if sentence is not None]

    def record(self, cell: CellId, *, shared: bool = False) -> Record:
        """Call the model once, score what comes back, and store the record; it is on disk when this returns.

        `shared`: other tests, maybe in other processes, take the same cell; the first to come makes the call
        and the others get its record.
        """
        if not shared:
            return self._measured(cell)
        name = hashlib.sha256(str(cell).encode()).hexdigest()[:16]
        with self.store.lock(f"cell-{name}"):
            return self.store.find(cell) or self._measured(cell)

    def _measured(self, cell: CellId) -> Record:
        manifest = self.spec.manifest
        run, git = manifest.run, manifest.git
        try:
            ask = self._ask(cell, self._text(cell.workbook, cell.encoding))
        except EncodingFault as fault:
            record = not_encoded(self._ask(cell, None), str(fault), run=run, git=git)
        else:
            provider = self._provider(ask.model.vendor)
            record = measure(ask, provider, run=run, git=git, final=manifest.mode == "final")
        self.store.append(record, manifest)
        return record

    def _ask(self, cell: CellId, text: str | None) -> Ask:
        return Ask(
            cell=cell,
            set=self._entries[cell.workbook].set,
            model=self.spec.models[cell.model],
            encoding=self.encodings[cell.encoding],
            text=text,
            questions=self._questions(cell.workbook),
        )

    def _provider(self, vendor: str) -> Provider:
        with self._making_provider:
            if vendor not in self._providers:
                self._providers[vendor] = self._provider_types[vendor]()
            return self._providers[vendor]

    def _load_questions(self, name: str) -> QuestionFile:
        source, entry = self.spec.sources[name], self._entries[name]
        _require(source.questions, entry.questions_sha256)
        extents = workbook_extents(source.workbook, entry.workbook_sha256, self._cache)
        return load_questions(source.questions).without(entry.uncertified).with_extents(extents)

    def _load_workbook(self, name: str) -> Workbook:
        source, entry = self.spec.sources[name], self._entries[name]
        workbook = Workbook.read(source.workbook)
        if workbook.sha256 != entry.workbook_sha256:
            raise InputChanged(f"{source.workbook} changed after the run was planned: run again")
        return workbook

    def _load_text(self, name: str, encoding_name: str) -> str | None:
        if encoding_name == "none":
            return None
        encoding, entry = self.encodings[encoding_name], self._entries[name]
        limit = None if self.spec.manifest.mode == "final" and encoding in BUILTIN else LIMIT_SECONDS
        return self._cache.get_or_make(
            lambda: encode_text(encoding, self._workbook(name), limit),
            *encoding_key(encoding, entry.workbook_sha256),
        )


def workbook_extents(path: Path, sha256: str, cache: TextCache) -> dict[str, Range | None]:
    """Every worksheet's used extent, by name; None for an empty one. Raises `WorkbookError`."""

    def make() -> str:
        sheets = Workbook.read(path).worksheets
        return json.dumps([[sheet.name, sheet.extent] for sheet in sheets])

    text = cache.get_or_make(make, "extents", sha256, reader_digest())
    return {name: None if extent is None else Range(*extent) for name, extent in json.loads(text)}


def _require(path: Path, sha256: str) -> None:
    if sha256_of(path) != sha256:
        raise InputChanged(f"{path} changed after the run was planned: run again")

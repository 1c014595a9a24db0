"""The first suite: questions about spreadsheets. A task is a workbook, a variant an encoding, a part a question."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from pytest_cellprose.cache import TextCache
from pytest_cellprose.encodings import BUILTIN
from pytest_cellprose.encodings.base import Encoding
from pytest_cellprose.encodings.keys import code_digest, encoding_key
from pytest_cellprose.files import sha256_of
from pytest_cellprose.questions.extents import workbook_extents
from pytest_cellprose.questions.kind import Kinds
from pytest_cellprose.questions.kinds import BUILTIN_KINDS
from pytest_cellprose.questions.prompts import SYSTEM, prompt
from pytest_cellprose.questions.schema import QuestionFile, load_questions
from pytest_cellprose.questions.scoring import score_reply
from pytest_cellprose.store.manifest import AXES, SPREADSHEETS, WorkbookEntry
from pytest_cellprose.suites.base import (
    Check,
    Episode,
    InputChanged,
    Opening,
    Suite,
    SuiteError,
    Task,
    TaskSource,
    Variant,
    Workplace,
    World,
)
from pytest_cellprose.suites.encode import LIMIT_SECONDS, encode_text
from pytest_cellprose.workbook.model import Workbook


@dataclass(frozen=True, kw_only=True)
class WorkbookTask(Task):
    """A workbook with the questions that are asked about it."""

    questions: QuestionFile
    path: Path


@dataclass(frozen=True, kw_only=True)
class EncodingVariant(Variant):
    encoding: Encoding


class Spreadsheets(Suite):
    name = SPREADSHEETS
    axes = AXES

    def __init__(
        self,
        encodings: Mapping[str, Encoding] | None = None,
        cache: TextCache | None = None,
        kinds: Kinds = BUILTIN_KINDS,
        unlimited: Iterable[Encoding] = (),
    ) -> None:
        """`unlimited`: encodings that are not run in a child with a time limit, for they are known to end."""
        self._encodings = encodings or {}
        self._cache = cache or TextCache(None)
        self._kinds = kinds
        self._unlimited = frozenset(unlimited)
        # The plan's order visits a workbook's cells together, so a few of each are enough.
        self._workbook = lru_cache(maxsize=1)(_read)
        self._text = lru_cache(maxsize=32)(self._encoded)

    def within(self, place: Workplace) -> Spreadsheets:
        return Spreadsheets(place.encodings, place.cache, place.kinds, BUILTIN if place.final else ())

    def tasks(self, folder: Path) -> Iterator[Task]:
        """Every workbook of a folder with a question file; certification is the plan's."""
        from pytest_cellprose.sets.discover import discover  # not in workers, which load what was planned

        found = discover([folder], kinds=self._kinds)
        if found.problems:
            raise SuiteError("; ".join(found.problems))
        for each in found.found:
            yield _task(each.name, each.workbook_sha256, each.set, each.questions, each.workbook_path)

    def variants(self) -> Iterator[EncodingVariant]:
        return (variant_of(encoding) for encoding in self._encodings.values())

    def unreadable(self, variant: Variant) -> str | None:
        if variant.name == "none" or _encoding(variant).decode is not None:
            return None
        return f"encoding {variant.name!r} has no decoder"

    def load(self, entry: WorkbookEntry, source: TaskSource) -> Task:
        """The question file as it was planned, without what is not certified, and the workbook's place."""
        file, workbook = source.files["questions"], source.files["workbook"]
        if sha256_of(file) != entry.questions_sha256:
            raise InputChanged(f"{file} changed after the run was planned: run again")
        extents = workbook_extents(workbook, entry.workbook_sha256, self._cache)
        questions = load_questions(file, self._kinds).without(entry.uncertified).with_extents(extents)
        return _task(entry.name, entry.workbook_sha256, entry.set, questions, workbook)

    def opening(self, task: Task, variant: Variant) -> Opening:
        assert isinstance(task, WorkbookTask)
        encoding = _encoding(variant)
        asked = [question.asked() for question in task.questions.questions]
        text = prompt(encoding.label, self.text(task, variant), asked)
        return Opening(SYSTEM, text, aside={"encoding": encoding, "asked": asked})

    def text(self, task: Task, variant: Variant) -> str | None:
        """The encoded workbook; None for the control. Raises `EncodingFault`."""
        assert isinstance(task, WorkbookTask)
        return None if variant.name == "none" else self._text(task.path, task.digest, _encoding(variant))

    def known_text(self, entry: WorkbookEntry, variant: Variant) -> str | None:
        return self._cache.get(*encoding_key(_encoding(variant), entry.workbook_sha256))

    def code_sha256(self, variant: Variant) -> str:
        return code_digest(_encoding(variant))

    def check(self, task: Task, episode: Episode, world: World | None) -> Check:
        """Protocol section 5.6; `pytest_cellprose.questions.scoring` has the rules."""
        assert isinstance(task, WorkbookTask)
        scored = score_reply(task.questions.questions, episode.reply)
        return Check(scores=dict(scored.scores), answers=scored.answers)

    def _encoded(self, path: Path, sha256: str, encoding: Encoding) -> str:
        limit = None if encoding in self._unlimited else LIMIT_SECONDS
        return self._cache.get_or_make(
            lambda: encode_text(encoding, self._workbook(path, sha256), limit), *encoding_key(encoding, sha256)
        )


def variant_of(encoding: Encoding) -> EncodingVariant:
    return EncodingVariant(encoding.name, encoding.version, encoding.label, encoding=encoding)


def _encoding(variant: Variant) -> Encoding:
    assert isinstance(variant, EncodingVariant)
    return variant.encoding


def _task(name: str, sha256: str, set_name: Any, questions: QuestionFile, path: Path) -> WorkbookTask:
    parts = {question.id: question.kind for question in questions.questions}
    return WorkbookTask(
        name=name, digest=sha256, parts=parts, set=set_name, source=path, questions=questions, path=path
    )


def _read(path: Path, sha256: str) -> Workbook:
    workbook = Workbook.read(path)
    if workbook.sha256 != sha256:
        raise InputChanged(f"{path} changed after the run was planned: run again")
    return workbook

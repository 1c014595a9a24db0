"""The first suite: questions about spreadsheets. A task is a workbook, a part a question; a variant is an encoding,
or a file that an agent explores."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pytest_cellprose.cache import TextCache
from pytest_cellprose.encodings import BUILTIN
from pytest_cellprose.encodings.base import Encoding
from pytest_cellprose.encodings.keys import code_digest, encoding_key, functions_digest
from pytest_cellprose.files import digest, sha256_of
from pytest_cellprose.questions.extents import workbook_extents
from pytest_cellprose.questions.kind import Kinds
from pytest_cellprose.questions.kinds import BUILTIN_KINDS
from pytest_cellprose.questions.prompts import AGENT_SYSTEM, SYSTEM, agent_prompt, prompt
from pytest_cellprose.questions.schema import QuestionFile, load_questions
from pytest_cellprose.questions.scoring import score_reply
from pytest_cellprose.sandbox.base import Sandboxes
from pytest_cellprose.sandbox.tools import TOOLS, answer
from pytest_cellprose.store.manifest import AXES, SPREADSHEETS, WorkbookEntry
from pytest_cellprose.suites.agents import FileVariant, FileWorld, file_variants
from pytest_cellprose.suites.base import (
    Check,
    Episode,
    InputChanged,
    Opening,
    OpeningFault,
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
        place: Workplace | None = None,
    ) -> None:
        """`unlimited`: encodings that are not run in a child with a time limit, for they are known to end."""
        self._encodings = encodings or {}
        self._cache = cache or TextCache(None)
        self._kinds = kinds
        self._unlimited = frozenset(unlimited)
        self._place = place
        # The plan's order visits a workbook's cells together, so a few of each are enough.
        self._workbook = lru_cache(maxsize=1)(_read)
        self._text = lru_cache(maxsize=32)(self._encoded)

    def within(self, place: Workplace) -> Spreadsheets:
        return Spreadsheets(place.encodings, place.cache, place.kinds, BUILTIN if place.final else (), place)

    def tasks(self, folder: Path) -> Iterator[Task]:
        """Every workbook of a folder with a question file; certification is the plan's."""
        from pytest_cellprose.sets.discover import discover  # not in workers, which load what was planned

        found = discover([folder], kinds=self._kinds)
        if found.problems:
            raise SuiteError("; ".join(found.problems))
        for each in found.found:
            yield _task(each.name, each.workbook_sha256, each.set, each.questions, each.workbook_path)

    def variants(self) -> Iterator[EncodingVariant | FileVariant]:
        yield from map(variant_of, self._encodings.values())
        yield from file_variants(self._encodings)

    def unreadable(self, variant: Variant, *, explores: bool) -> str | None:
        if isinstance(variant, FileVariant):
            return None if explores else f"{variant.name!r} is a file, to be explored with tools"
        if explores:
            return f"encoding {variant.name!r} is a text in the prompt, with no file to explore"
        encoding = _encoding(variant)
        if variant.name == "none" or (encoding is not None and encoding.decode is not None):
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
        aside = {"encoding": encoding, "asked": asked}
        if isinstance(variant, FileVariant):
            text = agent_prompt(variant.label, variant.file, asked)
            return Opening(AGENT_SYSTEM, text, tools=TOOLS, aside=aside)
        assert encoding is not None
        text = prompt(encoding.label, self._block(task.path, task.digest, variant), asked)
        return Opening(SYSTEM, text, aside=aside)

    def tools(self, variant: Variant) -> Literal["none", "world", "sandbox"]:
        return "sandbox" if isinstance(variant, FileVariant) else "none"

    def world(self, task: Task, variant: Variant) -> World | None:
        """A sandbox with the file; raises `OpeningFault` where it is not the one that the plan has on record."""
        if not isinstance(variant, FileVariant):
            return None
        assert isinstance(task, WorkbookTask)
        sandboxes = self._sandboxes()
        if variant.encoding is None:
            return FileWorld(sandboxes, variant.file, task.path, task.digest)
        content = self._text(task.path, task.digest, variant.encoding).encode("utf-8", "surrogatepass")
        return FileWorld(sandboxes, variant.file, content, hashlib.sha256(content).hexdigest())

    def _sandboxes(self) -> Sandboxes:
        place = self._place
        if place is None or place.sandboxes is None:
            raise OpeningFault("the plan has no sandbox for agents")
        if place.sandbox_facts is not None and dict(place.sandboxes.facts()) != dict(place.sandbox_facts):
            raise OpeningFault("the sandbox of this machine is not the one that was planned")
        return place.sandboxes

    def text(self, task: Task, variant: Variant) -> str | bytes | None:
        """The encoded workbook, or the file that an agent gets; None for the control. Raises `EncodingFault`."""
        assert isinstance(task, WorkbookTask)
        return self.handed_over(task.path, task.digest, variant)

    def handed_over(self, path: Path, sha256: str, variant: Variant) -> str | bytes | None:
        """The same of a workbook file, whose digest is `sha256`. Raises `EncodingFault` and `WorkbookError`."""
        if isinstance(variant, FileVariant) and variant.encoding is None:
            return path.read_bytes()
        return self._block(path, sha256, variant)

    def _block(self, path: Path, sha256: str, variant: Variant) -> str | None:
        encoding = _encoding(variant)
        assert encoding is not None
        return None if variant.name == "none" else self._text(path, sha256, encoding)

    def known_text(self, entry: WorkbookEntry, variant: Variant) -> str | None:
        encoding = _encoding(variant)
        return None if encoding is None else self._cache.get(*encoding_key(encoding, entry.workbook_sha256))

    def code_sha256(self, variant: Variant) -> str:
        encoding = _encoding(variant)
        if isinstance(variant, FileVariant):
            code = functions_digest(FileWorld.call, answer)
            return code if encoding is None else digest([code, code_digest(encoding)])
        assert encoding is not None
        return code_digest(encoding)

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


def _encoding(variant: Variant) -> Encoding | None:
    """What writes the text of a variant; None for a workbook's own file."""
    assert isinstance(variant, EncodingVariant | FileVariant)
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

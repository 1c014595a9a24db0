"""Finding the workbooks of the cells folders: every question file with its ``.xlsx`` (docs/questions.md).

Nothing here decides what runs; it says what is there, which set each workbook belongs to, and everything that
is wrong, all at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any

from pytest_cellprose.cache import TextCache
from pytest_cellprose.files import sha256_of
from pytest_cellprose.questions.kind import Kinds
from pytest_cellprose.questions.kinds import BUILTIN_KINDS
from pytest_cellprose.questions.problem import Place, Problem
from pytest_cellprose.questions.schema import QuestionFile, QuestionFileError, load_questions
from pytest_cellprose.record.record import SetName
from pytest_cellprose.sets.pinned import content_of, pinned
from pytest_cellprose.sets.split import SPLIT_FILE, Split, SplitError, digest_side, load_split, set_of
from pytest_cellprose.store.layout import RUN_ID_GLOB

NOT_QUESTIONS = frozenset({SPLIT_FILE, "certification.json"})


@dataclass(frozen=True)
class Found:
    """A question file whose workbook is here."""

    name: str
    question_path: Path
    workbook_path: Path
    set: SetName
    questions: QuestionFile
    questions_sha256: str
    workbook_sha256: str
    changed: str | None = None
    """What differs from the digest that ``split.json`` froze, if anything does."""
    answer_paths: Mapping[str, Path] = field(default_factory=dict)
    """Question id -> the answer workbook of a computed question, where it is here."""


@dataclass(frozen=True)
class Unusable:
    """A question file that is wrong, or whose workbook is not the one it was written for."""

    name: str
    question_path: Path
    set: SetName
    problems: tuple[Problem, ...]
    questions: QuestionFile | None = None
    """If they are right and only the workbook is not."""
    workbook_path: Path | None = None
    """If only the questions are wrong."""

    @property
    def told(self) -> list[str]:
        """Its problems, a line each; of a held-out file nothing that it holds."""
        return list(map(str, self.may_be_told))

    @property
    def may_be_told(self) -> list[Problem]:
        return [problem.withheld if self.set == "heldout" else problem for problem in self.problems]


@dataclass
class Discovery:
    """What the cells folders hold."""

    found: list[Found] = field(default_factory=list)
    """Ordered by name."""
    not_here: dict[str, SetName] = field(default_factory=dict)
    """Question files whose workbook is a bare file name found in no folder, with the set they belong to."""
    unusable: list[Unusable] = field(default_factory=list)
    """The question files among what is wrong."""
    question_files: dict[str, str] = field(default_factory=dict)
    """Every question file, usable or not, by its workbook's name -> its SHA-256."""
    known_heldout: set[str] = field(default_factory=set)
    """Every name that some split lists as held out, found or not."""
    seed: int | None = None
    """Of the first split, for held-out draws."""
    splits: dict[Path, str] = field(default_factory=dict)
    """Split file -> its SHA-256."""
    unsplit: list[Path] = field(default_factory=list)
    """Cells folders with question files that no split governs."""
    problems_told: list[Problem] = field(default_factory=list)
    """Everything that is wrong, each of its file; of held-out files without what they hold."""

    @property
    def problems(self) -> list[str]:
        return list(map(str, self.problems_told))

    def note(self, unusable: Unusable) -> None:
        self.unusable.append(unusable)
        self.problems_told += [problem.of(unusable.question_path) for problem in unusable.may_be_told]


def discover(
    folders: Sequence[Path],
    *,
    split_by_digest: bool = False,
    elsewhere: Sequence[Split] = (),
    texts: TextCache = TextCache(None),  # noqa: B008  # frozen
    kinds: Kinds = BUILTIN_KINDS,
) -> Discovery:
    """Every workbook of `folders`, searched through all their subfolders, with questions of these kinds.

    `split_by_digest` divides folders without a ``split.json`` by `digest_side` instead of taking them as
    development. What splits `elsewhere` hold out is held out here, too. `texts` keeps what was worked out of a file.
    """
    result = Discovery()
    roots = _usable(folders, result.problems_told)
    splits = _splits(roots, result)
    sides = _Sides([*splits.values(), *elsewhere], split_by_digest, texts)
    shelf = _Shelf(roots)
    claimed: dict[str, Path] = {}
    for root in roots:
        for path in question_files(root):
            name = path.stem
            if path in claimed.values():  # the same folder was named twice, or one lies inside another
                continue
            questions_sha256 = sha256_of(path)
            result.question_files.setdefault(name, questions_sha256)
            try:
                questions = load_questions(path, kinds)
            except QuestionFileError as error:
                unusable = _unreadable(path, error, shelf, _governing(path, root, splits), sides)
                result.note(unusable)
                continue
            if name in claimed:
                twice = f"duplicate workbook name {name!r}: {claimed[name]} has it too; rename one file"
                result.problems_told.append(Problem(twice, Place(file=path)))
                continue
            claimed[name] = path
            governing = _governing(path, root, splits)
            if governing is None and root not in result.unsplit:
                result.unsplit.append(root)
            problems: list[Problem] = []
            workbook = shelf.find(path, questions, problems)
            if workbook is None:
                side = sides.of(name, questions.sha256 or "", questions_sha256, governing)
                if shelf.is_absent(path, questions):
                    result.not_here[name] = side
                else:
                    result.note(Unusable(name, path, side, tuple(problems), questions))
                continue
            digest = sha256_of(workbook)
            result.found.append(
                Found(
                    name=name,
                    question_path=path,
                    workbook_path=workbook,
                    set=sides.of(name, digest, questions_sha256, governing, workbook),
                    questions=questions,
                    questions_sha256=questions_sha256,
                    workbook_sha256=digest,
                    changed=_changed(name, digest, governing),
                    answer_paths=shelf.answers(path, questions),
                )
            )
    result.found.sort(key=lambda found: found.name)
    return result


def _unreadable(
    path: Path, error: QuestionFileError, shelf: _Shelf, governing: Split | None, sides: _Sides
) -> Unusable:
    """A question file that is wrong. It is held out if it may be, by name or by any digest."""
    try:
        raw: Any = json.loads(path.read_bytes().decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        raw = None
    fields = raw if isinstance(raw, dict) else {}
    named = fields.get("workbook")
    workbook = shelf.first(path, named if isinstance(named, str) and named.strip() else f"{path.stem}.xlsx")
    found = {sides.of(path.stem, str(fields.get("sha256", "")).lower(), "", governing)}
    if workbook is not None:
        found.add(sides.of(path.stem, sha256_of(workbook), "", governing, workbook))
    side: SetName = "heldout" if "heldout" in found else "development"
    return Unusable(path.stem, path, side, error.problems, workbook_path=workbook)


def _usable(folders: Sequence[Path], problems: list[Problem]) -> list[Path]:
    roots: list[Path] = []
    for folder in folders:
        root = folder.resolve()
        if not root.is_dir():
            problems.append(Problem(f"cells folder {folder}: not a folder"))
        elif root not in roots:
            roots.append(root)
    return roots


def _visible(root: Path, pattern: str) -> Iterator[Path]:
    for path in sorted(root.rglob(pattern)):
        if path.is_file() and not any(part.startswith((".", "~$")) for part in path.relative_to(root).parts):
            yield path


def question_files(root: Path) -> Iterator[Path]:
    """Every file below a cells folder that is taken for a question file; what runs stored there is not."""
    for path in _visible(root, "*.json"):
        parts = (*path.relative_to(root).parts[:-1], path.stem)
        if path.name not in NOT_QUESTIONS and not any(fnmatchcase(part, RUN_ID_GLOB) for part in parts):
            yield path


def _splits(roots: Iterable[Path], result: Discovery) -> dict[Path, Split]:
    splits: dict[Path, Split] = {}
    for root in roots:
        for path in _visible(root, SPLIT_FILE):
            if path.parent in splits:
                continue
            try:
                split = load_split(path)
            except SplitError as error:
                result.problems_told += error.problems
                continue
            splits[path.parent] = split
            result.splits[path] = sha256_of(path)
            result.known_heldout.update(split.heldout)
            if result.seed is None:
                result.seed = split.seed
    return splits


def _governing(path: Path, root: Path, splits: dict[Path, Split]) -> Split | None:
    """The split in the question file's folder or the nearest one above it, up to the cells folder."""
    for folder in path.parents:
        if folder in splits:
            return splits[folder]
        if folder == root:
            return None
    return None


@dataclass(frozen=True)
class _Sides:
    """Which set a workbook belongs to."""

    known: Sequence[Split]
    by_digest: bool
    texts: TextCache

    def of(
        self, name: str, sha256: str, questions_sha256: str, governing: Split | None, workbook: Path | None = None
    ) -> SetName:
        """By its name, the digests of its file and of its questions, and what the file holds, if it is here."""
        if pinned().has_questions(questions_sha256):
            return "heldout"
        side = set_of(name, sha256, "", governing, self.known)
        if side == "development" and workbook is not None:
            side = set_of(name, sha256, content_of(workbook, sha256, self.texts), governing, self.known)
        if governing is None and self.by_digest and side == "development":
            return digest_side(name)
        return side


def _changed(name: str, digest: str, governing: Split | None) -> str | None:
    frozen = "" if governing is None else governing.development.get(name) or governing.heldout.get(name) or ""
    if not frozen or frozen == digest:
        return None
    return f"workbook {name!r} is not the one that {SPLIT_FILE} froze: results before are not comparable"


class _Shelf:
    """The ``.xlsx`` files of all cells folders, for question files that give only a file name."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = roots

    @cached_property
    def _by_name(self) -> dict[str, list[Path]]:
        files: dict[str, list[Path]] = {}
        for root in self._roots:
            for path in _visible(root, "*"):
                files.setdefault(path.name, []).append(path)
        return files

    def _candidates(self, path: Path, named: str) -> list[Path]:
        if not _is_bare(named):
            return [candidate] if (candidate := path.parent / named).is_file() else []
        if (beside := path.parent / named).is_file():
            return [beside]
        return self._by_name.get(named, [])

    def is_absent(self, path: Path, questions: QuestionFile) -> bool:
        """Whether it is a bare file name that no folder has: left out of the plan, not an error."""
        return _is_bare(questions.workbook) and not self._candidates(path, questions.workbook)

    def first(self, path: Path, named: str) -> Path | None:
        """Any file of that name, for a question file that cannot be relied on."""
        try:
            return next(iter(self._candidates(path, named)), None)
        except (OSError, ValueError):  # no file name at all
            return None

    def answers(self, path: Path, questions: QuestionFile) -> dict[str, Path]:
        """Question id -> the file that a computed question names as its answer workbook, and no other."""
        found = {}
        for question in questions.questions:
            if question.answer_workbook is None:
                continue
            for file in self._candidates(path, question.answer_workbook):
                if question.answer_sha256 in (None, sha256_of(file)):
                    found[question.id] = file
                    break
        return found

    def find(self, path: Path, questions: QuestionFile, problems: list[Problem]) -> Path | None:
        """The workbook's file, or None: absent, or a problem that has been noted."""
        candidates = self._candidates(path, questions.workbook)
        if not candidates:
            if not _is_bare(questions.workbook):
                problems.append(Problem("expected a file beside it", _WORKBOOK, repr(questions.workbook)))
            return None
        digests = {file: sha256_of(file) for file in candidates}
        if questions.sha256 is not None:
            matching = [file for file in candidates if digests[file] == questions.sha256]
            if not matching:
                found = f"{candidates[0]} with {digests[candidates[0]]}"
                expected = "expected the file that the questions were written for"
                problems.append(Problem(expected, _SHA256, found, f": {questions.sha256}"))
                return None
            return matching[0]
        if len(set(digests.values())) > 1:
            found = f"{questions.workbook!r} as {', '.join(map(str, candidates))}"
            problems.append(Problem("ambiguous: give its sha256 or a path", _WORKBOOK, found))
            return None
        return candidates[0]


_WORKBOOK = Place(field="workbook", known_field="workbook")
_SHA256 = Place(field="sha256", known_field="sha256")


def _is_bare(name: str) -> bool:
    return len(PurePath(name).parts) == 1 and "\\" not in name and name not in (".", "..")

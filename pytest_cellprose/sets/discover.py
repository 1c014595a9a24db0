"""Finding the workbooks of the cells folders: every question file with its ``.xlsx`` (DESIGN section 4).

Nothing here decides what runs; it says what is there, which set each workbook belongs to, and everything that
is wrong, all at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any

from pytest_cellprose.digest import sha256_of
from pytest_cellprose.questions.schema import QuestionFile, QuestionFileError, load_questions, unquoted
from pytest_cellprose.record import SetName
from pytest_cellprose.sets.split import SPLIT_FILE, Split, SplitError, digest_side, load_split, set_of

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
    problems: tuple[str, ...]
    """Without what was found, if it is held out."""
    questions: QuestionFile | None = None
    """If they are right and only the workbook is not."""
    workbook_path: Path | None = None
    """If only the questions are wrong."""


@dataclass
class Discovery:
    """What the cells folders hold."""

    found: list[Found] = field(default_factory=list)
    """Ordered by name."""
    not_here: dict[str, SetName] = field(default_factory=dict)
    """Question files whose workbook is a bare file name found in no folder, with the set they belong to."""
    unusable: list[Unusable] = field(default_factory=list)
    """What `problems` is about, as far as it is about question files."""
    known_heldout: set[str] = field(default_factory=set)
    """Every name that some split lists as held out, found or not."""
    seed: int | None = None
    """Of the first split, for held-out draws."""
    splits: dict[Path, str] = field(default_factory=dict)
    """Split file -> its SHA-256."""
    unsplit: list[Path] = field(default_factory=list)
    """Cells folders with question files that no split governs."""
    problems: list[str] = field(default_factory=list)


def discover(folders: Sequence[Path], *, split_by_digest: bool = False) -> Discovery:
    """Every workbook of `folders`, searched through all their subfolders.

    `split_by_digest` divides folders without a ``split.json`` by `digest_side` instead of taking them as
    development.
    """
    result = Discovery()
    roots = _usable(folders, result.problems)
    splits = _splits(roots, result)
    shelf = _Shelf(roots)
    claimed: dict[str, Path] = {}
    for root in roots:
        for path in question_files(root):
            name = path.stem
            if path in claimed.values():  # the same folder was named twice, or one lies inside another
                continue
            try:
                questions = load_questions(path)
            except QuestionFileError as error:
                unusable = _unreadable(path, error, root, shelf, splits, split_by_digest)
                result.unusable.append(unusable)
                result.problems += unusable.problems
                continue
            if name in claimed:
                result.problems.append(
                    f"{path}: duplicate workbook name {name!r}: {claimed[name]} has it too; rename one file"
                )
                continue
            claimed[name] = path
            governing = _governing(path, root, splits)
            if governing is None and root not in result.unsplit:
                result.unsplit.append(root)
            problems: list[str] = []
            workbook = shelf.find(path, questions, problems)
            if workbook is None:
                side = _side(name, questions.sha256 or "", governing, splits.values(), split_by_digest)
                if shelf.is_absent(path, questions):
                    result.not_here[name] = side
                else:
                    result.unusable.append(Unusable(name, path, side, tuple(problems), questions))
                    result.problems += problems
                continue
            digest = sha256_of(workbook)
            result.found.append(
                Found(
                    name=name,
                    question_path=path,
                    workbook_path=workbook,
                    set=_side(name, digest, governing, splits.values(), split_by_digest),
                    questions=questions,
                    questions_sha256=sha256_of(path),
                    workbook_sha256=digest,
                    changed=_changed(name, digest, governing),
                    answer_paths=shelf.answers(path, questions),
                )
            )
    result.found.sort(key=lambda found: found.name)
    return result


def _unreadable(
    path: Path, error: QuestionFileError, root: Path, shelf: _Shelf, splits: dict[Path, Split], by_digest: bool
) -> Unusable:
    """A question file that is wrong. If it may be held out, by name or by any digest, its content is not quoted."""
    try:
        raw: Any = json.loads(path.read_bytes().decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        raw = None
    fields = raw if isinstance(raw, dict) else {}
    named = fields.get("workbook")
    workbook = shelf.first(path, named if isinstance(named, str) and named.strip() else f"{path.stem}.xlsx")
    digests = {str(fields.get("sha256", "")).lower(), "" if workbook is None else sha256_of(workbook)}
    governing = _governing(path, root, splits)
    sides = {_side(path.stem, digest, governing, splits.values(), by_digest) for digest in digests}
    side: SetName = "heldout" if "heldout" in sides else "development"
    problems = error.problems if side == "development" else map(unquoted, error.problems)
    return Unusable(path.stem, path, side, tuple(problems), workbook_path=workbook)


def _usable(folders: Sequence[Path], problems: list[str]) -> list[Path]:
    roots: list[Path] = []
    for folder in folders:
        root = folder.resolve()
        if not root.is_dir():
            problems.append(f"cells folder {folder}: not a folder")
        elif root not in roots:
            roots.append(root)
    return roots


def _visible(root: Path, pattern: str) -> Iterator[Path]:
    for path in sorted(root.rglob(pattern)):
        if path.is_file() and not any(part.startswith((".", "~$")) for part in path.relative_to(root).parts):
            yield path


def question_files(root: Path) -> Iterator[Path]:
    """Every file below a cells folder that is taken for a question file."""
    return (path for path in _visible(root, "*.json") if path.name not in NOT_QUESTIONS)


def _splits(roots: Iterable[Path], result: Discovery) -> dict[Path, Split]:
    splits: dict[Path, Split] = {}
    for root in roots:
        for path in _visible(root, SPLIT_FILE):
            if path.parent in splits:
                continue
            try:
                split = load_split(path)
            except SplitError as error:
                result.problems.append(str(error))
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


def _side(name: str, digest: str, governing: Split | None, known: Iterable[Split], by_digest: bool) -> SetName:
    side = set_of(name, digest, governing, known)
    if governing is None and by_digest and side == "development":
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

    def find(self, path: Path, questions: QuestionFile, problems: list[str]) -> Path | None:
        """The workbook's file, or None: absent, or a problem that has been noted."""
        candidates = self._candidates(path, questions.workbook)
        if not candidates:
            if not _is_bare(questions.workbook):
                problems.append(f"{path}: workbook: no file {questions.workbook!r} beside it")
            return None
        if questions.sha256 is not None:
            matching = [file for file in candidates if sha256_of(file) == questions.sha256]
            if not matching:
                problems.append(
                    f"{path}: sha256: {candidates[0]} has {sha256_of(candidates[0])}, not {questions.sha256}; "
                    "the questions were written for another file"
                )
                return None
            return matching[0]
        if len({sha256_of(file) for file in candidates}) > 1:
            problems.append(
                f"{path}: workbook: {questions.workbook!r} is ambiguous: "
                f"{', '.join(map(str, candidates))}; give its sha256 or a path"
            )
            return None
        return candidates[0]


def _is_bare(name: str) -> bool:
    return len(PurePath(name).parts) == 1 and "\\" not in name and name not in (".", "..")

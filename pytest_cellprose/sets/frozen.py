"""The held-out set that a final run may publish about, and how what is here differs from it (protocol section 3).

It is what the package pins and what the committed ``split.json`` files of the repository list under ``heldout``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_cellprose.sets.discover import Discovery
from pytest_cellprose.sets.pinned import pinned
from pytest_cellprose.sets.split import SPLIT_FILE, Split, SplitError, load_split
from pytest_cellprose.store.identity import tracked_files
from pytest_cellprose.wording import some


def committed_splits(root: Path, used: Iterable[Path] = ()) -> list[Split]:
    """The splits that git tracks below `root`, and those of `used` that it tracks in the same repository.

    A file of that name that is no split of ours is passed over: of a cells folder's own, `discover` says what is wrong.
    """
    known = {path.resolve() for path in used}
    splits = []
    for path in tracked_files(root, SPLIT_FILE):
        if path.is_relative_to(root.resolve()) or path in known:
            try:
                splits.append(load_split(path))
            except SplitError:
                continue
    return splits


@dataclass(frozen=True)
class FrozenSet:
    """SHA-256 by the workbook's name."""

    workbooks: Mapping[str, str]
    questions: Mapping[str, str]
    """Of the question files, as far as they are on record."""


def frozen_set(splits: Iterable[Split]) -> FrozenSet:
    workbooks: dict[str, str] = {}
    questions: dict[str, str] = {}
    for split in splits:
        workbooks |= split.heldout
        questions |= split.questions
    for name, file in pinned().planned.items():
        workbooks[name] = file.sha256
        questions[name] = file.questions or ""
    return FrozenSet(workbooks, questions)


@dataclass(frozen=True)
class Differences:
    """By name."""

    lacking: Sequence[str] = ()
    added: Sequence[str] = ()
    workbooks: Sequence[str] = ()
    """Whose file is another."""
    questions: Sequence[str] = ()
    """Whose question file is another."""
    unrecorded: Sequence[str] = ()
    """Whose question file no committed digest is of."""

    def of(self, name: str) -> tuple[str, ...]:
        """What is another of one workbook."""
        changed = {"workbook": self.workbooks, "questions": self.questions}
        return tuple(f"{name}: other {what} than the frozen" for what, names in changed.items() if name in names)

    def sentences(self, most: int) -> list[str]:
        """One for each kind; of names the first `most`."""
        said = {
            "lacks": self.lacking,
            "adds": self.added,
            "other workbooks than the frozen ones:": self.workbooks,
            "other questions than the frozen ones:": self.questions,
            "no committed digest of the questions of": self.unrecorded,
        }
        return [f"{what} {some(names, most)}" for what, names in said.items() if names]


def differences(frozen: FrozenSet, names: Iterable[str], discovery: Discovery) -> Differences:
    """How a held-out set of these `names`, of which some are here, differs from the frozen one."""
    names = set(names)
    here = {each.name: each.workbook_sha256 for each in discovery.found if each.name in names}
    asked = {
        name: sha256 for name, sha256 in discovery.question_files.items() if name in names & frozen.workbooks.keys()
    }
    return Differences(
        lacking=sorted(frozen.workbooks.keys() - names),
        added=sorted(names - frozen.workbooks.keys()),
        workbooks=sorted(name for name, sha256 in here.items() if frozen.workbooks.get(name, sha256) != sha256),
        questions=sorted(name for name, sha256 in asked.items() if frozen.questions.get(name, sha256) != sha256),
        unrecorded=sorted(asked.keys() - frozen.questions.keys()),
    )

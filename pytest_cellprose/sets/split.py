"""Development or held out: ``split.json`` and the rules beside it (protocol section 3)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from pydantic import Field, ValidationError
from pydantic_core import ErrorDetails

from pytest_cellprose.questions.problem import Place, Problem
from pytest_cellprose.record.record import Frozen, SetName
from pytest_cellprose.sets.pinned import pinned

SPLIT_FILE = "split.json"
SEED = 20261009
"""The protocol's: used where no split names one."""
ALWAYS_HELD_OUT = ("sb_*", "rw_*")
"""Names of the held-out sets; held out wherever they are found."""


class SplitError(ValueError):
    """A ``split.json`` that cannot be used; the message names it and its fields, but nothing that it holds, since it
    rules what is held out."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


class Split(Frozen):
    """Which workbooks may be tuned on. What is not listed is held out."""

    schema_: int = Field(default=1, alias="schema")
    suite: str = "spreadsheets"
    """What the folder's tasks are of; for spreadsheets a task is a workbook."""
    seed: int = SEED
    development: dict[str, str] = Field(default_factory=dict)
    """Workbook name -> SHA-256 of its ``.xlsx``."""
    heldout: dict[str, str] = Field(default_factory=dict)
    questions: dict[str, str] = Field(default_factory=dict)
    """Held-out workbook -> SHA-256 of its question file: what is asked is frozen with what it is asked about."""


def load_split(path: Path) -> Split:
    """Raises `SplitError`, naming the file and every field that is wrong."""
    try:
        split = Split.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise SplitError([Problem(f"not a readable JSON file: {error}", Place(file=path))]) from None
    except ValidationError as error:
        raise SplitError(_problem(each).of(path).withheld for each in error.errors()) from None
    if split.schema_ != 1:
        where = Place(field="schema", known_field="schema", file=path)
        raise SplitError([Problem("not known to this version (1 is)", where)])
    return split


def _problem(error: ErrorDetails) -> Problem:
    first = str(error["loc"][0]) if error["loc"] else ""
    known = first if first in {*Split.model_fields, "schema"} else ""
    return Problem(error["msg"], Place(field=".".join(map(str, error["loc"])), known_field=known))


def always_held_out(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in ALWAYS_HELD_OUT)


def is_known_heldout(name: str, sha256: str, content: str, known: Iterable[Split]) -> bool:
    """Whether a workbook is held out wherever it lies: by its name, or by a digest that is pinned or in a split.

    An empty digest (`pytest_cellprose.sets.pinned.content_sha256`, or of the file) is not known.
    """
    if always_held_out(name) or pinned().holds(sha256, content):
        return True
    return any(name in split.heldout or sha256 in split.heldout.values() for split in known)


def set_of(name: str, sha256: str, content: str, governing: Split | None, known: Iterable[Split]) -> SetName:
    """The set of a workbook whose question file lies in a folder that `governing` rules; without one, development."""
    if is_known_heldout(name, sha256, content, known):
        return "heldout"
    if governing is None or name in governing.development:
        return "development"
    return "heldout"


def nearest_split(path: Path) -> Split | None:
    """The split in the file's folder or the nearest one above it; one that cannot be read is none."""
    for folder in path.resolve().parents:
        if (folder / SPLIT_FILE).is_file():
            try:
                return load_split(folder / SPLIT_FILE)
            except SplitError:
                return None
    return None


def digest_side(name: str) -> SetName:
    """For folders that bring no split: a third is development, by SHA-256 of the name alone.

    Independent of every other workbook, of seed and sample; the rule is ``--cellprose-split digest``.
    """
    head = int(hashlib.sha256(name.encode()).hexdigest()[:8], 16)
    return "development" if head < 2**32 // 3 else "heldout"

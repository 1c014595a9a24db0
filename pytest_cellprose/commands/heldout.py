"""``--held-out``: what commands that show a workbook, or score against its truths, ask for first."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_cellprose.files import sha256_of
from pytest_cellprose.questions.schema import QuestionFile
from pytest_cellprose.sets.pinned import content_sha256, pinned
from pytest_cellprose.sets.split import is_known_heldout, nearest_split
from pytest_cellprose.workbook.model import Workbook

FLAG = "--held-out"


def add_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        FLAG,
        dest="held_out",
        action="store_true",
        help="go on although a file belongs to a held-out set: you look at what only the final run may use, and "
        "whatever is changed afterwards (format, prompt, scorer) makes later results on that set exploratory "
        "(default: such a file is refused)",
    )


def refusal(file: str | Path) -> str:
    return f"{file}: held out: only a final run may use it; {FLAG} if you mean to look at it all the same"


def is_held_out_workbook(workbook: Workbook, path: Path | None) -> bool:
    """By its name, its bytes or what it holds; `path`: where it lies, None for standard input."""
    split = None if path is None else nearest_split(path)
    name = "" if path is None else path.stem
    return is_known_heldout(name, workbook.sha256, content_sha256(workbook), [] if split is None else [split])


def is_held_out_question_file(path: Path, questions: QuestionFile | None) -> bool:
    """By its name, its bytes, or the digest of its workbook; `questions`: None if it is wrong."""
    if path.is_file() and pinned().has_questions(sha256_of(path)):
        return True
    split = nearest_split(path)
    sha256 = "" if questions is None else questions.sha256 or ""
    return is_known_heldout(path.stem, sha256, "", [] if split is None else [split])

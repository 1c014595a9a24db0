"""Lists of cells: the truth of a question and an answer to it, as sets that can be compared."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pytest_cellprose.questions.cellset import Area, CellSet, Extents
from pytest_cellprose.workbook.refs import AddressError

if TYPE_CHECKING:
    from pytest_cellprose.questions.schema import Question


def areas_of(question: Question) -> Iterator[Area]:
    """What the truth of a question that asks for cells names."""
    assert isinstance(question.answer, tuple)
    return (Area.parse(str(text), question.sheet) for text in question.answer)


def same_cells(question: Question, answer: Any) -> float:
    """1 for just the cells of the truth, else 0."""
    truth, given, unreadable = cell_sets(question, answer)
    return float(truth == given and not unreadable)


def shared_cells(question: Question, answer: Any) -> float:
    """F1 of the cells named: 1 for just those of the truth, less for every cell too many or too few."""
    truth, given, unreadable = cell_sets(question, answer)
    expected, answered = len(truth), len(given) + unreadable
    return 2 * truth.shared(given) / (expected + answered) if expected + answered else 1.0


_MOST_MEMBERS = 100_000
"""Addresses read of one answer; each further one counts as a wrong cell. No model can write as many."""


def cell_sets(question: Question, answer: Any) -> tuple[CellSet, CellSet, int]:
    """Truth, answer, and how many members of the answer name no cell: each counts as one wrong cell."""
    areas = list(areas_of(question))
    extents = Extents.guessed(areas) if question.extent is None else Extents(question.extent)
    truth, given, unreadable = CellSet(), CellSet(), 0
    for area in areas:
        if clipped := extents.clip(area):
            truth.add(area.sheet, clipped)
    members = list(_members(answer))
    for text in members[:_MOST_MEMBERS]:
        try:
            area = Area.parse(text, question.sheet)
        except AddressError:
            continue
        if clipped := extents.clip(area):
            given.add(area.sheet, clipped)
            unreadable -= 1
    return truth, given, unreadable + len(members)


_NO_ADDRESS = "?"


def _members(answer: Any) -> Iterator[str]:
    """Each address of an answer; what is no text is a member that cannot be read."""
    if isinstance(answer, str):
        yield from _split(answer)
    elif isinstance(answer, list):
        for member in answer:
            if not isinstance(member, str) or not member.strip():
                yield _NO_ADDRESS
            elif "," in member or ";" in member:
                yield from _split(member)
            else:
                yield member
    else:
        yield _NO_ADDRESS


def _split(text: str) -> Iterator[str]:
    """Cut at commas and semicolons outside quoted worksheet names."""
    quoted = text.split("'")
    if len(quoted) % 2 == 0:  # a stray apostrophe
        parts = re.split("[,;]", text)
    else:
        outside = [re.sub("[,;]", "\0", part) if n % 2 == 0 else part for n, part in enumerate(quoted)]
        parts = "'".join(outside).split("\0")
    return (part for part in parts if part.strip())

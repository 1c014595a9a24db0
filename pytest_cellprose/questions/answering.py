"""The answers that a program finds in a workbook's cells, to questions whose truth it does not know."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pytest_cellprose.encodings.base import Kept
from pytest_cellprose.questions.asked import Asked
from pytest_cellprose.questions.book import Book
from pytest_cellprose.workbook.model import Workbook


def answer_all(workbook: Workbook, asked: Iterable[Asked], keeps: frozenset[Kept]) -> dict[str, Any]:
    """The answers that can be found, by question id.

    A question is left out if the encoding does not keep what it needs, or if what it asks about is not there.
    If all are, each is answered with null: a reply without any key would be no answer at all.
    """
    questions = list(asked)
    book = Book(workbook)
    answers = {question.id: _answer(question, book) for question in questions if question.rules.needs in keeps}
    found = {name: answer for name, answer in answers.items() if answer is not None}
    return found or {question.id: None for question in questions}


def _answer(question: Asked, book: Book) -> Any:
    """None: not found."""
    if question.about is None or question.computed or question.rules.find is None:
        return None
    return question.rules.find(question, book)

"""What a kind of question is: one value that says how its truth is read, scored, looked up and certified."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pytest_cellprose.questions.about import AboutForm

if TYPE_CHECKING:
    from pytest_cellprose.encodings.base import Kept
    from pytest_cellprose.questions.asked import Asked
    from pytest_cellprose.questions.book import Book
    from pytest_cellprose.questions.schema import Question

Field: TypeAlias = Literal["reach", "type", "unit", "computed", "scorer"]

_NAME = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)


@dataclass(frozen=True)
class QuestionKind:
    """Return one from the hook ``pytest_cellprose_questions``, and question files may name it.

    Its functions are pure. Raises ValueError for a name that is none, and for a kind whose questions nothing could
    certify.
    """

    name: str
    """The ``kind`` of a question: small letters, digits and underscores."""
    truth: Callable[[Any, Mapping[str, Any]], Any]
    """The recorded truth, of the value in the file and the question's fields above it; a finite number, a text, a
    boolean, or a tuple of these. Raises ValueError, saying what is expected; of held-out files nobody is told."""
    score: Callable[[Question, Any], float]
    """The score in [0, 1] of an answer as parsed from JSON, which is never null."""
    needs: Kept
    """What an encoding must keep of a workbook for the question to be answered."""
    about: AboutForm = "cell"
    """How a question says where to look: an address of a cell or of a range, or labels."""
    takes: frozenset[Field] = frozenset()
    """The fields that a question may have beside those of every kind; one that takes ``reach`` must have it."""
    lists_cells: bool = False
    """Whether truths are addresses, which must then lie in the workbook."""
    find: Callable[[Asked, Book], Any] | None = None
    """The answer that a workbook holds, None if it holds none: for the offline reader, of the workbook decoded from a
    text. None: the reader leaves such questions out."""
    objection: Callable[[Question, Book], str | None] | None = None
    """What in the workbook speaks against a question's truth; it may quote both. By default, that what `find` finds
    scores less than 1."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"kind {self.name!r}: the name of a kind is small letters, digits and underscores")
        if self.find is None and self.objection is None:
            raise ValueError(f"kind {self.name!r}: give it find or objection: what nothing certifies is not asked")

    def against(self, question: Question, book: Book) -> str | None:
        """What speaks against the question's truth; None if the workbook says the same at `about`.

        Of a computed question this is to be asked of the answer workbook. What is said may quote workbook and truth.
        """
        asked = question.asked()
        if asked.about is None:
            return 'no field "about" says which cell holds the truth'
        if self.about == "cell" and book.workbook.sheet(asked.cell.sheet) is None:
            return f"there is no worksheet {asked.cell.sheet!r}"
        if self.objection is not None:
            return self.objection(question, book)
        assert self.find is not None
        found = self.find(asked, book)
        if found is None:
            return "the workbook does not say"
        if self.score(question, found) == 1:
            return None
        return f"the workbook says {found!r}, the recorded truth is {question.answer!r}"


Kinds: TypeAlias = Mapping[str, QuestionKind]
"""Kinds of question by name."""

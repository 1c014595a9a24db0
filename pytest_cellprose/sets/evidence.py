"""What a workbook itself says about a question.

It is read and looked up by the code that also encodes workbooks and answers offline: this finds a truth that was
recorded wrongly, and not a mistake of the reader's. That is what the tests are for, which read every truth of the sets
by other libraries.
"""

from __future__ import annotations

from pathlib import Path

from pytest_cellprose.questions.book import Book
from pytest_cellprose.workbook.model import Workbook


class Evidence(Book):
    """A workbook to hold truths against."""

    @classmethod
    def read(cls, path: Path) -> Evidence:
        """Raises `WorkbookError`."""
        return cls(Workbook.read(path))

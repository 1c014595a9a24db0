"""`none`: no workbook at all, the control that tells what a model answers from the questions alone."""

from __future__ import annotations

from pytest_cellprose.encodings.base import Encoding
from pytest_cellprose.workbook.model import Workbook


def encode(workbook: Workbook) -> str:
    """The empty text."""
    return ""


def decode(text: str) -> Workbook:
    """A workbook without worksheets."""
    return Workbook(worksheets=())


NONE = Encoding("none", "1", "", encode, decode, keeps=frozenset())

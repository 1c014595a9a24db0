"""The exact text of a stored value and back, for the encodings that write values as they are stored."""

from __future__ import annotations

import re

from pytest_cellprose.workbook.model import Cell, ErrorValue, Worksheet
from pytest_cellprose.workbook.number_formats import serial_from_text, serial_text

NUMBER = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
ERROR = re.compile(r"#(?:N/A|[A-Z][A-Z0-9_/]*[!?])")

_INTEGERS_BELOW = 1e15
"""From here on a float's digits are no longer all its own."""


def number_text(number: int | float) -> str:
    """The shortest text that reads back as the same number; whole numbers without ``.0``."""
    if isinstance(number, float):
        if number.is_integer() and abs(number) < _INTEGERS_BELOW:
            return str(int(number))
        return repr(number)
    return str(number)


def exact_text(cell: Cell, date1904: bool) -> str:
    """A cell's stored value as text: exact numbers, ISO dates, ``TRUE``, errors as they are."""
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        date = serial_text(value, cell.number_format, date1904, exact=True)
        return number_text(value) if date is None else date
    return str(value)


def read_value(text: str) -> Cell:
    """What a text most likely was: a number, ``TRUE``, an error, an ISO date, else text.

    Digits with a leading zero are text: no number is written so.
    """
    if NUMBER.fullmatch(text):
        return Cell(float(text) if any(mark in text for mark in ".eE") else int(text))
    if text in ("TRUE", "FALSE"):
        return Cell(text == "TRUE")
    if ERROR.fullmatch(text):
        return Cell(ErrorValue(text))
    date = serial_from_text(text)
    if date is not None:
        return Cell(date[0], None, date[1])
    return Cell(text)


def put(worksheet: Worksheet, row: int, column: int, cell: Cell) -> None:
    """Set a cell; rows and columns must come in ascending order."""
    worksheet.rows.setdefault(row, {})[column] = cell


_LINE_ENDS = re.compile("[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")


def sheet_heading(name: str) -> str:
    """``## name`` on one line, whatever the name holds."""
    return "## " + _LINE_ENDS.sub(" ", name)

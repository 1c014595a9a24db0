"""SpreadsheetBench's own way of comparing two cells, for questions with ``"scorer": "spreadsheetbench"``.

The rules are those of the benchmark's published ``evaluation.py`` (MIT), told in `docs/spreadsheetbench.md`. They are
stricter than this project's: no tolerance but two decimals, and case and blanks count.
"""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta
from typing import Any

from pytest_cellprose.workbook.refs import AddressError, Range

_EPOCH = datetime(1899, 12, 30)
_DAY = timedelta(days=1)
_ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d(?:[T ].+)?", re.ASCII)
_CELL = r"[A-Z]{1,3}[0-9]{1,7}"
_POSITION = re.compile(rf"{_CELL}(?::{_CELL})?")


class PositionError(ValueError):
    """An answer position that the official evaluation reads as something else than it says; one line."""


def normalised(value: Any) -> Any:
    """A cell's value as it is compared.

    Numbers, booleans and texts that ``float`` accepts are rounded to two decimals, half to even on the binary value;
    a date-time becomes whole days since 1899-12-30, rounded the same way; a time becomes its text without the last
    three characters; anything else stays. Raises OverflowError for an integer that no float can hold.
    """
    match value:
        case bool() | int() | float():
            return round(float(value), 2)
        case datetime():
            return float(round((value - _EPOCH) / _DAY))
        case time():
            return str(value)[:-3]
        case str():
            try:
                return round(float(value), 2)
            except ValueError:
                return value
    return value


def same_value(one: Any, other: Any) -> bool:
    """Whether the official evaluation takes two cells as equal; what it cannot compare is unequal.

    >>> same_value(3.1, "3.10"), same_value(None, ""), same_value(None, 0), same_value("a", "A")
    (True, True, False, False)
    """
    try:
        one, other = normalised(one), normalised(other)
    except (OverflowError, TypeError):  # too large for a float; a time zone on one side only
        return False
    if one in (None, "") and other in (None, ""):
        return True
    return type(one) is type(other) and bool(one == other)


def day(answer: Any) -> Any:
    """The date-time that an answer to a date question stands for, as a cell would hold it; other answers stay."""
    if isinstance(answer, str) and _ISO_DAY.fullmatch(answer.strip()):
        try:
            return datetime.fromisoformat(answer.strip())
        except ValueError:
            return answer
    return answer


def positions(text: str) -> list[tuple[str | None, Range]]:
    """The worksheet (None: the first of the answer workbook) and the range of each part of an answer position.

    Parts are cut at every comma, and at their exclamation mark; a worksheet loses the apostrophes around it. Raises
    `PositionError` for what the official evaluation does not read as written: a reversed range compares no cell at
    all, lower-case letters compare another column, and a whole column or a blank before a range ends in an exception.

    >>> positions("'My data'!B2:C4")
    [('My data', Range(first_row=2, first_column=2, last_row=4, last_column=3))]
    """
    found: list[tuple[str | None, Range]] = []
    for part in text.split(","):
        sheet, mark, cells = part.rpartition("!")
        if "!" in sheet:
            raise PositionError(f"answer position {text!r}: found two exclamation marks, expected one at most")
        if not _POSITION.fullmatch(cells):
            raise PositionError(f"answer position {text!r}: found {cells!r}, {_wrong(cells)}")
        try:
            area = Range.parse(cells)
        except AddressError as error:
            raise PositionError(f"answer position {text!r}: {error}") from None
        if str(area) not in (cells, cells.partition(":")[0]):
            raise PositionError(f"answer position {text!r}: found {cells!r}, a reversed range, which compares no cell")
        found.append((sheet.strip("'") if mark else None, area))
    return found


def _wrong(cells: str) -> str:
    if cells != cells.strip():
        return "with a blank around it, on which the official evaluation breaks off"
    if _POSITION.fullmatch(cells.upper()):
        return "in lower case, which compares another column"
    if re.fullmatch(r"\$?[A-Za-z]{1,3}:\$?[A-Za-z]{1,3}", cells):
        return "a whole column, on which the official evaluation breaks off"
    return "expected a cell or a range like B2:C4"

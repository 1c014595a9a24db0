"""A1 addresses: columns, cells, rectangles and worksheet-qualified cells.

Rows and columns are 1-based integers everywhere in this package, as in ECMA-376.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

MAX_ROW = 1_048_576
MAX_COLUMN = 16_384

_RANGE = re.compile(r"\$?([A-Za-z]{1,3})?\$?([0-9]{1,7})?(?::\$?([A-Za-z]{1,3})?\$?([0-9]{1,7})?)?")
_PLAIN_SHEET = re.compile(r"[^\W\d][\w.]*")
_LOOKS_LIKE_CELL = re.compile(r"(?:[A-Za-z]{1,3}[0-9]+|[Rr][0-9]*[Cc][0-9]*|[RrCc])")


class AddressError(ValueError):
    """Text that is not an A1 address; the message quotes it."""


@lru_cache(maxsize=MAX_COLUMN)
def column_letters(column: int) -> str:
    """``1 -> "A"``, ``28 -> "AB"``."""
    if column < 1:
        raise AddressError(f"column {column} is not a column: the first is 1")
    letters = ""
    while column:
        column, rest = divmod(column - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


@lru_cache(maxsize=MAX_COLUMN)
def column_number(letters: str) -> int:
    """``"AB" -> 28``, in any case; raises `AddressError` for what is no column up to ``XFD``."""
    number = 0
    for letter in letters.upper():
        if not "A" <= letter <= "Z":
            raise AddressError(f"{letters!r} is not a column")
        number = number * 26 + ord(letter) - 64
    if not 1 <= number <= MAX_COLUMN:
        raise AddressError(f"{letters!r} is not a column: the last is XFD")
    return number


def cell_name(row: int, column: int) -> str:
    """``(3, 2) -> "B3"``."""
    return f"{column_letters(column)}{row}"


class Range(NamedTuple):
    """A rectangle of cells on one worksheet, both ends included."""

    first_row: int
    first_column: int
    last_row: int
    last_column: int

    @classmethod
    def parse(cls, text: str) -> Range:
        """Read ``B3``, ``$B$3:C9``, ``A:C`` or ``2:4``; reversed corners are put right.

        Raises `AddressError` for anything else.
        """
        match = _RANGE.fullmatch(text.strip())
        if match is None or not any(match.groups()):
            raise AddressError(f"{text!r} is not an A1 address")
        letters_1, digits_1, letters_2, digits_2 = match.groups()
        if ":" not in text:
            if not (letters_1 and digits_1):
                raise AddressError(f"{text!r} is not an A1 address")
            letters_2, digits_2 = letters_1, digits_1
        if bool(letters_1) != bool(letters_2) or bool(digits_1) != bool(digits_2):
            raise AddressError(f"{text!r} is not an A1 range")
        columns = sorted((column_number(letters_1), column_number(letters_2))) if letters_1 else [1, MAX_COLUMN]
        rows = sorted((int(digits_1), int(digits_2))) if digits_1 else [1, MAX_ROW]
        if not 1 <= rows[0] <= rows[1] <= MAX_ROW:
            raise AddressError(f"{text!r} has a row outside 1 to {MAX_ROW}")
        return cls(rows[0], columns[0], rows[1], columns[1])

    @property
    def size(self) -> int:
        """How many cells it covers."""
        return (self.last_row - self.first_row + 1) * (self.last_column - self.first_column + 1)

    def cells(self) -> Iterator[tuple[int, int]]:
        """Every ``(row, column)``, row-major. Clip a whole column to the used extent first."""
        for row in range(self.first_row, self.last_row + 1):
            for column in range(self.first_column, self.last_column + 1):
                yield row, column

    def contains(self, row: int, column: int) -> bool:
        return self.first_row <= row <= self.last_row and self.first_column <= column <= self.last_column

    def intersection(self, other: Range) -> Range | None:
        """The rectangle both cover, or None."""
        first_row, first_column = max(self[0], other[0]), max(self[1], other[1])
        last_row, last_column = min(self[2], other[2]), min(self[3], other[3])
        if first_row > last_row or first_column > last_column:
            return None
        return Range(first_row, first_column, last_row, last_column)

    def __str__(self) -> str:
        if self.first_row == 1 and self.last_row == MAX_ROW:
            return f"{column_letters(self.first_column)}:{column_letters(self.last_column)}"
        if self.first_column == 1 and self.last_column == MAX_COLUMN:
            return f"{self.first_row}:{self.last_row}"
        first, last = cell_name(self[0], self[1]), cell_name(self[2], self[3])
        return first if first == last else f"{first}:{last}"


def quote_sheet(name: str) -> str:
    """The worksheet name as a formula writes it: quoted, with doubled apostrophes, where it must be."""
    if _PLAIN_SHEET.fullmatch(name) and not _LOOKS_LIKE_CELL.fullmatch(name):
        return name
    return "'" + name.replace("'", "''") + "'"


def split_sheet(text: str) -> tuple[str | None, str]:
    """``"'My sheet'!A1" -> ("My sheet", "A1")``; no worksheet gives ``(None, text)``."""
    head, mark, tail = text.strip().rpartition("!")
    if not mark:
        return None, tail
    head = head.strip()
    if len(head) >= 2 and head[0] == head[-1] == "'":
        head = head[1:-1].replace("''", "'")
    return head, tail.strip()


class CellAddress(NamedTuple):
    """One cell of one worksheet of the workbook."""

    sheet: str
    row: int
    column: int

    @classmethod
    def parse(cls, text: str, default_sheet: str | None = None) -> CellAddress:
        """Read ``Model!D41`` or ``'My sheet'!$D$41``; a bare address belongs to `default_sheet`.

        Raises `AddressError` if it is no single cell, or if no worksheet is known.
        """
        sheet, address = split_sheet(text)
        sheet = default_sheet if sheet is None else sheet
        if sheet is None:
            raise AddressError(f"{text!r} names no worksheet")
        area = Range.parse(address)
        if area.size != 1:
            raise AddressError(f"{text!r} is not a single cell")
        return cls(sheet, area.first_row, area.first_column)

    def __str__(self) -> str:
        return f"{quote_sheet(self.sheet)}!{cell_name(self.row, self.column)}"

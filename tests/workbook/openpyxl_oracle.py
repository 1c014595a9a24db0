"""Precedents and dependents worked out with openpyxl alone: its reader, its tokenizer, its ranges."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from openpyxl.formula import Tokenizer
from openpyxl.formula.tokenizer import Token
from openpyxl.utils import range_boundaries
from openpyxl.worksheet.formula import ArrayFormula

MAX_ROW, MAX_COLUMN = 1_048_576, 16_384
Box = tuple[str, int, int, int, int]
"""Worksheet title, first row, first column, last row, last column."""
_PLAIN = re.compile(r"\$?[A-Z]{0,3}\$?[0-9]{0,7}(:\$?[A-Z]{0,3}\$?[0-9]{0,7})?")


class Unresolved(Exception):
    """A formula that this oracle does not understand: it is left out of the comparison."""


class Oracle:
    """References of the formulas of an openpyxl workbook that was loaded with its formulas."""

    def __init__(self, book: Any) -> None:
        self.book = book
        self.formulas: dict[tuple[str, int, int], str] = {}
        self.extents: dict[str, tuple[int, int]] = {}
        for sheet in book.worksheets:
            last_row = last_column = 0
            for (row, column), cell in sheet._cells.items():
                value = cell.value.text if isinstance(cell.value, ArrayFormula) else cell.value
                if value is None:
                    continue
                last_row, last_column = max(last_row, row), max(last_column, column)
                if cell.data_type == "f" and isinstance(value, str):
                    self.formulas[sheet.title, row, column] = value
            self.extents[sheet.title] = last_row, last_column

    def boxes(self, sheet: str, formula: str) -> list[Box]:
        """The ranges of a formula; raises `Unresolved` for structured, 3-D, dynamic and joined references."""
        tokens = Tokenizer(formula).items
        found: list[Box] = []
        for token in tokens:
            if token.type == Token.FUNC and token.value.upper().rstrip("(") in ("OFFSET", "INDIRECT"):
                raise Unresolved(formula)
            joined = token.type == Token.OP_IN and token.value in (":", " ")
            if joined or ("#" in token.value and "!" not in token.value):
                raise Unresolved(formula)
            if token.type == Token.OPERAND and token.subtype == Token.RANGE:
                found += self._operand(sheet, token.value)
        return found

    def _operand(self, sheet: str, text: str) -> Iterator[Box]:
        if "[" in text or "#" in text:
            raise Unresolved(text)
        title, mark, address = text.rpartition("!")
        title = title.strip("'").replace("''", "'") if mark else sheet
        if ":" in title or title not in self.book.sheetnames:
            raise Unresolved(text)
        if _PLAIN.fullmatch(address.upper()) and any(c.isdigit() or c == ":" for c in address):
            left, top, right, bottom = range_boundaries(address.upper())
            yield title, top or 1, left or 1, bottom or MAX_ROW, right or MAX_COLUMN
            return
        local = self.book[title].defined_names if title in self.book.sheetnames else {}
        name = next(
            (
                names[key]
                for names in (local, self.book.defined_names)
                for key in names
                if key.lower() == address.lower()
            ),
            None,
        )
        if name is None or "$" not in name.attr_text:
            raise Unresolved(text)
        yield from self.boxes(title, f"={name.attr_text}")

    def clipped(self, box: Box) -> set[tuple[str, int, int]]:
        """Its cells within the worksheet's extent."""
        title, top, left, bottom, right = box
        last_row, last_column = self.extents.get(title, (0, 0))
        return {
            (title, row, column)
            for row in range(top, min(bottom, last_row) + 1)
            for column in range(left, min(right, last_column) + 1)
        }

"""What openpyxl makes of a workbook: its cells beside ours, and references by its own tokenizer and ranges."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import openpyxl
from openpyxl.formula import Tokenizer
from openpyxl.formula.tokenizer import Token
from openpyxl.utils import range_boundaries
from openpyxl.utils.datetime import to_excel
from openpyxl.utils.escape import unescape
from openpyxl.worksheet.formula import ArrayFormula, DataTableFormula

from pytest_cellprose.workbook.model import Cell as OurCell
from pytest_cellprose.workbook.model import ErrorValue, Workbook, Worksheet
from pytest_cellprose.workbook.refs import Range

MAX_ROW, MAX_COLUMN = 1_048_576, 16_384
Box = tuple[str, int, int, int, int]
"""Worksheet title, first row, first column, last row, last column."""
_PLAIN = re.compile(r"\$?[A-Z]{0,3}\$?[0-9]{0,7}(:\$?[A-Z]{0,3}\$?[0-9]{0,7})?")


class Unresolved(Exception):
    """A formula that this oracle does not understand: it is left out of the comparison."""


class References:
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

    def boxes(self, sheet: str, formula: str, row: int = 0) -> list[Box]:
        """The ranges of a formula in this row; raises `Unresolved` for 3-D, dynamic and joined references."""
        tokens = Tokenizer(formula).items
        found: list[Box] = []
        for token in tokens:
            if token.type == Token.FUNC and token.value.upper().rstrip("(") in ("OFFSET", "INDIRECT"):
                raise Unresolved(formula)
            joined = token.type == Token.OP_IN and token.value in (":", " ")
            if joined or ("#" in token.value and not re.search(r"#[A-Z/0]+[!?]|\[#", token.value)):
                raise Unresolved(formula)
            if token.type == Token.OPERAND and token.subtype == Token.RANGE:
                found += self._operand(sheet, token.value, row)
        return found

    def _table(self, text: str, row: int) -> Box:
        match = re.fullmatch(r"(\w+)\[(.*)\]", text, re.DOTALL)
        tables = {
            table.displayName: (sheet, table) for sheet in self.book.worksheets for table in sheet.tables.values()
        }
        if match is None or match[1] not in tables or "'" in text or "]:[" in text:
            raise Unresolved(text)
        parts = match[2][1:-1].split("],[") if match[2].startswith("[") else [match[2]]
        sheet, table = tables[match[1]]
        left, top, right, bottom = range_boundaries(table.ref)
        first = top + (1 if table.headerRowCount is None else table.headerRowCount)
        last = bottom - (table.totalsRowCount or 0)
        for part in parts:
            if part == "#This Row":
                first = last = row
            elif part == "#All":
                first, last = top, bottom
            elif part == "#Headers":
                first = last = top
            elif part.startswith("#"):
                raise Unresolved(text)
            else:
                left = right = left + [column.name for column in table.tableColumns].index(part)
        return sheet.title, first, left, last, right

    def _operand(self, sheet: str, text: str, row: int) -> Iterator[Box]:
        if re.fullmatch(r"\w+\[.*\]", text, re.DOTALL):
            yield self._table(text, row)
            return
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

    def corners(self, box: Box) -> set[tuple[str, int, int]]:
        """A few cells of it: its first and last, within the worksheet's extent."""
        cells = sorted(self.clipped((box[0], box[1], box[2], min(box[3], box[1] + 50), min(box[4], box[2] + 50))))
        return {cells[0], cells[-1]} if cells else set()

    def resolvable(self) -> dict[tuple[str, int, int], list[Box]]:
        """The formulas that this oracle understands, with their ranges, by worksheet, row and column."""
        found = {}
        for (sheet, row, column), formula in self.formulas.items():
            try:
                found[sheet, row, column] = self.boxes(sheet, formula, row)
            except Unresolved:
                continue
        return found

    def referring(self, boxes: Mapping[tuple[str, int, int], list[Box]], cell: tuple[str, int, int]) -> set[Any]:
        """The formulas that refer to a cell, by looking at each."""
        title, row, column = cell
        return {
            place
            for place, found in boxes.items()
            if any(box[0] == title and box[1] <= row <= box[3] and box[2] <= column <= box[4] for box in found)
        }


def load(path: Path) -> tuple[Any, Any]:
    """The workbook with values, and with formulas: openpyxl needs two loads."""
    return openpyxl.load_workbook(path, data_only=True), openpyxl.load_workbook(path)


def differences(ours: Workbook, values: Any, formulas: Any) -> Iterator[tuple[str, str]]:
    """What of our workbook is not what openpyxl has: the kind of thing, and a text for people."""
    if [sheet.name for sheet in ours.worksheets] != values.sheetnames:
        yield "sheets", f"{[sheet.name for sheet in ours.worksheets]} / {values.sheetnames}"
    for theirs in values.worksheets:
        sheet = ours.sheet(theirs.title)
        if sheet is not None:
            for kind, text in _sheet_differences(sheet, theirs, formulas[theirs.title], values.epoch):
                yield kind, f"{sheet.name} {text}"
    expected = {
        (name, None): (defined.attr_text, bool(defined.hidden))
        for name, defined in values.defined_names.items()
        if not name.startswith("_xlnm.")
    }
    for theirs in values.worksheets:
        for name, defined in theirs.defined_names.items():
            expected[name, theirs.title] = (defined.attr_text, bool(defined.hidden))
    # openpyxl makes attributes of worksheets out of the built-in names.
    found = {
        (defined.name, defined.sheet): (defined.text, defined.hidden)
        for defined in ours.defined_names
        if not defined.name.startswith("_xlnm.")
    }
    if found != expected:
        yield "names", str({key: (found.get(key), expected.get(key)) for key in found.keys() ^ expected.keys()})


def _sheet_differences(sheet: Worksheet, values: Any, formulas: Any, epoch: Any) -> Iterator[tuple[str, str]]:
    if sheet.state != values.sheet_state:
        yield "state", f"{sheet.state} / {values.sheet_state}"
    found = {(row, column): cell for row, column, cell in sheet.cells()}
    expected = {}
    for place, cell in values._cells.items():
        formula = formulas._cells[place].value if formulas._cells[place].data_type == "f" else None
        if cell.value is not None or formula is not None:
            expected[place] = (cell, formula)
    # An empty text is no cell to openpyxl.
    extra = {at for at in found.keys() - expected.keys() if found[at].value != "" or found[at].formula is not None}
    if extra or expected.keys() - found.keys():
        yield "cells", f"only ours {sorted(extra)[:5]}, only openpyxl's {sorted(expected.keys() - found.keys())[:5]}"
    for place in found.keys() & expected.keys():
        for kind, text in _cell_differences(found[place], *expected[place], epoch):
            yield kind, f"{place} {text}"
    merged = sorted(map(str, sheet.merged)), sorted(map(str, values.merged_cells.ranges))
    if merged[0] != merged[1]:
        yield "merged", f"{merged[0]} / {merged[1]}"
    rows = [row for row, dimension in sorted(values.row_dimensions.items()) if dimension.hidden]
    if list(sheet.hidden_rows) != _spans(rows):
        yield "hidden rows", f"{sheet.hidden_rows} / {_spans(rows)}"
    columns = {
        column
        for dimension in values.column_dimensions.values()
        if dimension.hidden
        for column in range(dimension.min, dimension.max + 1)
    }
    if list(sheet.hidden_columns) != _spans(sorted(columns)):
        yield "hidden columns", f"{sheet.hidden_columns} / {_spans(sorted(columns))}"
    comments = {place: cell.comment.text for place, cell in values._cells.items() if cell.comment}
    if {(comment.row, comment.column): comment.text for comment in sheet.comments} != comments:
        yield "comments", f"{sheet.comments} / {comments}"
    tables = sorted((table.displayName, str(Range.parse(table.ref))) for table in values.tables.values())
    if sorted((table.name, str(table.ref)) for table in sheet.tables) != tables:
        yield "tables", f"{sheet.tables} / {tables}"


def _spans(numbers: list[int]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1] = (spans[-1][0], number)
        else:
            spans.append((number, number))
    return spans


def _cell_differences(ours: OurCell, theirs: Any, formula: Any, epoch: Any) -> Iterator[tuple[str, str]]:
    value = theirs.value
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time, datetime.timedelta)):
        serial = to_excel(value, epoch)
        same = isinstance(ours.value, (int, float)) and abs(ours.value - serial) < 2e-6  # it rounds to milliseconds
    elif value is None:
        same = ours.value in ("", None)
    elif isinstance(value, str):
        same = ours.value == unescape(value)  # it leaves _x000D_ and the like as stored
    else:
        same = ours.value == value and isinstance(ours.value, bool) == isinstance(value, bool)
    if not same or isinstance(ours.value, ErrorValue) != (theirs.data_type == "e"):
        yield "value", f"{ours.value!r} / {value!r}"
    if ours.number_format != (theirs.number_format or "General"):
        yield "format", f"{ours.number_format} / {theirs.number_format}"
    found = ours.formula
    if isinstance(formula, (ArrayFormula, DataTableFormula)):
        kind = "array" if isinstance(formula, ArrayFormula) else "dataTable"
        if found is None or (found.kind, found.ref) != (kind, Range.parse(formula.ref)):
            yield "formula", f"{found} / {kind} {formula.ref}"
        elif kind == "array" and f"={found.text}" != formula.text:
            yield "formula", f"{found.text} / {formula.text}"
    elif (None if found is None else f"={found.text}") != formula:
        yield "formula", f"{found} / {formula}"

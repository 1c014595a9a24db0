"""Truths worked out again with openpyxl alone: its tokenizer, its translator and its cells.

Nothing here uses the package, so that a mistake there cannot confirm itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from openpyxl import load_workbook
from openpyxl.formula import Tokenizer
from openpyxl.formula.translate import Translator
from openpyxl.utils import get_column_letter, range_boundaries
from openpyxl.worksheet.formula import ArrayFormula

Place = tuple[str, int, int]
"""Worksheet, row, column."""

_STRUCTURED = re.compile(r"(\w+)\[(?:\[#This Row\],)?\[?([^\[\]]+)\]+")


def split(text: str, home: str) -> tuple[str, str]:
    """`'My sheet'!A1:B2` -> worksheet and range."""
    sheet, mark, area = text.rpartition("!")
    if not mark:
        return home, area
    return (sheet[1:-1].replace("''", "'") if sheet.startswith("'") else sheet), area


class SecondPath:
    """One workbook as openpyxl sees it, formulas and stored results side by side."""

    def __init__(self, path: Path) -> None:
        self.formulas = load_workbook(path)
        self.results = load_workbook(path, data_only=True)
        self.sheets = [sheet.title for sheet in self.formulas.worksheets]

    @cached_property
    def texts(self) -> dict[Place, str]:
        """Every formula."""
        found = {}
        for sheet in self.formulas.worksheets:
            for row in sheet.iter_rows():
                for cell in row:
                    value = cell.value
                    if isinstance(value, ArrayFormula):
                        found[sheet.title, cell.row, cell.column] = str(value.text)
                    elif cell.data_type == "f":
                        found[sheet.title, cell.row, cell.column] = str(value)
        return found

    @cached_property
    def extents(self) -> dict[str, tuple[int, int]]:
        """Last row and column with a value or formula."""
        found = {}
        for sheet in self.formulas.worksheets:
            used = [(c.row, c.column) for row in sheet.iter_rows() for c in row if c.value is not None]
            found[sheet.title] = (max((r for r, _ in used), default=0), max((c for _, c in used), default=0))
        return found

    def value(self, text: str, home: str) -> Any:
        """The stored result; a date as ISO text."""
        sheet, address = split(text, home)
        value = self.results[sheet][address].value
        return value.date().isoformat() if isinstance(value, datetime) else value

    def cells(self, text: str, home: str) -> set[Place]:
        """The cells of a reference, clipped to the used extent."""
        sheet, area = split(text.replace("$", ""), home)
        first_column, first_row, last_column, last_row = range_boundaries(area)
        rows, columns = self.extents[sheet]
        return {
            (sheet, r, c)
            for r in range(first_row or 1, min(last_row or rows, rows) + 1)
            for c in range(first_column or 1, min(last_column or columns, columns) + 1)
        }

    def cell_set(self, texts: list[str], home: str) -> set[Place]:
        return {place for text in texts for place in self.cells(text, home)}

    def references(self, place: Place) -> set[Place]:
        """Every cell that the formula at `place` refers to."""
        found: set[Place] = set()
        for token in Tokenizer(self.texts[place]).items:
            if token.type == "OPERAND" and token.subtype == "RANGE":
                found |= self._resolve(token.value, place)
        return found

    def _resolve(self, text: str, place: Place) -> set[Place]:
        home, row, _ = place
        structured = _STRUCTURED.fullmatch(text)
        if structured:
            for sheet in self.formulas.worksheets:
                if structured[1] in sheet.tables:
                    table = sheet.tables[structured[1]]
                    left, top, _, bottom = range_boundaries(table.ref)
                    column = left + [c.name for c in table.tableColumns].index(structured[2])
                    rows = [row] if "#This Row" in text else range(top + 1, bottom + 1)
                    return {(sheet.title, r, column) for r in rows}
            raise AssertionError(f"no table for {text}")
        if text in self.formulas.defined_names:
            return self.cells(self.formulas.defined_names[text].attr_text, home)
        return self.cells(text, home)

    @cached_property
    def precedents(self) -> dict[Place, set[Place]]:
        return {place: self.references(place) for place in self.texts}

    @cached_property
    def dependents(self) -> dict[Place, set[Place]]:
        found: dict[Place, set[Place]] = {}
        for place, references in self.precedents.items():
            for reference in references:
                found.setdefault(reference, set()).add(place)
        return found

    @staticmethod
    def reach(start: Place, edges: dict[Place, set[Place]], reach: str) -> set[Place]:
        found = set(edges.get(start, set()))
        frontier = found if reach == "all" else set()
        while frontier:
            frontier = {further for place in frontier for further in edges.get(place, set())} - found
            found = found | frontier
        return found

    def hardcoded(self, text: str, home: str) -> set[Place]:
        """The definition of FORMAT.md section 5, naively, within a range."""
        return {place for place in self.cells(text, home) if self._is_hardcoded(place)}

    def _is_hardcoded(self, place: Place) -> bool:
        sheet, row, column = place
        cell = self.formulas[sheet].cell(row, column)
        if isinstance(cell.value, bool | date) or not isinstance(cell.value, int | float) or cell.is_date:
            return False
        for down, right in ((0, 1), (1, 0)):
            for before, after in ((1, 1), (1, 2), (2, 1)):
                first = (sheet, row - before * down, column - before * right)
                second = (sheet, row + after * down, column + after * right)
                if self._same_pattern(first, second) and self._length(first, down) >= 3:
                    return True
        return False

    def _same_pattern(self, first: Place, second: Place) -> bool:
        one, other = self.texts.get(first), self.texts.get(second)
        if one is None or other is None:
            return False
        return bool(Translator(one, origin=_a1(first)).translate_formula(_a1(second)) == other)

    def _length(self, place: Place, down: int) -> int:
        """How many cells of the place's column (or row) have its pattern."""
        sheet, row, column = place
        line = [p for p in self.texts if p[0] == sheet and (p[2] == column if down else p[1] == row)]
        return sum(self._same_pattern(place, other) for other in line)

    def displayed(self, sheet: str, merged: bool) -> dict[tuple[int, int], str]:
        """The texts of labels; if `merged`, a merged range has its first cell's text all over."""
        shown = {}
        for row in self.results[sheet].iter_rows():
            for cell in row:
                if cell.value is not None:
                    shown[cell.row, cell.column] = " ".join(str(cell.value).split())
        for area in self.formulas[sheet].merged_cells.ranges if merged else ():
            for r in range(area.min_row, area.max_row + 1):
                for c in range(area.min_col, area.max_col + 1):
                    if (area.min_row, area.min_col) in shown:
                        shown[r, c] = shown[area.min_row, area.min_col]
        return shown

    def truth(self, question: dict[str, Any]) -> Any:
        """The truth of a question (as a mapping), worked out anew: a value to 12 digits, or a set of cells."""
        kind, about, sheet = question["kind"], question["about"], question["sheet"]
        if kind == "value":
            value = self.value(about, sheet)
            return _rounded(value * 100 if question["unit"] == "percent" else value)
        if kind == "address":
            if "value" in about:
                return self.typed(sheet, about["value"])
            return self.meeting(sheet, about["row"], about["column"])
        if kind == "hardcode":
            return self.hardcoded(about, sheet)
        (start,) = self.cells(about, sheet)
        return self.reach(start, self.precedents if kind == "trace" else self.dependents, question["reach"])

    def stated(self, question: dict[str, Any]) -> Any:
        """The truth that the question file states, in the same form."""
        if question["kind"] == "value":
            return _rounded(question["answer"])
        return self.cell_set(question["answer"], question["sheet"])

    def meeting(self, sheet: str, row: Sequence[Any], column: Sequence[Any]) -> set[Place]:
        """Where the row and the column of the last labels meet, within what the labels before them span."""
        shown, spanned = self.displayed(sheet, merged=False), self.displayed(sheet, merged=True)

        def lines(labels: Sequence[Any], axis: int) -> set[int]:
            texts = [shown if n == len(labels) - 1 else spanned for n in range(len(labels))]
            found = [
                {place[axis] for place, text in where.items() if text == str(label)}
                for where, label in zip(texts, labels, strict=True)
            ]
            return set.intersection(*found)

        return {(sheet, r, c) for r in lines(row, 0) for c in lines(column, 1)}

    def typed(self, sheet: str, value: Any) -> set[Place]:
        """The cells where a constant is typed; dates as ISO text."""
        return {
            (sheet, cell.row, cell.column)
            for row in self.formulas[sheet].iter_rows()
            for cell in row
            if cell.value == value or (isinstance(cell.value, datetime) and str(cell.value)[:10] == value)
        }

    def near(self, sheet: str, value: Any) -> list[Any]:
        """Everything on the worksheet that shows the same, or does once it is rounded."""
        results = [cell.value for row in self.results[sheet].iter_rows() for cell in row]
        if isinstance(value, str):
            return [v for v in results if str(v) == value or str(v)[:10] == value]
        tolerance = 1 if abs(value) >= 1000 else abs(value) / 1000
        return [v for v in results if isinstance(v, int | float) and abs(v - value) < tolerance]

    def is_date(self, text: str, home: str) -> bool:
        sheet, address = split(text, home)
        return isinstance(self.results[sheet][address].value, datetime)


def _a1(place: Place) -> str:
    return f"{get_column_letter(place[2])}{place[1]}"


def _rounded(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return float(format(value, ".12g"))

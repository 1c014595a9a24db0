"""What a cell shows, and which cell is meant by what is shown around it.

One function for the offline reader and for the certification of questions; it works on a workbook that was
read from a file and on one that was decoded from a text.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Sequence

from pytest_cellprose.questions.about import RowAndColumn, Scalar, TypedValue
from pytest_cellprose.questions.values import folded, shortest
from pytest_cellprose.workbook.model import Cell, Workbook, Worksheet
from pytest_cellprose.workbook.number_formats import serial_text
from pytest_cellprose.workbook.patterns import Position
from pytest_cellprose.workbook.refs import CellAddress


def displayed(cell: Cell, date1904: bool = False) -> Scalar | None:
    """What a cell shows, as an answer gives it: a number, a boolean, text, an error's text, a date as ISO text.

    None if the file stores no result for the cell's formula.
    """
    value = cell.value
    if value is None or isinstance(value, bool | str):
        return value
    return serial_text(value, cell.number_format, date1904) or value


def locate(workbook: Workbook, about: RowAndColumn | TypedValue, sheet: str) -> list[CellAddress]:
    """The one cell of `sheet` that `about` describes; an empty list if there is none or more than one.

    `TypedValue`: the only cell with that constant, typed and not the result of a formula.

    `RowAndColumn`: the cell where a row and a column meet. The row is found label by label, from the rows in
    which a cell shows the first label. The next label leads on to those of these rows that show it too, or
    else from each of them to the first row below that shows it. In the end one row must be left. The column is
    found in the same way, from left to right. So ``["Costs", "Total"]`` is the first "Total" at or below
    "Costs", and under merged headings ``["H2", "Q3"]`` is the first "Q3" at or after "H2". Texts are compared
    as answers are, trimmed, white space folded and without regard to case; but where a cell shows a label in
    just that case, other spellings of it do not count. Numbers are compared by their shortest digits.
    """
    worksheet = workbook.sheet(sheet)
    if worksheet is None:
        return []
    if isinstance(about, TypedValue):
        found = [
            CellAddress(worksheet.name, row, column)
            for row, column, cell in worksheet.cells()
            if cell.formula is None and _shows(displayed(cell, workbook.date1904), about.value)
        ]
        return found if len(found) == 1 else []
    places = _places(worksheet, {_text(label) for label in (*about.row, *about.column)}, workbook.date1904)
    row = _led_to([{row for row, _ in places[_text(label)]} for label in about.row])
    column = _led_to([{column for _, column in places[_text(label)]} for label in about.column])
    return [] if row is None or column is None else [CellAddress(worksheet.name, row, column)]


def _places(worksheet: Worksheet, labels: set[str], date1904: bool) -> dict[str, list[Position]]:
    """Label -> the cells that show it."""
    as_written: dict[str, list[Position]] = {label: [] for label in labels}
    any_case: dict[str, list[Position]] = {label.casefold(): [] for label in labels}
    for row, column, cell in worksheet.cells():
        shown = displayed(cell, date1904)
        if shown is not None and (text := _text(shown)).casefold() in any_case:
            any_case[text.casefold()].append((row, column))
            if text in as_written:
                as_written[text].append((row, column))
    return {label: found or any_case[label.casefold()] for label, found in as_written.items()}


def _led_to(steps: Sequence[set[int]]) -> int | None:
    """The one row (or column) that the steps lead to, each the positions that show one label."""
    at = steps[0]
    for step in steps[1:]:
        onward = sorted(step)
        at = at & step or {onward[next_] for place in at if (next_ := bisect(onward, place)) < len(onward)}
    return next(iter(at)) if len(at) == 1 else None


def _text(shown: Scalar) -> str:
    """With white space folded, in the case it is shown in."""
    if isinstance(shown, bool):
        return str(shown).upper()
    return " ".join(shown.split()) if isinstance(shown, str) else shortest(shown) or ""


def _shows(shown: Scalar | None, value: Scalar) -> bool:
    if shown is None or isinstance(shown, bool) != isinstance(value, bool):
        return False
    if isinstance(value, int | float):
        # What is not written exactly is told apart at nine significant digits, as far as encodings keep them.
        return isinstance(shown, int | float) and math.isclose(shown, value, rel_tol=1e-9)
    return folded(_text(shown)) == folded(value)

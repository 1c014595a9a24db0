"""What a cell shows, and which cell is meant by what is shown around it.

One function for the offline reader and for the certification of questions; it works on a workbook that was
read from a file and on one that was decoded from a text.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Iterable, Sequence

from pytest_cellprose.questions.schema import RowAndColumn, Scalar, TypedValue
from pytest_cellprose.questions.scoring import folded, shortest
from pytest_cellprose.workbook.model import Cell, Workbook, Worksheet
from pytest_cellprose.workbook.number_formats import serial_text
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
    as answers are: trimmed, white space folded, without regard to case; numbers by their shortest digits.
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
    labels = {_text(label) for label in (*about.row, *about.column)}
    rows, columns = _positions(worksheet, labels, workbook.date1904)
    row = _led_to([rows[_text(label)] for label in about.row])
    column = _led_to([columns[_text(label)] for label in about.column])
    return [] if row is None or column is None else [CellAddress(worksheet.name, row, column)]


def _positions(
    worksheet: Worksheet, labels: Iterable[str], date1904: bool
) -> tuple[dict[str, set[int]], dict[str, set[int]]]:
    """Label -> the rows, and the columns, in which a cell shows it."""
    rows: dict[str, set[int]] = {label: set() for label in labels}
    columns: dict[str, set[int]] = {label: set() for label in rows}
    for row, column, cell in worksheet.cells():
        shown = displayed(cell, date1904)
        if shown is not None and (text := _text(shown)) in rows:
            rows[text].add(row)
            columns[text].add(column)
    return rows, columns


def _led_to(steps: Sequence[set[int]]) -> int | None:
    """The one row (or column) that the steps lead to, each the positions that show one label."""
    at = steps[0]
    for step in steps[1:]:
        onward = sorted(step)
        at = at & step or {onward[next_] for place in at if (next_ := bisect(onward, place)) < len(onward)}
    return next(iter(at)) if len(at) == 1 else None


def _text(shown: Scalar) -> str:
    if isinstance(shown, bool):
        return str(shown).casefold()
    return folded(shown if isinstance(shown, str) else shortest(shown) or "")


def _shows(shown: Scalar | None, value: Scalar) -> bool:
    if shown is None or isinstance(shown, bool) != isinstance(value, bool):
        return False
    if isinstance(value, int | float):
        # What is not written exactly is told apart at nine significant digits, as far as encodings keep them.
        return isinstance(shown, int | float) and math.isclose(shown, value, rel_tol=1e-9)
    return _text(shown) == folded(value)

"""`toon`: Token-Oriented Object Notation, written by its official library.

Each worksheet is an array of rows, each row an object of its number and its values under column letters:
the shape that TOON writes most briefly, as a table, and that carries addresses. Columns and rows without a
value are left out; TOON writes every other blank as ``null``.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pytest_cellprose.encodings.base import Encoding
from pytest_cellprose.encodings.values import ERROR, put
from pytest_cellprose.workbook.model import Cell, ErrorValue, Workbook, Worksheet
from pytest_cellprose.workbook.number_formats import serial_from_text, serial_text
from pytest_cellprose.workbook.refs import column_letters, column_number


def _library_version() -> str:
    try:
        return f"2+toon-format{version('toon-format')}"
    except PackageNotFoundError:
        return "2+absent"


def encode(workbook: Workbook) -> str:
    """TOON's own output with its default options, and a line end."""
    from toon_format import encode as toon

    document: dict[str, list[dict[str, Any]]] = {}
    for sheet in workbook.worksheets:
        name = sheet.name
        while name in document:  # only in damaged files, and no worksheet may be lost
            name += "'"
        document[name] = _rows(sheet, workbook.date1904)
    return toon(document) + "\n"


def _rows(sheet: Worksheet, date1904: bool) -> list[dict[str, Any]]:
    used = sorted({column for columns in sheet.rows.values() for column, cell in columns.items() if not _blank(cell)})
    letters = [(column, column_letters(column)) for column in used]
    return [
        {"row": row} | {letter: _value(columns.get(column), date1904) for column, letter in letters}
        for row, columns in sheet.rows.items()
        if not all(map(_blank, columns.values()))
    ]


def _blank(cell: Cell) -> bool:
    return cell.value is None or cell.value == ""


def _value(cell: Cell | None, date1904: bool) -> int | float | bool | str | None:
    if cell is None or _blank(cell):
        return None
    value = cell.value
    if isinstance(value, int | float) and not isinstance(value, bool):
        date = serial_text(value, cell.number_format, date1904, exact=True)
        return value if date is None else date
    return str(value) if isinstance(value, str) else value


def decode(text: str) -> Workbook:
    """TOON's own reading of it; a text like an ISO date or an error is taken for one."""
    from toon_format import decode as toon

    sheets = []
    document = toon(text)
    for name, rows in document.items():
        sheet = Worksheet(name)
        for values in rows:
            row = values.pop("row")
            for letter, value in values.items():
                if value is not None:
                    put(sheet, row, column_number(letter), _cell(value))
        sheets.append(sheet)
    return Workbook(tuple(sheets))


def _cell(value: Any) -> Cell:
    if not isinstance(value, str):
        return Cell(value)
    date = serial_from_text(value)
    if date is not None:
        return Cell(date[0], None, date[1])
    return Cell(ErrorValue(value)) if ERROR.fullmatch(value) else Cell(value)


TOON = Encoding("toon", _library_version(), "TOON", encode, decode, keeps=frozenset({"values", "addresses"}))

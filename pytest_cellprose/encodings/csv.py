"""`csv`: each worksheet as RFC 4180 lines under a ``## name`` heading.

A cell's place is its only address: line 1 under the heading is row 1, field 1 is column A. So leading and
inner blanks are kept (a row without cells is an empty line) and only trailing empty cells and rows are left
out. A stray cell in row 1,048,576 therefore stands after a million line ends: that is what csv means there,
a megabyte of text that costs next to no time.
"""

from __future__ import annotations

from collections.abc import Iterator
from csv import reader

from pytest_cellprose.encodings.base import Encoding
from pytest_cellprose.encodings.values import exact_text, put, read_value, sheet_heading
from pytest_cellprose.workbook.model import Workbook, Worksheet

_QUOTED = frozenset('",\r\n')


def encode(workbook: Workbook) -> str:
    """Exact stored values, ISO dates, ``TRUE``/``FALSE``, errors as stored; lines end in LF."""
    return "".join(_sheet(sheet, workbook.date1904) for sheet in workbook.worksheets)


def _sheet(sheet: Worksheet, date1904: bool) -> str:
    parts = [sheet_heading(sheet.name), "\n"]
    written = 0
    for row, columns in sheet.rows.items():
        fields: list[str] = []
        last = 0
        for column, cell in columns.items():
            text = exact_text(cell, date1904)
            if not text:
                continue
            fields.append("," * (column - max(last, 1)) + _field(text))
            last = column
        if not fields:
            continue
        parts += ["\n" * (row - written - 1), *fields, "\n"]
        written = row
    return "".join(parts)


def _field(text: str) -> str:
    # A text like a heading is quoted too: RFC 4180 allows it, and a cell must not pass for a worksheet's
    # name.
    if not _QUOTED.isdisjoint(text) or text.startswith("##"):
        return '"' + text.replace('"', '""') + '"'
    return text


def decode(text: str) -> Workbook:
    """Count lines and fields from A1 under each heading; a field's type is guessed from its text."""
    sheets: list[Worksheet] = []
    taken: list[str] = []
    row = 0
    for record in reader(_remembered(text, taken)):
        if taken[0].startswith("## "):
            sheets.append(Worksheet(taken[0][3:]))
            row = 0
        elif sheets:
            row += 1
            for column, field in enumerate(record, 1):
                if field:
                    put(sheets[-1], row, column, read_value(field))
        taken.clear()
    return Workbook(tuple(sheets))


def _remembered(text: str, taken: list[str]) -> Iterator[str]:
    """The lines, each added to `taken`, which is empty when a record begins: only there a heading can stand.

    A parsed record no longer tells quoted from bare, and a heading may hold quotes, so the parser gets a
    blank.
    """
    for line in text.split("\n"):
        heading = not taken and line.startswith("## ")
        taken.append(line)
        yield "\n" if heading else line + "\n"


CSV = Encoding("csv", "2", "CSV, one section per worksheet", encode, decode, keeps=frozenset({"values", "addresses"}))

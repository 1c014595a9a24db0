"""`markdown`: MarkItDown's layout written by this project, without what pandas does to the values.

A padded pipe table per worksheet under ``## name``, row 1 as its header, every row in its place. Unlike
MarkItDown's own output, blanks are blank, numbers are exact, errors and texts such as ``NA`` stay, and
pipes are escaped. Trailing empty cells and rows are left out, which GFM allows, so that a stray far cell
stays affordable.
"""

from __future__ import annotations

from pytest_cellprose.encodings.base import Encoding
from pytest_cellprose.encodings.gfm import escape_pipes, one_line, split_cells
from pytest_cellprose.encodings.values import exact_text, put, read_value, sheet_heading
from pytest_cellprose.workbook.model import Workbook, Worksheet


def encode(workbook: Workbook) -> str:
    """One section per worksheet, parted by a blank line; ends in LF."""
    return "\n".join(_sheet(sheet, workbook.date1904) for sheet in workbook.worksheets)


def _sheet(sheet: Worksheet, date1904: bool) -> str:
    rows: dict[int, str] = {}
    width = 0
    for row, columns in sheet.rows.items():
        cells: list[str] = []
        last = 0
        for column, cell in columns.items():
            text = escape_pipes(one_line(exact_text(cell, date1904)))
            if text:
                cells.append("|  " * (column - last - 1) + f"| {text} ")
                last = column
        if cells:
            rows[row] = "".join(cells) + "|\n"
            width = max(width, last)
    parts = [sheet_heading(sheet.name), "\n"]
    if rows:
        # GFM takes the lines for a table only if its header has a cell for each of the delimiter's.
        header = rows.pop(1, "|\n")
        parts += [header[:-1], "  |" * (width - len(split_cells(header)) + 2), "\n", "| --- " * width, "|\n"]
    written = 1
    for row, line in rows.items():
        parts += ["|  |\n" * (row - written - 1), line]
        written = row
    return "".join(parts)


def decode(text: str) -> Workbook:
    """Count lines and pipes from A1 under each heading; the delimiter line is no row."""
    sheets: list[Worksheet] = []
    line_number = 0
    for line in text.split("\n"):
        if line.startswith("## "):
            sheets.append(Worksheet(line[3:]))
            line_number = 0
        elif sheets and line.startswith("|"):
            line_number += 1
            if line_number == 2:
                continue
            row = line_number - (line_number > 1)
            for column, field in enumerate(split_cells(line)[1:], 1):
                if field := field.strip():
                    put(sheets[-1], row, column, read_value(field))
    return Workbook(tuple(sheets))


MARKDOWN = Encoding("markdown", "2", "Markdown tables", encode, decode, keeps=frozenset({"values", "addresses"}))

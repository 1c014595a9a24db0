"""Reads `cellprose_lean_gfm` and `cellprose_values` back into cells: `docs/FORMAT.md` from the other side."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import cast, get_args

from pytest_cellprose.encodings.gfm import split_cells
from pytest_cellprose.encodings.names import read_name
from pytest_cellprose.encodings.tables import read_table
from pytest_cellprose.encodings.values import read_value
from pytest_cellprose.workbook.formulas import tokens, translate
from pytest_cellprose.workbook.model import Cell, Comment, DefinedName, Formula, SheetKind, Workbook, Worksheet
from pytest_cellprose.workbook.refs import Range, column_number

_ROW = re.compile(r"([0-9]+)\|")
_FORMULA = re.compile(
    r"(?P<ranges>[A-Z0-9:,]+) (?:=(?P<text>.*?)|\{=(?P<array>.*?)\}(?P<each> each)?)"
    r"(?: except (?P<except>[A-Z0-9:,]+) hard-coded)?"
)
_TRAILER = re.compile(r"(text|tables|hidden|merged|notes): (.*)")
_NOTE = re.compile(r'([A-Z]+[0-9]+) "((?:[^"]|"")*)"')
_LINK = re.compile(r"(?:^|; )\[[0-9]+\]=")
_MARK = re.compile(rf" \((hidden|empty|{'|'.join(get_args(SheetKind))})\)\Z")


def decode(text: str) -> Workbook:
    """The workbook that the text describes, its formulas filled out.

    Dates come back as serials of the 1900 system under an ISO number format, rounded numbers as they are
    written, formulas as Excel shows them, the ``$`` of a formula that stands in one cell only not at all.
    """
    sheets: list[Worksheet] = []
    names: tuple[DefinedName, ...] = ()
    links: tuple[str, ...] = ()
    body: list[str] = []
    for line in text.split("\n"):
        if line.startswith("## "):
            if sheets:
                sheets[-1] = _body(sheets[-1], body)
            sheets.append(_heading(line[3:]))
            body = []
        elif sheets:
            body.append(line)
        elif line.startswith("names: "):
            parts = _split_outside_quotes(line.removeprefix("names: "))
            names = tuple(name for name in map(read_name, parts) if name is not None)
        elif line.startswith("links: "):
            links = tuple(_LINK.split(line.removeprefix("links: "))[1:])
    if sheets:
        sheets[-1] = _body(sheets[-1], body)
    return Workbook(tuple(sheets), names, links)


def _split_outside_quotes(text: str) -> list[str]:
    """``a=1; b="x; y"`` at each semicolon and blank that no string or quoted worksheet name holds."""
    parts = [""]
    after_semicolon = False
    for token in tokens(text):
        if after_semicolon and token.kind == "space":
            parts[-1] = parts[-1].removesuffix(";")
            parts.append("")
        else:
            parts[-1] += token.sheet + token.text
        after_semicolon = token.kind == "operator" and token.text == ";"
    return parts


def _heading(name: str) -> Worksheet:
    sheet = Worksheet(name)
    while match := _MARK.search(sheet.name):
        sheet.name = sheet.name[: match.start()]
        match match[1]:
            case "hidden":
                sheet.state = "hidden"
            case "empty":
                continue
            case kind:
                sheet.kind = cast(SheetKind, kind)
                break  # what stands before it is the name
    return sheet


def _body(sheet: Worksheet, lines: list[str]) -> Worksheet:
    """The worksheet with all that stands under its heading."""
    rows: dict[int, list[str]] = {}
    formulas: list[re.Match[str]] = []
    trailers: dict[str, str] = {}
    letters: list[str] = []
    for line in lines:
        if match := _ROW.match(line):
            rows[int(match[1])] = split_cells(line[match.end() :])
        elif line.startswith("||"):
            letters = line[2:].split("|")
        elif match := _TRAILER.fullmatch(line):
            trailers[match[1]] = match[2]
        elif match := _FORMULA.fullmatch(line):
            formulas.append(match)
    columns = [column_number(each) for each in letters]
    text_lines = [each for each in trailers.get("text", "").split(",") if each]
    text_columns = {column for each in text_lines if each[0].isalpha() for column in _span(each)}
    text_rows = {row for each in text_lines if each[0].isdecimal() for row in _span(each)}
    for row, texts in rows.items():
        sheet.rows[row] = {
            column: Cell(text) if column in text_columns or row in text_rows else _cell(text)
            for column, text in zip(columns, map(str.strip, texts), strict=False)
            if text
        }
    for match in formulas:
        _fill(sheet, match)
    sheet.rows = {row: dict(sorted(cells.items())) for row, cells in sorted(sheet.rows.items())}
    tables = (read_table(each, sheet) for each in trailers.get("tables", "").split("; "))
    return replace(
        sheet,
        tables=tuple(table for table in tables if table is not None),
        merged=tuple(_merged(trailers.get("merged", "").partition(" +")[0])),
        comments=tuple(
            Comment(area.first_row, area.first_column, note.replace('""', '"'))
            for address, note in _NOTE.findall(trailers.get("notes", ""))
            for area in [Range.parse(address)]
        ),
        hidden_rows=_hidden(trailers.get("hidden", ""), "rows "),
        hidden_columns=_hidden(trailers.get("hidden", ""), "cols "),
    )


def _cell(text: str) -> Cell:
    if text.startswith("'"):
        return Cell(text[1:])
    if text == "?":
        return Cell(None)
    return read_value(text)


def _fill(sheet: Worksheet, line: re.Match[str]) -> None:
    areas = [Range.parse(each) for each in line["ranges"].split(",")]
    first = areas[0]
    if line["array"] is not None and not line["each"]:
        kind = "dataTable" if line["array"].startswith("TABLE(") else "array"
        _set(sheet, first[0], first[1], Formula(line["array"], kind, first))  # type: ignore[arg-type]
        return
    skipped = {position for each in (line["except"] or "").split(",") if each for position in Range.parse(each).cells()}
    text = line["text"] if line["array"] is None else line["array"]
    for area in areas:
        for row, column in area.cells():
            if (row, column) in skipped:
                continue
            filled = translate(text, row - first.first_row, column - first.first_column)
            own = Range(row, column, row, column)
            _set(sheet, row, column, Formula(filled, "array", own) if line["each"] else Formula(filled))


def _set(sheet: Worksheet, row: int, column: int, formula: Formula) -> None:
    cells = sheet.rows.setdefault(row, {})
    # A formula that shows nothing gave an empty text: one without a stored result shows "?".
    cells[column] = cells.get(column, Cell(""))._replace(formula=formula)


def _merged(text: str) -> Iterator[Range]:
    for run in text.split():
        first, last = (Range.parse(each) for each in (run.split("..") * 2)[:2])
        height, width = first.last_row - first.first_row + 1, first.last_column - first.first_column + 1
        for row in range(first.first_row, last.last_row + 1, height):
            for column in range(first.first_column, last.last_column + 1, width):
                yield Range(row, column, row + height - 1, column + width - 1)


def _hidden(text: str, kind: str) -> tuple[tuple[int, int], ...]:
    """Spans of rows or columns, as ``rows 7,9-12; cols F +3 more`` gives them."""
    return tuple(
        (span[0], span[-1])
        for part in text.split("; ")
        if part.startswith(kind)
        for span in map(_span, part.removeprefix(kind).partition(" +")[0].split(","))
    )


def _span(text: str) -> range:
    """``9-12``, ``7``, ``B-D``: the numbers of rows or columns."""
    first, _, last = text.partition("-")
    ends = [int(end) if end.isdecimal() else column_number(end) for end in (first, last or first)]
    return range(ends[0], ends[1] + 1)

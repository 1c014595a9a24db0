"""A table of questions as somebody keeps it: CSV, TSV, JSON lines or a worksheet, read into rows of columns."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pytest_cellprose.questions.locate import displayed
from pytest_cellprose.questions.problem import Place, Problem
from pytest_cellprose.workbook.model import Workbook, WorkbookError

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t"}
WORKBOOKS = (".xlsx", ".xlsm")
DELIMITED = (".csv", ".tsv", ".txt")
JSON_LINES = (".jsonl", ".ndjson", ".json")


class TableError(ValueError):
    """A table that cannot be used; the message is one line: the file, where, and what to do."""

    def __init__(self, file: Path, expected: str, part: str = "") -> None:
        """`part`: of the file, such as ``line 3``."""
        self.problem = Problem(expected, Place(file=file, part=part))
        super().__init__(str(self.problem))


class Table(NamedTuple):
    """Rows of columns."""

    columns: tuple[str, ...]
    """Trimmed, in the table's order."""
    rows: tuple[Mapping[str, Any], ...]
    """Every row has every column; what a row does not have is ``""``. Rows without any content are left out."""
    typed: bool
    """Whether the file tells numbers from texts; of delimited text all is text."""


def read_table(path: Path, delimiter: str | None = None) -> Table:
    """Read a table by its file name's ending; raises `TableError`.

    `delimiter`: a character, or a name of `DELIMITERS`; by default the most frequent of comma, semicolon and tab
    in the first line, and a tab for ``.tsv``. RFC 4180 quoting, a byte order mark is no part of the header, and
    short rows are filled up.
    """
    ending = path.suffix.lower()
    if ending in WORKBOOKS:
        table = _worksheet(path)
    elif ending in DELIMITED:
        table = _delimited(path, delimiter)
    elif ending in JSON_LINES:
        table = _json(path)
    else:
        endings = ", ".join((*DELIMITED, *JSON_LINES, *WORKBOOKS))
        raise TableError(path, f"not a kind of table that is known: expected {endings}")
    if not table.rows:
        raise TableError(path, "no rows: expected a header and at least one question")
    return table


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TableError(path, f"not UTF-8 text (byte {error.start}): save it as UTF-8") from None
    except OSError as error:
        raise TableError(path, f"cannot be read: {error.strerror or error}") from None


def _delimited(path: Path, delimiter: str | None) -> Table:
    text = _text(path)
    if delimiter is None:
        delimiter = "\t" if path.suffix.lower() == ".tsv" else sniffed(text)
    delimiter = DELIMITERS.get(delimiter, delimiter)
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise TableError(path, f"delimiter {delimiter!r}: expected one character, or {', '.join(DELIMITERS)}")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        lines = [(reader.line_num, fields) for fields in reader]
    except csv.Error as error:
        raise TableError(path, f"{error}: quote as RFC 4180 does", f"line {reader.line_num}") from None
    return _from_lines(path, lines, "line", typed=False)


def sniffed(text: str) -> str:
    """The most frequent of comma, semicolon and tab in the first line; the comma if there is none."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    return max(DELIMITERS.values(), key=first.count)


def _worksheet(path: Path) -> Table:
    """The first worksheet; its first row that is not blank is the header. Cells are taken as they are shown."""
    try:
        workbook = Workbook.read(path)
    except WorkbookError as error:
        raise TableError(path, error.reason) from None
    sheet = next((sheet for sheet in workbook.worksheets if sheet.kind == "worksheet"), None)
    lines = []
    for number, cells in sheet.rows.items() if sheet is not None else ():
        shown = {column: displayed(cell, workbook.date1904) for column, cell in cells.items()}
        lines.append((number, ["" if shown.get(at) is None else shown[at] for at in range(1, max(cells) + 1)]))
    return _from_lines(path, lines, "row", typed=True)


def _from_lines(path: Path, lines: Iterable[tuple[int, Sequence[Any]]], unit: str, *, typed: bool) -> Table:
    filled = [(number, fields) for number, fields in lines if any(not _is_blank(field) for field in fields)]
    if not filled:
        return Table((), (), typed)
    header = [str(name).strip() for name in filled[0][1]]
    while header and not header[-1]:
        header.pop()
    _check_header(path, header)
    rows = []
    for number, fields in filled[1:]:
        if any(not _is_blank(field) for field in fields[len(header) :]):
            raise TableError(path, f"{len(fields)} fields, but the header has {len(header)}", f"{unit} {number}")
        padded = [*fields[: len(header)], *[""] * (len(header) - len(fields))]
        rows.append(dict(zip(header, padded, strict=True)))
    return Table(tuple(name for name in header if name), tuple(rows), typed)


def _check_header(path: Path, header: Sequence[str]) -> None:
    repeated = [name for name, times in Counter(header).items() if name and times > 1]
    if repeated:
        raise TableError(path, f"more than one column {repeated[0]!r}: give each a name of its own")


def _json(path: Path) -> Table:
    """JSON lines, or one list; an object a row."""
    text = _text(path)
    rows: list[Any] = []
    if text.lstrip().startswith("["):
        try:
            rows = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise TableError(path, f"not JSON: {error}") from None
    else:
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                try:
                    rows.append(json.loads(line))
                except (ValueError, RecursionError) as error:
                    raise TableError(path, f"not JSON: {error}", f"line {number}") from None
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            raise TableError(path, "expected an object with a value for each column", f"row {number}")
    trimmed = [{name.strip(): value for name, value in row.items()} for row in rows]
    columns = tuple(dict.fromkeys(name for row in trimmed for name in row))
    filled = tuple(
        {name: "" if row.get(name) is None else row[name] for name in columns}
        for row in trimmed
        if not all(_is_blank(value) for value in row.values())
    )
    return Table(columns, filled, typed=True)


def _is_blank(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())

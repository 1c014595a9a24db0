"""`cellprose_lean_gfm`: a table per worksheet with its addresses, then one line per formula pattern.

`docs/FORMAT.md` specifies it, section by section; the functions here follow that order. `cellprose_values`
is the same without formulas.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import get_args

from pytest_cellprose.encodings.base import Encoding, Kept, Told
from pytest_cellprose.encodings.cellprose_decoder import decode
from pytest_cellprose.encodings.cellprose_values import number_text, reads_as_another_kind, value_text
from pytest_cellprose.encodings.gfm import escape_cell, one_line
from pytest_cellprose.encodings.names import name_text, names_in_use
from pytest_cellprose.encodings.tables import table_text
from pytest_cellprose.encodings.values import sheet_heading
from pytest_cellprose.workbook.displayed import display
from pytest_cellprose.workbook.formulas import tokens
from pytest_cellprose.workbook.model import Cell, Comment, DefinedName, ErrorValue, SheetKind, Workbook, Worksheet
from pytest_cellprose.workbook.number_formats import serial_text
from pytest_cellprose.workbook.patterns import (
    Pattern,
    Position,
    cover,
    hardcoded_cells,
    spans,
    spilled_cells,
    worksheet_patterns,
)
from pytest_cellprose.workbook.refs import Range, cell_name, column_letters

ADDRESSES_LEGEND = "Column letters and row numbers give cell addresses."
FORMULAS_LEGEND = " Below each table, 'C3:F9 =f' means f is C3's formula, filled over the range."
MARKS = tuple(f" ({word})" for word in ("hidden", "empty", *get_args(SheetKind)))

TEXT_LINE_FROM = 4
"""So many apostrophes in a column or row cost more than naming it once."""
SHORTEST_RUN_OF_MERGED = 3
MOST_HIDDEN = 30
MOST_MERGED = 40
LONGEST_NOTE = 200


def encode(workbook: Workbook, *, formulas: bool = True) -> str:
    """The text of a whole workbook; never shortened. Without `formulas`, values only."""
    patterns = [worksheet_patterns(sheet) if formulas else () for sheet in workbook.worksheets]
    blocks = [list(_prologue(workbook, patterns))]
    for sheet, its_patterns in zip(workbook.worksheets, patterns, strict=True):
        blocks += _sheet(sheet, its_patterns, workbook.date1904)
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


# 1 Prologue


def _prologue(workbook: Workbook, patterns: Sequence[Sequence[Pattern]]) -> Iterator[str]:
    if any(sheet.rows for sheet in workbook.worksheets):
        yield ADDRESSES_LEGEND + (FORMULAS_LEGEND if any(patterns) else "")
    texts = [pattern.formula.text for sheet in patterns for pattern in sheet]
    names = names_in_use(workbook.defined_names, texts)
    yield from _names(names)
    yield from _links(workbook.external_links, [*texts, *(name.text for name in names)])


def _names(names: Sequence[DefinedName]) -> Iterator[str]:
    if names:
        yield "names: " + "; ".join(without_dollars(name_text(name)) for name in names)


def _links(books: Sequence[str], formulas: Sequence[str]) -> Iterator[str]:
    """The external workbooks that formulas refer to."""
    links = [
        f"[{number}]={_base_name(book)}"
        for number, book in enumerate(books, 1)
        if any(f"[{number}]" in formula for formula in formulas)
    ]
    if links:
        yield "links: " + "; ".join(links)


def _base_name(path: str) -> str:
    return one_line(path.replace("\\", "/").rpartition("/")[2])


# 2 Sheet


def _sheet(sheet: Worksheet, patterns: Sequence[Pattern], date1904: bool) -> Iterator[list[str]]:
    """The heading with the table, and what is below the table: a blank line between ends a GFM table."""
    text_lines: list[str] = []
    grid = list(_grid(sheet, date1904, text_lines))
    yield [sheet_heading(sheet.name) + _marks(sheet), *grid]
    yield [
        *(_formula_line(sheet, pattern) for pattern in patterns),
        *_texts(text_lines),
        *_tables(sheet),
        *_hidden(sheet),
        *_merged(sheet),
        *_notes(sheet, hardcoded_cells(sheet, patterns)),
    ]


def _marks(sheet: Worksheet) -> str:
    marks = ""
    if sheet.kind != "worksheet" or sheet.name.endswith(MARKS):
        marks = f" ({sheet.kind})"  # parts a name that ends like a mark from the marks
    if sheet.kind == "worksheet" and not sheet.rows:
        marks += " (empty)"
    if sheet.state != "visible":
        marks += " (hidden)"
    return marks


# 3 Grid


def _grid(sheet: Worksheet, date1904: bool, text_lines: list[str]) -> Iterator[str]:
    """Header, delimiter and a line per row that shows something.

    Fills in `text_lines`: the columns, then the rows, whose texts go without their apostrophes.
    """
    spilled = spilled_cells(sheet)
    rows: dict[int, dict[int, str]] = {}
    quoted: list[Position] = []
    mixed_columns: set[int] = set()
    mixed_rows: set[int] = set()
    used: set[int] = set()
    for row, columns in sheet.rows.items():
        shown: dict[int, str] = {}
        for column, cell in columns.items():
            value = cell.value
            if isinstance(value, str) and not isinstance(value, ErrorValue):
                text = escape_cell(one_line(value))
                if text and reads_as_another_kind(text):
                    quoted.append((row, column))
            else:
                text = value_text(cell, (row, column) not in spilled, date1904)
                mixed_columns.add(column)
                mixed_rows.add(row)
            if text:
                shown[column] = text
        if shown:
            rows[row] = shown
            used.update(shown)
    text_columns = _mostly_quoted((column for _, column in quoted), mixed_columns)
    quoted = [(row, column) for row, column in quoted if column not in text_columns]
    text_rows = _mostly_quoted((row for row, _ in quoted), mixed_rows)
    for row, column in quoted:
        if row not in text_rows:
            rows[row][column] = "'" + rows[row][column]
    text_lines += _spans((column_letters(a), column_letters(b)) for a, b in spans(sorted(text_columns)))
    text_lines += _spans((str(a), str(b)) for a, b in spans(sorted(text_rows)))
    if not rows:
        return
    places = {column: place for place, column in enumerate(sorted(used), 1)}
    yield "||" + "|".join(map(column_letters, places))
    yield "-" + "|-" * len(places)
    for row, shown in rows.items():
        parts = [str(row)]
        last = 0
        for column, text in shown.items():
            place = places[column]
            parts.append("|" * (place - last))
            if text[0].isalpha():
                parts.append(" ")  # most words are one token with the blank before them, and more without it
            parts.append(text)
            last = place
        yield "".join(parts)


def _mostly_quoted(lines: Iterable[int], mixed: set[int]) -> set[int]:
    """The columns (or rows) of texts only that would need `TEXT_LINE_FROM` apostrophes or more."""
    return {line for line, times in Counter(lines).items() if times >= TEXT_LINE_FROM and line not in mixed}


# 5 Formulas


def _formula_line(sheet: Worksheet, pattern: Pattern) -> str:
    formula = pattern.formula
    ranges = pattern.ranges
    text = display(formula.text, own_table=_table_around(sheet, ranges))
    fills = len(pattern.cells) > 1
    if not fills:
        text = without_dollars(text)
    line = f"{_list(ranges)} "
    if formula.kind == "normal":
        line += f"={text}"
    else:
        line += f"{{={text}}}"
        if fills:
            line += " each"
    if pattern.hardcoded:
        line += f" except {_list(cover(pattern.hardcoded))} hard-coded"
    return line


def _table_around(sheet: Worksheet, ranges: Sequence[Range]) -> str:
    """The table that holds all these cells, where ``[@x]`` says enough; empty if there is none."""
    for table in sheet.tables:
        if all(table.ref.intersection(area) == area for area in ranges):
            return table.name
    return ""


def without_dollars(formula: str) -> str:
    """The formula with every reference relative; strings and worksheet names keep their ``$``."""
    if "$" not in formula:
        return formula
    return "".join(
        token.sheet + (token.text.replace("$", "") if token.kind == "reference" else token.text)
        for token in tokens(formula)
    )


def _list(ranges: Iterable[Range]) -> str:
    return ",".join(map(str, ranges))


# 6 Trailers


def _texts(lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield "text: " + ",".join(lines)


def _tables(sheet: Worksheet) -> Iterator[str]:
    if sheet.tables:
        yield "tables: " + "; ".join(map(table_text, sheet.tables))


def _hidden(sheet: Worksheet) -> Iterator[str]:
    if not sheet.rows or not (sheet.hidden_rows or sheet.hidden_columns):
        return
    columns = [column for cells in sheet.rows.values() for column in (next(iter(cells)), next(reversed(cells)))]
    parts = []
    rows = _clipped(sheet.hidden_rows, min(sheet.rows), max(sheet.rows))
    if rows:
        parts.append("rows " + _first(_spans((str(a), str(b)) for a, b in rows)))
    cols = _clipped(sheet.hidden_columns, min(columns), max(columns))
    if cols:
        parts.append("cols " + _first(_spans((column_letters(a), column_letters(b)) for a, b in cols)))
    if parts:
        yield "hidden: " + "; ".join(parts)


def _clipped(lines: Iterable[tuple[int, int]], first: int, last: int) -> list[tuple[int, int]]:
    return [(max(a, first), min(b, last)) for a, b in lines if a <= last and b >= first]


def _spans(ends: Iterable[tuple[str, str]]) -> list[str]:
    return [first if first == last else f"{first}-{last}" for first, last in ends]


def _first(texts: Sequence[str]) -> str:
    return ",".join(texts[:MOST_HIDDEN]) + _more(len(texts) - MOST_HIDDEN)


def _more(left: int) -> str:
    return f" +{left} more" if left > 0 else ""


def _merged(sheet: Worksheet) -> Iterator[str]:
    areas = [area for area in sheet.merged if sheet.cell(area.first_row, area.first_column) is not None]
    if areas:
        runs = [str(first) if first == last else f"{first}..{last}" for first, last in merged_runs(areas)]
        yield "merged: " + " ".join(runs[:MOST_MERGED]) + _more(len(runs) - MOST_MERGED)


def merged_runs(areas: Iterable[Range]) -> list[tuple[Range, Range]]:
    """First and last of each run of ranges of one shape, side by side or, what is left, one below the other."""
    left = dict.fromkeys(sorted(areas))
    runs = []
    for sideways in (True, False):
        for area in list(left):
            run = [area]
            while (following := _following(run[-1], sideways)) in left:
                run.append(following)
            if area in left and len(run) >= SHORTEST_RUN_OF_MERGED:
                runs.append((area, run[-1]))
                for each in run:
                    del left[each]
    return sorted([*runs, *((area, area) for area in left)])


def _following(area: Range, sideways: bool) -> Range:
    height = area.last_row - area.first_row + 1
    width = area.last_column - area.first_column + 1
    down, right = (0, width) if sideways else (height, 0)
    return Range(area.first_row + down, area.first_column + right, area.last_row + down, area.last_column + right)


_THREADED = re.compile(r"\A\[[^\]]*\].*?linkid=870924\s*\w+:\s*", re.DOTALL)
"""The page that a threaded comment refers older versions of Excel to, before it comes to the point."""


def _notes(sheet: Worksheet, hardcoded: Iterable[Position]) -> Iterator[str]:
    """What people wrote about cells that they typed over a formula; other notes cost more than they tell."""
    notes = []
    for row, column, text in _noted(sheet, hardcoded):
        shown = one_line(_THREADED.sub("", text))
        if len(shown) > LONGEST_NOTE:
            shown = shown[:LONGEST_NOTE].rstrip() + "…"
        if shown:
            notes.append(f'{cell_name(row, column)} "{shown.replace(chr(34), chr(34) * 2)}"')
    if notes:
        yield "notes: " + "; ".join(notes)


def _noted(sheet: Worksheet, hardcoded: Iterable[Position]) -> list[Comment]:
    wanted = set(hardcoded)
    return [comment for comment in sorted(sheet.comments) if (comment.row, comment.column) in wanted]


# What is not in the text


def told(workbook: Workbook, *, formulas: bool = True) -> Told:
    """The comments that section 6 writes, and how many numbers section 4 rounds."""
    comments = {
        (number, comment.row, comment.column)
        for number, sheet in enumerate(workbook.worksheets)
        if formulas and sheet.comments
        for comment in _noted(sheet, hardcoded_cells(sheet))
    }
    rounded = sum(_rounded(sheet, workbook.date1904) for sheet in workbook.worksheets)
    return Told(tables=True, comments=frozenset(comments), rounded=rounded)


def _rounded(sheet: Worksheet, date1904: bool) -> int:
    spilled = spilled_cells(sheet)
    return sum(
        _is_rounded(cell, cell.formula is None and (row, column) not in spilled, date1904)
        for row, column, cell in sheet.cells()
    )


def _is_rounded(cell: Cell, typed: bool, date1904: bool) -> bool:
    value = cell.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if abs(value) < 10**15 and value == int(value):
        return False
    if cell.number_format != "General" and serial_text(value, cell.number_format, date1904) is not None:
        return False
    return float(number_text(value, typed)) != value


_KEPT_WITHOUT_FORMULAS: frozenset[Kept] = frozenset({"values", "addresses", "merged", "hidden"})
VERSION = "0.5"

CELLPROSE_LEAN_GFM = Encoding(
    "cellprose_lean_gfm",
    VERSION,
    "Markdown tables with cell addresses, and formulas",
    encode,
    decode,
    keeps=frozenset({*_KEPT_WITHOUT_FORMULAS, "formulas", "names"}),
    tells=told,
)
CELLPROSE_VALUES = Encoding(
    "cellprose_values",
    VERSION,
    "Markdown tables with cell addresses",
    partial(encode, formulas=False),
    decode,
    keeps=_KEPT_WITHOUT_FORMULAS,
    tells=partial(told, formulas=False),
)

"""One worksheet's XML into cells: the part of reading where the time goes (ECMA-376 part 1, §18.3.1)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from xml.parsers import expat

from pytest_cellprose.workbook.iso_dates import iso_serial
from pytest_cellprose.workbook.model import Cell, ErrorValue, Formula, SharedFormula, SharedGroup, Value
from pytest_cellprose.workbook.number_formats import date_kind
from pytest_cellprose.workbook.package import Attributes, Package, PackageError, boolean, integer, main_names, unescape
from pytest_cellprose.workbook.refs import MAX_COLUMN, MAX_ROW, AddressError, Range, cell_name, column_number
from pytest_cellprose.workbook.rich_values import FALLBACK

Spans = list[tuple[int, int]]


@dataclass(slots=True)
class SheetContent:
    """What a worksheet part holds; the fields are those of `Worksheet`."""

    rows: dict[int, dict[int, Cell]] = field(default_factory=dict)
    merged: list[Range] = field(default_factory=list)
    hidden_rows: Spans = field(default_factory=list)
    hidden_columns: Spans = field(default_factory=list)
    data_validations: list[Range] = field(default_factory=list)
    pictures: list[tuple[int, int]] = field(default_factory=list)


class CellTypes(NamedTuple):
    """What the cells of all worksheets point into."""

    strings: Sequence[str]
    """The shared strings."""
    formats: Sequence[str]
    """Number format codes by cell style."""
    date1904: bool
    rich_value: Callable[[str], Value]
    """What stands behind a ``#VALUE!`` with this ``vm``."""


_NAMES = main_names(
    "c", "v", "f", "is", "t", "rPh", "row", "col", "mergeCell", "dataValidation", "sheetFormatPr"
)  # fmt: skip
_CELL = re.compile(r"\$?([A-Za-z]{1,3})\$?([0-9]{1,7})")


def read_sheet(package: Package, part: str, types: CellTypes) -> SheetContent:
    """Read one worksheet part in one pass.

    The handlers do as little as a cell allows, since their calls are most of the cost: there is none for the
    end of an element except inside text, whose own white space counts; a cell is finished when the next
    element that is not its own begins.
    """
    content = SheetContent()
    rows = content.rows
    strings = types.strings
    general = types.formats[0] if types.formats else "General"  # no s attribute is the first style
    formats = {str(index): code for index, code in enumerate(types.formats)}
    columns: dict[str, int] = {}
    groups: dict[str, SharedGroup] = {}
    orphans: list[tuple[int, int, SharedGroup]] = []
    shown_rows: Spans = []
    rows_hidden_by_default = False
    ordered = True
    new_cell = tuple.__new__

    row = column = 0
    row_text = ""
    cells: dict[int, Cell] = {}
    # The cell that is being read
    is_open = False
    cell_type: str | None = None
    style: str | None = None
    value_metadata: str | None = None
    has_value = False
    formula_attributes: Attributes | None = None
    formula_text = ""
    formula_is_last = False
    string = ""
    in_inline = in_phonetic = False
    pieces: list[str] = []
    clear = pieces.clear
    local_name = _NAMES.get
    parser: expat.XMLParserType

    def start(name: str, attributes: Attributes) -> None:
        nonlocal row, column, row_text, cells, is_open, cell_type, style, has_value, ordered, string
        nonlocal formula_attributes, formula_text, in_inline, in_phonetic, rows_hidden_by_default, value_metadata
        nonlocal formula_is_last
        kind = local_name(name)
        if kind == "c":
            if is_open:
                finish()
            place = attributes.get("r")
            if place is None:
                column += 1
            else:
                before = column
                at = columns.get(place.removesuffix(row_text))
                column = locate(place) if at is None else at
                if column <= before:
                    ordered = False
            cell_type = attributes.get("t")
            style = attributes.get("s")
            if cell_type == "e":
                value_metadata = attributes.get("vm")
            is_open = True
            has_value = False
            clear()
        elif kind == "v":
            has_value = True
            if formula_attributes is not None:
                formula_text = "".join(pieces)
                clear()
            if cell_type == "str" or cell_type == "inlineStr":
                clear()
                parser.EndElementHandler = end
        elif kind == "f":
            if has_value:  # the wrong way round, but readable
                string = string or "".join(pieces)
                formula_is_last = True
            formula_attributes = attributes
            clear()
        elif kind == "row":
            if is_open:
                finish()
            if cells:
                rows[row] = cells
            before = row
            row_text = attributes.get("r", "")
            row = integer(attributes, "r", row + 1) if row_text else row + 1
            if not 1 <= row <= MAX_ROW:
                raise PackageError(f"row {row} is outside 1 to {MAX_ROW}")
            if row <= before:
                ordered = False
            cells = rows.get(row) or {}
            column = 0
            if len(attributes) > 1 and "hidden" in attributes and boolean(attributes, "hidden"):
                add_span(content.hidden_rows, row, row)
            elif rows_hidden_by_default:
                add_span(shown_rows, row, row)
        elif kind == "is":
            if formula_attributes is not None and not has_value:
                formula_text = "".join(pieces)
            clear()
            string = ""
            parser.EndElementHandler = end
            has_value = in_inline = True
        elif kind == "t":
            clear()
        elif kind == "rPh":
            in_phonetic = True
        else:
            if is_open and not in_inline:
                finish()
            if kind == "mergeCell":
                add_ranges(content.merged, attributes.get("ref", ""))
            elif kind == "dataValidation":
                add_ranges(content.data_validations, attributes.get("sqref", ""))
            elif kind == "col" and boolean(attributes, "hidden"):
                last = min(integer(attributes, "max", MAX_COLUMN), MAX_COLUMN)
                add_span(content.hidden_columns, integer(attributes, "min", 1), last)
            elif kind == "sheetFormatPr":
                rows_hidden_by_default = boolean(attributes, "zeroHeight")

    def end(name: str) -> None:
        nonlocal string, in_inline, in_phonetic
        kind = _NAMES.get(name)
        if kind == "t":
            if not in_phonetic:
                string += "".join(pieces)
            clear()
        elif kind == "v":
            string = string or "".join(pieces)
            clear()
            parser.EndElementHandler = None
        elif kind == "rPh":
            in_phonetic = False
        elif kind == "is":
            in_inline = False
            parser.EndElementHandler = None

    def locate(place: str) -> int:
        """The column of a cell whose address is met for the first time, or which is not in the row it says."""
        nonlocal row, row_text, cells, ordered
        match = _CELL.fullmatch(place)
        try:
            if match is None:
                raise AddressError(f"{place!r} is not a cell")
            found, its_row = column_number(match[1]), int(match[2])
        except AddressError as problem:
            raise PackageError(str(problem)) from None
        if its_row != row:
            if not 1 <= its_row <= MAX_ROW:
                raise PackageError(f"{place!r} is not a cell")
            if cells:
                rows[row] = cells
            ordered = False
            row = its_row
            cells = rows.get(row) or {}
        row_text = match[2]
        columns[match[1]] = found
        return found

    def finish() -> None:
        nonlocal is_open, formula_attributes, formula_text, formula_is_last, string
        is_open = False
        if formula_attributes is None and not has_value:  # a style only
            return
        if formula_attributes is None and cell_type is None:  # most cells of most worksheets
            text = pieces[0] if len(pieces) == 1 else "".join(pieces)
            value: Value = int(text) if text.isdecimal() and len(text) < 16 else number(text)
            if value is not None:
                code = general if style is None else formats.get(style, "General")
                cells[column] = new_cell(Cell, (value, None, code))
            return
        formula: Formula | None = None
        if formula_attributes is not None:
            if formula_is_last or not has_value:
                formula_text = "".join(pieces)
                clear()
                formula_is_last = False
            formula = make_formula(formula_attributes, formula_text.rstrip().removeprefix("="))
            formula_attributes = None
            formula_text = ""
        value = None
        code = general if style is None else formats.get(style, "General")
        if has_value:
            if cell_type is None or cell_type == "n":
                text = string or "".join(pieces)
                value = int(text) if text.isdecimal() and len(text) < 16 else number(text)
            elif cell_type == "s":
                value = shared_string((string or "".join(pieces)).strip())
            elif cell_type == "str" or cell_type == "inlineStr":
                value = unescape(string)
            else:
                value, code = special(cell_type, (string or "".join(pieces)).strip(), code)
            string = ""
        if value is not None or formula is not None:
            cells[column] = new_cell(Cell, (value, formula, code))

    def shared_string(index: str) -> str | None:
        if index.isdecimal():
            try:
                return strings[int(index)]
            except (ValueError, IndexError):  # more digits than Python reads, or than there are strings
                pass
        elif not index:
            return None
        raise PackageError(
            f"cell {cell_name(row, column)} of {part} refers to shared string {index[:20]!r},"
            f" and there are {len(strings)}"
        )

    def special(kind: str, text: str, code: str) -> tuple[Value, str]:
        """Booleans, errors and ISO dates; of no known type: the text."""
        if not text:
            return None, code
        if kind == "b":
            return text.lower() in ("1", "true"), code
        if kind == "e":
            if value_metadata is None or text != FALLBACK:
                return ErrorValue(text), code
            value = types.rich_value(value_metadata)
            if value is None:
                content.pictures.append((row, column))
            return value, code
        if kind == "d":
            found = iso_serial(text, types.date1904)
            if found is None:
                return number(text), code
            serial, default = found
            return serial, code if date_kind(code) else default
        return text, code

    def make_formula(attributes: Attributes, text: str) -> Formula | None:
        kind = attributes.get("t", "normal")
        if kind == "shared":
            index = attributes.get("si", "")
            group = groups.get(index)
            if text and (group is None or not group.text or "ref" in attributes):
                if group is None or group.text:
                    group = groups[index] = SharedGroup(text, row, column)
                else:
                    group.text, group.row, group.column = text, row, column
            elif text:
                return Formula(text)
            if group is None:
                group = groups[index] = SharedGroup("", row, column)
            if not group.text:
                orphans.append((row, column, group))
            return SharedFormula(group, row, column)
        if kind == "dataTable":
            return Formula(data_table_text(attributes), "dataTable", area(attributes))
        if not text:
            return None
        if kind == "array":
            return Formula(text, "array", area(attributes))
        return Formula(text)

    def area(attributes: Attributes) -> Range:
        try:
            return Range.parse(attributes["ref"])
        except (KeyError, AddressError):
            return Range(row, column, row, column)

    def attach(created: expat.XMLParserType) -> None:
        nonlocal parser
        parser = created
        parser.StartElementHandler = start
        parser.CharacterDataHandler = pieces.append

    package.parse(part, attach)
    if is_open:
        finish()
    if cells:
        rows[row] = cells
    for at_row, at_column, group in orphans:
        if not group.text:  # no cell of the file has the text: only the value is left, as in Excel
            forget_formula(rows, at_row, at_column)
    if not ordered:
        content.rows = {at: dict(sorted(rows[at].items())) for at in sorted(rows)}
        content.hidden_rows = joined(content.hidden_rows)
    if rows_hidden_by_default:
        content.hidden_rows = joined(gaps(shown_rows) + content.hidden_rows)
    content.hidden_columns = joined(content.hidden_columns)
    return content


def number(text: str) -> Value:
    """A stored number; what is none is kept as text rather than lost."""
    try:
        value = float(text)
    except ValueError:
        return text.strip() or None
    if "_" in text or value - value != 0:  # Python reads 1_000, inf and nan; no spreadsheet program does
        return text.strip()
    if "." in text or "e" in text or "E" in text:
        return value
    return int(text)


def data_table_text(attributes: Attributes) -> str:
    """A what-if table as Excel shows it: ``TABLE(row input cell,column input cell)``."""
    first, second = attributes.get("r1", ""), attributes.get("r2", "")
    if boolean(attributes, "dt2D"):
        return f"TABLE({first},{second})"
    return f"TABLE({first},)" if boolean(attributes, "dtr") else f"TABLE(,{first})"


def add_ranges(ranges: list[Range], text: str) -> None:
    """Add the ranges of a white-space separated list; one that is none is dropped, as Excel does on repair."""
    for part in text.split():
        try:
            ranges.append(Range.parse(part))
        except AddressError:
            continue


def add_span(spans: Spans, first: int, last: int) -> None:
    if spans and spans[-1][1] + 1 == first:
        spans[-1] = (spans[-1][0], last)
    else:
        spans.append((first, last))


def joined(spans: Spans) -> Spans:
    """Ascending and disjoint."""
    result: Spans = []
    for first, last in sorted(spans):
        if result and first <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(last, result[-1][1]))
        else:
            result.append((first, last))
    return result


def gaps(spans: Spans) -> Spans:
    """The rows that no span covers."""
    result: Spans = []
    following = 1
    for first, last in joined(spans):
        if following < first:
            result.append((following, first - 1))
        following = last + 1
    return [*result, (following, MAX_ROW)] if following <= MAX_ROW else result


def forget_formula(rows: dict[int, dict[int, Cell]], row: int, column: int) -> None:
    cell = rows[row][column]
    if cell.value is None:
        del rows[row][column]
        if not rows[row]:
            del rows[row]
    else:
        rows[row][column] = cell._replace(formula=None)

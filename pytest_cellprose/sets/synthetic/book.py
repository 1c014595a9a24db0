"""A workbook while it is generated: worksheets of constants and expressions, and the bytes of its ``.xlsx``.

Every formula is stored with its result, because a reader that does not calculate sees nothing else. The bytes
are the same on every machine: entries sorted and stored (zlib's output differs between builds), times fixed.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from typing import TYPE_CHECKING

from pytest_cellprose.sets.synthetic.expression import Area, Expression, Scalar, dollars_of
from pytest_cellprose.sets.synthetic.functions import serial
from pytest_cellprose.workbook.model import ErrorValue
from pytest_cellprose.workbook.refs import (
    MAX_ROW,
    CellAddress,
    Range,
    cell_name,
    column_number,
    quote_sheet,
)

if TYPE_CHECKING:
    from xlsxwriter.format import Format
    from xlsxwriter.worksheet import Worksheet

STYLES: Mapping[str, Mapping[str, object]] = {
    "": {},
    "title": {"bold": True, "font_size": 14},
    "head": {"bold": True, "bottom": 1},
    "merged": {"bold": True, "align": "center", "bottom": 1},
    "whole": {"num_format": "#,##0"},
    "money": {"num_format": "#,##0.00"},
    "total": {"num_format": "#,##0.00", "bold": True, "top": 1},
    "rate": {"num_format": "0.0000"},
    "percent": {"num_format": "0.0%"},
    "date": {"num_format": "yyyy-mm-dd"},
    "month": {"num_format": "mmm yyyy"},
}
"""What a cell's `style` may be, in XlsxWriter's words."""

_WRITTEN = datetime(2026, 1, 5, 9, 0, 0)
_ZIP_TIME = (2026, 1, 5, 9, 0, 0)


class Sheet:
    """One worksheet. `sheet["$B$4"]` is an expression, `sheet.area("B4:B9")` a function's argument."""

    def __init__(self, name: str, state: str, overrides: Mapping[str, int | float]) -> None:
        self.name = name
        self.state = state
        """``visible`` or ``hidden``."""
        self.overrides = dict(overrides)
        """Cells where a number was typed over the formula, and the number."""
        self.cells: dict[tuple[int, int], tuple[Scalar | date | Expression, str]] = {}
        self.arrays: set[str] = set()
        self.comments: dict[str, str] = {}
        self.hidden_rows: list[int] = []
        self.hidden_columns: list[str] = []
        self.widths: dict[str, float] = {}
        self.merged: list[tuple[Range, str]] = []
        self.tables: list[tuple[str, Range]] = []

    def put(self, address: str, content: Scalar | date | Expression, style: str = "") -> Expression:
        """Fill a cell, and return a reference to it; an override wins over a formula."""
        where = Range.parse(address)
        if where.size != 1 or (where.first_row, where.first_column) in self.cells:
            raise ValueError(f"{self.name}!{address} is not one empty cell")
        if isinstance(content, Expression) and address in self.overrides:
            content = self.overrides[address]
        self.cells[where.first_row, where.first_column] = content, style
        return self[address]

    def put_row(self, address: str, contents: Iterable[Scalar | date | Expression], style: str = "") -> None:
        """Fill cells from `address` to the right; None leaves one empty."""
        row, column, _, _ = Range.parse(address)
        for offset, content in enumerate(contents):
            if content is not None:
                self.put(cell_name(row, column + offset), content, style)

    def put_column(self, address: str, contents: Iterable[Scalar | date | Expression], style: str = "") -> None:
        """Fill cells from `address` down; None leaves one empty."""
        row, column, _, _ = Range.parse(address)
        for offset, content in enumerate(contents):
            if content is not None:
                self.put(cell_name(row + offset, column), content, style)

    def put_array(self, address: str, content: Expression, style: str = "") -> None:
        """Fill a cell with an array formula."""
        self.put(address, content, style)
        self.arrays.add(address)

    def merge(self, address: str, text: str) -> None:
        """Merge a range and write `text` over it."""
        area = Range.parse(address)
        self.cells[area.first_row, area.first_column] = text, "merged"
        self.merged.append((area, text))

    def value(self, row: int, column: int) -> Scalar:
        """The result at a cell; None if it is empty."""
        content = self.cells.get((row, column), (None, ""))[0]
        if isinstance(content, Expression):
            content = 0 if content.value is None else content.value  # a reference to an empty cell gives 0
        if isinstance(content, float) and content.is_integer():
            return int(content)  # a file has no other spelling for 5.0 than 5
        return serial(content) if isinstance(content, date) else content

    def area(self, address: str) -> Area:
        """`B4:B9`, `$B$4:B9` or `D:D`, with the values so far."""
        area = Range.parse(address)
        last_row = self.last_row if area.last_row == MAX_ROW else area.last_row
        columns = range(area.first_column, area.last_column + 1)
        grid = tuple(tuple(self.value(r, c) for c in columns) for r in range(area.first_row, last_row + 1))
        return Area(self.name, area, grid, dollars_of(address))

    def __getitem__(self, address: str) -> Expression:
        area = self.area(address)
        if area.range.size != 1:
            raise ValueError(f"{address!r} is not one cell")
        return Expression(area.values[0], (area,))

    @property
    def last_row(self) -> int:
        return max((row for row, _ in self.cells), default=0)

    @property
    def extent(self) -> Range:
        """From A1 to the last row and column with a value or formula."""
        return Range(1, 1, self.last_row, max((column for _, column in self.cells), default=1))

    def table(self, name: str, address: str) -> None:
        """Make a filled range with one header row a worksheet table."""
        self.tables.append((name, Range.parse(address)))

    def table_column(self, table: str, header: str) -> Area:
        """``Orders[Amount]``, its cells filled."""
        area, column = self._table_column(table, header)
        address = Range(area.first_row + 1, column, area.last_row, column)
        return self.area(str(address)).named(f"{table}[{header}]")

    def this_row(self, table: str, header: str, row: int) -> Expression:
        """``[@Amount]`` in a formula on `row`, as the file spells it."""
        _, column = self._table_column(table, header)
        area = self.area(cell_name(row, column)).named(f"{table}[[#This Row],[{header}]]")
        return Expression(area.values[0], (area,))

    def _table_column(self, table: str, header: str) -> tuple[Range, int]:
        area = next(area for name, area in self.tables if name == table)
        columns = range(area.first_column, area.last_column + 1)
        return area, next(c for c in columns if self.value(area.first_row, c) == header)


class Book:
    """A workbook of `Sheet`s, in the order in which they were added."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.sheets: list[Sheet] = []
        self.names: dict[str, Area] = {}

    def sheet(self, name: str, *, state: str = "visible", overrides: Mapping[str, int | float] | None = None) -> Sheet:
        self.sheets.append(Sheet(name, state, overrides or {}))
        return self.sheets[-1]

    def name(self, name: str, sheet: Sheet, address: str) -> Area:
        """Define a workbook-wide name for an absolute range whose cells are filled."""
        self.names[name] = sheet.area(address)
        return self.names[name].named(name)

    def named_cell(self, name: str, sheet: Sheet, address: str) -> Expression:
        """Define a name for one filled cell, and refer to it by the name."""
        area = self.name(name, sheet, address)
        return Expression(area.values[0], (area,))

    def formulas(self) -> Iterator[tuple[CellAddress, Expression]]:
        """Every formula cell, by worksheet and row-major."""
        for sheet in self.sheets:
            for (row, column), (content, _) in sorted(sheet.cells.items(), key=lambda item: item[0]):
                if isinstance(content, Expression):
                    yield CellAddress(sheet.name, row, column), content

    def xlsx(self) -> bytes:
        """The workbook's file."""
        import xlsxwriter

        written = io.BytesIO()
        workbook = xlsxwriter.Workbook(written, {"in_memory": True})
        workbook.set_properties({"title": self.title, "created": _WRITTEN})
        formats = {name: workbook.add_format(dict(style)) for name, style in STYLES.items()}
        for sheet in self.sheets:
            _write_sheet(sheet, workbook.add_worksheet(sheet.name), formats)
        for name, area in self.names.items():
            workbook.define_name(name, f"={quote_sheet(area.sheet)}!{area.text(area.sheet)}")
        workbook.close()
        return _stored(written.getvalue())


def _write_sheet(sheet: Sheet, target: Worksheet, formats: Mapping[str, Format]) -> None:
    for area, text in sheet.merged:
        target.merge_range(
            area.first_row - 1, area.first_column - 1, area.last_row - 1, area.last_column - 1, text, formats["merged"]
        )
    for name, area in sheet.tables:
        columns = range(area.first_column, area.last_column + 1)
        headers = [{"header": sheet.value(area.first_row, column)} for column in columns]
        bounds = (area.first_row - 1, area.first_column - 1, area.last_row - 1, area.last_column - 1)
        target.add_table(*bounds, {"name": name, "columns": headers})
    for (row, column), (content, style) in sorted(sheet.cells.items(), key=lambda item: item[0]):
        _write_cell(sheet, target, row, column, content, formats[style])
    for address, text in sheet.comments.items():
        target.write_comment(address, text, {"author": "Finance"})
    for row in sheet.hidden_rows:
        target.set_row(row - 1, None, None, {"hidden": True})
    for letters in sorted({*sheet.widths, *sheet.hidden_columns}, key=column_number):
        hidden = {"hidden": True} if letters in sheet.hidden_columns else {}
        target.set_column(f"{letters}:{letters}", sheet.widths.get(letters, 10), None, hidden)
    if sheet.state == "hidden":
        target.hide()


def _write_cell(
    sheet: Sheet, target: Worksheet, row: int, column: int, content: Scalar | date | Expression, style: Format
) -> None:
    where = row - 1, column - 1
    if isinstance(content, Expression):
        value, text = sheet.value(row, column), "=" + content.text(sheet.name)
        if cell_name(row, column) in sheet.arrays:
            target.write_array_formula(*where, *where, "{" + text + "}", style, value)
        else:
            target.write_formula(*where, text, style, value)
    elif isinstance(content, bool):
        target.write_boolean(*where, content, style)
    elif isinstance(content, ErrorValue):
        raise ValueError(f"{sheet.name}!{cell_name(row, column)}: an error is written as the formula that gives it")
    elif isinstance(content, str):
        target.write_string(*where, content, style)
    elif content is not None:
        target.write_number(*where, serial(content) if isinstance(content, date) else content, style)


def _stored(archive: bytes) -> bytes:
    """The same parts sorted by name, not deflated, and with one fixed time."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as given, zipfile.ZipFile(target, "w") as kept:
        for name in sorted(given.namelist()):
            entry = zipfile.ZipInfo(name, _ZIP_TIME)
            entry.create_system = 3  # zipfile writes the platform's own otherwise
            entry.external_attr = 0o600 << 16
            kept.writestr(entry, given.read(name))
    return target.getvalue()

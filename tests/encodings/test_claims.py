"""What each encoding keeps: its own claims, the table in the documentation and the text itself agree."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import xlsxwriter

from pytest_cellprose.encodings import BUILTIN, Encoding, find_encoding
from pytest_cellprose.encodings.base import KEPT
from pytest_cellprose.workbook.model import Workbook
from pytest_cellprose.workbook.refs import Range
from tests.encodings.workbook_strategies import everything

DOCUMENT = Path(__file__).parents[2] / "docs" / "FORMAT.md"


def as_file(workbook: Workbook) -> bytes:
    """`everything` as a file, for MarkItDown."""
    stream = io.BytesIO()
    book = xlsxwriter.Workbook(stream)
    formats: dict[str, object] = {}
    for sheet in workbook.worksheets:
        page = book.add_worksheet(sheet.name)
        if sheet.state == "hidden":
            page.hide()
        for area in sheet.merged:
            page.merge_range(area.first_row - 1, area.first_column - 1, area.last_row - 1, area.last_column - 1, "")
        for first, last in sheet.hidden_rows:
            for row in range(first, last + 1):
                page.set_row(row - 1, None, None, {"hidden": True})
        for first, last in sheet.hidden_columns:
            page.set_column(first - 1, last - 1, None, None, {"hidden": True})
        for row, column, cell in sheet.cells():
            code = cell.number_format
            style = formats.setdefault(code, book.add_format({"num_format": code})) if code != "General" else None
            if cell.formula is not None:
                page.write_formula(row - 1, column - 1, "=" + cell.formula.text, style, cell.value)
            elif isinstance(cell.value, str):
                page.write_string(row - 1, column - 1, cell.value)
            else:
                page.write(row - 1, column - 1, cell.value, style)
    for name in workbook.defined_names:
        book.define_name(name.name, "=" + name.text)
    book.close()
    return stream.getvalue()


@pytest.fixture(scope="module")
def workbook() -> Workbook:
    found = everything()
    found.source = as_file(found)
    return found


def kept(encoding: Encoding, workbook: Workbook) -> set[str]:
    """What the text of this workbook shows to be kept, of `KEPT`."""
    text = encoding.encode(workbook)
    assert encoding.decode is not None
    decoded = encoding.decode(text)
    data = decoded.sheet("Data")
    if data is None:
        return set()
    found = set()
    values = {(r, c): cell.value for r, c, cell in data.cells()}
    if [values.get(each) for each in ((1, 1), (2, 2), (2, 3), (2, 4), (4, 4), (5, 2))] == [
        "Item", 10, 12.5, 45322, True, 0.125,
    ]:  # fmt: skip
        found.add("values")
    formulas = {(r, c): cell.formula.text for r, c, cell in data.cells() if cell.formula}
    if formulas == {(2, 3): "B2*Rate", (4, 3): "B4*Rate"}:
        found.add("formulas")
    # Written beside the cell or counted from A1: either way a program can tell where it stands.
    if [(r, c) for r, c, cell in data.cells() if cell.value == "stays"] == [(5, 4)]:
        found.add("addresses")
    if "12.5%" in text or "0.0%" in text:
        found.add("formats")
    if [(name.name, name.text.replace("$", "")) for name in decoded.defined_names] == [("Rate", "Secret!A1")]:
        found.add("names")
    if data.merged == (Range(1, 3, 1, 4),):
        found.add("merged")
    secret = decoded.sheet("Secret")
    if secret is not None and secret.state == "hidden" and data.hidden_rows == ((4, 4),) and data.hidden_columns:
        found.add("hidden")
    return found


@pytest.mark.parametrize("encoding", BUILTIN, ids=lambda encoding: encoding.name)
def test_every_claim_holds_and_nothing_more_is_kept(encoding: Encoding, workbook: Workbook) -> None:
    assert kept(encoding, workbook) == encoding.keeps


def test_the_documented_table_is_what_the_encodings_claim() -> None:
    text = DOCUMENT.read_text("utf-8")
    head, _, *lines = text[text.index("| encoding |") :].partition("\n\n")[0].splitlines()
    columns = [cell.strip() for cell in head.strip("|").split("|")][1:]
    assert columns == list(KEPT)
    table = {}
    for line in lines:
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        table[name.strip("`")] = {column for column, cell in zip(columns, cells, strict=True) if cell.startswith("yes")}
    assert table == {encoding.name: set(encoding.keeps) for encoding in BUILTIN}


def test_tables_come_back_with_their_columns(workbook: Workbook) -> None:
    lean = find_encoding("cellprose_lean_gfm")
    assert lean.decode is not None
    (table,) = lean.decode(lean.encode(workbook)).worksheets[0].tables
    assert (table.name, table.ref, table.columns) == ("Prices", Range(1, 1, 5, 4), ("Item", "Price", "Gross", "When"))


COUNTED = {"csv", "markdown"}
"""Where a cell's place is its only address, so that rows before it have to be there."""


def test_a_stray_far_cell_costs_nothing_where_addresses_are_written() -> None:
    from pytest_cellprose.workbook.model import Cell, Worksheet

    far = Workbook((Worksheet("S", rows={1: {1: Cell(1)}, 1_048_576: {16_384: Cell(2)}}),))
    for encoding in BUILTIN:
        if encoding.name != "markitdown":
            text = encoding.encode(far)
            assert len(text) < (6_000_000 if encoding.name in COUNTED else 200)
            assert encoding.decode is not None
            if encoding.name != "none":
                cell = encoding.decode(text).worksheets[0].cell(1_048_576, 16_384)
                assert cell is not None
                assert cell.value == 2

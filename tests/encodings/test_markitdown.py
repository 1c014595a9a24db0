"""MarkItDown's own output, and how much of a workbook can be read back from it."""

from __future__ import annotations

import datetime
import io
from pathlib import Path

import pytest
import xlsxwriter
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_cellprose.encodings import find_encoding
from pytest_cellprose.workbook.model import Value, Workbook, WorkbookError, Worksheet

MARKITDOWN = find_encoding("markitdown")


@pytest.fixture
def workbook(tmp_path: Path) -> Workbook:
    path = tmp_path / "book.xlsx"
    book = xlsxwriter.Workbook(path)
    day = book.add_format({"num_format": "yyyy-mm-dd"})
    page = book.add_worksheet("Leading blanks")
    page.write("C3", "x_y*z")
    page.write("D3", 1.5)
    page.write("E3", 18000)
    page.write("C5", "a|b")
    page.write("D5", 0.123456789)
    page.write("F5", True)
    page.write_formula("G5", "=1/0", None, "#DIV/0!")
    page.write("H5", "NA")
    page.write_datetime("I5", datetime.datetime(2024, 1, 31), day)
    page.write("J5", "two\nlines")
    book.add_worksheet("Empty")
    page = book.add_worksheet("Repeated")
    for column, heading in enumerate(["b", "b", None, "b", 2019]):
        page.write(0, column, heading)
        page.write(1, column, column)
    book.close()
    return Workbook((Worksheet("Leading blanks"),), source=path)


def test_it_is_the_library_s_own_output(workbook: Workbook) -> None:
    from markitdown import MarkItDown

    expected = MarkItDown(enable_plugins=False).convert(workbook.source).text_content
    assert MARKITDOWN.encode(workbook) == expected
    assert isinstance(workbook.source, Path)
    workbook.source = workbook.source.read_bytes()
    assert MARKITDOWN.encode(workbook) == expected


def test_cells_count_from_a1(workbook: Workbook) -> None:
    assert MARKITDOWN.decode is not None
    decoded = MARKITDOWN.decode(MARKITDOWN.encode(workbook))
    assert [sheet.name for sheet in decoded.worksheets] == ["Leading blanks", "Empty", "Repeated"]

    def values(sheet: Worksheet) -> dict[tuple[int, int], Value]:
        return {(row, column): cell.value for row, column, cell in sheet.cells()}

    assert values(decoded.worksheets[0]) == {
        (3, 3): "x_y*z",
        (3, 4): 1.5,
        (3, 5): 18000,
        (5, 3): "a|b",
        (5, 4): 0.123457,
        (5, 6): True,
        (5, 9): 45322,
        (5, 10): "two\\nlines",
    }, "errors and NA are printed as NaN, decimals end after the sixth, line ends are printed as \\n"
    assert values(decoded.worksheets[1]) == {}
    assert values(decoded.worksheets[2]) == {
        (1, 1): "b", (1, 2): "b", (1, 4): "b", (1, 5): 2019,
        (2, 1): 0, (2, 2): 1, (2, 3): 2, (2, 4): 3, (2, 5): 4,
    }  # fmt: skip


def test_a_damaged_file_is_one_line_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "broken.xlsx"
    path.write_bytes(b"PK\x03\x04 no more")
    with pytest.raises(WorkbookError, match=r"\Abroken\.xlsx: MarkItDown [^\n]+\Z"):
        MARKITDOWN.encode(Workbook((), source=path))
    with pytest.raises(WorkbookError, match=r"\Agone\.xlsx: MarkItDown [^\n]+\Z"):
        MARKITDOWN.encode(Workbook((), source=tmp_path / "gone.xlsx"))


def test_a_package_that_is_no_workbook_is_refused_rather_than_listed() -> None:
    import zipfile

    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as package:
        package.writestr("readme.txt", "## Not a worksheet")
    with pytest.raises(WorkbookError, match="given as bytes: MarkItDown"):
        MARKITDOWN.encode(Workbook((), source=stream.getvalue()))


def test_a_workbook_without_a_file_is_refused() -> None:
    with pytest.raises(WorkbookError, match="'markitdown' reads a file"):
        MARKITDOWN.encode(Workbook((Worksheet("S"),)))


words = st.text("abcdefgh", min_size=1, max_size=6)
plain = st.one_of(st.integers(0, 999), words, st.booleans(), st.dates(datetime.date(1990, 1, 1)))


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(st.tuples(st.integers(0, 7), st.integers(0, 5)), plain, min_size=1))
def test_plain_values_come_back_to_their_cells(cells: dict[tuple[int, int], int | str | bool | datetime.date]) -> None:
    """Leading blanks, headings in any row, repeated ones, and whatever type pandas gives a column."""
    stream = io.BytesIO()
    book = xlsxwriter.Workbook(stream, {"default_date_format": "yyyy-mm-dd"})
    page = book.add_worksheet("S")
    for (row, column), value in cells.items():
        page.write(row, column, value)
    book.close()
    assert MARKITDOWN.decode is not None
    text = MARKITDOWN.encode(Workbook((Worksheet("S"),), source=stream.getvalue()))
    (sheet,) = MARKITDOWN.decode(text).worksheets
    found = {(row - 1, column - 1): cell.value for row, column, cell in sheet.cells()}
    assert set(found) == set(cells), text
    for address, value in cells.items():
        expected = (value - datetime.date(1899, 12, 30)).days if isinstance(value, datetime.date) else value
        assert found[address] == expected, (address, text)

"""Cells, sheets and packages that programs write otherwise than Excel: read for what they are."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest
import xlsxwriter

from pytest_cellprose.encodings import BUILTIN, encode, find_encoding
from pytest_cellprose.workbook.model import ErrorValue, Value, Workbook, WorkbookError
from pytest_cellprose.workbook.refs import MAX_COLUMN, MAX_ROW, cell_name
from tests.workbook import raw_xlsx as raw

RICH = "http://schemas.microsoft.com/office/spreadsheetml/2017/richdata"


# A formula and its result


@pytest.mark.parametrize(
    ("kind", "result", "value"),
    [
        ('t="inlineStr"', "<is><t>ab!</t></is>", "ab!"),
        ('t="inlineStr"', "<is><r><t>ab</t></r><r><t>!</t></r><rPh><t>no</t></rPh></is>", "ab!"),
        ('t="inlineStr"', "<is><t></t></is>", ""),
        ('t="str"', "<v>ab!</v>", "ab!"),
        ('t="str"', "<v></v>", ""),
        ("", "<v>3</v>", 3),
        ('t="b"', "<v>1</v>", True),
        ('t="e"', "<v>#N/A</v>", ErrorValue("#N/A")),
        ('t="d"', "<v>2024-01-31</v>", 45322),
    ],
)
def test_a_formula_before_or_behind_its_result(kind: str, result: str, value: Value) -> None:
    for content in (f'<f>B1&amp;"!"</f>{result}', f'{result}<f>B1&amp;"!"</f>'):
        rows = f'<row r="1"><c r="A1" {kind}>{content}</c><c r="B1"><f>C1</f><v>7</v></c></row>'
        (sheet,) = Workbook.read(raw.workbook(raw.worksheet(rows))).worksheets
        first, second = sheet.rows[1][1], sheet.rows[1][2]
        assert first.formula is not None
        assert first.formula.text == 'B1&"!"'
        assert (first.value, type(first.value)) == (value, type(value))
        assert second.formula is not None
        assert (second.value, second.formula.text) == (7, "C1")


def test_a_shared_formula_with_inline_results() -> None:
    rows = (
        '<row r="1"><c r="A1" t="inlineStr"><f t="shared" ref="A1:A2" si="0">B1</f><is><t>x</t></is></c></row>'
        '<row r="2"><c r="A2" t="inlineStr"><f t="shared" si="0"/><is><t>y</t></is></c></row>'
    )
    (sheet,) = Workbook.read(raw.workbook(raw.worksheet(rows))).worksheets
    assert [(cell.value, cell.formula.text) for *_, cell in sheet.cells() if cell.formula] == [("x", "B1"), ("y", "B2")]


# Shared formulas of which some cells leave the worksheet


@pytest.mark.parametrize(
    ("origin", "formula", "cells"),
    [
        ((2, 2), "A1+1", [(1, 2), (2, 2), (3, 2), (4, 2)]),
        ((2, 2), "A1+1", [(2, 1), (2, 2), (2, 3)]),
        ((MAX_ROW - 1, 2), f"A{MAX_ROW}*2", [(MAX_ROW - 2, 2), (MAX_ROW - 1, 2), (MAX_ROW, 2)]),
        ((5, MAX_COLUMN - 1), "XFD4*2", [(5, MAX_COLUMN - 2), (5, MAX_COLUMN - 1), (5, MAX_COLUMN)]),
        ((3, 3), "SUM(A2:B3)", [(1, 3), (2, 3), (3, 3), (4, 3), (3, 2), (3, 4)]),
        ((2, 2), "$A$1+A:A+1:1", [(1, 2), (2, 1), (2, 2), (3, 2), (2, 3)]),
    ],
)
def test_what_leaves_the_worksheet_in_one_cell_is_sound_in_the_others(
    origin: tuple[int, int], formula: str, cells: list[tuple[int, int]]
) -> None:
    """Every formula of the text reads back as openpyxl translates it, wherever in the group it left the worksheet."""
    from openpyxl.formula.translate import Translator, TranslatorError

    rows: dict[int, str] = {}
    for row, column in sorted(cells):
        text = formula if (row, column) == origin else ""
        area = f' ref="{cell_name(*min(cells))}:{cell_name(*max(cells))}"' if text else ""
        content = f'<f t="shared" si="0"{area}>{text}</f><v>1</v>'
        rows[row] = rows.get(row, "") + f'<c r="{cell_name(row, column)}">{content}</c>'
    book = Workbook.read(
        raw.workbook(raw.worksheet("".join(f'<row r="{row}">{content}</row>' for row, content in rows.items())))
    )
    lean = find_encoding("cellprose_lean_gfm")
    assert lean.decode is not None
    decoded = lean.decode(lean.encode(book))
    sound = 0
    for row, column in cells:
        found = decoded.worksheets[0].rows[row][column].formula
        assert found is not None
        try:
            expected = Translator(f"={formula}", cell_name(*origin)).translate_formula(cell_name(row, column))
        except TranslatorError:
            assert "#REF!" in found.text
            continue
        if not any(limit in expected for limit in ("1048577", "XFE")):  # openpyxl knows no last row or column
            assert f"={found.text}" == expected
            sound += 1
    assert 1 < sound <= len(cells)


# What stands behind #VALUE!

STRUCTURES = (
    '<s t="_localImage"><k n="_rvRel:LocalImageIdentifier" t="i"/><k n="CalcOrigin" t="i"/></s>'
    '<s t="_error"><k n="colOffset" t="i"/><k n="errorType" t="i"/></s>'
    '<s t="_linkedentity2"><k n="%EntityServiceId" t="i"/><k n="_DisplayString" t="s"/></s>'
    '<s t="_webimage"><k n="WebImageIdentifier" t="i"/></s>'
)
VALUES = (
    '<rv s="0"><v>0</v><v>5</v></rv><rv s="1"><v>0</v><v>8</v></rv><rv s="1"><v>0</v><v>13</v></rv>'
    '<rv s="1"><v>0</v><v>99</v></rv><rv s="2"><v>268435456</v><v>Seattle</v></rv><rv s="3"><v>0</v></rv><rv s="9"/>'
)


def _rich(cells: str, *, metadata: bool = True) -> Workbook:
    """Rich values 0 to 6 as ``vm`` 1 to 7; ``vm`` 8 is of a cube function."""
    blocks = "".join(f'<bk><extLst><ext><x:rvb i="{n}"/></ext></extLst></bk>' for n in range(7))
    records = "".join(f'<bk><rc t="2" v="{n}"/></bk>' for n in range(7))
    parts = {
        "xl/metadata.xml": f'<metadata xmlns="{raw.MAIN}" xmlns:x="{RICH}"><metadataTypes><metadataType name="XLMDX"/>'
        f'<metadataType name="XLRICHVALUE"/></metadataTypes><futureMetadata name="XLRICHVALUE">{blocks}'
        f'</futureMetadata><valueMetadata>{records}<bk><rc t="1" v="0"/></bk></valueMetadata></metadata>',
        "xl/richData/rdrichvalue.xml": f'<rvData xmlns="{RICH}">{VALUES}</rvData>',
        "xl/richData/rdrichvaluestructure.xml": f'<rvStructures xmlns="{RICH}">{STRUCTURES}</rvStructures>',
    }
    related = (
        ("rId11", "sheetMetadata", "metadata.xml"),
        ("rId12", "rdRichValue", "richData/rdrichvalue.xml"),
        ("rId13", "rdRichValueStructure", "richData/rdrichvaluestructure.xml"),
    )
    sheet = raw.worksheet(f'<row r="1">{cells}</row>')
    if not metadata:
        return Workbook.read(raw.workbook(sheet))
    return Workbook.read(raw.workbook(sheet, parts=parts, extra_relationships=related))


@pytest.mark.parametrize(
    ("vm", "value"),
    [
        (1, None),
        (2, ErrorValue("#SPILL!")),
        (3, ErrorValue("#CALC!")),
        (4, ErrorValue("#VALUE!")),
        (5, "Seattle"),
        (6, None),
        (7, None),
        (8, ErrorValue("#VALUE!")),
        (9, None),
        (0, None),
        (-1, None),
    ],
)
def test_a_rich_value_is_what_it_shows(vm: int, value: Value) -> None:
    (sheet,) = _rich(f'<c r="A1" t="e" vm="{vm}"><v>#VALUE!</v></c><c r="B1" t="e"><v>#VALUE!</v></c>').worksheets
    found = sheet.cell(1, 1)
    assert (None if found is None else found.value) == value
    assert isinstance(found and found.value, ErrorValue) == isinstance(value, ErrorValue)
    assert sheet.pictures == (((1, 1),) if value is None else ())
    assert sheet.rows[1][2].value == "#VALUE!"


def test_the_index_of_one_cell_is_not_that_of_the_next() -> None:
    cells = '<c r="A1" t="e" vm="1"><v>#VALUE!</v></c><c r="B1" t="e"><f>1+"a"</f><v>#VALUE!</v></c>'
    for metadata in (True, False):
        (sheet,) = _rich(cells, metadata=metadata).worksheets
        assert sheet.cell(1, 1) is None
        assert sheet.rows[1][2].value == "#VALUE!"


def test_another_error_is_one_whatever_metadata_it_has() -> None:
    for metadata in (True, False):
        (sheet,) = _rich('<c r="A1" t="e" vm="1"><v>#N/A</v></c>', metadata=metadata).worksheets
        assert sheet.rows[1][1].value == ErrorValue("#N/A")


def test_a_picture_that_a_formula_gives_keeps_the_formula() -> None:
    (sheet,) = _rich('<c r="A1" t="e" vm="6"><f>_xlfn.IMAGE("x.png")</f><v>#VALUE!</v></c>').worksheets
    cell = sheet.rows[1][1]
    assert cell.value is None
    assert cell.formula is not None


def test_pictures_that_xlsxwriter_places_in_cells(tmp_path: Path) -> None:
    (tmp_path / "dot.png").write_bytes(raw.dot())
    stream = io.BytesIO()
    with xlsxwriter.Workbook(stream) as book:
        sheet = book.add_worksheet()
        sheet.write("A1", "photo")
        sheet.embed_image("B1", str(tmp_path / "dot.png"))
        sheet.embed_image("B3", str(tmp_path / "dot.png"))
    (found,) = Workbook.read(stream.getvalue()).worksheets
    assert found.pictures == ((1, 2), (3, 2))
    assert [(row, column) for row, column, _ in found.cells()] == [(1, 1)]


def test_a_real_file_with_an_error_behind_an_error(shared_data: Path) -> None:
    """Excel's own #FIELD!, stored as #VALUE!: not every rich value is a picture."""
    (sheet,) = Workbook.read(shared_data / "robust/sheetjs/fn.xlsx").worksheets
    assert sheet.rows[3][3].value == ErrorValue("#FIELD!")


# Shared strings


@pytest.mark.parametrize("index", ["2", "-1", "-2", "1.5", "one", "1_0", "9" * 5000])
def test_a_shared_string_that_is_not_there_names_its_cell(index: str) -> None:
    rows = f'<row r="4"><c r="C4" t="s"><v>{index}</v></c></row>'
    with pytest.raises(WorkbookError, match=r"cell C4 .* shared string"):
        Workbook.read(raw.workbook(raw.worksheet(rows), strings="<si><t>first</t></si><si><t>last</t></si>"))


# Sheets without a part


def _sheets(entries: str, *related: tuple[str, str, str]) -> bytes:
    part = f'<workbook xmlns="{raw.MAIN}" xmlns:r="{raw.RELATIONSHIPS}"><sheets>{entries}</sheets></workbook>'
    one = raw.worksheet('<row r="1"><c r="A1"><v>12</v></c></row>')
    return raw.workbook(one, workbook_part=part, extra_relationships=related)


@pytest.mark.parametrize(
    ("entry", "related", "kind"),
    [
        ('r:id=""', (), "module"),
        ("", (), "module"),
        ('r:id="rId7"', (), "missing"),
        ('r:id="rId7"', (("rId7", "worksheet", "worksheets/gone.xml"),), "missing"),
        ('r:id="rId7"', (("rId7", "chartsheet", "chartsheets/gone.xml"),), "missing"),
    ],
)
def test_the_rest_of_the_workbook_is_read(entry: str, related: tuple[tuple[str, str, str], ...], kind: str) -> None:
    data = _sheets(f'<sheet name="Odd" {entry}/><sheet name="S" r:id="rId1"/>', *related)
    book = Workbook.read(data)
    assert [(sheet.name, sheet.kind) for sheet in book.worksheets] == [("Odd", kind), ("S", "worksheet")]
    assert book.worksheets[1].rows[1][1].value == 12
    assert f"\n## Odd ({kind})\n" in encode(book)
    for encoding in BUILTIN:
        if encoding.decode is not None and encoding.name not in ("none", "markitdown"):
            decoded = encoding.decode(encoding.encode(book))
            assert [sheet.name for sheet in decoded.worksheets] == ["Odd", "S"], encoding.name
    lean = find_encoding("cellprose_lean_gfm")
    assert lean.decode is not None
    assert lean.decode(lean.encode(book)).worksheets[0].kind == kind


def test_a_workbook_of_nothing_but_names_is_refused() -> None:
    with pytest.raises(WorkbookError, match=r"none of its worksheets has a part in the file: 'A', 'B'"):
        Workbook.read(_sheets('<sheet name="A" r:id=""/><sheet name="B" r:id="rId7"/>'))


# Zip entries


@pytest.mark.parametrize("local", ["XL/SHAREDSTRINGS.XML", "xl/SharedStrings.xml", "xl\\sharedstrings.xml"])
def test_the_directory_of_the_zip_decides(local: str) -> None:
    data = bytearray(
        raw.workbook(raw.worksheet('<row r="1"><c r="A1" t="s"><v>0</v></c></row>'), strings="<si><t>first</t></si>")
    )
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        start = package.getinfo("xl/sharedStrings.xml").header_offset + 30
    data[start : start + len(local)] = local.encode()
    with pytest.raises(zipfile.BadZipFile), zipfile.ZipFile(io.BytesIO(data)) as package:
        package.read("xl/sharedStrings.xml")
    for before in (b"", b"something before the zip"):
        assert Workbook.read(before + bytes(data)).worksheets[0].rows[1][1].value == "first"


def test_an_entry_of_another_name_is_refused_still() -> None:
    data = bytearray(raw.workbook(raw.worksheet("")))
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        start = package.getinfo("xl/worksheets/sheet1.xml").header_offset + 30
    data[start : start + 4] = b"x1/w"
    with pytest.raises(WorkbookError, match="cannot be unpacked"):
        Workbook.read(bytes(data))

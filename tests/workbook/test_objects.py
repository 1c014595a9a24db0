"""What is counted beside the cells: as XlsxWriter wrote it, as openpyxl finds it, and as the raw parts have it."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import openpyxl
import pytest
import xlsxwriter

from pytest_cellprose.workbook.model import Workbook, WorkbookError
from pytest_cellprose.workbook.objects import OBJECT_KINDS, count_objects
from pytest_cellprose.workbook.package import PackageError
from tests.workbook import raw_xlsx as raw

X14 = "http://schemas.microsoft.com/office/spreadsheetml/2009/9/main"
MC = "http://schemas.openxmlformats.org/markup-compatibility/2006"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006"


MAIN_NAMES = [
    "worksheet",
    "sheetData",
    "row",
    "c",
    "is",
    "t",
    "hyperlinks",
    "hyperlink",
    "headerFooter",
    "oddHeader",
    "evenHeader",
    "conditionalFormatting",
    "cfRule",
    "extLst",
    "ext",
    "oleObjects",
    "oleObject",
    "controls",
    "control",
    "picture",
]


def test_nothing_is_counted_where_nothing_is() -> None:
    stream = io.BytesIO()
    with xlsxwriter.Workbook(stream) as book:
        book.add_worksheet().write_row("A1", [1, "two", 3.5])
        book.add_worksheet()
    assert count_objects(stream.getvalue()) == {}


def test_what_xlsxwriter_writes(tmp_path: Path) -> None:
    (tmp_path / "dot.png").write_bytes(raw.dot())
    stream = io.BytesIO()
    with xlsxwriter.Workbook(stream) as book:
        sheet = book.add_worksheet("A")
        sheet.write_column("A1", range(9))
        sheet.write_url("B1", "https://example.org")
        sheet.write_url("B2", "internal:B!A1")
        sheet.insert_textbox("D1", "IMPORTANT")
        sheet.insert_textbox("D9", "")
        sheet.insert_image("F1", str(tmp_path / "dot.png"), {"url": "https://example.org/picture"})
        sheet.set_background(str(tmp_path / "dot.png"))
        for place in ("H1", "H20"):
            chart = book.add_chart({"type": "line"})
            chart.add_series({"values": "=A!$A$1:$A$9"})
            sheet.insert_chart(place, chart)
        sheet.data_validation("A1", {"validate": "integer", "criteria": ">", "value": 0})
        sheet.data_validation("A2:A3", {"validate": "list", "source": ["a", "b"]})
        sheet.conditional_format("A1:A9", {"type": "cell", "criteria": ">", "value": 5})
        sheet.conditional_format("A1:A9", {"type": "data_bar", "data_bar_2010": True})
        sheet.conditional_format("C1:C9", {"type": "data_bar", "data_bar_2010": True, "bar_only": True})
        sheet.add_sparkline("C1", {"range": "A!A1:A9"})
        sheet.add_sparkline("C2", {"range": "A!A1:A9"})
        sheet.set_header("&LDraft &P", {})
        sheet.set_footer("&Rpage &P")
        other = book.add_worksheet("B")
        other.set_header("&CSecret")
        alone = book.add_chartsheet("C")
        last = book.add_chart({"type": "bar"})
        last.add_series({"values": "=A!$A$1:$A$9"})
        alone.set_chart(last)
    assert count_objects(stream.getvalue()) == {
        "link": 3,
        "text box": 1,
        "shape": 1,
        "picture": 2,
        "chart": 3,
        "data validation": 2,
        "conditional format": 3,
        "sparkline": 2,
        "page header": 2,
        "page footer": 1,
    }


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ('<hyperlinks><hyperlink ref="A1"/></hyperlinks>', {"link": 1}),
        ("<headerFooter><oddHeader> </oddHeader></headerFooter>", {}),
        ("<headerFooter><oddHeader>a</oddHeader><evenHeader>b</evenHeader></headerFooter>", {"page header": 1}),
        (
            '<conditionalFormatting><cfRule type="dataBar"><extLst><ext><x14:id>{7}</x14:id></ext></extLst></cfRule>'
            '</conditionalFormatting><extLst><ext><x14:conditionalFormattings><x14:cfRule id="{7}"/>'
            '<x14:cfRule id="{8}"/></x14:conditionalFormattings></ext></extLst>',
            {"conditional format": 2},
        ),
        ("<extLst><ext><x14:dataValidation/></ext></extLst>", {"data validation": 1}),
        (
            "<oleObjects><mc:AlternateContent><mc:Choice><oleObject/></mc:Choice><mc:Fallback><oleObject/>"
            "</mc:Fallback></mc:AlternateContent></oleObjects>",
            {"embedded object": 1},
        ),
        ('<controls><control name="Button 1"/></controls><picture/>', {"form control": 1, "picture": 1}),
    ],
)
@pytest.mark.parametrize("prefix", ["", "m:"])
def test_elements_of_a_worksheet(inner: str, expected: dict[str, int], prefix: str) -> None:
    """Whatever the prefix, behind the cells and not among them, which may hold anything as text."""
    cells = '<row r="1"><c r="A1" t="inlineStr"><is><t>&lt;hyperlink/&gt;</t></is></c></row>'
    names = f'xmlns:x14="{X14}" xmlns:mc="{MC}" xmlns{":m" if prefix else ""}="{raw.MAIN}"'
    for data in (f"<sheetData>{cells}</sheetData>", "<sheetData/>", '<sheetData a="b"></sheetData>'):
        sheet = f"<worksheet {names}>{data}{inner}</worksheet>"
        if prefix:
            for local in MAIN_NAMES:
                sheet = sheet.replace(f"<{local}>", f"<m:{local}>").replace(f"</{local}>", f"</m:{local}>")
                sheet = sheet.replace(f"<{local} ", f"<m:{local} ").replace(f"<{local}/", f"<m:{local}/")
        for encoded in (sheet.encode(), ('<?xml version="1.0" encoding="UTF-16"?>' + sheet).encode("utf-16")):
            assert count_objects(raw.workbook("", parts={"xl/worksheets/sheet1.xml": encoded})) == expected


def _drawing(content: str) -> bytes:
    drawing = (
        f'<d:wsDr xmlns:d="{DRAWING}/spreadsheetDrawing" xmlns:a="{DRAWING}/main" xmlns:mc="{MC}">{content}</d:wsDr>'
    )
    parts = {
        "xl/worksheets/_rels/sheet1.xml.rels": raw.relationships(("rId1", "drawing", "../drawings/drawing1.xml")),
        "xl/drawings/drawing1.xml": drawing,
    }
    return raw.workbook(raw.worksheet(""), parts=parts)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("<d:sp><d:txBody><a:p><a:r><a:t>read me</a:t></a:r></a:p></d:txBody></d:sp>", {"text box": 1}),
        ("<d:sp><d:txBody><a:p><a:r><a:t> </a:t></a:r></a:p></d:txBody></d:sp><d:cxnSp/>", {"shape": 2}),
        ("<d:grpSp><d:pic/><d:grpSp><d:pic/><d:sp/></d:grpSp></d:grpSp>", {"picture": 2, "shape": 1}),
        ("<d:pic><d:cNvPr><a:hlinkClick/></d:cNvPr></d:pic>", {"picture": 1, "link": 1}),
        ('<a:graphicData uri="http://schemas.openxmlformats.org/drawingml/2006/chart"/>', {"chart": 1}),
        ('<a:graphicData uri="http://purl.oclc.org/ooxml/drawingml/chart"/>', {"chart": 1}),
        ('<a:graphicData uri="http://schemas.openxmlformats.org/drawingml/2006/diagram"/>', {"diagram": 1}),
        ('<a:graphicData uri="http://schemas.microsoft.com/office/drawing/2010/slicer"/>', {"slicer": 1}),
        ('<a:graphicData uri="urn:unheard-of"/>', {}),
        (
            '<mc:AlternateContent><mc:Choice><a:graphicData uri="http://schemas.microsoft.com/office/drawing/2014/chartex"/>'
            "</mc:Choice><mc:Fallback><d:sp><a:t>This chart is not available</a:t></d:sp></mc:Fallback>"
            "</mc:AlternateContent>",
            {"chart": 1},
        ),
        ("<d:sp><d:cNvPr><compatExt/></d:cNvPr><a:t>Button 1</a:t></d:sp><d:sp/>", {"shape": 1}),
    ],
)
def test_what_floats_over_a_worksheet(content: str, expected: dict[str, int]) -> None:
    assert count_objects(_drawing(content)) == expected


def test_what_belongs_to_the_workbook() -> None:
    parts = {"xl/worksheets/_rels/sheet1.xml.rels": raw.relationships(("r1", "pivotTable", "p.xml"), ("r2", "x", "y"))}
    related = (("rId11", "vbaProject", "vbaProject.bin"), ("rId12", "connections", "connections.xml"))
    found = count_objects(raw.workbook(raw.worksheet(""), parts=parts, extra_relationships=related))
    assert found == {"macro project": 1, "data connection": 1, "pivot table": 1}


def test_a_damaged_drawing_is_named() -> None:
    with pytest.raises(PackageError, match=r"broken XML in xl/drawings/drawing1\.xml"):
        count_objects(_drawing("<d:sp>"))


def test_public_files_have_what_openpyxl_finds(shared_data: Path) -> None:
    """Charts, pictures, validations and rules of conditional formats that openpyxl keeps are among what is counted."""
    compared = 0
    for path in sorted((shared_data / "robust").glob("*/*.xlsx"))[::5]:
        if path.stat().st_size > 40_000:
            continue
        try:
            Workbook.read(path)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                book = openpyxl.load_workbook(path)
        except Exception:  # whatever openpyxl raises, there is nothing to compare with
            continue
        found = count_objects(path)
        sheets = book.worksheets
        rules = sum(len(area.rules) for sheet in sheets for area in sheet.conditional_formatting)
        validations = sum(len(sheet.data_validations.dataValidation) for sheet in sheets)
        charts = sum(len(sheet._charts) for sheet in (*sheets, *book.chartsheets))
        # openpyxl drops extensions, chart sheets' drawings and pictures that it cannot decode.
        assert found["conditional format"] >= rules, path.name
        assert found["data validation"] >= validations, path.name
        assert found["chart"] >= charts, path.name
        assert found["picture"] >= sum(len(sheet._images) for sheet in sheets), path.name
        compared += bool(rules or validations or charts)
    assert compared > 5


def test_every_readable_file_can_be_counted(shared_data: Path) -> None:
    for path in sorted((shared_data / "robust").glob("*/*"))[::3]:
        try:
            Workbook.read(path)
        except WorkbookError:
            continue
        assert set(count_objects(path)) <= set(OBJECT_KINDS)

"""Reading real files: what each kind of cell, sheet and attachment becomes."""

from __future__ import annotations

import datetime
import hashlib
import io
from pathlib import Path
from typing import Any

import openpyxl
import pytest
import xlsxwriter
from openpyxl.worksheet.datavalidation import DataValidation

from pytest_cellprose.workbook.model import Cell, Comment, DefinedName, ErrorValue, SharedFormula, Workbook
from pytest_cellprose.workbook.refs import Range
from tests.workbook import raw_xlsx as raw


def _cells(book: Workbook, sheet: int = 0) -> dict[str, Cell]:
    return {str(Range(row, column, row, column)): cell for row, column, cell in book.worksheets[sheet].cells()}


def _values(book: Workbook, sheet: int = 0) -> dict[str, Any]:
    return {place: cell.value for place, cell in _cells(book, sheet).items()}


def _formulas(book: Workbook) -> dict[str, str]:
    return {place: cell.formula.text for place, cell in _cells(book).items() if cell.formula is not None}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workbook by XlsxWriter with most of what it can write."""
    path = tmp_path_factory.mktemp("written") / "all kinds.xlsx"
    book = xlsxwriter.Workbook(path)
    date, percent, builtin = (book.add_format({"num_format": code}) for code in ("yyyy-mm-dd", "0.0%", 14))
    bold = book.add_format({"bold": True})
    model = book.add_worksheet("Model")
    model.write_row("A1", ["text", 12, -3.5, 1e20, True])
    model.write_datetime("A2", datetime.datetime(2024, 1, 31), date)
    model.write_number("B2", 0.125, percent)
    model.write_number("C2", 45000, builtin)
    model.write_formula("D2", "=A1&B1", None, "text12")
    model.write_formula("E2", "=1/0", None, "#DIV/0!")
    model.write_rich_string("A3", "plain ", bold, "bold", " plain")
    model.write_string("B3", " spaces ")
    model.write_string("C3", "#N/A")
    model.write_array_formula("A4:A5", "{=B1:B2*2}", None, 24)
    model.write_dynamic_array_formula("C4:C5", "=SORT(B1:B2)", None, 0.125)
    model.write_blank("E5", None, bold)
    model.merge_range("G1:H2", "merged")
    model.write_comment("B1", "a note\non two lines", {"author": "x"})
    model.set_row(2, None, None, {"hidden": True})
    model.set_column("F:G", None, None, {"hidden": True})
    model.data_validation("B1:B9", {"validate": "list", "source": ["a", "b"]})
    data = book.add_worksheet("Q1 it's")
    data.add_table(
        "B2:C5",
        {
            "name": "Sales",
            "columns": [{"header": "Qty"}, {"header": "Twice", "formula": "=[@Qty]*2"}],
            "total_row": True,
            "data": [[1], [2]],
        },
    )
    data.hide()
    book.add_worksheet("secret").very_hidden()
    chart = book.add_chart({"type": "line"})
    chart.add_series({"values": "=Model!$B$1:$B$2"})
    book.add_chartsheet("Chart").set_chart(chart)
    book.define_name("Rate", "=Model!$B$2")
    book.define_name("Model!Local", "=Model!$A$1:$A$3")
    book.close()
    return path


def test_values_are_typed(written: Path) -> None:
    values = _values(Workbook.read(written))
    assert values["A1"] == "text"
    assert (values["B1"], type(values["B1"])) == (12, int)
    assert (values["C1"], values["D1"], values["E1"]) == (-3.5, 1e20, True)
    assert values["A2"] == 45322
    assert values["A3"] == "plain bold plain"
    assert values["B3"] == " spaces "
    assert "E5" not in values, "a cell with a style only is none"
    assert (values["C3"], type(values["C3"])) == ("#N/A", str)
    assert (values["E2"], type(values["E2"])) == ("#DIV/0!", ErrorValue)


def test_number_formats_are_codes(written: Path) -> None:
    formats = {place: cell.number_format for place, cell in _cells(Workbook.read(written)).items()}
    assert [formats[place] for place in ("A1", "A2", "B2", "C2")] == ["General", "yyyy-mm-dd", "0.0%", "mm-dd-yy"]


def test_formulas_and_values_come_together(written: Path) -> None:
    cells = _cells(Workbook.read(written))
    assert cells["D2"].value == "text12"
    formula = cells["D2"].formula
    assert formula is not None
    assert (formula.text, formula.kind, formula.ref) == ("A1&B1", "normal", None)
    array, dynamic = cells["A4"].formula, cells["C4"].formula
    assert array is not None
    assert dynamic is not None
    assert (array.text, array.kind, str(array.ref)) == ("B1:B2*2", "array", "A4:A5")
    assert (dynamic.text, dynamic.kind, str(dynamic.ref)) == ("_xlfn._xlws.SORT(B1:B2)", "array", "C4:C5")


def test_sheets_and_what_is_hidden(written: Path) -> None:
    book = Workbook.read(written)
    assert [(sheet.name, sheet.state, sheet.kind) for sheet in book.worksheets] == [
        ("Model", "visible", "worksheet"),
        ("Q1 it's", "hidden", "worksheet"),
        ("secret", "veryHidden", "worksheet"),
        ("Chart", "visible", "chartsheet"),
    ]
    model = book.worksheets[0]
    assert model.hidden_rows == ((3, 3),)
    assert model.hidden_columns == ((6, 7),)
    assert model.merged == (Range.parse("G1:H2"),)


def test_attachments(written: Path) -> None:
    book = Workbook.read(written)
    model, data = book.worksheets[:2]
    assert model.comments == (Comment(1, 2, "a note\non two lines"),)
    assert model.data_validations == (Range.parse("B1:B9"),)
    (table,) = data.tables
    assert (table.name, str(table.ref), table.columns) == ("Sales", "B2:C5", ("Qty", "Twice"))
    assert (table.header_rows, table.totals_rows) == (1, 1)
    assert set(book.defined_names) == {
        DefinedName("Rate", "Model!$B$2"),
        DefinedName("Local", "Model!$A$1:$A$3", "Model"),
    }


@pytest.mark.parametrize("kind", ["path", "string", "bytes", "stream"])
def test_sources(written: Path, kind: str) -> None:
    data = written.read_bytes()
    sources: dict[str, Any] = {"path": written, "string": str(written), "bytes": data, "stream": io.BytesIO(data)}
    book = Workbook.read(sources[kind])
    assert book.sha256 == hashlib.sha256(data).hexdigest()
    assert book.source == (written if kind in ("path", "string") else data)


def test_what_openpyxl_writes() -> None:
    source = openpyxl.Workbook()
    sheet = source.active
    assert sheet is not None
    sheet.append([1, "=A1*2", "x"])
    sheet["A2"] = datetime.datetime(2024, 1, 31, 12)
    validation = DataValidation(type="whole", sqref="A1 C1:C3")
    sheet.add_data_validation(validation)
    buffer = io.BytesIO()
    source.save(buffer)
    book = Workbook.read(buffer.getvalue())
    cells = _cells(book)
    assert cells["B1"].value is None, "openpyxl stores no results"
    assert _formulas(book) == {"B1": "A1*2"}
    assert (cells["A2"].value, cells["A2"].number_format) == (45322.5, "yyyy-mm-dd h:mm:ss")
    assert book.worksheets[0].data_validations == (Range.parse("A1"), Range.parse("C1:C3"))


def test_shared_formulas_are_translated() -> None:
    rows = (
        '<row r="1"><c r="B1"><f t="shared" ref="B1:B3" si="0">A1*$D$1+LOG10(A1)</f><v>1</v></c></row>'
        '<row r="2"><c r="B2"><f t="shared" si="0"/><v>2</v></c><c r="C2"><f t="shared" si="0"/></c></row>'
        '<row r="3"><c r="B3"><f t="shared" si="1"/><v>7</v></c>'  # the group's text comes only later
        '<c r="C3"><f t="shared" ref="B3:C3" si="1">C1+1</f></c><c r="D3"><f t="shared" si="9"/><v>5</v></c></row>'
    )
    book = Workbook.read(raw.workbook(raw.worksheet(rows)))
    assert _formulas(book) == {
        "B1": "A1*$D$1+LOG10(A1)",
        "B2": "A2*$D$1+LOG10(A2)",
        "C2": "B2*$D$1+LOG10(B2)",
        "B3": "B1+1",
        "C3": "C1+1",
    }
    assert _values(book)["D3"] == 5, "a group without a text leaves the value"
    first, second = (_cells(book)[place].formula for place in ("B1", "B2"))
    assert isinstance(first, SharedFormula)
    assert isinstance(second, SharedFormula)
    assert first.group is second.group
    assert first.pattern(1, 2) == second.pattern(2, 2)


def test_missing_and_empty_results_differ() -> None:
    rows = (
        '<row r="1"><c r="A1"><f>B1</f></c><c r="B1" t="str"><f>C1</f><v></v></c>'
        '<c r="C1" t="str"><f>D1</f><v/></c><c r="D1" t="str"><f>E1</f></c><c r="E1"/><c r="F1" t="s"><v/></c></row>'
    )
    assert _values(Workbook.read(raw.workbook(raw.worksheet(rows)))) == {"A1": None, "B1": "", "C1": "", "D1": None}


def test_every_cell_type() -> None:
    rows = (
        '<row r="1"><c r="A1" t="b"><v>1</v></c><c r="B1" t="b"><v>0</v></c><c r="C1" t="e"><v>#SPILL!</v></c>'
        '<c r="D1" t="n"><v>-12</v></c><c r="E1"><v>1.5E-3</v></c><c r="F1"><v>007</v></c>'
        '<c r="G1"><v>1_000</v></c><c r="H1"><v>nan</v></c></row>'
        '<row r="2"><c r="A2" t="inlineStr"><is><r><t xml:space="preserve">rich </t></r><r><t>text</t></r>'
        '<rPh sb="0" eb="1"><t>phonetic</t></rPh></is></c><c r="B2" t="inlineStr"><is><t/></is></c>'
        '<c r="C2" t="str"><v> kept </v></c><c r="D2" t="s"><v>0</v></c><c r="E2" t="s"><v>1</v></c></row>'
        '<row r="3"><c r="A3" t="d"><v>2024-01-31</v></c><c r="B3" t="d"><v>2024-01-31T12:00:00Z</v></c>'
        '<c r="C3" t="d"><v>1900-02-28</v></c><c r="D3" t="d"><v>someday</v></c></row>'
    )
    strings = (
        "<si><t>tab_x0009_and _x005F_x0041_ _xD83D__xDE00_</t></si>"
        '<si><r><t>two</t></r><r><rPr><b/></rPr><t xml:space="preserve"> runs</t></r>'
        '<rPh sb="0" eb="1"><t>no</t></rPh></si>'
    )
    book = Workbook.read(raw.workbook(raw.worksheet(rows), strings=strings))
    assert _values(book) == {
        "A1": True,
        "B1": False,
        "C1": ErrorValue("#SPILL!"),
        "D1": -12,
        "E1": 0.0015,
        "F1": 7,
        "G1": "1_000",
        "H1": "nan",
        "A2": "rich text",
        "B2": "",
        "C2": " kept ",
        "D2": "tab\tand _x0041_ \N{GRINNING FACE}",
        "E2": "two runs",
        "A3": 45322,
        "B3": 45322.5,
        "C3": 59,
        "D3": "someday",
    }
    formats = {place: cell.number_format for place, cell in _cells(book).items()}
    assert [formats[place] for place in ("A3", "B3", "A1")] == ["yyyy-mm-dd", "yyyy-mm-dd hh:mm:ss", "General"]


def test_pretty_printed_xml_adds_nothing() -> None:
    rows = """
      <row r="1">
        <c r="A1">
          <f>B1</f>
          <v>5</v>
        </c>
        <c r="B1" t="str">
          <v>x </v>
        </c>
        <c r="C1" t="inlineStr">
          <is>
            <t>y</t>
          </is>
        </c>
        <c r="D1" t="s">
          <v>0</v>
        </c>
      </row>
    """
    book = Workbook.read(raw.workbook(raw.worksheet(rows), strings="<si>\n <t>z</t>\n</si>"))
    assert _values(book) == {"A1": 5, "B1": "x ", "C1": "y", "D1": "z"}
    assert _formulas(book) == {"A1": "B1"}


def test_data_tables() -> None:
    rows = (
        '<row r="1"><c r="A1"><f t="dataTable" ref="A1:B2" dt2D="1" dtr="1" r1="D1" r2="E1"/><v>1</v></c></row>'
        '<row r="5"><c r="A5"><f t="dataTable" ref="A5:A7" dt2D="0" dtr="0" r1="D1"/><v>1</v></c>'
        '<c r="B5"><f t="dataTable" ref="B5:C5" dtr="1" r1="D1"/><v>1</v></c></row>'
    )
    formulas = {place: cell.formula for place, cell in _cells(Workbook.read(raw.workbook(raw.worksheet(rows)))).items()}
    shown = {place: (found.text, found.kind, str(found.ref)) for place, found in formulas.items() if found}
    assert shown == {
        "A1": ("TABLE(D1,E1)", "dataTable", "A1:B2"),
        "A5": ("TABLE(,D1)", "dataTable", "A5:A7"),
        "B5": ("TABLE(D1,)", "dataTable", "B5:C5"),
    }


def test_addresses_may_be_missing_wrong_or_out_of_order() -> None:
    rows = (
        "<row><c><v>1</v></c><c><v>2</v></c></row><row><c r='C2'><v>3</v></c><c><v>4</v></c></row>"
        '<row r="7"><c r="B9"><v>6</v></c><c r="A9"><v>5</v></c></row><row r="4"><c r="A4"><v>7</v></c></row>'
    )
    sheet = Workbook.read(raw.workbook(raw.worksheet(rows))).worksheets[0]
    assert [(row, column, cell.value) for row, column, cell in sheet.cells()] == [
        (1, 1, 1),
        (1, 2, 2),
        (2, 3, 3),
        (2, 4, 4),
        (4, 1, 7),
        (9, 1, 5),
        (9, 2, 6),
    ]


def test_a_used_range_of_a_million_rows_costs_nothing() -> None:
    rows = '<row r="1"><c r="A1"><v>1</v></c></row>' + "".join(
        f'<row r="{row}" s="1" customFormat="1"><c r="A{row}" s="0"/></row>' for row in range(2, 40_000)
    )
    sheet = Workbook.read(raw.workbook(raw.worksheet(rows, before='<dimension ref="A1:XFD1048576"/>'))).worksheets[0]
    assert sheet.extent == Range(1, 1, 1, 1)
    assert list(sheet.rows) == [1]


def test_rows_hidden_by_default() -> None:
    rows = '<row r="1"><c r="A1"><v>1</v></c></row><row r="2" hidden="1"/><row r="3"/>'
    sheet = raw.worksheet(rows, before='<sheetFormatPr defaultRowHeight="15" zeroHeight="1"/>')
    assert Workbook.read(raw.workbook(sheet)).worksheets[0].hidden_rows == ((2, 2), (4, 1_048_576))


def test_hidden_spans_are_joined() -> None:
    rows = "".join(f'<row r="{row}" hidden="1"/>' for row in (2, 3, 4, 7))
    columns = '<cols><col min="3" max="4" hidden="1"/><col min="5" max="5" hidden="true"/><col min="9" max="9"/></cols>'
    sheet = Workbook.read(raw.workbook(raw.worksheet(rows, before=columns))).worksheets[0]
    assert sheet.hidden_rows == ((2, 4), (7, 7))
    assert sheet.hidden_columns == ((3, 5),)


def test_extensions_of_the_same_name_are_ignored() -> None:
    extension = 'xmlns:x15="http://schemas.microsoft.com/office/spreadsheetml/2010/11/main"'
    before = (
        f'<workbookPr date1904="1"/><extLst><ext {extension}><x15:workbookPr date1904="0"/>'
        "<x15:sheet name='No'/><x15:definedName name='No'>1</x15:definedName></ext></extLst>"
    )
    sheet = raw.worksheet(
        '<row r="1"><c r="A1"><v>1</v></c></row>',
        after=f'<extLst><ext {extension}><x15:row r="9"/><x15:c r="A9"><x15:v>2</x15:v></x15:c></ext></extLst>',
    )
    book = Workbook.read(raw.workbook(sheet, workbook_before=before))
    assert book.date1904 is True
    assert [sheet.name for sheet in book.worksheets] == ["S"]
    assert book.defined_names == ()
    assert _values(book) == {"A1": 1}


def test_iso_dates_in_the_1904_system() -> None:
    rows = '<row r="1"><c r="A1" t="d"><v>1904-01-02</v></c></row>'
    book = Workbook.read(raw.workbook(raw.worksheet(rows), workbook_before='<workbookPr date1904="1"/>'))
    assert _values(book) == {"A1": 1}


@pytest.mark.parametrize("namespace", ["http://purl.oclc.org/ooxml/spreadsheetml/main", raw.MAIN])
def test_strict_and_prefixed_namespaces(namespace: str) -> None:
    relation = "http://purl.oclc.org/ooxml/officeDocument/relationships"
    sheet = (
        f'<x:worksheet xmlns:x="{namespace}"><x:sheetData><x:row r="1"><x:c r="A1" t="s"><x:v>0</x:v></x:c>'
        '<x:c r="B1"><x:f>A1</x:f><x:v>2</x:v></x:c></x:row></x:sheetData></x:worksheet>'
    )
    part = (
        f'<x:workbook xmlns:x="{namespace}" xmlns:q="{relation}"><x:sheets>'
        '<x:sheet name="S" sheetId="1" q:id="rId1"/></x:sheets></x:workbook>'
    )
    book = Workbook.read(raw.workbook(sheet, workbook_part=part, strings="<si><t>a</t></si>"))
    assert _values(book) == {"A1": "a", "B1": 2}


def test_part_names_in_any_case_and_with_backslashes() -> None:
    sheet = raw.worksheet('<row r="1"><c r="A1"><v>1</v></c></row>')
    book = Workbook.read(
        raw.archive(
            {
                "_RELS\\.rels": raw.relationships(("rId1", "officeDocument", "/XL/Workbook.xml")),
                "xl\\workbook.XML": f'<workbook xmlns="{raw.MAIN}" xmlns:r="{raw.RELATIONSHIPS}"><sheets>'
                '<sheet name="S" r:id="rId7"/></sheets></workbook>',
                "xl\\_rels\\workbook.xml.rels": raw.relationships(("rId7", "worksheet", "/xl/WORKSHEETS/a%20b.xml")),
                "xl/worksheets/A b.xml": sheet,
            }
        )
    )
    assert _values(book) == {"A1": 1}


def test_styles_of_other_kinds_do_not_count() -> None:
    styles = (
        '<numFmts><numFmt numFmtId="164" formatCode="0.000"/><numFmt numFmtId="9" formatCode="0.0%"/></numFmts>'
        '<cellStyleXfs><xf numFmtId="14"/></cellStyleXfs>'
        '<cellXfs><xf numFmtId="164"/><xf numFmtId="9"/><xf numFmtId="999"/><xf numFmtId="31"/></cellXfs>'
        '<dxfs><dxf><numFmt numFmtId="164" formatCode="yyyy"/></dxf></dxfs>'
    )
    rows = '<row r="1"><c r="A1"><v>1</v></c>' + "".join(
        f'<c r="{letter}1" s="{index}"><v>1</v></c>' for index, letter in enumerate("BCDEF")
    )
    formats = [
        cell.number_format
        for cell in _cells(Workbook.read(raw.workbook(raw.worksheet(rows + "</row>"), styles=styles))).values()
    ]
    assert formats[:4] == ["0.000", "0.000", "0.0%", "General"], "no style attribute is style 0"
    assert "yyyy" in formats[4]
    assert formats[5] == "General", "a style that is not there"


def test_defined_names_and_external_links() -> None:
    inner = (
        '<externalReferences><externalReference r:id="rId5"/><externalReference r:id="rId6"/></externalReferences>'
        '<definedNames><definedName name="_xlnm.Print_Area" localSheetId="0">S!$A$1</definedName>'
        '<definedName name="Old" hidden="1">#REF!</definedName><definedName name="K">"a&amp;b"</definedName>'
        "</definedNames>"
    )
    book = Workbook.read(
        raw.workbook(
            raw.worksheet(""),
            workbook_inner=inner,
            extra_relationships=(
                ("rId5", "externalLink", "externalLinks/externalLink1.xml"),
                ("rId6", "externalLink", "externalLinks/externalLink2.xml"),
            ),
            parts={
                "xl/externalLinks/_rels/externalLink2.xml.rels": raw.relationships(
                    ("rId1", "externalLinkPath", "file:///C:\\My%20files\\Budget 25.xlsx", "External")
                )
            },
        )
    )
    assert book.external_links == ("", "Budget 25.xlsx"), "a link to something else keeps its number"
    assert book.defined_names == (
        DefinedName("_xlnm.Print_Area", "S!$A$1", "S"),
        DefinedName("Old", "#REF!", None, True),
        DefinedName("K", '"a&b"'),
    )


def test_threaded_comments_without_their_explanation() -> None:
    threads = "http://schemas.microsoft.com/office/spreadsheetml/2018/threadedcomments"
    boilerplate = "[Threaded comment]\n\nYour version of Excel allows you to read this; Learn more: x\n\nComment:\n    "
    parts: dict[str, str | bytes] = {
        "xl/worksheets/_rels/sheet1.xml.rels": raw.relationships(
            ("rId1", "comments", "../comments1.xml"), ("rId2", "threadedComment", "../threadedComments/t1.xml")
        ),
        "xl/comments1.xml": f'<comments xmlns="{raw.MAIN}"><commentList>'
        f'<comment ref="B2"><text><t>{boilerplate}Why?</t></text></comment>'
        f'<comment ref="A3"><text><t>{boilerplate}Only here</t></text></comment>'
        '<comment ref="A1"><text><r><t>Ann:</t></r><r><t xml:space="preserve"> plain</t></r></text></comment>'
        "</commentList></comments>",
        "xl/threadedComments/t1.xml": f'<ThreadedComments xmlns="{threads}">'
        '<threadedComment ref="B2" dT="2024-01-02T00:00:00" id="2"><text>Because.</text></threadedComment>'
        '<threadedComment ref="B2" dT="2024-01-01T00:00:00" id="1"><text>Why?</text></threadedComment>'
        "</ThreadedComments>",
    }
    sheet = Workbook.read(raw.workbook(raw.worksheet(""), parts=parts)).worksheets[0]
    assert sheet.comments == (Comment(1, 1, "Ann: plain"), Comment(2, 2, "Why?\nBecause."), Comment(3, 1, "Only here"))


def test_long_text_and_many_cells_across_chunks() -> None:
    """The reader takes a part in pieces; none of its seams may show."""
    text = "a > b & c " * 200_000
    rows = "".join(f'<row r="{row}"><c r="A{row}"><v>{row}.25</v></c></row>' for row in range(2, 60_000))
    first = f'<row r="1"><c r="A1" t="str"><v>{text.replace("&", "&amp;")}</v></c></row>'
    values = _values(Workbook.read(raw.workbook(raw.worksheet(first + rows))))
    assert values.pop("A1") == text
    assert values == {f"A{row}": row + 0.25 for row in range(2, 60_000)}

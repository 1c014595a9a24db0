"""What is no readable workbook: one line that names the file, the reason and what to do."""

from __future__ import annotations

import io
import pickle
import re
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_cellprose.workbook import package
from pytest_cellprose.workbook.model import Workbook, WorkbookError
from tests.workbook import raw_xlsx as raw

ONE_CELL = raw.worksheet('<row r="1"><c r="A1"><v>1</v></c></row>')


def _book(inner: str) -> bytes:
    return raw.workbook(ONE_CELL, workbook_part=f'<workbook xmlns="{raw.MAIN}">{inner}</workbook>')


def _cells(rows: str) -> bytes:
    return raw.workbook(raw.worksheet(rows))


def _document(part: str) -> bytes:
    return raw.archive({"_rels/.rels": raw.relationships(("r", "officeDocument", part)), part: ""})


def _refusal(data: bytes, tmp_path: Path) -> str:
    path = tmp_path / "the file.xlsx"
    path.write_bytes(data)
    with pytest.raises(WorkbookError) as caught:
        Workbook.read(path)
    message = str(caught.value)
    assert message.startswith("the file.xlsx: ")
    assert "; " in message, "says what to do"
    assert "\n" not in message
    assert caught.value.__cause__ is None
    return message


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty, 0 bytes"),
        (b"\0\1\2\3" * 200, "not a zip file"),
        (raw.archive({"hello.txt": "x"}), "without a workbook"),
        (raw.workbook("<worksheet><sheetData>"), "broken XML in xl/worksheets/sheet1.xml, line 1"),
        (raw.workbook(ONE_CELL)[:-30], "not a zip file"),
        (_book(""), "no worksheets"),
        (_book('<sheets><sheet name="Gone"/></sheets>'), "none of its worksheets has a part in the file: 'Gone'"),
        (_cells('<row r="1"><c r="A1" t="s"><v>3</v></c></row>'), "shared string '3'"),
        (_cells('<row r="1"><c r="XFE1"><v>3</v></c></row>'), "XFE"),
        (_cells('<row r="1048577"/>'), "row 1048577"),
        (_cells('<row r="one"/>'), "r='one'"),
    ],
)
def test_refused(data: bytes, reason: str, tmp_path: Path) -> None:
    assert reason in _refusal(data, tmp_path)


_ODS = "application/vnd.oasis.opendocument"
_XML_2003 = '<?xml version="1.0"?>\n<Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet"></Workbook>'


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (raw.compound("EncryptionInfo", "EncryptedPackage"), "encrypted with a password"),
        (raw.compound("\6DataSpaces", "Version", "EncryptionInfo", "EncryptedPackage", size=4096), "encrypted with a"),
        (raw.compound("Workbook"), "a legacy .xls;"),
        (raw.compound("\5SummaryInformation", "\5DocumentSummaryInformation", "Ctls", "Workbook"), "a legacy .xls;"),
        (raw.compound(*"abcdefghij", "Book"), "a legacy .xls;"),
        (raw.compound("WordDocument", "Workbook"), "a Word document (.doc)"),
        (raw.compound("__substg1.0_1000001F"), "an OLE2 file without a workbook"),
        (raw.compound("Workbook")[:600], "an OLE2 file without a workbook in it, or a damaged .xls"),
        (raw.compound("Workbook")[:20], "an OLE2 file without a workbook in it, or a damaged .xls"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 2000, "an OLE2 file without a workbook"),
        (raw.compound("Workbook") + raw.workbook(ONE_CELL), "a legacy .xls;"),
        (b"\x09\x08\x08\x00" + bytes(100), "a legacy .xls;"),
        (raw.archive({"mimetype": f"{_ODS}.spreadsheet", "content.xml": "<x/>"}), "an OpenDocument spreadsheet (.ods)"),
        (raw.archive({"mimetype": f"{_ODS}.text", "content.xml": "<x/>"}), "an OpenDocument text (.odt)"),
        (raw.archive({"mimetype": f"{_ODS}.graphics"}), "an OpenDocument file"),
        (_document("word/document.xml"), "a Word document (.docx)"),
        (_document("ppt/presentation.xml"), "a presentation (.pptx)"),
        (_document("xl/workbook.bin"), "a binary workbook (.xlsb)"),
        (raw.archive({"Index/Document.iwa": "x"}), "an Apple Numbers"),
        (b"a,b\n1,2\n", "a text file, such as .csv"),
        ("Größe;Stück\r\n1,5;2\r\n".encode("latin-1"), "a text file, such as .csv"),
        ("a\tb\n".encode("utf-16"), "a text file, such as .csv"),
        (b"\xef\xbb\xbfa,b\n", "a text file, such as .csv"),
        (b"<html><table><tr><td>1</td></tr></table></html>", "an HTML page"),
        (b"\n<!DOCTYPE html>\n<html></html>", "an HTML page"),
        (_XML_2003.encode(), "an XML spreadsheet of Excel 2003"),
        (b'<?xml version="1.0"?><office:document/>', "an OpenDocument spreadsheet in one XML file (.fods)"),
        (b'<?xml version="1.0"?><rows/>', "an XML file"),
        (b"%PDF-1.7\n%\xe2\xe3", "a PDF"),
        (b"\x1f\x8b\x08\x00" + bytes(20), "compressed with gzip"),
    ],
)
def test_what_another_kind_of_file_is_is_said(data: bytes, kind: str, tmp_path: Path) -> None:
    assert _refusal(data, tmp_path).startswith(f"the file.xlsx: {kind}")


def test_real_encrypted_files(shared_data: Path) -> None:
    for name in ("excelize/encryptAES", "excelize/encryptSHA1", "poi/60320-protected", "poi/extenxls_pwd123"):
        with pytest.raises(WorkbookError, match="encrypted with a password"):
            Workbook.read(shared_data / "robust" / f"{name}.xlsx")


@given(st.lists(st.tuples(st.integers(8, 1535), st.integers(0, 255)), max_size=30), st.integers(0, 1536))
def test_a_damaged_directory_ends_in_a_refusal(changes: list[tuple[int, int]], length: int) -> None:
    data = bytearray(raw.compound("\5SummaryInformation", "Ctls", "Workbook"))
    for at, byte in changes:
        data[at] = byte
    with pytest.raises(WorkbookError, match=r"OLE2|legacy|zip|text"):
        Workbook.read(bytes(data[: max(length, 8)]))


def test_the_reason_stands_apart_from_the_name() -> None:
    with pytest.raises(WorkbookError) as caught:
        Workbook.read(b"a,b\n")
    assert str(caught.value) == f"workbook: {caught.value.reason}"
    assert caught.value.reason.startswith("a text file")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.reason) == (str(caught.value), caught.value.reason)


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(WorkbookError, match=r"^nowhere\.xlsx: no such file"):
        Workbook.read(tmp_path / "nowhere.xlsx")
    with pytest.raises(WorkbookError, match=r"folder"):
        Workbook.read(tmp_path)


@pytest.mark.parametrize("part", ["xl/workbook.xml", "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml"])
def test_entities_are_refused_wherever_they_are(part: str, tmp_path: Path) -> None:
    bomb = (
        '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;"><!ENTITY c SYSTEM "file:///etc/passwd">]>'
        "<x>&b;&c;</x>"
    )
    data = raw.workbook(ONE_CELL, strings="<si/>", parts={part: bomb})
    assert "document type declaration" in _refusal(data, tmp_path)


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    assert "zip bomb" in _refusal(raw.workbook(raw.worksheet(" " * 30_000_000)), tmp_path)


def test_what_all_parts_inflate_to_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "MAX_INFLATED", 100)
    assert "inflates to more than" in _refusal(raw.workbook(ONE_CELL), tmp_path)


def test_an_encrypted_or_damaged_part(tmp_path: Path) -> None:
    data = bytearray(raw.workbook(ONE_CELL))
    with zipfile.ZipFile(io.BytesIO(data)) as opened:
        start = opened.getinfo("xl/workbook.xml").header_offset
    data[start + 60] ^= 0xFF
    assert "cannot be unpacked" in _refusal(bytes(data), tmp_path)
    flagged = bytearray(raw.workbook(ONE_CELL))
    at = flagged.find(b"PK\x01\x02")
    while at >= 0:
        flagged[at + 8] |= 1
        at = flagged.find(b"PK\x01\x02", at + 1)
    assert "cannot be unpacked" in _refusal(bytes(flagged), tmp_path)


SOUND = raw.workbook(
    raw.worksheet(
        '<row r="1"><c r="A1" s="1"><f t="shared" ref="A1:A2" si="0">B1</f><v>1</v></c>'
        '<c r="B1" t="s"><v>0</v></c></row>'
        '<row r="2" hidden="1"><c r="A2"><f t="shared" si="0"/><v>2</v></c><c r="B2" t="d"><v>2024-01-31</v></c></row>',
        after='<mergeCells><mergeCell ref="C1:D2"/></mergeCells>',
    ),
    styles='<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs>',
    strings="<si><t>text</t></si>",
    workbook_inner='<definedNames><definedName name="N" localSheetId="0">S!$A$1</definedName></definedNames>',
)


@given(st.lists(st.tuples(st.integers(0, len(SOUND) - 1), st.integers(0, 255)), min_size=1, max_size=6))
def test_damaged_bytes_end_in_a_workbook_or_a_refusal(changes: list[tuple[int, int]]) -> None:
    data = bytearray(SOUND)
    for at, byte in changes:
        data[at] = byte
    _read_or_refuse(bytes(data))


@given(st.data())
def test_damaged_xml_ends_in_a_workbook_or_a_refusal(data: st.DataObject) -> None:
    with zipfile.ZipFile(io.BytesIO(SOUND)) as opened:
        parts = {name: opened.read(name).decode() for name in opened.namelist()}
    name = data.draw(st.sampled_from(sorted(parts)))
    spans = [match.span() for match in re.finditer(r'"[^"]*"|>[^<]*<', parts[name])]
    first, last = data.draw(st.sampled_from(spans))
    wrong = [
        '"-1"',
        '""',
        '"9999999999999999999999"',
        '"ZZZZ9"',
        '"²"',
        "><c/><",
        "><v>1e999</v><",
        "><f/><",
        '"x" t="array"',
    ]
    parts[name] = parts[name][:first] + data.draw(st.sampled_from(wrong)) + parts[name][last:]
    _read_or_refuse(raw.archive(parts))


def _read_or_refuse(data: bytes) -> None:
    try:
        book = Workbook.read(data)
    except WorkbookError:
        return
    for sheet in book.worksheets:
        for row, column, cell in sheet.cells():
            if cell.formula is not None:
                assert isinstance(cell.formula.text, str)
                assert cell.formula.pattern(row, column)

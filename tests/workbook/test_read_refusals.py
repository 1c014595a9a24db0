"""What is no readable workbook: one line that names the file, the reason and what to do."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path

import pytest
import raw_xlsx as raw
from hypothesis import given
from hypothesis import strategies as st

from pytest_cellprose.workbook import package
from pytest_cellprose.workbook.model import Workbook, WorkbookError

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
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "encrypted or legacy .xls"),
        (b"a,b\n1,2\n", "not a zip file"),
        (raw.archive({"hello.txt": "x"}), "without a workbook"),
        (_document("word/document.xml"), "without a workbook"),
        (_document("xl/workbook.bin"), ".xlsb"),
        (raw.workbook("<worksheet><sheetData>"), "broken XML in xl/worksheets/sheet1.xml, line 1"),
        (raw.workbook(ONE_CELL)[:-30], "not a zip file"),
        (_book(""), "no worksheets"),
        (_book('<sheets><sheet name="Gone"/></sheets>'), "'Gone' has no part"),
        (_cells('<row r="1"><c r="A1" t="s"><v>3</v></c></row>'), "shared string '3'"),
        (_cells('<row r="1"><c r="XFE1"><v>3</v></c></row>'), "XFE"),
        (_cells('<row r="1048577"/>'), "row 1048577"),
        (_cells('<row r="one"/>'), "r='one'"),
    ],
)
def test_refused(data: bytes, reason: str, tmp_path: Path) -> None:
    assert reason in _refusal(data, tmp_path)


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

"""What a text leaves out of its workbook, by encoding."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import xlsxwriter

from pytest_cellprose.encodings import BUILTIN, find_encoding
from pytest_cellprose.encodings.left_out import LeftOut, left_out
from pytest_cellprose.workbook.model import Workbook

GENERATED = Path(__file__).parents[2] / "cells"


def _numbers(found: LeftOut) -> dict[str, int]:
    return {each.noun: each.number for each in found.omissions}


@pytest.fixture(scope="module")
def workbook() -> Workbook:
    """Ten formulas with one typed over, three comments, a table, merged and hidden things, names, errors, digits."""
    stream = io.BytesIO()
    with xlsxwriter.Workbook(stream) as book:
        sheet = book.add_worksheet("Data")
        sheet.write_column("A1", [1, 2, 3, 4, 5])
        for row in range(1, 6):
            sheet.write_formula(row - 1, 1, f"=A{row}*Rate", None, row * 1.2345678)
        sheet.write_number("B3", 77)
        sheet.write_comment("B3", "typed over")
        sheet.write_comment("A1", "nothing special")
        sheet.write_formula("C1", "=1/0", None, "#DIV/0!")
        sheet.write_number("C2", 0.1234567)
        sheet.write_number("C3", 0.12345678901)
        sheet.merge_range("E1:F1", "title")
        sheet.set_row(3, None, None, {"hidden": True})
        sheet.set_column("C:C", None, None, {"hidden": True})
        sheet.add_table("H1:I3", {"name": "Sales"})
        sheet.write_url("K1", "https://example.org")
        other = book.add_worksheet("Other sheet")
        other.write("A1", 1)
        other.write_comment("A1", "over there")
        other.hide()
        book.define_name("Rate", "='Other sheet'!$A$1")
        book.define_name("Unused", "=Data!$A$1")
    return Workbook.read(stream.getvalue())


ALWAYS = {"link": 1, "comment": 3}
CELLS = {"formula": 5, "defined name": 2, "table": 1, "merged range": 1}


@pytest.mark.parametrize(
    ("encoding", "expected", "hidden", "rounded"),
    [
        ("cellprose_lean_gfm", {"link": 1, "comment": 2, "defined name": 1}, [], 5),
        ("cellprose_values", {**ALWAYS, "formula": 5, "defined name": 2}, [], 5),
        ("csv", {**ALWAYS, **CELLS}, [1, 1, 1], 0),
        ("markdown", {**ALWAYS, **CELLS}, [1, 1, 1], 0),
        ("toon", {**ALWAYS, **CELLS}, [1, 1, 1], 0),
        ("markitdown", {**ALWAYS, **CELLS, "error value": 1}, [1, 1, 1], 5),
        ("address_list", {**ALWAYS, "defined name": 1, "merged range": 1}, [1, 1, 1], 0),
    ],
)
def test_by_encoding(
    workbook: Workbook, encoding: str, expected: dict[str, int], hidden: list[int], rounded: int
) -> None:
    found = left_out(workbook, find_encoding(encoding))
    assert _numbers(found) == expected
    assert [each.number for each in found.hidden] == hidden
    assert found.rounded == rounded


def test_where_the_comments_are(workbook: Workbook) -> None:
    (comments,) = (each for each in left_out(workbook, find_encoding("csv")).omissions if each.noun == "comment")
    assert comments.places == ("Data!A1", "Data!B3", "'Other sheet'!A1")


def test_a_comment_is_left_out_iff_its_text_is_not_there(workbook: Workbook) -> None:
    for encoding in BUILTIN:
        if encoding.name == "none":
            continue
        text = encoding.encode(workbook)
        absent = sum(note not in text for note in ("typed over", "nothing special", "over there"))
        assert _numbers(left_out(workbook, encoding))["comment"] == absent


def test_rounded_numbers_are_those_that_do_not_read_back(shared_data: Path) -> None:
    """By decoding the text: the count comes from the rule, this from what was written."""
    lean = find_encoding("cellprose_lean_gfm")
    assert lean.decode is not None
    for path in (*sorted(GENERATED.glob("*.xlsx"))[:6], shared_data / "dev_real/dam_betas.xlsx"):
        book = Workbook.read(path)
        decoded = lean.decode(lean.encode(book))
        differ = 0
        for sheet, back in zip(book.worksheets, decoded.worksheets, strict=True):
            for row, column, cell in sheet.cells():
                found = back.cell(row, column)
                if isinstance(cell.value, int | float) and not isinstance(cell.value, bool):
                    assert found is not None
                    differ += found.number_format == "General" and found.value != cell.value
        assert left_out(book, lean).rounded == differ, path.name


def test_the_generated_workbooks_lose_what_their_texts_say_nothing_of() -> None:
    """No objects beside the cells in any of them, so that lean leaves only digits and comments out."""
    split = json.loads((GENERATED / "split.json").read_text("utf-8"))["development"]
    for path in sorted(GENERATED.glob("*.xlsx")):
        assert path.stem in split
        found = left_out(Workbook.read(path), find_encoding("cellprose_lean_gfm"))
        assert not found.hidden


def test_a_workbook_without_a_file_has_no_objects(workbook: Workbook) -> None:
    lean = find_encoding("cellprose_lean_gfm")
    assert lean.decode is not None
    decoded = lean.decode(lean.encode(workbook))
    assert _numbers(left_out(decoded, find_encoding("csv"))) == {"comment": 1, "formula": 5, "defined name": 1,
                                                                "table": 1, "merged range": 1}  # fmt: skip


def test_a_worksheet_that_the_file_only_names_is_said() -> None:
    from pytest_cellprose.workbook.model import Worksheet

    book = Workbook((Worksheet("Gone", kind="missing"), Worksheet("Module1", kind="module")))
    assert _numbers(left_out(book, find_encoding("csv"))) == {"worksheet that the file only names": 1}

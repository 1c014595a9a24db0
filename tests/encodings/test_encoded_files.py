"""Round trips of real workbooks: every readable file of the public sets."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_cellprose.encodings import BUILTIN, Encoding, find_encoding
from pytest_cellprose.workbook.graph import Graph
from pytest_cellprose.workbook.model import Cell, Workbook, WorkbookError, Worksheet
from pytest_cellprose.workbook.patterns import hardcoded_cells
from pytest_cellprose.workbook.refs import CellAddress
from tests.conftest import takes_long
from tests.encodings.test_round_trip import equal, is_shown

PRODUCERS = [
    "dev_real",
    "calamine",
    "closedxml",
    "docling",
    "excelize",
    "exceljs",
    "markitdown",
    "openpyxl",
    "pandas",
    "phpspreadsheet",
    "poi",
    "sheetjs",
    "xlsxwriter",
]
LEAN = find_encoding("cellprose_lean_gfm")
OTHERS = [encoding for encoding in BUILTIN if encoding.name not in ("none", "markitdown", LEAN.name)]
SMALL = 60_000


def readable(shared_data: Path, producer: str) -> Iterator[tuple[Path, Workbook]]:
    if producer == "dev_real":
        paths = sorted((shared_data / producer).glob("*.xlsx"))
    else:
        lines = (shared_data / "robust.jsonl").read_text("utf-8").splitlines()
        files = (json.loads(line)["file"] for line in lines)
        paths = [shared_data / file for file in files if file.split("/")[1] == producer]
    assert paths, f"no files of {producer}"
    for path in paths:
        try:
            yield path, Workbook.read(path)
        except WorkbookError:
            continue  # a refusal is tested with the reader


def assert_same(path: Path, workbook: Workbook, encoding: Encoding) -> None:
    text = encoding.encode(workbook)
    assert text == encoding.encode(workbook)
    assert encoding.decode is not None
    decoded = encoding.decode(text)
    assert len(decoded.worksheets) == len(workbook.worksheets), path.name
    for sheet, back in zip(workbook.worksheets, decoded.worksheets, strict=True):
        shown = {(r, c): cell for r, c, cell in sheet.cells() if is_shown(cell, encoding)}
        found = {(r, c): cell for r, c, cell in back.cells() if is_shown(cell, encoding)}
        assert set(found) == set(shown), (path.name, sheet.name)
        for address, cell in shown.items():
            assert same_date(workbook, cell, found[address]) or equal(cell, found[address], encoding), (
                path.name, sheet.name, address, cell, found[address],
            )  # fmt: skip
        if "formulas" in encoding.keeps:
            assert formulas(back) == formulas(sheet), (path.name, sheet.name)
            assert hardcoded_cells(back) == hardcoded_cells(sheet), (path.name, sheet.name)


def same_date(workbook: Workbook, cell: Cell, found: Cell) -> bool:
    """A date comes back as a date of the 1900 system, by day or by second."""
    if found.number_format == "General" or isinstance(cell.value, str) or cell.value is None:
        return False
    assert isinstance(found.value, int | float)
    return any(
        math.floor(found.value) == math.floor(expected) or math.isclose(found.value, expected, abs_tol=1e-5)
        for expected in (cell.value, cell.value + 1462 * workbook.date1904)  # elapsed times have no date system
    )


def formulas(sheet: Worksheet) -> dict[tuple[int, int], str]:
    """The formulas by address, spelling aside: `display` has tests of its own."""
    return {(row, column): spelt(cell.formula.text) for row, column, cell in sheet.cells() if cell.formula}


def spelt(formula: str) -> str:
    formula = re.sub(r"_xl(?:fn|ws|pm|eta)\.|\$|\s+|_x000[aAdD]_", "", formula)
    formula = re.sub(r"\w+\[\[#ThisRow\],\[([^\[\]:]*)\]\]", r"[@\1]", formula)
    formula = re.sub(r"\w*\[\[#ThisRow\],(\[[^\[\]]*\](?::\[[^\[\]]*\])?)\]", r"[@\1]", formula)
    formula = re.sub(r"\w*\[@\[([^\[\]]*)\]\]", r"[@\1]", formula)
    formula = re.sub(r"\w+\[#ThisRow\]|\w*\[@\]", "[@]", formula)
    return re.sub(r"ANCHORARRAY\(([^()]*)\)", r"\1#", re.sub(r"[\w.\\]+(?=\[@)", "", formula))


LARGE = ("poi", "sheetjs")
"""Producers of so many or so large files that they take half the time."""


@pytest.mark.parametrize(
    "producer", [pytest.param(each, marks=takes_long) if each in LARGE else each for each in PRODUCERS]
)
def test_lean_round_trip(shared_data: Path, producer: str) -> None:
    """Every value, address and formula of every file that can be read."""
    for path, workbook in readable(shared_data, producer):
        assert_same(path, workbook, LEAN)


@pytest.mark.parametrize("encoding", OTHERS, ids=lambda encoding: encoding.name)
def test_round_trip_of_the_other_encodings(shared_data: Path, encoding: Encoding) -> None:
    for producer in ("dev_real", "openpyxl", "calamine"):
        for path, workbook in readable(shared_data, producer):
            if path.stat().st_size <= SMALL:
                assert_same(path, workbook, encoding)


@takes_long
@pytest.mark.parametrize("encoding", [each for each in BUILTIN if "formulas" in each.keeps], ids=lambda each: each.name)
def test_precedents_can_be_told_from_the_text(shared_data: Path, encoding: Encoding) -> None:
    """Names, tables and ranges resolve to the same cells as in the file: what a reader of the text needs to trace."""
    assert encoding.decode is not None
    for producer in ("dev_real", "openpyxl", "poi"):
        for path, workbook in readable(shared_data, producer):
            formulas = [
                CellAddress(s.name, r, c) for s in workbook.worksheets for r, c, cell in s.cells() if cell.formula
            ]
            if not formulas:
                continue
            before, after = Graph(workbook), Graph(encoding.decode(encoding.encode(workbook)))
            for address in formulas[:: max(1, len(formulas) // 15)]:
                assert after.precedents(address) == before.precedents(address), (path.name, str(address))


def first_sheet_of(shared_data: Path, case: str) -> tuple[str, Worksheet]:
    text = LEAN.encode(Workbook.read(shared_data / "bugs" / case / "input.xlsx"))
    assert LEAN.decode is not None
    return text, LEAN.decode(text).worksheets[0]


def test_texts_such_as_na_stay_and_blanks_are_blank(shared_data: Path) -> None:
    """microsoft/markitdown #2498"""
    _, sheet = first_sheet_of(shared_data, "b29_na_strings")
    found = {(r, c): cell.value for r, c, cell in sheet.cells() if r in (2, 3)}
    assert found == {(2, 1): "NA", (2, 2): "NULL", (3, 1): "None", (3, 2): "n/a", (3, 3): "nan"}


def test_a_title_row_is_no_header(shared_data: Path) -> None:
    """microsoft/markitdown #2124, #183"""
    text, sheet = first_sheet_of(shared_data, "b30_title_row_as_header")
    assert "Unnamed" not in text
    assert "NaN" not in text
    assert sheet.rows[5][4].value == 6


def test_a_wrong_dimension_is_ignored(shared_data: Path) -> None:
    _, sheet = first_sheet_of(shared_data, "b37_wrong_dimension")
    assert sheet.rows[7][2].value == 49
    assert len(list(sheet.cells())) == 14


def test_dates_are_told_by_their_format(shared_data: Path) -> None:
    """Built-in and custom date formats, a bare number, elapsed hours, and the day before the day that never was."""
    text, _ = first_sheet_of(shared_data, "b35_date_serials")
    (row,) = (line for line in text.splitlines() if line.startswith("1|"))
    assert row.split("|")[1:6] == ["2025-04-14", "2025-04-14", "2025-04-14", "45761", "36:00"]
    assert row.split("|")[7] == "1900-02-28"

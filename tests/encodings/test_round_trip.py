"""decode(encode(workbook)) is what `keeps` claims, for every encoding and whatever a workbook holds."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import HealthCheck, given, settings

from pytest_cellprose.encodings import BUILTIN, Encoding, find_encoding
from pytest_cellprose.workbook.model import Cell, ErrorValue, Value, Workbook, Worksheet
from tests.encodings.workbook_strategies import workbooks

WITH_TEXT = [encoding for encoding in BUILTIN if encoding.name not in ("none", "markitdown")]
ROUNDING = {"cellprose_lean_gfm", "cellprose_values"}
EXACT_TEXT = {"csv", "toon"}
TYPED_TEXT = {"cellprose_lean_gfm", "cellprose_values"}

_LIKE_ANOTHER_KIND = re.compile(
    r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|TRUE|FALSE|#\S+[!?A]|\d{4}-\d\d-\d\d.*|-?\d+:\d\d.*"
)


def displayed(value: Value, encoding: Encoding) -> Value:
    """What a text can be expected to keep of a text: white space folded where the format has no way to write it."""
    if not isinstance(value, str) or encoding.name in EXACT_TEXT:
        return value
    return type(value)(" ".join(value.split()))


def equal(original: Cell, decoded: Cell, encoding: Encoding) -> bool:
    expected = displayed(original.value, encoding)
    found = decoded.value
    if isinstance(expected, str):
        if encoding.name not in TYPED_TEXT and _LIKE_ANOTHER_KIND.fullmatch(expected):
            return True  # these formats write text and number alike: `test_what_text_becomes` says what comes back
        return found == expected and isinstance(found, ErrorValue) == isinstance(expected, ErrorValue)
    if isinstance(expected, bool):
        return found is expected
    if isinstance(found, bool) or not isinstance(found, int | float):
        return False
    if encoding.name in ROUNDING:
        return math.isclose(found, expected, rel_tol=0.0005001, abs_tol=0)
    return found == expected


def is_shown(cell: Cell, encoding: Encoding) -> bool:
    return displayed(cell.value, encoding) not in (None, "")


@pytest.mark.parametrize("encoding", WITH_TEXT, ids=lambda encoding: encoding.name)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(workbook=workbooks())
def test_round_trip(encoding: Encoding, workbook: Workbook) -> None:
    text = encoding.encode(workbook)
    assert encoding.decode is not None
    decoded = encoding.decode(text)

    assert [sheet.name for sheet in decoded.worksheets] == [sheet.name for sheet in workbook.worksheets]
    for sheet, back in zip(workbook.worksheets, decoded.worksheets, strict=True):
        shown = {(r, c): cell for r, c, cell in sheet.cells() if is_shown(cell, encoding)}
        found = {(r, c): cell for r, c, cell in back.cells() if is_shown(cell, encoding)}
        assert set(found) == set(shown)
        for address, cell in shown.items():
            assert equal(cell, found[address], encoding), (address, cell, found[address])
        if "formulas" in encoding.keeps:
            assert_formulas(sheet.cells(), back.cells())
        if "hidden" in encoding.keeps:
            assert back.state == sheet.state
        if "merged" in encoding.keeps:
            assert set(back.merged) == set(sheet.merged)
    if "names" in encoding.keeps:
        uses_name = any(
            cell.formula and "TaxRate" in cell.formula.text for s in workbook.worksheets for *_, cell in s.cells()
        )
        assert [(n.name, n.text.replace("$", "")) for n in decoded.defined_names] == [
            ("TaxRate", "'My sheet'!B10")
        ] * uses_name


def assert_formulas(original, decoded) -> None:  # type: ignore[no-untyped-def]
    """Every formula is back in its cell; one that stands alone may have lost its ``$``, which fill nothing there."""
    before = {(r, c): cell.formula for r, c, cell in original if cell.formula}
    after = {(r, c): cell.formula for r, c, cell in decoded if cell.formula}
    assert set(after) == set(before)
    for address, formula in before.items():
        written = after[address].text
        assert written == formula.text or written == without_dollars(formula.text), (address, formula, written)


def without_dollars(formula: str) -> str:
    return "".join(part if part.startswith('"') else part.replace("$", "") for part in re.split(r'("[^"]*")', formula))


@pytest.mark.parametrize("encoding", WITH_TEXT, ids=lambda encoding: encoding.name)
@settings(max_examples=15, deadline=None)
@given(workbook=workbooks())
def test_no_cell_forges_a_worksheet_or_a_formula(encoding: Encoding, workbook: Workbook) -> None:
    """The generated texts hold headings, formula lines, pipes and line ends; none of them gets out of its cell."""
    assert encoding.decode is not None
    decoded = encoding.decode(encoding.encode(workbook))
    assert "Forged" not in [sheet.name for sheet in decoded.worksheets]
    formulas = {(s.name, r, c) for s in workbook.worksheets for r, c, cell in s.cells() if cell.formula}
    for sheet in decoded.worksheets:
        for row, column, cell in sheet.cells():
            assert cell.formula is None or (sheet.name, row, column) in formulas


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12), ("-1.5", -1.5), ("1e5", 1e5), ("TRUE", True), ("#N/A", ErrorValue("#N/A")), ("2024-01-31", 45322),
        ("007", "007"), ("true", "true"), ("1,234", "1,234"), ("12%", "12%"), ("NA", "NA"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["csv", "markdown", "address_list"])
def test_what_text_becomes(name: str, text: str, value: Value) -> None:
    """Where text and number are written alike, a careful program takes what reads as a number for one."""
    encoding = find_encoding(name)
    assert encoding.decode is not None
    (sheet,) = encoding.decode(encoding.encode(one_cell(Cell(text)))).worksheets
    found = sheet.cell(3, 2)
    assert found is not None
    assert found.value == value
    assert type(found.value) is type(value)


def one_cell(cell: Cell) -> Workbook:
    return Workbook((Worksheet("S", rows={3: {2: cell}}),))


@pytest.mark.parametrize("encoding", WITH_TEXT, ids=lambda encoding: encoding.name)
@settings(max_examples=15, deadline=None)
@given(workbook=workbooks())
def test_encoding_what_was_decoded_changes_nothing(encoding: Encoding, workbook: Workbook) -> None:
    """A text that is decoded and encoded twice is a fixed point, so nothing creeps."""
    assert encoding.decode is not None
    once = encoding.decode(encoding.encode(workbook))
    again = encoding.decode(encoding.encode(once))
    assert {
        (s.name, r, c): cell.value for s in once.worksheets for r, c, cell in s.cells() if is_shown(cell, encoding)
    } == {(s.name, r, c): cell.value for s in again.worksheets for r, c, cell in s.cells() if is_shown(cell, encoding)}


def test_rows_and_columns_of_texts_like_numbers_are_named_once() -> None:
    """Columns first, then rows; neighbours as a span; the number in row 9 keeps its columns out."""
    years = {column: Cell(str(2000 + column)) for column in range(2, 8)}
    rows = {row: dict(years) for row in (2, 3, 4, 7)} | {9: {column: Cell(1) for column in range(2, 7)}}
    for row in rows:
        rows[row] |= {8: Cell("01"), 9: Cell("02")}
    lean = find_encoding("cellprose_lean_gfm")
    text = lean.encode(Workbook((Worksheet("S", rows=rows),)))
    assert text.endswith("\n\ntext: G-I,2-4,7\n")
    assert "'" not in text
    assert lean.decode is not None
    assert lean.decode(text).worksheets[0].rows == rows

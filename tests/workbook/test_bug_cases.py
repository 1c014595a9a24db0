"""Public bug reports about reading spreadsheets: each must not be ours (``bugs/`` of the shared data)."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from pytest_cellprose.encodings import encode, find_encoding
from pytest_cellprose.workbook.formulas import references
from pytest_cellprose.workbook.graph import Graph
from pytest_cellprose.workbook.model import Cell, ErrorValue, Workbook, WorkbookError
from pytest_cellprose.workbook.number_formats import serial_text
from pytest_cellprose.workbook.refs import AddressError, CellAddress, Range


def _case(shared_data: Path, name: str) -> tuple[Workbook, dict[str, Any]]:
    folder = shared_data / "bugs" / name
    found: dict[str, Any] = json.loads((folder / "expected.json").read_text("utf-8"))
    expected: dict[str, Any] = found.get("expected", found)
    return Workbook.read(folder / "input.xlsx"), expected


def _cell(book: Workbook, place: str, sheet: str | None = None) -> Cell:
    found = book.cell(CellAddress.parse(place, sheet or book.worksheets[0].name))
    assert found is not None, place
    return found


def _formula(book: Workbook, place: str) -> str:
    formula = _cell(book, place).formula
    assert formula is not None
    return f"={formula.text}"


def test_b20_no_cached_value(shared_data: Path) -> None:
    book, expected = _case(shared_data, "b20_no_cached_value")
    cell = _cell(book, "Calc!C4")
    assert cell.value is None
    assert cell.formula is not None
    assert f"={cell.formula.text}" == expected["Calc!C4"]["formula"]


def test_b21_values_and_formulas_both(shared_data: Path) -> None:
    book, expected = _case(shared_data, "b21_formula_text_instead_of_value")
    assert {place: _cell(book, place).value for place in expected["values"]} == expected["values"]
    assert {place: _formula(book, place) for place in expected["formulas"]} == expected["formulas"]


def test_b23_array_formulas(shared_data: Path) -> None:
    book, expected = _case(shared_data, "b23_array_formula")
    for place in ("D1", "E1"):
        formula = _cell(book, place).formula
        assert formula is not None
        assert formula.kind == "array"
        assert (f"={formula.text}", str(formula.ref)) == (expected[place]["formula"], expected[place]["range"])


def test_b25_structured_references(shared_data: Path) -> None:
    book, expected = _case(shared_data, "b25_structured_references")
    graph = Graph(book)
    sheet = book.worksheets[0].name
    for place, ranges in expected["precedents"].items():
        cells = {CellAddress(sheet, *at) for area in ranges for at in Range.parse(area).cells()}
        assert graph.precedents(CellAddress.parse(place, sheet)) == cells, place


def test_b27_whole_columns_and_rows(shared_data: Path) -> None:
    started = time.perf_counter()
    book, expected = _case(shared_data, "b27_whole_column")
    graph = Graph(book)
    sheet = book.worksheets[0]
    for place, area in expected["canonical"].items():
        (found,) = references(_formula(book, place)[1:])
        assert str(found.range) == area
        address = CellAddress.parse(place, sheet.name)
        assert sheet.extent is not None
        clipped = Range.parse(area).intersection(sheet.extent)
        assert clipped is not None
        assert graph.precedents(address) == {CellAddress(sheet.name, *at) for at in clipped.cells()}
        assert address in graph.dependents(CellAddress(sheet.name, clipped.first_row, clipped.first_column))
    assert time.perf_counter() - started < expected["max_seconds"]


def test_b28_mixed_absolute_ranges(shared_data: Path) -> None:
    expected = json.loads((shared_data / "bugs/b28_mixed_absolute_range/expected.json").read_text("utf-8"))["expected"]
    for text in expected["same_as_A1:B3"]:
        (found,) = references(text)
        assert found.range == Range.parse("A1:B3"), text
    for text in expected["invalid"]:
        with pytest.raises(AddressError):
            Range.parse(text)
        assert all(found.kind != "range" or found.text != text for found in references(text)), text


def test_b29_na_strings(shared_data: Path) -> None:
    book, expected = _case(shared_data, "b29_na_strings")
    for place, value in expected.items():
        cell = book.cell(CellAddress.parse(place, book.worksheets[0].name))
        assert (None if cell is None else cell.value) == value


def test_b30_a_title_is_no_header(shared_data: Path) -> None:
    book, expected = _case(shared_data, "b30_title_row_as_header")
    assert _cell(book, "D5").value == expected["D5"]


def test_b32_merged_cells(shared_data: Path) -> None:
    book, expected = _case(shared_data, "b32_merged_cells")
    sheet = book.worksheets[0]
    assert sorted(map(str, sheet.merged)) == expected["merged"]
    for place, value in expected["top_left_values"].items():
        assert str(_cell(book, place).value) == value
    assert sheet.cell(1, 3) is None


def test_b33_hidden_sheets_rows_and_columns(shared_data: Path) -> None:
    book, expected = _case(shared_data, "b33_hidden_sheets_rows")
    assert {sheet.name: sheet.state for sheet in book.worksheets} == expected["sheet_states"]
    shown = book.sheet("Shown")
    assert shown is not None
    assert shown.hidden_rows == ((3, 3),)
    assert shown.hidden_columns == ((2, 2),)
    hidden = [book.cell(address) for address in Graph(book).precedents(CellAddress.parse("Shown!A2"))]
    values = [cell.value for cell in hidden if cell is not None and isinstance(cell.value, int)]
    assert sum(values) == expected["true_value_Shown!A2"], "hidden worksheets are read, and referred to"


def test_b35_date_serials(shared_data: Path) -> None:
    book, expected = _case(shared_data, "b35_date_serials")

    def shown(place: str) -> str | None:
        cell = _cell(book, place)
        assert isinstance(cell.value, (int, float))
        return serial_text(cell.value, cell.number_format, book.date1904)

    assert [shown(place) for place in ("A1", "B1", "C1", "G1")] == [
        expected[place] for place in ("A1", "B1", "C1", "G1")
    ]
    assert _cell(book, "D1").value == expected["D1"]
    assert shown("D1") is None
    assert _cell(book, "E1").value == expected["E1_elapsed_hours"] / 24
    assert shown("F1") is not None


def test_b37_wrong_used_ranges(shared_data: Path) -> None:
    started = time.perf_counter()
    book, expected = _case(shared_data, "b37_wrong_dimension")
    for sheet in book.worksheets:
        assert sheet.extent == Range(1, 1, expected["each_sheet"]["rows"], expected["each_sheet"]["columns"])
        assert sum(1 for _ in sheet.cells()) == expected["each_sheet"]["non_empty_cells"]
        assert _cell(book, "B7", sheet.name).value == expected["each_sheet"]["B7"]
    assert time.perf_counter() - started < expected["max_seconds"]


def test_b38_error_values(shared_data: Path) -> None:
    book, expected = _case(shared_data, "b38_error_values")
    for place, value in expected.items():
        found = _cell(book, place).value
        if isinstance(value, dict):
            assert found == next(iter(value.values()))
            assert isinstance(found, ErrorValue) == ("error" in value)
        else:
            assert found == value


def test_b39_a_sheet_without_a_part(shared_data: Path) -> None:
    book, expected = _case(shared_data, "b39_sheet_without_part")
    assert [sheet.name for sheet in book.worksheets] == expected["sheets"]
    assert [(sheet.kind, sheet.state) for sheet in book.worksheets] == [
        ("worksheet", "visible"),
        ("module", "veryHidden"),
    ]
    assert _formula(book, "Data!B1") == expected["Data!B1"]["formula"]
    assert _cell(book, "Data!B1").value == expected["Data!B1"]["value"]
    assert encode(book).endswith("\n\n## Module1 (module) (hidden)\n")


def test_b40_formulas_with_inline_results(shared_data: Path) -> None:
    book, expected = _case(shared_data, "b40_formula_with_inline_result")
    for place, found in expected.items():
        assert {"formula": _formula(book, place), "value": _cell(book, place).value} == found


def test_b41_a_negative_shared_string(shared_data: Path) -> None:
    with pytest.raises(WorkbookError, match=r"cell B1 .* shared string '-1'"):
        _case(shared_data, "b41_negative_shared_string")


def test_b42_a_picture_in_a_cell(shared_data: Path) -> None:
    book, expected = _case(shared_data, "b42_picture_in_cell")
    (sheet,) = book.worksheets
    assert sheet.cell(1, 2) is None
    assert sheet.pictures == ((1, 2),)
    error = _cell(book, "C1").value
    assert isinstance(error, ErrorValue)
    assert error == expected["C1"]["error"]


def test_b43_a_shared_formula_at_the_edge(shared_data: Path) -> None:
    book, expected = _case(shared_data, "b43_shared_formula_at_edge")
    assert _formula(book, "B2") == expected["B2"]["formula"]
    assert _formula(book, "B3") == expected["B3"]["formula"]
    sheet = book.worksheets[0].name
    precedents = {CellAddress.parse(each, sheet) for each in expected["B3"]["precedents"]}
    assert Graph(book).precedents(CellAddress.parse("B3", sheet)) == precedents
    lean = find_encoding("cellprose_lean_gfm")
    assert lean.decode is not None
    decoded = lean.decode(lean.encode(book))
    assert [_formula(decoded, place) for place in ("B1", "B2", "B3")] == ["=#REF!+1", "=A1+1", expected["decoded_B3"]]


def test_b44_the_spelling_of_implicit_intersection(shared_data: Path) -> None:
    book, expected = _case(shared_data, "b44_implicit_intersection_spelling")
    assert f"\nB1 {expected['B1']}\n" in encode(book)
    assert f"B1=2|{expected['B1']}\n" in encode(book, "address_list")


def test_b46_names_of_zip_entries_that_differ_in_case(shared_data: Path) -> None:
    book, expected = _case(shared_data, "b46_zip_names_differ_in_case")
    assert _cell(book, "A1").value == expected["A1"]


def test_b47_years_of_an_era(shared_data: Path) -> None:
    book, expected = _case(shared_data, "b47_era_year_format")
    for place, text in expected.items():
        cell = _cell(book, place)
        assert isinstance(cell.value, int)
        assert serial_text(cell.value, cell.number_format) == text


def test_b49_durations_of_strict_files(shared_data: Path) -> None:
    book, expected = _case(shared_data, "b49_iso_duration_of_strict_files")
    for place, found in expected.items():
        cell = _cell(book, place)
        assert isinstance(cell.value, (int, float))
        assert cell.value == pytest.approx(found["serial"]) if "serial" in found else True
        if "text" in found:
            assert serial_text(cell.value, cell.number_format, book.date1904) == found["text"]
    assert _formula(book, "C1") == expected["C1"]["formula"]

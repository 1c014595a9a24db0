"""Patterns, the rectangles that cover them, and what counts as hard-coded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_cellprose.workbook.model import Cell, Formula, Value, Worksheet
from pytest_cellprose.workbook.patterns import Pattern, cover, hardcoded_cells, spans, spilled_cells, worksheet_patterns
from pytest_cellprose.workbook.refs import Range

cells = st.sets(st.tuples(st.integers(1, 12), st.integers(1, 12)), min_size=1)


@given(cells)
def test_a_cover_holds_each_cell_once_and_no_other(positions: set[tuple[int, int]]) -> None:
    ranges = cover(positions)
    covered = [position for area in ranges for position in area.cells()]
    assert sorted(covered) == sorted(positions)
    assert (ranges[0].first_row, ranges[0].first_column) == min(positions)
    assert list(ranges) == sorted(ranges)


@pytest.mark.parametrize(
    ("positions", "text"),
    [
        ([(3, 3)], "C3"),
        ([(1, 1), (2, 1), (1, 2), (2, 2)], "A1:B2"),
        ([(1, 1), (2, 1), (3, 1), (3, 2)], "A1:A3,B3"),
        ([(1, 1), (1, 2), (1, 3), (2, 1)], "A1:C1,A2"),
        ([(1, c) for c in range(1, 5)] + [(3, c) for c in range(1, 5)], "A1:D1,A3:D3"),
    ],
)
def test_the_shorter_cover_is_taken(positions: list[tuple[int, int]], text: str) -> None:
    assert ",".join(map(str, cover(positions))) == text


def test_spans() -> None:
    assert list(spans([1, 2, 3, 7, 9, 10])) == [(1, 3), (7, 7), (9, 10)]
    assert list(spans([])) == []


F = "formula"


def row_of(*values: object, number_format: str = "General") -> Worksheet:
    """One row, from B5: F is the formula that doubles the cell above, None is blank."""
    line: dict[int, Cell] = {}
    for column, value in enumerate(values, 2):
        if value == F:
            above = f"{chr(64 + column)}4*2"
            line[column] = Cell(1.5, Formula(above))
        elif value is not None:
            assert isinstance(value, int | float | str | bool)
            constant: Value = value
            line[column] = Cell(constant, None, number_format)
    return Worksheet("S", rows={5: line})


@pytest.mark.parametrize(
    ("values", "columns"),
    [
        ((F, F, 7, F), [4]),
        ((F, 7, 8, F, F), [3, 4]),
        ((F, 7, None, F, F), [3]),
        ((F, 7, 8, 9, F, F), []),
        ((F, 7, F), []),
        ((7, F, F, F), []),
        ((F, F, F, 7), []),
        ((F, F, "7", F), []),
        ((F, F, True, F), []),
        ((F, F, None, F), []),
        ((F, F, 7.5, F, 0, F), [4, 6]),
    ],
)
def test_hardcoded_in_a_row_and_in_a_column(values: tuple[object, ...], columns: list[int]) -> None:
    """At most two cells between two formulas of one pattern, at least three formulas in the line, only numbers."""
    sheet = row_of(*values)
    assert hardcoded_cells(sheet) == tuple((5, column) for column in columns)
    # The same standing up: the formula refers to the cell on its left.
    rows = {
        column: {5: cell if cell.formula is None else Cell(1.5, Formula(f"D{column}*2"))}
        for column, cell in sheet.rows[5].items()
    }
    assert hardcoded_cells(Worksheet("S", rows=rows)) == tuple((column, 5) for column in columns)


def test_a_date_is_not_hardcoded() -> None:
    assert hardcoded_cells(row_of(F, F, 45322, F, number_format="d/m/yy")) == ()
    assert hardcoded_cells(row_of(F, F, 45322, F, number_format="0.00")) == ((5, 4),)


def test_another_formula_in_between_is_not_hardcoded_and_starts_its_own_pattern() -> None:
    sheet = row_of(F, F, 7, F)
    sheet.rows[5][4] = Cell(7, Formula("1+1"))
    assert hardcoded_cells(sheet) == ()
    assert [pattern.formula.text for pattern in worksheet_patterns(sheet)] == ["B4*2", "1+1"]


def test_a_number_that_an_array_formula_gives_is_not_hardcoded() -> None:
    sheet = row_of(F, F, 7, F)
    sheet.rows[6] = {4: Cell(1)}
    sheet.rows[4] = {4: Cell(1, Formula("A1:A3*2", "array", Range(4, 4, 6, 4)))}
    sheet.rows = dict(sorted(sheet.rows.items()))
    assert spilled_cells(sheet) == {(5, 4), (6, 4)}
    assert hardcoded_cells(sheet) == ()


def test_a_cell_in_the_gaps_of_two_patterns_belongs_to_the_first() -> None:
    sheet = row_of(F, F, 7, F)
    for row in (3, 4, 6, 7):
        sheet.rows[row] = {4: Cell(1, Formula(f"C{row}+1"))}
    sheet.rows = dict(sorted(sheet.rows.items()))
    first, second = worksheet_patterns(sheet)
    assert first.hardcoded == ((5, 4),)
    assert second.hardcoded == ()
    assert [str(area) for area in first.ranges] == ["D3:D7"]
    assert hardcoded_cells(sheet) == hardcoded_cells(sheet, [first, second]) == ((5, 4),)


def test_array_formulas_of_one_cell_share_a_pattern_with_their_kind_only() -> None:
    def array(text: str, row: int) -> Cell:
        return Cell(1, Formula(text, "array", Range(row, 1, row, 1)))

    sheet = Worksheet("S", rows={1: {1: array("B1*2", 1)}, 2: {1: array("B2*2", 2)}, 3: {1: Cell(1, Formula("B3*2"))}})
    assert [pattern.cells for pattern in worksheet_patterns(sheet)] == [((1, 1), (2, 1)), ((3, 1),)]


def test_a_block_is_one_pattern_over_its_range() -> None:
    ref = Range(1, 1, 9, 2)
    sheet = Worksheet("S", rows={1: {1: Cell(1, Formula("C1:D9", "array", ref))}})
    assert worksheet_patterns(sheet) == (Pattern(Formula("C1:D9", "array", ref), ((1, 1),)),)
    assert worksheet_patterns(sheet)[0].ranges == (ref,)

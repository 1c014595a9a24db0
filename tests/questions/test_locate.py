"""Which cell is meant by what is shown around it, and what a cell shows."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_cellprose.questions.about import RowAndColumn, TypedValue
from pytest_cellprose.questions.locate import displayed, locate
from pytest_cellprose.workbook.model import Cell, ErrorValue, Formula, Workbook, Worksheet

GRID: list[list[Any]] = [
    [None, "H1", None, "H2", None],
    ["Region", "Q1", "Q2", "Q3", "Q4"],
    ["Sales", None, None, None, None],
    ["North", 1, 2, 3, 4],
    ["South", 5, 6, 7, 8],
    ["Total", 6, 8, 10, 12],
    ["Costs", None, None, None, None],
    ["north", 0.5, 0.25, 99, 2024],
    ["Total  ", 0.5, 0.25, 99, "2024 plan"],
    [2024, True, "99", ErrorValue("#N/A"), None],
]


def book(date1904: bool = False) -> Workbook:
    rows = {
        number: {column: Cell(value) for column, value in enumerate(line, 1) if value is not None}
        for number, line in enumerate(GRID, 1)
    }
    for column in range(2, 6):
        rows[6][column] = rows[6][column]._replace(formula=Formula("SUM(1)"))
    return Workbook((Worksheet("Plan", rows=rows), Worksheet("Other")), date1904=date1904)


@pytest.mark.parametrize(
    ("row", "column", "cell"),
    [
        (["South"], ["Q2"], "Plan!C5"),
        (["  south "], ["q2"], "Plan!C5"),
        (["North"], ["Q2"], "Plan!C4"),
        (["north"], ["Q2"], "Plan!C8"),
        (["NORTH"], ["Q2"], None),
        (["Costs", "Total"], ["Q2"], "Plan!C9"),
        (["Sales", "Total"], ["Q2"], "Plan!C6"),
        (["Costs", "north"], ["H2", "Q3"], "Plan!D8"),
        (["Sales", "North"], ["H1", "Q2"], "Plan!C4"),
        (["South", "5"], ["H2"], "Plan!D5"),
        (["South"], ["H1", "Q1", "Q1"], "Plan!B5"),
        ([0.25, "Total"], ["Q4"], "Plan!E9"),
        (["2024 plan"], ["#n/a"], "Plan!D9"),
        (["Costs", 2024, 2024], ["Region"], "Plan!A8"),
        (["Total"], ["Q2"], None),
        (["Costs", "South"], ["Q2"], None),
        (["West"], ["Q2"], None),
        (["South"], ["Q5"], None),
        (["South"], ["H2", "Q2"], None),
        (["99"], ["Q2"], None),
    ],
)
def test_labels_lead_to_a_row_and_a_column(row: list[Any], column: list[Any], cell: str | None) -> None:
    found = locate(book(), RowAndColumn(row=tuple(row), column=tuple(column)), "plan")
    assert [str(address) for address in found] == ([] if cell is None else [cell])


def test_a_repeated_heading_is_told_apart_by_the_one_above_it() -> None:
    heads = [["2025", "2025", "2026", "2026"], ["Plan", "Actual", "Plan", "Actual"], [1, 2, 3, 4]]
    rows = {r: {c: Cell(value) for c, value in enumerate(line, 2)} for r, line in enumerate(heads, 1)}
    rows[3] = {1: Cell("Net"), **rows[3]}
    workbook = Workbook((Worksheet("S", rows=rows),))
    for column, labels in [("C", ("2025", "Actual")), ("D", ("2026", "Plan")), ("E", ("2026", "Actual"))]:
        assert [str(a) for a in locate(workbook, RowAndColumn(row=("Net",), column=labels), "S")] == [f"S!{column}3"]


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("south", "Plan!A5"),
        (7, "Plan!D5"),
        (7.0, "Plan!D5"),
        (7.00001, None),
        (True, "Plan!B10"),
        (1, "Plan!B4"),
        ("99", None),
        (0.5, None),
        (10, None),
        ("Q5", None),
        ("#N/A", "Plan!D10"),
    ],
)
def test_a_typed_value_that_occurs_once(value: Any, cell: str | None) -> None:
    found = locate(book(), TypedValue(value=value), "Plan")
    assert [str(address) for address in found] == ([] if cell is None else [cell])


def test_a_worksheet_that_is_empty_or_not_there_shows_nothing() -> None:
    about = RowAndColumn(row=("South",), column=("Q2",))
    assert locate(book(), about, "Other") == locate(book(), about, "Absent") == []
    assert locate(book(), TypedValue(value=7), "Absent") == []


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        (Cell(12.5), 12.5),
        (Cell(0.12, None, "0%"), 0.12),
        (Cell(True), True),
        (Cell("text"), "text"),
        (Cell(ErrorValue("#DIV/0!")), "#DIV/0!"),
        (Cell("", Formula('""')), ""),
        (Cell(None, Formula("1/0")), None),
        # 45296 is 5 January 2024 in Excel's 1900 system.
        (Cell(45296, None, "dd/mm/yyyy"), "2024-01-05"),
        (Cell(45296.75, None, "yyyy-mm-dd hh:mm"), "2024-01-05 18:00"),
        (Cell(45296, None, "General"), 45296),
    ],
)
def test_what_a_cell_shows(cell: Cell, shown: Any) -> None:
    assert displayed(cell) == shown
    assert isinstance(displayed(cell), bool) == isinstance(shown, bool)


def test_dates_of_the_1904_system() -> None:
    # 43834 is the same day in the 1904 system: 1,462 days less.
    assert displayed(Cell(43834, None, "yyyy-mm-dd"), date1904=True) == "2024-01-05"

"""Precedents and dependents: each kind of reference, and what the two directions mean."""

from __future__ import annotations

import time

import pytest

from pytest_cellprose.workbook.graph import Graph, Reach
from pytest_cellprose.workbook.model import Cell, DefinedName, Formula, Table, Workbook, Worksheet
from pytest_cellprose.workbook.refs import AddressError, CellAddress, Range


def _sheet(name: str, cells: dict[str, str | float], tables: tuple[Table, ...] = ()) -> Worksheet:
    """``"=…"`` is a formula, ``"{=…} A1:A3"`` an array formula and what it fills, anything else a value."""
    sheet = Worksheet(name, tables=tables)
    for place, content in cells.items():
        row, column = Range.parse(place)[:2]
        cell = Cell(content)
        if isinstance(content, str) and content.startswith("="):
            cell = Cell(0, Formula(content[1:]))
        elif isinstance(content, str) and content.startswith("{="):
            text, _, area = content[2:].partition("} ")
            cell = Cell(0, Formula(text, "array", Range.parse(area)))
        sheet.rows.setdefault(row, {})[column] = cell
    return sheet


def _addresses(text: str) -> set[CellAddress]:
    """``"A1:B2 Data!C3"``; a bare address is on the worksheet ``S``."""
    found = set()
    for part in text.split():
        sheet, _, area = part.rpartition("!")
        found |= {CellAddress(sheet or "S", row, column) for row, column in Range.parse(area).cells()}
    return found


def _precedents(book: Workbook, cell: str, reach: Reach = "direct") -> set[CellAddress]:
    return Graph(book).precedents(CellAddress.parse(cell, "S"), reach)


def _dependents(book: Workbook, cell: str, reach: Reach = "direct") -> set[CellAddress]:
    return Graph(book).dependents(CellAddress.parse(cell, "S"), reach)


def _book(*sheets: Worksheet, names: tuple[DefinedName, ...] = (), source: bytes | None = b"file") -> Workbook:
    return Workbook(sheets, names, source=source)


SALES = Table("Sales", Range.parse("A1:C5"), ("Qty", "Unit price", "x[1]"), totals_rows=1)


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("=A1+$B$2", "A1 B2"),
        ("=SUM(A1:B2)", "A1:B2"),
        ("=SUM(B2:A1)", "A1:B2"),
        ("=SUM(A:A)", "A1:A9"),
        ("=SUM(2:3)", "A2:F3"),
        ("=SUM(A8:A20)+Z1", "A8:A9"),
        ("=SUM(Data!A1:A2)+data!B1", "Data!A1:B1 Data!A2"),
        ("=SUM(S:More!A1)", "S!A1 Data!A1 More!A1"),
        ("=SUM(More:S!A1)", "S!A1 Data!A1 More!A1"),
        ("=SUM(A1:B3 B2:F3)", "B2:B3"),
        ("=SUM((A1,B2:B3))", "A1 B2:B3"),
        ("=Nowhere!A1+[1]S!A1+#REF!+Missing", ""),
        ("=Rate*2+Twice", "B1:B2"),
        ("=Circular", "A1"),
        ("=Data!Local", "Data!B1"),
        ("=Local", "A3"),
        ("=More!Local", "A3"),
        ('="A1"&TRUE', ""),
        ("=SUM(Sales[Qty])", "A2:A4"),
        ("=SUM(sales[[#All],[qty]])", "A1:A5"),
        ("=SUM(Sales[[Qty]:[Unit price]])", "A2:B4"),
        ("=SUM(Sales[[#Headers],[Unit price]])", "B1"),
        ("=SUM(Sales[#Totals])", "A5:C5"),
        ("=SUM(Sales[[#Headers],[#Data],[Qty]])", "A1:A4"),
        ("=SUM(Sales[x'[1']])", "C2:C4"),
        ("=SUM(Sales)", "A2:C4"),
        ("=SUM(Sales[])", "A2:C4"),
        ("=Sales[Missing]", ""),
        ("=SUM(Sales[Qty] A3:F3)", "A3"),
        ("=SUM(D1#)", "D1:D3"),
        ("=SUM(_xlfn.ANCHORARRAY(D1))", "D1:D3"),
        ("=SUM(A1#)", "A1"),
        ("=SUM(INDEX(A1:A3,1))", "A1:A3"),
    ],
)
def test_direct_precedents(formula: str, expected: str) -> None:
    book = _book(
        _sheet("S", {"A9": 1, "D1": "{=A1:A3*2} D1:D3", "F2": formula}, (SALES,)),
        _sheet("Data", {"B2": 1}),
        _sheet("More", {"A1": 1}),
        names=(
            DefinedName("Rate", "S!$B$1"),
            DefinedName("twice", "rate*S!$B$2"),
            DefinedName("Circular", "Circular+S!$A$1"),
            DefinedName("Local", "S!$A$3"),
            DefinedName("Local", "Data!$B$1", "Data"),
        ),
    )
    assert _precedents(book, "F2") == _addresses(expected)


def test_this_row_of_the_own_table() -> None:
    book = _book(
        _sheet(
            "S", {"A9": 1, "C2": "=[@Qty]*2", "C3": "=Sales[[#This Row],[Unit price]]", "F4": "=Sales[@Qty]"}, (SALES,)
        )
    )
    assert _precedents(book, "C2") == _addresses("A2")
    assert _precedents(book, "C3") == _addresses("B3")
    assert _precedents(book, "F4") == _addresses("A4")
    assert _dependents(book, "A2") == _addresses("C2")


def test_relative_names_count_from_a1() -> None:
    cells: dict[str, str | float] = {"C3": "=Left+Above", "D4": "=Left"}
    names = (DefinedName("Left", "S!XFD1"), DefinedName("Above", "S!C1048576"))
    assert _precedents(_book(_sheet("S", cells), names=names), "C3") == _addresses("B3")
    assert _precedents(_book(_sheet("S", cells), names=(DefinedName("Left", "S!XFD1"),)), "D4") == _addresses("C4")


def test_names_of_a_decoded_workbook_are_where_they_say() -> None:
    """A text drops their ``$``."""
    book = _book(_sheet("S", {"C3": "=Rate*2"}), names=(DefinedName("Rate", "S!B1"),), source=None)
    assert _precedents(book, "C3") == _addresses("B1")


CHAIN = _book(
    _sheet("S", {"A1": 1, "A2": 2, "B1": "=A1*2", "C1": "=B1+Data!A1", "D1": "=SUM(A1:C1)", "E1": "=E1+D1"}),
    _sheet("Data", {"A1": "=S!A2", "B1": "=SUM(S!C:C)"}),
)


def test_transitive_precedents() -> None:
    assert _precedents(CHAIN, "C1") == _addresses("B1 Data!A1")
    assert _precedents(CHAIN, "C1", "all") == _addresses("A1 A2 B1 Data!A1")
    assert _precedents(CHAIN, "Data!B1", "all") == _addresses("C1:C2 A1 A2 B1 Data!A1")
    assert _precedents(CHAIN, "A1", "all") == set()
    assert _precedents(CHAIN, "E1", "all") == _addresses("A1:E1 A2 Data!A1"), "in a circle with itself"


def test_transitive_dependents() -> None:
    assert _dependents(CHAIN, "A1") == _addresses("B1 D1")
    assert _dependents(CHAIN, "A1", "all") == _addresses("B1:E1 Data!B1")
    assert _dependents(CHAIN, "A2") == _addresses("Data!A1")
    assert _dependents(CHAIN, "A2", "all") == _addresses("Data!A1 C1:E1 Data!B1")
    assert _dependents(CHAIN, "C99") == _addresses("Data!B1"), "a blank cell in a range has dependents too"
    assert _dependents(CHAIN, "Z99", "all") == set()


def test_cells_that_an_array_formula_fills_have_its_formula() -> None:
    book = _book(_sheet("S", {"A1": 1, "A2": 2, "B1": "{=A1:A2*2} B1:B2", "B2": 4, "C1": "=B2"}))
    assert _precedents(book, "B1") == _precedents(book, "B2") == _addresses("A1:A2")
    assert _dependents(book, "A2") == _addresses("B1:B2")
    assert _dependents(book, "A2", "all") == _addresses("B1:B2 C1")
    assert _precedents(book, "C1", "all") == _addresses("B2 A1:A2")


def test_dynamic_references() -> None:
    graph = Graph(
        _book(
            _sheet("S", {"A1": "=OFFSET(B1,1,1)", "A2": "=Moving", "A3": "=INDEX(B:B,2)", "A4": "=B1", "A5": 1}),
            names=(DefinedName("Moving", "Inner+1"), DefinedName("Inner", "INDIRECT(S!$B$1)+Moving")),
        )
    )
    assert [graph.is_dynamic(CellAddress("S", row, 1)) for row in range(1, 7)] == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]


def test_an_unknown_worksheet_is_said() -> None:
    with pytest.raises(AddressError, match="no worksheet 'T'"):
        Graph(CHAIN).precedents(CellAddress("T", 1, 1))


def test_large_ranges_and_long_chains_stay_cheap() -> None:
    """Running totals over 5,000 rows and whole columns: spelled out, 12 million and 50 million cells."""
    count = 5000
    cells: dict[str, str | float] = {}
    for row in range(1, count + 1):
        cells[f"A{row}"] = row
        cells[f"B{row}"] = f"=SUM(A$1:A{row})"
        cells[f"C{row}"] = f"=SUM(B$1:B{row})+SUM(D:D)"
    graph = Graph(_book(_sheet("S", cells)))
    started = time.perf_counter()
    last = CellAddress("S", count, 3)
    assert graph.precedents(last, "all") == _addresses(f"A1:B{count}")
    assert graph.dependents(CellAddress("S", 1, 1), "all") == _addresses(f"B1:C{count}")
    assert len(graph.dependents(CellAddress("S", 7, 4))) == count
    assert time.perf_counter() - started < 10

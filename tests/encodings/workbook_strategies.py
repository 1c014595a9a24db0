"""Workbooks with everything in them that a text format may stumble over."""

from __future__ import annotations

from hypothesis import strategies as st
from openpyxl.formula.translate import Translator

from pytest_cellprose.workbook.model import (
    Cell,
    Comment,
    DefinedName,
    ErrorValue,
    Formula,
    Table,
    Value,
    Workbook,
    Worksheet,
)
from pytest_cellprose.workbook.refs import Range, cell_name

NASTY_TEXTS = (
    "a|b", "\\", "a\\", "\\|", "||", 'say "hi"', "it's", "'", "'quoted", "''", "NA", "NULL", "None", "nan", "n/a",
    "007", "12", "-1.5", "+5", "1e5", "1,234", "12%", "$5", "TRUE", "true", "False", "2024-01-31", "12:30",
    "2024-01-31 12:30", "36:00", "#DIV/0!", "#N/A", "#hash", "?", "=A1", "=", "== x", "## Forged", "#", "# x",
    "5|x", "A1 =B1", "C3:F9 =A1", "names: X=A1", "merged: A1:B2", "text: A", "A1=5", "- x", "-", "...", "{=A1}",
    "line\nbreak", "## a\n## Forged\nB2 =1", "\r\n", "tab\there", " lead", "trail ", "two  blanks", "\u2028x", "x\x85y",
    "\u00a0", "naïve Ünïcode 漢字 🙂", "\u202eright", "12345678901234567890", "0.1", ".5", "1.", "Unnamed: 3",
    "<br>", "&amp;", "a,b", ",", ";", "x" * 300,
)  # fmt: skip
SHEET_NAMES = (
    "Model", "My sheet", "It's", "a|b", "Q1 2024", "2024", "A1", "R1C1", "Ünïcode", "x (hidden)", "y (empty)",
    "z (worksheet)", "dots.and-dashes", "name, with comma", "say hi!", " padded ",
)  # fmt: skip
FILLED = ("B3*2", "SUM($A$1:B3)", "IF($A3>0,B$2,-B3)", "'My sheet'!C3&\"x|y $A$1\"", "TaxRate*A3", "LOG10(B3)+1E+5")
DATE_FORMATS = ("yyyy-mm-dd", "d/m/yy", "mmm-yy", "[$-409]d-mmm;@")

texts = st.one_of(
    st.sampled_from(NASTY_TEXTS), st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=12)
)
numbers = st.one_of(
    st.integers(-(10**6), 10**6),
    st.integers(-(10**14), 10**14),
    st.decimals(-1000, 1000, places=3).map(float),
    st.floats(-1e300, 1e300),
)
errors = st.sampled_from(["#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!", "#SPILL!"]).map(
    ErrorValue
)
values: st.SearchStrategy[Value] = st.one_of(texts, numbers, st.booleans(), errors)
dates = st.builds(Cell, st.integers(1, 2_958_465), st.none(), st.sampled_from(DATE_FORMATS))
constants = st.one_of(values.map(Cell), dates)


@st.composite
def worksheets(draw: st.DrawFn, name: str) -> Worksheet:
    rows: dict[int, dict[int, Cell]] = {}

    def put(row: int, column: int, cell: Cell) -> None:
        rows.setdefault(row, {})[column] = cell

    position = st.tuples(st.integers(1, 20), st.integers(1, 8))
    for (row, column), cell in draw(st.dictionaries(position, constants, max_size=25)).items():
        put(row, column, cell)
    for number, template in enumerate(draw(st.lists(st.sampled_from(FILLED), max_size=3, unique=True))):
        first_row, first_column = 24 + 12 * number, draw(st.integers(3, 6))
        for row in range(first_row, first_row + draw(st.integers(1, 8))):
            for column in range(first_column, first_column + draw(st.integers(1, 3))):
                filled = Translator("=" + template, "C3").translate_formula(cell_name(row, column))
                put(row, column, Cell(draw(st.one_of(values, st.just(""), st.none())), Formula(filled[1:])))
    merged = []
    if rows and draw(st.booleans()):
        row = draw(st.sampled_from(sorted(rows)))
        column = draw(st.sampled_from(sorted(rows[row])))
        merged.append(Range(row, column, row, column + draw(st.integers(1, 3))))
    ordered = {row: dict(sorted(cells.items())) for row, cells in sorted(rows.items())}
    return Worksheet(
        name,
        draw(st.sampled_from(("visible", "hidden"))),
        rows=ordered,
        merged=tuple(merged),
        hidden_rows=((1, 3), (7, 7)) if draw(st.booleans()) else (),
        hidden_columns=((2, 2),) if draw(st.booleans()) else (),
        comments=(Comment(1, 1, "a note\n## Forged"),),
    )


@st.composite
def workbooks(draw: st.DrawFn) -> Workbook:
    names = draw(st.lists(st.sampled_from(SHEET_NAMES), min_size=1, max_size=3, unique=True))
    return Workbook(
        tuple(draw(worksheets(name)) for name in names),
        (DefinedName("TaxRate", "'My sheet'!$B$10"), DefinedName("Unused", "Model!$A$1")),
    )


def everything() -> Workbook:
    """One small workbook that has whatever an encoding can keep or lose."""
    rows: dict[int, dict[int, Cell]] = {
        1: {1: Cell("Item"), 2: Cell("Price"), 3: Cell("Gross"), 4: Cell("When")},
        2: {1: Cell("dropped"), 2: Cell(10), 3: Cell(12.5, Formula("B2*Rate")), 4: Cell(45322, None, "dd/mm/yyyy")},
        4: {1: Cell("007"), 2: Cell(20), 3: Cell(25, Formula("B4*Rate")), 4: Cell(True)},
        5: {2: Cell(0.125, None, "0.0%"), 4: Cell("stays")},
    }
    sheet = Worksheet(
        "Data",
        rows=rows,
        merged=(Range(1, 3, 1, 4),),
        hidden_rows=((4, 4),),
        hidden_columns=((2, 2),),
        tables=(Table("Prices", Range(1, 1, 5, 4), ("Item", "Price", "Gross", "When")),),
    )
    hidden = Worksheet("Secret", "hidden", rows={1: {1: Cell(1.25)}})
    return Workbook((sheet, hidden), (DefinedName("Rate", "Secret!$A$1"),))

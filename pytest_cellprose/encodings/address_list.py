"""`address_list`: every used cell as ``A1=value``, one per line, with its formula behind the value.

The plain way to write the same information as `cellprose_lean_gfm`, for comparison.
"""

from __future__ import annotations

import re

from pytest_cellprose.encodings.base import Encoding, Told
from pytest_cellprose.encodings.gfm import escape_cell, one_line, split_cells
from pytest_cellprose.encodings.names import name_text, names_in_use, read_name
from pytest_cellprose.encodings.tables import read_table, table_text
from pytest_cellprose.encodings.values import exact_text, put, read_value, sheet_heading
from pytest_cellprose.workbook.displayed import display
from pytest_cellprose.workbook.model import Cell, DefinedName, Formula, Workbook, Worksheet
from pytest_cellprose.workbook.patterns import is_block
from pytest_cellprose.workbook.refs import Range, cell_name

_LINE = re.compile(r"([A-Z]+[0-9]+)=(.*)")
_FORMULA = re.compile(
    r"(?<!\\)(?:\\\\)*\|(?:=(?P<text>.*)|\{=(?P<array>.*)\}(?P<ref>[A-Z]+[0-9]+(?::[A-Z]+[0-9]+)?)?)\Z"
)


def encode(workbook: Workbook) -> str:
    r"""``D5=12|=B5*C5``; exact values, a text's own pipes as ``\|``, array formulas in braces with their range.

    The names that formulas use come first, ``TaxRate=Inputs!$B$2``; a worksheet's tables before its cells,
    ``table Sales A1:D9``.
    """
    formulas = (cell.formula.text for sheet in workbook.worksheets for *_, cell in sheet.cells() if cell.formula)
    lines = [name_text(name) for name in names_in_use(workbook.defined_names, formulas)]
    for sheet in workbook.worksheets:
        lines.append(sheet_heading(sheet.name))
        lines += [f"table {table_text(table)}" for table in sheet.tables]
        for row, column, cell in sheet.cells():
            value = escape_cell(one_line(exact_text(cell, workbook.date1904)))
            formula = "" if cell.formula is None else "|" + _formula_text(cell.formula)
            if value or formula:
                lines.append(f"{cell_name(row, column)}={value}{formula}")
    return "\n".join(lines) + "\n"


def _formula_text(formula: Formula) -> str:
    text = display(formula.text, own_table="")
    if formula.kind == "normal":
        return f"={text}"
    return f"{{={text}}}" + (str(formula.ref) if is_block(formula) and formula.ref is not None else "")


def decode(text: str) -> Workbook:
    """The cells as written; a formula without a value has the empty text as its result."""
    sheets: list[Worksheet] = []
    names: list[DefinedName] = []
    tables: list[tuple[Worksheet, str]] = []
    for line in text.split("\n"):
        if line.startswith("## "):
            sheets.append(Worksheet(line[3:]))
        elif not sheets:
            name = read_name(line)
            names += [name] if name is not None else []
        elif line.startswith("table "):
            tables.append((sheets[-1], line.removeprefix("table ")))
        elif match := _LINE.fullmatch(line):
            area = Range.parse(match[1])
            put(sheets[-1], area.first_row, area.first_column, _cell(match[2], area))
    for sheet, line in tables:  # only now are the headings there
        table = read_table(line, sheet)
        sheet.tables += (table,) if table is not None else ()
    return Workbook(tuple(sheets), tuple(names))


def _cell(text: str, area: Range) -> Cell:
    value, *rest = split_cells(text)
    cell = read_value(value)
    if not rest:
        return cell
    # Behind the value comes a formula, whose own pipes and backslashes are not escaped.
    match = _FORMULA.search(text)
    if match is None:
        return cell
    if match["array"] is None:
        formula = Formula(match["text"])
    else:
        kind = "dataTable" if match["array"].startswith("TABLE(") else "array"
        ref = Range.parse(match["ref"]) if match["ref"] else area
        formula = Formula(match["array"], kind, ref)  # type: ignore[arg-type]
    return cell._replace(formula=formula)


def told(workbook: Workbook) -> Told:
    """Tables are named, comments are not, and every number is exact."""
    return Told(tables=True)


ADDRESS_LIST = Encoding(
    "address_list",
    "2",
    "a list of cells, address=value|formula",
    encode,
    decode,
    keeps=frozenset({"values", "formulas", "addresses", "names"}),
    tells=told,
)

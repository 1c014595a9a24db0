"""Every example of docs/FORMAT.md: its input gives its output, and its output reads back as its input."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pytest_cellprose.encodings import find_encoding
from pytest_cellprose.workbook.model import Cell, Comment, DefinedName, ErrorValue, Formula, Table, Workbook, Worksheet
from pytest_cellprose.workbook.refs import Range

DOCUMENT = Path(__file__).parents[2] / "docs" / "FORMAT.md"
EXAMPLES = re.findall(r"```workbook\n(.*?)```\n+```lean\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
LEAN = find_encoding("cellprose_lean_gfm")

_CELL = re.compile(r"([A-Z]+[0-9]+): (.*)")
_REST = re.compile(r"\s*(?:\[(?P<code>.*?)\](?= [={]|\Z))?\s*(?:=(?P<text>.*)|\{=(?P<array>.*)\} (?P<ref>\S+))?")


def parse(description: str) -> Workbook:
    """Read the notation that the document explains under "How to read the examples"."""
    sheets: list[Worksheet] = []
    names: list[DefinedName] = []
    links: list[str] = []
    date1904 = False
    for line in description.splitlines():
        word, _, rest = line.partition(" ")
        if line.startswith("## "):
            name, _, state = rest.partition(", ")
            sheets.append(Worksheet(name, "hidden" if state == "hidden" else "visible"))
        elif line == "date1904":
            date1904 = True
        elif word == "name":
            name, text = rest.split(" =")
            names.append(DefinedName(name, text))
        elif word == "link":
            links.append(rest)
        elif word == "merged":
            sheets[-1].merged += (Range.parse(rest),)
        elif word == "hidden":
            kind, span = rest.split(" ")
            first, last = (int(number) for number in span.split("-"))
            if kind == "rows":
                sheets[-1].hidden_rows += ((first, last),)
            else:
                sheets[-1].hidden_columns += ((first, last),)
        elif word == "table":
            name, area, columns = rest.split(" ")
            sheets[-1].tables += (Table(name, Range.parse(area), tuple(columns.split(","))),)
        elif word == "note":
            address, _, text = rest.partition(" ")
            area = Range.parse(address)
            sheets[-1].comments += (Comment(area.first_row, area.first_column, text.replace("\\n", "\n")),)
        else:
            match = _CELL.fullmatch(line)
            assert match is not None, line
            area = Range.parse(match[1])
            cells = sheets[-1].rows.setdefault(area.first_row, {})
            cells[area.first_column] = parse_cell(match[2])
    for sheet in sheets:
        sheet.rows = {row: dict(sorted(cells.items())) for row, cells in sorted(sheet.rows.items())}
    return Workbook(tuple(sheets), tuple(names), tuple(links), date1904)


def parse_cell(text: str) -> Cell:
    value: Any = None
    end = 0
    if text.startswith("#"):
        value = ErrorValue(text.split(" ")[0])
        end = len(value)
    elif not text.startswith("="):
        value, end = json.JSONDecoder().raw_decode(text)
    match = _REST.fullmatch(text, end)
    assert match is not None, text
    formula = None
    if match["text"] is not None:
        formula = Formula(match["text"].replace("\\n", "\n"))
    elif match["array"] is not None:
        formula = Formula(match["array"], "array", Range.parse(match["ref"]))
    return Cell(value, formula, match["code"] or "General")


def test_the_document_has_examples() -> None:
    assert len(EXAMPLES) >= 15


@pytest.mark.parametrize(("description", "expected"), EXAMPLES, ids=[f"example{n}" for n in range(len(EXAMPLES))])
def test_an_example_is_what_is_written(description: str, expected: str) -> None:
    text = LEAN.encode(parse(description))
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    if expected.startswith("## "):
        text = "## " + text.partition("## ")[2]
    assert text == expected


@pytest.mark.parametrize(("description", "expected"), EXAMPLES, ids=[f"example{n}" for n in range(len(EXAMPLES))])
def test_an_example_reads_back(description: str, expected: str) -> None:
    assert LEAN.decode is not None
    workbook, decoded = parse(description), LEAN.decode(expected)
    assert [(s.name, s.state) for s in decoded.worksheets] == [(s.name, s.state) for s in workbook.worksheets]
    for sheet, back in zip(workbook.worksheets, decoded.worksheets, strict=True):
        assert {(r, c) for r, c, cell in back.cells() if cell.formula} == {
            (r, c) for r, c, cell in sheet.cells() if cell.formula
        }
        for row, column, cell in sheet.cells():
            found = back.cell(row, column)
            assert found is not None
            if isinstance(cell.value, str):
                assert found.value == " ".join(cell.value.split())
            elif cell.value is None or isinstance(cell.value, bool):
                assert found.value is cell.value
            elif not workbook.date1904:
                assert found.value == pytest.approx(cell.value, rel=0.0005)


@pytest.mark.parametrize(("description", "expected"), EXAMPLES, ids=[f"example{n}" for n in range(len(EXAMPLES))])
def test_a_markdown_program_sees_the_same_tables(description: str, expected: str) -> None:
    """GFM by markdown-it: as many rows and columns as the grid, the rows' numbers first, nothing else in a table."""
    from markdown_it import MarkdownIt

    if "\\" in expected:
        return  # markdown-it reads a backslash before a pipe in its own way, unlike GitHub's cmark-gfm
    rows: list[list[str]] = []
    for token in MarkdownIt("commonmark").enable("table").parse(expected):
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline" and token.level > 3:
            rows[-1].append(token.content)
    grid = [line for line in expected.splitlines() if re.match(r"\|\||[0-9]+\|", line)]
    assert [row[0] for row in rows] == [line.partition("|")[0] for line in grid]
    for row, line in zip(rows, grid, strict=True):
        cells = [cell.strip() for cell in line.removeprefix("|" if line.startswith("||") else "").split("|")]
        assert row[: len(cells)] == cells
        assert not any(row[len(cells) :])


def test_the_document_names_the_version_it_describes() -> None:
    assert DOCUMENT.read_text("utf-8").splitlines()[0].endswith(f"version {LEAN.version}")

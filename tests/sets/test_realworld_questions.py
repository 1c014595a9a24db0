"""The real-world questions: every truth read again, by openpyxl and by calamine, and held against this package.

openpyxl reads cells and formulas, calamine reads cells and finds labels; neither knows anything of the package.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import warnings
from collections import Counter
from datetime import date, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook
from openpyxl.utils import coordinate_to_tuple, get_column_letter

from pytest_cellprose import Workbook
from pytest_cellprose.questions.about import RowAndColumn, TypedValue
from pytest_cellprose.questions.locate import displayed, locate
from pytest_cellprose.questions.schema import Question, load_questions
from pytest_cellprose.sets.realworld.build import pinned_workbooks
from pytest_cellprose.sets.split import load_split
from pytest_cellprose.workbook.graph import Graph
from pytest_cellprose.workbook.patterns import hardcoded_cells
from pytest_cellprose.workbook.refs import CellAddress, Range
from tests.sets.second_path import SecondPath, split

CELLS = Path(__file__).resolve().parents[2] / "cells"
FOLDER = CELLS / "realworld"
FILES = sorted(FOLDER.glob("rw_*.json"))
ALL = [(file.stem, question) for file in FILES for question in load_questions(file).questions]
REVIEW = CELLS.parent / "pytest_cellprose" / "sets" / "realworld" / "review.md"
PAGE = CELLS.parent / "docs" / "realworld.md"


def asked(*kinds: str) -> list[Any]:
    """Parameters: the questions of some kinds, those of one workbook together."""
    return [pytest.param(name, q, id=f"{name}-{q.id}") for name, q in ALL if q.kind in kinds]


@pytest.fixture
def path(shared_data: Path, name: str) -> Path:
    found = shared_data / "heldout_real" / f"{name.removeprefix('rw_')}.xlsx"
    if not found.exists():
        pytest.skip(f"{found.name} is not here")
    return found


def table(page: Path, start: str) -> list[list[str]]:
    """The rows of a Markdown page's tables that start so, cell by cell."""
    lines = [line.strip() for line in page.read_text(encoding="utf-8").splitlines() if line.startswith(start)]
    return [[cell.strip().strip("`") for cell in line[1:-1].split("|")] for line in lines]


@cache
def by_openpyxl(path: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # openpyxl's, about styles
        # Streamed: some worksheets have millions of styled blanks beyond their tables.
        return load_workbook(path, data_only=True, read_only=True)


@cache
def by_calamine(path: Path, sheet: str) -> list[list[Any]]:
    """Rows from A1 on."""
    calamine = pytest.importorskip("python_calamine")
    return calamine.CalamineWorkbook.from_path(path).get_sheet_by_name(sheet).to_python(skip_empty_area=False)  # type: ignore[no-any-return]


@cache
def second_path(path: Path) -> SecondPath:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SecondPath(path)


@cache
def by_us(path: Path) -> tuple[Workbook, Graph]:
    workbook = Workbook.read(path)
    return workbook, Graph(workbook)


def plain(value: Any) -> Any:
    """A value as an answer gives it: dates as ISO text, numbers to 12 digits."""
    if isinstance(value, datetime):
        return value.date().isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(format(value, ".12g"))
    return value


def in_unit(question: Question, value: Any) -> Any:
    return plain(value * 100) if question.unit == "percent" else plain(value)


def shown(value: Any) -> str:
    value = plain(value)
    return format(value, ".12g") if isinstance(value, float) else " ".join(str(value).split())


def two_readings(path: Path, sheet: str, address: str) -> tuple[Any, Any]:
    row, column = coordinate_to_tuple(address)
    return by_openpyxl(path)[sheet][address].value, by_calamine(path, sheet)[row - 1][column - 1]


@pytest.mark.parametrize("name, question", asked("value"))
def test_a_value_is_what_both_libraries_read(path: Path, question: Question) -> None:
    assert isinstance(question.about, str)
    for value in two_readings(path, *split(question.about, question.sheet)):
        assert in_unit(question, value) == plain(question.answer)


@pytest.mark.parametrize("name, question", asked("value"))
def test_the_package_reads_the_same_value(path: Path, question: Question) -> None:
    assert isinstance(question.about, str)
    workbook, _ = by_us(path)
    cell = workbook.cell(CellAddress.parse(question.about, question.sheet))
    assert cell is not None
    assert in_unit(question, displayed(cell, workbook.date1904)) == plain(question.answer)


@pytest.mark.parametrize("name, question", asked("address"))
def test_an_address_follows_from_labels_or_a_constant_that_occur_once(path: Path, question: Question) -> None:
    def only_place(label: Any) -> tuple[int, int]:
        rows = by_calamine(path, question.sheet)
        (place,) = [
            (r, c)
            for r, row in enumerate(rows, start=1)
            for c, value in enumerate(row, start=1)
            if value != "" and shown(value) == shown(label)
        ]
        assert shown(by_openpyxl(path)[question.sheet].cell(*place).value) == shown(label)
        return place

    if isinstance(question.about, TypedValue):
        row, column = only_place(question.about.value)
    else:
        assert isinstance(question.about, RowAndColumn)
        (beside,), (above,) = question.about.row, question.about.column
        row, column = only_place(beside)[0], only_place(above)[1]
    assert isinstance(question.answer, tuple)
    assert [split(text, question.sheet) for text in question.answer] == [
        (question.sheet, f"{get_column_letter(column)}{row}")
    ]
    one, other = two_readings(path, question.sheet, f"{get_column_letter(column)}{row}")
    assert plain(one) == plain(other) != ""


@pytest.mark.parametrize("name, question", asked("address"))
def test_the_package_locates_the_same_cell(path: Path, question: Question) -> None:
    assert isinstance(question.about, RowAndColumn | TypedValue)
    assert isinstance(question.answer, tuple)
    found = locate(by_us(path)[0], question.about, question.sheet)
    assert found == [CellAddress.parse(text, question.sheet) for text in question.answer]


@pytest.mark.parametrize("name, question", asked("trace", "impact", "hardcode"))
def test_a_set_of_cells_is_what_openpyxl_finds(path: Path, question: Question) -> None:
    book = second_path(path)
    truth = book.stated(question.model_dump())
    assert book.truth(question.model_dump()) == truth
    assert 0 < len(truth) <= 40


@pytest.mark.parametrize("name, question", asked("trace", "impact"))
def test_the_graph_finds_the_same_cells_without_dynamic_references(path: Path, question: Question) -> None:
    assert isinstance(question.about, str)
    assert question.reach is not None
    start = CellAddress.parse(question.about, question.sheet)
    _, graph = by_us(path)
    follow = graph.precedents if question.kind == "trace" else graph.dependents
    found = follow(start, question.reach)
    assert {(cell.sheet, cell.row, cell.column) for cell in found} == second_path(path).stated(question.model_dump())
    assert not [cell for cell in {start, *found} if graph.is_dynamic(cell)]


@pytest.mark.parametrize("name, question", asked("hardcode"))
def test_the_package_finds_the_same_typed_numbers_and_they_are_all_of_the_range(path: Path, question: Question) -> None:
    assert isinstance(question.about, str)
    book = second_path(path)
    worksheet = by_us(path)[0].sheet(question.sheet)
    assert worksheet is not None
    area = Range.parse(split(question.about, question.sheet)[1])
    ours = {(question.sheet, *place) for place in hardcoded_cells(worksheet) if area.contains(*place)}
    assert ours == book.stated(question.model_dump())
    # One reading only: whoever looks for any typed number in the range, not for the definition, finds the same.
    typed = {p for p in book.cells(question.about, question.sheet) if p not in book.texts}
    assert ours == typed


def test_there_are_67_questions_about_17_workbooks() -> None:
    assert len(FILES) == 17
    assert Counter(question.kind for _, question in ALL) == {
        "value": 39,
        "address": 17,
        "trace": 5,
        "impact": 4,
        "hardcode": 2,
    }


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_workbook_is_held_out_and_pinned_by_digest(file: Path) -> None:
    questions = load_questions(file)
    heldout = load_split(CELLS / "split.json").heldout
    (pinned,) = [each for each in pinned_workbooks() if each.name == file.stem]
    assert pinned.file == questions.workbook
    assert pinned.sha256 == questions.sha256 == heldout[file.stem]
    assert questions.source == f"{pinned.publisher}, {pinned.publisher_page}"


@pytest.mark.parametrize("name", [file.stem for file in FILES])
def test_the_digest_is_the_workbooks(name: str, path: Path) -> None:
    assert load_questions(FOLDER / f"{name}.json").sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_split_lists_no_other_real_world_workbook() -> None:
    listed = {name for name in load_split(CELLS / "split.json").heldout if name.startswith("rw_")}
    assert listed == {file.stem for file in FILES}


def test_the_workbooks_are_not_in_the_repository() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "."],
        cwd=FOLDER,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("no git repository here")
    assert {Path(line).suffix for line in listed.stdout.splitlines()} == {".json"}


def test_numbers_asked_for_are_above_two_in_size() -> None:
    numbers = [q.answer for _, q in ALL if q.kind == "value" and isinstance(q.answer, int | float)]
    assert len(numbers) >= 30
    assert all(abs(number) > 2 for number in numbers)


@pytest.mark.parametrize("name, question", asked("value", "address", "trace", "impact", "hardcode"))
def test_a_text_names_its_worksheet_and_its_reach(name: str, question: Question) -> None:
    assert question.text.startswith(f"Worksheet {question.sheet}: ")
    if question.kind in ("trace", "impact"):
        assert question.text.endswith("Include cells on any worksheet.")
        assert question.reach == ("all" if "List all, direct and indirect." in question.text else "direct")
        assert ("directly" in question.text) == (question.reach == "direct")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_text_of_a_workbook_gives_away_an_answer(file: Path) -> None:
    """Neither its own answer nor, as all questions of a workbook go into one prompt, another's."""
    questions = load_questions(file).questions
    texts = " ".join(question.text for question in questions)
    words = set(re.findall(r"[\w.\-/#&]*\w", texts.replace(",", "")))
    named = {(q.sheet, cell) for q in questions for cell in re.findall(r"\b[A-Z]{1,3}[0-9]+\b(?!:)", q.text)}
    for question in questions:
        if isinstance(question.answer, tuple):
            cells = {split(text, question.sheet) for text in question.answer}
            assert not cells & named
        else:
            assert shown(question.answer) not in words
            assert not isinstance(question.answer, str) or question.answer not in texts


def test_the_review_has_a_row_for_every_question() -> None:
    rows = [
        [cell.strip().strip("`") for cell in line.strip().strip("|").split("|")]
        for line in REVIEW.read_text(encoding="utf-8").splitlines()
        if line.startswith("| `q")
    ]
    titles = re.findall(r"^## (rw_\S+)$", REVIEW.read_text(encoding="utf-8"), re.MULTILINE)
    assert titles == [file.stem for file in FILES]
    assert [(row[0], row[1]) for row in rows] == [(question.id, question.kind) for _, question in ALL]
    for row, (_, question) in zip(rows, ALL, strict=True):
        about = question.about if isinstance(question.about, str) else json.dumps(question.answer, ensure_ascii=False)
        assert row[2] in about
        assert row[3] in ("openpyxl, calamine", "openpyxl, LibreOffice")
        assert row[4]
        assert len(row) == 6


def test_the_page_lists_every_workbook_with_its_questions() -> None:
    expected = []
    for file in FILES:
        (pinned,) = [each for each in pinned_workbooks() if each.name == file.stem]
        kinds = Counter(question.kind for question in load_questions(file).questions)
        counts = [str(kinds[kind]) for kind in ("value", "address", "trace", "impact", "hardcode")]
        expected.append([file.stem, pinned.publisher, pinned.licence, *counts])
    assert table(PAGE, "| `rw_") == expected

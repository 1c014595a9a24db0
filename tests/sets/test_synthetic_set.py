"""The generated development workbooks: rebuilt byte for byte, and every truth confirmed by a second path."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from pytest_cellprose.questions.kinds import BUILTIN_KINDS
from pytest_cellprose.questions.locate import locate
from pytest_cellprose.questions.schema import Question, load_questions
from pytest_cellprose.sets.split import SplitError
from pytest_cellprose.sets.synthetic.development import GENERATORS, build_development
from pytest_cellprose.workbook.graph import Graph
from pytest_cellprose.workbook.model import Workbook
from pytest_cellprose.workbook.patterns import hardcoded_cells
from pytest_cellprose.workbook.refs import CellAddress, Range, split_sheet
from tests.sets.second_path import SecondPath

CELLS = Path(__file__).resolve().parents[2] / "cells"


@cache
def second_path(name: str) -> SecondPath:
    return SecondPath(CELLS / f"{name}.xlsx")


def questions_of(name: str) -> tuple[Question, ...]:
    return load_questions(CELLS / f"{name}.json").questions


ASKED = [
    pytest.param(name, question, id=f"{name}-{question.id}") for name in GENERATORS for question in questions_of(name)
]


SPLIT_BEFORE = {"schema": 1, "seed": 1, "development": {"real": "ab" * 32}, "heldout": {"sb_1": "cd" * 32}}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The set, built anew into a folder whose split already lists something."""
    folder = tmp_path_factory.mktemp("cells")
    (folder / "split.json").write_text(json.dumps(SPLIT_BEFORE))
    build_development(folder)
    return folder


@pytest.mark.parametrize("name", GENERATORS)
def test_building_gives_the_committed_bytes(name: str, built: Path) -> None:
    for file in (f"{name}.xlsx", f"{name}.json"):
        assert (built / file).read_bytes() == (CELLS / file).read_bytes()


@pytest.mark.parametrize("name", GENERATORS)
def test_the_file_is_stored_sorted_and_has_fixed_times(name: str) -> None:
    with zipfile.ZipFile(CELLS / f"{name}.xlsx") as archive:
        entries = archive.infolist()
    assert [entry.filename for entry in entries] == sorted(entry.filename for entry in entries)
    assert {entry.compress_type for entry in entries} == {zipfile.ZIP_STORED}
    assert len({entry.date_time for entry in entries}) == 1


def test_building_lists_the_set_and_keeps_what_else_the_split_lists(built: Path) -> None:
    text = (built / "split.json").read_bytes()
    digests = {name: hashlib.sha256((CELLS / f"{name}.xlsx").read_bytes()).hexdigest() for name in GENERATORS}
    split = json.loads(text)
    assert b"\r" not in text
    assert split["schema"] == 1
    assert split["seed"] == 20261009
    assert split["heldout"] == SPLIT_BEFORE["heldout"]
    assert split["development"] == {"real": "ab" * 32, **digests}
    assert list(split["development"]) == sorted(split["development"])


def test_a_broken_split_is_named_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "split.json").write_text("{")
    with pytest.raises(SplitError, match=r"split\.json"):
        build_development(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["split.json"]


def test_the_committed_split_lists_the_set() -> None:
    split = json.loads((CELLS / "split.json").read_text(encoding="utf-8"))
    for name in GENERATORS:
        assert split["development"][name] == hashlib.sha256((CELLS / f"{name}.xlsx").read_bytes()).hexdigest()


@pytest.mark.parametrize("name", GENERATORS)
def test_every_formula_has_a_stored_result(name: str) -> None:
    book = second_path(name)
    assert book.texts
    assert [place for place in book.texts if book.results[place[0]].cell(*place[1:]).value is None] == []


@pytest.mark.parametrize("name, question", ASKED)
def test_a_truth_is_what_openpyxl_finds(name: str, question: Question) -> None:
    book, asked = second_path(name), question.model_dump()
    assert book.truth(asked) == book.stated(asked)
    assert question.answer != () or question.kind == "hardcode"


@pytest.mark.parametrize("name, question", ASKED)
def test_a_question_has_one_reading(name: str, question: Question) -> None:
    book, about = second_path(name), question.model_dump()["about"]
    if question.kind == "value":
        assert (question.type == "date") == book.is_date(about, question.sheet)
    elif question.kind == "address":
        assert len(book.truth(question.model_dump())) == 1
        assert "row" in about or len(book.near(question.sheet, about["value"])) == 1


@pytest.mark.parametrize("name", GENERATORS)
def test_the_package_finds_the_same_truths(name: str) -> None:
    """The graph, the definition of hard-coded and the rule for labels that readers and certification use."""
    workbook, differing = Workbook.read(CELLS / f"{name}.xlsx"), {}
    graph = Graph(workbook)
    for question in questions_of(name):
        if question.kind == "value":
            continue
        assert not isinstance(question.answer, str | float)
        stated = second_path(name).stated(question.model_dump())
        if isinstance(question.about, str):
            sheet, area = split_sheet(question.about)
            worksheet = workbook.sheet(sheet or question.sheet)
            assert worksheet is not None
            inside = Range.parse(area)
            start = CellAddress(worksheet.name, *inside[:2])
            if question.kind == "hardcode":
                found = {(worksheet.name, *p) for p in hardcoded_cells(worksheet) if inside.contains(*p)}
            else:
                edges = graph.precedents if question.kind == "trace" else graph.dependents
                found = set(edges(start, question.reach or "direct"))
        else:
            assert question.about is not None
            found = set(locate(workbook, question.about, question.sheet))
        if found != stated:
            differing[question.id] = found ^ stated
    assert differing == {}


@pytest.mark.parametrize("name", GENERATORS)
def test_a_workbook_asks_ten_questions_that_say_what_they_mean(name: str) -> None:
    questions = questions_of(name)
    assert len(questions) >= 10
    assert {question.kind for question in questions} == set(BUILTIN_KINDS)
    assert len({question.text for question in questions}) == len(questions)
    for question in questions:
        assert question.sheet in question.text
        if question.reach == "direct":
            assert "direct" in question.text
            assert "indirect" not in question.text
        if question.reach == "all":
            assert re.search(r"\ball\b", question.text, re.IGNORECASE)


def test_the_set_as_a_whole_is_balanced() -> None:
    questions = [question for name in GENERATORS for question in questions_of(name)]
    kinds = Counter(question.kind for question in questions)
    assert min(kinds.values()) >= min(25, 2 * len(GENERATORS))
    hardcodes = [question for question in questions if question.kind == "hardcode"]
    assert sum(not question.answer for question in hardcodes) * 10 <= len(hardcodes)
    numbers = [question.answer for question in questions if isinstance(question.answer, int | float)]
    assert sum(abs(number) > 2 for number in numbers) >= 0.9 * len(numbers)

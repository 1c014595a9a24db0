"""Kinds of question: each is one value, and nothing else knows which there are."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pytest_cellprose
from pytest_cellprose.questions.book import Book
from pytest_cellprose.questions.kind import QuestionKind
from pytest_cellprose.questions.kinds import BUILTIN_KINDS, VALUE
from pytest_cellprose.questions.schema import Question, QuestionFileError, load_questions
from pytest_cellprose.questions.scoring import score_reply
from pytest_cellprose.workbook.model import Cell, Workbook, Worksheet

PACKAGE = Path(pytest_cellprose.__file__).parent


def texts(value: Any, fields: Any) -> tuple[str, ...]:
    """The truth of a kind that lists what is no address."""
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise ValueError(f"expected texts, not {value!r}")
    return tuple(value)


LINES = QuestionKind(
    "lines",
    truth=texts,
    score=lambda question, answer: float(list(answer) == list(question.answer)),
    needs="values",
    about="range",
    find=lambda asked, book: [
        str(cell.value)
        for row, column, cell in book.workbook.sheet(asked.area.sheet).cells()
        if asked.area.range.contains(row, column)
    ],
)
KINDS = {**BUILTIN_KINDS, LINES.name: LINES}
QUESTION = {"id": "q1", "kind": "lines", "text": "?", "sheet": "S", "about": "A1:A2", "answer": ["one", "2 %!"]}


def book(*lines: str) -> Book:
    sheet = Worksheet("S", rows={row: {1: Cell(value=line)} for row, line in enumerate(lines, start=1)})
    return Book(Workbook(worksheets=(sheet,)))


def test_no_other_module_compares_a_kind_with_the_name_of_one() -> None:
    found = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare) and "kind" in ast.unparse(node.left):
                words = {each.value for each in ast.walk(node) if isinstance(each, ast.Constant)}
                if words & BUILTIN_KINDS.keys():
                    found.append(f"{path.name}: {ast.unparse(node)}")
    assert found == []


def test_a_kind_of_ones_own_is_loaded_scored_and_held_against_a_workbook(tmp_path: Path) -> None:
    path = tmp_path / "book.json"
    path.write_text(json.dumps({"schema": 1, "workbook": "book.xlsx", "questions": [QUESTION]}), encoding="utf-8")
    (question,) = load_questions(path, KINDS).questions
    assert (question.kind, question.rules, question.answer) == ("lines", LINES, ("one", "2 %!"))
    assert score_reply([question], '{"q1": ["one", "2 %!"]}').accuracy == 1
    assert score_reply([question], '{"q1": null}').accuracy == 0
    assert LINES.against(question, book("one", "2 %!")) is None
    assert LINES.against(question, book("one", "two")) == (
        "the workbook says ['one', 'two'], the recorded truth is ('one', '2 %!')"
    )
    with pytest.raises(QuestionFileError, match="expected 'value', 'address', 'trace', 'impact' or 'hardcode'"):
        load_questions(path)


def test_a_question_keeps_its_kind_when_it_is_copied_and_asked() -> None:
    question = Question.model_validate(QUESTION, context={"kinds": KINDS})
    assert question.model_copy(update={"extent": {}}).rules is LINES
    assert question.asked().rules is LINES


def test_a_kind_that_finds_nothing_certifies_nothing() -> None:
    silent = replace(VALUE, objection=None, find=lambda asked, book: None)
    question = Question(id="q1", kind="value", text="?", sheet="S", about="A1", answer=1)
    assert silent.against(question, book("1")) == "the workbook does not say"


@pytest.mark.parametrize(
    ("fields", "synthetic"),
    [
        ({}, None),
        ({"source": "found, not generated: no"}, None),
        ({"source": "generated: by hand"}, True),
        ({"source": "generated: by hand", "synthetic": False}, False),
        ({"synthetic": True}, True),
    ],
)
def test_a_file_says_whether_its_workbook_is_synthetic(tmp_path: Path, fields: Any, synthetic: bool | None) -> None:
    path = tmp_path / "book.json"
    content = {"schema": 1, "workbook": "book.xlsx", "questions": [QUESTION], **fields}
    path.write_text(json.dumps(content), encoding="utf-8")
    assert load_questions(path, KINDS).synthetic is synthetic

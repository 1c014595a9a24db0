"""The question files for public workbooks that are not in the repository: every truth read again from the files."""

from __future__ import annotations

import hashlib
import json
import warnings
from functools import cache
from pathlib import Path

import pytest

from pytest_cellprose.questions.schema import Question, load_questions
from tests.sets.second_path import SecondPath

CELLS = Path(__file__).resolve().parents[2] / "cells"
FILES = sorted((CELLS / "real").glob("*.json"))
ASKED = [
    pytest.param(file.stem, question, id=f"{file.stem}-{question.id}")
    for file in FILES
    for question in load_questions(file).questions
]


@cache
def second_path(path: Path) -> SecondPath:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # openpyxl's, about styles
        return SecondPath(path)


@pytest.fixture
def book(shared_data: Path, name: str) -> SecondPath:
    path = shared_data / "dev_real" / f"{name}.xlsx"
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    return second_path(path)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_question_file_names_a_workbook_listed_as_development(file: Path) -> None:
    questions = load_questions(file)
    split = json.loads((CELLS / "split.json").read_text(encoding="utf-8"))
    assert questions.workbook == f"{file.stem}.xlsx"
    assert questions.source
    assert split["development"][file.stem] == questions.sha256
    assert len(questions.questions) >= 6


@pytest.mark.parametrize("name", [file.stem for file in FILES])
def test_the_digest_is_the_workbooks(name: str, shared_data: Path) -> None:
    path = shared_data / "dev_real" / f"{name}.xlsx"
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert load_questions(CELLS / "real" / f"{name}.json").sha256 == digest


@pytest.mark.parametrize("name, question", ASKED)
def test_a_truth_is_what_openpyxl_reads(name: str, question: Question, book: SecondPath) -> None:
    assert book.truth(question.model_dump()) == book.stated(question.model_dump())


def test_values_are_mostly_above_two() -> None:
    answers = [question.answer for _, question in (asked.values for asked in ASKED) if question.kind == "value"]
    numbers = [answer for answer in answers if isinstance(answer, int | float)]
    assert sum(abs(number) > 2 for number in numbers) >= 0.9 * len(numbers)

"""The option ``"scorer": "spreadsheetbench"``.

The expected results were found by running the benchmark's published ``evaluation.py``, not this package.
"""

from __future__ import annotations

import math
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_cellprose.questions.schema import Question, QuestionFileError, load_questions
from pytest_cellprose.questions.scoring import score, score_reply
from pytest_cellprose.questions.spreadsheetbench import PositionError, normalised, positions, same_value

EQUAL: list[tuple[Any, Any]] = [
    (3.1, "3.10"),
    (" 5 ", 5),
    (True, 1),
    (2.675, 2.67),
    (0.125, 0.12),
    (0.004, 0),
    (-0.001, 0),
    ("1e3", 1000),
    ("1_000", 1000),
    (None, ""),
    ("", ""),
    (datetime(2023, 3, 15), 45000),
    (datetime(2023, 3, 15, 12), datetime(2023, 3, 15)),
    (datetime(2023, 3, 15, 13), datetime(2023, 3, 16)),
    (time(12, 30, 45), "12:30"),
    (timedelta(hours=36), timedelta(hours=36)),
]
DIFFERENT: list[tuple[Any, Any]] = [
    ("1,234", 1234),
    ("5%", 0.05),
    (True, "TRUE"),
    ("a", "A"),
    ("a", "a "),
    (2.675, 2.68),
    (0.125, 0.13),
    (None, 0),
    ("", 0),
    ("nan", "nan"),
    (45000.4, 45000),
    (date(2023, 3, 15), datetime(2023, 3, 15)),
    (timedelta(hours=36), timedelta(hours=12)),
    (timedelta(hours=36), 1.5),
    (timedelta(hours=36), "36:00"),
    (10**400, 10**400),
]


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_equal_for_the_official_evaluation(one: Any, other: Any) -> None:
    assert same_value(one, other)
    assert same_value(other, one)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_for_the_official_evaluation(one: Any, other: Any) -> None:
    assert not same_value(one, other)
    assert not same_value(other, one)


def test_how_openpyxl_reads_a_cell_decides(tmp_path: Path) -> None:
    """A serial of 45000.4 is a date-time, and so whole days, only under a date format; [h]:mm gives a timedelta."""
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row, number_format in enumerate(("yyyy-mm-dd", "General", "[h]:mm", "h:mm"), 1):
        cell = sheet.cell(row, 1, 45000.4 if row < 3 else 0.5)
        cell.number_format = number_format
    book.save(tmp_path / "formats.xlsx")
    read = openpyxl.load_workbook(tmp_path / "formats.xlsx").active
    assert read is not None
    assert same_value(read["A1"].value, 45000)
    assert not same_value(read["A2"].value, 45000)
    assert same_value(read["A3"].value, timedelta(hours=12))
    assert same_value(read["A4"].value, "12:00")


@given(st.floats(allow_nan=False, allow_infinity=False) | st.text() | st.booleans())
def test_a_value_is_itself_unless_it_is_no_number(value: Any) -> None:
    compared = normalised(value)
    assert same_value(value, value) is not (isinstance(compared, float) and math.isnan(compared))


# The question option


def question(truth: Any, **more: Any) -> Question:
    fields = {"id": "q1", "kind": "value", "text": "?", "sheet": "Data", "about": "A1", "scorer": "spreadsheetbench"}
    return Question.model_validate(fields | {"answer": truth} | more)


@pytest.mark.parametrize(
    ("truth", "answer", "right"),
    [
        (100, 100.004, True),
        (100, 100.4, False),  # within this project's 0.5 %
        (100, "100", True),
        (100, "$100", False),
        (1000, "1,000", False),
        ("Homeroom", "Homeroom", True),
        ("Homeroom", "homeroom", False),
        ("Homeroom", " Homeroom", False),
        ("82", 82, True),
        (True, 1, True),
        (True, "true", False),
        ("", "", True),
        ("", 0, False),
        ("", None, False),  # null is no answer
        (5, [5], False),
        (5, {"q": 5}, False),
        (5, 10**400, False),
    ],
)
def test_a_question_is_scored_by_the_official_rules(truth: Any, answer: Any, right: bool) -> None:
    assert score(question(truth), answer) == float(right)


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("2023-03-15", True),
        (" 2023-03-15 ", True),
        (45000, True),
        ("45000", True),
        ("2023-03-15 12:00", True),
        ("2023-03-15T13:00:00", False),
        ("2023-03-15T00:00:00Z", False),
        ("2023-03-16", False),
        ("2023-02-30", False),
        ("15/03/2023", False),
        (45000.4, False),
    ],
)
def test_a_date_answer_is_compared_as_the_day_that_a_cell_would_hold(answer: Any, right: bool) -> None:
    assert score(question("2023-03-15", type="date"), answer) == float(right)


def test_questions_with_different_scorers_share_a_reply() -> None:
    lenient = Question.model_validate(question(100).model_dump() | {"id": "q2", "scorer": "cellprose"})
    assert score_reply([question(100), lenient], '{"q1": 100.4, "q2": 100.4}').scores == {"q1": 0.0, "q2": 1.0}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ('"kind": "trace", "reach": "all", "answer": ["B1"]', "the question's kind is trace"),
        ('"kind": "value", "unit": "percent", "answer": 12', "percent points"),
    ],
)
def test_the_option_is_for_stored_values_only(tmp_path: Path, fields: str, expected: str) -> None:
    path = tmp_path / "book.json"
    path.write_text(
        '{"schema": 1, "workbook": "book.xlsx", "questions": [{"id": "q1", "text": "?", "sheet": "S", "about": "A1", '
        f'"scorer": "spreadsheetbench", {fields}}}]}}',
        encoding="utf-8",
    )
    with pytest.raises(QuestionFileError, match=f'question q1 .*field "scorer".*{expected}'):
        load_questions(path)


# Answer positions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("H3", [(None, "H3")]),
        ("G2:I7", [(None, "G2:I7")]),
        ("A1:A1", [(None, "A1")]),
        ("'summary'!D10", [("summary", "D10")]),
        ("Sheet1'!G2:I7", [("Sheet1", "G2:I7")]),
        ("'Sub CO's'!B4:B11", [("Sub CO's", "B4:B11")]),
        ("A1,'Other one'!B2:C3", [(None, "A1"), ("Other one", "B2:C3")]),
    ],
)
def test_a_position_is_read_as_the_official_evaluation_does(text: str, expected: list[tuple[str | None, str]]) -> None:
    assert [(sheet, str(area)) for sheet, area in positions(text)] == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("A2:A1", "reversed"),
        ("B1:A2", "reversed"),
        ("a1:a2", "lower case"),
        ("'data'!c4", "lower case"),
        ("A:B", "whole column"),
        ("A1, B1:B2", "blank"),
        ("S!T!A1", "two exclamation marks"),
        ("G12：J15", "expected a cell or a range"),
        ("2:4", "expected a cell or a range"),
        ("A0", "row outside"),
        ("", "expected a cell or a range"),
    ],
)
def test_a_position_that_would_be_misread_is_refused(text: str, reason: str) -> None:
    with pytest.raises(PositionError, match=reason) as refused:
        positions(text)
    assert repr(text) in str(refused.value)

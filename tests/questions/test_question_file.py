"""Question files: what is accepted, and that everything wrong is said at once, naming question and field."""

from __future__ import annotations

import json
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pytest_cellprose.questions.asked import Asked
from pytest_cellprose.questions.schema import Question, QuestionFileError, check_against, load_questions
from pytest_cellprose.workbook.refs import Range

VALUE = {"id": "q1", "kind": "value", "text": "How much?", "sheet": "Model", "about": "Model!D41", "answer": 1234.5}
ADDRESS = {
    "id": "q2",
    "kind": "address",
    "text": "Where?",
    "sheet": "Model",
    "about": {"row": ["Gross margin"], "column": ["FY2026", 2]},
    "answer": ["Model!D41"],
}
TRACE = {
    "id": "q3",
    "kind": "trace",
    "text": "From what?",
    "sheet": "Model",
    "about": "Model!D41",
    "reach": "direct",
    "answer": ["Inputs!B2:B4", "C7"],
}
IMPACT = {**TRACE, "id": "q4", "kind": "impact", "about": "'Inputs'!$B$2", "reach": "all", "answer": []}
HARDCODE = {
    "id": "q5",
    "kind": "hardcode",
    "text": "Which?",
    "sheet": "Model",
    "about": "C3:BI3",
    "answer": ["Model!S3"],
}
ALL = [VALUE, ADDRESS, TRACE, IMPACT, HARDCODE]


def write(tmp_path: Path, *questions: Any, **top: Any) -> Path:
    path = tmp_path / "budget.json"
    content = {"schema": 1, "workbook": "budget.xlsx", "questions": list(questions), **top}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def problems(path: Path) -> list[str]:
    with pytest.raises(QuestionFileError) as caught:
        load_questions(path)
    lines = caught.value.lines(sealed=False)
    assert all(line.startswith(str(path)) and "\n" not in line for line in lines)
    return [line.removeprefix(f"{path}: ") for line in lines]


def test_a_file_with_every_kind_is_read(tmp_path: Path) -> None:
    optional = {"unit": "percent", "case": "17", "note": "see p. 3", "scorer": "cellprose", "type": None}
    loaded = load_questions(write(tmp_path, {**VALUE, **optional}, *ALL[1:], sha256="AB" * 32, source="made up"))
    assert [question.kind for question in loaded.questions] == ["value", "address", "trace", "impact", "hardcode"]
    assert loaded.sha256 == "ab" * 32
    assert loaded.questions[0].answer == 1234.5
    assert loaded.questions[2].answer == ("Inputs!B2:B4", "C7")


@pytest.mark.parametrize("answer", [1, 1.0, True, False, "", "North", -0.5, 10**30])
def test_a_value_keeps_its_type(tmp_path: Path, answer: Any) -> None:
    (question,) = load_questions(write(tmp_path, {**VALUE, "answer": answer})).questions
    assert question.answer == answer
    assert type(question.answer) is type(answer)


def test_a_windows_editor_may_have_saved_it(tmp_path: Path) -> None:
    path = write(tmp_path, VALUE)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert load_questions(path).questions[0].id == "q1"


def test_what_is_asked_has_no_truth(tmp_path: Path) -> None:
    question = load_questions(write(tmp_path, TRACE)).questions[0]
    asked = question.asked()
    assert {"answer", "note", "case", "extent"}.isdisjoint(Asked.model_fields)
    assert (asked.id, asked.kind, asked.about, asked.reach) == ("q3", "trace", "Model!D41", "direct")
    assert "Inputs" not in repr(asked)


@pytest.mark.parametrize(
    ("change", "field", "expected"),
    [
        ({"id": "1"}, "id", 'found "1", expected q followed by'),
        ({"id": "q"}, "id", "expected q followed by"),
        ({"id": "q-1"}, "id", "expected q followed by"),
        ({"id": "q1\n"}, "id", "expected q followed by"),
        ({"kind": "sum"}, "kind", "'trace'"),
        ({"text": " "}, "text", "expected some text"),
        ({"sheet": ""}, "sheet", "expected some text"),
        ({"sheet": 4}, "sheet", "found 4"),
        ({"about": "Model!D41:D42"}, "about", "not a single cell"),
        ({"about": "XFE1"}, "about", "expected the address of a single cell"),
        ({"about": {"row": ["a"], "column": ["b"]}}, "about", "as the question's kind is value"),
        ({"about": 7}, "about", "found 7"),
        ({"about": None}, "about", "expected what the question is about"),
        ({"answer": None}, "answer", "found nothing"),
        ({"answer": ["A1"]}, "answer", "as the question's kind is value"),
        ({"answer": {"a": 1}}, "answer", "expected a finite number, a text or true/false"),
        ({"reach": "all"}, "reach", "expected no reach"),
        ({"type": "datetime"}, "type", "'date'"),
        ({"type": "date", "answer": "5 January 2024"}, "answer", "YYYY-MM-DD"),
        ({"type": "date", "answer": "2024-02-30"}, "answer", "YYYY-MM-DD"),
        ({"type": "date", "answer": 45000}, "answer", "YYYY-MM-DD"),
        ({"unit": "EUR"}, "unit", "'percent'"),
        ({"scorer": "official"}, "scorer", "'cellprose'"),
        ({"computed": "yes"}, "computed", 'found "yes"'),
        ({"answer_workbook": "a.xlsx"}, "answer_workbook", '"computed": true'),
        ({"computed": True, "answer_sha256": "no"}, "answer_sha256", "64 hexadecimal digits"),
        ({"extent": "A1:XFE9"}, "extent", "expected used extents"),
        ({"extend": "A1:C9"}, "extend", "there is none"),
    ],
)
def test_what_is_wrong_with_a_value_question(tmp_path: Path, change: Any, field: str, expected: str) -> None:
    (line,) = problems(write(tmp_path, {**VALUE, **change}))
    assert f'field "{field}"' in line
    assert expected in line


@pytest.mark.parametrize(
    ("question", "change", "field", "expected"),
    [
        (ADDRESS, {"about": "Model!D41"}, "about", '{"row": […], "column": […]}'),
        (ADDRESS, {"about": {"row": [], "column": ["b"]}}, "about.row", "at least one displayed text"),
        (ADDRESS, {"about": {"row": "a", "column": ["b"]}}, "about.row", "a list"),
        (ADDRESS, {"about": {"row": ["a"]}}, "about.column", "missing"),
        (ADDRESS, {"about": {"value": None}}, "about.value", "found nothing"),
        (ADDRESS, {"about": {"value": 1, "row": ["a"]}}, "about.row", "there is none"),
        (ADDRESS, {"answer": []}, "answer", "at least one address"),
        (ADDRESS, {"answer": "Model!D41"}, "answer", "expected a list of addresses"),
        (ADDRESS, {"reach": "all"}, "reach", "expected no reach"),
        (ADDRESS, {"unit": "percent"}, "unit", "not value"),
        (TRACE, {"reach": None}, "reach", '"direct" or "all"'),
        (TRACE, {"reach": "some"}, "reach", "'direct' or 'all'"),
        (TRACE, {"answer": ["A0", 4, "Model!B2"]}, "answer", "4 is not an address"),
        (TRACE, {"about": "A:A"}, "about", "not a single cell"),
        (IMPACT, {"answer": 5}, "answer", "expected a list of addresses"),
        (HARDCODE, {"about": {"value": 3}}, "about", "expected the address of a range"),
        (HARDCODE, {"about": "the whole sheet"}, "about", "not an A1 address"),
    ],
)
def test_what_is_wrong_with_the_other_kinds(
    tmp_path: Path, question: Any, change: Any, field: str, expected: str
) -> None:
    (line,) = problems(write(tmp_path, {**question, **change}))
    assert line.startswith(f"question {question['id']} (number 1), ")
    assert f'field "{field}"' in line
    assert expected in line


@pytest.mark.parametrize("field", ["id", "kind", "text", "sheet", "about", "answer"])
def test_what_a_question_must_have(tmp_path: Path, field: str) -> None:
    (line,) = problems(write(tmp_path, {key: value for key, value in VALUE.items() if key != field}))
    assert f'field "{field}"' in line


def test_only_a_computed_question_may_be_about_nothing(tmp_path: Path) -> None:
    question = {**VALUE, "about": None, "computed": True, "answer_workbook": "done.xlsx", "answer_sha256": "0" * 64}
    assert load_questions(write(tmp_path, question)).questions[0].about is None


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_none(tmp_path: Path, number: str) -> None:
    path = write(tmp_path, VALUE)
    path.write_text(path.read_text(encoding="utf-8").replace("1234.5", number), encoding="utf-8")
    (line,) = problems(path)
    assert "expected a finite number" in line


def test_everything_is_said_at_once(tmp_path: Path) -> None:
    broken = [
        {**VALUE, "kind": "sum"},
        {**VALUE, "answer": None},
        {**TRACE, "id": "Q1", "reach": None},
        7,
        {**ADDRESS, "answer": ["?"]},
    ]
    lines = problems(write(tmp_path, *broken, schema=2, sha256="short", workbook=""))
    assert 'question q1, field "id": found 3 times, expected once' in lines
    for place, field in [
        ("question q1 (number 1)", "kind"),
        ("question q1 (number 2)", "answer"),
        ("question Q1 (number 3)", "reach"),
        ("question number 4", ""),
        ("question q2 (number 5)", "answer"),
        ("", "schema"),
        ("", "sha256"),
        ("", "workbook"),
    ]:
        assert any(line.startswith(place) and (not field or f'field "{field}"' in line) for line in lines), place


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"{", "not JSON"),
        (b"[]", "expected a JSON object"),
        (b'"text"', "expected a JSON object"),
        (b"\xff\xfe{\x00}\x00", "not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"n": ' + b"9" * 5000 + b"}", "not usable JSON"),
        (b"{}", "missing"),
        (b'{"schema": 1, "workbook": "a.xlsx", "questions": []}', "at least one question"),
        (b'{"schema": 1, "workbook": "a.xlsx", "questions": {}}', "at least one question"),
    ],
    ids=lambda value: str(value[:12]) if isinstance(value, bytes) else "",
)
def test_what_is_no_question_file(tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "budget.json"
    path.write_bytes(content)
    assert expected in " ".join(problems(path))


def test_a_folder_or_nothing_is_no_question_file(tmp_path: Path) -> None:
    assert problems(tmp_path) == ["a folder, expected a question file NAME.json"]
    (line,) = problems(tmp_path / "absent.json")
    assert "cannot be read" in line


def test_a_key_given_twice_is_a_problem(tmp_path: Path) -> None:
    path = write(tmp_path, VALUE)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"answer": 1234.5', '"answer": 1, "answer": 2'), encoding="utf-8")
    assert problems(path) == ['question q1, field "answer": found 2 times, expected once']


def test_ids_differ_without_regard_to_case(tmp_path: Path) -> None:
    assert problems(write(tmp_path, VALUE, {**TRACE, "id": "q1"})) == [
        'question q1, field "id": found 2 times, expected once'
    ]


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(string.printable),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*VALUE, "x\n"]), inner),
        max_leaves=12,
    )
)
def test_any_json_is_refused_with_its_problems(tmp_path_factory: pytest.TempPathFactory, content: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(json.dumps({"schema": 1, "workbook": "a.xlsx", "questions": [content, VALUE]}), encoding="utf-8")
    assert problems(path)


def test_a_question_made_in_python_is_checked_too() -> None:
    with pytest.raises(ValidationError, match="expected no reach"):
        Question(**{**VALUE, "reach": "all"})  # type: ignore[arg-type]


def test_extents_are_filled_in(tmp_path: Path) -> None:
    loaded = load_questions(write(tmp_path, *ALL)).with_extents({"Model": Range(1, 1, 9, 4), "Empty": None})
    assert all(question.extent == {"Model": "A1:D9", "Empty": None} for question in loaded.questions)


def test_only_what_is_certainly_wrong_with_the_workbook_is_said(tmp_path: Path) -> None:
    loaded = load_questions(write(tmp_path, *ALL))
    assert check_against(loaded, {"MODEL": Range(1, 1, 60, 90), "inputs": Range(1, 1, 9, 9)}) == []
    problems = check_against(loaded, {"model": Range(1, 1, 3, 4)})
    outside, elsewhere = "outside what its worksheet uses: 'Model' uses A1:D3", "expected one of the workbook's: model"
    assert [str(problem) for problem in problems] == [
        f'question q1 (number 1), field "about": found D41, {outside}',
        f'question q2 (number 2), field "answer": found D41, {outside}',
        f'question q3 (number 3), field "about": found D41, {outside}',
        f"question q3 (number 3), field \"answer\": found worksheet 'Inputs', {elsewhere}",
        f'question q3 (number 3), field "answer": found C7, {outside}',
        f"question q4 (number 4), field \"about\": found worksheet 'Inputs', {elsewhere}",
        f'question q5 (number 5), field "answer": found S3, {outside}',
    ]
    assert [problem.sealed for problem in problems][2:4] == [
        'question number 3, field "about": outside what its worksheet uses',
        'question number 3, field "answer": expected one of the workbook\'s',
    ]


SECRET = st.sampled_from(["SECRET", "SECRET-ID 42", "qSECRET", "Secret!A1", "Q1SECRET: found x", "SECRET\nfield"])
SECRETS = st.recursive(
    SECRET | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SECRET | st.sampled_from([*VALUE, *TRACE]), inner),
    max_leaves=8,
)


@given(st.lists(SECRETS | st.fixed_dictionaries(dict.fromkeys(VALUE, SECRETS)), min_size=1, max_size=3), SECRETS)
def test_sealed_lines_say_where_and_nothing_that_the_file_holds(
    tmp_path_factory: pytest.TempPathFactory, questions: list[Any], top: Any
) -> None:
    """Whatever is a secret in it: an id, a field's name, a value, a key given twice."""
    path = tmp_path_factory.getbasetemp() / "sealed.json"
    extra = top if isinstance(top, dict) else {"SECRET top": top}
    content = {"schema": 1, "workbook": "a.xlsx", **extra, "questions": questions}
    path.write_text(json.dumps(content).replace('"text":', '"SECRET": 1, "SECRET": 2, "text":'), encoding="utf-8")
    with pytest.raises(QuestionFileError) as caught:
        load_questions(path)
    sealed = caught.value.lines(sealed=True)
    assert len(sealed) == len(caught.value.lines(sealed=False))
    assert all(line.startswith(f"{path}: ") and line != f"{path}: " for line in sealed)
    assert "secret" not in "".join(sealed).lower()


def test_a_sealed_line_names_number_and_field(tmp_path: Path) -> None:
    path = write(tmp_path, VALUE, {**TRACE, "id": "SECRET-ID 42", "SECRET FIELD 7": 1, "answer": ["Secret"]})
    with pytest.raises(QuestionFileError) as caught:
        load_questions(path)
    assert [line.removeprefix(f"{path}: ") for line in caught.value.lines(sealed=True)] == [
        'question number 2, field "id": expected q followed by letters, digits or underscores, like q1',
        'question number 2, field "answer": expected addresses only',
        "question number 2, a field: there is none of this name: remove it or correct its spelling",
    ]

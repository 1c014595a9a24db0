"""From a workbook through each encoding, prompt, reader and scorer: nothing but the text that was sent is read."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from pytest_cellprose.encodings import builtin_encodings, find_encoding
from pytest_cellprose.encodings.base import Encoding
from pytest_cellprose.models.registry import builtin_models
from pytest_cellprose.models.tokens import count
from pytest_cellprose.providers.base import Reply, Request
from pytest_cellprose.providers.reader import READER_VERSION, Reader
from pytest_cellprose.providers.reader_agent import READER_AGENT_VERSION
from pytest_cellprose.questions.kinds import BUILTIN_KINDS
from pytest_cellprose.questions.prompts import SYSTEM, prompt
from pytest_cellprose.questions.schema import Question, QuestionFile
from pytest_cellprose.questions.scoring import Scored, score_reply
from pytest_cellprose.workbook.model import Workbook

QUESTIONS: list[dict[str, Any]] = [
    {"id": "q1", "kind": "value", "about": "Model!C5", "answer": 262.5},
    {"id": "q2", "kind": "value", "about": "Inputs!B4", "answer": "2024-01-05", "type": "date"},
    {"id": "q3", "kind": "value", "about": "Inputs!B2", "answer": 5, "unit": "percent"},
    {"id": "q4", "kind": "value", "about": "Inputs!B3", "answer": "007"},
    {"id": "q5", "kind": "value", "about": "Inputs!B5", "answer": True},
    {"id": "q6", "kind": "address", "about": {"row": ["Total"], "column": ["FY2"]}, "answer": ["C5"]},
    {"id": "q7", "kind": "address", "about": {"value": 80}, "answer": ["Model!D3"]},
    {"id": "q8", "kind": "trace", "about": "C3", "reach": "direct", "answer": ["B3", "Inputs!B2"]},
    {"id": "q9", "kind": "trace", "about": "C5", "reach": "all", "answer": ["B3:C4", "Inputs!B2"]},
    {"id": "q10", "kind": "impact", "about": "B3", "reach": "direct", "answer": ["B5", "C3"]},
    {
        "id": "q11",
        "kind": "impact",
        "about": "Inputs!B2",
        "reach": "all",
        "answer": ["C3:C5", "D4:F4", "E3:F3", "D5:F5"],
    },
    {"id": "q12", "kind": "hardcode", "about": "B3:F5", "answer": ["D3"]},
    {"id": "q13", "kind": "hardcode", "about": "B4:F4", "answer": []},
]


@pytest.fixture(scope="module")
def workbook(tmp_path_factory: pytest.TempPathFactory) -> Workbook:
    """Two products that grow by 5 % a year; D3 is typed over the formula of its row."""
    import xlsxwriter

    path = tmp_path_factory.mktemp("reader") / "plan.xlsx"
    with xlsxwriter.Workbook(path) as book:
        model, inputs = book.add_worksheet("Model"), book.add_worksheet("Inputs")
        inputs.write_row(0, 0, ["Input", "Value"])
        inputs.write(1, 0, "Growth")
        inputs.write(1, 1, 0.05, book.add_format({"num_format": "0%"}))
        inputs.write(2, 0, "Code")
        inputs.write_string(2, 1, "007")
        inputs.write(3, 0, "Start")
        inputs.write_datetime(3, 1, datetime(2024, 1, 5), book.add_format({"num_format": "dd.mm.yyyy"}))
        inputs.write(4, 0, "Final")
        inputs.write_boolean(4, 1, True)
        model.write(0, 0, "Plan")
        model.write_row(1, 0, ["Product", "FY1", "FY2", "FY3", "FY4", "FY5"])
        model.write_row(2, 0, ["Bolts", 100])
        model.write_row(3, 0, ["Nuts", 150])
        bolts, nuts = 100.0, 150.0
        model.write_row(4, 0, ["Total"])
        model.write_formula("B5", "=SUM(B3:B4)", None, 250)
        for column in range(2, 6):
            left, here = "ABCDEF"[column - 1], "ABCDEF"[column]
            nuts *= 1.05
            model.write_formula(3, column, f"={left}4*(1+Inputs!$B$2)", None, nuts)
            if here == "D":
                bolts = 80.0
                model.write(2, column, bolts)
            else:
                bolts *= 1.05
                model.write_formula(2, column, f"={left}3*(1+Inputs!$B$2)", None, bolts)
            model.write_formula(4, column, f"=SUM({here}3:{here}4)", None, bolts + nuts)
    return Workbook.read(path)


@pytest.fixture(scope="module")
def questions(workbook: Workbook) -> list[Question]:
    common = {"text": "?", "sheet": "Model"}
    loaded = QuestionFile(workbook="plan.xlsx", questions=[{**common, **each} for each in QUESTIONS])  # type: ignore[arg-type]
    return list(loaded.with_extents({sheet.name: sheet.extent for sheet in workbook.worksheets}).questions)


def ask(encoding: Encoding, workbook: Workbook, questions: list[Question]) -> tuple[Request, Reply, Scored]:
    block = None if encoding.name == "none" else encoding.encode(workbook)
    asked = [question.asked() for question in questions]
    request = Request("cellprose-reader-1", SYSTEM, prompt(encoding.label, block, asked), 16_000, {}, encoding, asked)
    reply = Reader().call(request)
    return request, reply, score_reply(questions, reply.text)


def by_kind(questions: list[Question], scored: Scored) -> dict[str, float]:
    kinds: dict[str, list[float]] = {}
    for question in questions:
        kinds.setdefault(question.kind, []).append(scored.scores[question.id])
    return {kind: sum(scores) / len(scores) for kind, scores in kinds.items()}


def test_the_format_under_test_keeps_every_kind_of_answer(workbook: Workbook, questions: list[Question]) -> None:
    _, _, scored = ask(find_encoding("cellprose_lean_gfm"), workbook, questions)
    assert scored.scores == {question.id: 1.0 for question in questions}


@pytest.mark.parametrize("encoding", builtin_encodings(), ids=lambda encoding: encoding.name)
def test_what_an_encoding_keeps_is_what_the_reader_can_answer(
    encoding: Encoding, workbook: Workbook, questions: list[Question]
) -> None:
    _, reply, scored = ask(encoding, workbook, questions)
    answered = {question.kind for question in questions if json.loads(reply.text).get(question.id) is not None}
    assert answered == {name for name, kind in BUILTIN_KINDS.items() if kind.needs in encoding.keeps}
    for kind, accuracy in by_kind(questions, scored).items():
        assert (accuracy > 0.5) == (kind in answered), kind


def test_csv_has_the_values_and_no_formulas(workbook: Workbook, questions: list[Question]) -> None:
    _, reply, scored = ask(find_encoding("csv"), workbook, questions)
    accuracies = by_kind(questions, scored)
    assert (accuracies["value"], accuracies["trace"], accuracies["impact"], accuracies["hardcode"]) == (1, 0, 0, 0)
    assert not {"q8", "q9", "q10", "q11", "q12", "q13"} & set(json.loads(reply.text))


def test_without_a_workbook_every_answer_is_missing_and_the_reply_still_an_answer(
    workbook: Workbook, questions: list[Question]
) -> None:
    _, reply, scored = ask(find_encoding("none"), workbook, questions)
    assert set(json.loads(reply.text).values()) == {None}
    assert scored.answers is not None
    assert scored.accuracy == 0


def test_only_the_text_that_was_sent_is_read(workbook: Workbook, questions: list[Question]) -> None:
    encoding = find_encoding("cellprose_lean_gfm")
    request, _, _ = ask(encoding, workbook, questions)
    changed = replace(request, prompt=request.prompt.replace("262.5", "9999"))
    assert changed.prompt != request.prompt
    assert json.loads(Reader().call(changed).text)["q1"] == 9999


def test_what_the_text_does_not_hold_is_left_out(workbook: Workbook, questions: list[Question]) -> None:
    absent = [
        questions[0].model_copy(update={"about": "Model!Z99"}),
        questions[1].model_copy(update={"about": "Absent!B2"}),
        questions[5].model_copy(update={"sheet": "Absent"}),
        questions[7].model_copy(update={"about": "Absent!A1"}),
        questions[11].model_copy(update={"about": "Absent!A1:B9"}),
        questions[3],
    ]
    _, reply, scored = ask(find_encoding("cellprose_lean_gfm"), workbook, absent)
    assert json.loads(reply.text) == {"q4": "007"}
    assert scored.accuracy == pytest.approx(1 / 6)


def test_tokens_are_counted_of_what_is_sent_and_replied(workbook: Workbook, questions: list[Question]) -> None:
    request, reply, _ = ask(find_encoding("csv"), workbook, questions)
    assert reply.usage.input == count(request.system) + count(request.prompt)
    assert reply.usage.output == count(reply.text)
    assert reply.returned_model == request.model_id


def test_an_encoding_without_a_decoder_is_refused_by_name(workbook: Workbook, questions: list[Question]) -> None:
    one_way = Encoding("one_way", "1", "some format", lambda workbook: "text")
    with pytest.raises(ValueError, match="'one_way' has no decoder"):
        ask(one_way, workbook, questions)


def test_the_version_is_part_of_the_model_id() -> None:
    assert builtin_models()["reader"].model_id == f"cellprose-reader-{READER_VERSION}"
    assert builtin_models()["reader_agent"].model_id == f"cellprose-reader-agent-{READER_AGENT_VERSION}"


@pytest.mark.filterwarnings("ignore:Workbook contains no default style")
def test_dev_real_workbooks_are_read_back(shared_data: Path) -> None:
    """Every typed text of a real workbook that occurs once is where a second library has it."""
    from openpyxl import load_workbook

    path = min((shared_data / "dev_real").glob("*.xlsx"), key=lambda file: file.stat().st_size)
    places: dict[str, list[str]] = {}
    for sheet in load_workbook(path).worksheets[:1]:
        for row in sheet.iter_rows():
            for cell in row:
                if isinstance(cell.value, str) and not cell.value.startswith("=") and cell.value.strip():
                    places.setdefault(" ".join(cell.value.split()).casefold(), []).append(cell.coordinate)
        name = sheet.title
    once = [(text, where[0]) for text, where in places.items() if len(where) == 1][:40]
    assert once
    questions = [
        Question(id=f"q{n}", kind="address", text="?", sheet=name, about={"value": text}, answer=[where])  # type: ignore[arg-type]
        for n, (text, where) in enumerate(once)
    ]
    _, _, scored = ask(find_encoding("cellprose_lean_gfm"), Workbook.read(path), questions)
    assert scored.accuracy >= 0.95

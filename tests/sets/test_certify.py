"""``sets check``: what is right passes, and each wrong pack fails for its own reason."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

from pytest_cellprose.__main__ import main
from pytest_cellprose.questions.schema import Question
from pytest_cellprose.questions.scoring import score
from pytest_cellprose.sets.certify import damaged

CELLS = Path(__file__).resolve().parents[2] / "cells"

Content = dict[str, Any]


def write_workbook(path: Path, total: int = 600) -> None:
    """Three amounts, their sum, its double, a run of four formulas with one typed over, and a dynamic reference."""
    with xlsxwriter.Workbook(str(path)) as workbook:
        sheet = workbook.add_worksheet("Model")
        sheet.write_column("A1", ["Item", "Tea", "Coffee", "Cocoa", "Total", "Doubled"])
        sheet.write_column("B1", ["Amount", 100, 200, 300])
        sheet.write_formula("B5", "=SUM(B2:B4)", None, total)
        sheet.write_formula("B6", "=B5*2", None, 2 * total)
        for column in "CDEFG":
            if column == "E":
                sheet.write("E2", 7)
            else:
                sheet.write_formula(f"{column}2", f"={column}1*2", None, 0)
        sheet.write_formula("C6", '=INDIRECT("B5")', None, total)
        sheet.write("D6", 0.125, workbook.add_format({"num_format": "0.0%"}))
        sheet.write("E6", 45382, workbook.add_format({"num_format": "yyyy-mm-dd"}))
        sheet.write("F6", 12.34567)


def question(number: int, kind: str, about: Any, answer: Any, **more: Any) -> Content:
    text = f"Question {number} of kind {kind}?"
    return {"id": f"q{number}", "kind": kind, "text": text, "sheet": "Model", "about": about, "answer": answer, **more}


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    """A cells folder in which everything is right."""
    folder = tmp_path / "pack"
    folder.mkdir()
    write_workbook(folder / "book.xlsx")
    labels = {"row": ["Total"], "column": ["Amount"]}
    questions = [
        question(1, "value", "Model!B5", 600),
        question(2, "address", labels, ["Model!B5"]),
        question(3, "trace", "Model!B6", ["B5", "B2:B4"], reach="all"),
        question(4, "impact", "Model!B5", ["Model!B6"], reach="direct"),
        question(5, "hardcode", "Model!C2:G2", ["Model!E2"]),
        question(6, "hardcode", "Model!B2:B4", []),
        question(7, "value", "Model!D6", 12.5, unit="percent"),
        question(8, "value", "Model!E6", "2024-03-31", type="date"),
        question(9, "value", "Model!F6", 12.35),  # rounded, as its digits say
        question(10, "value", "A5", " total "),
    ]
    save(folder, {"schema": 1, "workbook": "book.xlsx", "questions": questions})
    return folder


def save(folder: Path, content: Content, name: str = "book") -> None:
    (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")


def load(folder: Path) -> Content:
    content: Content = json.loads((folder / "book.json").read_text(encoding="utf-8"))
    return content


def check(capsys: pytest.CaptureFixture[str], *folders: Path | str) -> tuple[int, str, str]:
    code = main(["sets", "check", *map(str, folders)])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_the_sets_of_this_repository_pass(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = check(capsys, CELLS)
    assert (code, err) == (0, "")
    assert "243 of 243 questions certified" in out


def test_the_public_workbooks_pass(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = check(capsys, CELLS / "real", shared_data / "dev_real")
    assert (code, err) == (0, "")
    assert "100 of 100 questions certified" in out


def test_a_right_pack_passes(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = check(capsys, pack)
    assert (code, err) == (0, "")
    assert "10 of 10 questions certified" in out


def change(number: int, **fields: Any) -> Callable[[Path], object]:
    """Set fields of a question; a field that is None is taken away."""

    def apply(folder: Path) -> None:
        content = load(folder)
        changed = {**content["questions"][number - 1], **fields}
        content["questions"][number - 1] = {name: value for name, value in changed.items() if value is not None}
        save(folder, content)

    return apply


def change_file(**fields: Any) -> Callable[[Path], object]:
    return lambda folder: save(folder, {**load(folder), **fields})


def second_file(**fields: Any) -> Callable[[Path], object]:
    """Another question file about the same workbook, with the first question of this one, changed."""

    def apply(folder: Path) -> None:
        content = load(folder)
        save(folder, {**content, "questions": [{**content["questions"][0], **fields}]}, "other")

    return apply


def computed(**fields: Any) -> Callable[[Path], object]:
    """The first question asked of an answer workbook, in which the total is 900."""

    def apply(folder: Path) -> None:
        write_workbook(folder / "golden.xlsx", total=900)
        change(1, computed=True, answer_workbook="golden.xlsx", **fields)(folder)

    return apply


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "no id": (change(1, id=None), "number 1: no id"),
    "blank id": (change(1, id=" "), "number 1: no id"),
    "duplicate id": (change(2, id="q1"), "q1: duplicate id"),
    "unlabelled": (change(1, answer=None), "q1: unlabelled"),
    "unlabelled text": (change(1, answer=" "), "q1: unlabelled"),
    "unlabelled address": (change(2, answer=[]), "q2: unlabelled"),
    "conflicting outcomes": (change(10, text="question 1  OF kind VALUE?"), "q10: conflicting outcomes"),
    "conflict between files": (second_file(answer=100, about="B2"), "other, q1: conflicting outcomes"),
    "missing workbook": (change_file(workbook="sub/none.xlsx"), "q1: missing workbook"),
    "another workbook": (change_file(sha256="0" * 64), "q1: missing workbook"),
    "unreadable workbook": (lambda folder: (folder / "book.xlsx").write_bytes(b"PK no zip"), "q1: missing workbook"),
    "unknown kind": (change(1, kind="sum"), 'q1: not gradable: field "kind"'),
    "no reach": (change(3, reach=None), 'q3: not gradable: field "reach"'),
    "misspelt field": (change(1, anwser=1), 'q1: not gradable: field "anwser"'),
    "no address": (change(3, answer=["B2 and B3"]), 'q3: not gradable: field "answer"'),
    "other value": (change(1, answer=601), "q1: not what the workbook says: Model!B5 holds 600"),
    "other percent": (change(7, answer=0.125), "q7: not what the workbook says"),
    "other date": (change(8, answer="2024-04-01"), "q8: not what the workbook says"),
    "rounded wrongly": (change(9, answer=12.34), "q9: not what the workbook says"),
    "other text": (change(10, answer="totals"), "q10: not what the workbook says"),
    "boolean for a number": (change(1, answer=True), "q1: not what the workbook says"),
    "blank cell": (change(1, about="Model!G1"), "q1: not what the workbook says: Model!G1 holds no value"),
    "other address": (change(2, answer=["Model!B6"]), "q2: not what the workbook says: the labels lead to Model!B5"),
    "labels lead nowhere": (change(2, about={"row": ["Sum"], "column": ["Amount"]}), "q2: not what the workbook says"),
    "trace": (change(3, reach="direct"), "q3: not what the workbook says"),
    "trace too long": (change(3, answer=["B2:B5", "A1"]), "q3: not what the workbook says"),
    "impact": (change(4, answer=[]), "q4: not what the workbook says"),
    "hardcode": (change(5, answer=["Model!E2", "Model!F2"]), "q5: not what the workbook says"),
    "hardcode that is none": (change(6, answer=["Model!B3"]), "q6: not what the workbook says"),
    "dynamic reference": (change(3, about="C6", answer=["B5"]), "q3: not what the workbook says: Model!C6 has a dy"),
    "other worksheet": (change(1, sheet="Elsewhere"), "q1: not what the workbook says"),
    "outside the cells": (change(4, answer=["Model!Z99"]), "q4: not what the workbook says"),
    "computed": (computed(answer=600), "q1: not what the workbook says: Model!B5 holds 900"),
    "computed without its answers": (
        change(1, computed=True, answer_workbook="golden.xlsx"), "q1: missing workbook: the answer workbook"
    ),
    "computed from other answers": (
        computed(answer=900, answer_sha256="0" * 64), "q1: missing workbook: the answer workbook"
    ),
    "computed without a place": (computed(answer=900, about=None), "q1: not what the workbook says: no field"),
    "not JSON": (lambda folder: (folder / "book.json").write_text("{"), "book: not JSON"),
    "a field twice": (
        lambda folder: (folder / "book.json").write_text(
            (folder / "book.json").read_text().replace('"kind": "value"', '"kind": "value", "kind": "value"', 1)
        ),
        'book: question q1, field "kind": found 2 times',
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_pack_fails_for_its_own_reason_and_for_no_other(
    pack: Path, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    break_it, told = BROKEN[case]
    break_it(pack)
    code, out, err = check(capsys, pack)
    assert code == 1
    assert told in err, err
    reasons = {line.split(": ")[1] for line in err.splitlines() if ": " in line}
    if "not JSON" not in err and "2 times" not in err:
        assert len(reasons) == 1, err
        assert reasons.pop() in " ".join(out.split())  # in the table, too


def test_a_computed_question_is_certified_against_its_answer_workbook(
    pack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    computed(answer=900)(pack)
    digest = hashlib.sha256((pack / "golden.xlsx").read_bytes()).hexdigest()
    change(1, answer_sha256=digest)(pack)
    code, _, err = check(capsys, pack)
    assert (code, err) == (0, "")


def test_all_reasons_of_a_question_are_collected(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(1, id="q2", answer=None, kind="sum", text="Question 3 of kind trace?")(pack)
    change_file(workbook="sub/none.xlsx")(pack)
    _, _, err = check(capsys, pack)
    for reason in ("duplicate id", "unlabelled", "not gradable"):
        assert f"book, q2: {reason}" in err
    assert err.count("missing workbook") == 10


def test_one_truth_in_two_spellings_is_no_conflict(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = load(pack)
    again = {**content["questions"][2], "answer": ["Model!B2:B5", "'Model'!$B$3"]}
    save(pack, {**content, "questions": [{**content["questions"][0], "answer": 600.0}, again]}, "other")
    code, _, err = check(capsys, pack)
    assert (code, err) == (0, "")


def test_a_workbook_that_is_not_here_is_no_failure_but_nothing_to_check_is_one(
    pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(pack, {**load(pack), "workbook": "elsewhere.xlsx"}, "absent")
    code, out, err = check(capsys, pack)
    assert (code, err) == (0, "")
    assert "10 of 10 questions certified; not here: 1 of 2 workbooks" in out
    (pack / "book.json").unlink()
    assert check(capsys, pack)[0] == 1
    empty = tmp_path / "empty"
    empty.mkdir()
    assert check(capsys, empty)[0] == 1
    code, _, err = check(capsys, tmp_path / "no such folder")
    assert code == 1
    assert "no such folder: not a folder" in err


@pytest.mark.parametrize("case", BROKEN)
def test_of_a_held_out_pack_nothing_is_printed_but_names_numbers_and_reasons(
    pack: Path, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    secret = 'Secret "Amount" of 4711'
    change(10, note="n", text="A question that nobody may see?")(pack)
    break_it, _ = BROKEN[case]
    break_it(pack)
    for path in pack.glob("*.json"):
        text = path.read_text().replace('"Total"', json.dumps(secret)).replace("Model", "Sealed")
        (pack / f"sb_{path.name}").write_text(text)
        path.unlink()
    code, out, err = check(capsys, pack)
    assert code == 1
    quoted = [
        secret,
        "4711",
        "nobody may see",
        "Sealed",
        "Model!",
        "600",
        "601",
        "2024-0",
        "12.3",
        "B2:B5",
        "B5",
        "Tea",
    ]
    assert [text for text in quoted if text in out + err] == []


def test_what_a_digest_split_holds_out_is_not_quoted(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    side = int(hashlib.sha256(b"book").hexdigest()[:8], 16) < 2**32 // 3  # second-seed.md 1d
    assert not side, "the name must be on the held-out side"
    change(1, answer=601)(pack)
    code, out, err = check(capsys, pack, "--split=digest")
    assert (code, err) == (1, "book, question number 1: not what the workbook says\n")
    assert "held out" in out


KINDS: list[Content] = [
    question(1, "value", "B1", 0), question(1, "value", "B1", 0.4), question(1, "value", "B1", -1.5e308),
    question(1, "value", "B1", True), question(1, "value", "B1", "not so"),
    question(1, "value", "B1", "9999-12-31", type="date"), question(1, "value", "B1", 3, unit="percent"),
    question(1, "address", {"value": 5}, ["B1"]), question(1, "trace", "B1", [], reach="all"),
    question(1, "impact", "B1", ["A:A"], reach="all"), question(1, "hardcode", "B1", ["B1:C3", "Other!D4"]),
]  # fmt: skip


@pytest.mark.parametrize("fields", KINDS, ids=lambda fields: f"{fields['kind']} {fields['answer']}")
def test_a_damaged_truth_scores_nothing_or_for_lists_less(fields: Content) -> None:
    asked = Question.model_validate(fields)
    truth = json.loads(json.dumps(fields["answer"]))
    assert score(asked, truth) == 1
    wrong = score(asked, damaged(asked))
    assert wrong == 0 if fields["kind"] in ("value", "address") else wrong < 1

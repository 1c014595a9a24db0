"""Which tasks and cells of the published data become questions, on small workbooks made here."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

from pytest_cellprose.questions.schema import Question
from pytest_cellprose.sets.spreadsheetbench import SourceError, build_spreadsheetbench, reviewed
from pytest_cellprose.sets.spreadsheetbench.archive import Pair, Task, read_published
from pytest_cellprose.sets.spreadsheetbench.ask import CellRule, Restated, TaskRule, ask

FORMATS = {"percent": "0.0%", "date": "yyyy-mm-dd", "moment": "yyyy-mm-dd hh:mm", "elapsed": "[h]:mm"}


def book(answers: dict[str, Any], rows: int = 150, others: dict[str, Any] | None = None) -> bytes:
    """A worksheet ``Data`` with two columns of numbers and a worksheet ``Out``, filled as told.

    A value is a constant, ``("=…", result)`` for a formula, or ``(format, number)``.
    """
    stream = io.BytesIO()
    with xlsxwriter.Workbook(stream, {"in_memory": True}) as made:
        out, data = made.add_worksheet("Out"), made.add_worksheet("Data")
        for row in range(rows):
            data.write_row(row, 0, [row + 1, (row + 1) * 10])
        for sheet, cells in ((out, answers), (data, others or {})):
            for address, value in cells.items():
                if not isinstance(value, tuple):
                    sheet.write(address, value)
                elif value[0].startswith("="):
                    sheet.write_formula(address, value[0], None, value[1])
                else:
                    sheet.write(address, value[1], made.add_format({"num_format": FORMATS[value[0]]}))
    return stream.getvalue()


def task(position: str = "D2:D9", instruction: str = "Fill column D.", **more: str) -> Task:
    fields = {"id": "77", "type": "Cell-Level Manipulation"} | more
    return Task(instruction=instruction, answer_position=position, **fields)


def asked(answers: dict[str, Any], before: dict[str, Any] | None = None, **more: str) -> Restated:
    return ask(task(**more), Pair(book(before or {}), book(answers)))


def test_a_question_names_one_cell_and_carries_its_truth() -> None:
    restated = asked({"D2": ("=SUM(Data!A1:A3)", 6)}, position="Out!D2", instruction="Sum\n the first three.")
    (entry,) = restated.entries
    assert restated.dropped is None
    assert entry["text"] == (
        "Somebody asked about this workbook: “Sum the first three.” Suppose that this is done, and nothing else is "
        "changed. Which value does cell D2 of worksheet “Out” then hold?"
    )
    question = Question.model_validate(entry)
    assert (question.kind, question.sheet, question.about, question.answer) == ("value", "Out", "Out!D2", 6)
    assert (question.computed, question.answer_workbook, question.case) == (True, "sb_77.answer.xlsx", "77")
    assert len(question.answer_sha256 or "") == 64


@pytest.mark.parametrize(
    ("stored", "answer", "field"),
    [
        (1234.5, 1234.5, {}),
        ("Homeroom", "Homeroom", {}),
        (True, True, {}),
        (("date", datetime(2024, 1, 31).toordinal() - 693594), "2024-01-31", {"type": "date"}),
        (("percent", 0.0925), 9.25, {"unit": "percent"}),
    ],
)
def test_what_a_cell_holds_decides_the_form_of_the_answer(stored: Any, answer: Any, field: dict[str, str]) -> None:
    (entry,) = asked({"D2": stored}, position="D2").entries
    assert entry["answer"] == answer
    assert field.items() <= entry.items()
    assert entry["text"].endswith("Answer in percent: 12 for 12 %.") == ("unit" in field)


@pytest.mark.parametrize(
    ("after", "before", "instruction", "rule"),
    [
        ({}, {}, "", CellRule.EMPTY),
        ({"D2": " "}, {}, "", CellRule.EMPTY),
        ({"D2": ("=NA()", "#N/A")}, {}, "", CellRule.ERROR),
        ({"D2": ("moment", 45000.25)}, {}, "", CellRule.TIME),
        ({"D2": ("elapsed", 1.5)}, {}, "", CellRule.TIME),
        ({"D2": 0}, {}, "", CellRule.ZERO),
        ({"D2": 0.25}, {}, "", CellRule.SMALL),
        ({"D2": ("percent", -0.005)}, {}, "", CellRule.SMALL),
        ({"D2": 500}, {"D2": 500}, "", CellRule.UNCHANGED),
        ({"D2": 500}, {"D2": 501}, "", CellRule.UNCHANGED),
        ({"D2": ("percent", 0.5)}, {"D2": ("percent", 0.5)}, "", CellRule.UNCHANGED),
        ({"D2": "Yes"}, {"D2": "yes "}, "", CellRule.UNCHANGED),
        ({"D2": 126741}, {}, "I expect a result of 126,741.", CellRule.STATED),
        ({"D2": 2}, {}, "For 2017 there were only 2.", CellRule.STATED),
    ],
)
def test_cells_that_are_not_asked_about(
    after: dict[str, Any], before: dict[str, Any], instruction: str, rule: CellRule
) -> None:
    restated = asked(after, before, position="D2", instruction=instruction)
    assert restated == ([], {rule: 1, CellRule.ENOUGH: 0}, TaskRule.NO_CELL)


@pytest.mark.parametrize("instruction", ["Look in D12 and $A$12.", "Use A1:A12.", "In version 1.12.3"])
def test_addresses_in_the_instruction_are_no_answers(instruction: str) -> None:
    assert len(asked({"D2": 12}, position="D2", instruction=instruction).entries) == 1


def test_the_same_answer_is_asked_once_and_no_more_than_eight() -> None:
    answers = {f"D{row}": (row // 2) * 10 for row in range(2, 42)}
    restated = asked(answers, position="D2:D41")
    assert restated.left_out == {CellRule.REPEATED: 20, CellRule.ENOUGH: 12}
    assert [entry["id"] for entry in restated.entries] == [f"q{n}" for n in range(1, 9)]
    assert restated.entries[0]["about"] == "Out!D2"
    assert restated.entries[-1]["about"] == "Out!D40"


def test_cells_that_a_reader_ruled_out() -> None:
    pair = Pair(book({}), book({"D2": 50, "D3": 60}))
    restated = ask(task("D2:D3"), pair, without=["D3"])
    assert [entry["about"] for entry in restated.entries] == ["Out!D2"]
    assert restated.left_out[CellRule.READ] == 1


@pytest.mark.parametrize(
    ("changed", "formula", "kept"),
    [
        ({}, "=SUM(Data!A1:A3)", True),
        ({"A2": 99}, "=SUM(Data!A1:A3)", False),
        ({"A9": 99}, "=SUM(Data!A1:A3)", True),
        ({"A2": "2"}, "=SUM(Data!A1:A3)", True),  # a number and its text
        ({"A2": 2.0000000000001}, "=SUM(Data!A1:A3)", True),
        ({"A2": ("=1+1", 2)}, "=SUM(Data!A1:A3)", True),
        ({"A2": ("=1+98", 99)}, "=SUM(Data!A1:A3)", False),
        ({"A9": 99}, '=SUM(INDIRECT("Data!A"&1),3)', False),
        ({"F9": ("=1+1", 2)}, '=SUM(INDIRECT("Data!A"&1),3)', True),
    ],
)
def test_an_answer_that_needs_other_edits_is_not_asked_for(changed: dict[str, Any], formula: str, kept: bool) -> None:
    after = book({"D2": (formula, 600)}, others=changed)
    restated = ask(task("D2"), Pair(book({}), after))
    assert (len(restated.entries) == 1) is kept
    assert restated.left_out[CellRule.OTHER_INPUTS] == (not kept)


def test_other_answer_cells_may_differ() -> None:
    restated = asked({"D2": 500, "D3": ("=D2+100", 600)}, {"D2": 1})
    assert [entry["about"] for entry in restated.entries] == ["Out!D2", "Out!D3"]


@pytest.mark.parametrize(
    ("position", "pair", "rule"),
    [
        ("D9:D2", Pair(book({}), book({"D2": 500})), TaskRule.POSITION),
        ("d2:d9", Pair(book({}), book({"D2": 500})), TaskRule.POSITION),
        ("D:D", Pair(book({}), book({"D2": 500})), TaskRule.POSITION),
        ("D2", Pair(b"no workbook", book({"D2": 500})), TaskRule.UNREADABLE),
        ("D2", Pair(book({}), b"no workbook"), TaskRule.UNREADABLE),
        ("Other!D2", Pair(book({}), book({"D2": 500})), TaskRule.NO_WORKSHEET),
        ("D2", Pair(book({}, rows=149), book({"D2": 500})), TaskRule.SIZE),
        ("D2", Pair(book({}, rows=10_001), book({"D2": 500})), TaskRule.SIZE),
        ("D2", Pair(book({}), book({})), TaskRule.NO_CELL),
    ],
)
def test_tasks_that_are_dropped(position: str, pair: Pair, rule: TaskRule) -> None:
    restated = ask(task(position), pair)
    assert (restated.entries, restated.dropped) == ([], rule)


# The published layouts


def entry(task_id: Any, **more: Any) -> dict[str, Any]:
    fields = {"instruction": "Do it.", "instruction_type": "Cell-Level Manipulation", "answer_position": "D2"}
    return {"id": task_id, "spreadsheet_path": f"spreadsheet/{task_id}"} | fields | more


V01 = {
    "dataset.json": json.dumps([entry(10), entry("10-4")]).encode(),
    "spreadsheet/10/1_10_input.xlsx": b"10 before",
    "spreadsheet/10/1_10_answer.xlsx": b"10 after",
    "spreadsheet/10/2_10_input.xlsx": b"second case",
    "spreadsheet/10/2_10_answer.xlsx": b"second case",
    "spreadsheet/10-4/1_10-4_input.xlsx": b"10-4 before",
    "spreadsheet/10-4/1_10-4_answer.xlsx": b"10-4 after",
    "spreadsheet/11/1_11_input.xlsx": b"not wanted",
    "spreadsheet/10/._1_10_input.xlsx": b"left by a packer",
    "__MACOSX/spreadsheet/10/1_10_input.xlsx": b"left by a packer",
}


def packed(folder: Path, files: dict[str, bytes], form: str) -> Path:
    """The files as a folder or archive; in an archive below a folder of its own, as published."""
    if form == "folder":
        for name, content in files.items():
            path = folder / "data" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return folder / "data"
    path = folder / f"data.{form}"
    if form == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in files.items():
                archive.writestr(f"all_data/{name}", content)
    else:
        with tarfile.open(path, "w:gz") as tar:
            for name, content in files.items():
                member = tarfile.TarInfo(f"./all_data/{name}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    return path


@pytest.mark.parametrize("form", ["folder", "zip", "tar.gz"])
def test_the_first_test_case_of_the_wanted_tasks_is_read(tmp_path: Path, form: str) -> None:
    published = read_published(packed(tmp_path, V01, form), {"10", "10-4", "12"})
    assert [task.id for task in published.tasks] == ["10", "10-4"]
    assert published.pairs == {"10": (b"10 before", b"10 after"), "10-4": (b"10-4 before", b"10-4 after")}


@pytest.mark.parametrize("names", [("1_10_init", "1_10_golden"), ("10_init", "10_golden"), ("init", "golden")])
def test_the_verified_layout_is_read(tmp_path: Path, names: tuple[str, str]) -> None:
    files = {"dataset.json": json.dumps([entry(10)]).encode()}
    files |= {f"spreadsheet/10/{name}.xlsx": name.encode() for name in names}
    assert read_published(packed(tmp_path, files, "tar.gz"), {"10"}).pairs == {
        "10": (names[0].encode(), names[1].encode())
    }


@pytest.mark.parametrize("missing", ["spreadsheet/10/1_10_input.xlsx", "spreadsheet/10/1_10_answer.xlsx"])
def test_half_a_pair_is_no_pair(tmp_path: Path, missing: str) -> None:
    files = {name: content for name, content in V01.items() if name != missing}
    assert read_published(packed(tmp_path, files, "zip"), {"10"}).pairs == {}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "found no dataset.json"),
        (b"{}", "expected a JSON list of tasks"),
        (b"\xff", "expected a JSON list of tasks"),
        (b"[1]", "task number 1: expected an object"),
        (json.dumps([entry(1, answer_position=None)]).encode(), "task number 1: found no text in answer_position"),
        (json.dumps([entry(1), entry("1")]).encode(), "task ids found more than once: 1"),
    ],
)
def test_data_that_is_not_the_benchmark_is_refused_in_one_line(
    tmp_path: Path, content: bytes | None, expected: str
) -> None:
    source = packed(tmp_path, {"other.txt": b""} if content is None else {"dataset.json": content}, "folder")
    with pytest.raises(SourceError, match=expected) as refused:
        build_spreadsheetbench(source, tmp_path / "out")
    assert str(source) in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "out").exists()


def test_files_that_are_no_archive_are_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing", encoding="utf-8")
    whole = packed(tmp_path, V01 | {"filler.bin": bytes(range(256)) * 400}, "tar.gz").read_bytes()
    (tmp_path / "cut.tar.gz").write_bytes(whole[: len(whole) // 2])
    for name, expected in (("notes.txt", "neither"), ("cut.tar.gz", "cannot be read"), ("absent.zip", "no such file")):
        with pytest.raises(SourceError, match=expected):
            read_published(tmp_path / name, {"10"})


# What was decided by reading


def test_only_tasks_that_were_read_are_taken(tmp_path: Path) -> None:
    """Whatever else a copy has, and even if its files are others, for which no rule drops the task."""
    judged = reviewed()
    unread = next(iter(judged.considered - judged.taken.keys() - judged.dropped.keys()))
    refused = next(iter(judged.dropped))
    taken = next(iter(judged.taken))
    pair = {"input": book({}), "answer": book({"D2": 500})}
    files = {"dataset.json": json.dumps([entry(i) for i in (unread, refused, taken, 999999)]).encode()}
    for task_id in (unread, refused, taken, 999999):
        files |= {f"spreadsheet/{task_id}/1_{task_id}_{role}.xlsx": content for role, content in pair.items()}
    lines = build_spreadsheetbench(packed(tmp_path, files, "zip"), tmp_path / "out")
    assert lines[0] == "SpreadsheetBench-derived: 1 workbooks, 1 questions, from 4 tasks"
    assert f"     2  {TaskRule.NOT_CONSIDERED}" in lines
    assert f"     1  {judged.dropped[refused]}" in lines
    assert lines[-2:] == [
        f"sb_{taken}: not the files that were reviewed; results are not comparable with others'",
        f"sb_{taken}: not the questions that are pinned; results are not comparable with others'",
    ]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "NOTICE.txt",
        f"sb_{taken}.answer.xlsx",
        f"sb_{taken}.json",
        f"sb_{taken}.xlsx",
    ]


def test_question_files_of_another_build_are_named(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "sb_old.json").write_text("{}", encoding="utf-8")
    lines = build_spreadsheetbench(packed(tmp_path, V01, "folder"), tmp_path / "out")
    assert lines[-1].endswith("has question files that are not of this build: sb_old.json")
    assert (tmp_path / "out" / "sb_old.json").exists()


def test_the_review_is_consistent() -> None:
    judged = reviewed()
    assert not judged.taken.keys() & judged.dropped.keys()
    assert judged.taken.keys() | judged.dropped.keys() <= judged.considered
    assert judged.without.keys() <= judged.taken.keys()
    assert set(judged.dropped.values()) <= {TaskRule.UNCLEAR, TaskRule.CONTRADICTED, TaskRule.STATED}

"""What ``heldout.json`` pins: the protocol's two held-out sets, by bytes, by content, by questions."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import openpyxl
import pytest
import xlsxwriter

from pytest_cellprose.__main__ import main
from pytest_cellprose.files import sha256_of
from pytest_cellprose.sets.discover import discover
from pytest_cellprose.sets.pinned import content_sha256, pinned
from pytest_cellprose.sets.realworld.build import pinned_workbooks
from pytest_cellprose.sets.split import load_split
from pytest_cellprose.sets.spreadsheetbench import reviewed
from pytest_cellprose.workbook.model import Workbook
from tests.conftest import takes_long

CELLS = Path(__file__).resolve().parents[2] / "cells"
WRITE = "python -m pytest_cellprose.sets.pinned cells writes it anew"


def test_it_names_the_workbooks_that_the_builders_and_the_split_name() -> None:
    planned = {name: file.sha256 for name, file in pinned().planned.items()}
    assert planned == load_split(CELLS / "split.json").heldout
    realworld = {workbook.name: workbook.sha256 for workbook in pinned_workbooks()}
    taken = reviewed().taken
    assert planned == realworld | {f"sb_{task}": digests[0] for task, digests in taken.items()}
    answers = {name: file.sha256 for name, file in pinned().workbooks.items() if name not in planned}
    assert answers == {f"sb_{task}.answer": digests[1] for task, digests in taken.items()}


def test_the_questions_in_the_repository_are_the_pinned_ones() -> None:
    here = {path.stem: sha256_of(path) for path in (CELLS / "realworld").glob("rw_*.json")}
    assert here == {name: file.questions for name, file in pinned().planned.items() if name.startswith("rw_")}, WRITE


@takes_long
def test_what_the_files_hold_is_what_is_pinned(
    shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A change to the reader may change what it makes of a workbook."""
    assert (
        main(
            ["sets", "build", "spreadsheetbench", "--from", str(shared_data / "spreadsheetbench"), str(tmp_path / "sb")]
        )
        == 0
    )
    by_bytes = {file.sha256: (name, file) for name, file in pinned().workbooks.items()}
    files = [*(shared_data / "heldout_real").glob("*.xlsx"), *(tmp_path / "sb").glob("*.xlsx")]
    for path in files:
        workbook = Workbook.read(path)
        name, file = by_bytes[workbook.sha256]
        assert content_sha256(workbook) == file.content, f"{name}: {WRITE}"
    assert len(files) == len(by_bytes)
    questions = {path.stem: sha256_of(path) for path in (tmp_path / "sb").glob("sb_*.json")}
    assert questions == {name: file.questions for name, file in pinned().planned.items() if name.startswith("sb_")}


def book(path: Path, value: object = 3.5, sheet: str = "Data", formula: str = "=A1*2") -> Workbook:
    with xlsxwriter.Workbook(str(path)) as workbook:
        worksheet = workbook.add_worksheet(sheet)
        worksheet.write("A1", value)
        worksheet.write("A2", "text")
        worksheet.write_formula("B1", formula, None, 7)
    return Workbook.read(path)


def test_content_is_what_cells_hold_and_not_how_a_file_stores_it(tmp_path: Path) -> None:
    first = book(tmp_path / "a.xlsx")
    saved = openpyxl.load_workbook(tmp_path / "a.xlsx")
    saved["Data"]["A1"].number_format = "0.00"
    saved.save(tmp_path / "b.xlsx")
    again = Workbook.read(tmp_path / "b.xlsx")  # openpyxl stores no results
    with zipfile.ZipFile(tmp_path / "a.xlsx", "a") as archive:
        archive.comment = b"x"
    repacked = Workbook.read(tmp_path / "a.xlsx")
    assert repacked.sha256 != first.sha256
    assert content_sha256(repacked) == content_sha256(first)
    assert content_sha256(again) != content_sha256(first)
    others = [{"value": 3.25}, {"value": "3.5"}, {"value": True}, {"sheet": "Other"}, {"formula": "=A1*3"}]
    digests = {content_sha256(book(tmp_path / f"{n}.xlsx", **change)) for n, change in enumerate(others)}
    assert len(digests | {content_sha256(first)}) == 6


def test_a_held_out_file_that_is_wrong_is_told_of_by_number(tmp_path: Path) -> None:
    """Of what it holds nothing: neither ids nor names of fields."""
    wrong = {"id": "SECRET-ID 42", "kind": "value", "text": "SECRET", "sheet": "S", "about": "A1", "SECRET FIELD 7": 1}
    path = tmp_path / "rw_x.json"
    path.write_text(json.dumps({"schema": 1, "workbook": "SECRET/none.xlsx", "questions": [wrong]}))
    found = discover([tmp_path])
    assert [text.removeprefix(f"{path}: ") for text in found.problems] == [
        'question number 1, field "id": expected q followed by letters, digits or underscores, like q1',
        'question number 1, field "answer": missing',
        "question number 1, a field: there is none of this name: remove it or correct its spelling",
    ]
    right = {"id": "q1", "kind": "value", "text": "SECRET", "sheet": "S", "about": "A1", "answer": 1}
    path.write_text(json.dumps({"schema": 1, "workbook": "SECRET/none.xlsx", "questions": [right]}))
    assert discover([tmp_path]).problems == [f'{path}: field "workbook": expected a file beside it']

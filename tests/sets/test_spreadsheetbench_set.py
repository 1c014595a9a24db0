"""The SpreadsheetBench-derived set as built from the published data.

Every truth is read once more by other libraries and calculated afresh. Nothing here encodes a workbook.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import tarfile
import warnings
import zipfile
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from pytest_cellprose.files import sha256_of
from pytest_cellprose.questions.schema import Question, QuestionFile, check_against, load_questions
from pytest_cellprose.questions.scoring import score
from pytest_cellprose.sets.discover import discover
from pytest_cellprose.sets.split import load_split
from pytest_cellprose.sets.spreadsheetbench import build_spreadsheetbench, reviewed
from pytest_cellprose.workbook.model import Workbook
from pytest_cellprose.workbook.refs import Range, split_sheet

ROOT = Path(__file__).resolve().parents[2]
SPLIT = ROOT / "cells" / "split.json"
RESULT = re.compile(rb"(</f>|<f[^>]*/>)<v>[^<]*</v>")


@pytest.fixture(scope="module")
def source(shared_data: Path) -> Path:
    folder = shared_data / "spreadsheetbench"
    if not folder.is_dir():
        pytest.skip("the published SpreadsheetBench tasks are not here")
    return folder


@pytest.fixture(scope="module")
def build(source: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    folder = tmp_path_factory.mktemp("spreadsheetbench")
    return folder, build_spreadsheetbench(source, folder)


@pytest.fixture(scope="module")
def built(build: tuple[Path, list[str]]) -> Path:
    return build[0]


@pytest.fixture(scope="module")
def files(built: Path) -> dict[str, QuestionFile]:
    return {path.stem: load_questions(path) for path in sorted(built.glob("sb_*.json"))}


def asked(files: dict[str, QuestionFile]) -> Iterator[tuple[str, Question]]:
    return ((name, question) for name, file in files.items() for question in file.questions)


def cell_of(question: Question) -> tuple[str, int, int]:
    assert isinstance(question.about, str)
    sheet, address = split_sheet(question.about)
    area = Range.parse(address)
    assert sheet is not None
    return sheet, area.first_row, area.first_column


def stored(question: Question) -> Any:
    """The truth as the answer workbook would store it."""
    assert not isinstance(question.answer, tuple)
    if question.type == "date":
        return date.fromisoformat(str(question.answer))
    return float(question.answer) / 100 if question.unit == "percent" else question.answer


def same(truth: Any, value: Any) -> bool:
    if isinstance(value, datetime):
        value = value.date()
    if isinstance(truth, int | float) and isinstance(value, int | float):
        return isinstance(truth, bool) is isinstance(value, bool) and math.isclose(truth, value, rel_tol=1e-9)
    return bool(truth == value)


def read_by_openpyxl(questions: QuestionFile, path: Path) -> dict[str, Any]:
    """Question -> what openpyxl reads in its cell."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about parts that openpyxl does not keep
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        values = {}
        for question in questions.questions:
            sheet, row, column = cell_of(question)
            ((values[question.id],),) = book[sheet].iter_rows(row, row, column, column, values_only=True)
    return values


def differing(files: dict[str, QuestionFile], folder: Path) -> dict[tuple[str, str], tuple[Any, Any]]:
    """Workbook and question -> truth and what openpyxl reads in the answer workbooks of `folder`."""
    found = {}
    for name, file in files.items():
        values = read_by_openpyxl(file, folder / f"{name}.answer.xlsx")
        for question in file.questions:
            if not same(stored(question), values[question.id]):
                found[name, question.id] = stored(question), values[question.id]
    return found


# What is there


def test_the_page_says_what_the_builder_says(build: tuple[Path, list[str]]) -> None:
    lines = build[1]
    assert lines[0] == "SpreadsheetBench-derived: 28 workbooks, 120 questions, from 100 tasks"
    page = (ROOT / "docs" / "spreadsheetbench.md").read_text(encoding="utf-8")
    assert "```\n" + "\n".join(lines) + "\n```" in page


def test_names_and_digests_are_those_of_the_split(files: dict[str, QuestionFile]) -> None:
    listed = {name: digest for name, digest in load_split(SPLIT).heldout.items() if name.startswith("sb_")}
    assert {name: file.sha256 for name, file in files.items()} == listed
    assert {f"sb_{task}": digests[0] for task, digests in reviewed().taken.items()} == listed


def test_every_workbook_is_held_out_and_answers_are_none(built: Path, files: dict[str, QuestionFile]) -> None:
    discovery = discover([built])
    assert discovery.problems == []
    assert {found.name: found.set for found in discovery.found} == dict.fromkeys(files, "heldout")
    for found in discovery.found:
        assert found.workbook_path == built / f"{found.name}.xlsx"
        for question in found.questions.questions:
            assert sha256_of(built / (question.answer_workbook or "")) == question.answer_sha256


def test_questions_are_about_computed_values(built: Path, files: dict[str, QuestionFile]) -> None:
    for name, file in files.items():
        workbook = Workbook.read(built / f"{name}.xlsx")
        assert check_against(file, {sheet.name: sheet.extent for sheet in workbook.worksheets}) == []
        assert 300 <= sum(1 for sheet in workbook.worksheets for _ in sheet.cells()) <= 20_000
    assert all(question.kind == "value" and question.computed for _, question in asked(files))
    assert all(question.case == name.removeprefix("sb_") for name, question in asked(files))


def test_numeric_truths_are_mostly_larger_than_two(files: dict[str, QuestionFile]) -> None:
    numbers = [
        q.answer for _, q in asked(files) if isinstance(q.answer, int | float) and not isinstance(q.answer, bool)
    ]
    assert sum(abs(number) > 2 for number in numbers) >= 0.9 * len(numbers)
    assert all(abs(number) >= 1 for number in numbers)


def test_the_set_is_not_for_git(tmp_path: Path) -> None:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    name = "cells/spreadsheetbench/sb_1.json"
    assert subprocess.run(["git", "-C", str(ROOT), "check-ignore", "-q", name], check=False).returncode == 0
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "cells"], check=True, capture_output=True, text=True
    ).stdout
    assert "sb_" not in listed


def test_an_archive_gives_the_same_bytes(
    source: Path, built: Path, files: dict[str, QuestionFile], tmp_path: Path
) -> None:
    some = [task for task in sorted(reviewed().taken) if (built / f"sb_{task}.xlsx").stat().st_size < 40_000][:3]
    tasks = json.loads((source / "dataset.json").read_text(encoding="utf-8"))
    (tmp_path / "dataset.json").write_text(json.dumps([task for task in tasks if str(task["id"]) in some]), "utf-8")
    with tarfile.open(tmp_path / "published.tar.gz", "w:gz") as tar:
        for task in some:
            tar.add(source / "spreadsheet" / task, f"data/spreadsheet/{task}")
        tar.add(tmp_path / "dataset.json", "data/dataset.json")
    lines = build_spreadsheetbench(tmp_path / "published.tar.gz", tmp_path / "out")
    assert lines[0].startswith("SpreadsheetBench-derived: 3 workbooks")
    for path in (tmp_path / "out").iterdir():
        assert path.read_bytes() == (built / path.name).read_bytes(), path.name


# Whether it is right


def test_each_truth_scores_and_a_damaged_one_does_not(files: dict[str, QuestionFile]) -> None:
    for name, question in asked(files):
        truth = question.answer
        damaged = truth * 1.1 + 1 if isinstance(truth, int | float) else f"{truth}x"
        assert (score(question, truth), score(question, damaged)) == (1, 0), (name, question.id)


def test_the_input_workbook_does_not_answer(built: Path, files: dict[str, QuestionFile]) -> None:
    for name, file in files.items():
        values = read_by_openpyxl(file, built / f"{name}.xlsx")
        for question in file.questions:
            assert not same(stored(question), values[question.id]), (name, question.id)


def test_openpyxl_reads_every_truth(built: Path, files: dict[str, QuestionFile]) -> None:
    assert differing(files, built) == {}


def test_calamine_reads_every_truth(built: Path, files: dict[str, QuestionFile]) -> None:
    calamine = pytest.importorskip("python_calamine", reason="python-calamine is not installed")
    for name, file in files.items():
        book = calamine.CalamineWorkbook.from_path(str(built / f"{name}.answer.xlsx"))
        for question in file.questions:
            sheet, row, column = cell_of(question)
            rows = book.get_sheet_by_name(sheet).to_python(skip_empty_area=False)
            assert same(stored(question), rows[row - 1][column - 1]), (name, question.id)


def test_libreoffice_calculates_the_truths(built: Path, files: dict[str, QuestionFile], tmp_path: Path) -> None:
    """The answer workbooks without their stored results, which LibreOffice has to calculate.

    It does not know every function that Excel does; what it leaves as ``#NAME?`` is not compared.
    """
    office = shutil.which("soffice")
    if office is None:
        pytest.skip("LibreOffice is not installed: no soffice on the path")
    bare, done = tmp_path / "bare", tmp_path / "done"
    bare.mkdir()
    for name in files:
        path = bare / f"{name}.answer.xlsx"
        with zipfile.ZipFile(built / path.name) as given, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as kept:
            for part in given.namelist():
                content = given.read(part)
                kept.writestr(part, RESULT.sub(rb"\1", content) if part.startswith("xl/worksheets/") else content)
    command = [office, f"-env:UserInstallation={(tmp_path / 'profile').as_uri()}", "--headless", "--convert-to", "xlsx"]
    paths = [str(path) for path in sorted(bare.iterdir())]
    subprocess.run([*command, "--outdir", str(done), *paths], check=True, capture_output=True, timeout=240)
    wrong = differing(files, done)
    unknown = {place for place, (_, calculated) in wrong.items() if calculated == "#NAME?"}
    assert wrong.keys() - unknown == set()
    assert len(unknown) <= 10

"""What is not certified is not asked: left out of the plan, the calls and the scores, and listed with its reasons."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

from pytest_cellprose.__main__ import main
from tests.integration.conftest import Bench, write_workbook

READER = ("--cellprose-models", "reader", "--cellprose-encodings", "cellprose_lean_gfm,csv")


def edit(path: Path, number: int, **fields: Any) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    content["questions"][number - 1].update(fields)
    path.write_text(json.dumps(content), encoding="utf-8")


def test_an_uncertified_question_is_left_out_everywhere(bench: Bench) -> None:
    edit(bench.cells / "alpha.json", 1, answer=4711)
    edit(bench.cells / "alpha.json", 4, answer=["Model!C4"])
    edit(bench.cells / "beta.json", 2, text="What is the total revenue?")  # as q1, with another answer
    result = bench.run(*READER)
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "cellprose: 4 questions of 10 not certified and left out (alpha q1: not what the workbook says, alpha q4: "
            "not what the workbook says, and 2 more): `python -m pytest_cellprose sets check cells` says why"
        ]
    )
    (manifest_path,) = (bench.results / "runs").glob("*.json")
    manifest = json.loads(manifest_path.read_text(encoding="utf-8"))
    books = {book["name"]: book for book in manifest["matrix"]["workbooks"]}
    wrong, conflict = ["not what the workbook says"], ["conflicting outcomes"]
    assert (books["alpha"]["questions"], books["alpha"]["uncertified"]) == (3, {"q1": wrong, "q4": wrong})
    assert (books["beta"]["questions"], books["beta"]["uncertified"]) == (3, {"q1": conflict, "q2": conflict})
    for record in bench.records():
        asked = {"alpha": {"q2", "q3", "q5"}, "beta": {"q3", "q4", "q5"}}[record["cell"]["workbook"]]
        assert set(record["kinds"]) == set(record["scores"]) == asked
        if record["cell"]["encoding"] == "cellprose_lean_gfm":
            assert record["accuracy"] == 1
            assert set(record["answers"]) == asked

    report = bench.written("report.json")
    assert report["sets"]["development"]["questions"] == 6
    assert [book["uncertified"] for book in report["workbooks"]] == [b["uncertified"] for b in books.values()]
    (page,) = bench.results.glob("*/report.md")
    text = page.read_text(encoding="utf-8")
    assert "| development | 6 of 10 | conflicting outcomes (2), not what the workbook says (2) |" in text
    assert "- `alpha` q1: not what the workbook says" in text
    assert "4711" not in text


def test_a_plan_of_certified_questions_says_nothing(bench: Bench) -> None:
    result = bench.run("--collect-only", *READER)
    assert "not certified" not in result.stdout.str()


def test_a_question_file_with_none_left_is_refused(bench: Bench) -> None:
    for number, wrong in enumerate([0, ["Model!B4"], ["Model!A1"], [], []], start=1):
        edit(bench.cells / "beta.json", number, answer=wrong)
    for arguments in ((), ("--collect-only",)):
        result = bench.run(*READER, *arguments)
        assert result.ret == 4
        result.stderr.fnmatch_lines(
            ["*beta.json: no question is certified (not what the workbook says): `python -m pytest_cellprose sets *"]
        )
    assert not bench.results.exists()
    assert bench.run(*READER, "--cellprose-workbooks", "alpha").ret == 0


def test_a_changed_truth_is_certified_anew_and_an_unchanged_one_is_not_worked_out_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.with_a_cache_of_its_own()
    from pytest_cellprose.sets.evidence import Evidence

    read: list[str] = []
    original = Evidence.read

    def counting(path: Path) -> Evidence:
        read.append(path.stem)
        return original(path)

    monkeypatch.setattr(Evidence, "read", counting)
    assert bench.run("--collect-only", *READER).ret == 0
    assert sorted(read) == ["alpha", "beta"]
    read.clear()
    assert bench.run("--collect-only", *READER).ret == 0
    assert read == []
    edit(bench.cells / "beta.json", 1, answer=1)
    result = bench.run("--collect-only", *READER)
    assert read == ["beta"]
    result.stdout.fnmatch_lines(["*1 question of 10 not certified and left out (beta q1: *"])


def test_a_computed_question_is_certified_against_its_answer_workbook_and_anew_when_that_changes(bench: Bench) -> None:
    write_workbook(bench.cells / "golden.xlsx", scale=10)
    fields = {"computed": True, "answer_workbook": "golden.xlsx"}
    edit(bench.cells / "alpha.json", 1, answer=30000 + 515 * 250, **fields)
    result = bench.run("--collect-only", *READER)
    assert result.ret == 0
    assert "not certified" not in result.stdout.str()
    write_workbook(bench.cells / "golden.xlsx", scale=11)
    changed = bench.run("--collect-only", *READER)
    changed.stdout.fnmatch_lines(
        ["*1 question of 10 not certified and left out (alpha q1: not what the workbook says)*"]
    )


def test_a_case_pack_is_measured_and_its_left_out_rows_are_in_the_report(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    root = bench.pytester.path
    (root / "books").mkdir()
    with xlsxwriter.Workbook(str(root / "books" / "sums.xlsx")) as workbook:
        sheet = workbook.add_worksheet("S")
        sheet.write_column("A1", ["Tea", "Cocoa"])
        sheet.write_column("B1", [100, 300])
    rows = [
        "id,workbook,question,expected,about",
        "k1,sums,Tea?,100,S!B1",
        "k2,sums,Cocoa?,200,S!B2",
        "k3,no,Tea?,1,B1",
    ]
    (root / "table.csv").write_text("\n".join(rows))
    code = main(["pack", str(root / "table.csv"), "--workbooks", str(root / "books"), "--out", str(root / "pack")])
    assert code == 1
    capsys.readouterr()
    result = bench.run(*READER, "--cellprose-cells", "pack", "--cellprose-workbooks", "sums")
    assert result.ret == 0
    assert [record["scores"] for record in bench.records()] == [{"q1": 1.0}] * 2
    (page,) = bench.results.glob("*/report.md")
    text = page.read_text(encoding="utf-8")
    assert "| development | 1 of 2 | not what the workbook says (1) |" in text
    assert "- `sums` q2: not what the workbook says" in text

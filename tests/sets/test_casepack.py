"""``pack TABLE``: a table of questions becomes a cells folder, and every row is accounted for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

from pytest_cellprose.__main__ import main
from pytest_cellprose.questions.schema import load_questions
from pytest_cellprose.sets.casetable import TableError, read_table
from pytest_cellprose.sets.discover import discover

HEADER = "id,workbook,question,expected,kind,sheet,about,reach"
RIGHT = [
    'case-1,sales,"What is the total, in all?",600,value,Model,B5,',
    'case-2,sales,Where is the total?,Model!B5,address,Model,"{""row"": [""Total""], ""column"": [""Amount""]}",',
    "case-3,sales,Which cells does B5 refer to directly?,B2:B4,trace,Model,B5,direct",
    'case-4,sales,"Which cells depend on B2, directly or not?","B5; B6",impact,Model,B2,all',
    "case-5,sub/costs.xlsx,What is the share?,12.5%,value,Data,Data!B2,",
    "case-6,sub/costs.xlsx,When was it booked?,2024-03-31,value,Data,Data!B3,",
    "case-7,costs.xlsx,Is it final?,true,value,,Data!B4,",
    "case-8,costs,Which article is it?,007,value,Data,B5,",
]


@pytest.fixture
def books(tmp_path: Path) -> Path:
    """``sales.xlsx`` with formulas, and ``sub/costs.xlsx`` with a percentage, a date, a boolean and a text."""
    folder = tmp_path / "books"
    (folder / "sub").mkdir(parents=True)
    with xlsxwriter.Workbook(str(folder / "sales.xlsx")) as workbook:
        sheet = workbook.add_worksheet("Model")
        sheet.write_column("A1", ["Item", "Tea", "Coffee", "Cocoa", "Total", "Doubled"])
        sheet.write_column("B1", ["Amount", 100, 200, 300])
        sheet.write_formula("B5", "=SUM(B2:B4)", None, 600)
        sheet.write_formula("B6", "=B5*2", None, 1200)
    with xlsxwriter.Workbook(str(folder / "sub" / "costs.xlsx")) as workbook:
        sheet = workbook.add_worksheet("Data")
        sheet.write("B2", 0.125, workbook.add_format({"num_format": "0.0%"}))
        sheet.write("B3", 45382, workbook.add_format({"num_format": "yyyy-mm-dd"}))
        sheet.write("B4", True)
        sheet.write_string("B5", "007")
    return folder


def pack(table: Path, books: Path, *options: str) -> int:
    return main(["pack", str(table), "--workbooks", str(books), "--out", str(table.parent / "out"), *options])


def written(path: Path, *rows: str, header: str = HEADER) -> Path:
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def certification(path: Path) -> dict[str, Any]:
    return json.loads((path.parent / "out" / "certification.json").read_text(encoding="utf-8"))


def test_every_right_row_becomes_a_question(books: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = written(tmp_path / "table.csv", *RIGHT)
    assert pack(table, books) == 0, capsys.readouterr().err
    sales, costs = load_questions(tmp_path / "out" / "sales.json"), load_questions(tmp_path / "out" / "costs.json")
    assert [(q.id, q.case, q.kind) for q in sales.questions] == [
        ("q1", "case-1", "value"), ("q2", "case-2", "address"), ("q3", "case-3", "trace"), ("q4", "case-4", "impact"),
    ]  # fmt: skip
    assert [(q.id, q.answer, q.type) for q in costs.questions] == [
        ("q5", 0.125, None), ("q6", "2024-03-31", "date"), ("q7", True, None), ("q8", "007", None),
    ]  # fmt: skip
    assert sales.questions[3].answer == ("B5", "B6")
    assert costs.questions[2].sheet == "Data"  # the only one
    found = discover([tmp_path / "out"])
    assert [each.name for each in found.found] == ["costs", "sales"]
    assert found.problems == []
    said = certification(table)
    assert (said["certified"], said["rows"], said["reasons"]) == (8, 8, {})
    assert main(["sets", "check", str(tmp_path / "out")]) == 0


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_delimiter_is_the_most_frequent_of_the_first_line(books: Path, tmp_path: Path, delimiter: str) -> None:
    # second-seed.md 1d: BOM stripped, header trimmed, short rows filled up, RFC 4180 quoting over lines
    lines = [
        delimiter.join(["\ufeff ID ", "Workbook", " question", "expected", "about", "sheet"]),
        delimiter.join(["a", "sales", f'"What is{delimiter} in two\r\nlines, the ""total""?"', '"1,200"', "Model!B6"]),
        "",
    ]
    table = tmp_path / "table.txt"
    table.write_bytes("\r\n".join(lines).encode())
    assert pack(table, books) == 0
    (question,) = load_questions(tmp_path / "out" / "sales.json").questions
    assert question.text == f'What is{delimiter} in two\r\nlines, the "total"?'
    assert question.answer == 1200
    assert question.sheet == "Model"


def test_tab_separated_json_lines_and_worksheets_give_the_same_pack(books: Path, tmp_path: Path) -> None:
    rows = [["a", "sales", "The total?", 600, "Model!B5"], ["b", "sales", "Doubled?", 1200, "Model!B6"]]
    names = ["id", "workbook", "question", "expected", "about"]
    packs = []
    for ending in ("tsv", "jsonl", "json", "xlsx"):
        table = tmp_path / f"t.{ending}"
        if ending == "tsv":
            table.write_text("\n".join("\t".join(map(str, row)) for row in [names, *rows]))
        elif ending == "xlsx":
            with xlsxwriter.Workbook(str(table)) as workbook:
                sheet = workbook.add_worksheet()
                for number, row in enumerate([names, *rows], start=2):  # a blank row above
                    sheet.write_row(number, 0, row)
        else:
            objects = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
            table.write_text("\n".join(objects) if ending == "jsonl" else f"[{','.join(objects)}]")
        assert pack(table, books) == 0
        content = json.loads((tmp_path / "out" / "sales.json").read_text())
        assert content.pop("source").startswith(f"t.{ending}")
        packs.append(content)
    assert packs[1:] == packs[:-1]
    assert [q["answer"] for q in packs[0]["questions"]] == [600, 1200]


def test_columns_go_by_the_names_that_options_give(books: Path, tmp_path: Path) -> None:
    header = "Nr.;Datei;Frage;Antwort;Art;Zeile;Spalte;Blatt"
    rows = [
        "1;sales.xlsx;Welche Zelle hat die Summe?;B5;address;Total;Amount;Model",
        "2;sales.xlsx;Welche Zelle hat Tee?;B2;address;Tea;Amount;Model",
    ]
    table = written(tmp_path / "t.csv", *rows, header=header)
    options = [
        "--id", "Nr.", "--workbook", "Datei", "--question", "Frage", "--expected", "Antwort", "--kind", "ART",
        "--row", "Zeile", "--column", "Spalte", "--sheet", "Blatt",
    ]  # fmt: skip
    assert pack(table, books, *options) == 0
    assert len(load_questions(tmp_path / "out" / "sales.json").questions) == 2


WRONG = {
    "no id": (" ,sales,The total?,600,value,Model,B5,", ["no id"]),
    "unlabelled": ("x,sales,The total?, ,value,Model,B5,", ["unlabelled"]),
    "missing": ("x,nowhere.xlsx,The total?,600,value,Model,B5,", ["missing workbook"]),
    "escape": ("x,../secret.xlsx,The total?,600,value,Model,B5,", ["missing workbook"]),
    "other truth": ("x,sales,The total?,601,value,Model,B5,", ["not what the workbook says"]),
    "rounded too far": ("x,costs,The share?,0.1,value,Data,B2,", ["not what the workbook says"]),
    "other cell": ("x,sales,The total?,600,value,Model,B4,", ["not what the workbook says"]),
    "blank cell": ("x,sales,The total?,600,value,Model,D9,", ["not what the workbook says"]),
    "kind": ("x,sales,The total?,600,sum,Model,B5,", ["not gradable"]),
    "no reach": ("x,sales,What does B5 refer to?,B2:B4,trace,Model,B5,", ["not gradable"]),
    "no sheet": ("x,sales,The total?,600,value,Elsewhere,B5,", ["not what the workbook says"]),
    "no about": ("x,sales,The total?,600,value,Model,,", ["not gradable"]),
    "no address": ("x,sales,What does B5 refer to directly?,the three above,trace,Model,B5,direct", ["not gradable"]),
    "short list": ("x,sales,What does B5 refer to?,B2:B3,trace,Model,B5,direct", ["not what the workbook says"]),
    "all": (",nowhere,The total?,,value,Model,B5,", ["no id", "unlabelled", "missing workbook"]),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_with_a_row_is_recorded_and_the_row_left_out(books: Path, tmp_path: Path, case: str) -> None:
    row, reasons = WRONG[case]
    table = written(tmp_path / "t.csv", RIGHT[0], row, RIGHT[4])
    assert pack(table, books) == 1
    said = certification(table)
    assert (said["certified"], said["rows"]) == (2, 3)
    found = [[doubt["reason"] for doubt in each["reasons"]] for each in said["cases"]]
    assert [list(dict.fromkeys(each)) for each in found] == [[], reasons, []]
    assert said["reasons"] == dict.fromkeys(reasons, 1)
    # the numbers stay those of the rows
    assert [q.id for q in load_questions(tmp_path / "out" / "costs.json").questions] == ["q3"]


def test_every_row_of_a_duplicate_id_and_of_a_conflict_is_named(books: Path, tmp_path: Path) -> None:
    rows = [
        "a b,sales,The total?,600,value,Model,B5,",
        " A-B ,sales,Doubled?,1200,value,Model,B6,",  # the same id, its odd characters apart
        "c,sales,What is tea?,100,value,Model,B2,",
        "d,sales.xlsx,what is  TEA?,200,value,Model,B3,",  # asks the same and says something else
        ",sales,What is Tea?,300,value,Model,B4,",
        "e,sales,What is cocoa?,300,value,Model,B4,",
        "f,nowhere,What is cocoa?,1,value,Model,B4,",
        "g,elsewhere,What is cocoa?,2,value,Model,B4,",  # of another workbook, so no conflict
    ]
    table = written(tmp_path / "t.csv", *rows)
    assert pack(table, books) == 1
    reasons = [{doubt["reason"] for doubt in each["reasons"]} for each in certification(table)["cases"]]
    assert reasons == [
        {"duplicate id"}, {"duplicate id"}, {"conflicting outcomes"}, {"conflicting outcomes"},
        {"no id", "conflicting outcomes"}, set(), {"missing workbook"}, {"missing workbook"},
    ]  # fmt: skip


def test_a_table_without_a_certified_row_makes_no_pack(
    books: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = written(tmp_path / "t.csv", WRONG["other truth"][0])
    assert pack(table, books) == 1
    assert not (tmp_path / "out").exists()
    assert "no row is certified" in capsys.readouterr().err


def test_a_pack_is_written_over_a_pack_and_over_nothing_else(
    books: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    table = written(tmp_path / "t.csv", *RIGHT)
    out.mkdir()
    assert pack(table, books) == 0  # an empty folder will do
    written(table, RIGHT[0])
    assert pack(table, books) == 0
    assert sorted(path.name for path in out.iterdir()) == ["certification.json", "sales.json"]

    (out / "mine.txt").write_text("keep")
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    assert pack(written(table, RIGHT[4]), books) == 1
    assert "'mine.txt', which no pack wrote" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    (out / "certification.json").write_text("{}")
    assert pack(table, books) == 1
    assert (out / "sales.json").read_bytes() == before["sales.json"]


def test_a_pack_that_cannot_be_written_leaves_the_old_one(
    books: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = written(tmp_path / "t.csv", RIGHT[0])
    assert pack(table, books) == 0
    before = (tmp_path / "out" / "sales.json").read_bytes()
    write = Path.write_text

    def full(self: Path, *args: Any, **options: Any) -> int:
        if self.name == "certification.json":
            raise OSError(28, "No space left on device")
        return write(self, *args, **options)

    written(table, *RIGHT)
    monkeypatch.setattr(Path, "write_text", full)
    assert pack(table, books) == 1
    assert "No space left" in capsys.readouterr().err
    assert (tmp_path / "out" / "sales.json").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["books", "out", "t.csv"]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("t.csv", b"", "no rows"),
        ("t.csv", b"id,workbook,question,expected\n", "no rows"),
        (
            "t.csv",
            b"id,workbook,question\na,b,c\n",
            "no column for expected: the table has 'id', 'workbook', 'question'",
        ),
        ("t.csv", b"id,id,question\na,b,c\n", "more than one column 'id'"),
        ("t.csv", b"id,workbook\na,b,c\n", "line 2: 3 fields, but the header has 2"),
        ("t.csv", b'id,workbook\na,"b\n', "line 2"),
        ("t.csv", b"id,workbook\n\xff,b\n", "not UTF-8"),
        ("t.jsonl", b'{"id": 1}\n{"id"', "line 2: not JSON"),
        ("t.jsonl", b'{"id": 1}\n5\n', "row 2: expected an object"),
        ("t.json", b"[", "not JSON"),
        ("t.xlsx", b"PK", "t.xlsx"),
        ("t.ods", b"", "not a kind of table"),
        ("absent.csv", None, "cannot be read"),
    ],
)
def test_a_table_that_is_none_is_one_line(
    books: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes | None, told: str
) -> None:
    table = tmp_path / name
    if content is not None:
        table.write_bytes(content)
    assert pack(table, books) == 1
    error = capsys.readouterr().err
    assert told in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_an_option_that_names_no_column_and_a_folder_that_is_none(
    books: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = written(tmp_path / "t.csv", RIGHT[0])
    assert pack(table, books, "--id", "key") == 1
    assert "--id: no column 'key'" in capsys.readouterr().err
    assert pack(table, tmp_path / "none") == 1
    assert "--workbooks" in capsys.readouterr().err


def test_what_is_wrong_with_a_table_says_where_in_parts(tmp_path: Path) -> None:
    path = tmp_path / "cases.csv"
    path.write_text("id,question\n1,a\n2,b,c\n", encoding="utf-8")
    with pytest.raises(TableError) as caught:
        read_table(path)
    place = caught.value.problem.place
    assert (place.file, place.part) == (path, "line 3")
    assert str(caught.value) == f"{path}, line 3: 3 fields, but the header has 2"

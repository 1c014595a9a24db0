"""Nothing of a held-out workbook, question or truth is shown: by a plan, a cache, an error or development mode."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

from pytest_cellprose.__main__ import main
from pytest_cellprose.questions.schema import Question, QuestionFile
from pytest_cellprose.sets.split import Split
from tests.integration.conftest import Bench, sha256

SHEET, LABEL, HEADING, TEXT, AMOUNT = "Quokka", "Zanzibar margin", "Xylophone", "Wombat & Sons", 31337.25
QUESTION = "What is the vexillology budget?"
SECRETS = (SHEET, LABEL, HEADING, TEXT, str(AMOUNT), "31337", QUESTION, "vexillology", "B2:B3", '"B2"', "!B2")
READER = ("--cellprose-models", "reader", "--cellprose-encodings", "cellprose_lean_gfm,csv,none")
FINAL = ("--cellprose-final", "--cellprose-allow-dirty", "--cellprose-reps", "2", *READER)

QUOTES_ITS_WORKBOOK = """
from pytest_cellprose import Encoding

def encode(workbook):
    words = [str(cell.value) for sheet in workbook.worksheets for _, _, cell in sheet.cells()]
    raise ValueError(f"cannot write {words} of {[sheet.name for sheet in workbook.worksheets]}")

def pytest_cellprose_encodings():
    return [Encoding(name="quoting", version="1", label="Quoting", encode=encode, decode=lambda text: None)]
"""


def leaked(*texts: str) -> list[str]:
    return [secret for secret in SECRETS if any(secret in text for text in texts)]


def written(folder: Path) -> list[str]:
    """The content of every file below a folder, and its name."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [str(path) for path in files] + [path.read_text(encoding="utf-8", errors="replace") for path in files]


def seal(folder: Path, name: str, serial: int) -> Path:
    """A workbook of secrets and its questions; returns the question file."""
    with xlsxwriter.Workbook(str(folder / f"{name}.xlsx")) as workbook:
        sheet = workbook.add_worksheet(SHEET)
        sheet.write_row("A1", ["Line", HEADING, serial])
        sheet.write_row("A2", [LABEL, AMOUNT])
        sheet.write_row("A3", [TEXT, 2])
        sheet.write_formula("B4", "=SUM(B2:B3)", None, AMOUNT + 2)
    common = {"sheet": SHEET, "text": QUESTION}
    questions: list[dict[str, Any]] = [
        {"id": "q1", "kind": "value", "about": "B2", "answer": AMOUNT, **common},
        {"id": "q2", "kind": "address", "about": {"row": [LABEL], "column": [HEADING]}, "answer": ["B2"]} | common,
        {"id": "q3", "kind": "trace", "about": "B4", "answer": ["B2:B3"], "reach": "direct"} | common,
        {"id": "q4", "kind": "value", "about": "A3", "answer": TEXT} | common,
    ]
    for number, question in enumerate(questions):
        question["text"] += f" ({number})"
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"schema": 1, "workbook": f"{name}.xlsx", "questions": questions}), encoding="utf-8")
    return path


@pytest.fixture
def sealed(bench: Bench) -> Bench:
    """Held out by the split, by being in no list, by its name, and by digest under another name elsewhere."""
    bench.with_a_cache_of_its_own()
    listed = seal(bench.cells, "gamma", 1)
    seal(bench.cells, "unlisted", 2)
    mine = bench.pytester.mkdir("mine")
    seal(mine, "rw_delta", 3)
    renamed = seal(mine, "innocent", 4)
    split = bench.split
    split["heldout"] = {listed.stem: sha256(renamed.with_suffix(".xlsx"))}  # one by its name, one by its digest
    bench.split = split
    return bench


HELD_OUT = ("cells/gamma.json", "cells/unlisted.json", "mine/rw_delta.json", "mine/innocent.json")
MINE = "--cellprose-cells=mine"


def committed(bench: Bench) -> None:
    for command in (["init"], ["add", "-A"], ["commit", "-m", "all"]):
        git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *command]
        subprocess.run(git, cwd=bench.pytester.path, check=True, capture_output=True)


def outputs(result: pytest.RunResult) -> tuple[str, str]:
    return result.stdout.str(), result.stderr.str()


def test_development_mode_prints_and_writes_nothing_held_out(sealed: Bench) -> None:
    result = sealed.run(MINE, *READER, "-v", "-rA", "--junitxml=junit.xml")
    assert result.ret == 0
    assert len(sealed.records()) == 2 * 3
    root = sealed.pytester.path
    assert leaked(*outputs(result), *written(sealed.results), *written(root / ".pytest_cache")) == []
    assert leaked((root / "junit.xml").read_text()) == []
    shown = sealed.run("--cache-show")
    assert leaked(*outputs(shown)) == []
    assert "cellprose" in shown.stdout.str()


def test_a_plan_shows_nothing_held_out_in_any_mode(sealed: Bench) -> None:
    committed(sealed)
    for mode in ((), ("--cellprose-live",), FINAL):
        for more in ((), ("-q",), ("-v",), ("-k", "gamma")):
            result = sealed.run(MINE, *READER, *mode, "--collect-only", *more)
            assert result.ret == (4 if more == ("-k", "gamma") and mode is not FINAL else 0)
            assert leaked(*outputs(result)) == []
        if mode is not FINAL:  # a final plan prices and compares its texts, and keeps them where a run finds them
            assert leaked(*written(sealed.pytester.path / ".pytest_cache")) == []
    assert not sealed.results.exists()


def broken(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def apply(path: Path) -> None:
        content = json.loads(path.read_text(encoding="utf-8"))
        change(content)
        path.write_text(json.dumps(content), encoding="utf-8")

    return apply


def truncate(path: Path) -> None:
    path.write_text(path.read_text(encoding="utf-8")[:-2], encoding="utf-8")


BREAKS: dict[str, Callable[[Path], None]] = {
    "answer": broken(lambda c: c["questions"][2].update(answer=["B2:B3", LABEL])),
    "date": broken(lambda c: c["questions"][3].update(type="date")),
    "kind": broken(lambda c: c["questions"][0].update(kind="sum", unit=TEXT)),
    "about": broken(lambda c: c["questions"][0].update(about={"row": [LABEL], "column": []})),
    "kinds mixed up": broken(lambda c: c["questions"][1].update(kind="value", answer=["B2"])),
    "list for a truth": broken(lambda c: c["questions"][0].update(answer={"is": AMOUNT})),
    "no object": broken(lambda c: c["questions"].append(f"{LABEL} is {AMOUNT}")),
    "id": broken(lambda c: c["questions"][0].update(id="1")),
    "same id": broken(lambda c: c["questions"][1].update(id="q1")),
    "no list": broken(lambda c: c.update(questions=f"{LABEL} is {AMOUNT}")),
    "note": broken(lambda c: c["questions"][0].update(note=[QUESTION])),
    "cut short": truncate,
    "other workbook": broken(lambda c: c.update(sha256="0" * 64)),
}


@pytest.mark.parametrize("name", HELD_OUT)
def test_an_error_in_a_held_out_question_file_quotes_nothing_of_it(sealed: Bench, name: str) -> None:
    path = sealed.pytester.path / name
    right = path.read_bytes()
    committed(sealed)
    for break_it in BREAKS.values():
        path.write_bytes(right)
        break_it(path)
        for mode in ((), FINAL):
            result = sealed.run(MINE, *READER, *mode)
            assert result.ret == 4
            result.stderr.fnmatch_lines([f"*{path.name}: *"])
            assert leaked(*outputs(result)) == []
    assert not sealed.results.exists()


@pytest.mark.parametrize(
    "change",
    [
        broken(lambda c: c["questions"][1].update(answer=["Quokka!ZZ99"])),
        broken(lambda c: c["questions"][0].update(sheet="Quokkas")),
        broken(lambda c: c["questions"][0].update(about="Quokka!ZZ99")),
        lambda path: path.with_suffix(".xlsx").write_bytes(path.with_suffix(".xlsx").read_bytes()[:-700]),
    ],
    ids=["answer", "sheet", "about", "workbook"],
)
def test_an_error_about_a_held_out_workbook_quotes_nothing_of_it(sealed: Bench, change: Callable[[Path], None]) -> None:
    change(sealed.cells / "gamma.json")
    committed(sealed)
    result = sealed.run(*FINAL)
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*gamma.*"])
    assert leaked(*outputs(result)) == []
    assert "ZZ99" not in "".join(outputs(result))


def test_what_is_not_certified_is_named_without_its_content(sealed: Bench) -> None:
    broken(lambda c: c["questions"][0].update(answer=AMOUNT + 1000))(sealed.cells / "gamma.json")
    committed(sealed)
    result = sealed.run(*FINAL, "--collect-only")
    result.stdout.fnmatch_lines(["*1 question of * not certified and left out (gamma q1: not what the workbook says)*"])
    assert leaked(*outputs(result), *(text.replace("32337", "31337") for text in outputs(result))) == []


def test_an_encoding_or_a_test_that_fails_on_a_held_out_workbook_shows_nothing_of_it(sealed: Bench) -> None:
    sealed.pytester.makeconftest(QUOTES_ITS_WORKBOOK)
    (sealed.cells / "test_cells.py").write_text(
        "def test_cell(cell):\n"
        "    record = cell.run()\n"
        "    assert record.answers == {}, record.reply\n"
        "def test_bug(cell):\n"
        "    raise ValueError(cell.run().reply)\n"
    )
    committed(sealed)
    result = sealed.run(MINE, *FINAL, "--cellprose-encodings=quoting,cellprose_lean_gfm", "-rA", "--junitxml=junit.xml")
    assert result.ret == 1
    out = result.stdout.str()
    assert "encoding 'quoting' raised ValueError" in out
    assert "ValueError: what it says is withheld, the workbook is held out" in out
    assert leaked(*outputs(result), (sealed.pytester.path / "junit.xml").read_text()) == []
    pages = [path.read_text() for path in sealed.results.glob("2*/*") if path.suffix in (".md", ".json")]
    assert len(pages) == 3
    assert leaked(*pages) == []
    assert leaked(*written(sealed.results / "runs")) == []


def test_scoring_with_a_broken_held_out_question_file_quotes_nothing_of_it(
    sealed: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    path = sealed.pytester.path / "mine" / "rw_delta.json"
    (path.parent / "reply.txt").write_text("{}")
    right = path.read_bytes()
    for break_it in BREAKS.values():
        path.write_bytes(right)
        break_it(path)
        main(["score", str(path), str(path.parent / "reply.txt")])
    printed = capsys.readouterr()
    assert "rw_delta.json: question number 3" in printed.err
    assert leaked(printed.out, printed.err) == []


REACHES_OUT = """
import logging, sys, warnings
import pytest

SEEN = []

@pytest.fixture(scope="session")
def kept():
    yield SEEN
    raise RuntimeError(f"kept {SEEN}")

@pytest.fixture
def asked_first(cell):
    record = cell.run()
    SEEN.append(record.reply)
    print(record.reply)
    print(record.reply, file=sys.stderr)
    warnings.warn(record.reply)
    logging.getLogger().error(record.reply)
    return record

@pytest.fixture
def wrong(asked_first):
    assert asked_first.answers == {}, asked_first.reply

@pytest.fixture
def ends_badly(asked_first):
    yield
    raise ValueError(asked_first.reply)

@pytest.fixture
def skips(asked_first):
    pytest.skip(asked_first.reply)

def test_setup(wrong): pass
def test_teardown(ends_badly, kept): pass
def test_skips(skips): pass
def test_xfails(asked_first): pytest.xfail(asked_first.reply)
def test_fails(asked_first): pytest.fail(asked_first.reply)
def test_exits_wrongly(asked_first, record_property):
    record_property("reply", asked_first.reply)
    raise ExceptionGroup(asked_first.reply, [ValueError(asked_first.reply)])
def test_passes(asked_first): pass
def test_of_no_cell(kept): assert not kept
"""


def test_whatever_a_fixture_or_a_test_says_of_a_held_out_cell_is_withheld(sealed: Bench) -> None:
    """In set-up, call and teardown: as an exception, a reason, captured output, a property."""
    (sealed.cells / "test_cells.py").write_text(REACHES_OUT)
    committed(sealed)
    result = sealed.run(MINE, *FINAL, "--cellprose-encodings=csv", "-rA", "-v", "--junitxml=junit.xml")
    assert result.ret == 1
    out = result.stdout.str()
    for kind in ("AssertionError", "ValueError", "RuntimeError", "ExceptionGroup", "Failed"):
        assert f"{kind}: what it says is withheld, the workbook is held out" in out
    for line in ("SKIPPED *", "XFAIL *gamma*", "*UserWarning: *"):
        assert any(fnmatchcase(shown, f"{line}withheld, the workbook is held out") for shown in result.outlines), line
    replies = [record["reply"] for record in sealed.records() if record["set"] == "heldout"]
    assert any(TEXT in reply for reply in replies)
    assert leaked(*outputs(result), (sealed.pytester.path / "junit.xml").read_text()) == []


def test_a_fixtures_report_on_a_development_cell_says_what_it_says(sealed: Bench) -> None:
    (sealed.cells / "test_cells.py").write_text(REACHES_OUT)
    result = sealed.run(*READER, "-rA", "-k", "test_setup and csv and alpha")
    result.stdout.fnmatch_lines(["*AssertionError: {*q1*", "*Captured stdout setup*", "*UserWarning: {*q1*"])


MARK = "Ocelot"
MARKED: list[Any] = [
    f"{MARK} 42", f"{MARK}!A1", [f"{MARK}!A1"], [f"{MARK} 42"], {MARK: f"{MARK} 42"}, [{f"{MARK} 42": MARK}],
]  # fmt: skip
FIELDS = [name for name in (*QuestionFile.model_fields, f"{MARK} field") if name != "questions"]
OF_A_QUESTION = [*Question.model_fields, f"{MARK} field"]


def marked_workbook(path: Path) -> Path:
    """The mark in whatever a workbook has a text for."""
    with xlsxwriter.Workbook(str(path)) as workbook:
        workbook.set_properties({"title": MARK, "author": MARK})
        workbook.define_name(f"{MARK}_name", f"='{MARK} sheet'!$A$1")
        sheet = workbook.add_worksheet(f"{MARK} sheet")
        sheet.write_row("A1", [f"{MARK} heading", f"{MARK} column"])
        sheet.write_row("A2", [f"{MARK} label", 7])
        sheet.write_formula("B3", f'=B2&"{MARK}"', None, f"7{MARK}")
        sheet.write_comment("A1", f"{MARK} comment")
        sheet.add_table("D1:E3", {"name": f"{MARK}Table", "columns": [{"header": MARK}, {"header": "2"}]})
    return path


def marked_questions(workbook: str) -> dict[str, Any]:
    """A right question file with the mark wherever it may hold one."""
    common = {"sheet": f"{MARK} sheet", "note": MARK, "case": f"{MARK} 42"}
    return {
        "schema": 1,
        "workbook": workbook,
        "source": MARK,
        "questions": [
            {"id": f"q{MARK}1", "kind": "value", "text": f"{MARK}?", "about": "B3", "answer": f"7{MARK}", **common},
            {
                "id": f"q{MARK}2",
                "kind": "address",
                "text": f"Where is {MARK}?",
                "answer": [f"'{MARK} sheet'!B2"],
                "about": {"row": [f"{MARK} label"], "column": [f"{MARK} column"]},
                **common,
            },
        ],
    }


def outputs_of_commands(bench: Bench, capsys: pytest.CaptureFixture[str], path: Path) -> str:
    """What commands print of a held-out question file and its workbook, without the flag that lets them."""
    capsys.readouterr()
    main(["sets", "check", str(path.parent)])
    main(["score", str(path), str(bench.cells / "test_cells.py")])
    if path.with_suffix(".xlsx").exists():
        for more in (["--stats"], []):
            main(["encode", str(path.with_suffix(".xlsx")), *more])
    printed = capsys.readouterr()
    return printed.out + printed.err


def test_a_mark_in_any_right_field_of_a_held_out_set_is_in_no_output(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.with_a_cache_of_its_own()
    mine = bench.pytester.mkdir("mine")
    workbook = marked_workbook(mine / "rw_marked.xlsx")
    path = mine / "rw_marked.json"
    path.write_text(json.dumps(marked_questions(workbook.name)), encoding="utf-8")
    said = ""
    for more in (("-v", "-rA", "--junitxml=junit.xml"), ("--collect-only",), ("-k", "rw_marked")):
        result = bench.run(MINE, *READER, *more)
        assert result.ret == (4 if "-k" in more else 0)
        said += "".join(outputs(result))
    said += (bench.pytester.path / "junit.xml").read_text()
    said += "".join(written(bench.results) + written(bench.pytester.path / ".pytest_cache"))
    commands = outputs_of_commands(bench, capsys, path)
    assert "2 of 2 questions certified" in commands
    assert "held out" in commands
    assert MARK.casefold() not in (said + commands).casefold()


def test_a_mark_in_any_wrong_field_of_a_held_out_set_is_in_no_output(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every field of a question file and of a question, with values of every JSON type that can hold a text."""
    mine = bench.pytester.mkdir("mine")
    right = marked_questions("rw_0.xlsx")
    marked_workbook(mine / "rw_0.xlsx")
    contents = [{**right, field: value} for field in FIELDS for value in MARKED]
    for field in OF_A_QUESTION:
        for value in MARKED:
            for number in (0, 1):
                changed = [*right["questions"]]
                changed[number] = {**changed[number], field: value}
                contents.append({**right, "questions": changed})
    contents += [{**right, "questions": value} for value in MARKED]
    for number, content in enumerate(contents):
        (mine / f"rw_{number}.json").write_text(json.dumps(content), encoding="utf-8")
    (mine / "rw_twice.json").write_text(json.dumps(right).replace('"schema"', f'"{MARK}": 1, "{MARK}": 2, "schema"'))
    (mine / "rw_cut.json").write_text(json.dumps(right)[:-9])
    wrong = 0
    for arguments in ((), ("--collect-only",), ("--cellprose-live",)):
        result = bench.run(MINE, *READER, *arguments)
        assert result.ret == 4
        wrong = result.stderr.str().count("mine/rw_")
        assert MARK.casefold() not in "".join(outputs(result)).casefold()
    assert wrong > len(contents) / 2
    assert MARK.casefold() not in outputs_of_commands(bench, capsys, mine / "rw_0.json").casefold()
    for path in mine.glob("*.json"):
        main(["score", str(path), str(bench.cells / "test_cells.py")])
    printed = capsys.readouterr()
    assert MARK.casefold() not in (printed.out + printed.err).casefold()


@pytest.mark.parametrize("field", [*Split.model_fields, f"{MARK} field"])
def test_a_mark_in_any_wrong_field_of_a_split_is_in_no_output(
    bench: Bench, capsys: pytest.CaptureFixture[str], field: str
) -> None:
    field = "schema" if field == "schema_" else field
    for value in (f"{MARK} 42", {f"{MARK} 42": 42}, [MARK]):
        bench.split = {"schema": 1, "development": {}, "heldout": {}, field: value}
        result = bench.run("--collect-only")
        assert result.ret == 4
        result.stderr.fnmatch_lines(["*split.json: *"])
        main(["sets", "check", str(bench.cells)])
        printed = capsys.readouterr()
        assert MARK.casefold() not in "".join((*outputs(result), printed.out, printed.err)).casefold()

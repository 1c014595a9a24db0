"""Other people's encodings: planned, measured, and never able to take the run down."""

from __future__ import annotations

import dataclasses
import inspect
import json
import textwrap
from typing import Any

import pytest

from pytest_cellprose import hookspecs
from pytest_cellprose.__main__ import main
from pytest_cellprose.questions.kinds import VALUE
from pytest_cellprose.suites import spreadsheets
from tests.integration.conftest import Bench, as_written, deselected

ENCODINGS = """
import time
from pytest_cellprose import Encoding

def good(workbook):
    return "\\n".join(f"{s.name} {r} {c} {cell.value}" for s in workbook.worksheets for r, c, cell in s.cells())

def raises(workbook):
    raise KeyError("no such thing")

def number(workbook):
    return 42

def dies(workbook):
    import os
    os._exit(3)

def pytest_cellprose_encodings():
    return [Encoding(f.__name__, "1", "a format", f, decode=lambda text: None) for f in (good, raises, number, dies)]
"""


def example_of(hook: object) -> str:
    """The code block of a hook's docstring."""
    return textwrap.dedent(inspect.getdoc(hook).partition("::")[2])  # type: ignore[union-attr]


def test_the_documented_example_of_an_encoding_is_complete(bench: Bench) -> None:
    bench.pytester.makeconftest(example_of(hookspecs.pytest_cellprose_encodings))
    result = bench.run("--collect-only", "-q", "--cellprose-models", "haiku55", "-k", "mine")
    result.stdout.fnmatch_lines(["*haiku55-mine-alpha-rep1?", "*haiku55-mine-beta-rep1?"])


def test_the_documented_examples_of_model_and_provider_are_complete(bench: Bench) -> None:
    model, provider = map(example_of, (hookspecs.pytest_cellprose_models, hookspecs.pytest_cellprose_providers))
    bench.pytester.makeconftest(model + "\n" + provider)
    result = bench.run("--cellprose-live", "--cellprose-models", "house", "-k", "csv")
    assert result.ret == 0
    assert {record["model"]["returned"] for record in bench.records()} == {"house-8b"}
    assert {record["cost_nanousd"] for record in bench.records()} == {900 * 200 + 12 * 800}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("raises", "encoding 'raises' raised KeyError: 'no such thing'"),
        ("number", "encoding 'number' returned int, not text"),
        ("dies", "encoding 'dies' ended its process (exit code 3)"),
    ],
)
def test_an_encoding_that_gives_no_text_is_a_fault_of_its_cells_only(bench: Bench, name: str, told: str) -> None:
    bench.pytester.makeconftest(ENCODINGS)
    result = bench.run("--cellprose-models", "reader", "--cellprose-encodings", f"csv,{name}")
    assert result.ret == 1
    result.assert_outcomes(passed=2, failed=2)
    assert told in result.stdout.str()
    assert "Traceback" not in result.stdout.str()
    faults = [record for record in bench.records() if record["outcome"]["status"] == "fault"]
    assert {record["outcome"]["kind"] for record in faults} == {"encoding"}
    assert {record["cell"]["encoding"] for record in faults} == {name}


def test_an_encoding_that_hangs_is_stopped(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spreadsheets, "LIMIT_SECONDS", 0.5)  # the conftest sets it in workers; here it is put back
    bench.pytester.makeconftest(
        ENCODINGS.replace("    return 42", "    time.sleep(600)")
        + "\nimport pytest_cellprose.suites.spreadsheets\npytest_cellprose.suites.spreadsheets.LIMIT_SECONDS = 0.5\n"
    )
    result = bench.run("--cellprose-models", "reader", "--cellprose-encodings", "csv,number", "-k", "alpha")
    result.assert_outcomes(passed=1, failed=1, deselected=deselected(2))
    assert "encoding 'number' took over 0.5 s and was stopped" in result.stdout.str()


def test_an_encoding_that_gives_no_text_costs_unknown_in_the_plan(bench: Bench) -> None:
    bench.pytester.makeconftest(ENCODINGS)
    result = bench.run("--collect-only", "--cellprose-models", "haiku55", "--cellprose-encodings", "csv,raises")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*haiku55 *unknown for raises"])


def test_an_encoding_without_a_decoder_is_planned_out_for_the_reader(bench: Bench) -> None:
    bench.pytester.makeconftest(ENCODINGS.replace(", decode=lambda text: None", ""))
    result = bench.run("--cellprose-models", "reader", "--collect-only")
    result.stdout.fnmatch_lines(["cellprose: left out: reader with good: *has no decoder*"])
    named = bench.run("--cellprose-models", "reader", "--cellprose-encodings", "good")
    assert named.ret == 4
    named.stderr.fnmatch_lines(["*reader with good*no decoder*"])


def test_a_taken_name_and_a_wrong_type_are_refused(bench: Bench) -> None:
    bench.pytester.makeconftest(
        "from pytest_cellprose import Encoding\n"
        "def pytest_cellprose_encodings():\n"
        "    return [Encoding('csv', '1', 'mine', str), 'not one']\n"
    )
    result = bench.run()
    assert result.ret == 4
    result.stderr.fnmatch_lines(
        ["*pytest_cellprose_encodings: *the name 'csv' is the protocol's*", "*'not one'*Encoding*"]
    )


@as_written
def test_an_edited_encoding_is_not_measured_from_the_cache(bench: Bench) -> None:
    for word in ("first", "second"):
        bench.pytester.makeconftest(
            "from pytest_cellprose import Encoding\n"
            f"def write(workbook):\n    return {word!r}\n"
            "def pytest_cellprose_encodings():\n    return [Encoding('mine', '1', 'mine', write)]\n"
            "class House:\n"
            "    def call(self, request):\n"
            "        from pytest_cellprose import Reply\n"
            "        return Reply(text=str('second' in request.prompt))\n"
            "def pytest_cellprose_providers():\n    return {'house': House}\n"
            "def pytest_cellprose_models():\n"
            "    from pytest_cellprose import ModelSpec, Prices\n"
            "    return [ModelSpec(alias='house', model_id='h', vendor='house', max_tokens=9,\n"
            "                      prices=Prices(input='1', output='1'))]\n"
        )
        result = bench.pytester.runpytest_subprocess(
            "--cellprose-live", "--cellprose-models", "house", "--cellprose-encodings", "mine", "-k", "alpha"
        )
        assert result.ret == 0
    assert [record["reply"] for record in bench.records()] == ["False", "True"]


def ask_for_formulas(bench: Bench, **change: str) -> None:
    """Of the workbook ``alpha``, one question of the documented example's kind beside those that are there."""
    path = bench.cells / "alpha.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    question = {"id": "q9", "kind": "formula", "text": "Which formula is in C4?", "sheet": "Model"}
    question |= {"about": "Model!C4", "answer": "= $C2 * C3"} | change
    content["questions"].append(question)
    path.write_text(json.dumps(content), encoding="utf-8")


FORMULAS = example_of(hookspecs.pytest_cellprose_questions)


def test_a_plugins_kind_of_question_is_planned_certified_asked_scored_and_shown(bench: Bench) -> None:
    bench.pytester.makeconftest(FORMULAS)
    ask_for_formulas(bench)
    result = bench.run("--cellprose-models", "reader", "--cellprose-encodings", "cellprose_lean_gfm,csv")
    assert result.ret == 0
    assert "not certified" not in result.stdout.str()
    records = {record["cell"]["encoding"]: record for record in bench.records() if "q9" in record["scores"]}
    assert {record["kinds"]["q9"] for record in records.values()} == {"formula"}
    assert records["cellprose_lean_gfm"]["answers"]["q9"] == "C2*C3"
    # csv keeps no formulas, and the reader answers nothing that a text cannot tell
    assert {name: record["scores"]["q9"] for name, record in records.items()} == {"cellprose_lean_gfm": 1.0, "csv": 0.0}
    (report,) = bench.results.glob("*/report.md")
    assert "| formula |" in report.read_text(encoding="utf-8")


def test_sets_check_knows_the_kinds_of_the_projects_conftest(bench: Bench, capfd: pytest.CaptureFixture[str]) -> None:
    bench.pytester.makeconftest(FORMULAS)
    ask_for_formulas(bench)
    assert main(["sets", "check", str(bench.cells)]) == 0
    assert "11 of 11 questions certified" in capfd.readouterr().out
    ask_for_formulas(bench, id="q10", answer="=C2*C4")
    assert main(["sets", "check", str(bench.cells)]) == 1
    assert "alpha, q10: not what the workbook says: the workbook says 'C2*C3'" in capfd.readouterr().err


@pytest.mark.parametrize("change", [{"answer": "=C2*C4"}, {"about": "Model!A1"}])
def test_a_wrong_truth_of_a_plugins_kind_is_not_certified(bench: Bench, change: dict[str, str]) -> None:
    bench.pytester.makeconftest(FORMULAS)
    ask_for_formulas(bench, **change)
    result = bench.run("--collect-only", "--cellprose-models", "reader")
    result.stdout.fnmatch_lines(["*1 question of * not certified and left out (alpha q9: not what the workbook says)*"])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"answer": "C2*C3"}, '*question q9 (number 6), field "answer": *: expected a formula, such as =A1+B1'),
        (
            {"unit": "percent"},
            '*field "unit": found "percent", expected nothing here, as the question\'s kind is formula*',
        ),
        ({"about": "Model!A1:B2"}, '*field "about": *expected the address of a single cell, but*'),
        ({"kind": "formulas"}, "*field \"kind\": found \"formulas\", expected 'value', * 'hardcode' or 'formula'"),
    ],
)
def test_what_is_wrong_with_a_plugins_question_is_said(bench: Bench, change: dict[str, str], told: str) -> None:
    bench.pytester.makeconftest(FORMULAS)
    ask_for_formulas(bench, **change)
    result = bench.run("--collect-only")
    assert result.ret == 4
    result.stderr.fnmatch_lines([told.replace("[", "[[]")])


def test_a_plugins_words_about_a_held_out_truth_are_not_shown(bench: Bench) -> None:
    bench.pytester.makeconftest(FORMULAS.replace("expected a formula, such as =A1+B1", "no formula: {value}"))
    bench.pytester.makeconftest((bench.pytester.path / "conftest.py").read_text().replace('("no', '(f"no'))
    ask_for_formulas(bench, answer="MARKED")
    for ending in ("json", "xlsx"):
        (bench.cells / f"alpha.{ending}").rename(bench.cells / f"rw_alpha.{ending}")
    path = bench.cells / "rw_alpha.json"
    path.write_text(path.read_text().replace("alpha.xlsx", "rw_alpha.xlsx"))
    result = bench.run("--collect-only")
    result.stderr.fnmatch_lines(['*question number 6, field "answer": not what its kind takes'])
    assert "MARKED" not in result.stdout.str() + result.stderr.str()


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        ("VALUE", "*conftest*: the name 'value' is the protocol's: use another"),
        ("dataclasses.replace(VALUE, name='mine'), dataclasses.replace(VALUE, name='mine')",
         "*conftest*: the name 'mine' is taken: use another"),
        ("'formula'", "*conftest*: 'formula' is not of type QuestionKind"),
    ],
)  # fmt: skip
def test_kinds_that_are_none_or_not_free_are_refused(bench: Bench, returned: str, told: str) -> None:
    bench.pytester.makeconftest(
        "import dataclasses\n"
        "from pytest_cellprose.questions.kinds import VALUE\n"
        f"def pytest_cellprose_questions():\n    return [{returned}]\n"
    )
    result = bench.run()
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"*hook pytest_cellprose_questions: {told}"])


@pytest.mark.parametrize(
    ("change", "told"),
    [({"name": "My kind"}, "small letters"), ({"find": None, "objection": None}, "give it find or objection")],
)
def test_a_kind_that_could_not_be_used_cannot_be_made(change: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        dataclasses.replace(VALUE, **change)

"""Other people's encodings: planned, measured, and never able to take the run down."""

from __future__ import annotations

import inspect
import textwrap

import pytest

from pytest_cellprose import hookspecs

from .conftest import Bench

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


def test_an_encoding_that_hangs_is_stopped(bench: Bench) -> None:
    bench.pytester.makeconftest(
        ENCODINGS.replace("    return 42", "    time.sleep(600)")
        + "\nimport pytest_cellprose.suites.spreadsheets\npytest_cellprose.suites.spreadsheets.LIMIT_SECONDS = 0.5\n"
    )
    result = bench.run("--cellprose-models", "reader", "--cellprose-encodings", "csv,number", "-k", "alpha")
    result.assert_outcomes(passed=1, failed=1, deselected=2)
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

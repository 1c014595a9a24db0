"""Bad input: one usage error (exit 4) before anything runs, that names file and field and lists everything."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import Bench, write_workbook

USAGE_ERROR = 4


def refused(bench: Bench, *arguments: str) -> str:
    """The error of a run that must be refused, on one line each."""
    result = bench.run(*arguments)
    assert result.ret == USAGE_ERROR
    assert not bench.results.exists()
    text = result.stderr.str()
    assert "Traceback" not in text + result.stdout.str()
    return text


def edit(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def set_question(index: int, **fields: Any) -> Callable[[dict[str, Any]], object]:
    return lambda content: content["questions"][index].update(fields)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (set_question(0, kind="guess"), ["alpha.json", "q1", "kind", "guess"]),
        (set_question(1, id="q1"), ["alpha.json", "q1"]),
        (set_question(0, sheet="Nowhere"), ["alpha.json", "q1", "sheet", "Nowhere"]),
        (set_question(2, answer=["Nowhere!A1"]), ["alpha.json", "q3", "Nowhere"]),
        (set_question(2, answer=["A0:B"]), ["alpha.json", "q3", "answer"]),
        (set_question(3, reach="far"), ["alpha.json", "q4", "reach", "far"]),
        (set_question(0, answr=1), ["alpha.json", "q1", "answr"]),
        (lambda content: content.pop("questions"), ["alpha.json", "questions"]),
        (lambda content: content.update(sha256="0" * 64), ["alpha.json", "sha256"]),
        (lambda content: content.update(workbook="sub/none.xlsx"), ["alpha.json", "workbook", "sub/none.xlsx"]),
    ],
)
def test_a_wrong_field_is_named(bench: Bench, change: Callable[[dict[str, Any]], object], told: list[str]) -> None:
    edit(bench.cells / "alpha.json", change)
    text = refused(bench)
    for word in told:
        assert word in text


@pytest.mark.parametrize("content", [b"{not json", b"", b"[1, 2]", b"\xff\xfe\x00", b'{"schema": 9}'])
def test_a_question_file_that_is_none_is_named(bench: Bench, content: bytes) -> None:
    (bench.cells / "broken.json").write_bytes(content)
    assert "broken.json" in refused(bench)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "empty"),
        (b"PK\x03\x04 and then nothing", ""),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "OLE2"),
        (b"just text", "a text file"),
    ],
    ids=["empty", "corrupt", "ole2", "text"],
)
def test_a_workbook_that_is_none_is_named(bench: Bench, content: bytes, told: str) -> None:
    (bench.cells / "alpha.xlsx").write_bytes(content)
    edit(bench.cells / "alpha.json", lambda questions: questions.pop("sha256"))
    text = refused(bench, "--cellprose-models", "reader")
    assert "alpha.xlsx" in text
    assert told in text


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--cellprose-models", "gpt99"), ["gpt99", "haiku55"]),
        (("--cellprose-models", "haiku55@enormous"), ["enormous", "low, medium"]),
        (("--cellprose-models", "haiku55@medium"), ["haiku55@medium", "bare alias"]),
        (("--cellprose-models", "reader@low"), ["reader", "declares no effort"]),
        (("--cellprose-encodings", "yaml"), ["yaml", "cellprose_lean_gfm"]),
        (("--cellprose-workbooks", "zeta"), ["zeta", "alpha, beta"]),
        (("--cellprose-challenger", "yaml"), ["yaml"]),
        (("--cellprose-challenger", "none"), ["control"]),
        (("--cellprose-reps", "0"), ["--cellprose-reps", "'0'"]),
        (("--cellprose-reps", "two"), ["--cellprose-reps", "'two'"]),
        (("--cellprose-models", ","), ["--cellprose-models"]),
        (("--cellprose-approve-usd", "lots"), ["--cellprose-approve-usd", "lots"]),
        (("--cellprose-subset", "3"), ["--cellprose-subset", "--cellprose-final"]),
        (("--cellprose-cells", "no/such/folder"), ["no/such/folder"]),
    ],
)
def test_a_wrong_option_is_named_with_what_is_known(bench: Bench, arguments: tuple[str, ...], told: list[str]) -> None:
    text = refused(bench, *arguments)
    for word in told:
        assert word in text


def test_a_named_workbook_that_is_missing(bench: Bench) -> None:
    (bench.cells / "beta.xlsx").unlink()
    text = refused(bench, "--cellprose-workbooks", "beta")
    assert "beta" in text
    assert "--cellprose-cells DIR" in text


def test_a_duplicate_workbook_name_names_both_files(bench: Bench) -> None:
    other = bench.pytester.mkdir("other")
    write_workbook(other / "alpha.xlsx", scale=8)
    (other / "alpha.json").write_bytes((bench.cells / "alpha.json").read_bytes())
    edit(other / "alpha.json", lambda content: content.pop("sha256"))
    text = refused(bench, "--cellprose-cells", "other")
    assert "duplicate" in text
    assert str(other / "alpha.json") in text
    assert str(bench.cells / "alpha.json") in text


def test_a_broken_split_is_named(bench: Bench) -> None:
    (bench.cells / "split.json").write_text('{"schema": 1, "development": ["alpha"]}')
    text = refused(bench)
    assert "split.json" in text
    assert "development" in text


def test_every_problem_is_listed_at_once(bench: Bench) -> None:
    edit(bench.cells / "alpha.json", set_question(0, kind="guess"))
    edit(bench.cells / "beta.json", set_question(0, sheet="Nowhere"))
    (bench.cells / "broken.json").write_text("{")
    text = refused(bench, "--cellprose-models", "gpt99", "--cellprose-encodings", "yaml")
    for word in ("guess", "Nowhere", "broken.json", "gpt99", "yaml"):
        assert word in text


def test_several_wrong_options_are_listed_at_once(bench: Bench) -> None:
    text = refused(bench, "--cellprose-reps", "x", "--cellprose-approve-usd", "y")
    assert "--cellprose-reps" in text
    assert "--cellprose-approve-usd" in text


def test_an_ini_value_that_is_wrong_is_named(bench: Bench) -> None:
    bench.pytester.makepyprojecttoml('[tool.pytest]\ntestpaths = ["cells"]\ncellprose_models = ["gpt99"]\n')
    text = refused(bench)
    assert "ini cellprose_models" in text
    assert "gpt99" in text

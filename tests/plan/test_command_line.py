"""What a command line selects, before anything is collected: a table for each rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_cellprose.plan.command_line import named_in_keyword, reaches_cell_test, workbooks_in_node_ids

TAKES = {
    "a test": ("def test_cell(cell): ...", True),
    "an async test": ("async def test_cell(cell): ...", True),
    "a keyword-only argument": ("def test_cell(*, cell): ...", True),
    "a method": ("class TestIt:\n    def test_cell(self, cell): ...", True),
    "a fixture": ("import pytest\n@pytest.fixture\ndef measured(cell): ...", True),
    "a helper": ("def helper(cell): ...", False),
    "another argument": ("def test_cells(cells): ...", False),
    "a parameter": ("import pytest\n@pytest.mark.parametrize('cell', [1])\ndef test_it(cell): ...", False),
    "one of several": ("@pytest.mark.parametrize('row, cell', [])\ndef test_it(row, cell): ...", False),
    "a list of names": ("@pytest.mark.parametrize(['row', 'cell'], [])\ndef test_it(row, cell): ...", False),
    "hypothesis": ("@given(cell=cells)\ndef test_it(cell): ...", False),
    "another parameter": ("import pytest\n@pytest.mark.parametrize('row', [1])\ndef test_it(row, cell): ...", True),
    "no Python": ("def test_cell(cell: ...", False),
    "only a comment": ("# def test_cell(cell)\n", False),
}


@pytest.mark.parametrize(("source", "expected"), TAKES.values(), ids=TAKES.keys())
def test_whether_a_file_has_a_test_that_takes_a_cell(tmp_path: Path, source: str, expected: bool) -> None:
    (tmp_path / "test_it.py").write_text(source, encoding="utf-8")
    assert reaches_cell_test(["test_it.py"], tmp_path, ["test_*.py"], []) == expected
    assert reaches_cell_test(["test_it.py::test_cell[a]"], tmp_path, ["test_*.py"], []) == expected


@pytest.mark.parametrize(
    ("file", "arguments", "expected"),
    [
        ("cells/test_cells.py", ["."], True),
        ("cells/test_cells.py", ["cells"], True),
        ("cells/test_cells.py", ["other"], False),
        ("cells/cells.py", ["."], False),
        ("cells/cells.py", ["cells/cells.py"], True),
        ("build/test_cells.py", ["."], False),
        ("__pycache__/test_cells.py", ["."], False),
        ("venv/lib/test_cells.py", ["."], False),
    ],
)
def test_where_it_looks(tmp_path: Path, file: str, arguments: list[str], expected: bool) -> None:
    """As pytest does: names of `python_files` under a folder, none of `norecursedirs`, no virtual environment."""
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text("def test_cell(cell): ...", encoding="utf-8")
    (tmp_path / "venv").mkdir(exist_ok=True)
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    assert reaches_cell_test(arguments, tmp_path, ["test_*.py"], ["build"]) == expected


SECRETS = ("sb_42", "annual")
OTHERS = ("budget", "loan", "csv", "haiku55", "test_cell")
HEADS = ("haiku55-csv-",)


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ("", []),
        ("budget", []),
        ("sb_42", ["sb_42"]),
        ("SB_42", ["sb_42"]),
        ("sb_", ["sb_42"]),
        ("42", ["sb_42"]),
        ("annu", ["annual"]),
        ("an", []),  # part of loan, too
        ("a", []),  # part of haiku55, too
        ("not sb_42", []),
        ("budget or annual", ["annual"]),
        ("(csv and annual)", ["annual"]),
        ("csv-annual", ["annual"]),
        ("csv-", []),
        ("haiku55-csv-annual-rep1", ["annual"]),
        ("test_cell[haiku55-csv-sb_42-rep1]", ["sb_42"]),
        ("annual or sb_42", ["sb_42", "annual"]),
        ("-rep1", []),
    ],
)
def test_workbooks_that_a_keyword_singles_out(expression: str, named: list[str]) -> None:
    assert named_in_keyword(expression, SECRETS, OTHERS, HEADS) == named


@pytest.mark.parametrize(
    ("argument", "named"),
    [
        ("cells/test_cells.py::test_cell[haiku55-csv-sb_42-rep1]", ["sb_42"]),
        ("cells/test_cells.py::test_cell[7-haiku55-csv-annual-rep12-x]", ["annual"]),
        ("cells/test_cells.py::test_cell[haiku55-csv-budget-rep1]", []),
        ("cells/test_cells.py::test_cell[haiku55-csv-semiannual-rep1]", []),
        ("cells/test_cells.py::test_cell", []),
        ("cells/annual[sb_42]", []),
    ],
)
def test_workbooks_that_node_ids_name(argument: str, named: list[str]) -> None:
    assert workbooks_in_node_ids([argument], SECRETS) == named

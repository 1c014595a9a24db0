"""What a command line selects, read before anything is collected: whether it reaches a test that takes a cell,
and which workbooks it names."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

FIXTURE = "cell"
_TAKES_CELL = re.compile(rb"def\s+\w+\s*\([^)]*\bcell\b")
_KEYWORD = re.compile(r"(\bnot\s+)?([^\s()]+)")
_REPEAT = re.compile(r"-rep\d+\]?$")
_OPERATORS = frozenset({"and", "or", "not"})


def reaches_cell_test(
    arguments: Iterable[str], base: Path, python_files: Sequence[str], norecursedirs: Sequence[str]
) -> bool:
    """Whether any test file under the arguments has a function with a parameter named ``cell``.

    `arguments` are pytest's: paths or node ids, relative to `base`. Files are parsed, not imported.
    """
    for argument in arguments:
        path = base / argument.partition("::")[0]
        files = [path] if path.is_file() else _test_files(path, python_files, norecursedirs)
        if any(_takes_cell(file) for file in files):
            return True
    return False


def _test_files(root: Path, python_files: Sequence[str], norecursedirs: Sequence[str]) -> Iterator[Path]:
    for folder, subfolders, files in os.walk(root):
        subfolders[:] = sorted(
            name
            for name in subfolders
            if not any(fnmatchcase(name, pattern) for pattern in norecursedirs)
            and not (Path(folder) / name / "pyvenv.cfg").is_file()
            and name != "__pycache__"
        )
        for name in sorted(files):
            if any(fnmatchcase(name, pattern) for pattern in python_files):
                yield Path(folder) / name


def _takes_cell(file: Path) -> bool:
    try:
        source = file.read_bytes()
        if not _TAKES_CELL.search(source):
            return False
        tree = ast.parse(source)
    except (OSError, SyntaxError, ValueError):  # pytest will say what is wrong with it
        return False
    return any(
        argument.arg == FIXTURE
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    )


def named_in_keyword(expression: str, names: Iterable[str], others: Collection[str]) -> list[str]:
    """The `names` that a ``-k`` expression singles out.

    ``-k`` matches substrings, so a word singles a name out if it is part of it and of none of `others` (what
    else ids are made of). A word after ``not`` singles nothing out.
    """
    words = [
        word.lower() for negated, word in _KEYWORD.findall(expression) if not negated and word.lower() not in _OPERATORS
    ]
    single = [word for word in words if not any(word in other.lower() for other in others)]
    return [name for name in names if any(word in name.lower() for word in single) or name.lower() in words]


def workbooks_in_node_ids(arguments: Iterable[str], names: Iterable[str]) -> list[str]:
    """The `names` in the brackets of node ids such as ``…::test_cell[reader-csv-budget-rep1]``."""
    ids = [argument.partition("[")[2] for argument in arguments if "::" in argument and "[" in argument]
    heads = [_REPEAT.sub("", bracketed) for bracketed in ids if _REPEAT.search(bracketed)]
    return [name for name in names if any(head.endswith(f"-{name}") for head in heads)]

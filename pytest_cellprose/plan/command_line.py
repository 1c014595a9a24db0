"""What a command line selects, read before anything is collected: whether it reaches a test that takes a cell,
and which workbooks it names."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

FIXTURE = "cell"
_TAKES_CELL = re.compile(rb"def\s+\w+\s*\([^)]*\bcell\b")
_KEYWORD = re.compile(r"(\bnot\s+)?([^\s()]+)")
_REPEAT = re.compile(r"-rep\d+")
_OPERATORS = frozenset({"and", "or", "not"})


@dataclass(frozen=True)
class CommandLine:
    """What of pytest's own command line matters to the plan."""

    invocation: tuple[str, ...] = ()
    """The arguments as typed."""
    keyword: str = ""
    """The ``-k`` expression."""
    selected: tuple[str, ...] = ()
    """Paths and node ids."""
    collect_only: bool = False


def reaches_cell_test(
    arguments: Iterable[str], base: Path, python_files: Sequence[str], norecursedirs: Sequence[str]
) -> bool:
    """Whether any test file under the arguments has a test or a fixture that asks for a fixture named ``cell``.

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
    return any(map(_asks_for_cell, ast.walk(tree)))


def _asks_for_cell(node: ast.AST) -> bool:
    """Whether a test or a fixture has a parameter ``cell`` that none of its decorators provides."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    if not any(argument.arg == FIXTURE for argument in arguments):
        return False
    decorators = [part for decorator in node.decorator_list for part in ast.walk(decorator)]
    if not node.name.startswith("test") and not any(_named(part) == "fixture" for part in decorators):
        return False
    return not any(map(_provides_cell, decorators))


def _named(node: ast.AST) -> str | None:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None


def _provides_cell(node: ast.AST) -> bool:
    """``@pytest.mark.parametrize("row, cell", …)``, ``@given(cell=…)``."""
    if not isinstance(node, ast.Call):
        return False
    names = [part.strip() for text in node.args[:1] for part in _texts(text)]
    return FIXTURE in names or any(keyword.arg == FIXTURE for keyword in node.keywords)


def _texts(node: ast.AST) -> list[str]:
    """The names that the first argument of ``parametrize`` gives: one string, or a list of them."""
    found = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    return [name for text in found for name in text.split(",")]


def named_in_keyword(
    expression: str, names: Iterable[str], others: Collection[str], heads: Collection[str] = ("",)
) -> list[str]:
    """The `names` of workbooks that a ``-k`` expression singles out.

    ``-k`` matches substrings of ids. A word singles a name out if it is part of the name or of an id that has it, or
    the name is part of the word, and if it is part of none of `others`: names of what else ids are made of, and of the
    other workbooks. A word after ``not`` singles nothing out. `heads` are what ids have before a workbook's name,
    ``haiku55-csv-``: with them a word may be any part of an id, such as ``csv-budget``.
    """
    words = [_as_in_id(word) for negated, word in _KEYWORD.findall(expression) if not negated]
    words = [word for word in words if word and word not in _OPERATORS]
    apart = [other.lower() for other in others]
    apart += [f"{head}{other}-rep".lower() for head in heads for other in others]
    single = [word for word in words if not any(word in other for other in apart)]

    def is_named(name: str) -> bool:
        ids = [f"{head}{name}-rep".lower() for head in heads]
        return name.lower() in words or any(name.lower() in word or any(word in i for i in ids) for word in single)

    return [name for name in names if is_named(name)]


def _as_in_id(word: str) -> str:
    """Without the test's name, the brackets and the number of a repeat."""
    inner = word.rpartition("[")[2] if "[" in word else word
    return _REPEAT.sub("-rep", inner.removesuffix("]")).lower()


def workbooks_in_node_ids(arguments: Iterable[str], names: Iterable[str]) -> list[str]:
    """The `names` in the brackets of node ids such as ``…::test_cell[reader-csv-budget-rep1]``, whatever other
    parameters stand beside a cell."""
    ids = [argument.partition("[")[2] for argument in arguments if "::" in argument and "[" in argument]
    heads = [bracketed[: found.start()] for bracketed in ids for found in _REPEAT.finditer(bracketed)]
    return [name for name in names if any(head.endswith(f"-{name}") for head in heads)]

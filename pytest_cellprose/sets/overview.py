"""The tables of ``docs/sets.md``: what each development workbook is, how large, and what is asked about it.

``python -m pytest_cellprose.sets.overview docs/sets.md cells`` writes them anew between the page's marks.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path

from pytest_cellprose.questions.kinds import BUILTIN_KINDS
from pytest_cellprose.questions.schema import QuestionFile, load_questions
from pytest_cellprose.sets.synthetic.development import GENERATORS
from pytest_cellprose.workbook.model import Workbook


def generated_table(cells: Path) -> str:
    """The generated workbooks as a Markdown table, with the totals of their questions."""
    rows = []
    total: Counter[str] = Counter()
    for name in GENERATORS:
        workbook, questions = Workbook.read(cells / f"{name}.xlsx"), load_questions(cells / f"{name}.json")
        filled = [cell for sheet in workbook.worksheets for _, _, cell in sheet.cells()]
        formulas = sum(cell.formula is not None for cell in filled)
        sizes = [f"{number:,}" for number in (len(workbook.worksheets), len(filled), formulas)]
        total += _mix(questions)
        rows.append([f"`{name}`", _description(name), *sizes, *_counts(_mix(questions))])
    rows.append(["all", "", "", "", "", *_counts(total)])
    return _table(
        ["workbook", "what it is", "worksheets", "cells", "formulas", *BUILTIN_KINDS, "questions"], rows, words=2
    )


def public_table(cells: Path) -> str:
    """The question files for public workbooks as a Markdown table; the workbooks need not be there."""
    files = {path.stem: load_questions(path) for path in sorted((cells / "real").glob("*.json"))}
    rows = [[f"`{name}`", file.source or "", *_counts(_mix(file))] for name, file in files.items()]
    return _table(["workbook", "publisher and page", *BUILTIN_KINDS, "questions"], rows, words=2)


TABLES: Mapping[str, Callable[[Path], str]] = {"generated": generated_table, "public": public_table}
"""The name in the page's marks -> the table."""


def refreshed(page: str, cells: Path) -> str:
    """The page with each table between ``<!-- table: NAME -->`` and ``<!-- end -->`` made anew."""
    for name, table in TABLES.items():
        start, end = f"<!-- table: {name} -->", "<!-- end -->"
        before, found, rest = page.partition(start)
        _, closed, after = rest.partition(end)
        if not (found and closed):
            raise ValueError(f"the page has no place for table {name!r}: expected {start} and {end}")
        page = f"{before}{start}\n\n{table(cells)}\n{end}{after}"
    return page


def _description(name: str) -> str:
    """The first line of the generator's docstring."""
    module = import_module(GENERATORS[name].__module__)
    return (module.__doc__ or "").partition("\n")[0].rstrip(".")


def _mix(file: QuestionFile) -> Counter[str]:
    return Counter(question.kind for question in file.questions)


def _counts(mix: Counter[str]) -> list[str]:
    return [str(mix[kind]) for kind in BUILTIN_KINDS] + [str(mix.total())]


def _table(heads: list[str], rows: Iterable[list[str]], words: int) -> str:
    """Markdown; the first `words` columns to the left, the numbers to the right."""
    rules = ["---"] * words + ["--:"] * (len(heads) - words)
    return "".join(f"| {' | '.join(row)} |\n" for row in [heads, rules, *rows])


def main(page: str, cells: str) -> None:
    path = Path(page)
    path.write_text(refreshed(path.read_text(encoding="utf-8"), Path(cells)), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

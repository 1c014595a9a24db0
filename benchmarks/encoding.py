"""Speed and size of the text formats against MarkItDown and csv.

    python benchmarks/encoding.py speed    read + encode `cellprose_lean_gfm` against MarkItDown, best of three
    python benchmarks/encoding.py tokens   o200k_base tokens of every encoding, by file and in the geometric mean
    python benchmarks/encoding.py growth   seconds to encode ten times the cells, up to a million

The public workbooks are looked for where the tests look: in the folder that CELLPROSE_SHARED_DATA names, else in
``../shared/data`` beside the checkout. Only its `dev_real` is read. Prints Markdown.
"""

from __future__ import annotations

import io
import random
import sys
import time
from collections.abc import Callable, Iterable
from math import exp, log
from pathlib import Path

from public_files import development_files

from pytest_cellprose.encodings import BUILTIN, find_encoding
from pytest_cellprose.workbook.model import Cell, Formula, Workbook, Worksheet

LEAN = find_encoding("cellprose_lean_gfm")
MARKITDOWN = find_encoding("markitdown")
MANY_CELLS = 2_000


def generated(rows: int) -> bytes:
    """A workbook of ten columns: texts, whole numbers, fractions, and one column of formulas with their values."""
    import xlsxwriter

    draw = random.Random(20261009)
    stream = io.BytesIO()
    book = xlsxwriter.Workbook(stream)
    page = book.add_worksheet("Data")
    page.write_row(0, 0, ["Name", "Region", "Units", "Price", "Gross", "A", "B", "C", "D", "E"])
    for row in range(1, rows):
        units, price = draw.randrange(1, 500), draw.randrange(100, 99_999) / 100
        page.write_row(row, 0, [f"Item {row}", draw.choice(["North", "South", "East", "West"]), units, price])
        page.write_formula(row, 4, f"=C{row + 1}*D{row + 1}", None, units * price)
        page.write_row(row, 5, [draw.random() * 10 ** draw.randrange(5) for _ in range(5)])
    book.close()
    return stream.getvalue()


def best(action: Callable[[], object], times: int = 3) -> float:
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def geometric_mean(values: Iterable[float]) -> float:
    logarithms = [log(value) for value in values]
    return exp(sum(logarithms) / len(logarithms))


def cells(workbook: Workbook) -> int:
    return sum(len(columns) for sheet in workbook.worksheets for columns in sheet.rows.values())


def speed() -> None:
    print("| workbook | cells | ours, s | MarkItDown, s | ratio |\n|---|---|---|---|---|")
    sources: list[tuple[str, Path | bytes]] = [("generated, 20,000 cells", generated(2_000))]
    sources += [(path.stem, path) for path in development_files()]
    ratios = []
    for name, source in sources:
        workbook = Workbook.read(source)
        ours = best(lambda source=source: LEAN.encode(Workbook.read(source)))  # type: ignore[misc]
        theirs = best(lambda workbook=workbook: MARKITDOWN.encode(workbook))  # type: ignore[misc]
        if isinstance(source, Path) and cells(workbook) > MANY_CELLS:
            ratios.append(theirs / ours)
        print(f"| {name} | {cells(workbook):,} | {ours:.3f} | {theirs:.2f} | {theirs / ours:.1f}× |")
    mean = geometric_mean(ratios)
    print(f"\nFiles of more than {MANY_CELLS:,} cells: {mean:.1f}× (geometric mean), at least {min(ratios):.1f}×")


def tokens() -> None:
    for title, paths in (
        ("Public workbooks", development_files()),
        ("Workbooks of `cells/`", sorted((Path(__file__).resolve().parents[1] / "cells").glob("*.xlsx"))),
    ):
        print(f"\n{title}\n")
        token_table(paths)


def token_table(paths: Iterable[Path]) -> None:
    from toktok import batch_count

    names = [encoding.name for encoding in BUILTIN if encoding.name != "none"]
    print("| workbook | cells | " + " | ".join(names) + " |\n|" + "---|" * (len(names) + 2))
    ratios: dict[str, list[float]] = {name: [] for name in names}
    ratios["csv of openpyxl's values as Python prints them (`265.0`)"] = float_csv = []
    for path in paths:
        workbook = Workbook.read(path)
        texts = [encoding.encode(workbook) for encoding in BUILTIN if encoding.name != "none"]
        *counts, plain = batch_count([*texts, csv_of_python_floats(path)], "o200k_base")
        ours = counts[names.index(LEAN.name)]
        for name, count in zip(names, counts, strict=True):
            ratios[name].append(ours / count)
        float_csv.append(ours / plain)
        print(f"| {path.stem} | {cells(workbook):,} | " + " | ".join(f"{count:,}" for count in counts) + " |")
    print("\nTokens of cellprose_lean_gfm relative to, geometric mean:")
    del ratios[LEAN.name]
    for name, found in ratios.items():
        print(f"* {name}: {geometric_mean(found):.3f}×")


def csv_of_python_floats(path: Path) -> str:
    """The csv that a short script with openpyxl gives: the same layout, floats and dates as `str` has them."""
    import csv

    import openpyxl

    out = io.StringIO()
    for sheet in openpyxl.load_workbook(path, data_only=True).worksheets:
        out.write(f"## {sheet.title}\n")
        rows = [
            ["" if value is None else value for value in row] for row in sheet.iter_rows(1, min_col=1, values_only=True)
        ]
        for row in rows:
            while row and row[-1] == "":
                row.pop()
        while rows and not rows[-1]:
            rows.pop()
        csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def growth() -> None:
    """Processor time of one run each, because formulas that were scanned before come from a cache."""
    print("| cells | seconds of processor time to encode | times the line above |\n|---|---|---|")
    LEAN.encode(filled(1_000, first=2_000_000))
    before = None
    for count in (1_000, 10_000, 100_000):
        workbook = filled(count, first=1)
        start = time.process_time()
        LEAN.encode(workbook)
        seconds = time.process_time() - start
        print(f"| {count * 10:,} | {seconds:.3f} | {f'{seconds / before:.1f}×' if before else ''} |")
        before = seconds


def filled(count: int, first: int) -> Workbook:
    """Ten columns of fractions, two formulas that were not shared, and texts."""
    rows = {
        row: {
            **{column: Cell(row * column + 0.123456) for column in range(1, 8)},
            8: Cell(row * 1.5, Formula(f"A{row}*B{row}+$C$1")),
            9: Cell(row * 2.5, Formula(f"SUM($A$1:A{row})")),
            10: Cell(f"name {row}"),
        }
        for row in range(first, first + count)
    }
    return Workbook((Worksheet("S", rows=rows),))


if __name__ == "__main__":
    parts = {"speed": speed, "tokens": tokens, "growth": growth}
    if len(sys.argv) != 2 or sys.argv[1] not in parts:
        sys.exit(__doc__)
    parts[sys.argv[1]]()

"""Time and memory of reading a workbook, against the least that any reader in Python must do, and against openpyxl.

    python benchmarks/reading.py ratios    ours / (unzip + expat without handlers), and two openpyxl loads / ours
    python benchmarks/reading.py growth    seconds and peak memory per cell for ten and fifty times the cells
    python benchmarks/reading.py graph     building the graph and walking it, on the workbooks with formulas

The public workbooks are looked for where the tests look: in the folder that CELLPROSE_SHARED_DATA names, else in
``../shared/data`` beside the checkout. Only its `dev_real` is read. Times are processor time, the best of seven
(openpyxl: of two) within one process. Prints Markdown.
"""

from __future__ import annotations

import io
import random
import sys
import time
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable
from functools import partial
from math import exp, log
from xml.parsers import expat

from public_files import development_files

from pytest_cellprose.workbook.graph import Graph
from pytest_cellprose.workbook.model import Workbook
from pytest_cellprose.workbook.refs import CellAddress


def generated(cells: int) -> bytes:
    """A workbook of 20 columns: one of texts, 17 of numbers of all lengths, two of formulas with their values."""
    import xlsxwriter

    draw = random.Random(20261009)
    stream = io.BytesIO()
    book = xlsxwriter.Workbook(stream)
    page = book.add_worksheet("Data")
    for row in range(cells // 20):
        page.write_string(row, 0, f"Item {row % 700}")
        for column in range(1, 18):
            page.write_number(row, column, round(draw.random() * 10_000, draw.choice([0, 1, 2, 4, 9])))
        page.write_formula(row, 18, f"=SUM(B{row + 1}:C{row + 1})", None, row * 1.5)
        page.write_formula(row, 19, f"=S{row + 1}/2", None, row * 0.75)
    book.close()
    return stream.getvalue()


def best(*actions: Callable[[], object], times: int = 7) -> list[float]:
    """The least processor seconds of each; they take turns, so that a busy machine troubles all alike."""
    least = [float("inf")] * len(actions)
    for _ in range(times):
        for index, action in enumerate(actions):
            start = time.process_time()
            action()
            least[index] = min(least[index], time.process_time() - start)
    return least


def unzip_and_scan(data: bytes) -> None:
    """The floor: every XML part inflated and parsed, nothing done with it."""
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        for name in package.namelist():
            if name.endswith((".xml", ".rels")):
                expat.ParserCreate().Parse(package.read(name), True)


def two_openpyxl_loads(data: bytes) -> None:
    import openpyxl

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        openpyxl.load_workbook(io.BytesIO(data), data_only=True)
        openpyxl.load_workbook(io.BytesIO(data))


def count(book: Workbook) -> int:
    return sum(1 for sheet in book.worksheets for _ in sheet.cells())


def peak_per_cell(data: bytes) -> float:
    """Bytes of memory at the peak of reading, per non-empty cell; the file's own bytes are not counted."""
    tracemalloc.start()
    book = Workbook.read(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / max(count(book), 1)


def ratios() -> None:
    print("| file | cells | scan ms | ours ms | ours / scan | openpyxl ×2 / ours | bytes per cell |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    files = [("generated, 20,000 cells", generated(20_000))]
    files += [(path.name, path.read_bytes()) for path in development_files()]
    found = []
    for name, data in files:
        scan, ours = best(partial(unzip_and_scan, data), partial(Workbook.read, data))
        (theirs,) = best(partial(two_openpyxl_loads, data), times=2)
        found.append(ours / scan)
        print(
            f"| {name} | {count(Workbook.read(data)):,} | {scan * 1e3:.1f} | {ours * 1e3:.1f} | {ours / scan:.1f} "
            f"| {theirs / ours:.0f} | {peak_per_cell(data):.0f} |"
        )
    mean = exp(sum(map(log, found)) / len(found))
    print(f"\nours / scan: geometric mean {mean:.1f}, greatest {max(found):.1f}")


def growth() -> None:
    print("| cells | seconds | times the first | bytes per cell |")
    print("|---:|---:|---:|---:|")
    first = 0.0
    for cells in (20_000, 100_000, 200_000, 1_000_000):
        data = generated(cells)
        (seconds,) = best(partial(Workbook.read, data), times=3)
        first = first or seconds
        print(f"| {cells:,} | {seconds:.2f} | {seconds / first:.1f} | {peak_per_cell(data):.0f} |")


def graph() -> None:
    print("| file | formulas | index ms | all precedents of 50 cells, ms | all dependents of 50 cells, ms |")
    print("|---|---:|---:|---:|---:|")
    for path in development_files():
        book = Workbook.read(path)
        places = [
            CellAddress(sheet.name, row, column)
            for sheet in book.worksheets
            for row, column, cell in sheet.cells()
            if cell.formula is not None
        ]
        if not places:
            continue
        chosen = random.Random(path.name).sample(places, min(50, len(places)))
        walker = Graph(book)
        (index,) = best(partial(walker.dependents, places[0]), times=1)
        (up,) = best(lambda: [walker.precedents(place, "all") for place in chosen], times=1)  # noqa: B023
        (down,) = best(lambda: [walker.dependents(place, "all") for place in chosen], times=1)  # noqa: B023
        print(f"| {path.name} | {len(places):,} | {index * 1e3:.0f} | {up * 1e3:.0f} | {down * 1e3:.0f} |")


if __name__ == "__main__":
    chosen_part = {"ratios": ratios, "growth": growth, "graph": graph}.get(sys.argv[1] if len(sys.argv) == 2 else "")
    if chosen_part is None:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    chosen_part()

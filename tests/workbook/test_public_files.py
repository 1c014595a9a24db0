"""Every public file against openpyxl: cells, formulas, formats, merged, hidden, comments, names, references.

A sample by default; all of them with ``CELLPROSE_EVERY_FILE=1`` (about two minutes).
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from pytest_cellprose.encodings import find_encoding
from pytest_cellprose.workbook.graph import Graph
from pytest_cellprose.workbook.model import Workbook, WorkbookError
from pytest_cellprose.workbook.refs import CellAddress
from tests.workbook import openpyxl_oracle

EVERY = os.environ.get("CELLPROSE_EVERY_FILE") == "1"

# Where openpyxl is wrong or knows less: file, what differs, why.
OPENPYXL_DEFECTS = {
    ("b35_date_serials/input.xlsx", "format"): "it has no text for the built-in East Asian formats",
    ("b35_date_serials/input.xlsx", "value"): "it makes 28 February of Excel's 29 February 1900",
    ("b39_sheet_without_part/input.xlsx", "sheets"): "it does not list what has no part",
    ("b42_picture_in_cell/input.xlsx", "cells"): "it takes a picture for an error",
    ("b43_shared_formula_at_edge/input.xlsx", "formula"): "it drops a shared formula before the one with its text",
    ("sheetjs/fn.xlsx", "value"): "it does not know rich values, and takes #FIELD! for #VALUE!",
    ("calamine/picture_richdata.xlsx", "cells"): "it takes a picture for an error",
    ("xlsxwriter/embed_image08.xlsx", "cells"): "it takes a picture for an error",
    ("poi/52575_main.xlsx", "value"): "it drops the result of a formula whose type is inlineStr",
    ("exceljs/shared_string_with_escape.xlsx", "value"): "it removes every x005F_, which escapes the escape",
    ("phpspreadsheet/issue.4724.xlsx", "value"): "the same, and halves of surrogate pairs stay apart",
    ("poi/NewlineInFormulas.xlsx", "formula"): "its tokenizer moves a line break when it translates",
    ("poi/64759.xlsx", "comments"): "it keeps the explanation of threaded comments",
    ("sheetjs/threaded_comments_none.xlsx", "comments"): "it keeps the explanation of threaded comments",
    ("poi/ExcelTables.xlsx", "hidden rows"): "it does not know rows that are hidden by default",
    ("poi/FillWithoutColor.xlsx", "hidden rows"): "it does not know rows that are hidden by default",
    ("phpspreadsheet/issue.3843a.template.xlsx", "sheets"): "it finds nothing in strict files",
    ("phpspreadsheet/namespacepurl.xlsx", "sheets"): "it finds nothing in strict files",
    ("phpspreadsheet/namespacepurl.xlsx", "names"): "it finds nothing in strict files",
    ("poi/SampleSS.strict.xlsx", "sheets"): "it finds nothing in strict files",
    ("poi/SimpleStrict.xlsx", "sheets"): "it finds nothing in strict files",
    ("poi/sample.strict.xlsx", "sheets"): "it finds nothing in strict files",
}
# openpyxl.load_workbook takes more than 45 seconds.
TOO_SLOW_FOR_OPENPYXL = {"DrawingSizeInPx.xlsx"}
# Damaged, with a row 0, without relationships, without worksheets, with a shared string -1: openpyxl reads on, and
# loses what it cannot find.
REFUSED_WITH_REASON = {
    "poc-shared-strings.xlsx",
    "xlsx-corrupted.xlsx",
    "sample-beta.xlsx",
    "BadWorkbook.xlsx",
    "b41_negative_shared_string/input.xlsx",
}


def _files(shared_data: Path) -> list[Path]:
    robust = sorted((shared_data / "robust").glob("*/*"))
    known = [path for path in robust if any(f"{path.parent.name}/{path.name}" == name for name, _ in OPENPYXL_DEFECTS)]
    if not EVERY:
        small = [path for path in robust if path.stat().st_size < 60_000]
        robust = small[::6] + known
    real = sorted((shared_data / "dev_real").glob("*.xlsx"))
    if not EVERY:
        real = [path for path in real if path.stat().st_size < 60_000]
    return [*robust, *real, *sorted((shared_data / "bugs").glob("*/*.xlsx"))]


def test_every_cell_equals_what_openpyxl_reads(shared_data: Path) -> None:
    problems = []
    compared = 0
    for path in _files(shared_data):
        if path.name in TOO_SLOW_FOR_OPENPYXL:
            continue
        name = f"{path.parent.name}/{path.name}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                books = openpyxl_oracle.load(path)
            except Exception:  # whatever it raises, there is nothing to compare with
                continue
        try:
            ours = Workbook.read(path)
        except WorkbookError as refusal:
            if not {path.name, name} & REFUSED_WITH_REASON:
                problems.append(f"{name}: {refusal}")
            continue
        compared += 1
        for kind, text in openpyxl_oracle.differences(ours, *books):
            if (name, kind) not in OPENPYXL_DEFECTS:
                problems.append(f"{name}: {kind}: {text}"[:300])
    assert not problems, "\n".join(problems[:40])
    assert compared > 60


def test_references_equal_what_openpyxl_tokenizes(shared_data: Path) -> None:
    """Both directions, on the real workbooks with formulas and on the test files richest in them."""
    robust = [
        "phpspreadsheet/issue.3613.xlsx",
        "poi/46535.xlsx",
        "poi/50096.xlsx",
        "poi/60512.xlsm",
        "poi/ConditionalFormattingSamples.xlsx",
        "poi/ElapsedFormatTests.xlsx",
        "poi/FormulaEvalTestData_Copy.xlsx",
        "poi/MatrixFormulaEvalTestData.xlsx",
        "poi/NumberFormatTests.xlsx",
        "poi/StructuredRefs-lots-with-lookups.xlsx",
        "poi/VLookupFullColumn.xlsx",
        "poi/dataValidationTableRange.xlsx",
        "poi/stress024.xlsx",
        "sheetjs/formula_stress_test.xlsx",
    ]
    real = ["dam_betas", "dam_fcfe2st", "dam_fcff2st", "dk_ens_ccts", "dk_ens_energy_transport_datasheet"]
    real += ["dk_ens_heating_installations"]
    paths = [shared_data / "dev_real" / f"{name}.xlsx" for name in real]
    paths += [shared_data / "robust" / name for name in robust]
    compared = 0
    for path in paths if EVERY else [path for path in paths if path.stat().st_size < 150_000]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            oracle = openpyxl_oracle.References(openpyxl_oracle.load(path)[1])
        graph = Graph(Workbook.read(path))
        boxes = oracle.resolvable()
        chosen = sorted(boxes)[:: len(boxes) // 400 + 1]
        for (sheet, row, column), found in ((place, boxes[place]) for place in chosen):
            expected = set().union(*map(oracle.clipped, found))
            assert graph.precedents(CellAddress(sheet, row, column)) == expected, f"{path.name} {sheet} {row} {column}"
        compared += len(chosen)
        pool = sorted({cell for found in list(boxes.values())[:500] for box in found for cell in oracle.corners(box)})
        for cell in random.Random(path.name).sample(pool, min(25, len(pool))):
            referring = {place for place in graph.dependents(CellAddress(*cell)) if place in boxes}
            assert referring == oracle.referring(boxes, cell), f"{path.name} {cell}"
    assert compared > 2000


_READ_ALL = """
import json, resource, sys, time
resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
from pytest_cellprose.workbook.model import Workbook, WorkbookError
for path in sys.argv[1:]:
    started = time.perf_counter()
    try:
        book = Workbook.read(path)
        outcome = f"{sum(1 for sheet in book.worksheets for _ in sheet.cells())} cells"
    except WorkbookError as refusal:
        outcome = f"refused {refusal}"
    print(json.dumps([path, outcome, time.perf_counter() - started]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on a process's memory")
def test_every_file_is_read_or_refused_within_its_limits(shared_data: Path) -> None:
    """All 480, in one process of 1 GiB, each within 20 seconds; a refusal is one line that names the file."""
    paths = sorted((shared_data / "robust").glob("*/*"))
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", _READ_ALL, *map(str, paths)],
        capture_output=True,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    outcomes: list[list[Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    assert [outcome[0] for outcome in outcomes] == list(map(str, paths))
    for path, outcome, seconds in outcomes:
        assert seconds < 20, path
        if outcome.startswith("refused "):
            assert outcome.startswith(f"refused {Path(path).name}: ")
            assert "\n" not in outcome
            assert len(outcome) < 400


def test_the_graph_of_a_decoded_text_is_the_files(shared_data: Path) -> None:
    """Folding, dropped ``$`` and shortened table references lose nothing that the graph needs."""
    lean = find_encoding("cellprose_lean_gfm")
    assert lean.decode is not None
    for name in ("dam_betas", "dam_fcfe2st", "dk_ens_energy_transport_datasheet"):
        book = Workbook.read(shared_data / "dev_real" / f"{name}.xlsx")
        ours, decoded = Graph(book), Graph(lean.decode(lean.encode(book)))
        for sheet in book.worksheets:
            for row, column, cell in sheet.cells():
                if cell.formula is not None:
                    place = CellAddress(sheet.name, row, column)
                    assert decoded.precedents(place) == ours.precedents(place), f"{name} {place}"

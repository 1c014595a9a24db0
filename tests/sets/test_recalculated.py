"""Every stored result of the generated workbooks, calculated afresh by LibreOffice."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook

from pytest_cellprose.sets.synthetic.development import GENERATORS
from tests.sets.second_path import SecondPath

CELLS = Path(__file__).resolve().parents[2] / "cells"
RESULT = re.compile(rb"(</f>|<f[^>]*/>)<v>[^<]*</v>")


@pytest.fixture(scope="module")
def recalculated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workbooks without their results, converted by LibreOffice, which has to calculate them."""
    office = shutil.which("soffice")
    if office is None:
        pytest.skip("LibreOffice is not installed: no soffice on the path")
    bare, done, profile = (tmp_path_factory.mktemp(name) for name in ("bare", "done", "profile"))
    for name in GENERATORS:
        with zipfile.ZipFile(CELLS / f"{name}.xlsx") as given, zipfile.ZipFile(bare / f"{name}.xlsx", "w") as kept:
            for part in given.namelist():
                kept.writestr(part, RESULT.sub(rb"\1", given.read(part)))
    command = [office, f"-env:UserInstallation={profile.as_uri()}", "--headless", "--convert-to", "xlsx"]
    files = [str(bare / f"{name}.xlsx") for name in GENERATORS]
    subprocess.run([*command, "--outdir", str(done), *files], check=True, capture_output=True, timeout=240)
    return done


def same(stored: Any, calculated: Any) -> bool:
    """Numbers within 1e-9 of each other, relative; anything else equal."""
    if isinstance(stored, int | float) and isinstance(calculated, int | float):
        return math.isclose(stored, calculated, rel_tol=1e-9, abs_tol=1e-9)
    return bool(stored == calculated)


@pytest.mark.parametrize("name", GENERATORS)
def test_libreoffice_calculates_the_stored_results(name: str, recalculated: Path) -> None:
    book = SecondPath(CELLS / f"{name}.xlsx")
    afresh = load_workbook(recalculated / f"{name}.xlsx", data_only=True)
    differing = {}
    for sheet, row, column in book.texts:
        stored = book.results[sheet].cell(row, column).value
        calculated = afresh[sheet].cell(row, column).value
        if not same(stored, calculated):
            differing[sheet, row, column] = stored, calculated
    assert differing == {}

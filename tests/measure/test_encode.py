"""Encoding in a child process that can be stopped."""

from __future__ import annotations

from pathlib import Path

import xlsxwriter

import pytest_cellprose
from pytest_cellprose.encodings.markitdown import MARKITDOWN
from pytest_cellprose.suites.encode import encode_text
from pytest_cellprose.workbook.model import Workbook


def test_markitdown_after_it_ran_in_this_process(tmp_path: Path) -> None:
    # its inference runtime hangs in a child of a process that has used it, until the limit ends it
    path = tmp_path / "model.xlsx"
    with xlsxwriter.Workbook(str(path)) as workbook:
        workbook.add_worksheet("Model").write_row("A1", ["Units", 100, 120])
    here = pytest_cellprose.encode(path, "markitdown")
    assert encode_text(MARKITDOWN, Workbook.read(path), 5.0) == here

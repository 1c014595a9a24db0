"""The page about the development set says what is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_cellprose.sets.overview import generated_table, refreshed
from pytest_cellprose.sets.synthetic.development import GENERATORS

ROOT = Path(__file__).resolve().parents[2]


def test_the_pages_tables_are_up_to_date() -> None:
    page = (ROOT / "docs" / "sets.md").read_text(encoding="utf-8")
    assert page == refreshed(page, ROOT / "cells"), "run python -m pytest_cellprose.sets.overview docs/sets.md cells"


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="no place for table 'generated'"):
        refreshed("# A page\n", ROOT / "cells")


def test_the_table_has_a_line_for_each_workbook_and_their_sum() -> None:
    *_, total = lines = [line.strip("| ").split(" | ") for line in generated_table(ROOT / "cells").splitlines()][2:]
    assert [line[0] for line in lines] == [f"`{name}`" for name in GENERATORS] + ["all"]
    counts = [[int(number) for number in line[5:]] for line in lines[:-1]]
    assert [sum(column) for column in zip(*counts, strict=True)] == [int(number) for number in total[-6:]]
    assert all(60 <= int(line[3].replace(",", "")) <= 20_000 for line in lines[:-1])
    assert min(int(number) for number in total[-6:-1]) >= 25

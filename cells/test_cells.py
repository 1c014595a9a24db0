"""The benchmark: one test per cell. A cell passes when it was measured; its score is data, not an assertion."""

from __future__ import annotations

from pytest_cellprose import Cell


def test_cell(cell: Cell) -> None:
    cell.run()

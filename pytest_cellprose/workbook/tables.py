"""Structured references, resolved: which cells ``Sales[[#Totals],[Qty]]`` is (ECMA-376 part 1, §18.5.1)."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_cellprose.workbook.formulas import structured_reference
from pytest_cellprose.workbook.model import Table, Worksheet
from pytest_cellprose.workbook.refs import Range


class TableIndex:
    """The tables of a workbook by name and by place."""

    def __init__(self, worksheets: Sequence[Worksheet]) -> None:
        self._tables = [(index, table) for index, sheet in enumerate(worksheets) for table in sheet.tables]
        self._by_name = {table.name.casefold(): (index, table) for index, table in self._tables}

    def areas(self, text: str, sheet: int, at: tuple[int, int]) -> list[tuple[int, Range]]:
        """Worksheet index and cells of a structured reference in a formula at this worksheet and cell.

        Empty if there is no such table, column or row, as for ``[#Totals]`` of a table without totals.
        """
        part = structured_reference(text)
        found = self._by_name.get(part.table.casefold()) if part.table else self._around(sheet, at)
        if found is None:
            return []
        index, table = found
        columns = _columns(table, part.columns)
        if columns is None:
            return []
        return [
            (index, Range(first, columns[0], last, columns[1]))
            for first, last in _rows(table, part.items or frozenset({"#data"}), at[0])
            if first <= last
        ]

    def _around(self, sheet: int, at: tuple[int, int]) -> tuple[int, Table] | None:
        for index, table in self._tables:
            if index == sheet and table.ref.contains(*at):
                return index, table
        return None


def _columns(table: Table, names: tuple[str, ...]) -> tuple[int, int] | None:
    if not names:
        return table.ref.first_column, table.ref.last_column
    known = {_folded(column): offset for offset, column in reversed(list(enumerate(table.columns)))}
    offsets = [known.get(_folded(name)) for name in names]
    found = [table.ref.first_column + offset for offset in offsets if offset is not None]
    return (min(found), max(found)) if len(found) == len(names) else None


def _folded(name: str) -> str:
    """A column's name as it is compared; a line break in it is stored now as one character, now as an escape."""
    return " ".join(name.replace("_x000a_", " ").replace("_x000d_", " ").split()).casefold()


def _rows(table: Table, items: frozenset[str], row: int) -> list[tuple[int, int]]:
    first, last = table.ref.first_row, table.ref.last_row
    data = (first + table.header_rows, last - table.totals_rows)
    spans = {
        "#all": (first, last),
        "#headers": (first, data[0] - 1),
        "#data": data,
        "#totals": (data[1] + 1, last),
        "#this row": (row, row) if data[0] <= row <= data[1] else (1, 0),
    }
    return [spans[item] for item in sorted(items) if item in spans]

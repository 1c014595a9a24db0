"""A worksheet's tables as text: enough to resolve the structured references that formulas make to them."""

from __future__ import annotations

import re

from pytest_cellprose.workbook.model import Table, Worksheet
from pytest_cellprose.workbook.refs import Range

_TABLE = re.compile(r"(\S+) ([A-Z]+[0-9]+(?::[A-Z]+[0-9]+)?)( no header)?( totals)?")


def table_text(table: Table) -> str:
    """``Sales A1:D9``, with `` no header`` and `` totals`` where it applies."""
    return (
        f"{table.name} {table.ref}"
        + (" no header" if not table.header_rows else "")
        + (" totals" if table.totals_rows else "")
    )


def read_table(text: str, sheet: Worksheet) -> Table | None:
    """The table that `table_text` wrote, with the headings that the worksheet's cells give; None for another text."""
    match = _TABLE.fullmatch(text)
    if match is None:
        return None
    area = Range.parse(match[2])
    headings = sheet.rows.get(area.first_row, {}) if not match[3] else {}
    columns = tuple(
        str(headings[column].value) if column in headings else f"Column{number}"
        for number, column in enumerate(range(area.first_column, area.last_column + 1), 1)
    )
    return Table(match[1], area, columns, 0 if match[3] else 1, 1 if match[4] else 0)

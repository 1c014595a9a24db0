"""Sets of cells, read from the addresses that questions and answers write."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from pytest_cellprose.workbook.refs import MAX_COLUMN, MAX_ROW, AddressError, Range, quote_sheet, split_sheet

HUGE = 100_000
"""Cells. A rectangle above this size is never expanded where the used extent is unknown."""


_NAMED = r"(?:'(?:[^']++|'')*+'|[^!:]+)!"
_NAMED_TWICE = re.compile(rf"(?P<first>(?:{_NAMED})?[^!:]+):(?P<last>{_NAMED}[^!:]+)")
"""A range whose last corner has a worksheet before it."""


class Area(NamedTuple):
    """A rectangle of one worksheet."""

    sheet: str
    range: Range

    @classmethod
    def parse(cls, text: str, default_sheet: str) -> Area:
        """Read ``Model!C3:BI3``, ``'My sheet'!$A:$A`` or, on `default_sheet`, ``C3``.

        The end of a range may name its worksheet again, as in Excel: ``Model!C3:Model!BI3``. Raises `AddressError`
        for anything else, a range from one worksheet to another among it.
        """
        twice = _NAMED_TWICE.fullmatch(text.strip())
        if twice is None:
            sheet, address = split_sheet(text)
        else:
            sheet, first = split_sheet(twice["first"])
            again, last = split_sheet(twice["last"])
            if again is None or again.casefold() != (default_sheet if sheet is None else sheet).casefold():
                raise AddressError(f"{text!r} goes from one worksheet to another")
            address = f"{first}:{last}"
        if sheet == "":
            raise AddressError(f"{text!r} names no worksheet before the exclamation mark")
        return cls(default_sheet if sheet is None else sheet, Range.parse(address))

    def __str__(self) -> str:
        return f"{quote_sheet(self.sheet)}!{self.range}"


class Extents:
    """Where each worksheet's cells end: whole columns and rows are clipped to it before they are expanded."""

    def __init__(self, extents: Mapping[str, str | None], *, complete: bool = True) -> None:
        """`extents`: worksheet -> used extent as A1 text, None for an empty worksheet.

        `complete` says that these are all worksheets of the workbook and their true extents.
        """
        self._extents = {name.casefold(): extent for name, extent in extents.items()}
        self._complete = complete

    @classmethod
    def guessed(cls, truth: Iterable[Area]) -> Extents:
        """For a question that does not know its workbook: as far as its truth reaches."""
        reach: dict[str, Range] = {}
        for sheet, area in truth:
            if not _is_whole(area):
                far = reach.get(sheet.casefold(), Range(1, 1, 1, 1))
                last_row, last_column = (
                    max(far.last_row, area.last_row),
                    max(far.last_column, area.last_column),
                )
                reach[sheet.casefold()] = Range(1, 1, last_row, last_column)
        return cls({sheet: str(area) for sheet, area in reach.items()}, complete=False)

    def clip(self, area: Area) -> Range | None:
        """The part of `area` that counts as cells, or None if it names none.

        A single cell is kept as it is, so that a cell outside the used extent stays a (wrong) cell. Where the
        extents are guessed, only whole columns, whole rows and `HUGE` rectangles are clipped.
        """
        name = area.sheet.casefold()
        if self._complete and name not in self._extents:
            return None
        if area.range.size == 1:
            return area.range
        if self._complete:
            extent = self._extents[name]
        elif _is_whole(area.range) or area.range.size > HUGE:
            extent = self._extents.get(name, _NOMINAL)
        else:
            return area.range
        return None if extent is None else area.range.intersection(_extent(extent))


_NOMINAL = "A1:CV1000"
_extent = lru_cache(maxsize=1024)(Range.parse)


def _is_whole(area: Range) -> bool:
    return area.size > 1 and (area.last_row == MAX_ROW or area.last_column == MAX_COLUMN)


class CellSet:
    """Cells of several worksheets; each column of a worksheet is an integer with one bit per row.

    So a rectangle costs one operation a column whatever its height, and overlapping rectangles cost nothing
    extra: a reply that names a thousand nearly equal ranges is scored as fast as any other.
    """

    def __init__(self) -> None:
        self._columns: dict[tuple[str, int], int] = {}

    def add(self, sheet: str, area: Range) -> None:
        rows = ((1 << (area.last_row - area.first_row + 1)) - 1) << area.first_row
        name = sheet.casefold()
        for column in range(area.first_column, area.last_column + 1):
            self._columns[name, column] = self._columns.get((name, column), 0) | rows

    def __len__(self) -> int:
        return sum(rows.bit_count() for rows in self._columns.values())

    @property
    def columns(self) -> tuple[tuple[tuple[str, int], int], ...]:
        """``((worksheet, column), bits of its rows)``, sorted: equal for equal sets."""
        return tuple(sorted(self._columns.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CellSet) and self._columns == other._columns

    __hash__ = None  # type: ignore[assignment]

    def shared(self, other: CellSet) -> int:
        """How many cells both hold."""
        return sum((rows & other._columns.get(key, 0)).bit_count() for key, rows in self._columns.items())

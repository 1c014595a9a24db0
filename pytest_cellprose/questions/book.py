"""A workbook to look answers up in: read from a file to certify truths, or decoded from a text to answer offline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

from pytest_cellprose.questions.about import RowAndColumn, Scalar, TypedValue
from pytest_cellprose.questions.cellset import Area, CellSet, Extents
from pytest_cellprose.questions.locate import displayed, locate
from pytest_cellprose.workbook.model import Workbook
from pytest_cellprose.workbook.patterns import cover, hardcoded_cells
from pytest_cellprose.workbook.refs import CellAddress, Range, quote_sheet

if TYPE_CHECKING:
    from pytest_cellprose.workbook.graph import Graph

Links: TypeAlias = Literal["precedents", "dependents"]


class Book:
    """What kinds of question ask of a workbook; what takes long is worked out once."""

    def __init__(self, workbook: Workbook) -> None:
        self.workbook = workbook

    @cached_property
    def extents(self) -> dict[str, Range | None]:
        """Worksheet -> used extent."""
        return {sheet.name: sheet.extent for sheet in self.workbook.worksheets}

    @cached_property
    def _clipping(self) -> Extents:
        return Extents({name: None if extent is None else str(extent) for name, extent in self.extents.items()})

    @cached_property
    def _graph(self) -> Graph:
        from pytest_cellprose.workbook.graph import Graph

        return Graph(self.workbook)

    def shown(self, address: CellAddress) -> Scalar | None:
        """What a cell shows, as an answer gives it; None if there is no such cell or it has no value."""
        cell = self.workbook.cell(address)
        return None if cell is None else displayed(cell, self.workbook.date1904)

    def located(self, about: RowAndColumn | TypedValue, sheet: str) -> list[CellAddress]:
        """The one cell that labels lead to, or none."""
        return locate(self.workbook, about, sheet)

    def linked(self, start: CellAddress, links: Links, reach: Literal["direct", "all"]) -> set[CellAddress]:
        """The cells that a cell's formula refers to, or whose formulas refer to it."""
        graph = self._graph
        return set((graph.precedents if links == "precedents" else graph.dependents)(start, reach))

    def dynamic(self, cells: Iterable[CellAddress]) -> list[CellAddress]:
        """Those with a reference that no text tells, such as OFFSET or INDIRECT; sorted."""
        return sorted(cell for cell in cells if self._graph.is_dynamic(cell))

    def hardcoded(self, area: Area) -> list[CellAddress] | None:
        """The cells of a range that hold a number typed over a formula; None if there is no such worksheet."""
        sheet = self.workbook.sheet(area.sheet)
        if sheet is None:
            return None
        return [CellAddress(sheet.name, *place) for place in hardcoded_cells(sheet) if area.range.contains(*place)]

    @staticmethod
    def addresses(cells: Iterable[CellAddress]) -> list[str]:
        """Cells as few worksheet-qualified ranges, in the order in which their worksheets come."""
        by_sheet: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for cell in cells:
            by_sheet[cell.sheet].append((cell.row, cell.column))
        return [f"{quote_sheet(sheet)}!{area}" for sheet, places in by_sheet.items() for area in cover(sorted(places))]

    def covered(self, areas: Iterable[Area]) -> CellSet:
        """The cells that areas name, each clipped to what its worksheet uses."""
        cells = CellSet()
        for area in areas:
            if clipped := self._clipping.clip(area):
                cells.add(area.sheet, clipped)
        return cells

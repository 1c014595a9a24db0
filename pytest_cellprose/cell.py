"""The ``cell`` of a test: the public way to a cell's record."""

from __future__ import annotations

from collections.abc import Callable

from pytest_cellprose.record.plain import visible
from pytest_cellprose.record.record import CellId, Record, SetName


class CellFault(Exception):
    """A cell that was not measured: its record, which is stored, says why. The message is one line."""

    def __init__(self, record: Record) -> None:
        outcome = record.outcome
        what = "measured" if outcome.not_started is None else "started"
        super().__init__(visible(f"{record.cell} was not {what}: {outcome.kind}: {outcome.detail}"))
        self.record = record


class Cell:
    """What a test gets: a planned cell, which is measured when the test asks for it."""

    def __init__(self, cell_id: CellId, set_name: SetName, measure_cell: Callable[[CellId], Record]) -> None:
        self.id = cell_id
        self.set: SetName = set_name
        self._measure = measure_cell
        self._record: Record | None = None

    @property
    def model(self) -> str:
        return self.id.model

    @property
    def encoding(self) -> str:
        return self.id.encoding

    @property
    def workbook(self) -> str:
        return self.id.workbook

    @property
    def repeat(self) -> int:
        """1-based."""
        return self.id.repeat

    @property
    def record(self) -> Record | None:
        """The stored record, once there is one."""
        return self._record

    def run(self) -> Record:
        """Call the model and score its answer; the record is on disk when this returns.

        However often it is asked, and by however many tests, a cell is called at most once a run. A wrong
        answer or a model's failure is a result, with its accuracy in the record. Raises `CellFault` if the
        cell could not be measured.
        """
        if self._record is None:
            self._record = self._measure(self.id)
        if self._record.outcome.status == "fault":
            raise CellFault(self._record)
        return self._record

    def __repr__(self) -> str:
        return f"<Cell {self.id}>"

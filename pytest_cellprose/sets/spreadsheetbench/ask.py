"""One task of SpreadsheetBench as value questions: which of its answer cells are asked about, and how.

Nothing here changes a workbook or calculates: a truth is what the published answer workbook stores.
"""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from hashlib import sha256
from io import BytesIO
from typing import Any, NamedTuple

from pytest_cellprose.questions.locate import displayed
from pytest_cellprose.questions.schema import Question
from pytest_cellprose.questions.scoring import score
from pytest_cellprose.questions.spreadsheetbench import PositionError, positions
from pytest_cellprose.questions.values import percent_points
from pytest_cellprose.sets.spreadsheetbench.archive import Pair, Task
from pytest_cellprose.workbook.graph import Graph
from pytest_cellprose.workbook.model import Cell, ErrorValue, Value, Workbook, WorkbookError
from pytest_cellprose.workbook.number_formats import date_kind
from pytest_cellprose.workbook.refs import CellAddress, Range, cell_name

FEWEST_CELLS, MOST_CELLS = 300, 20_000
"""Of the input workbook, all worksheets together: filled cells, as found."""
MOST_QUESTIONS = 8
"""About one workbook."""
SMALLEST_NUMBER = 1.0
"""Below it, the absolute tolerance of 0.01 would be more than 1 % of the truth."""

_NUMBER = re.compile(r"(?<![\w.$:])-?\d[\d,]*(?:\.\d+)?(?![\w:])")
_LITERAL = re.compile(r'"[^"]*"?|\\.|_.|\*.')


class TaskRule(StrEnum):
    """Why a whole task is dropped, in the order in which the rules are looked at."""

    SHEET_LEVEL = "not Cell-Level Manipulation"
    NOT_CONSIDERED = "not among the tasks whose instructions were read for this set"
    NO_PAIR = "no complete pair of workbooks"
    POSITION = "an answer position that the official evaluation does not read as written"
    UNREADABLE = "a workbook that cannot be read"
    NO_WORKSHEET = "an answer worksheet that is not in both workbooks"
    SIZE = f"not {FEWEST_CELLS:,} to {MOST_CELLS:,} filled cells"
    NO_CELL = "no answer cell left to ask about"
    UNCLEAR = "read: the instruction leaves open which value is meant"
    CONTRADICTED = "read: the published answer is not what the instruction asks for"
    STATED = "read: the instruction says the answer"


class CellRule(StrEnum):
    """Why an answer cell is not asked about, in the order in which the rules are looked at."""

    EMPTY = "empty"
    ERROR = "an error value"
    TIME = "a time of day or a duration"
    ZERO = "0, which a formula that finds nothing gives too"
    SMALL = "below 1 in size, a percentage below 1 %: the tolerance is too lax"
    READERS_DIFFER = "openpyxl and this package's reader disagree"
    UNCHANGED = "the input workbook already has that answer in that cell"
    STATED = "the instruction has that number in it"
    READ = "read: the published value is not what the instruction asks for"
    REPEATED = "the same answer as a cell that is asked about"
    OTHER_INPUTS = "a cell that it depends on is another in the input workbook"
    ENOUGH = f"more than {MOST_QUESTIONS} in the workbook"


class Restated(NamedTuple):
    """What became of one task."""

    entries: list[dict[str, Any]]
    """The questions, as a question file writes them; empty if the task is dropped."""
    left_out: Counter[CellRule]
    """How many answer cells are not asked about, by rule."""
    dropped: TaskRule | None = None


class _Candidate(NamedTuple):
    address: CellAddress
    answer: Any
    more: dict[str, Any]
    """Fields of the question that go with the answer: its type or unit."""


def ask(task: Task, pair: Pair, without: Collection[str] = ()) -> Restated:
    """The questions of a cell-level task; `without` are answer cells, like ``B4``, that a reader ruled out."""
    try:
        parts = positions(task.answer_position)
    except PositionError:
        return _dropped(TaskRule.POSITION)
    try:
        before, after = Workbook.read(pair.input), Workbook.read(pair.answer)
    except WorkbookError:
        return _dropped(TaskRule.UNREADABLE)
    cells: list[CellAddress] = []
    for name, area in parts:
        worksheet = after.sheet(after.worksheets[0].name if name is None else name)
        if worksheet is None or before.sheet(worksheet.name) is None:
            return _dropped(TaskRule.NO_WORKSHEET)
        cells += [CellAddress(worksheet.name, *place) for place in area.cells()]
    if not FEWEST_CELLS <= sum(1 for sheet in before.worksheets for _ in sheet.cells()) <= MOST_CELLS:
        return _dropped(TaskRule.SIZE)
    try:
        second = _by_openpyxl(pair.answer, cells)
    except Exception:  # whatever it finds wrong: it has no exception of its own for a file it cannot read
        return _dropped(TaskRule.UNREADABLE)
    left_out: Counter[CellRule] = Counter()
    compared = _Compared(task, before, after, second, frozenset(cells))
    candidates: list[_Candidate] = []
    for address in cells:
        candidate = compared.candidate(address)
        if isinstance(candidate, CellRule):
            left_out[candidate] += 1
        elif cell_name(address.row, address.column) in without:
            left_out[CellRule.READ] += 1
        elif any(same_answer(candidate.answer, earlier.answer) for earlier in candidates):
            left_out[CellRule.REPEATED] += 1
        elif compared.has_other_inputs(address):
            left_out[CellRule.OTHER_INPUTS] += 1
        else:
            candidates.append(candidate)
    chosen = spread(candidates, MOST_QUESTIONS)
    left_out[CellRule.ENOUGH] += len(candidates) - len(chosen)
    if not chosen:
        return Restated([], left_out, TaskRule.NO_CELL)
    digest = sha256(pair.answer).hexdigest()
    return Restated([_entry(task, n, candidate, digest) for n, candidate in enumerate(chosen, 1)], left_out)


def answer_name(task_id: str) -> str:
    """The answer workbook's file name; no question file has that stem, so it is no workbook of the plan."""
    return f"sb_{task_id}.answer.xlsx"


def _dropped(rule: TaskRule) -> Restated:
    return Restated([], Counter(), rule)


def _entry(task: Task, number: int, candidate: _Candidate, answer_sha256: str) -> dict[str, Any]:
    return {
        "id": f"q{number}",
        "kind": "value",
        "text": _text(task, candidate),
        "sheet": candidate.address.sheet,
        "about": str(candidate.address),
        "answer": candidate.answer,
        **candidate.more,
        "computed": True,
        "answer_workbook": answer_name(task.id),
        "answer_sha256": answer_sha256,
        "case": task.id,
    }


def _text(task: Task, candidate: _Candidate) -> str:
    cell = cell_name(candidate.address.row, candidate.address.column)
    unit = " Answer in percent: 12 for 12 %." if "unit" in candidate.more else ""
    request = " ".join(task.instruction.split())
    return (
        f"Somebody asked about this workbook: “{request}” Suppose that this is done, and nothing else is changed. "
        f"Which value does cell {cell} of worksheet “{candidate.address.sheet}” then hold?{unit}"
    )


def spread(candidates: list[_Candidate], most: int) -> list[_Candidate]:
    """At most `most`, at even distances, the first and the last among them."""
    if len(candidates) <= most:
        return candidates
    return [candidates[n * (len(candidates) - 1) // (most - 1)] for n in range(most)]


def same_answer(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


class _Compared:
    """The input and the answer workbook of a task side by side."""

    def __init__(
        self,
        task: Task,
        before: Workbook,
        after: Workbook,
        second: Mapping[CellAddress, Any],
        answer_cells: frozenset[CellAddress],
    ) -> None:
        self._before, self._after, self._second = before, after, second
        self._answer_cells = answer_cells
        self._graph = Graph(after)
        self._stated = [float(text.replace(",", "")) for text in _NUMBER.findall(task.instruction)]

    def candidate(self, address: CellAddress) -> _Candidate | CellRule:
        """The truth of an answer cell, or the first rule that keeps it from being asked about."""
        cell = self._after.cell(address)
        if cell is None or cell.value is None or (isinstance(cell.value, str) and not cell.value.strip()):
            return CellRule.EMPTY
        if isinstance(cell.value, ErrorValue):
            return CellRule.ERROR
        truth = _truth(cell, self._after.date1904)
        if isinstance(truth, CellRule):
            return truth
        if not self._read_twice(address, cell.value):
            return CellRule.READERS_DIFFER
        candidate = _Candidate(address, *truth)
        question = Question.model_validate(
            {"id": "q1", "kind": "value", "text": "?", "sheet": address.sheet, "about": str(address)}
            | {"answer": candidate.answer, **candidate.more}
        )
        before = self._before.cell(address)
        if before is not None and score(question, _shown(before, self._before.date1904, candidate.more)):
            return CellRule.UNCHANGED
        if isinstance(candidate.answer, int | float) and any(score(question, number) for number in self._stated):
            return CellRule.STATED
        return candidate

    def has_other_inputs(self, address: CellAddress) -> bool:
        """Whether the answer was calculated from a cell that is another in the input workbook.

        Other answer cells do not count. Where only calculating tells what a formula refers to, as with ``INDIRECT``,
        every typed cell does.
        """
        if not self._changed:
            return False
        if self._graph.precedents(address) & self._changed:
            return True
        depends_on = self._graph.precedents(address, "all")
        if depends_on & self._changed:
            return True
        is_dynamic = bool(self._dynamic & {address, *depends_on})
        return is_dynamic and any(not self._has_formula(changed) for changed in self._changed)

    def _read_twice(self, address: CellAddress, value: Value) -> bool:
        """Whether openpyxl reads the same value."""
        other = self._second.get(address)
        return isinstance(value, bool) is isinstance(other, bool) and bool(value == other)

    @cached_property
    def _changed(self) -> set[CellAddress]:
        """The cells that differ, answer cells apart. A number and its text are the same, and so is rounding."""
        both = {
            CellAddress(sheet.name, row, column)
            for workbook in (self._before, self._after)
            for sheet in workbook.worksheets
            for row, column, _ in sheet.cells()
        }
        return {address for address in both - self._answer_cells if not self._same(address)}

    @cached_property
    def _dynamic(self) -> set[CellAddress]:
        """The formulas of the answer workbook whose references only calculating them gives."""
        formulas = (
            CellAddress(sheet.name, row, column)
            for sheet in self._after.worksheets
            for row, column, cell in sheet.cells()
            if cell.formula is not None
        )
        return {address for address in formulas if self._graph.is_dynamic(address)}

    def _has_formula(self, address: CellAddress) -> bool:
        cell = self._after.cell(address)
        return cell is not None and cell.formula is not None

    def _same(self, address: CellAddress) -> bool:
        one, other = (_plain(workbook.cell(address)) for workbook in (self._before, self._after))
        if isinstance(one, float) and isinstance(other, float):
            return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
        return same_answer(one, other)


def _plain(cell: Cell | None) -> bool | float | str:
    value = "" if cell is None or cell.value is None else cell.value
    if isinstance(value, bool):
        return value
    try:
        return float(value)
    except ValueError:
        return str(value)


def _truth(cell: Cell, date1904: bool) -> tuple[Any, dict[str, Any]] | CellRule:
    """The answer to a question about a filled cell, and the question's fields that go with it."""
    value = cell.value
    if isinstance(value, bool | str) or value is None:
        return value, {}
    kind = date_kind(cell.number_format)
    if kind is not None:
        shown = displayed(cell, date1904)
        whole_day = kind != "elapsed" and kind != "time" and value == int(value) and isinstance(shown, str)
        return (str(shown)[:10], {"type": "date"}) if whole_day else CellRule.TIME
    if value == 0:
        return CellRule.ZERO
    in_percent = _is_percent(cell.number_format)
    answer = percent_points(value) if in_percent else value
    if abs(answer) < SMALLEST_NUMBER:
        return CellRule.SMALL
    return answer, {"unit": "percent"} if in_percent else {}


def _is_percent(number_format: str) -> bool:
    return "%" in _LITERAL.sub("", number_format)


def _shown(cell: Cell, date1904: bool, more: dict[str, Any]) -> Any:
    """What a cell would give as an answer to a question of the type or unit."""
    shown = displayed(cell, date1904)
    if "unit" in more and isinstance(shown, int | float) and not isinstance(shown, bool):
        return percent_points(shown)
    return shown


def _by_openpyxl(content: bytes, cells: Sequence[CellAddress]) -> dict[CellAddress, Any]:
    """What openpyxl reads in these cells; dates and times as serial numbers."""
    from openpyxl import load_workbook

    places: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for address in cells:
        places[address.sheet].append((address.row, address.column))
    found: dict[CellAddress, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about parts that openpyxl does not keep
        book = load_workbook(BytesIO(content), read_only=True, data_only=True)
        for name, within in places.items():
            rows, columns = [row for row, _ in within], [column for _, column in within]
            box = Range(min(rows), min(columns), max(rows), max(columns))
            values = book[name].iter_rows(box[0], box[2], box[1], box[3], values_only=True)
            for row, filled in enumerate(values, box.first_row):
                for column, value in enumerate(filled, box.first_column):
                    found[CellAddress(name, row, column)] = _serial(value, book.epoch)
    return found


def _serial(value: Any, epoch: datetime) -> Any:
    return (value - epoch) / timedelta(days=1) if isinstance(value, datetime) else value

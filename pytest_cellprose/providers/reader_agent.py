"""`reader_agent`, the offline agent: a program that explores a workbook's file with the tools that an agent has.

Not a language model. It drives the real loop and the real sandbox with no key: a first turn that has a command read the
file, a second one that fetches what it found in pieces, and a third one that answers. An Excel workbook is read by
openpyxl, in the sandbox; a text by its encoding's decoder.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable
from typing import Any

from pytest_cellprose.encodings.base import KEPT
from pytest_cellprose.models.tokens import count
from pytest_cellprose.providers.base import Reply, Request, ToolCall
from pytest_cellprose.questions.answering import answer_all
from pytest_cellprose.record.record import Usage
from pytest_cellprose.workbook.model import Cell, DefinedName, ErrorValue, Formula, Table, Value, Workbook, Worksheet
from pytest_cellprose.workbook.refs import Range

READER_AGENT_VERSION = "1"
"""Changes whenever any command or answer could change."""

_PIECE = 15_000
"""Characters of one piece: less than a command's output may have."""
_FOUND = "found.txt"

_PACK = f"""
import base64, json, zlib
from pathlib import Path

def leave(data):
    packed = base64.b64encode(zlib.compress(data, 9))
    Path("{_FOUND}").write_bytes(packed)
    print(len(packed))
"""

_READ_TEXT = """
leave(next(Path().glob("workbook.*")).read_bytes())
"""

_READ_XLSX = """
from datetime import date, datetime, time, timedelta
from openpyxl import load_workbook
from openpyxl.utils.datetime import to_excel
from openpyxl.worksheet.formula import ArrayFormula, DataTableFormula

def value_of(cell, epoch):
    value = cell.value
    if isinstance(value, (date, datetime, time, timedelta)):
        value = to_excel(value, epoch)
    return ["error" if cell.data_type == "e" else "value", value]

def formula_of(cell):
    value = cell.value
    if isinstance(value, ArrayFormula):
        return ["array", value.text.removeprefix("="), value.ref]
    if isinstance(value, DataTableFormula):
        return ["dataTable", "", value.ref]
    return ["normal", value[1:], None] if cell.data_type == "f" and isinstance(value, str) else None

path = next(Path().glob("workbook.*"))
stored, written = load_workbook(path, data_only=True), load_workbook(path)
sheets = []
for sheet in written.worksheets:
    cells = []
    for row in sheet.iter_rows():
        for cell in row:
            if cell.value is not None:
                value = value_of(stored[sheet.title].cell(cell.row, cell.column), stored.epoch)
                cells.append([cell.row, cell.column, value, formula_of(cell), cell.number_format])
    tables = [[t.name, t.ref, t.column_names, t.headerRowCount, t.totalsRowCount or 0] for t in sheet.tables.values()]
    names = [[name, found.value, sheet.title] for name, found in sheet.defined_names.items()]
    sheets.append([sheet.title, sheet.sheet_state, cells, tables, names])
names = [[name, found.value, None] for name, found in written.defined_names.items()]
leave(json.dumps([sheets, names]).encode())
"""


def explore(request: Request) -> Reply:
    """The next turn of an episode; what a command did not bring is answered as not found."""
    done = request.turns
    if not done:
        return _reply(request, calls=[_python(_PACK + (_READ_TEXT if request.encoding else _READ_XLSX))])
    if len(done) == 1:
        size = _size(done[0].results[0].text)
        if size is not None:
            pieces = [f"tail -c +{start} {_FOUND} | head -c {_PIECE}" for start in range(1, size + 1, _PIECE)]
            return _reply(request, calls=[_bash(number, piece) for number, piece in enumerate(pieces, 1)])
    workbook = _workbook(request, "".join(result.text.strip() for result in done[-1].results))
    keeps = request.encoding.keeps if request.encoding else frozenset(KEPT)
    return _reply(request, text=json.dumps(answer_all(workbook, request.asked, keeps), ensure_ascii=False))


def _size(text: str) -> int | None:
    """What the first command printed; None if it broke."""
    return int(text) if text.strip().isdecimal() else None


def _python(program: str) -> ToolCall:
    return _bash(0, f"python3 - <<'EOF'\n{program}EOF\n")


def _bash(number: int, command: str) -> ToolCall:
    return ToolCall(f"call_{number}", "bash", json.dumps({"command": command}))


def _reply(request: Request, text: str = "", calls: Iterable[ToolCall] = ()) -> Reply:
    """With exact counts: every turn sends again all that came before it."""
    made = list(calls)
    said = [{"text": text, "calls": [[call.name, call.arguments] for call in made]}]
    tools = sum(count(tool.text) for tool in request.tools)
    told = sum(count(result.text) for turn in request.turns for result in turn.results)
    before = sum(count(json.dumps(list(turn.said))) for turn in request.turns)
    usage = Usage(
        input=count(request.system) + count(request.prompt) + tools + told + before,
        cached=0,
        output=count(json.dumps(said)),
        reasoning=0,
    )
    return Reply(text=text, returned_model=request.model_id, usage=usage, calls=made, said=said)


def _workbook(request: Request, packed: str) -> Workbook:
    """What the pieces hold; no cells if they hold nothing that can be read."""
    try:
        content = zlib.decompress(base64.b64decode(packed, validate=True))
        if request.encoding is None:
            return _from_openpyxl(json.loads(content))
        assert request.encoding.decode is not None
        return request.encoding.decode(content.decode("utf-8", "surrogatepass"))
    except (ValueError, zlib.error):
        return Workbook(worksheets=())


def _from_openpyxl(found: Any) -> Workbook:
    sheets, names = found
    defined = [*names, *(name for sheet in sheets for name in sheet[4])]
    return Workbook(
        worksheets=tuple(_worksheet(*sheet[:4]) for sheet in sheets),
        defined_names=tuple(DefinedName(name, text, sheet) for name, text, sheet in defined if text),
    )


def _worksheet(name: str, state: Any, cells: Iterable[Any], tables: Iterable[Any]) -> Worksheet:
    rows: dict[int, dict[int, Cell]] = {}
    for row, column, value, formula, number_format in cells:
        rows.setdefault(row, {})[column] = Cell(_value(value), _formula(formula), number_format)
    found = tuple(
        Table(table, Range.parse(ref), tuple(columns), headers, totals)
        for table, ref, columns, headers, totals in tables
    )
    return Worksheet(name, state=state, rows=rows, tables=found)


def _value(told: tuple[str, Value]) -> Value:
    kind, value = told
    return ErrorValue(value) if kind == "error" else value


def _formula(told: Any) -> Formula | None:
    if told is None:
        return None
    kind, text, ref = told
    return Formula(text, kind, None if ref is None else Range.parse(ref))

"""The built-in kinds of question."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

from pytest_cellprose.questions.about import Scalar, is_scalar
from pytest_cellprose.questions.cell_answers import areas_of, same_cells, shared_cells
from pytest_cellprose.questions.cellset import Area, CellSet
from pytest_cellprose.questions.kind import Kinds, QuestionKind
from pytest_cellprose.questions.problem import expected, quoted
from pytest_cellprose.questions.values import is_right_value, is_same_value, percent_points
from pytest_cellprose.workbook.refs import AddressError, CellAddress, Range

if TYPE_CHECKING:
    from pytest_cellprose.questions.asked import Asked
    from pytest_cellprose.questions.book import Book, Links
    from pytest_cellprose.questions.schema import Question

# value: what a cell shows


def _scalar(value: Any, above: Mapping[str, Any]) -> Scalar:
    if not is_scalar(value):
        raise expected("a finite number, a text or true/false, as the question's kind is value")
    if above.get("type") == "date" and not _is_date(value):
        raise expected('a date of the calendar as text YYYY-MM-DD, as the question\'s type is "date"')
    found: Scalar = value
    return found


_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def _is_date(value: object) -> bool:
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        return False
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True


def _right(question: Question, answer: Any) -> float:
    return float(is_right_value(question, answer))


def _shown(asked: Asked, book: Book) -> Scalar | None:
    shown = book.shown(asked.cell)
    if asked.unit == "percent" and isinstance(shown, int | float) and not isinstance(shown, bool):
        return percent_points(shown)
    return shown


def _other_value(question: Question, book: Book) -> str | None:
    asked = question.asked()
    shown = _shown(asked, book)
    if shown is None:
        return f"{asked.cell} holds no value"
    if is_same_value(question, shown):
        return None
    return f"{asked.cell} holds {shown!r}, the recorded truth is {question.answer!r}"


VALUE = QuestionKind(
    "value",
    truth=_scalar,
    score=_right,
    needs="values",
    takes=frozenset({"type", "unit", "computed", "scorer"}),
    find=_shown,
    objection=_other_value,
)

# lists of cells, whatever is asked for


def _addresses(value: Any, above: Mapping[str, Any]) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise expected(f"a list of addresses, as the question's kind is {above['kind']}")
    wrong = list(_unreadable(value, above.get("sheet", "")))
    if wrong:
        raise expected("addresses only", ", but " + "; ".join(wrong))
    return tuple(value)


def _unreadable(members: Iterable[Any], sheet: str) -> Iterator[str]:
    for member in members:
        if not isinstance(member, str):
            yield f"{quoted(member)} is not an address"
            continue
        try:
            Area.parse(member, sheet)
        except AddressError as error:
            yield str(error)


def _differs(question: Question, book: Book, found: Iterable[CellAddress], what: str) -> str | None:
    """`what` says where the cells were found, before their addresses."""
    cells = sorted(found)
    there = CellSet()
    for cell in cells:
        there.add(cell.sheet, Range(cell.row, cell.column, cell.row, cell.column))
    if book.covered(areas_of(question)) == there:
        return None
    listed = ", ".join(map(str, cells[:6])) + (f" and {len(cells) - 6} more" if len(cells) > 6 else "")
    assert isinstance(question.answer, tuple)
    recorded = ", ".join(map(str, question.answer))
    return f"{what} {listed or 'no cell'}, the recorded truth is {recorded or 'no cell'}"


# address: where something is


def _one_or_more(value: Any, above: Mapping[str, Any]) -> tuple[str, ...]:
    addresses = _addresses(value, above)
    if not addresses:
        raise expected(f"at least one address, as the question's kind is {above['kind']}")
    return addresses


ADDRESS = QuestionKind(
    "address",
    truth=_one_or_more,
    score=same_cells,
    needs="addresses",
    about="labels",
    lists_cells=True,
    find=lambda asked, book: book.addresses(book.located(asked.labels, asked.sheet)) or None,
    objection=lambda question, book: _differs(
        question, book, book.located(question.asked().labels, question.sheet), "the labels lead to"
    ),
)

# trace and impact: what a cell depends on, and what depends on it


def _precedents(asked: Asked, book: Book) -> list[str] | None:
    if book.workbook.cell(asked.cell) is None:
        return None
    return _linked(asked, book, "precedents")


def _linked(asked: Asked, book: Book, links: Links) -> list[str]:
    found = book.linked(asked.cell, links, asked.reach or "direct")
    return book.addresses(sorted(found))  # a set has another order in every process


def _other_links(question: Question, book: Book, links: Links) -> str | None:
    asked = question.asked()
    start = asked.cell
    found = book.linked(start, links, asked.reach or "direct")
    dynamic = book.dynamic({start, *found})
    if dynamic:
        return f"{dynamic[0]} has a dynamic reference, such as OFFSET or INDIRECT: no text says what it refers to"
    return _differs(question, book, found, f"{question.kind}, {question.reach}, of {start} is")


TRACE = QuestionKind(
    "trace",
    truth=_addresses,
    score=shared_cells,
    needs="formulas",
    takes=frozenset({"reach"}),
    lists_cells=True,
    find=_precedents,
    objection=lambda question, book: _other_links(question, book, "precedents"),
)
IMPACT = QuestionKind(
    "impact",
    truth=_addresses,
    score=shared_cells,
    needs="formulas",
    takes=frozenset({"reach"}),
    lists_cells=True,
    find=lambda asked, book: _linked(asked, book, "dependents"),
    objection=lambda question, book: _other_links(question, book, "dependents"),
)

# hardcode: numbers typed over formulas


def _hardcoded(asked: Asked, book: Book) -> list[str] | None:
    found = book.hardcoded(asked.area)
    return None if found is None else book.addresses(found)


def _other_hardcoded(question: Question, book: Book) -> str | None:
    area = question.asked().area
    return _differs(question, book, book.hardcoded(area) or [], f"hard-coded in {area} are")


HARDCODE = QuestionKind(
    "hardcode",
    truth=_addresses,
    score=shared_cells,
    needs="formulas",
    about="range",
    lists_cells=True,
    find=_hardcoded,
    objection=_other_hardcoded,
)

BUILTIN_KINDS: Kinds = {kind.name: kind for kind in (VALUE, ADDRESS, TRACE, IMPACT, HARDCODE)}
"""Their names are reserved. The order is that of tables."""

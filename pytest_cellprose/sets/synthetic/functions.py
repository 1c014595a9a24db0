"""The worksheet functions that the generated models use: each writes itself and works out its result.

Names are those of Excel in lower case, with an underscore where Python has the word. An argument is an
`Area`, an `Expression` or a constant. Rules are Excel's as documented; LibreOffice recomputes every result
in the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from decimal import ROUND_UP, Decimal
from statistics import median as middle
from typing import TypeAlias

from pytest_cellprose.sets.synthetic.expression import (
    DIV0,
    Area,
    Expression,
    Operand,
    Scalar,
    as_number,
    lift,
    power,
    round_half_away,
)
from pytest_cellprose.workbook.model import ErrorValue

Argument: TypeAlias = "Area | Operand"

NA = ErrorValue("#N/A")
EPOCH = date(1899, 12, 30)
"""Day 0 of the 1900 date system, for every day from March 1900 on."""


def serial(day: date) -> int:
    return (day - EPOCH).days


def day_of(number: Scalar) -> date:
    """The date of a serial number."""
    return EPOCH + timedelta(days=int(_plain(number)))


def sum_(*arguments: Argument) -> Expression:
    return _aggregate("SUM", arguments, lambda numbers: _add(numbers))


def average(*arguments: Argument) -> Expression:
    return _aggregate("AVERAGE", arguments, lambda n: _add(n) / len(n) if n else DIV0)


def median(*arguments: Argument) -> Expression:
    return _aggregate("MEDIAN", arguments, lambda numbers: middle(numbers))


def min_(*arguments: Argument) -> Expression:
    return _aggregate("MIN", arguments, lambda numbers: min(numbers, default=0))


def max_(*arguments: Argument) -> Expression:
    return _aggregate("MAX", arguments, lambda numbers: max(numbers, default=0))


def count(area: Area) -> Expression:
    return _call("COUNT", [area], sum(_is_number(value) for value in area.values))


def counta(area: Area) -> Expression:
    return _call("COUNTA", [area], sum(value is not None for value in area.values))


def sumproduct(*areas: Area) -> Expression:
    """Of areas of one shape, all numbers."""
    columns = [[_plain(value) for value in area.values] for area in areas]
    total: float = 0
    for factors in zip(*columns, strict=True):
        product: float = 1
        for factor in factors:
            product *= factor
        total += product
    return _call("SUMPRODUCT", areas, total)


def countif(area: Area, criterion: Operand) -> Expression:
    return _call("COUNTIF", [area, criterion], sum(map(_criterion(criterion), area.values)))


def countifs(*pairs: Argument) -> Expression:
    return _call("COUNTIFS", pairs, sum(_matching(pairs)))


def sumif(area: Area, criterion: Operand, numbers: Area) -> Expression:
    chosen = _chosen(numbers, (area, criterion))
    return _call("SUMIF", [area, criterion, numbers], _add(chosen))


def sumifs(numbers: Area, *pairs: Argument) -> Expression:
    return _call("SUMIFS", [numbers, *pairs], _add(_chosen(numbers, pairs)))


def averageif(area: Area, criterion: Operand, numbers: Area) -> Expression:
    chosen = _chosen(numbers, (area, criterion))
    value: Scalar = _add(chosen) / len(chosen) if chosen else DIV0
    return _call("AVERAGEIF", [area, criterion, numbers], value)


def if_(condition: Operand, then: Operand, otherwise: Operand) -> Expression:
    verdict = lift(condition).value
    if isinstance(verdict, ErrorValue):
        value: Scalar = verdict
    else:
        value = lift(then).value if verdict else lift(otherwise).value
    return _call("IF", [condition, then, otherwise], value)


def iferror(tried: Operand, otherwise: Operand) -> Expression:
    value = lift(tried).value
    return _call("IFERROR", [tried, otherwise], lift(otherwise).value if isinstance(value, ErrorValue) else value)


def round_(number: Operand, digits: int) -> Expression:
    value = as_number(lift(number).value)
    return _call("ROUND", [number, digits], value if isinstance(value, ErrorValue) else round_half_away(value, digits))


def roundup(number: Operand, digits: int) -> Expression:
    value = as_number(lift(number).value)
    if not isinstance(value, ErrorValue):
        step = Decimal(1).scaleb(-digits)
        value = float(Decimal(repr(value)).quantize(step, ROUND_UP))
    return _call("ROUNDUP", [number, digits], value)


def abs_(number: Operand) -> Expression:
    value = as_number(lift(number).value)
    return _call("ABS", [number], value if isinstance(value, ErrorValue) else abs(value))


def vlookup(key: Operand, table: Area, column: int) -> Expression:
    """Exact matches only."""
    wanted = _fold(lift(key).value)
    value: Scalar = next((row[column - 1] for row in table.grid if _fold(row[0]) == wanted), NA)
    return _call("VLOOKUP", [key, table, column, False], value)


def match(key: Operand, area: Area) -> Expression:
    """The position of an exact match."""
    wanted = _fold(lift(key).value)
    value: Scalar = next((n for n, value in enumerate(area.values, 1) if _fold(value) == wanted), NA)
    return _call("MATCH", [key, area, 0], value)


def index(area: Area, row: Operand, column: Operand = 1) -> Expression:
    r, c = as_number(lift(row).value), as_number(lift(column).value)
    arguments: list[Argument] = [area, row] if column == 1 else [area, row, column]
    if isinstance(r, ErrorValue) or isinstance(c, ErrorValue):
        return _call("INDEX", arguments, r if isinstance(r, ErrorValue) else c)
    return _call("INDEX", arguments, area.grid[int(r) - 1][int(c) - 1])


def large(area: Area, rank: int) -> Expression:
    return _call("LARGE", [area, rank], sorted(_numbers([area]), reverse=True)[rank - 1])


def rank(number: Operand, area: Area) -> Expression:
    """1 for the largest."""
    mine = _plain(lift(number).value)
    return _call("RANK", [number, area], 1 + sum(other > mine for other in _numbers([area])))


def pmt(rate: Operand, periods: Operand, present: Operand) -> Expression:
    """The level payment of a loan, negative as in Excel; the rate is not 0."""
    r, n, p = (_plain(lift(argument).value) for argument in (rate, periods, present))
    return _call("PMT", [rate, periods, present], -p * r / (1 - 1 / power(1 + r, n)))


def edate(start: Operand, months: Operand) -> Expression:
    """The same day some months on; the day of the month is at most 28."""
    day, step = day_of(lift(start).value), int(_plain(lift(months).value))
    years, month = divmod(day.month - 1 + step, 12)
    return _call("EDATE", [start, months], serial(date(day.year + years, month + 1, day.day)))


def year(day: Operand) -> Expression:
    return _call("YEAR", [day], day_of(lift(day).value).year)


def month(day: Operand) -> Expression:
    return _call("MONTH", [day], day_of(lift(day).value).month)


def networkdays(start: Operand, end: Operand) -> Expression:
    """Mondays to Fridays, both ends counted; `end` is not before `start`."""
    first, last = day_of(lift(start).value), day_of(lift(end).value)
    days = (first + timedelta(days=n) for n in range((last - first).days + 1))
    return _call("NETWORKDAYS", [start, end], sum(day.weekday() < 5 for day in days))


def workday(start: Operand, days: Operand) -> Expression:
    """The day that many (0 or more) working days later."""
    day, left = day_of(lift(start).value), int(_plain(lift(days).value))
    while left:
        day += timedelta(days=1)
        left -= day.weekday() < 5
    return _call("WORKDAY", [start, days], serial(day))


def _call(name: str, arguments: Sequence[Argument], value: Scalar) -> Expression:
    parts: list[str | Area] = [name, "("]
    for n, argument in enumerate(arguments):
        if n:
            parts.append(",")
        parts.extend([argument] if isinstance(argument, Area) else lift(argument).parts)
    return Expression(value, (*parts, ")"))


def _aggregate(
    name: str, arguments: tuple[Argument, ...], apply: Callable[[list[float]], float | ErrorValue]
) -> Expression:
    """Errors spread; blanks and texts in areas are passed over."""
    values = [v for a in arguments for v in (a.values if isinstance(a, Area) else [lift(a).value])]
    error = next((value for value in values if isinstance(value, ErrorValue)), None)
    return _call(name, arguments, apply(_numbers(arguments)) if error is None else error)


def _numbers(arguments: Sequence[Argument]) -> list[float]:
    values = [v for a in arguments for v in (a.values if isinstance(a, Area) else [lift(a).value])]
    return [_plain(value) for value in values if _is_number(value)]


def _add(numbers: list[float]) -> float:
    """Left to right: `sum` compensates for rounding from Python 3.12 on, and not before."""
    total: float = 0
    for number in numbers:
        total += number
    return total


def _is_number(value: Scalar) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _plain(value: Scalar) -> float:
    number = as_number(value)
    if isinstance(number, ErrorValue):
        raise ValueError(f"{value!r} is not a number")
    return number


def _fold(value: Scalar) -> Scalar:
    return value.casefold() if isinstance(value, str) else value


def _criterion(criterion: Operand) -> Callable[[Scalar], bool]:
    """``"North"``, ``5``, ``">=100"``, ``"<0"``: what a cell must be to count."""
    wanted = lift(criterion).value
    if isinstance(wanted, str) and wanted[:1] in "<>" and wanted:
        sign = wanted[: 2 if wanted[1:2] == "=" else 1]
        bound = float(wanted[len(sign) :])
        tests: dict[str, Callable[[float], bool]] = {
            "<": lambda n: n < bound,
            "<=": lambda n: n <= bound,
            ">": lambda n: n > bound,
            ">=": lambda n: n >= bound,
        }
        return lambda value: _is_number(value) and tests[sign](_plain(value))
    return lambda value: value is not None and _fold(value) == _fold(wanted)


def _matching(pairs: tuple[Argument, ...]) -> list[bool]:
    columns = []
    for area, criterion in zip(pairs[::2], pairs[1::2], strict=True):
        assert isinstance(area, Area)
        assert not isinstance(criterion, Area)
        columns.append([_criterion(criterion)(value) for value in area.values])
    return [all(row) for row in zip(*columns, strict=True)]


def _chosen(numbers: Area, pairs: tuple[Argument, ...]) -> list[float]:
    found = zip(numbers.values, _matching(pairs), strict=True)
    return [_plain(value) for value, chosen in found if chosen and _is_number(value)]

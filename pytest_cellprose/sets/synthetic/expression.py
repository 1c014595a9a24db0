"""Expressions that are a formula and its result at once, so that each generated model is written once.

``sheet["B3"] * rates["$B$4"]`` is an `Expression`: it knows its value, how the formula reads on any worksheet, and
which cells it refers to. Results follow Excel: a blank counts as 0, an error spreads, text in arithmetic is
``#VALUE!``. Only operations that give the same bits on every machine are used (no ``pow`` of floats).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import TypeAlias

from pytest_cellprose.workbook.model import ErrorValue
from pytest_cellprose.workbook.refs import MAX_ROW, Range, column_letters, quote_sheet

Scalar: TypeAlias = "int | float | str | bool | ErrorValue | None"
"""A cell's value; dates are serial numbers."""

DIV0 = ErrorValue("#DIV/0!")
VALUE_ERROR = ErrorValue("#VALUE!")

# How tightly an operator binds (Excel's order); an operand that binds less is put in parentheses.
_COMPARE, _JOIN, _ADD, _MULTIPLY, _ATOM = range(5)

_CORNERS = re.compile(r"(\$?)[A-Z]+(\$?)[0-9]*(?::(\$?)[A-Z]+(\$?)[0-9]*)?")


@dataclass(frozen=True)
class Area:
    """A rectangle of cells as a formula refers to it, with the values they had when it was taken."""

    sheet: str
    range: Range
    grid: tuple[tuple[Scalar, ...], ...]
    """Rows of values; a whole column's end at the last row that was written."""
    dollars: tuple[bool, bool, bool, bool] = (False, False, False, False)
    """Whether first column, first row, last column, last row are absolute."""
    name: str = ""
    """Written instead of the address: a defined name or a structured reference."""

    def text(self, home: str) -> str:
        """How a formula on worksheet `home` writes it."""
        if self.name:
            return self.name
        prefix = "" if self.sheet == home else quote_sheet(self.sheet) + "!"
        first_row, first_column, last_row, last_column = self.range
        a, b, c, d = ("$" if fixed else "" for fixed in self.dollars)
        first, last = a + column_letters(first_column), c + column_letters(last_column)
        if last_row == MAX_ROW:
            return f"{prefix}{first}:{last}"
        first, last = f"{first}{b}{first_row}", f"{last}{d}{last_row}"
        return prefix + (first if self.range.size == 1 else f"{first}:{last}")

    def named(self, name: str) -> Area:
        """The same cells, written as `name`."""
        return Area(self.sheet, self.range, self.grid, self.dollars, name)

    @property
    def values(self) -> list[Scalar]:
        """Row-major."""
        return [value for row in self.grid for value in row]


def dollars_of(address: str) -> tuple[bool, bool, bool, bool]:
    """Which parts of an upper-case A1 address or range are absolute."""
    match = _CORNERS.fullmatch(address)
    if match is None:
        raise ValueError(f"{address!r} is not an upper-case A1 address")
    a, b, c, d = (bool(mark) for mark in match.groups())
    return (a, b, c, d) if ":" in address else (a, b, a, b)


class Expression:
    """A formula without its ``=``, and its result."""

    __slots__ = ("parts", "rank", "value")

    def __init__(self, value: Scalar, parts: tuple[str | Area, ...], rank: int = _ATOM) -> None:
        self.value = value
        self.parts = parts
        self.rank = rank

    def text(self, home: str) -> str:
        """How it reads in a formula on worksheet `home`."""
        return "".join(part if isinstance(part, str) else part.text(home) for part in self.parts)

    @property
    def areas(self) -> Iterator[Area]:
        """What it refers to, in order, repeats included."""
        return (part for part in self.parts if isinstance(part, Area))

    def __add__(self, other: Operand) -> Expression:
        return _binary("+", _ADD, self, other, lambda a, b: a + b)

    def __radd__(self, other: Operand) -> Expression:
        return _binary("+", _ADD, other, self, lambda a, b: a + b)

    def __sub__(self, other: Operand) -> Expression:
        return _binary("-", _ADD, self, other, lambda a, b: a - b)

    def __rsub__(self, other: Operand) -> Expression:
        return _binary("-", _ADD, other, self, lambda a, b: a - b)

    def __mul__(self, other: Operand) -> Expression:
        return _binary("*", _MULTIPLY, self, other, lambda a, b: a * b)

    def __rmul__(self, other: Operand) -> Expression:
        return _binary("*", _MULTIPLY, other, self, lambda a, b: a * b)

    def __truediv__(self, other: Operand) -> Expression:
        return _binary("/", _MULTIPLY, self, other, _divide)

    def __rtruediv__(self, other: Operand) -> Expression:
        return _binary("/", _MULTIPLY, other, self, _divide)

    def __neg__(self) -> Expression:
        value = as_number(self.value)
        body = self.parts if self.rank == _ATOM else ("(", *self.parts, ")")
        return Expression(value if isinstance(value, ErrorValue) else -value, ("-", *body), _ADD)

    def __and__(self, other: Operand) -> Expression:
        """Excel's ``&``: the two texts joined."""
        left, right = lift(self), lift(other)
        value: Scalar = _first_error(left.value, right.value)
        if value is None:
            value = as_text(left.value) + as_text(right.value)
        return Expression(value, _infix("&", _JOIN, left, right), _JOIN)

    def __lt__(self, other: Operand) -> Expression:
        return _compare("<", self, other, lambda a, b: a < b)

    def __le__(self, other: Operand) -> Expression:
        return _compare("<=", self, other, lambda a, b: a <= b)

    def __gt__(self, other: Operand) -> Expression:
        return _compare(">", self, other, lambda a, b: a > b)

    def __ge__(self, other: Operand) -> Expression:
        return _compare(">=", self, other, lambda a, b: a >= b)


Operand: TypeAlias = "Expression | int | float | str | bool"


def lift(operand: Operand) -> Expression:
    """A constant as the formula that writes it; an expression as it is."""
    if isinstance(operand, Expression):
        return operand
    if isinstance(operand, bool):
        return Expression(operand, (str(operand).upper(),))
    if isinstance(operand, str):
        return Expression(operand, ('"' + operand.replace('"', '""') + '"',))
    return Expression(operand, (format(operand, ".15g"),))


def equal(left: Operand, right: Operand) -> Expression:
    """``left=right``, texts compared without regard to case."""
    return _compare("=", left, right, lambda a, b: a == b)


def power(base: float, exponent: float) -> float:
    """`base` to a whole exponent by repeated multiplication: C's ``pow`` differs between machines."""
    if exponent != int(exponent):
        raise ValueError(f"{exponent} is not a whole exponent")
    result = 1.0
    for _ in range(abs(int(exponent))):
        result *= base
    return result if exponent >= 0 else 1 / result


def as_number(value: Scalar) -> int | float | ErrorValue:
    """What arithmetic makes of a value."""
    if value is None:
        return 0
    if isinstance(value, ErrorValue):
        return value
    if isinstance(value, str):
        return VALUE_ERROR
    return value


def as_text(value: Scalar) -> str:
    """What ``&`` makes of a value; whole numbers without a point."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    return value if isinstance(value, str) else format(value, ".15g")


def round_half_away(number: float, digits: int) -> float:
    """As Excel's ROUND: on the decimal digits that are shown, halves away from zero."""
    step = Decimal(1).scaleb(-digits)
    return float(Decimal(repr(number)).quantize(step, ROUND_HALF_UP))


def _first_error(*values: Scalar) -> ErrorValue | None:
    return next((value for value in values if isinstance(value, ErrorValue)), None)


def _divide(a: float, b: float) -> float | ErrorValue:
    return DIV0 if b == 0 else a / b


def _infix(sign: str, rank: int, left: Expression, right: Expression) -> tuple[str | Area, ...]:
    # a-(b-c) and a/(b*c) keep their parentheses; so does a+(b+c), which Excel would keep as typed
    head = left.parts if left.rank >= rank else ("(", *left.parts, ")")
    tail = right.parts if right.rank > rank else ("(", *right.parts, ")")
    return (*head, sign, *tail)


def _binary(
    sign: str, rank: int, left: Operand, right: Operand, apply: Callable[[float, float], float | ErrorValue]
) -> Expression:
    a, b = lift(left), lift(right)
    x, y = as_number(a.value), as_number(b.value)
    if isinstance(x, ErrorValue):
        value: Scalar = x
    elif isinstance(y, ErrorValue):
        value = y
    else:
        value = apply(x, y)
    return Expression(value, _infix(sign, rank, a, b), rank)


def _compare(sign: str, left: Operand, right: Operand, apply: Callable[[_Order, _Order], bool]) -> Expression:
    a, b = lift(left), lift(right)
    value: Scalar = _first_error(a.value, b.value)
    if value is None:
        value = apply(_order(a.value), _order(b.value))
    return Expression(value, _infix(sign, _COMPARE, a, b), _COMPARE)


_Order: TypeAlias = tuple[int, float, str]


def _order(value: Scalar) -> _Order:
    """Excel orders numbers before text before booleans."""
    if isinstance(value, bool):
        return 2, value, ""
    return (1, 0, value.casefold()) if isinstance(value, str) else (0, value or 0, "")

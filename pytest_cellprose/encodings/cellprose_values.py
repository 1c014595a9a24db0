"""Cell values in `cellprose` texts: numbers in few tokens, and text that would read as something else."""

from __future__ import annotations

import re
from decimal import Decimal

from pytest_cellprose.encodings.gfm import escape_cell, one_line
from pytest_cellprose.encodings.values import ERROR
from pytest_cellprose.workbook.model import Cell
from pytest_cellprose.workbook.number_formats import serial_from_text, serial_text

# 4 Cell text

_MAY_READ_OTHERWISE = frozenset("0123456789+-.#=?'TF")
_DIGITS = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""Wider than what the grid writes as a number: a model would take ``007`` and ``+5`` for numbers too."""


def reads_as_another_kind(text: str) -> bool:
    """Whether a text would be taken for a number, date, boolean, error, formula or ``?``."""
    if text[0] not in _MAY_READ_OTHERWISE:
        return False
    return (
        text[0] in "='"
        or text in ("?", "TRUE", "FALSE")
        or _DIGITS.fullmatch(text) is not None
        or ERROR.fullmatch(text) is not None
        or serial_from_text(text) is not None
    )


def value_text(cell: Cell, typed: bool, date1904: bool) -> str:
    """What the grid shows for a cell that holds no text. `typed`: no other cell's array formula fills it."""
    value = cell.value
    if value is None:
        return "" if cell.formula is None else "?"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return escape_cell(one_line(value))
    if cell.number_format != "General":
        date = serial_text(value, cell.number_format, date1904)
        if date is not None:
            return date
    return number_text(value, typed and cell.formula is None)


def number_text(number: int | float, typed: bool) -> str:
    """A number in few tokens: typed ones of up to 9 digits exactly, the others to within 0.05 %."""
    magnitude = abs(number)
    if isinstance(number, int):
        if typed or magnitude < 10**15:
            return str(number)
        return _scientific(f"{Decimal(number):.4e}")
    if number.is_integer() and magnitude < 1e15:
        return str(int(number))
    if typed:
        exact = repr(number)
        if len(exact) <= 9 or _significant_digits(exact) <= 9:
            return _plain(exact) if magnitude >= 1e-6 and magnitude < 1e15 else _scientific(exact)
    if magnitude >= 1e15 or magnitude < 1e-6:
        return _scientific(f"{number:.4e}")
    if magnitude >= 1000:
        return f"{number:.0f}"
    if magnitude >= 1:
        return f"{number:.3f}".rstrip("0").rstrip(".")
    if magnitude >= 0.001:
        return _plain(f"{number:.6f}")
    return _plain(f"{Decimal(f'{number:.4e}'):f}")


def _significant_digits(text: str) -> int:
    return len(text.partition("e")[0].lstrip("-0.").replace(".", ""))


def _plain(text: str) -> str:
    """Fixed notation without trailing zeros and without the zero before the point."""
    if "e" in text:
        text = f"{Decimal(text):f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    if text.startswith("0."):
        return text[1:]
    return "-" + text[2:] if text.startswith("-0.") else text


def _scientific(text: str) -> str:
    mantissa, mark, exponent = text.partition("e")
    if not mark:
        return text
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}e{int(exponent)}"

"""Numbers, names and amounts in sentences: one rule for plurals, two for dollars (by itself, and in a column)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path


def counted(number: int, noun: str) -> str:
    """``1 cell``, ``1,062 cells``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def some(names: Sequence[str], most: int = 4) -> str:
    """The first few, and how many more there are."""
    return ", ".join(names[:most]) + (f", and {len(names) - most} more" if len(names) > most else "")


def relative(path: Path, root: Path) -> str:
    """The path as seen from `root`, if it lies below."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


NANOUSD = 10**9


def dollars(nanousd: int) -> str:
    """For a reader: at least cents, and two digits that say something (``$0.0012``, ``$12.35``)."""
    value = Decimal(nanousd) / NANOUSD
    if value == 0:
        return "$0.00"
    digits = max(2, 1 - value.adjusted())
    return f"${value:,.{min(digits, 9)}f}"


NOTHING = "–"
"""Not measured, or undefined."""

INFINITE = "∞"


def dollar_column(values: Sequence[float | None], exact: Sequence[float | None] | None = None) -> list[str]:
    """A column of amounts, all with the decimals that show three significant digits of the smallest.

    `exact` are those of the amounts that need the digits; by default all.
    """
    sizes = [abs(value) for value in exact or values if value and not math.isinf(value)]
    decimals = min(9, max(2, 2 - math.floor(math.log10(min(sizes))))) if sizes else 2
    return [_dollar(value, decimals) for value in values]


def dollar(value: float | None) -> str:
    """One measured amount by itself, in dollars."""
    return dollar_column([value])[0]


def _dollar(value: float | None, decimals: int) -> str:
    if value is None:
        return NOTHING
    return INFINITE if math.isinf(value) else f"${value:,.{decimals}f}"

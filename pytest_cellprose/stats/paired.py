"""Tests on paired outcomes: exact McNemar and Holm's correction (protocol section 7)."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

ALPHA = 0.05


def mcnemar(a_only: int, b_only: int) -> float:
    """Exact two-sided p of the disagreements: cases that only A and only B passed; ties are left out.

    In whole numbers up to the last division, because 2**n overflows a float from n = 1024 on. Without a
    disagreement p is 1. Raises ValueError for negative counts.
    """
    if a_only < 0 or b_only < 0:
        raise ValueError(f"mcnemar: counts must not be negative, not {a_only} and {b_only}")
    n = a_only + b_only
    tail = sum(comb(n, i) for i in range(min(a_only, b_only) + 1))
    return min(1.0, 2 * tail / (1 << n))


def holm(ps: Sequence[float]) -> list[float]:
    """Holm's step-down adjusted p values, in the order given."""
    adjusted = [0.0] * len(ps)
    highest = 0.0
    for rank, i in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[i]))
        adjusted[i] = highest
    return adjusted


def fewest_deciding(pairs: int) -> int:
    """How many disagreements, all one way, the clearest of so many pairs needs before Holm lets it decide."""
    needed = 1
    while pairs * mcnemar(needed, 0) >= ALPHA:
        needed += 1
    return needed

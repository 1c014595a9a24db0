"""Quantiles of the Beta distribution.

Written out, because the library that has them takes half a second and 15 MB to load, for two numbers an encoding.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import count

_TINY = 1e-300
"""Stands for a denominator of 0."""


def beta_quantile(share: float, a: float, b: float) -> float:
    """Where the distribution function of Beta(a, b) reaches `share`; within 1e-12 for a + b up to 10,000.

    Found by halving the interval, which is slower than Newton's method and never led astray. Raises ValueError
    unless a and b are positive and `share` lies between 0 and 1.
    """
    if not (a > 0 and b > 0 and 0 < share < 1):
        raise ValueError(f"beta_quantile: a and b must be positive and share within (0, 1), not {a}, {b} and {share}")
    low, high = 0.0, 1.0
    middle = 0.5
    while low < middle < high and high - low > 1e-15:
        if _incomplete_beta(middle, a, b) < share:
            low = middle
        else:
            high = middle
        middle = (low + high) / 2
    return middle


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """I_x(a, b), regularised, for 0 < x < 1: a continued fraction (DLMF 8.17.22), and I_x(a, b) = 1 - I_1-x(b, a)
    on the side where that converges faster."""
    beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    front = math.exp(a * math.log(x) + b * math.log1p(-x) - beta)
    if x < (a + 1) / (a + b + 2):
        return front / a / _continued_fraction(_coefficients(x, a, b))
    return 1 - front / b / _continued_fraction(_coefficients(1 - x, b, a))


def _coefficients(x: float, a: float, b: float) -> Iterator[float]:
    """d1, d2, ... of DLMF 8.17.23."""
    for m in count():
        yield -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        yield (m + 1) * (b - m - 1) * x / ((a + 2 * m + 1) * (a + 2 * m + 2))


def _continued_fraction(coefficients: Iterable[float]) -> float:
    """1 + d1 / (1 + d2 / (1 + ...)), by Lentz's method as Thompson and Barnett changed it."""
    above, below, value = 1.0, 0.0, 1.0
    for coefficient in coefficients:
        below = 1 / ((1 + coefficient * below) or _TINY)
        above = (1 + coefficient / above) or _TINY
        value *= above * below
        if abs(above * below - 1) < 1e-15:
            break
    return value

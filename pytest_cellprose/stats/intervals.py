"""Intervals: the paired bootstrap over workbooks and Jeffreys' interval of a share (protocol section 7)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pytest_cellprose.stats.beta import beta_quantile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

SEED = 20261009
RESAMPLES = 10_000

Interval: TypeAlias = tuple[float, float]


class WorkbookMean(NamedTuple):
    """One encoding on one workbook, averaged over the repeats."""

    cost: float | None
    """Per call, in any one unit; None: a call was answered but its tokens were not reported."""
    accuracy: float
    """In [0, 1]."""


class PairedBootstrap(NamedTuple):
    """Challenger against baseline over the same workbooks."""

    workbooks: int
    challenger_accuracy: float
    baseline_accuracy: float
    ratio: float | None
    """Cost per correct, challenger over baseline; may be infinite; None when it is undefined (0 / 0) or the
    costs are unknown."""
    interval: Interval | None
    """95 % of the ratio; ends may be infinite; None for one workbook or unknown costs."""
    accuracy_difference: float
    """Challenger − baseline."""
    accuracy_interval: Interval | None
    """95 % of the difference, from the same resamples; None for one workbook."""


def paired_bootstrap(
    challenger: Mapping[str, WorkbookMean | tuple[float | None, float]],
    baseline: Mapping[str, WorkbookMean | tuple[float | None, float]],
) -> PairedBootstrap:
    """The ratio of cost per correct and the accuracy difference, with 95 % percentile intervals.

    Both sides map workbook name -> (mean cost per call, mean accuracy), for the same workbooks. Workbooks are
    sorted by name and resampled with a fixed seed, afresh for each comparison, so the same numbers give the
    same interval wherever and in whatever order they were measured.

    Raises ValueError when there is no workbook or the two sides are not about the same ones.
    """
    if challenger.keys() != baseline.keys():
        odd = ", ".join(sorted(challenger.keys() ^ baseline.keys()))
        raise ValueError(f"paired_bootstrap: both sides need the same workbooks; only one side has {odd}")
    if not challenger:
        raise ValueError("paired_bootstrap: there is no workbook to compare on")

    import numpy as np

    names = sorted(challenger)
    n = len(names)
    costs = [[side[name][0] for name in names] for side in (challenger, baseline)]
    known = all(cost is not None for side in costs for cost in side)
    own_cost, their_cost = (np.array(side if known else [1.0] * n, dtype=np.float64) for side in costs)
    own_right, their_right = (
        np.array([side[name][1] for name in names], dtype=np.float64) for side in (challenger, baseline)
    )

    def ratios(rows: NDArray[np.int64], undefined: float) -> Floats:
        above = own_cost[rows].mean(axis=1) * their_right[rows].mean(axis=1)
        below = their_cost[rows].mean(axis=1) * own_right[rows].mean(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio: Floats = above / below
        return np.where(np.isnan(ratio), undefined, ratio)

    def differences(rows: NDArray[np.int64]) -> Floats:
        difference: Floats = own_right[rows].mean(axis=1) - their_right[rows].mean(axis=1)
        return difference

    whole = np.arange(n, dtype=np.int64)[np.newaxis, :]
    point = float(ratios(whole, math.nan)[0])
    interval = accuracy_interval = None
    if n > 1:
        rows = np.random.default_rng(SEED).integers(0, n, (RESAMPLES, n))
        if known:
            interval = (_percentile(ratios(rows, 0.0), 0.025), _percentile(ratios(rows, math.inf), 0.975))
        difference = differences(rows)
        accuracy_interval = (_percentile(difference, 0.025), _percentile(difference, 0.975))
    return PairedBootstrap(
        workbooks=n,
        challenger_accuracy=float(own_right.mean()),
        baseline_accuracy=float(their_right.mean()),
        ratio=point if known and not math.isnan(point) else None,
        interval=interval,
        accuracy_difference=float(differences(whole)[0]),
        accuracy_interval=accuracy_interval,
    )


def _percentile(values: Floats, share: float) -> float:
    """By linear interpolation; between a finite and an infinite value infinite (NumPy's would be NaN)."""
    import numpy as np

    ordered = np.sort(values)
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    low, high = float(ordered[below]), float(ordered[min(below + 1, len(ordered) - 1)])
    part = position - below
    if part == 0:
        return low
    return math.inf if math.isinf(high) else low + (high - low) * part


def jeffreys(k: int, n: int) -> Interval | None:
    """Jeffreys' 95 % interval of the share k / n, with the end points 0 and 1 exact for k = 0 and k = n.

    None for n = 0. Raises ValueError unless 0 <= k <= n.
    """
    if not 0 <= k <= n:
        raise ValueError(f"jeffreys: k must lie between 0 and n, not {k} of {n}")
    if n == 0:
        return None
    low, high = (beta_quantile(share, k + 0.5, n - k + 0.5) for share in (0.025, 0.975))
    return (0.0 if k == 0 else low, 1.0 if k == n else high)

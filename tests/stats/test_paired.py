"""Right values: scipy's binomtest, statsmodels' mcnemar and multipletests, worked out beforehand."""

from __future__ import annotations

import pytest

from pytest_cellprose.stats import holm, mcnemar
from pytest_cellprose.stats.paired import fewest_deciding


@pytest.mark.parametrize(
    ("a_only", "b_only", "p"),
    [
        (12, 2, 0.0129394531),
        (18, 7, 0.0432852507),
        (6, 5, 1.0),
        (0, 0, 1.0),
        (1, 0, 1.0),
        (2, 0, 0.5),
        (3, 0, 0.25),
        (4, 0, 0.125),
        (5, 0, 0.0625),
        (6, 0, 0.03125),
        (7, 0, 0.015625),
        (6, 1, 0.125),
        (7, 1, 0.0703125),
        (8, 1, 0.0390625),
        (8, 2, 0.109375),
        (9, 2, 0.0654296875),
        (9, 1, 0.021484375),
        (10, 2, 0.0385742188),
        (10, 10, 1.0),
        (30, 12, 0.0079158973),
        (600, 500, 0.0028195450),
        (5, 1, 0.21875),
    ],
)
def test_mcnemar_is_exact_and_symmetric(a_only: int, b_only: int, p: float) -> None:
    assert mcnemar(a_only, b_only) == pytest.approx(p, abs=5.1e-11)
    assert mcnemar(b_only, a_only) == mcnemar(a_only, b_only)


def test_mcnemar_of_many_disagreements_does_not_overflow() -> None:
    assert mcnemar(900, 900) == 1.0
    assert mcnemar(5000, 0) == 0.0  # 2**-4999 underflows


def test_mcnemar_refuses_negative_counts() -> None:
    with pytest.raises(ValueError, match="-1"):
        mcnemar(-1, 3)


@pytest.mark.parametrize(
    ("ps", "adjusted"),
    [
        ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]),
        ([0.02, 0.02, 0.02], [0.06, 0.06, 0.06]),
        ([0.01, 0.02, 0.022], [0.03, 0.04, 0.04]),
        ([0.03125, 0.03125, 1], [0.09375, 0.09375, 1]),
        ([0.015625, 1, 1], [0.046875, 1, 1]),
        ([], []),
        ([0.2], [0.2]),
    ],
)
def test_holm(ps: list[float], adjusted: list[float]) -> None:
    assert holm(ps) == pytest.approx(adjusted)


@pytest.mark.parametrize(
    ("counts", "adjusted"),
    [
        ([(12, 2), (18, 7), (20, 19)], [0.038818, 0.086571, 1.0]),
        ([(10, 1), (9, 1), (8, 1)], [0.035156, 0.042969, 0.042969]),
        ([(12, 2), (0, 0), (18, 7)], [0.038818, 1.0, 0.086571]),
        (
            [(12, 1), (10, 1), (9, 2), (8, 3), (4, 1)] + [(5, 5)] * 10,
            [0.05127, 0.164062, 0.850586] + [1.0] * 12,
        ),
    ],
)
def test_holm_of_mcnemar(counts: list[tuple[int, int]], adjusted: list[float]) -> None:
    assert holm([mcnemar(a, b) for a, b in counts]) == pytest.approx(adjusted, abs=5.1e-7)


@pytest.mark.parametrize(("pairs", "needed"), [(1, 6), (2, 7), (3, 7), (6, 8), (10, 9), (15, 10), (21, 10), (28, 11)])
def test_the_fewest_disagreements_that_can_decide(pairs: int, needed: int) -> None:
    assert fewest_deciding(pairs) == needed

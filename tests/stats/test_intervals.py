"""Right values: scipy, statsmodels and a separate NumPy computation, worked out beforehand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_cellprose.stats import jeffreys, paired_bootstrap
from pytest_cellprose.stats.intervals import SEED

Side = dict[str, tuple[float | None, float]]


def side(cost: list[float], accuracy: list[float]) -> Side:
    return {f"w{i}": (c, a) for i, (c, a) in enumerate(zip(cost, accuracy, strict=True))}


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [
        (0, 1, 0.0, 0.853254),
        (1, 1, 0.146746, 1.0),
        (0, 4, 0.0, 0.444763),
        (1, 4, 0.028471, 0.716248),
        (3, 4, 0.283752, 0.971529),
        (4, 4, 0.555237, 1.0),
        (0, 10, 0.0, 0.217196),
        (1, 10, 0.011012, 0.381315),
        (5, 10, 0.223529, 0.776471),
        (9, 10, 0.618685, 0.988988),
        (10, 10, 0.782804, 1.0),
        (0, 29, 0.0, 0.082286),
        (15, 29, 0.341027, 0.690199),
        (29, 29, 0.917714, 1.0),
        (50, 100, 0.403174, 0.596826),
        (52, 100, 0.422681, 0.616180),
        (62, 100, 0.522549, 0.710616),
        (99, 100, 0.954221, 0.998919),
        (0, 100, 0.0, 0.024745),
        (87, 120, 0.640447, 0.798849),
        (120, 120, 0.979327, 1.0),
    ],
)
def test_jeffreys(k: int, n: int, low: float, high: float) -> None:
    interval = jeffreys(k, n)
    assert interval == pytest.approx((low, high), abs=5.1e-7)
    assert interval is not None
    if k == 0:
        assert interval[0] == 0.0
    if k == n:
        assert interval[1] == 1.0


def test_jeffreys_of_nothing_is_none() -> None:
    assert jeffreys(0, 0) is None


@pytest.mark.parametrize(("k", "n"), [(-1, 3), (4, 3)])
def test_jeffreys_refuses_more_passes_than_attempts(k: int, n: int) -> None:
    with pytest.raises(ValueError, match=f"not {k} of {n}"):
        jeffreys(k, n)


def test_the_generator_draws_what_the_rule_says() -> None:
    rows = np.random.default_rng(SEED).integers(0, 6, (2, 6))
    assert rows.tolist() == [[3, 2, 1, 2, 5, 3], [3, 1, 1, 5, 3, 2]]


INF = math.inf
COSTS_3 = ([100, 200, 300, 150, 120, 80], [200, 300, 500, 250, 210, 130])


@pytest.mark.parametrize(
    ("challenger", "baseline", "ratio", "interval", "difference", "difference_interval"),
    [
        (
            side([120, 300, 90, 450, 210, 160], [1, 0.8, 1, 0.6, 0.9, 1]),
            side([260, 520, 150, 900, 400, 310], [1, 0.7, 1, 0.6, 0.8, 1]),
            0.5038627247,
            (0.4805314112, 0.5351533283),
            0.0333333333,
            (0, 0.0666666667),
        ),
        (
            side([100, 200, 300, 150], [0.5, 0.75, 0.25, 1]),
            side([110, 180, 320, 140], [0.5, 1, 0.25, 0.75]),
            1.0,
            (0.7826086957, 1.3604651163),
            0,
            (-0.1875, 0.1875),
        ),
        (
            side(COSTS_3[0], [0] * 6),
            side(COSTS_3[1], [0.5, 0, 0, 0, 0, 0]),
            INF,
            (0, INF),
            -0.0833333333,
            (-0.25, 0),
        ),
        (
            side(COSTS_3[0], [0.5, 0, 0, 0, 0, 0]),
            side(COSTS_3[1], [0, 0, 0.5, 0, 0, 0]),
            0.5974842767,
            (0, INF),
            0,
            (-0.25, 0.25),
        ),
    ],
    ids=["cheaper", "same", "nothing-right", "little-right"],
)
def test_worked_bootstraps(
    challenger: Side,
    baseline: Side,
    ratio: float,
    interval: tuple[float, float],
    difference: float,
    difference_interval: tuple[float, float],
) -> None:
    numbers = paired_bootstrap(challenger, baseline)
    assert numbers.ratio == pytest.approx(ratio, rel=1e-9)
    assert numbers.interval == pytest.approx(interval, rel=1e-9)
    assert numbers.accuracy_difference == pytest.approx(difference, abs=1e-10)
    assert numbers.accuracy_interval == pytest.approx(difference_interval, abs=1e-10)
    assert numbers.workbooks == len(challenger)


def test_one_workbook_has_no_interval() -> None:
    numbers = paired_bootstrap({"w": (1.0, 1.0)}, {"w": (2.0, 0.5)})
    assert numbers.ratio == 0.25
    assert numbers.interval is None
    assert numbers.accuracy_interval is None


def test_nothing_right_on_either_side_has_no_ratio_and_no_nan() -> None:
    numbers = paired_bootstrap(side([1, 2, 3], [0, 0, 0]), side([3, 2, 1], [0, 0, 0]))
    assert numbers.ratio is None
    assert numbers.interval == (0.0, INF)
    assert numbers.accuracy_interval == (0.0, 0.0)


def test_an_end_between_a_finite_and_an_infinite_value_is_infinite() -> None:
    # Of 3 workbooks the challenger answers only one: (2/3)^3 = 30 % of the resamples are infinite.
    numbers = paired_bootstrap(side([1, 1, 1], [1, 0, 0]), side([1, 1, 1], [1, 1, 1]))
    assert numbers.interval == (1.0, INF)


def test_unknown_cost_leaves_accuracy() -> None:
    numbers = paired_bootstrap({"a": (None, 1.0), "b": (1.0, 0.5)}, {"a": (1.0, 1.0), "b": (1.0, 1.0)})
    assert numbers.ratio is None
    assert numbers.interval is None
    assert numbers.accuracy_difference == -0.25


def test_sides_must_be_about_the_same_workbooks() -> None:
    with pytest.raises(ValueError, match="only one side has b"):
        paired_bootstrap({"a": (1.0, 1.0), "b": (1.0, 1.0)}, {"a": (1.0, 1.0)})
    with pytest.raises(ValueError, match="no workbook"):
        paired_bootstrap({}, {})


pairs = st.lists(
    st.tuples(
        st.integers(1, 10**9),
        st.integers(0, 8),
        st.integers(1, 10**9),
        st.integers(0, 8),
        st.text(min_size=1),
    ),
    min_size=1,
    max_size=8,
    unique_by=lambda row: row[-1],
)


def sides(rows: list[tuple[int, int, int, int, str]], scale: float = 1.0) -> tuple[Side, Side]:
    return (
        {name: (cost * scale, right / 8) for cost, right, _, _, name in rows},
        {name: (cost * scale, right / 8) for _, _, cost, right, name in rows},
    )


@settings(max_examples=25, deadline=None)
@given(pairs, st.randoms(use_true_random=False))
def test_order_of_the_workbooks_is_irrelevant(rows: list[tuple[int, int, int, int, str]], random: object) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert paired_bootstrap(*sides(rows)) == paired_bootstrap(*sides(shuffled))


@settings(max_examples=25, deadline=None)
@given(pairs, st.sampled_from([2.0**-30, 0.5, 4.0, 2.0**20]))
def test_the_unit_of_cost_is_irrelevant(rows: list[tuple[int, int, int, int, str]], scale: float) -> None:
    # Powers of two, so that scaling itself rounds nothing.
    assert paired_bootstrap(*sides(rows)) == paired_bootstrap(*sides(rows, scale))


@settings(max_examples=25, deadline=None)
@given(pairs)
def test_swapping_the_sides_gives_the_reciprocal(rows: list[tuple[int, int, int, int, str]]) -> None:
    there, back = paired_bootstrap(*sides(rows)), paired_bootstrap(*reversed(sides(rows)))
    assert back.accuracy_difference == pytest.approx(-there.accuracy_difference, abs=1e-12)
    if there.ratio is None:
        assert back.ratio is None
    elif 0 < there.ratio < INF:
        assert back.ratio == pytest.approx(1 / there.ratio, rel=1e-9)


@settings(max_examples=25, deadline=None)
@given(pairs.filter(lambda rows: len(rows) > 1 and all(row[1] and row[3] for row in rows)))
def test_swapping_the_sides_turns_the_interval_round(rows: list[tuple[int, int, int, int, str]]) -> None:
    there, back = paired_bootstrap(*sides(rows)).interval, paired_bootstrap(*reversed(sides(rows))).interval
    assert there is not None
    assert back is not None
    # Order statistics turn round exactly; a value interpolated between two of them lies between the same two.
    resampled = np.sort(_ratios(rows))
    for end, other, below in ((there[0], back[1], 249), (there[1], back[0], 9749)):
        low, high = resampled[below : below + 2]
        assert low * (1 - 1e-9) <= end <= high * (1 + 1e-9)
        assert 1 / high * (1 - 1e-9) <= other <= 1 / low * (1 + 1e-9)


def _ratios(rows: list[tuple[int, int, int, int, str]]) -> np.ndarray:
    """Every resample's ratio, worked out from the definition."""
    columns = np.array([row[:4] for row in sorted(rows, key=lambda row: row[-1])], dtype=float)
    means = columns[np.random.default_rng(20261009).integers(0, len(rows), (10_000, len(rows)))].mean(axis=1)
    return (means[:, 0] / means[:, 1]) / (means[:, 2] / means[:, 3])


@settings(max_examples=25, deadline=None)
@given(pairs)
def test_the_interval_is_ordered_and_free_of_nan(rows: list[tuple[int, int, int, int, str]]) -> None:
    numbers = paired_bootstrap(*sides(rows))
    if numbers.interval is not None:
        low, high = numbers.interval
        assert 0 <= low <= high

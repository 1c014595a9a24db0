"""What a single workbook does to a ratio, against numbers worked out from the definition."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_cellprose.stats import leave_one_out

Side = dict[str, tuple[float | None, float]]


def test_a_workbook_that_makes_the_headline_is_named() -> None:
    """Ten of equal cost per correct; in the eleventh the baseline costs a hundred times as much."""
    challenger: Side = {f"w{i:02}": (2.0, 1.0) for i in range(10)} | {"ledger": (2.0, 1.0)}
    baseline: Side = {f"w{i:02}": (2.0, 1.0) for i in range(10)} | {"ledger": (200.0, 1.0)}
    found = leave_one_out(challenger, baseline)
    assert found is not None
    assert found.workbook == "ledger"
    assert found.without_it == found.highest == 1.0
    assert found.lowest == pytest.approx(20 / 218)  # one of the others left out


def test_a_worked_example() -> None:
    """By hand: cost 1 2 3 and accuracy 1 1 1/2 against cost 4 2 3 and accuracy 1 1/2 1."""
    challenger: Side = {"a": (1, 1), "b": (2, 1), "c": (3, 0.5)}
    baseline: Side = {"a": (4, 1), "b": (2, 0.5), "c": (3, 1)}
    # all: (6 / 2.5) / (9 / 2.5) = 2/3; without a: (5 / 1.5) / (5 / 1.5) = 1;
    # without b: (4 / 1.5) / (7 / 2) = 16/21; without c: (3 / 2) / (6 / 1.5) = 3/8
    found = leave_one_out(challenger, baseline)
    assert found is not None
    assert found == (pytest.approx(3 / 8), pytest.approx(1), "c", pytest.approx(3 / 8))  # 16/9 is more than 3/2


def test_a_workbook_without_which_one_side_has_nothing_right_moves_it_most() -> None:
    one_right: Side = {"a": (1, 0), "b": (1, 1), "c": (1, 0)}
    right: Side = dict.fromkeys("abc", (1, 1))
    found = leave_one_out(one_right, right)
    assert found is not None
    assert (found.workbook, found.without_it, found.highest) == ("b", float("inf"), float("inf"))
    found = leave_one_out(right, one_right)
    assert found is not None
    assert (found.workbook, found.without_it, found.lowest) == ("b", 0, 0)
    found = leave_one_out(one_right, one_right)
    assert found is not None
    assert (found.workbook, found.without_it) == ("b", None)
    assert (found.lowest, found.highest) == (1, 1)


@pytest.mark.parametrize(
    ("challenger", "baseline"),
    [
        ({}, {}),
        ({"a": (1, 1)}, {"a": (2, 1)}),
        ({"a": (None, 1), "b": (1, 1)}, {"a": (2, 1), "b": (1, 1)}),
        ({"a": (1, 0), "b": (1, 0)}, {"a": (2, 1), "b": (1, 1)}),
        ({"a": (1, 1), "b": (1, 1)}, {"a": (2, 0), "b": (1, 0)}),
        ({"a": (1, 0), "b": (1, 0)}, {"a": (2, 0), "b": (1, 0)}),
    ],
    ids=["none", "one", "unknown cost", "infinite", "zero", "undefined"],
)
def test_where_there_is_nothing_to_move(challenger: Side, baseline: Side) -> None:
    assert leave_one_out(challenger, baseline) is None


def test_both_sides_are_about_the_same_workbooks() -> None:
    with pytest.raises(ValueError, match="only one side has b"):
        leave_one_out({"a": (1, 1), "b": (1, 1)}, {"a": (1, 1)})


rows = st.lists(
    st.tuples(st.integers(1, 1000), st.integers(0, 4), st.integers(1, 1000), st.integers(0, 4)), min_size=2, max_size=9
)


def exact(rows: list[tuple[int, int, int, int]]) -> Fraction | None:
    """Cost per correct over cost per correct; None for 0 / 0, -1 for infinite."""
    own_cost, own_right, their_cost, their_right = (Fraction(sum(column)) for column in zip(*rows, strict=True))
    if own_right == 0:
        return None if their_right == 0 else Fraction(-1)
    return own_cost * their_right / (their_cost * own_right)


@given(rows)
def test_the_range_is_that_of_the_exact_ratios(rows: list[tuple[int, int, int, int]]) -> None:
    names = [f"w{i}" for i in range(len(rows))]
    found = leave_one_out(
        {name: (cost, right / 4) for name, (cost, right, _, _) in zip(names, rows, strict=True)},
        {name: (cost, right / 4) for name, (_, _, cost, right) in zip(names, rows, strict=True)},
    )
    whole = exact(rows)
    without = [exact(rows[:i] + rows[i + 1 :]) for i in range(len(rows))]
    if whole is None or whole <= 0:
        assert found is None
        return
    known = [float("inf") if ratio < 0 else float(ratio) for ratio in without if ratio is not None]
    if not known:
        assert found is None
        return
    assert found is not None
    assert (found.lowest, found.highest) == (pytest.approx(min(known)), pytest.approx(max(known)))
    moved = without[names.index(found.workbook)]
    if moved is None or moved <= 0:
        assert found.without_it in (None, 0, float("inf"))
    else:
        assert found.without_it == pytest.approx(float(moved))
        factor = max(moved / whole, whole / moved)
        others = [ratio for ratio in without if ratio is not None and ratio > 0]
        assert len(others) == len(without)
        assert float(factor) == pytest.approx(max(float(max(ratio / whole, whole / ratio)) for ratio in others))

"""How caps are divided among processes, in worked numbers, and how sums of estimates come about."""

from __future__ import annotations

import pytest

from pytest_cellprose.plan.cost import Estimate, share_lines, shares


@pytest.mark.parametrize(
    ("cap", "processes", "apart", "together", "each"),
    [
        (100, 1, 0, 100, 100),
        (100, 4, 0, 100, 25),
        (100, 4, 1, 75, 25),
        (100, 4, 4, 0, 25),
        (100, 3, 2, 34, 33),  # what does not divide stays with the run's own ledger
        (0, 2, 1, 0, 0),
    ],
)
def test_shares_of_a_cap_never_exceed_it(cap: int, processes: int, apart: int, together: int, each: int) -> None:
    assert shares({"house": cap}, processes, apart) == ({"house": together}, {"house": each})
    assert together + apart * each <= cap


@pytest.mark.parametrize(
    ("processes", "apart", "said"),
    [
        (4, 0, []),
        (4, 1, ["of every cap the 1 process that is started elsewhere has 1/4; the other 3 share the rest"]),
        (3, 2, ["of every cap the 2 processes that are started elsewhere have 1/3 each; the other 1 shares the rest"]),
        (2, 2, ["of every cap the 2 processes that are started elsewhere have 1/2 each"]),
    ],
)
def test_what_is_said_of_shares(processes: int, apart: int, said: list[str]) -> None:
    assert share_lines(["house"], processes, apart) == said
    assert share_lines([], processes, apart) == []


def test_estimates_add_up_but_for_the_greatest_excess() -> None:
    one = Estimate(cells=2, expected=10, worst=50, greatest_excess=30, unknown=("mine",))
    other = Estimate(cells=1, expected=5, worst=6, greatest_excess=1, unknown=("mine", "theirs"))
    assert one + other == Estimate(cells=3, expected=15, worst=56, greatest_excess=30, unknown=("mine", "theirs"))
    assert one + Estimate() == one

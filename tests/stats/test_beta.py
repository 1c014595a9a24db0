"""Right values: scipy's `betaincinv`, and what is known of the Beta distribution in closed form."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_cellprose.stats.beta import beta_quantile

scipy_special = pytest.importorskip("scipy.special")


@given(st.integers(1, 10_000), st.floats(0, 1), st.sampled_from([0.025, 0.05, 0.5, 0.95, 0.975]))
def test_the_quantile_is_scipys(n: int, part: float, share: float) -> None:
    k = round(part * n)
    expected = float(scipy_special.betaincinv(k + 0.5, n - k + 0.5, share))
    assert beta_quantile(share, k + 0.5, n - k + 0.5) == pytest.approx(expected, abs=1e-12, rel=0)


@pytest.mark.parametrize("share", [0.001, 0.025, 0.5, 0.975, 0.999])
def test_where_the_distribution_function_is_known(share: float) -> None:
    near = pytest.approx
    assert beta_quantile(share, 1, 1) == near(share, abs=1e-13)
    assert beta_quantile(share, 3, 1) == near(share ** (1 / 3), abs=1e-13)
    assert beta_quantile(share, 1, 3) == near(1 - (1 - share) ** (1 / 3), abs=1e-13)
    assert beta_quantile(share, 0.5, 0.5) == near(math.sin(math.pi * share / 2) ** 2, abs=1e-13)


@pytest.mark.parametrize(("share", "a", "b"), [(0.0, 1, 1), (1.0, 1, 1), (0.5, 0, 1), (0.5, 1, -1), (math.nan, 1, 1)])
def test_what_has_no_quantile_is_refused(share: float, a: float, b: float) -> None:
    with pytest.raises(ValueError, match="beta_quantile"):
        beta_quantile(share, a, b)

"""As many empty parametrised tests as ITEMS in the environment says: the least that pytest itself costs."""

from __future__ import annotations

import os

import pytest


@pytest.mark.parametrize("number", range(int(os.environ["ITEMS"])))
def test_nothing(number: int) -> None:
    pass

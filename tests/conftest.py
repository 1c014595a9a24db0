"""Shared by the plugin's own tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

OTHER_PLUGINS = ("flaky", "random_order", "randomly", "repeat", "rerunfailures", "pytest-retry")
"""Installed for tests/integration/test_other_plugins.py, which loads them by name; nothing else is to meet them."""


EVERY_FILE = os.environ.get("CELLPROSE_EVERY_FILE") == "1"
takes_long = pytest.mark.skipif(not EVERY_FILE, reason="reads every public file: CELLPROSE_EVERY_FILE=1 runs it")


@pytest.fixture
def pytester(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """pytest's own, without other plugins than those that a test loads itself: each takes time in each process."""
    blocked = (*OTHER_PLUGINS, "anyio", "hypothesispytest")
    monkeypatch.setenv("PYTEST_ADDOPTS", " ".join(f"-p no:{name}" for name in blocked))
    return pytester


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of public files that are not in this repository (see docs); the test is skipped without it."""
    named = os.environ.get("CELLPROSE_SHARED_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the public test files are not here: set CELLPROSE_SHARED_DATA to their folder")
    return folder

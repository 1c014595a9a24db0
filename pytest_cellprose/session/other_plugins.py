"""Other plugins that would call a cell again, and what is done about each by name.

Most need nothing: tests that take a cell run under a protocol of our own, in the plan's order, and share the one
call of their cell. What is left is refused before the first call, or told to leave a test alone.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

_RETRY = "pytest-retry"
"""Repeats a test inside the hook that makes its report, where no protocol keeps it away."""


def refusals(config: pytest.Config) -> list[str]:
    """What of other plugins cannot be reconciled with a benchmark: plugin, option, and what to do."""
    refused = []
    if getattr(config.option, "dist", "no") == "each":
        refused.append("pytest-xdist: --dist=each has every worker call every cell: use --dist=load, or leave it out")
    if config.pluginmanager.has_plugin(_RETRY) and config.pluginmanager.has_plugin("flaky"):
        refused.append(
            "pytest-retry and flaky both take the mark 'flaky', so that no test can be kept from both: "
            "switch one off, -p no:pytest-retry or -p no:flaky"
        )
    return refused


def refuse_loop(config: pytest.Config) -> None:
    """pytest-xdist's ``-f`` runs failed tests over and over; raises `pytest.UsageError` if that costs money."""
    if getattr(config.option, "looponfail", False) and (config.option.cellprose_live or config.option.cellprose_final):
        raise pytest.UsageError(
            "cellprose: pytest-xdist: -f (--looponfail) calls live models over and over: leave it out"
        )


def keep_from_repeating(config: pytest.Config, items: Iterable[pytest.Item]) -> None:
    """Mark tests that take a cell for pytest-retry, so that it leaves them alone, whatever marks they have."""
    if config.pluginmanager.has_plugin(_RETRY):
        for item in items:
            item.add_marker(pytest.mark.flaky(condition=False), append=False)  # the closest mark is the one it reads

"""This repository's own settings for its benchmark."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Without the plugin (``-p no:cellprose``) there is no benchmark to collect."""
    benchmark = Path(__file__).parent / "cells"
    if collection_path == benchmark and not config.pluginmanager.has_plugin("cellprose"):
        return True
    return None

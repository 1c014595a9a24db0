"""Warnings of a run: such that xdist can pass on, and without what is held out."""

from __future__ import annotations

from warnings import WarningMessage

import pytest


class PlainWarnings:
    """In xdist's workers: warnings that can be passed on."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_warning_recorded(self, warning_message: WarningMessage) -> None:
        from pytest_cellprose.record.plain import plain, sendable_integer

        if isinstance(warning_message.message, Warning):
            warning_message.message.args = plain(warning_message.message.args, integer=sendable_integer)


class SealedWarnings:
    """In a run that has held-out workbooks: a test's warning says where and of what kind, for it may quote a reply."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_warning_recorded(self, warning_message: WarningMessage, nodeid: str) -> None:
        from pytest_cellprose.session.letters import WITHHELD

        if nodeid and isinstance(warning_message.message, Warning):
            warning_message.message.args = (WITHHELD,)

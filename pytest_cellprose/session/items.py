"""How a test that takes a cell is run: once, and once more at the end of the run if the path to the model failed.

These tests have a protocol of their own because their reports depend on what the cell came to: the reports of a
test that will run again are held back. It also keeps plugins that repeat a failed test away from them, which would
buy a cell twice.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import pytest
from _pytest.runner import runtestprotocol

from pytest_cellprose.record.record import Record

RECORD = pytest.StashKey[Record]()
"""The record of the cell that an item took last."""

RERUN = "rerun"
"""Outcome of a report that stands for a test which will run again."""


@dataclass(frozen=True)
class HeldBack:
    """A test whose cell was not measured, with its reports: they count if it does not run again."""

    item: pytest.Item
    reports: Sequence[pytest.TestReport]
    properties: Sequence[tuple[str, object]]
    """The item's user properties before it ran."""


class CellTests:
    """Runs the tests of one process that take a cell; `retries`: how many more passes there are over faults."""

    def __init__(self, retries: int) -> None:
        self._retries = retries
        self._held_back: list[HeldBack] = []
        self.awaited: set[str] = set()
        """Node ids of tests that were to run again and have not been heard of since, in any process."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A hook: this object is registered as a plugin, for the hook's own arguments lead to no run."""
        if report.outcome == RERUN:
            self.awaited.add(report.nodeid)
        elif report.when == "teardown":
            self.awaited.discard(report.nodeid)

    def run(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """Run a test and log its reports, or hold them back and log that it will run again."""
        properties = list(item.user_properties)
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        faulted = _faulted(item)
        if RECORD in item.stash:
            del item.stash[RECORD]  # with its reply, which is in the store: items are kept until the session ends
        if self._retries and faulted:
            self._held_back.append(HeldBack(item, reports, properties))
            reports = [_rerun_report(reports)]
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def run_again(
        self,
        session: pytest.Session,
        *,
        allowed: Callable[[], bool],
        prepare: Callable[[Sequence[pytest.Item]], None],
        begin: Callable[[pytest.Item], None],
    ) -> None:
        """The passes over faulted cells. `allowed` is asked before each and `prepare` told its items; `begin` hears
        of each item before it runs. Whatever does not run again is reported as it was.
        """
        while self._held_back and self._retries and not _stopping(session) and allowed():
            self._retries -= 1
            again, self._held_back = self._held_back, []
            items = [held.item for held in again]
            prepare(items)
            try:
                for item, nextitem in zip(items, [*items[1:], None], strict=True):
                    if _stopping(session):
                        break
                    begin(item)
                    item.user_properties[:] = again[0].properties
                    self.run(item, nextitem)
                    del again[0]
            finally:
                self._held_back += again
        self.give_up(begin)

    def give_up(self, begin: Callable[[pytest.Item], None]) -> None:
        """Report every test that was to run again as it was."""
        while self._held_back:
            held = self._held_back.pop(0)
            begin(held.item)
            for report in held.reports:
                held.item.ihook.pytest_runtest_logreport(report=report)


def _faulted(item: pytest.Item) -> bool:
    """Whether a test's cell was not measured for a reason that may be gone later."""
    record = item.stash.get(RECORD, None)
    return record is not None and record.outcome.policy.again


def _stopping(session: pytest.Session) -> bool:
    return bool(session.shouldfail or session.shouldstop)


def _rerun_report(reports: Iterable[pytest.TestReport]) -> pytest.TestReport:
    """What is logged of a test that will run again: one report, neither passed nor failed."""
    by_weight = sorted(reports, key=lambda report: (report.failed, report.when == "call"))
    report = copy.copy(by_weight[-1])
    report.outcome = RERUN  # type: ignore[assignment]  # pytest knows three; plugins that rerun tests use this one
    return report

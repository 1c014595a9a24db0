"""A planned run as one process sees it: it hands out the cells, keeps their calls running, and sees them to the end.

Kept in ``config.stash``: `ControllerRun` in the controller, `WorkerRun` in every xdist worker.
"""

from __future__ import annotations

import signal
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from operator import itemgetter
from typing import Any, NoReturn

import pytest

from pytest_cellprose.cell import Cell
from pytest_cellprose.measure.engine import Engine
from pytest_cellprose.measure.prefetch import Prefetch
from pytest_cellprose.measure.spec import RunSpec
from pytest_cellprose.record.plain import visible
from pytest_cellprose.record.record import CellId, Record
from pytest_cellprose.session.items import CellTests
from pytest_cellprose.session.xdist_internals import hear_out
from pytest_cellprose.store.keeper import NoMoreCalls
from pytest_cellprose.store.layout import StoreError
from pytest_cellprose.store.shards import own_cells
from pytest_cellprose.wording import counted

_GIVES_UP = "(Ctrl-C gives them up)"


@dataclass(kw_only=True)
class Run:
    """A planned run, as this process sees it. What differs by role is in the controller's and the worker's."""

    spec: RunSpec
    engine: Engine
    tests: CellTests
    """Runs the tests of this process that take a cell."""
    selected: tuple[CellId, ...] = ()
    """The cells that are left after deselection, in the order of their tests."""
    shared: set[CellId] = field(default_factory=set)
    """Cells that more than one selected test takes."""
    prefetch: Prefetch[CellId, Record] | None = None
    """Keeps the calls of coming tests running; only where live cells run."""
    untaken: list[str] = field(default_factory=list)
    """Cells that were called ahead and whose tests never asked for them, with what went wrong, if anything did."""
    problems: list[str] = field(default_factory=list)
    """What kept records or reports from being written, in lines for the user; with any, the run is no success."""

    @property
    def process(self) -> str:
        """``main``, or the name of xdist's worker."""
        return "main"

    def begin(self, item: pytest.Item) -> None:
        """Before a test runs once more: the reports that come are about it."""

    def collected(self, session: pytest.Session) -> None:
        """When it is known which cells are selected, before the first of them runs."""

    def end(self, session: pytest.Session) -> None:
        """When the session ends and no call is under way."""

    def told_to_end(self) -> bool:
        """Whether no more tests are wanted of this process, although it has more."""
        return False

    @cached_property
    def position(self) -> dict[CellId, int]:
        """Every planned cell with its place in the plan's order."""
        whole = self.spec.manifest.shard is None
        planned = self.cells if whole else self.spec.manifest.matrix.cells()  # each cell once in memory
        return {cell: place for place, cell in enumerate(planned)}

    @cached_property
    def cells(self) -> list[CellId]:
        """The planned cells that this invocation runs, in the plan's order: all, or those of its shard."""
        return own_cells(self.spec.manifest)

    def parameters(self) -> list[Any]:
        """These cells as pytest parameters; cells that do not run in this mode carry a skip mark.

        Made for each test that takes them: kept, they would be a seventh of all objects of a large plan.
        """
        return [pytest.param(cell, id=str(cell), marks=self.mode_skips.get(cell.model, ())) for cell in self.cells]

    @cached_property
    def mode_skips(self) -> dict[str, pytest.MarkDecorator]:
        """The marks of the models that do not run in this mode."""
        skipped = self.spec.manifest.matrix.skipped_models
        return {model: pytest.mark.skip(reason=reason) for model, reason in skipped.items()}

    def runs(self, cell: CellId) -> bool:
        """Whether the mode lets the cell run."""
        return cell.model not in self.spec.manifest.matrix.skipped_models

    @property
    def calls_live_models(self) -> bool:
        """Whether the mode lets any planned cell of a live model run."""
        return any(
            model.live and alias not in self.spec.manifest.matrix.skipped_models
            for alias, model in self.spec.models.items()
        )

    def cell(self, cell: CellId) -> Cell:
        return Cell(cell, self.engine.set_of[cell.workbook], self._record)

    def look_ahead(self, items: Iterable[pytest.Item] | None) -> None:
        """Keep the calls of these tests' live cells running, in their order, while the tests report in order.

        No call is started ahead for a test that carries a skip mark, or that shares its cell with another.
        """
        cells = [cell_of(item) for item in items or () if not any(map(item.get_closest_marker, ("skip", "skipif")))]
        vendor = {alias: model.vendor for alias, model in self.spec.models.items() if model.live}
        if self.calls_live_models:
            upcoming = [cell for cell in cells if cell and cell.model in vendor and cell not in self.shared]
            self.prefetch = Prefetch(
                dict.fromkeys(upcoming),
                lane_of=lambda cell: vendor[cell.model],
                prepare=lambda cell: self.engine.prepared(cell, shared=self._may_be_stored(cell)),
                ceilings={name: self.engine.calls_at_a_time(name) for name in sorted(set(vendor.values()))},
                limited=lambda record: record.limited > 0,
                last=lambda record: record.outcome.policy.stops,
                halted=self.told_to_end,
                changed=partial(self.engine.note_limit, self.process),
            )

    def finish_calls(self, config: pytest.Config) -> bool:
        """Let the calls under way finish; they are paid for and recorded, whether a test asked for them or not.

        Ctrl-C ends the waiting: the calls that are still under way are given up, and this returns False.
        """
        prefetch, self.prefetch = self.prefetch, None
        if prefetch is None:
            return True
        try:
            if prefetch.under_way:
                tell(config, f"waiting for {counted(prefetch.under_way, 'call')} under way {_GIVES_UP}")
            left = prefetch.drain()
        except KeyboardInterrupt:
            given_up = prefetch.abandon()
            for cell in given_up:
                with suppress(StoreError):  # the keeper has it, and says so
                    self.engine.give_up(cell)
            tell(config, f"given up: {counted(len(given_up), 'call')}, which may be billed")
            return False
        called = {cell: error for cell, error in left.items() if not isinstance(error, NoMoreCalls)}
        self.untaken += [str(cell) if error is None else f"{cell}: {error}" for cell, error in called.items()]
        return True

    def finish_keeping(self) -> None:
        """When the session ends: what could not be stored is tried again, and told."""
        keeper = self.engine.keeper
        keeper.finish()
        with suppress(StoreError):  # a ledger that cannot be read has ended the run by now, which says so
            self.engine.ledger.state()  # leaves it as one object
        if keeper.failure is not None:
            self.problems.append(keeper.failure)

    def _record(self, cell: CellId) -> Record:
        if self.prefetch is not None and self.spec.models[cell.model].live:
            return self.prefetch.take(cell)
        return self.engine.prepared(cell, shared=self._may_be_stored(cell))()

    def _may_be_stored(self, cell: CellId) -> bool:
        """Whether another test may have brought the cell's record."""
        return cell in self.shared


def in_plan_order(run: Run, items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The items with those that take a cell in the plan's order; every other item keeps its place."""
    places = [None if (cell := cell_of(item)) is None else run.position.get(cell) for item in items]
    takers = [(place, item) for place, item in zip(places, items, strict=True) if place is not None]
    ordered = (item for _, item in sorted(takers, key=itemgetter(0)))
    return [item if place is None else next(ordered) for place, item in zip(places, items, strict=True)]


def select(run: Run, cells: Iterable[CellId | None]) -> None:
    """Note which cells the selected tests take."""
    counts = Counter(cell for cell in cells if cell is not None)
    run.selected = tuple(counts)
    run.shared = {cell for cell, tests in counts.items() if tests > 1}


def run_faulted_again(run: Run, session: pytest.Session) -> None:
    """One more pass over the tests whose cells were not measured, in this process.

    Not after a vendor's cap was reached: what is left of it is for cells that were never called.
    """

    def prepare(items: Sequence[pytest.Item]) -> None:
        if not run.finish_calls(session.config):
            raise KeyboardInterrupt
        run.engine.tries += 1
        run.look_ahead(items)

    def allowed() -> bool:
        return run.engine.keeper.failure is None and not run.engine.capped

    run.tests.run_again(session, allowed=allowed, prepare=prepare, begin=run.begin)


def finish_interrupted(run: Run, config: pytest.Config) -> None:
    """After Ctrl-C: let the calls under way finish, here and in xdist's workers, and of an episode with tools the turn.
    Another Ctrl-C ends the waiting."""
    if run.calls_live_models:
        run.engine.store.note_interruption()
    if not run.finish_calls(config) or not config.pluginmanager.has_plugin("dsession"):
        return
    tell(config, f"waiting for the workers' calls that are under way {_GIVES_UP}")
    with suppress(KeyboardInterrupt):
        hear_out(config)


def interrupt_on_sigterm(config: pytest.Config) -> None:
    """Have SIGTERM end the session as Ctrl-C does, for calls under way are paid for: CI runners and process managers
    send it before they kill. A worker that is told so ends its calls and the run."""
    if threading.current_thread() is not threading.main_thread():
        return

    def interrupt(signum: int, frame: object) -> NoReturn:
        raise KeyboardInterrupt("SIGTERM")

    before = signal.signal(signal.SIGTERM, interrupt)

    def restore() -> None:
        signal.signal(signal.SIGTERM, before)

    config.add_cleanup(restore)


def tell(config: pytest.Config, text: str) -> None:
    """Say something to whoever waits at the terminal; a worker has none."""
    reporter: pytest.TerminalReporter | None = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.ensure_newline()
        reporter.write_line(visible(f"cellprose: {text}"))
        reporter.flush()


def cell_of(item: pytest.Item) -> CellId | None:
    """The planned cell that a test takes, if it takes one."""
    callspec = getattr(item, "callspec", None)
    parameter = None if callspec is None else callspec.params.get("cell")
    return parameter if isinstance(parameter, CellId) else None

"""The run as one of xdist's workers sees it: the controller's plan, of which nothing is checked again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import pytest

from pytest_cellprose.measure.spec import RunSpec
from pytest_cellprose.record.record import CellId
from pytest_cellprose.session.items import CellTests
from pytest_cellprose.session.registry import engine_of, registered
from pytest_cellprose.session.run import Run, cell_of
from pytest_cellprose.session.xdist_internals import announce, told_to_end, worker_of
from pytest_cellprose.store.records import Store

PLAN = "cellprose_run"
"""Of the worker's input: the `RunSpec`, as JSON. A worker without one has no cells."""
PLACE = "cellprose_place"
"""Of the worker's input: its place among the workers; None for one that replaces a crashed worker."""
ORIGIN = "cellprose_origin"
"""Of the worker's input: what a process that was started elsewhere must know of the controller."""
UNTAKEN = "cellprose_untaken"
PROBLEMS = "cellprose_problems"
"""Of the worker's output: `Run.untaken` and `Run.problems`."""


class Outbox(Protocol):
    """What sends the records that are stored on this machine to the controller."""

    def require_environment(self, session: pytest.Session) -> None:
        """Refuse the session if a key or an address is missing here."""

    def rest(self) -> dict[str, Any]:
        """What was not sent yet, for the worker's output."""
        ...


@dataclass(kw_only=True)
class WorkerRun(Run):
    interactor: Any
    """xdist's plugin."""
    own: set[CellId | None] | None = None
    """The cells of the tests that this worker was given at the start; None where another scheduler than ours gives
    them out."""
    outbox: Outbox | None = None
    """Only in a worker elsewhere."""

    @property
    def process(self) -> str:
        return str(self.interactor.workerid)

    def begin(self, item: pytest.Item) -> None:
        announce(self.interactor, item)

    def collected(self, session: pytest.Session) -> None:
        if self.outbox is not None:
            self.outbox.require_environment(session)

    def end(self, session: pytest.Session) -> None:
        """Tell the controller what no report of a test has told."""
        output: dict[str, Any] = session.config.workeroutput  # type: ignore[attr-defined]
        output[UNTAKEN], output[PROBLEMS] = self.untaken, self.problems
        if self.outbox is not None:
            output.update(self.outbox.rest())

    def told_to_end(self) -> bool:
        """Whether xdist's controller wants no more tests of this worker.

        Other schedulers than ours (``--dist loadfile``) send the end mark along with a worker's last tests: it then
        says nothing, and whatever was given is run.
        """
        return self.own is not None and told_to_end(self.interactor)

    def look_ahead(self, items: Iterable[pytest.Item] | None) -> None:
        given = None if items is None else list(items)
        if given is not None:
            self.own = {cell_of(item) for item in given}
        super().look_ahead(given)

    def _may_be_stored(self, cell: CellId) -> bool:
        """Also by a worker that died, of whose tests this one has some now."""
        return super()._may_be_stored(cell) or (self.own is not None and cell not in self.own)


def received_run(config: pytest.Config, spec: RunSpec, store: Store | None = None) -> WorkerRun:
    """The controller's plan, in a worker. `store`: of this machine, if not the run's own."""
    offered = registered(config)
    engine = engine_of(spec, offered, config, store)
    return WorkerRun(spec=spec, engine=engine, tests=CellTests(spec.fault_retries), interactor=worker_of(config))


def arrive(config: pytest.Config) -> WorkerRun:
    """The run, in a worker on the controller's machine."""
    given: dict[str, Any] = config.workerinput  # type: ignore[attr-defined]
    run = received_run(config, RunSpec.model_validate_json(given[PLAN]))
    run.engine.keeper.follow()
    return run

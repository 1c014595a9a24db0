"""TODO"""

from __future__ import annotations

import pytest

from pytest_cellprose.measure.engine import Engine
from pytest_cellprose.measure.spec import RunSpec
from pytest_cellprose.session.items import CellTests
from pytest_cellprose.session.registry import admission_hook, registered
from pytest_cellprose.session.run import Run
from pytest_cellprose.session.xdist_internals import worker_of
from pytest_cellprose.store.records import Store


def received_run(config: pytest.Config, spec: RunSpec, store: Store | None = None) -> Run:
    """The controller's plan, in a worker; nothing is checked again. `store`: of this machine, if not the run's own."""
    offered = registered(config)
    session = Engine(spec, offered.encodings, offered.providers, admission_hook(config), store)
    return Run(spec, session, tests=CellTests(spec.fault_retries), worker=worker_of(config))

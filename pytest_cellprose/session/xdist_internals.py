"""What a run needs of xdist beyond its hooks: to end early without starting another call, and to be heard out.

When xdist's controller wants to end early it lets its workers run all that they were given. A worker here looks for
that wish before each test: the end mark is in its queue although there are more tests in it than an ending run has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest


def workers(numprocesses: object, specs: Sequence[str]) -> int:
    """How many processes xdist will have: its ``-n``, or the ``--tx`` specifications such as ``3*popen``."""
    if isinstance(numprocesses, int):
        return max(1, numprocesses)
    counts = (spec.partition("*")[0] for spec in specs if "*" in spec)
    many = sum(int(count) for count in counts if count.isdecimal())
    return max(1, many + sum("*" not in spec for spec in specs))


def worker_of(config: pytest.Config) -> Any | None:
    """xdist's plugin in a worker; None in any other process."""
    if not hasattr(config, "workerinput"):
        return None
    plugins = config.pluginmanager.get_plugins()
    return next((plugin for plugin in plugins if type(plugin).__name__ == "WorkerInteractor"), None)


def told_to_end(worker: Any) -> bool:
    """Whether the controller wants no more tests, though the worker has more.

    At an ordinary end the mark comes when no test is left but the one that runs. After a failure under ``-x``,
    after Ctrl-C, and when the controller is gone, it comes behind tests that are still to run.
    """
    with worker.torun.lock() as queued:
        return isinstance(worker.nextitem_index, int) and any(not isinstance(item, int) for item in queued)


def announce(worker: Any, item: pytest.Item) -> None:
    """Tell the worker which item the next reports are about, for a test that runs once more."""
    worker.item_index = worker.session.items.index(item)


def hear_out(config: pytest.Config) -> None:
    """After Ctrl-C, in the controller: let every worker finish its calls under way, and take their reports.

    xdist alone would give them ten seconds. Another Ctrl-C ends the waiting.
    """
    session: Any = config.pluginmanager.get_plugin("dsession")
    if session.sched is None:
        return
    session.triggershutdown()
    left = set(session._active_nodes)
    while left:
        event, arguments = session.queue.get()
        if event == "workerfinished":
            config.hook.pytest_testnodedown(node=arguments["node"], error=None)
        if event in ("workerfinished", "errordown", "internal_error"):
            left.discard(arguments["node"])
        else:
            getattr(session, f"worker_{event}")(**arguments)

"""More than one machine: what the hooks do with workers that pytest-xdist started elsewhere (docs/machines.md).

The controller hands out the plan and takes in records; the worker finds its files, refuses before its first call if
they are not the planned ones, and sends with each test report what it has stored meanwhile.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from pytest_cellprose.measure.spec import RunSpec
from pytest_cellprose.method.digests import working_sha256
from pytest_cellprose.plan.settings import cache_folder, cells_folders, out_folder
from pytest_cellprose.record.record import Record
from pytest_cellprose.remote.files import (
    Origin,
    SendingStore,
    input_problems,
    leave_token,
    reads_token,
    record_digests,
    relocated,
    remove_token,
    software_problems,
)
from pytest_cellprose.session.controller import ControllerRun, shares_of, take_place
from pytest_cellprose.session.registry import registered
from pytest_cellprose.session.schedule import place_of
from pytest_cellprose.session.worker import ORIGIN, PLAN, WorkerRun, received_run
from pytest_cellprose.store.account import Account, of_call
from pytest_cellprose.store.layout import StoreError, ledger_name
from pytest_cellprose.store.ledger import LedgerState
from pytest_cellprose.store.spending import settled_cost

if TYPE_CHECKING:
    from collections.abc import Iterable

RECORD = "cellprose_record"
"""Name of the user property that carries a stored record to the controller, which takes it off the report."""
_RECORDS = "cellprose_records"
_LEDGER = "cellprose_ledger"
_REFUSAL = "cellprose_refusal"


# --- the controller


def hand_out(run: ControllerRun, node: Any) -> None:
    """Give a worker elsewhere that is about to start the plan, its share of the caps, and its place."""
    receiver = _receiver(run, node.config)
    each = shares_of(run, node)[1]
    update = {"caps": each, "spent_before": {}, "ledger": ledger_name(place_of(node))}
    node.workerinput[ORIGIN] = receiver.origin.model_dump_json()
    node.workerinput[PLAN] = run.spec.model_copy(update=update).model_dump_json()
    take_place(run, node)


def _receiver(run: ControllerRun, config: pytest.Config) -> Receiver:
    if not isinstance(run.intake, Receiver):
        run.intake = receiver = Receiver(run, config)
        config.pluginmanager.register(receiver, "cellprose-receiver")
        return receiver
    return run.intake


class Receiver:
    """Takes in what workers elsewhere send: records into the run's store, each once, and what was spent."""

    def __init__(self, run: ControllerRun, config: pytest.Config) -> None:
        self.origin = Origin(
            root=config.rootpath,
            cells=list(cells_folders(config)),
            code_sha256=working_sha256(),
            token=leave_token(run.engine.store),
            ancestor_sha256=record_digests(run.spec.ancestor),
        )
        self._run = run
        self._taken: set[bytes] = set()
        self._received: dict[int, list[Record]] = {}
        self._ledgers: dict[int, LedgerState] = {}
        self.notes: list[str] = []
        """What went wrong, for the summary."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None]:
        """Store the records that come with a report, before it counts and before any other plugin sees it."""
        lines = [str(value) for name, value in report.user_properties if name == RECORD]
        if lines:
            report.user_properties = [(name, value) for name, value in report.user_properties if name != RECORD]
            try:
                self._take(lines, getattr(report, "node", None))
            except StoreError as error:
                report.outcome = "failed"
                report.longrepr = f"{error}; it is in the store of the machine that made the call"
        return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take in the rest. A worker that refused ends the run, before any call if none was made yet."""
        output = getattr(node, "workeroutput", {})  # none: it crashed
        if _LEDGER in output:
            self._ledgers[place_of(node)] = LedgerState.model_validate_json(output[_LEDGER])
        try:
            self._take(output.get(_RECORDS, ()), node)
        except StoreError as error:
            self.notes.append(str(error))
        refusal = output.get(_REFUSAL)
        if refusal is not None and not self._run.engine.store.has_records:
            pytest.exit(refusal, returncode=pytest.ExitCode.USAGE_ERROR)

    def _take(self, lines: Iterable[str], node: Any) -> None:
        for line in lines:
            name = hashlib.sha256(line.encode()).digest()
            if name in self._taken:
                continue
            record = Record.model_validate_json(line)
            self._run.engine.keeper.keep(record)
            self._taken.add(name)
            if node is not None:
                self._received.setdefault(place_of(node), []).append(record)

    def close(self) -> None:
        """Add up what was spent elsewhere; a process that died is counted by what it had sent."""
        run = self._run
        ledger = run.engine.ledger
        for place in sorted({*self._received, *self._ledgers}):
            state = self._ledgers.get(place) or _by_records(run.spec, self._received[place])
            if state != LedgerState():
                ledger.add(state)
        self._ledgers.clear()
        self._received.clear()
        remove_token(run.engine.store)


def _by_records(spec: RunSpec, records: Iterable[Record]) -> LedgerState:
    """What a process spent, as far as its records say."""
    accounts: dict[str, Account] = {}
    for record in records:
        model = spec.models[record.cell.model]
        if model.live and record.attempts and not record.kept_from:
            call = of_call(settled_cost(record), record.assumed_nanousd or 0)
            accounts[model.vendor] = accounts.get(model.vendor, Account()) + call
    return LedgerState(vendors=accounts)


# --- the worker


class Sender:
    """Sends what this machine has stored with each report, and the rest when the worker ends."""

    def __init__(self, run: WorkerRun, store: SendingStore | None) -> None:
        self._run = run
        self._store = store

    @pytest.hookimpl(tryfirst=True)  # before xdist sends the report
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        unsent = [(RECORD, line) for line in self._unsent()]
        report.user_properties = [*report.user_properties, *unsent]  # two reports may have one list

    def rest(self) -> dict[str, Any]:
        """For the worker's output."""
        return {_RECORDS: self._unsent(), _LEDGER: self._run.engine.ledger.state().model_dump_json()}

    def _unsent(self) -> list[str]:
        return [] if self._store is None else self._store.unsent()

    def require_environment(self, session: pytest.Session) -> None:
        """Refuse if a key or an address is missing here: the controller's environment does not travel."""
        run = self._run
        lacking = run.engine.not_ready(filter(run.runs, run.selected))
        if lacking:
            _refuse(session, lacking, "set it there: environment variables do not travel")
            raise session.Failed(session.shouldfail)


def arrive(session: pytest.Session) -> WorkerRun | None:
    """The run, in a worker elsewhere; None in one that refuses to take part."""
    given: dict[str, Any] = session.config.workerinput  # type: ignore[attr-defined]
    origin = Origin.model_validate_json(given[ORIGIN])
    problems = software_problems(json.loads(given[PLAN])["manifest"], origin.code_sha256, working_sha256())
    if not problems:
        try:
            run, problems = _settled(session.config, RunSpec.model_validate_json(given[PLAN]), origin)
        except pytest.UsageError as error:
            problems = str(error).splitlines()
        else:
            if not problems:
                return run
    _refuse(session, problems, "bring that machine what the run was planned with, and run again")
    return None


def _settled(config: pytest.Config, planned: RunSpec, origin: Origin) -> tuple[WorkerRun, list[str]]:
    """The run with this machine's files, and what is wrong with them."""
    offered = registered(config)
    folders = cells_folders(config)
    spec = relocated(planned, origin, config.rootpath, folders, out_folder(config), cache_folder(config))
    store = SendingStore(spec.out, spec.manifest.run)
    shared = reads_token(store, origin.token)
    if spec.manifest.suite not in offered.suites:
        raise pytest.UsageError(f"the suite {spec.manifest.suite!r} is not registered there")
    run = received_run(config, spec, None if shared else store)
    sender = Sender(run, None if shared else store)
    run.outbox = sender
    problems = input_problems(spec, origin, run.engine.suite, offered.providers)
    if not problems:
        config.pluginmanager.register(sender, "cellprose-sender")
        if not shared:
            store.recall()
    return run, problems


def _refuse(session: pytest.Session, problems: Iterable[str], remedy: str) -> None:
    """Let the worker end without a test. Not by an exception: xdist would take it for a crash and start another."""
    config = session.config
    given: dict[str, Any] = config.workerinput  # type: ignore[attr-defined]
    who = f"{given['workerid']} on {platform.node()}, {config.rootpath}"
    text = "\n".join([f"cellprose: {who}:", *(f"  {problem}" for problem in problems), f"  {remedy}"])
    session.shouldfail = text
    config.workeroutput[_REFUSAL] = text  # type: ignore[attr-defined]
    config.pluginmanager.register(_NoTests())


class _NoTests:
    """In a worker that refuses: xdist does not hear that it found no tests."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        raise session.Failed(session.shouldfail)

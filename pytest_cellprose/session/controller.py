"""What the plugin's hooks do with a plan: make it, judge the selection, and close the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from pytest_cellprose.cache import TextCache
from pytest_cellprose.cell import CellFault
from pytest_cellprose.measure.inputs import made_now, made_so_far, sent_pairs
from pytest_cellprose.plan.build import Plan, build_plan, with_inputs
from pytest_cellprose.plan.command_line import CommandLine, reaches_cell_test
from pytest_cellprose.plan.cost import approval_problem, shares
from pytest_cellprose.plan.problems import PlanError
from pytest_cellprose.plan.settings import Settings, cache_folder, cells_folders, read_settings
from pytest_cellprose.questions.problem import Problem
from pytest_cellprose.record.record import CellId, utc_now
from pytest_cellprose.session.items import CellTests
from pytest_cellprose.session.other_plugins import refusals
from pytest_cellprose.session.progress import WATCH
from pytest_cellprose.session.registry import engine_of, registered
from pytest_cellprose.session.run import Run, select
from pytest_cellprose.session.worker import PLACE, PLAN, PROBLEMS, UNTAKEN
from pytest_cellprose.session.xdist_internals import workers
from pytest_cellprose.store.identity import with_encoded
from pytest_cellprose.store.layout import StoreError

if TYPE_CHECKING:
    from pytest_cellprose.report.model import Report


class Intake(Protocol):
    """What takes in the records of workers elsewhere."""

    notes: list[str]
    """What went wrong, for the summary."""

    def close(self) -> None:
        """Add up what was spent elsewhere."""


@dataclass(kw_only=True)
class ControllerRun(Run):
    """The run where it was planned: in a pytest without workers, or in the one that has them."""

    plan: Plan
    settings: Settings
    processes: int = 1
    """How many of xdist's workers, or 1."""
    apart: int = 0
    """How many of them are started elsewhere."""
    placed: set[int] = field(default_factory=set)
    """Places among the workers that were taken once."""
    intake: Intake | None = None
    """Only where there are workers elsewhere."""
    report: Report | None = None
    """Once the session is over."""
    damaged: list[str] = field(default_factory=list)
    """Lines of the store that a crash cut short."""

    @property
    def in_flight(self) -> int:
        """How many calls may run at once, in all processes."""
        return self.processes * max(self.spec.in_flight.values())

    def collected(self, session: pytest.Session) -> None:
        if not session.config.option.collectonly:
            admit_selection(self, session.config.invocation_params.args)

    def end(self, session: pytest.Session) -> None:
        """Write the reports from the store, and say by the exit code whether all was measured."""
        finish(self)
        stopped = session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.INTERRUPTED)  # xdist interrupts to stop
        if (self.problems and stopped) or (unmeasured(self) and session.exitstatus == pytest.ExitCode.OK):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def planned_run(config: pytest.Config) -> ControllerRun | None:
    """Build and gate the plan, in the controller, if the command line reaches a test that takes a cell.

    Raises `pytest.UsageError` with everything that is wrong.
    """
    if not cells_folders(config):
        return None
    reached = reaches_cell_test(
        config.args,
        config.invocation_params.dir,
        config.getini("python_files"),
        config.getini("norecursedirs"),
    )
    return build_run(config) if reached else None


def build_run(config: pytest.Config) -> ControllerRun:
    """The plan of the settings, gated; raises `pytest.UsageError`.

    Never in a worker, whose only way to a run is `received_run`: a plan of its own would buy every cell again.
    """
    if hasattr(config, "workerinput"):
        raise RuntimeError("a worker takes the controller's plan and makes none of its own")
    refused = refusals(config)
    if refused:
        raise pytest.UsageError("\n".join(["cellprose:", *(f"  {sentence}" for sentence in refused)]))
    settings = read_settings(config)
    offered = registered(config)
    cache = TextCache(cache_folder(config))
    line = CommandLine(
        invocation=tuple(map(str, config.invocation_params.args)),
        keyword=config.option.keyword,
        selected=tuple(config.args),
        collect_only=config.option.collectonly,
    )
    try:
        plan = build_plan(settings, line, offered, config.rootpath, cache)
    except PlanError as error:
        raise pytest.UsageError(str(error)) from None
    engine = engine_of(plan.spec, offered, config)
    if WATCH in config.stash:
        now = plan.spec.manifest.mode != "development"
        config.stash[WATCH].watch(engine, len(sent_pairs(plan.spec.manifest)) if now else 0)
    if plan.spec.manifest.mode != "development":  # what can be sent is on record, and compared, before the first call
        plan = with_inputs(plan, made_now(engine))
        engine.spec = plan.spec
    specs = getattr(config.option, "tx", ())
    return ControllerRun(
        spec=plan.spec,
        engine=engine,
        tests=CellTests(plan.spec.fault_retries),
        plan=plan,
        settings=settings,
        processes=workers(getattr(config.option, "numprocesses", None), specs),
        apart=_apart(specs),
    )


def _apart(specs: Sequence[str]) -> int:
    """How many processes of ``--tx`` specifications are not plain local ones."""
    if not specs:
        return 0
    from pytest_cellprose.session.schedule import is_apart, one_by_one

    return sum(map(is_apart, one_by_one(specs)))


def hear_last(run: ControllerRun, output: Mapping[str, Any], *, died: bool) -> None:
    """What a worker that has ended says at the end, or that it died, which is told to all processes."""
    run.untaken += output.get(UNTAKEN, [])
    run.problems += output.get(PROBLEMS, [])
    if died:
        run.engine.store.note_death()


def hand_out(run: ControllerRun, node: Any) -> None:
    """Give a local worker that is about to start the plan, and its place among the workers.

    Of the caps, all local processes share what those elsewhere leave: they have one ledger.
    """
    node.workerinput[PLAN] = run.spec.model_copy(update={"caps": shares_of(run, node)[0]}).model_dump_json()
    take_place(run, node)


def shares_of(run: ControllerRun, node: Any) -> tuple[dict[str, int], dict[str, int]]:
    """The caps of the processes that share the run's ledger, and of each one elsewhere.

    What the runs before it spent is taken off before the rest is shared, and counts in the ledger that is here.
    """
    from pytest_cellprose.session.schedule import is_apart

    specs, before = node.nodemanager.specs, run.spec.spent_before
    room = {vendor: max(0, cap - before.get(vendor, 0)) for vendor, cap in run.spec.caps.items()}
    here, each = shares(room, len(specs), sum(map(is_apart, specs)))
    return {vendor: share + before.get(vendor, 0) for vendor, share in here.items()}, each


def take_place(run: ControllerRun, node: Any) -> None:
    """Tell a worker its place; none to one that replaces a crashed worker, and where xdist's own order holds."""
    from pytest_cellprose.session.schedule import place_of

    place = place_of(node)
    if node.config.option.dist == "load":
        node.workerinput[PLACE] = None if place in run.placed else place
    run.placed.add(place)


def select_by_node_ids(run: ControllerRun, node_ids: Iterable[str]) -> None:
    """The same from node ids, which is all that an xdist controller gets to see of its workers' items."""
    select(run, _cells_in(run, node_ids))


def _cells_in(run: Run, node_ids: Iterable[str]) -> list[CellId | None]:
    by_id = {_as_in_node_id(str(cell)): cell for cell in run.position}
    return [_cell_named(node_id.partition("[")[2].removesuffix("]"), by_id) for node_id in node_ids]


def _cell_named(name: str, by_id: Mapping[str, CellId]) -> CellId | None:
    """The cell whose id a node id has in its brackets, alone or between a test's other parameters."""
    if name in by_id:
        return by_id[name]
    parts = name.split("-")
    spans = ("-".join(parts[start:end]) for start in range(len(parts)) for end in range(len(parts), start, -1))
    return next((by_id[span] for span in spans if span in by_id), None)


def _as_in_node_id(text: str) -> str:
    """pytest escapes what is not ASCII."""
    return text.encode("unicode_escape").decode("ascii")


def note_crash(run: ControllerRun, node_id: str, worker: str) -> str | None:
    """Record that a test's cell was not measured because xdist's worker died; what is to be said of it.

    None for a test of no cell, and for a cell that was measured before.
    """
    (cell,) = _cells_in(run, [node_id])
    if cell is None or not run.runs(cell) or run.engine.store.find(cell) is not None:
        return None
    try:
        return str(CellFault(run.engine.give_up(cell, f"the worker {worker} died")))
    except StoreError as error:
        return str(error)


def money_problem(run: ControllerRun) -> Problem | None:
    """Why the selected cells may not be paid for; None if they may."""
    return approval_problem(run.engine, filter(run.runs, run.selected), run.settings.approve_usd)


def admit_selection(run: ControllerRun, invocation: Sequence[str]) -> None:
    """Before the first call: keys, money and the run's folder, in this order; each refuses with exit code 4."""
    require_environment(run)
    judge_selection(run, invocation)
    open_store(run)


def require_environment(run: ControllerRun) -> None:
    """Refuse a selection whose models cannot be called for want of a key or an address."""
    lacking = run.engine.not_ready(filter(run.runs, run.selected))
    if lacking:
        text = "\n".join(["cellprose:", *(f"  {sentence}" for sentence in lacking)])
        pytest.exit(text, returncode=pytest.ExitCode.USAGE_ERROR)


def judge_selection(run: ControllerRun, invocation: Sequence[str]) -> None:
    """Before the first call: refuse a selection that costs more than was approved (exit code 4)."""
    problem = money_problem(run)
    if problem is not None:
        pytest.exit(str(PlanError([problem], invocation)), returncode=pytest.ExitCode.USAGE_ERROR)


def open_store(run: ControllerRun) -> None:
    """Before the first call: lock the run's folder, and refuse one that cannot be written (exit code 4)."""
    if any(map(run.runs, run.selected)):
        try:
            run.engine.keeper.open()
        except StoreError as error:
            pytest.exit(f"cellprose: {error}", returncode=pytest.ExitCode.USAGE_ERROR)


def finish(run: ControllerRun) -> None:
    """Close the run: the manifest gets its end, and the reports are written from the store."""
    store, keeper = run.engine.store, run.engine.keeper
    if run.intake is not None:
        run.intake.close()
    if not keeper.is_open:
        return
    rescued = keeper.rescued()
    if store.folder.is_dir() and not keeper.is_empty:
        try:
            _write_reports(run)
        except (OSError, StoreError) as error:
            run.problems.append(f"the report could not be written: {error}")
    elif not rescued and not run.problems:
        keeper.discard()  # nothing was recorded: nothing is left behind
    run.problems = [*dict.fromkeys(run.problems), *rescued]
    keeper.close()


def _write_reports(run: ControllerRun) -> None:
    """Raises OSError and `StoreError`."""
    from pytest_cellprose.report.write import write_reports

    store = run.engine.store
    manifest = store.manifest().model_copy(update={"finished": utc_now()})
    if manifest.mode == "development":
        texts = made_so_far(run.engine, store.records())
        manifest = with_encoded(manifest, texts)
    store.write_manifest(manifest)
    run.report = write_reports(store.folder, manifest, store.records(run.damaged.append))


def unmeasured(run: ControllerRun) -> bool:
    """Whether cells that no failed test stands for were not measured, so that the run is no success.

    In a final run that is any planned cell; else one that was to run again when its worker died.
    """
    if run.tests.awaited:
        return True
    return run.spec.manifest.mode == "final" and (run.report is None or run.report.cells.missing > 0)

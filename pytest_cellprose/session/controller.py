"""What the plugin's hooks do with a plan: make it, judge the selection, and close the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import pytest

from pytest_cellprose.cell import CellFault
from pytest_cellprose.measure.cache import TextCache
from pytest_cellprose.measure.engine import Engine
from pytest_cellprose.measure.inputs import made_now, made_so_far
from pytest_cellprose.options import cache_folder, cells_folders, read_settings
from pytest_cellprose.plan.build import CommandLine, build_plan, with_inputs
from pytest_cellprose.plan.command_line import reaches_cell_test
from pytest_cellprose.plan.cost import approval_problem
from pytest_cellprose.plan.problems import PlanError, Problem
from pytest_cellprose.record.record import CellId, utc_now
from pytest_cellprose.session.items import CellTests
from pytest_cellprose.session.other_plugins import refusals
from pytest_cellprose.session.registry import admission_hook, registered
from pytest_cellprose.session.run import Run, cell_of
from pytest_cellprose.session.xdist_internals import workers
from pytest_cellprose.store.identity import with_encoded
from pytest_cellprose.store.layout import StoreError


def planned_run(config: pytest.Config) -> Run | None:
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


def build_run(config: pytest.Config) -> Run:
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
    session = Engine(plan.spec, offered.encodings, offered.providers, admission_hook(config))
    if plan.spec.manifest.mode != "development":  # what can be sent is on record, and compared, before the first call
        plan = with_inputs(plan, made_now(session))
        session.spec = plan.spec
    specs = getattr(config.option, "tx", ())
    processes = workers(getattr(config.option, "numprocesses", None), specs)
    in_flight = processes * max(plan.spec.in_flight.values())
    return Run(
        plan.spec,
        session,
        plan,
        settings,
        in_flight=in_flight,
        tests=CellTests(plan.spec.fault_retries),
        processes=processes,
        apart=_apart(specs),
    )


def _apart(specs: Sequence[str]) -> int:
    """How many processes of ``--tx`` specifications are not plain local ones."""
    if not specs:
        return 0
    from pytest_cellprose.session.schedule import is_apart, one_by_one

    return sum(map(is_apart, one_by_one(specs)))


def in_plan_order(run: Run, items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The items with those that take a cell in the plan's order; every other item keeps its place."""
    takers = [item for item in items if cell_of(item) in run.position]
    ordered = iter(sorted(takers, key=lambda item: run.position[cell_of(item)]))  # type: ignore[index]
    taking = set(map(id, takers))
    return [next(ordered) if id(item) in taking else item for item in items]


def select(run: Run, cells: Iterable[CellId | None]) -> None:
    """Note which cells the selected tests take."""
    counts = Counter(cell for cell in cells if cell is not None)
    run.selected = tuple(counts)
    run.shared = {cell for cell, tests in counts.items() if tests > 1}


def select_by_node_ids(run: Run, node_ids: Iterable[str]) -> None:
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


def note_crash(run: Run, node_id: str, worker: str) -> str | None:
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


def money_problem(run: Run) -> Problem | None:
    """Why the selected cells may not be paid for; None if they may."""
    assert run.settings is not None
    return approval_problem(run.engine, filter(run.runs, run.selected), run.settings.approve_usd)


def judge_selection(run: Run, invocation: Sequence[str]) -> None:
    """Before the first call: refuse a selection that costs more than was approved (exit code 4)."""
    problem = money_problem(run)
    if problem is not None:
        pytest.exit(str(PlanError([problem], invocation)), returncode=pytest.ExitCode.USAGE_ERROR)


def open_store(run: Run) -> None:
    """Before the first call: lock the run's folder, and refuse one that cannot be written (exit code 4)."""
    if any(map(run.runs, run.selected)):
        try:
            run.engine.keeper.open()
        except StoreError as error:
            pytest.exit(f"cellprose: {error}", returncode=pytest.ExitCode.USAGE_ERROR)


def finish(run: Run) -> None:
    """Close the run: the manifest gets its end, and the reports are written from the store."""
    store, keeper = run.engine.store, run.engine.keeper
    if run.receiver is not None:
        run.receiver.close()
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


def _write_reports(run: Run) -> None:
    """Raises OSError and `StoreError`."""
    from pytest_cellprose.report.write import write_reports

    store = run.engine.store
    manifest = store.manifest().model_copy(update={"finished": utc_now()})
    if manifest.mode == "development":
        texts = made_so_far(manifest, run.engine.encodings, TextCache(run.spec.cache), store.records())
        manifest = with_encoded(manifest, texts)
    store.write_manifest(manifest)
    run.report = write_reports(store.folder, manifest, store.records(run.damaged.append))


def unmeasured(run: Run) -> bool:
    """Whether cells that no failed test stands for were not measured, so that the run is no success.

    In a final run that is any planned cell; else one that was to run again when its worker died.
    """
    if run.tests.awaited:
        return True
    return run.spec.manifest.mode == "final" and (run.report is None or run.report.cells.missing > 0)

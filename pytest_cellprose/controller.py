"""What the plugin's hooks do with a plan: hand out its cells, judge the selection, sum up the run.

Kept in ``config.stash``, once in the controller and once in every xdist worker.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_cellprose.builtin import registered
from pytest_cellprose.cell import Cell, CellFault
from pytest_cellprose.draft import PlanError, Problem, counted, some
from pytest_cellprose.money import approval_problem, cap_lines, cost_lines, share_lines, skipped_line, workers
from pytest_cellprose.options import cells_folders, read_settings
from pytest_cellprose.other_plugins import refusals
from pytest_cellprose.plan import CommandLine, Plan, build_plan, with_inputs
from pytest_cellprose.protocol import CellTests
from pytest_cellprose.record import CellId, Record, utc_now
from pytest_cellprose.run.budget import PendingCall
from pytest_cellprose.run.cache import TextCache
from pytest_cellprose.run.inputs import made_now, made_so_far, with_encoded
from pytest_cellprose.run.keeper import NoMoreCalls
from pytest_cellprose.run.pump import Pump
from pytest_cellprose.run.session import RunSession, RunSpec
from pytest_cellprose.run.shards import own_cells
from pytest_cellprose.run.store import Store, StoreError
from pytest_cellprose.run.workers import announce, hear_out, told_to_end, worker_of
from pytest_cellprose.selection import reaches_cell_test

if TYPE_CHECKING:
    from pytest_cellprose.machines import Receiver, Sender
    from pytest_cellprose.options import Settings
    from pytest_cellprose.report.model import Report

PROPERTY = "cellprose"
"""Name of the user property that carries a cell's outcome to reports, as JSON."""

_GIVES_UP = "(Ctrl-C gives them up)"


@dataclass
class Run:
    """A planned run, as this process sees it."""

    spec: RunSpec
    session: RunSession
    plan: Plan | None = None
    """Only in the controller."""
    settings: Settings | None = None
    """Only in the controller."""
    selected: tuple[CellId, ...] = ()
    """The cells that are left after deselection, in the order of their tests."""
    in_flight: int = 1
    """How many calls may run at once, in all processes."""
    shared: set[CellId] = field(default_factory=set)
    """Cells that more than one selected test takes."""
    own: set[CellId | None] | None = None
    """The cells of the tests that this worker was given at the start; None in the controller, and where another
    scheduler than ours gives them out."""
    pump: Pump[CellId, Record] | None = None
    """Keeps the calls of coming tests running; only where live cells run."""
    tests: CellTests = field(default_factory=lambda: CellTests(0))
    """Runs the tests of this process that take a cell."""
    worker: Any = None
    """xdist's plugin; only in a worker."""
    untaken: list[str] = field(default_factory=list)
    """Cells that were called ahead and whose tests never asked for them, with what went wrong, if anything did."""
    processes: int = 1
    """How many of xdist's workers, or 1; only in the controller."""
    apart: int = 0
    """How many of them are started elsewhere; only in the controller."""
    placed: set[int] = field(default_factory=set)
    """Places among the workers that were taken once; only in the controller."""
    receiver: Receiver | None = None
    """Takes in what workers elsewhere send; only in a controller that has any."""
    sender: Sender | None = None
    """Sends what is stored here to the controller; only in a worker elsewhere."""
    report: Report | None = None
    """Once the session is over."""
    damaged: list[str] = field(default_factory=list)
    """Lines of the store that a crash cut short."""
    problems: list[str] = field(default_factory=list)
    """What kept records or reports from being written, in lines for the user; with any, the run is no success."""

    @cached_property
    def position(self) -> dict[CellId, int]:
        """Every planned cell with its place in the plan's order."""
        return {cell: place for place, cell in enumerate(self.spec.manifest.matrix.cells())}

    @cached_property
    def cells(self) -> list[CellId]:
        """The planned cells that this invocation runs, in the plan's order: all, or those of its shard."""
        return own_cells(self.spec.manifest)

    @cached_property
    def parameters(self) -> list[Any]:
        """These cells as pytest parameters; cells that do not run in this mode carry a skip mark."""
        skips = {
            model: pytest.mark.skip(reason=reason) for model, reason in self.spec.manifest.matrix.skipped_models.items()
        }
        return [pytest.param(cell, id=str(cell), marks=skips.get(cell.model, ())) for cell in self.cells]

    def runs(self, cell: CellId) -> bool:
        """Whether the mode lets the cell run."""
        return cell.model not in self.spec.manifest.matrix.skipped_models

    def cell(self, cell: CellId) -> Cell:
        return Cell(cell, self.session.set_of[cell.workbook], self._record)

    def look_ahead(self, items: Iterable[pytest.Item] | None) -> None:
        """Keep the calls of these tests' live cells running, in their order, while the tests report in order.

        No call is started ahead for a test that carries a skip mark, or that shares its cell with another.
        """
        given = list(items or ())
        if items is not None and self.worker is not None:
            self.own = {cell_of(item) for item in given}
        cells = [cell_of(item) for item in given if not any(map(item.get_closest_marker, ("skip", "skipif")))]
        vendor = {alias: model.vendor for alias, model in self.spec.models.items() if model.live}
        if any(self.runs(cell) for cell in self.position if cell.model in vendor):
            upcoming = [cell for cell in cells if cell and cell.model in vendor and cell not in self.shared]
            self.pump = Pump(
                dict.fromkeys(upcoming),
                lane_of=lambda cell: vendor[cell.model],
                prepare=lambda cell: self.session.prepared(cell, shared=self._may_be_stored(cell)),
                ceilings={name: self.session.calls_at_a_time(name) for name in sorted(set(vendor.values()))},
                limited=lambda record: record.limited > 0,
                last=lambda record: record.outcome.kind == "authentication",
                halted=self.told_to_end,
                changed=partial(self.session.note_limit, self.worker.workerid if self.worker else "main"),
            )

    def begin(self, item: pytest.Item) -> None:
        """Before a test runs once more: the reports that come are about it."""
        if self.worker is not None:
            announce(self.worker, item)

    def told_to_end(self) -> bool:
        """Whether xdist's controller wants no more tests of this worker.

        Other schedulers than ours (``--dist loadfile``) send the end mark along with a worker's last tests: it then
        says nothing, and whatever was given is run.
        """
        return self.worker is not None and self.own is not None and told_to_end(self.worker)

    def finish_calls(self, config: pytest.Config) -> bool:
        """Let the calls under way finish; they are paid for and recorded, whether a test asked for them or not.

        Ctrl-C ends the waiting: the calls that are still under way are given up, and this returns False.
        """
        pump, self.pump = self.pump, None
        if pump is None:
            return True
        try:
            if pump.under_way:
                tell(config, f"waiting for {counted(pump.under_way, 'call')} under way {_GIVES_UP}")
            left = pump.drain()
        except KeyboardInterrupt:
            given_up = pump.abandon()
            for cell in given_up:
                with suppress(StoreError):  # the keeper has it, and says so
                    self.session.give_up(cell)
            tell(config, f"given up: {counted(len(given_up), 'call')}, which may be billed")
            return False
        called = {cell: error for cell, error in left.items() if not isinstance(error, NoMoreCalls)}
        self.untaken += [str(cell) if error is None else f"{cell}: {error}" for cell, error in called.items()]
        return True

    def finish_keeping(self) -> None:
        """When the session ends: what could not be stored is tried again, and told."""
        keeper = self.session.keeper
        keeper.finish()
        if keeper.failure is not None:
            self.problems.append(keeper.failure)

    def _record(self, cell: CellId) -> Record:
        if self.pump is not None and self.spec.models[cell.model].live:
            return self.pump.take(cell)
        return self.session.prepared(cell, shared=self._may_be_stored(cell))()

    def _may_be_stored(self, cell: CellId) -> bool:
        """Whether another test may have brought the cell's record: one that shares it, or one of a worker that died."""
        return cell in self.shared or (self.own is not None and cell not in self.own)


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
    """The plan of the settings, gated; raises `pytest.UsageError`."""
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
    session = RunSession(plan.spec, offered.encodings, offered.providers, _admit(config))
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
    from pytest_cellprose.run.schedule import is_apart, one_by_one

    return sum(map(is_apart, one_by_one(specs)))


def received_run(config: pytest.Config, spec: RunSpec, store: Store | None = None) -> Run:
    """The controller's plan, in a worker; nothing is checked again. `store`: of this machine, if not the run's own."""
    offered = registered(config)
    session = RunSession(spec, offered.encodings, offered.providers, _admit(config), store)
    return Run(spec, session, tests=CellTests(spec.fault_retries), worker=worker_of(config))


def _admit(config: pytest.Config) -> Callable[[PendingCall], object]:
    """The question to all plugins whether a live call may start, as this process's session asks it."""
    return lambda call: config.hook.pytest_cellprose_admit(config=config, call=call)


def cache_folder(config: pytest.Config) -> Path | None:
    """Where encoded texts are kept between runs; None without pytest's cache."""
    cache = getattr(config, "cache", None)  # absent under -p no:cacheprovider
    if cache is None:
        return None
    try:
        return Path(cache.mkdir("cellprose"))
    except OSError:
        return None


def cell_of(item: pytest.Item) -> CellId | None:
    """The planned cell that a test takes, if it takes one."""
    callspec = getattr(item, "callspec", None)
    parameter = None if callspec is None else callspec.params.get("cell")
    return parameter if isinstance(parameter, CellId) else None


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
    if cell is None or not run.runs(cell) or run.session.store.find(cell) is not None:
        return None
    try:
        return str(CellFault(run.session.give_up(cell, f"the worker {worker} died")))
    except StoreError as error:
        return str(error)


def money_problem(run: Run) -> Problem | None:
    """Why the selected cells may not be paid for; None if they may."""
    assert run.settings is not None
    return approval_problem(run.session, filter(run.runs, run.selected), run.settings.approve_usd)


def judge_selection(run: Run, invocation: Sequence[str]) -> None:
    """Before the first call: refuse a selection that costs more than was approved (exit code 4)."""
    problem = money_problem(run)
    if problem is not None:
        pytest.exit(str(PlanError([problem], invocation)), returncode=pytest.ExitCode.USAGE_ERROR)


def open_store(run: Run) -> None:
    """Before the first call: lock the run's folder, and refuse one that cannot be written (exit code 4)."""
    if any(map(run.runs, run.selected)):
        try:
            run.session.keeper.open()
        except StoreError as error:
            pytest.exit(f"cellprose: {error}", returncode=pytest.ExitCode.USAGE_ERROR)


def plan_lines(run: Run) -> list[str]:
    """What ``--collect-only`` says of the plan below its items: counts, costs, and what the gate would say."""
    assert run.plan is not None
    shard = run.spec.manifest.shard
    share = "" if shard is None else f" (shard {shard}: {len(run.cells):,} cells)"
    lines = [f"{len(run.selected):,} of {len(run.position):,} planned cells selected{share}"]
    lines += cost_lines(run.session, run.selected)
    lines += [f"  {line}" for line in cap_lines(run.session, run.selected, run.in_flight)]
    refusals = list(run.plan.refusals)
    if run.spec.manifest.mode != "development" and (problem := money_problem(run)) is not None:
        refusals.append(problem)
    lines += [f"  the gate would refuse: {problem.text}" for problem in refusals]
    return lines


def header_lines(run: Run) -> list[str]:
    """What a run that may cost money says of its plan at the start, selected or not: costs and caps."""
    if run.spec.manifest.mode == "development":
        return []
    lines = cost_lines(run.session, run.cells)
    said = ["expected cost of the plan:", *lines] if lines else []
    said += cap_lines(run.session, run.cells, run.in_flight)
    return said + share_lines(run.spec.caps, run.processes, run.apart)


def withheld(excinfo: pytest.ExceptionInfo[BaseException]) -> str:
    """The traceback of a held-out cell's test: where and what, but no value and no message, for either may quote
    the workbook or a truth."""
    places = [f"{entry.path}:{entry.lineno + 1}: in {entry.name}" for entry in excinfo.traceback]
    said = f"{excinfo.typename}: what it says is withheld, the workbook is held out"
    return "\n".join([*places, said])


def outcome_property(record: Record) -> tuple[str, str]:
    """A record's outcome as a user property: plain JSON, so that it crosses to xdist's controller and into JUnit."""
    return PROPERTY, json.dumps(
        {
            "cell": str(record.cell),
            "outcome": record.outcome.kind or record.outcome.status,
            "status": record.outcome.status,
            "accuracy": record.accuracy,
            "cost_nanousd": record.cost_nanousd,
            "kept_from": record.kept_from,
        }
    )


def test_status(properties: Iterable[tuple[str, object]]) -> tuple[str, str] | None:
    """Letter and word for a measured cell: ``.``, a digit of tenths, ``x``; ``SCORED 0.83``, ``TRUNCATED 0.00``."""
    found = next((json.loads(str(value)) for name, value in properties if name == PROPERTY), None)
    if found is None or found["status"] == "fault":
        return None
    accuracy = found["accuracy"]
    word = f"{'KEPT ' if found['kept_from'] else ''}{found['outcome'].upper()} {accuracy:.2f}"
    if found["status"] == "failure":
        return "x", word
    return ("." if accuracy >= 1 else str(int(accuracy * 10))), word


def finish(run: Run) -> None:
    """Close the run: the manifest gets its end, and the reports are written from the store."""
    store, keeper = run.session.store, run.session.keeper
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

    store = run.session.store
    manifest = store.manifest().model_copy(update={"finished": utc_now()})
    if manifest.mode == "development":
        texts = made_so_far(manifest, run.session.encodings, TextCache(run.spec.cache), store.records())
        manifest = with_encoded(manifest, texts)
    store.write_manifest(manifest)
    run.report = write_reports(store.folder, manifest, store.records(run.damaged.append))


def run_faulted_again(run: Run, session: pytest.Session) -> None:
    """One more pass over the tests whose cells were not measured (DESIGN section 5), in this process.

    Not after a vendor's cap was reached: what is left of it is for cells that were never called.
    """

    def prepare(items: Sequence[pytest.Item]) -> None:
        if not run.finish_calls(session.config):
            raise KeyboardInterrupt
        run.look_ahead(items)

    def allowed() -> bool:
        return run.session.keeper.failure is None and not run.session.capped

    run.tests.run_again(session, allowed=allowed, prepare=prepare, begin=run.begin)


def finish_interrupted(run: Run, config: pytest.Config) -> None:
    """After Ctrl-C: let the calls under way finish, here and in xdist's workers. Another Ctrl-C ends the waiting."""
    if not run.finish_calls(config) or not config.pluginmanager.has_plugin("dsession"):
        return
    tell(config, f"waiting for the workers' calls that are under way {_GIVES_UP}")
    with suppress(KeyboardInterrupt):
        hear_out(config)


def tell(config: pytest.Config, text: str) -> None:
    """Say something to whoever waits at the terminal; a worker has none."""
    reporter: pytest.TerminalReporter | None = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.ensure_newline()
        reporter.write_line(f"cellprose: {text}")
        reporter.flush()


def is_mode_skip(run: Run, report: pytest.TestReport) -> bool:
    """Whether a test was skipped because its model does not run in this mode."""
    if not isinstance(report.longrepr, tuple):
        return False
    reason = str(report.longrepr[2]).removeprefix("Skipped: ")
    return reason in run.spec.manifest.matrix.skipped_models.values()


def unmeasured(run: Run) -> bool:
    """Whether cells that no failed test stands for were not measured, so that the run is no success.

    In a final run that is any planned cell; else one that was to run again when its worker died.
    """
    if run.tests.awaited:
        return True
    return run.spec.manifest.mode == "final" and (run.report is None or run.report.cells.missing > 0)


def summary_lines(run: Run, width: int, *, colour: bool, unicode: bool) -> list[str]:
    """The terminal summary: the report's tables, what was skipped, and where the rest is to be found."""
    lines: list[str] = []
    if run.report is not None:
        from pytest_cellprose.report import terminal

        lines += terminal.lines(run.report, width, colour, unicode)
        if run.damaged:
            lines.append(f"{len(run.damaged)} lines of the store were cut short by a crash: {run.damaged[0]}")
    lines += run.problems
    if run.receiver is not None:
        lines += run.receiver.notes
    if run.untaken:
        lines.append(
            f"{len(run.untaken)} calls were under way when the run ended: let finish, paid for and recorded "
            f"({run.untaken[0]}{', …' if len(run.untaken) > 1 else ''})"
        )
    lost = run.session.lost_calls()
    if lost:
        lines.append(
            f"{counted(len(lost), 'call')} under way in a process that died, maybe billed: {some(sorted(lost))}"
        )
    if run.tests.awaited:
        lines.append(
            f"{len(run.tests.awaited)} tests were to run again and did not, for their worker ended: "
            f"{some(sorted(run.tests.awaited))}"
        )
    skipped = skipped_line(run.session, [cell for cell in run.selected if not run.runs(cell)])
    if skipped is not None:
        lines.append(skipped)
    if run.report is not None:
        if run.report.cells.missing and run.spec.manifest.mode == "live":
            lines.append(f"to go on with what was not measured: --cellprose-resume {run.report.run}")
        lines.append(f"report: {_shown(run.session.store.folder / 'report.md')}")
    return lines


def _shown(path: Path) -> str:
    """Relative to where the user stands, if it is below."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)

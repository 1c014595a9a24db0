"""The pytest plugin: hooks only. What they do is in `pytest_cellprose.session`, imported when needed."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from pytest_cellprose.options import add_options
from pytest_cellprose.session.warnings import PlainWarnings, SealedWarnings

if TYPE_CHECKING:
    from pytest_cellprose.cell import Cell
    from pytest_cellprose.session.controller import ControllerRun
    from pytest_cellprose.session.run import Run

RUN = pytest.StashKey["Run | None"]()


def _run(config: pytest.Config) -> Run | None:
    """The planned run of this process; None before it is planned, and where nothing is.

    Every hook asks here, for none can rely on another to have run before it.
    """
    return config.stash.get(RUN, None)


def _planned(config: pytest.Config) -> ControllerRun | None:
    """The same where it was planned; None in a worker."""
    run = _run(config)
    if run is None or hasattr(config, "workerinput"):  # which does without the controller's modules
        return None
    from pytest_cellprose.session.controller import ControllerRun

    return run if isinstance(run, ControllerRun) else None


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    from pytest_cellprose import hookspecs
    from pytest_cellprose.session import registry

    pluginmanager.add_hookspecs(hookspecs)
    pluginmanager.register(registry, "cellprose-builtin")  # before any conftest, so that our names are taken first


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    from pytest_cellprose.session.misread import refuse_misread
    from pytest_cellprose.session.other_plugins import refuse_loop

    if not hasattr(config, "workerinput"):
        refuse_misread(config)
    refuse_loop(config)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Plan and gate before any worker starts and before anything is collected."""
    config = session.config
    worker_input: dict[str, Any] | None = getattr(config, "workerinput", None)
    if worker_input is None:
        from pytest_cellprose.plan.settings import cells_folders

        if cells_folders(config):
            from pytest_cellprose.session.controller import planned_run
            from pytest_cellprose.session.progress import watching

            with watching(config) as watch:
                run = watch(planned_run(config))
            _take_up(config, run)
            if run is not None and not config.option.collectonly and not _has_header(config):
                from pytest_cellprose.session.run import tell
                from pytest_cellprose.session.terminal import header_lines

                for line in header_lines(run):
                    tell(config, line)
        return
    from pytest_cellprose.session.worker import ORIGIN, PLAN, arrive

    if PLAN not in worker_input:
        return
    if ORIGIN in worker_input:
        from pytest_cellprose.remote import machines

        _take_up(config, machines.arrive(session))
    else:
        _take_up(config, arrive(config))
    config.pluginmanager.register(PlainWarnings(), "cellprose-warnings")


def _has_header(config: pytest.Config) -> bool:
    """Whether pytest prints what `pytest_report_header` says; costs are said before the first call all the same."""
    return config.get_verbosity() >= 0 and not config.option.no_header


def _take_up(config: pytest.Config, run: Run | None) -> None:
    config.stash[RUN] = run
    if run is not None:
        config.pluginmanager.register(run.tests, "cellprose-tests")
        if run.engine.has_heldout:
            config.pluginmanager.register(SealedWarnings(), "cellprose-sealed-warnings")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """xdist: hand a worker the finished plan."""
    run = _planned(node.config)
    if run is None:
        return
    from pytest_cellprose.session.controller import hand_out
    from pytest_cellprose.session.schedule import is_apart

    if is_apart(node.gateway.spec):
        from pytest_cellprose.remote import machines

        machines.hand_out(run, node)
    else:
        hand_out(run, node)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """xdist: hear of the calls that a worker let finish, or that it died, before its tests go to the others."""
    run = _planned(node.config)
    if run is not None:
        from pytest_cellprose.session.controller import hear_last

        hear_last(run, getattr(node, "workeroutput", {}), died=error is not None)


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_handlecrashitem(crashitem: str, report: pytest.TestReport, sched: Any) -> None:
    """xdist: record why the cell of a test that its worker did not survive has no score.

    What a worker elsewhere stored of it may still come, with the worker that replaces it.
    """
    run = _planned(sched.config)
    if run is None:
        return
    from pytest_cellprose.session.schedule import is_apart

    if not is_apart(report.node.gateway.spec):
        from pytest_cellprose.session.controller import note_crash

        report.longrepr = note_crash(run, crashitem, report.node.gateway.id) or report.longrepr


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """xdist: keep the plan's order among workers, unless the user chose another distribution than the default."""
    if _run(config) is None or config.option.dist != "load":
        return None
    from pytest_cellprose.session.schedule import StridedScheduling

    return StridedScheduling(config, log)


def pytest_report_header(config: pytest.Config) -> list[str]:
    run = _planned(config)
    if run is None:
        return []
    mode = run.spec.manifest.mode
    first, *rest = run.plan.notes
    from pytest_cellprose.record.plain import visible
    from pytest_cellprose.session.terminal import header_lines

    costs = [] if config.option.collectonly else header_lines(run)  # there they stand below the list of cells
    return [visible(f"cellprose: {said}") for said in [f"{mode} run of {first}", *rest, *costs]]


@pytest.fixture
def cell(request: pytest.FixtureRequest) -> Cell:
    """A cell of the benchmark: one model, encoding, workbook and repeat. ``cell.run()`` measures it."""
    run: Run | None = _run(request.config)
    if run is None or not hasattr(request, "param"):
        pytest.skip("no cells: give a folder with workbooks and question files, --cellprose-cells DIR")
    return run.cell(request.param)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "cell" not in metafunc.fixturenames or not _is_our_cell(metafunc):
        return
    run = _run_for(metafunc.config)
    if run is not None:
        metafunc.parametrize("cell", run.parameters(), indirect=True)


def _is_our_cell(metafunc: pytest.Metafunc) -> bool:
    """Whether ``cell`` means our fixture there, and not one of the project's own or a parameter."""
    if any("cell" in str(mark.args[0]).split(",") for mark in metafunc.definition.iter_markers("parametrize")):
        return False
    definitions = metafunc.definition._fixtureinfo.name2fixturedefs.get("cell", ())
    return bool(definitions) and definitions[-1].func.__module__ == __name__


def _run_for(config: pytest.Config) -> Run | None:
    """The run; planned only now for a test that the look at the command line could not see."""
    if _run(config) is None and not hasattr(config, "workerinput"):
        from pytest_cellprose.plan.settings import cells_folders

        if cells_folders(config):
            from pytest_cellprose.session.controller import build_run

            _take_up(config, build_run(config))
    return _run(config)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Put cells into the plan's order, now that every other plugin has had its say, and judge what is selected."""
    run = _run(session.config)
    if run is None:
        return
    from pytest_cellprose.session.other_plugins import keep_from_repeating
    from pytest_cellprose.session.run import cell_of, in_plan_order, select

    session.items[:] = in_plan_order(run, session.items)
    keep_from_repeating(session.config, filter(cell_of, session.items))
    select(run, map(cell_of, session.items))
    run.collected(session)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: list[str]) -> None:
    """xdist: judge the selection in the controller, which sees node ids only."""
    run = _planned(node.config)
    if run is not None and not run.selected:
        from pytest_cellprose.session.controller import admit_selection, select_by_node_ids

        select_by_node_ids(run, ids)
        admit_selection(run, node.config.invocation_params.args)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Keep calls in flight where the tests run, and run what was not measured once more before the run ends."""
    run = _run(session.config)
    if run is None or session.config.option.collectonly:
        return (yield)
    from pytest_cellprose.session.run import finish_interrupted, interrupt_on_sigterm, run_faulted_again

    if run.calls_live_models:
        interrupt_on_sigterm(session.config)
    run.look_ahead(_upcoming(session))
    try:
        result = yield
        run_faulted_again(run, session)
        return result
    except KeyboardInterrupt:
        finish_interrupted(run, session.config)
        raise
    finally:
        run.tests.give_up(run.begin)


def _upcoming(session: pytest.Session) -> Sequence[pytest.Item] | None:
    """The tests that this process is to run; none but other workers' leavings for one that replaces a crashed worker.

    None: with this distribution nobody knows.
    """
    worker: dict[str, Any] | None = getattr(session.config, "workerinput", None)
    if worker is None:
        return session.items
    if "cellprose_place" not in worker:
        return None
    if worker["cellprose_place"] is None:
        return []
    from pytest_cellprose.session.schedule import stride

    return stride(session.items, worker["cellprose_place"], worker["workercount"])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Tests that take a cell run under a protocol of their own, whatever plugins there are that repeat tests."""
    run = _run(item.config)
    if run is None:
        return None
    from pytest_cellprose.session.run import cell_of

    if cell_of(item) not in run.position:
        return None
    if run.told_to_end():
        item.session.shouldstop = item.session.shouldstop or "cellprose: told to end"
    else:
        run.tests.run(item, nextitem)
    return True


@pytest.hookimpl(wrapper=True, tryfirst=True)  # outermost, so that no other plugin adds to a report that was sealed
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    run = _run(item.config)
    if run is None:
        return (yield)
    from pytest_cellprose.cell import Cell, CellFault
    from pytest_cellprose.record.plain import visible
    from pytest_cellprose.session.items import RECORD
    from pytest_cellprose.session.letters import is_sealed, note_mode_skip, outcome_property, seal
    from pytest_cellprose.store.layout import StoreError

    if run.engine.keeper.failure is not None:
        item.session.shouldfail = f"cellprose: {run.engine.keeper.failure}"

    taken = getattr(item, "funcargs", {}).get("cell")
    record = taken.record if isinstance(taken, Cell) else None
    if record is not None:
        item.stash[RECORD] = record
    if record is not None and record.outcome.policy.stops:
        # a worker passes this on to xdist's controller
        item.session.shouldstop = visible(f"cellprose: {record.outcome.detail}")
    if call.when == "call" and record is not None:
        item.user_properties.append(outcome_property(record))  # before the report that copies them
    report = yield
    fault = call.excinfo is not None and isinstance(call.excinfo.value, (CellFault, StoreError))
    if call.excinfo is not None and fault:
        report.longrepr = str(call.excinfo.value)
    if report.skipped and call.when == "setup":
        note_mode_skip(run, item, report)
    if is_sealed(run, item, call.when):
        seal(report, None if fault else call.excinfo)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable(config: pytest.Config) -> Generator[None, Any, Any]:
    """Any test's report that xdist cannot pass on would end the run, its calls included."""
    data = yield
    if _run(config) is None:
        return data
    from pytest_cellprose.record.plain import plain, sendable_integer

    return plain(data, integer=sendable_integer if hasattr(config, "workerinput") else int)


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.TestReport, config: pytest.Config) -> Any:
    """A measured cell shows its score as the letter; a live cell that the mode skips shows none."""
    run = _run(config)
    if run is None or not isinstance(report, pytest.TestReport):
        return None
    from pytest_cellprose.session.items import RERUN
    from pytest_cellprose.session.letters import is_mode_skip, test_status

    if report.outcome == RERUN:
        return RERUN, "R", ("RERUN", {"yellow": True})
    if report.when == "call" and report.passed:
        status = test_status(report.user_properties)
        return None if status is None else ("passed", *status)
    if report.skipped and is_mode_skip(report):
        return "skipped", "", "SKIPPED"
    return None


@pytest.hookimpl(trylast=True)  # after xdist has waited for its workers
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the reports from the store; in a final run a planned cell without a record is no success."""
    run = _run(session.config)
    if run is None or session.config.option.collectonly:
        return
    if not run.finish_calls(session.config):
        session.exitstatus = pytest.ExitCode.INTERRUPTED
    run.finish_keeping()
    run.end(session)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    run = _planned(config)
    if run is None:
        return
    from pytest_cellprose.session.terminal import plan_lines, summary_lines

    if config.option.collectonly:
        if config.get_verbosity() >= 0:  # under -q the list of ids is all there is, for programs to read
            terminalreporter.section("cellprose plan")
            for line in plan_lines(run):
                terminalreporter.line(line)
        return
    writer = terminalreporter._tw
    encoding = getattr(writer._file, "encoding", None) or "ascii"
    unicode = encoding.lower().replace("-", "").startswith("utf")
    lines = summary_lines(run, writer.fullwidth, colour=writer.hasmarkup, unicode=unicode)
    if lines:
        terminalreporter.section("cellprose")
        for line in lines:
            terminalreporter.line(line)

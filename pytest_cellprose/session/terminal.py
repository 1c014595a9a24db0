"""What is said in the terminal of a plan and of the run it became."""

from __future__ import annotations

from pathlib import Path

from pytest_cellprose.plan.cost import cap_lines, cost_lines, share_lines, skipped_line
from pytest_cellprose.record.plain import visible
from pytest_cellprose.session.controller import ControllerRun, money_problem
from pytest_cellprose.store.layout import REPORT_MD
from pytest_cellprose.wording import counted, some


def header_lines(run: ControllerRun) -> list[str]:
    """What a run that may cost money says of its plan at the start, selected or not: costs and caps."""
    if run.spec.manifest.mode == "development":
        return []
    lines = cost_lines(run.engine, run.cells)
    said = ["expected cost of the plan:", *lines] if lines else []
    said += cap_lines(run.engine, run.cells, run.in_flight)
    return said + share_lines(run.spec.caps, run.processes, run.apart)


def plan_lines(run: ControllerRun) -> list[str]:
    """What ``--collect-only`` says of the plan below its items: counts, costs, and what the gate would say."""
    shard = run.spec.manifest.shard
    share = "" if shard is None else f" (shard {shard}: {len(run.cells):,} cells)"
    lines = [f"{len(run.selected):,} of {len(run.position):,} planned cells selected{share}"]
    lines += cost_lines(run.engine, run.selected)
    lines += [f"  {line}" for line in cap_lines(run.engine, run.selected, run.in_flight)]
    refusals = list(run.plan.refusals)
    if run.spec.manifest.mode != "development" and (problem := money_problem(run)) is not None:
        refusals.append(problem)
    lines += [f"  the gate would refuse: {problem}" for problem in refusals]
    return list(map(visible, lines))


def summary_lines(run: ControllerRun, width: int, *, colour: bool, unicode: bool) -> list[str]:
    """The terminal summary: the report's tables, what was skipped, and where the rest is to be found."""
    tables: list[str] = []
    lines: list[str] = []
    if run.report is not None:
        from pytest_cellprose.report import terminal

        tables = terminal.lines(run.report, width, colour, unicode)
        if run.damaged:
            lines.append(f"{len(run.damaged)} lines of the store were cut short by a crash: {run.damaged[0]}")
    lines += run.problems
    if run.intake is not None:
        lines += run.intake.notes
    if run.untaken:
        lines.append(
            f"{len(run.untaken)} calls were under way when the run ended: let finish, paid for and recorded "
            f"({run.untaken[0]}{', …' if len(run.untaken) > 1 else ''})"
        )
    lost = run.engine.lost_calls()
    if lost:
        lines.append(
            f"{counted(len(lost), 'call')} under way in a process that died, maybe billed: {some(sorted(lost))}"
        )
    if run.tests.awaited:
        lines.append(
            f"{len(run.tests.awaited)} tests were to run again and did not, for their worker ended: "
            f"{some(sorted(run.tests.awaited))}"
        )
    skipped = skipped_line(run.engine, [cell for cell in run.selected if not run.runs(cell)])
    if skipped is not None:
        lines.append(skipped)
    if run.report is not None:
        if run.report.cells.missing and run.spec.manifest.mode == "live":
            lines.append(f"to go on with what was not measured: --cellprose-resume {run.report.run}")
        lines.append(f"report: {_shown(run.engine.store.folder / REPORT_MD)}")
    return tables + list(map(visible, lines))


def _shown(path: Path) -> str:
    """Relative to where the user stands, if it is below."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)

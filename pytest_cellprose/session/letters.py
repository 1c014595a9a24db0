"""What a test's report shows of its cell: a property for other plugins, a letter, a word; and what it must not show."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from pytest_cellprose.record.outcomes import policy
from pytest_cellprose.record.plain import visible
from pytest_cellprose.record.record import Record
from pytest_cellprose.session.run import Run, cell_of

PROPERTY = "cellprose"
"""Name of the user property that carries a cell's outcome to reports, as JSON."""
_MODE_SKIP = "cellprose_mode_skip"
"""Name of a report's attribute."""
WITHHELD = "withheld, the workbook is held out"


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
    if found is None:
        return None
    row = policy(found["status"], found["outcome"])
    if not row.has_score:
        return None
    accuracy = found["accuracy"]
    word = visible(f"{'KEPT ' if found['kept_from'] else ''}{row.word} {accuracy:.2f}")
    return row.letter or ("." if accuracy >= 1 else str(int(accuracy * 10))), word


def note_mode_skip(run: Run, item: pytest.Item, report: pytest.TestReport) -> None:
    """Have the report of a test that our own mark skipped say so, to xdist's controller too."""
    cell = cell_of(item)
    ours = None if cell is None else run.mode_skips.get(cell.model)
    if ours is not None and item.get_closest_marker("skip") is ours.mark:
        report.__dict__[_MODE_SKIP] = True


def is_mode_skip(report: pytest.TestReport) -> bool:
    """Whether a test was skipped because its model does not run in this mode."""
    return _MODE_SKIP in report.__dict__


def is_sealed(run: Run, item: pytest.Item, when: str) -> bool:
    """Whether a report about a test may quote a held-out workbook, a reply or a truth.

    In a run that has any: every report of a test that takes a held-out cell; and of any other test but a development
    cell's those too, as a fixture of a wider scope may have kept what an earlier test saw. It is torn down with
    whichever test is last, a development cell's too.
    """
    if not run.engine.has_heldout:
        return False
    cell = cell_of(item)
    return cell is None or when == "teardown" or run.engine.set_of.get(cell.workbook) == "heldout"


def seal(report: pytest.TestReport, excinfo: pytest.ExceptionInfo[BaseException] | None) -> None:
    """Leave nothing in a report that may quote what is held out: messages, values, captured output, reasons, properties
    that the test recorded. Where it went wrong stays, what kind of error it is, and what the plugin itself says."""
    report.sections = []
    report.user_properties = [each for each in report.user_properties if each[0] == PROPERTY]
    if getattr(report, "wasxfail", None):
        report.wasxfail = f"reason: {WITHHELD}"
    if excinfo is None:
        return
    if isinstance(report.longrepr, tuple):  # skipped, here or by a mark
        path, line, _ = report.longrepr
        report.longrepr = (path, line, f"Skipped: {WITHHELD}")
    elif report.longrepr is not None:
        places = [f"{entry.path}:{entry.lineno + 1}: in {entry.name}" for entry in excinfo.traceback]
        report.longrepr = "\n".join([*places, f"{excinfo.typename}: what it says is {WITHHELD}"])

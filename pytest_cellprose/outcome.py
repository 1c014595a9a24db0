"""What a test's report shows of its cell: a property for other plugins, a letter, a word; and what it must not show."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from pytest_cellprose.record import Record
from pytest_cellprose.running import Run

PROPERTY = "cellprose"
"""Name of the user property that carries a cell's outcome to reports, as JSON."""


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


def is_mode_skip(run: Run, report: pytest.TestReport) -> bool:
    """Whether a test was skipped because its model does not run in this mode."""
    if not isinstance(report.longrepr, tuple):
        return False
    reason = str(report.longrepr[2]).removeprefix("Skipped: ")
    return reason in run.spec.manifest.matrix.skipped_models.values()


def withheld(excinfo: pytest.ExceptionInfo[BaseException]) -> str:
    """The traceback of a held-out cell's test: where and what, but no value and no message, for either may quote
    the workbook or a truth."""
    places = [f"{entry.path}:{entry.lineno + 1}: in {entry.name}" for entry in excinfo.traceback]
    said = f"{excinfo.typename}: what it says is withheld, the workbook is held out"
    return "\n".join([*places, said])

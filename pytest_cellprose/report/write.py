"""The files of a report: ``report.json``, ``verdicts.json`` and ``report.md`` in the run's folder."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pytest_cellprose.files import replace_text
from pytest_cellprose.record.record import Record
from pytest_cellprose.report.analysis import analyse
from pytest_cellprose.report.markdown import render
from pytest_cellprose.report.model import ModelReport, Report
from pytest_cellprose.store.layout import REPORT_JSON, REPORT_MD, VERDICTS_JSON
from pytest_cellprose.store.manifest import Manifest

VERDICTS_SCHEMA = 1

_ENCODING_FIELDS = {
    "role",
    "calls",
    "workbooks",
    "accuracy",
    "accuracy_by_question",
    "input_tokens",
    "output_tokens",
    "cost_per_call",
    "cost_per_correct",
    "failures",
}


def write_reports(folder: Path, manifest: Manifest, records: Iterable[Record]) -> Report:
    """Work out the report and write its files, each whole or not at all. Raises OSError if one cannot be."""
    report = analyse(manifest, records)
    replace_text(folder / REPORT_JSON, _json(report.model_dump(mode="json")))
    replace_text(folder / VERDICTS_JSON, _json(verdicts(report)))
    replace_text(folder / REPORT_MD, render(report))
    return report


def verdicts(report: Report) -> dict[str, Any]:
    """What ``verdicts.json`` holds (docs/ARCHITECTURE.md): nothing in it but the run id depends on when or how fast
    the run was. Costs are US dollars, tokens and costs per call; amounts have 9 significant digits, shares
    9 decimals; infinite is ``"inf"``, and what is undefined or was not measured is null.
    """
    return {
        "schema": VERDICTS_SCHEMA,
        "run": report.run,
        "publishable": report.publishable,
        "complete": report.complete,
        "cells": report.cells.model_dump(mode="json"),
        "deviations": report.deviations,
        "challenger": report.challenger,
        "sets": {
            name: {
                "workbooks": of_set.workbooks,
                "questions": of_set.questions,
                "models": {alias: _model(model) for alias, model in of_set.models.items()},
            }
            for name, of_set in report.sets.items()
        },
    }


def _model(model: ModelReport) -> dict[str, Any]:
    return {
        "status": model.status,
        "note": model.note,
        "nominal": model.nominal,
        "complete": model.complete,
        "compared_on": model.compared_on,
        "encodings": {
            name: encoding.model_dump(mode="json", include=_ENCODING_FIELDS)
            for name, encoding in model.encodings.items()
        },
        "against": {name: against.model_dump(mode="json") for name, against in model.against.items()},
    }


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"

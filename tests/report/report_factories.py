"""Small manifests and records, so that a test shows only what it is about."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from pytest_cellprose.record.record import (
    CellId,
    CountedTokens,
    Git,
    ModelUsed,
    NotStarted,
    Outcome,
    Prices,
    Record,
    SetName,
    Usage,
)
from pytest_cellprose.store.manifest import Manifest, Matrix, ModelEntry, WorkbookEntry

RUN = "20261201T100000-abc123"
START = datetime(2026, 12, 1, 10, tzinfo=UTC)
GIT = Git(commit="0" * 40, dirty=False)
SIX = ("cellprose_lean_gfm", "markitdown", "csv", "markdown", "toon", "none")


def model_entry(alias: str, **fields: Any) -> ModelEntry:
    known = {
        "reader": {
            "model_id": "reader-1",
            "vendor": "offline",
            "status": "offline",
            "note": "reader: a program; ceiling accuracy, nominal prices",
        },
        "haiku45": {
            "model_id": "claude-haiku-4-5",
            "vendor": "anthropic",
            "status": "apart",
            "note": "haiku45 is never compared with haiku55",
        },
    }
    usual = {
        "model_id": f"{alias}-id",
        "vendor": "anthropic",
        "status": "proposed",
        "prices_checked": "2026-10-11",
    }
    return ModelEntry.model_validate({"alias": alias, **(known.get(alias) or usual), **fields})


def workbook_entry(name: str, set_name: SetName = "development", **fields: Any) -> WorkbookEntry:
    return WorkbookEntry.model_validate(
        {
            "name": name,
            "set": set_name,
            "workbook_sha256": "1" * 64,
            "questions_sha256": "2" * 64,
            "questions": 4,
            **fields,
        }
    )


def manifest(
    models: Sequence[str | ModelEntry] = ("haiku55",),
    encodings: Sequence[str] = ("cellprose_lean_gfm", "markitdown", "csv"),
    workbooks: Sequence[str | WorkbookEntry] = ("a", "b"),
    repeats: int = 1,
    matrix: dict[str, Any] | None = None,
    **fields: Any,
) -> Manifest:
    entries = [model if isinstance(model, ModelEntry) else model_entry(model) for model in models]
    return Manifest.model_validate(
        {
            "run": RUN,
            "mode": "final",
            "started": "2026-12-01T10:00:00Z",
            "finished": "2026-12-01T11:00:00Z",
            "invocation": ["--cellprose-final"],
            "git": GIT,
            "versions": {"python": "3.12.0"},
            "challenger": "cellprose_lean_gfm",
            "matrix": Matrix.model_validate(
                {
                    "models": [entry.alias for entry in entries],
                    "encodings": list(encodings),
                    "workbooks": [
                        book if isinstance(book, WorkbookEntry) else workbook_entry(book) for book in workbooks
                    ],
                    "repeats": repeats,
                    **(matrix or {}),
                }
            ),
            "models": entries,
            "encoding_versions": dict.fromkeys(encodings, "1"),
            "publishable": True,
            **fields,
        }
    )


def record(
    cell: CellId,
    scores: Sequence[float] = (1.0, 1.0, 1.0, 1.0),
    cost: int | None = 1_000_000,
    outcome: Outcome | None = None,
    kinds: Sequence[str] = ("value", "address", "trace", "impact"),
    start: float = 0.0,
    tokens: tuple[int | None, int | None, int | None] = (1000, 100, None),
    counted: int | None = None,
    **fields: Any,
) -> Record:
    """`tokens` are input, output and cached; `cost` nano-dollars; `start` seconds into the run."""
    outcome = outcome or Outcome(status="scored")
    ids = [f"q{i}" for i in range(1, len(scores) + 1)]
    faulted = outcome.status == "fault"
    return Record.model_validate(
        {
            "run": RUN,
            "git": GIT,
            "cell": cell,
            "set": "development",
            "encoding_version": "1",
            "inputs_id": "3" * 64,
            "prompt_sha256": "4" * 64,
            "model": ModelUsed(requested=f"{cell.model}-id", returned=f"{cell.model}-id"),
            "prices": Prices(input="0.10", output="0.50", nominal=cell.model == "reader"),
            "usage": Usage(input=tokens[0], output=tokens[1], cached=tokens[2]),
            "counted_tokens": CountedTokens(counter="toktok-rs 0.3.0 o200k_base", n=counted) if counted else None,
            "cost_nanousd": cost,
            "cost_as_billed_nanousd": cost,
            "started": (START + timedelta(seconds=start)).isoformat(),
            "seconds": 2.0,
            "outcome": outcome,
            "kinds": dict(zip(ids, kinds, strict=False)),
            "scores": None if faulted else dict(zip(ids, scores, strict=True)),
            "accuracy": None if faulted else sum(scores) / len(scores),
            **fields,
        }
    )


def failure(cell: CellId, kind: str = "truncated", **fields: Any) -> Record:
    return record(cell, (0.0,) * 4, outcome=Outcome(status="failure", kind=kind), **fields)


def fault(cell: CellId, kind: str = "timeout", **fields: Any) -> Record:
    return record(cell, outcome=Outcome(status="fault", kind=kind, detail="no bytes for 60 s"), **fields)


def refusal(cell: CellId, by: str = "a plugin", start: float = 0.0, **fields: Any) -> Record:
    """A call that was not let start; `fields` are what was told of the limit."""
    reason = NotStarted(by=by, **fields)
    outcome = Outcome(status="fault", kind="window_full", detail="the window is full", not_started=reason)
    return record(cell, outcome=outcome, cost=None, tokens=(None, None, None), attempts=0, start=start)


def all_records(plan: Manifest) -> list[Record]:
    """A plausible record of every planned cell: cheaper and right more often with some encodings."""
    price = {"cellprose_lean_gfm": 61, "markitdown": 130, "csv": 100, "markdown": 118, "toon": 97, "none": 3}
    sets = {workbook.name: workbook.set for workbook in plan.matrix.workbooks}
    names = list(sets)
    models = {alias: 1 + 4 * place for place, alias in enumerate(plan.matrix.models)}
    result = []
    for number, cell in enumerate(plan.matrix.cells()):
        place = names.index(cell.workbook)
        size = 90 + 37 * (place % 5) + 400 * (place % 3 == 2)
        tokens = price.get(cell.encoding, 80) * size
        wrong = cell.encoding == "none" or (place * 7 + len(cell.encoding) + cell.repeat) % 6 == 0
        result.append(
            record(
                cell,
                scores=(1.0, 0.0 if wrong else 1.0, 0.0 if cell.encoding == "none" else 1.0, 1.0),
                cost=(tokens * 100 + 180 * 500) * models[cell.model],
                tokens=(tokens, 180, 0 if "gpt" in cell.model else None),
                start=2.0 * number,
                counted=tokens - 17,
                set=sets[cell.workbook],
            )
        )
    return result

"""The development set: which workbooks there are, and the folder that holds their files and the split."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from pytest_cellprose.sets.split import SEED, SPLIT_FILE, Split, load_split
from pytest_cellprose.sets.synthetic import (
    budget,
    hard_headers,
    hard_maze,
    hard_overrides,
    hard_ragged,
    inventory,
    ledger,
    loan,
    payroll,
    project_plan,
    sales,
    survey,
    three_statement,
    unit_economics,
)
from pytest_cellprose.sets.synthetic.ask import Questions

GENERATORS: Mapping[str, Callable[[], Questions]] = {
    "budget": budget.build,
    "hard_headers": hard_headers.build,
    "hard_maze": hard_maze.build,
    "hard_overrides": hard_overrides.build,
    "hard_ragged": hard_ragged.build,
    "inventory": inventory.build,
    "ledger": ledger.build,
    "loan": loan.build,
    "payroll": payroll.build,
    "project_plan": project_plan.build,
    "sales": sales.build,
    "survey": survey.build,
    "three_statement": three_statement.build,
    "unit_economics": unit_economics.build,
}
"""Workbook name -> its generator, with the seed that the committed files were built with."""

SOURCE = "generated: python -m pytest_cellprose sets build development"


class Built(NamedTuple):
    """One workbook as files."""

    name: str
    xlsx: bytes
    questions: str
    """The question file's text."""

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.xlsx).hexdigest()


def build_workbook(name: str) -> Built:
    """Generate one workbook and its question file; the same bytes on every machine."""
    questions = GENERATORS[name]()
    xlsx = questions.book.xlsx()
    content = {
        "schema": 1,
        "workbook": f"{name}.xlsx",
        "sha256": hashlib.sha256(xlsx).hexdigest(),
        "source": SOURCE,
        "questions": questions.entries,
    }
    return Built(name, xlsx, _json(content))


def build_development(folder: Path) -> list[Built]:
    """Write every generated workbook with its questions into `folder`, and list them in its ``split.json``.

    What the split lists besides (question files for real workbooks, held-out digests) stays as it is. Raises
    `SplitError` for a split that cannot be read, before anything is written.
    """
    split = folder / SPLIT_FILE
    before = load_split(split) if split.exists() else Split()
    built = [build_workbook(name) for name in GENERATORS]
    folder.mkdir(parents=True, exist_ok=True)
    for workbook in built:
        (folder / f"{workbook.name}.xlsx").write_bytes(workbook.xlsx)
        (folder / f"{workbook.name}.json").write_text(workbook.questions, encoding="utf-8", newline="\n")
    digests = {workbook.name: workbook.sha256 for workbook in built}
    split.write_text(_json(merged_split(before, digests)), encoding="utf-8", newline="\n")
    return built


def merged_split(before: Split, digests: Mapping[str, str]) -> dict[str, object]:
    """A split with these development digests, sorted by name, and everything else that it listed before."""
    development = {**before.development, **digests}
    return {
        "schema": 1,
        "seed": SEED,
        "development": dict(sorted(development.items())),
        "heldout": before.heldout,
    }


def _json(content: object) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"

"""Which tasks and variants a plan has: those of the suite that its cells folders belong to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_cellprose.files import sha256_of
from pytest_cellprose.options import DEFAULT_CHALLENGER
from pytest_cellprose.plan.models import Registered
from pytest_cellprose.plan.problems import Draft
from pytest_cellprose.plan.settings import Settings
from pytest_cellprose.record.record import SetName
from pytest_cellprose.sets.split import SPLIT_FILE, Split, SplitError, load_split
from pytest_cellprose.store.manifest import SPREADSHEETS, WorkbookEntry
from pytest_cellprose.suites.base import Suite, SuiteError, Task, TaskSource, Variant


@dataclass(frozen=True)
class PlannedTasks:
    """What a suite brings to a plan."""

    suite: Suite
    variants: Sequence[Variant]
    entries: Sequence[WorkbookEntry]
    sources: Mapping[str, TaskSource]
    challenger: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    """For the record: how held-out tasks were drawn, and the like."""
    splits: Mapping[Path, str] = field(default_factory=dict)
    """Split file -> its SHA-256."""
    not_here: Sequence[str] = ()
    """Tasks whose files are in no folder."""
    notes: Sequence[str] = ()
    """Lines for the header."""


def suite_of(settings: Settings, registered: Registered, draft: Draft) -> Suite | None:
    """The suite that the cells folders' ``split.json`` name, spreadsheets where none is named; None if that is wrong.

    What is wrong with a split file otherwise is its suite's to say.
    """
    named: dict[str, Path] = {}
    for folder in settings.cells:
        named.setdefault(_named_in(folder / SPLIT_FILE), folder)
    if len(named) > 1:
        said = ", ".join(f"{folder} is of {name!r}" for name, folder in named.items())
        draft.refuse(f"one run is one suite: {said}; run them one after the other")
        return None
    name, folder = next(iter(named.items()), (SPREADSHEETS, Path()))
    if name not in registered.suites:
        known = ", ".join(registered.suites)
        draft.refuse(f"{folder / SPLIT_FILE}: suite: none of this name is known: known are {known}")
        return None
    return registered.suites[name]


def _named_in(split: Path) -> str:
    try:
        fields = json.loads(split.read_bytes())
    except (OSError, ValueError):
        return SPREADSHEETS
    name = fields.get("suite") if isinstance(fields, dict) else None
    return name if isinstance(name, str) else SPREADSHEETS


def planned_tasks(suite: Suite, settings: Settings, draft: Draft) -> PlannedTasks:
    """The tasks and variants of a suite other than spreadsheets, as the settings leave them.

    What is wrong goes into `draft`. A final run is the protocol's, and the protocol's suite is spreadsheets.
    """
    if settings.final:
        draft.refuse(f"--cellprose-final: the protocol is about spreadsheets, not about the suite {suite.name!r}")
    variants = {variant.name: variant for variant in suite.variants()}
    names = list(settings.encodings) if settings.encodings is not None else list(variants)
    draft.refuse_unknown("--cellprose-encodings", suite.axes[0], names, variants)
    challenger = settings.challenger
    if challenger == DEFAULT_CHALLENGER and challenger not in variants:
        challenger = next((name for name in names if name != "none"), "none")
    draft.refuse_unknown("--cellprose-challenger", suite.axes[0], [challenger], variants)
    if settings.baseline is not None:
        draft.refuse_unknown("--cellprose-baseline", suite.axes[0], [settings.baseline], variants)
    found, splits = _found(suite, settings.cells, draft)
    eligible = {name: task for name, (task, _, side) in found.items() if side == "development"}
    if settings.workbooks is not None:
        draft.refuse_unknown("--cellprose-workbooks", suite.axes[1], settings.workbooks, eligible)
        eligible = {name: task for name, task in eligible.items() if name in settings.workbooks}
    if not eligible and not draft.problems:
        draft.refuse(f"no {suite.axes[1]} of the suite {suite.name!r} in {', '.join(map(str, settings.cells))}")
    return PlannedTasks(
        suite=suite,
        variants=[variants[name] for name in names if name in variants],
        entries=[
            WorkbookEntry(
                name=name,
                set="development",
                workbook_sha256=task.digest,
                questions_sha256=task.digest,
                questions=len(task.parts),
            )
            for name, task in sorted(eligible.items())
        ],
        sources={name: TaskSource(folder=found[name][1]) for name in eligible},
        challenger=challenger,
        splits=splits,
    )


def _found(
    suite: Suite, folders: Sequence[Path], draft: Draft
) -> tuple[dict[str, tuple[Task, Path, SetName]], dict[Path, str]]:
    """Task name -> task, folder and set; and the split files."""
    found: dict[str, tuple[Task, Path, SetName]] = {}
    splits: dict[Path, str] = {}
    for folder in folders:
        split = _split(folder, splits, draft)
        try:
            tasks = list(suite.tasks(folder))
        except SuiteError as error:
            draft.refuse(str(error))
            continue
        for task in tasks:
            if task.name in found:
                draft.refuse(f"{folder}: {suite.axes[1]} {task.name!r} is in {found[task.name][1]} too; rename one")
            found[task.name] = (task, folder, _set_of(task, split))
    return found, splits


def _split(folder: Path, splits: dict[Path, str], draft: Draft) -> Split | None:
    path = folder / SPLIT_FILE
    if not path.is_file():
        return None
    try:
        split = load_split(path)
    except SplitError as error:
        draft.refuse(str(error))
        return None
    splits[path] = sha256_of(path)
    return split


def _set_of(task: Task, split: Split | None) -> SetName:
    """A split that lists any task decides; what it does not list is held out."""
    if split is None or not (split.development or split.heldout):
        return task.set
    return "development" if task.name in split.development else "heldout"

"""Held-out workbooks from SpreadsheetBench's cell-level tasks, restated as value questions.

`build_spreadsheetbench` reads the published data (CC BY-SA 4.0) and writes a question file, the input workbook and the
answer workbook of each task that is taken. What it writes is derived from that data and stays out of this repository;
`reviewed.toml` has the task ids, the digests and the judgements, and `docs/spreadsheetbench.md` the rules.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from pytest_cellprose.questions.schema import QuestionFile
from pytest_cellprose.sets.pinned import other_questions
from pytest_cellprose.sets.spreadsheetbench.archive import Pair, SourceError, Task, read_published
from pytest_cellprose.sets.spreadsheetbench.ask import CellRule, Restated, TaskRule, answer_name, ask

__all__ = ["FOLDER", "CellRule", "Reviewed", "SourceError", "TaskRule", "build_spreadsheetbench", "reviewed"]

FOLDER = Path("cells", "spreadsheetbench")
"""Where the set belongs in a checkout; git ignores it."""

CELL_LEVEL = "Cell-Level Manipulation"

NOTICE = """\
The workbooks and question files in this folder are derived from SpreadsheetBench
(Zeyao Ma et al., https://spreadsheetbench.github.io), licensed CC BY-SA 4.0
(https://creativecommons.org/licenses/by-sa/4.0/), and are under the same license.
Changed: files renamed; instructions restated as questions about the value of one cell.
Results on them are "SpreadsheetBench-derived", not SpreadsheetBench scores.
"""


@dataclass(frozen=True)
class Reviewed:
    """What was decided by reading the tasks: ``reviewed.toml``."""

    considered: frozenset[str]
    """Ids of the tasks whose instructions were read; the set is drawn from these, whatever else a copy has."""
    taken: Mapping[str, tuple[str, str]]
    """Task id -> SHA-256 of the input and of the answer workbook that were read."""
    dropped: Mapping[str, TaskRule]
    without: Mapping[str, tuple[str, ...]]
    """Task id -> answer cells whose published value is not what the instruction asks for."""


def reviewed() -> Reviewed:
    raw = tomllib.loads(files(__package__).joinpath("reviewed.toml").read_text(encoding="utf-8"))
    return Reviewed(
        considered=frozenset(raw["considered"]),
        taken={task: (digests[0], digests[1]) for task, digests in raw["taken"].items()},
        dropped={task: TaskRule[reason] for task, reason in raw["dropped"].items()},
        without={task: tuple(cells) for task, cells in raw["without"].items()},
    )


def build_spreadsheetbench(source: Path, folder: Path = FOLDER) -> list[str]:
    """Write the set into `folder` from a folder or archive of the published data.

    For each task taken: ``sb_<id>.json``, ``sb_<id>.xlsx`` (the input) and ``sb_<id>.answer.xlsx``. The same source
    gives the same bytes. Returns lines for people: what was taken, and what was not, by rule. Raises `SourceError`
    for a source that is not the published data, before anything is written, and OSError where it cannot write.
    """
    judged = reviewed()
    published = read_published(source, judged.considered)
    results = {task.id: _restated(task, published.pairs.get(task.id), judged) for task in published.tasks}
    taken = {task: restated.entries for task, restated in results.items() if restated.dropped is None}
    folder.mkdir(parents=True, exist_ok=True)
    for task, entries in taken.items():
        pair = published.pairs[task]
        content = {
            "schema": 1,
            "workbook": f"sb_{task}.xlsx",
            "sha256": sha256(pair.input).hexdigest(),
            "source": f"SpreadsheetBench (CC BY-SA 4.0), task {task}; https://spreadsheetbench.github.io",
            "questions": entries,
        }
        QuestionFile.model_validate(content)
        (folder / f"sb_{task}.xlsx").write_bytes(pair.input)
        (folder / answer_name(task)).write_bytes(pair.answer)
        text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        (folder / f"sb_{task}.json").write_text(text, encoding="utf-8", newline="\n")
    (folder / "NOTICE.txt").write_text(NOTICE, encoding="utf-8", newline="\n")
    return [
        *_summary(results),
        *_others(published.pairs, taken, judged),
        *other_questions(folder, (f"sb_{task}" for task in taken)),
        *_left_over(folder, taken),
    ]


def _restated(task: Task, pair: Pair | None, judged: Reviewed) -> Restated:
    if task.type != CELL_LEVEL:
        return _without_cells(TaskRule.SHEET_LEVEL)
    if task.id not in judged.considered:
        return _without_cells(TaskRule.NOT_CONSIDERED)
    if pair is None:
        return _without_cells(TaskRule.NO_PAIR)
    restated = ask(task, pair, judged.without.get(task.id, ()))
    if restated.dropped is None and task.id in judged.dropped:
        return _without_cells(judged.dropped[task.id])
    if restated.dropped is None and task.id not in judged.taken:  # other files, for which no rule drops it any more
        return _without_cells(TaskRule.NOT_CONSIDERED)
    return restated


def _without_cells(rule: TaskRule) -> Restated:
    return Restated([], Counter(), rule)


def _summary(results: Mapping[str, Restated]) -> list[str]:
    taken = [restated for restated in results.values() if restated.dropped is None]
    questions = sum(len(restated.entries) for restated in taken)
    dropped = Counter(restated.dropped for restated in results.values() if restated.dropped is not None)
    left_out: Counter[CellRule] = Counter()
    for restated in taken:
        left_out += restated.left_out
    return [
        f"SpreadsheetBench-derived: {len(taken)} workbooks, {questions} questions, from {len(results)} tasks",
        f"tasks dropped: {dropped.total()}",
        *(f"{dropped[rule]:6}  {rule}" for rule in TaskRule),
        f"answer cells of the tasks taken that are not asked about: {left_out.total()}",
        *(f"{left_out[rule]:6}  {rule}" for rule in CellRule),
    ]


def _others(pairs: Mapping[str, Pair], taken: Mapping[str, object], judged: Reviewed) -> list[str]:
    """Workbooks that are not the files that were read when the tasks were judged."""
    lines = []
    for task in taken:
        read = judged.taken.get(task)
        here = tuple(sha256(content).hexdigest() for content in pairs[task])
        if here != read:
            lines.append(f"sb_{task}: not the files that were reviewed; results are not comparable with others'")
    return lines


def _left_over(folder: Path, taken: Mapping[str, object]) -> list[str]:
    names = sorted(path.name for path in folder.glob("sb_*.json") if path.stem.removeprefix("sb_") not in taken)
    return [f"{folder}: has question files that are not of this build: {', '.join(names)}"] if names else []

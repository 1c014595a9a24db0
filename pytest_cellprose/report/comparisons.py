"""The challenger against each baseline, over the workbooks that both completed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pytest_cellprose.method.roles import REFERENCE as CSV
from pytest_cellprose.method.roles import Role
from pytest_cellprose.record.record import CellId
from pytest_cellprose.report import attempts
from pytest_cellprose.report.attempts import Attempt
from pytest_cellprose.report.model import Against, LongPrompts, WithoutOne
from pytest_cellprose.stats import LeaveOneOut, Verdict, WorkbookMean, compare, leave_one_out
from pytest_cellprose.store.manifest import SPREADSHEETS, Manifest

_ORDER: tuple[Role, ...] = ("primary", "reference", "secondary", "other", "reported")
"""Of the baselines, the ones that matter most first."""


class Side(NamedTuple):
    """What was planned and measured of one encoding, of one model and set."""

    role: Role
    cells: Sequence[CellId]
    calls: Sequence[Attempt]
    faults: Sequence[Attempt]

    def completed(self) -> dict[str, list[Attempt]]:
        """The workbooks of which every planned repeat was measured."""
        planned = Counter(cell.workbook for cell in self.cells)
        groups = attempts.by_workbook(self.calls)
        return {workbook: calls for workbook, calls in groups.items() if len(calls) == planned[workbook]}

    def on(self, workbooks: Sequence[str]) -> list[Attempt]:
        """The calls about these workbooks; none if it did not complete them all."""
        completed = self.completed()
        if any(workbook not in completed for workbook in workbooks):
            return []
        return [call for workbook in workbooks for call in completed[workbook]]


def completed_by_all(sides: Iterable[Side]) -> set[str]:
    """The workbooks that every side completed, of those that completed any; the control alone is asked last."""
    completed = [(side.role, set(side.completed())) for side in sides]
    compared = [found for role, found in completed if found and role != "control"] or [
        found for _, found in completed if found
    ]
    return set.intersection(*compared) if compared else set()


def against_baselines(
    manifest: Manifest, sides: Mapping[str, Side], workbooks: int, *, whole: bool
) -> dict[str, Against]:
    """The challenger against every other encoding but the control, the primary baselines first.

    `workbooks` are planned; `whole` is as `compare` takes it.
    """
    if manifest.challenger not in sides:
        return {}
    calls = {encoding: side.completed() for encoding, side in sides.items()}
    means = {encoding: _means(completed) for encoding, completed in calls.items()}
    baselines = [encoding for encoding, side in sides.items() if side.role in _ORDER]
    result = {}
    for baseline in sorted(baselines, key=lambda encoding: _ORDER.index(sides[encoding].role)):
        role, own, theirs = sides[baseline].role, means[manifest.challenger], means[baseline]
        reference = CSV if manifest.suite == SPREADSHEETS else baseline
        numbers, verdict = compare(
            own,
            theirs,
            means.get(reference),
            planned=workbooks,
            whole=whole,
            reference=reference,
            task=manifest.axes[1],
        )
        common = own.keys() & theirs.keys()
        alone = leave_one_out({name: own[name] for name in common}, {name: theirs[name] for name in common})
        if role == "reported":
            untested = "reported, not tested" + ("" if verdict.word else f"; {verdict.reason}")
            shown = Verdict(None, untested)
        else:
            shown = verdict
        result[baseline] = Against(
            role=role,
            complete=verdict.word is not None,
            workbooks=numbers.workbooks if numbers else 0,
            ratio=numbers.ratio if numbers else None,
            interval=numbers.interval if numbers else None,
            accuracy_difference=numbers.accuracy_difference if numbers else None,
            accuracy_interval=numbers.accuracy_interval if numbers else None,
            without_one=None if alone is None else _without_one(alone),
            long_prompts=LongPrompts(
                challenger=_long_prompts(calls[manifest.challenger], common),
                baseline=_long_prompts(calls[baseline], common),
            ),
            verdict=shown.word,
            reason=shown.reason,
        )
    return result


def _means(completed: Mapping[str, Sequence[Attempt]]) -> dict[str, WorkbookMean]:
    return {workbook: attempts.workbook_mean(calls) for workbook, calls in completed.items()}


def _without_one(alone: LeaveOneOut) -> WithoutOne:
    return WithoutOne(lowest=alone.lowest, highest=alone.highest, workbook=alone.workbook, ratio=alone.without_it)


def _long_prompts(completed: Mapping[str, Sequence[Attempt]], workbooks: Iterable[str]) -> int:
    return sum(call.long_prompts for workbook in workbooks for call in completed[workbook])

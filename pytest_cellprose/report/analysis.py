"""Manifest and records -> `Report`: a pure function, whatever the order of the records.

The records are read once, as a stream, and only what the report needs of each cell's own is kept.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from statistics import fmean
from typing import TypeAlias

from pytest_cellprose.record import CellId, Record, SetName
from pytest_cellprose.report import attempts
from pytest_cellprose.report.attempt import Attempt, Attempts
from pytest_cellprose.report.limitations import SET_LABELS, limitations
from pytest_cellprose.report.model import (
    Against,
    CellCounts,
    EncodingReport,
    Fault,
    ModelFacts,
    ModelReport,
    Report,
    Role,
    SetReport,
)
from pytest_cellprose.report.pairs import paired
from pytest_cellprose.run.budget import kept_from_starting
from pytest_cellprose.run.manifest import Manifest, ModelEntry, WorkbookEntry
from pytest_cellprose.run.shards import missing_shards, own_cells
from pytest_cellprose.stats import WorkbookMean, compare

ROLES: Mapping[str, Role] = {
    "markitdown": "primary",
    "agent_xlsx": "primary",
    "csv": "reference",
    "markdown": "secondary",
    "toon": "secondary",
    "agent_cellprose": "reported",
    "none": "control",
}
"""DESIGN section 4 and protocol section 1; everything else is ``other``, and compared."""

_ORDER: tuple[Role, ...] = ("primary", "reference", "secondary", "other", "reported")
"""Of the baselines, the ones that matter most first."""

Cells: TypeAlias = Mapping[CellId, Attempt]


def analyse(manifest: Manifest, records: Iterable[Record]) -> Report:
    """Work out the report of one run.

    Records of cells outside the plan and superseded ones count in nothing but what was spent; records of
    other runs in nothing at all, unless the run was merged from them.
    """
    planned = list(manifest.matrix.cells())
    runs = manifest.runs
    latest, superseded = _latest((record for record in records if record.run in runs), Attempts(planned))
    known = {cell: latest[cell] for cell in planned if cell in latest}
    measured = {cell: record for cell, record in known.items() if record.status != "fault"}
    faulted = {cell: record for cell, record in known.items() if record.status == "fault"}
    own = own_cells(manifest)
    skipped = [cell for cell in own if cell not in known and cell.model in manifest.matrix.skipped_models]
    not_run = [cell for cell in own if cell not in known and cell.model not in manifest.matrix.skipped_models]
    elsewhere = len(planned) - len({*own, *known})
    counts = CellCounts(
        planned=len(planned),
        measured=len(measured),
        failed=sum(record.status == "failure" for record in measured.values()),
        faulted=len(faulted),
        skipped=len(skipped),
        not_run=len(not_run),
        in_other_shards=elsewhere,
    )
    deviations = list(manifest.deviations)
    if not_run:
        deviations.append(f"{len(not_run)} of {len(planned)} planned cells were not run")
    if elsewhere:
        absent = ", ".join(map(str, missing_shards(manifest)))
        deviations.append(f"{elsewhere} of {len(planned)} planned cells are in shards that are not here ({absent})")
    if faulted:
        deviations.append(f"{len(faulted)} of {len(planned)} planned cells faulted and have no score")
    bounded = kept_from_starting(Counter(record.kind or "" for record in faulted.values()))
    if bounded is not None:
        deviations.append(bounded)
    set_of = {workbook.name: workbook.set for workbook in manifest.matrix.workbooks}
    return Report(
        run=manifest.run,
        mode=manifest.mode,
        started=manifest.started,
        finished=manifest.finished,
        invocation=manifest.invocation,
        experiment=manifest.experiment,
        method=manifest.method,
        git=manifest.git,
        versions=manifest.versions,
        settings=manifest.settings,
        challenger=manifest.challenger,
        repeats=manifest.matrix.repeats,
        publishable=manifest.publishable and counts.complete,
        complete=counts.complete,
        deviations=deviations,
        limitations=limitations(manifest),
        shard=manifest.shard,
        missing_shards=missing_shards(manifest),
        merged_from=manifest.merged_from,
        cells=counts,
        kept=dict(sorted(Counter(record.kept_from for record in known.values() if record.kept_from).items())),
        kept_cells=_kept_cells(known),
        stale=sum(record.replaced for record in known.values()),
        after_fault=sum(any(found.status == "fault" for found in superseded.get(cell, ())) for cell in measured),
        spent=_spent(chain(latest.values(), *superseded.values())) / attempts.NANO,
        sets=_sets(manifest, planned, measured, faulted),
        models=[_facts(entry, manifest, known) for entry in manifest.models],
        encoding_versions=manifest.encoding_versions,
        workbooks=manifest.matrix.workbooks,
        planned_out=manifest.matrix.planned_out,
        faults=[
            Fault(
                cell=str(cell),
                set=set_of[cell.workbook],
                kind=record.kind or "unnamed",
                detail=record.detail,
            )
            for cell, record in faulted.items()
        ],
        not_run=[str(cell) for cell in not_run],
        not_here=manifest.not_here,
        split_sha256=manifest.split_sha256,
    )


def _latest(records: Iterable[Record], make: Attempts) -> tuple[dict[CellId, Attempt], dict[CellId, list[Attempt]]]:
    """Per cell: the attempt that counts, and those that it supersedes."""
    best: dict[CellId, Attempt] = {}
    superseded: dict[CellId, list[Attempt]] = defaultdict(list)
    for record in records:
        found = make.of(record)
        before = best.setdefault(found.cell, found)
        if found == before or found in superseded.get(found.cell, ()):
            continue  # the first of its cell; or one line twice, such as a rescued record that was put back two times
        if _is_later(found, before):
            best[found.cell], found = found, before
        superseded[found.cell].append(found)
    return best, superseded


def _kept_cells(known: Cells) -> dict[str, list[str]]:
    kept: dict[str, list[str]] = defaultdict(list)
    for cell, found in known.items():
        if found.kept_from:
            kept[found.kept_from].append(str(cell))
    return dict(sorted(kept.items()))


def _spent(everything: Iterable[Attempt]) -> int:
    """What these attempts cost this run, in nano-dollars."""
    return sum(found.cost_nanousd or 0 for found in everything if not (found.prices.nominal or found.kept_from))


def _is_later(one: Attempt, other: Attempt) -> bool:
    """Any two are in one order, whichever comes first in the store."""
    keys = one.key(), other.key()
    return keys[0] > keys[1] if keys[0] != keys[1] else repr(one) > repr(other)


def _sets(manifest: Manifest, planned: Sequence[CellId], measured: Cells, faulted: Cells) -> dict[SetName, SetReport]:
    reports = {}
    for name in SET_LABELS:
        workbooks = [workbook for workbook in manifest.matrix.workbooks if workbook.set == name]
        names = {workbook.name for workbook in workbooks}
        models = {}
        for entry in manifest.models:
            of_model = [cell for cell in planned if cell.workbook in names and cell.model == entry.alias]
            theirs, scored = (workbooks, measured)
            if entry.vendor == "offline":
                theirs, scored = _ceiling(workbooks, measured)
                left = {workbook.name for workbook in theirs}
                of_model = [cell for cell in of_model if cell.workbook in left]
            if any(cell in scored or cell in faulted for cell in of_model):
                models[entry.alias] = _model(entry, manifest, theirs, of_model, scored, faulted)
        if workbooks:
            reports[name] = SetReport(
                workbooks=len(workbooks),
                questions=sum(workbook.questions for workbook in workbooks),
                models=models,
            )
    return reports


def _ceiling(workbooks: Sequence[WorkbookEntry], measured: Cells) -> tuple[list[WorkbookEntry], Cells]:
    """Workbooks and records as an offline model is judged by them: without computed questions.

    No text that is sent holds their answers, so they say nothing about what a text allows; a workbook that has
    no others drops out.
    """
    computed = {workbook.name: set(workbook.computed) for workbook in workbooks if workbook.computed}
    left = [workbook for workbook in workbooks if workbook.name not in computed or _others(workbook, measured)]
    scored = {cell: record.without(computed.get(cell.workbook, set())) for cell, record in measured.items()}
    return left, scored


def _others(workbook: WorkbookEntry, measured: Cells) -> bool:
    """Whether anything was asked about a workbook that is not computed."""
    asked = {name for cell, record in measured.items() if cell.workbook == workbook.name for name in record.kinds}
    return bool(asked - set(workbook.computed))


def _model(
    entry: ModelEntry,
    manifest: Manifest,
    workbooks: Sequence[WorkbookEntry],
    planned: Sequence[CellId],
    measured: Cells,
    faulted: Cells,
) -> ModelReport:
    """One model on one set."""
    cells: dict[str, list[CellId]] = defaultdict(list)
    for cell in planned:
        cells[cell.encoding].append(cell)
    encodings = [encoding for encoding in manifest.matrix.encodings if encoding in cells]
    calls = {encoding: [measured[cell] for cell in cells[encoding] if cell in measured] for encoding in encodings}
    faults = {encoding: [faulted[cell] for cell in cells[encoding] if cell in faulted] for encoding in encodings}
    nominal = any(record.prices.nominal for records in calls.values() for record in records)
    return ModelReport(
        status=entry.status,
        note=entry.note or ("nominal prices" if nominal else None),
        encodings={
            encoding: _encoding(
                _role(encoding, manifest.challenger),
                len(cells[encoding]),
                calls[encoding],
                faults[encoding],
                calls.get("csv", []),
            )
            for encoding in encodings
        },
        against=_against(manifest.challenger, len(workbooks), cells, calls),
        paired=paired({encoding: calls[encoding] for encoding in encodings if encoding != "none"}),
    )


def _role(encoding: str, challenger: str) -> Role:
    return "challenger" if encoding == challenger else ROLES.get(encoding, "other")


def _encoding(
    role: Role, planned: int, calls: Sequence[Attempt], faults: Sequence[Attempt], csv: Sequence[Attempt]
) -> EncodingReport:
    workbooks = attempts.by_workbook(calls)
    means = [attempts.workbook_mean(records) for records in workbooks.values()]
    costs = [mean.cost for mean in means if mean.cost is not None]
    accuracy = fmean(mean.accuracy for mean in means) if means else None
    cost = fmean(costs) if costs and len(costs) == len(means) else None
    return EncodingReport(
        role=role,
        planned=planned,
        calls=len(calls),
        workbooks=len(workbooks),
        accuracy=accuracy,
        accuracy_by_question=attempts.question_mean(calls),
        input_tokens=attempts.mean_tokens(workbooks.values(), "input"),
        output_tokens=attempts.mean_tokens(workbooks.values(), "output"),
        cost_per_call=cost,
        cost_per_correct=_cost_per_correct(cost, accuracy),
        counted=attempts.counted(calls, csv),
        failures=attempts.outcome_kinds(record for record in calls if record.status == "failure"),
        faults=attempts.outcome_kinds(faults),
        by_kind=attempts.kind_scores(calls),
        frontier=attempts.frontier(calls),
        resources=attempts.resources(calls),
    )


def _cost_per_correct(cost: float | None, accuracy: float | None) -> float | None:
    """Infinite when nothing was right, undefined when that cost nothing."""
    if cost is None or accuracy is None:
        return None
    if accuracy == 0:
        return float("inf") if cost else None
    return cost / accuracy


def _against(
    challenger: str,
    workbooks: int,
    cells: Mapping[str, Sequence[CellId]],
    calls: Mapping[str, Sequence[Attempt]],
) -> dict[str, Against]:
    """The challenger against every other encoding but the control, the primary baselines first."""
    if challenger not in cells:
        return {}
    complete = {encoding: _complete(cells[encoding], calls[encoding]) for encoding in cells}
    baselines = [encoding for encoding in cells if _role(encoding, challenger) in _ORDER]
    result = {}
    for baseline in sorted(baselines, key=lambda encoding: _ORDER.index(_role(encoding, challenger))):
        role = _role(baseline, challenger)
        numbers, verdict = compare(complete[challenger], complete[baseline], complete.get("csv"), planned=workbooks)
        tested = role != "reported"
        result[baseline] = Against(
            role=role,
            workbooks=numbers.workbooks if numbers else 0,
            ratio=numbers.ratio if numbers else None,
            interval=numbers.interval if numbers else None,
            accuracy_difference=numbers.accuracy_difference if numbers else None,
            accuracy_interval=numbers.accuracy_interval if numbers else None,
            verdict=verdict.word if tested else None,
            reason=verdict.reason if tested else "reported, not tested",
        )
    return result


def _complete(cells: Sequence[CellId], calls: Sequence[Attempt]) -> dict[str, WorkbookMean]:
    """The workbooks of which every planned repeat was measured."""
    planned: dict[str, int] = defaultdict(int)
    for cell in cells:
        planned[cell.workbook] += 1
    return {
        workbook: attempts.workbook_mean(records)
        for workbook, records in attempts.by_workbook(calls).items()
        if len(records) == planned[workbook]
    }


def _facts(entry: ModelEntry, manifest: Manifest, known: Cells) -> ModelFacts:
    records = [record for cell, record in known.items() if cell.model == entry.alias]
    return ModelFacts(
        entry=entry,
        skipped=manifest.matrix.skipped_models.get(entry.alias),
        returned=sorted({record.model.returned for record in records if record.model.returned}),
        prices=sorted({record.prices for record in records}, key=lambda prices: prices.model_dump_json()),
        settings=records[0].model.settings if records else {},
    )

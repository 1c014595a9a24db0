"""Manifest and records -> `Report`: a pure function, whatever the order of the records.

The records are read once, as a stream, and only what the report needs of each cell's own is kept.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from statistics import fmean
from typing import NamedTuple, TypeAlias

from pytest_cellprose.method.roles import REFERENCE as CSV
from pytest_cellprose.method.roles import ROLES, Role
from pytest_cellprose.providers.hosts import elsewhere
from pytest_cellprose.record.record import CellId, Record, SetName
from pytest_cellprose.report import attempts, figures
from pytest_cellprose.report.attempts import Attempt, Attempts
from pytest_cellprose.report.comparisons import Side, against_baselines, completed_by_all
from pytest_cellprose.report.limitations import SET_LABELS, limitations
from pytest_cellprose.report.model import (
    CellCounts,
    EncodingReport,
    Fault,
    ModelFacts,
    ModelReport,
    Refused,
    Report,
    SetReport,
)
from pytest_cellprose.report.pairs import paired
from pytest_cellprose.store.manifest import Manifest, ModelEntry, WorkbookEntry
from pytest_cellprose.store.shards import missing_shards, own_cells

Cells: TypeAlias = Mapping[CellId, Attempt]


def analyse(manifest: Manifest, records: Iterable[Record]) -> Report:
    """Work out the report of one run.

    Records of cells outside the plan and superseded ones count in nothing but what was spent; records of
    other runs in nothing at all, unless the run was merged from them.
    """
    planned = list(manifest.matrix.cells())
    runs = manifest.runs
    latest, superseded = _latest((record for record in records if record.run in runs), Attempts(planned))
    cells = _sorted(manifest, planned, latest)
    not_started = _refused(manifest, cells.refused)
    everything = [*latest.values(), *chain(*superseded.values())]
    strange = _strange_hosts(manifest, everything)
    own_calls = [found for found in everything if not (found.prices.nominal or found.kept_from)]
    assumed = [found.assumed_nanousd for found in own_calls if found.assumed_nanousd is not None]
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
        suite=manifest.suite,
        axes=manifest.axes,
        challenger=manifest.challenger,
        baseline=manifest.settings.get("baseline") or manifest.challenger,
        repeats=manifest.matrix.repeats,
        publishable=manifest.publishable and cells.counts.complete and not strange,
        complete=cells.counts.complete,
        deviations=_deviations(manifest, cells, not_started, strange),
        limitations=limitations(manifest),
        shard=manifest.shard,
        missing_shards=missing_shards(manifest),
        merged_from=manifest.merged_from,
        cells=cells.counts,
        kept=dict(sorted(Counter(record.kept_from for record in cells.known.values() if record.kept_from).items())),
        kept_cells=_kept_cells(cells.known),
        stale=sum(record.replaced for record in cells.known.values()),
        after_fault=sum(any(map(_faulted, superseded.get(cell, ()))) for cell in cells.measured),
        spent=sum(found.cost_nanousd or 0 for found in own_calls) / attempts.NANO,
        unreported=len(assumed),
        assumed=sum(assumed) / attempts.NANO,
        lineage=manifest.lineage,
        hosts=manifest.hosts,
        sets=_sets(manifest, planned, cells.measured, cells.faulted),
        models=[_facts(entry, manifest, cells.known) for entry in manifest.models],
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
            for cell, record in cells.faulted.items()
        ],
        refused=not_started,
        not_run=[str(cell) for cell in cells.not_run],
        not_here=manifest.not_here,
        split_sha256=manifest.split_sha256,
    )


class _Sorted(NamedTuple):
    """The planned cells by what became of them."""

    known: Cells
    """Those with a record."""
    measured: Cells
    refused: Cells
    faulted: Cells
    not_run: Sequence[CellId]
    counts: CellCounts


def _sorted(manifest: Manifest, planned: Sequence[CellId], latest: Cells) -> _Sorted:
    known = {cell: latest[cell] for cell in planned if cell in latest}
    measured = {cell: record for cell, record in known.items() if record.status != "fault"}
    refused = {cell: record for cell, record in known.items() if record.not_started is not None}
    faulted = {cell: record for cell, record in known.items() if record.status == "fault" and cell not in refused}
    own = own_cells(manifest)
    skipped = [cell for cell in own if cell not in known and cell.model in manifest.matrix.skipped_models]
    not_run = [cell for cell in own if cell not in known and cell.model not in manifest.matrix.skipped_models]
    counts = CellCounts(
        planned=len(planned),
        measured=len(measured),
        failed=sum(record.status == "failure" for record in measured.values()),
        faulted=len(faulted),
        refused=len(refused),
        skipped=len(skipped),
        not_run=len(not_run),
        in_other_shards=len(planned) - len({*own, *known}),
    )
    return _Sorted(known, measured, refused, faulted, not_run, counts)


def _deviations(
    manifest: Manifest, cells: _Sorted, not_started: Sequence[Refused], strange: Iterable[str]
) -> list[str]:
    """Those that were known before the start, and what came of the run."""
    found, counts = list(manifest.deviations), cells.counts
    if counts.not_run:
        found.append(f"{counts.not_run} of {counts.planned} planned cells were not run")
    if counts.in_other_shards:
        absent = ", ".join(map(str, missing_shards(manifest)))
        missing = f"{counts.in_other_shards} of {counts.planned} planned cells"
        found.append(f"{missing} are in shards that are not here ({absent})")
    if counts.faulted:
        found.append(f"{counts.faulted} of {counts.planned} planned cells faulted and have no score")
    if not_started:
        found.append(figures.kept_from_starting(not_started))
    return [*found, *(deviation for deviation in strange if deviation not in found)]


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


def _faulted(found: Attempt) -> bool:
    return found.status == "fault" and found.not_started is None


def _refused(manifest: Manifest, refused: Cells) -> list[Refused]:
    """By who refused what of which vendor, in plan order."""
    vendors = {entry.alias: entry.vendor for entry in manifest.models}
    groups: dict[tuple[object, ...], list[Attempt]] = defaultdict(list)
    for cell, found in refused.items():
        why = found.not_started
        if why is not None:
            groups[why.by, found.kind, vendors[cell.model], why.limit, why.unit].append(found)
    result = []
    for group in groups.values():
        last = max(group, key=lambda attempt: attempt.started)
        why = last.not_started
        assert why is not None
        result.append(
            Refused(
                by=why.by,
                kind=last.kind or "unnamed",
                vendor=vendors[last.cell.model],
                cells=[str(attempt.cell) for attempt in group],
                limit=why.limit,
                used=why.used,
                unit=why.unit,
                resets=why.resets,
                detail=last.detail,
            )
        )
    return result


def _kept_cells(known: Cells) -> dict[str, list[str]]:
    kept: dict[str, list[str]] = defaultdict(list)
    for cell, found in known.items():
        if found.kept_from:
            kept[found.kept_from].append(str(cell))
    return dict(sorted(kept.items()))


def _strange_hosts(manifest: Manifest, everything: Iterable[Attempt]) -> list[str]:
    """Of a final run, where its calls went beside the vendors' own hosts: a worker may have been set up otherwise."""
    if manifest.mode != "final":
        return []
    vendor = {model.alias: model.vendor for model in manifest.models}
    return elsewhere((vendor.get(found.cell.model, ""), found.host) for found in everything if found.host is not None)


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
                theirs, scored = _ceiling(workbooks), _without_computed(workbooks, measured)
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


def _ceiling(workbooks: Iterable[WorkbookEntry]) -> list[WorkbookEntry]:
    """The workbooks that an offline model is judged by: those with a question that is not computed.

    No text that is sent holds the answer of a computed one, so it says nothing about what a text allows.
    """
    return [book for book in workbooks if book.questions > len(set(book.computed) - book.uncertified.keys())]


def _without_computed(workbooks: Iterable[WorkbookEntry], measured: Cells) -> Cells:
    computed = {workbook.name: set(workbook.computed) for workbook in workbooks if workbook.computed}
    return {cell: record.without(computed.get(cell.workbook, set())) for cell, record in measured.items()}


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
    sides = {
        encoding: Side(
            role=_role(encoding, manifest.challenger),
            cells=cells[encoding],
            calls=[measured[cell] for cell in cells[encoding] if cell in measured],
            faults=[faulted[cell] for cell in cells[encoding] if cell in faulted],
        )
        for encoding in manifest.matrix.encodings
        if encoding in cells
    }
    nominal = any(record.prices.nominal for side in sides.values() for record in side.calls)
    complete = all(cell in measured for cell in planned)
    common = completed_by_all(sides.values())
    compared_on = [book.name for book in workbooks if complete or book.name in common]
    rows = {encoding: side.on(compared_on) for encoding, side in sides.items()}
    csv = rows.get(CSV, [])
    baseline = manifest.settings.get("baseline") or manifest.challenger
    return ModelReport(
        status=entry.status,
        note=entry.note or ("nominal prices" if nominal else None),
        nominal=nominal,
        complete=complete,
        workbooks=[book.name for book in workbooks],
        compared_on=compared_on,
        encodings={encoding: _encoding(side, rows[encoding], csv) for encoding, side in sides.items()},
        against=against_baselines(manifest, sides, len(workbooks), whole=complete or manifest.mode != "final"),
        paired=paired(
            {encoding: calls for encoding, calls in rows.items() if encoding != "none"}, baseline, complete=complete
        ),
    )


def _role(encoding: str, challenger: str) -> Role:
    return "challenger" if encoding == challenger else ROLES.get(encoding, "other")


def _encoding(side: Side, calls: Sequence[Attempt], csv: Sequence[Attempt]) -> EncodingReport:
    """`calls`: those that the numbers are over, as `csv` is of the encoding csv."""
    workbooks = attempts.by_workbook(calls)
    means = [attempts.workbook_mean(records) for records in workbooks.values()]
    costs = [mean.cost for mean in means if mean.cost is not None]
    accuracy = fmean(mean.accuracy for mean in means) if means else None
    cost = fmean(costs) if costs and len(costs) == len(means) else None
    return EncodingReport(
        role=side.role,
        planned=len(side.cells),
        calls=len(side.calls),
        workbooks=len(workbooks),
        accuracy=accuracy,
        accuracy_by_question=attempts.question_mean(calls),
        input_tokens=attempts.mean_tokens(workbooks.values(), "input"),
        output_tokens=attempts.mean_tokens(workbooks.values(), "output"),
        cost_per_call=cost,
        cost_per_correct=_cost_per_correct(cost, accuracy),
        counted=attempts.counted(calls, csv),
        failures=attempts.outcome_kinds(record for record in side.calls if record.status == "failure"),
        faults=attempts.outcome_kinds(side.faults),
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


def _facts(entry: ModelEntry, manifest: Manifest, known: Cells) -> ModelFacts:
    records = [record for cell, record in known.items() if cell.model == entry.alias]
    return ModelFacts(
        entry=entry,
        skipped=manifest.matrix.skipped_models.get(entry.alias),
        returned=sorted({record.model.returned for record in records if record.model.returned}),
        prices=sorted({record.prices for record in records}, key=lambda prices: prices.model_dump_json()),
        settings=records[0].model.settings if records else {},
    )

"""Settings -> Plan: which cells there are, which of them run, and whether they may (docs/ARCHITECTURE.md).

The plan follows from the settings, the files of the cells folders, the registered models and encodings, the
repository's state, earlier runs and the clock; its run id is random. It is built once, before anything is collected;
what it refuses, it refuses all at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pytest_cellprose.cache import TextCache
from pytest_cellprose.measure.episode import Limits
from pytest_cellprose.measure.expected_output import Outputs
from pytest_cellprose.measure.spec import RunSpec, SandboxChoice
from pytest_cellprose.method.digests import measuring_sha256, method, package_sha256
from pytest_cellprose.method.roles import REPEATS
from pytest_cellprose.models.agreement import Agreement, price_agreement
from pytest_cellprose.models.registry import ModelSpec, builtin_models
from pytest_cellprose.options import DEFAULT_CHALLENGER
from pytest_cellprose.plan.agents import planned_agents, slots_of
from pytest_cellprose.plan.command_line import CommandLine
from pytest_cellprose.plan.history import EarlierRuns, earlier_runs, history
from pytest_cellprose.plan.models import Registered, planned_models, planned_out
from pytest_cellprose.plan.outputs import recorded_outputs
from pytest_cellprose.plan.problems import Draft, PlanError
from pytest_cellprose.plan.scope import judge_scope, price_dates
from pytest_cellprose.plan.settings import Settings
from pytest_cellprose.plan.tasks import PlannedTasks, planned_tasks, suite_of
from pytest_cellprose.plan.workbooks import planned_workbooks
from pytest_cellprose.providers.hosts import elsewhere, hosts_called
from pytest_cellprose.questions.problem import Problem
from pytest_cellprose.record.record import Git, utc_now
from pytest_cellprose.store.identity import experiment_id, git_state, new_run_id, versions, with_encoded
from pytest_cellprose.store.layout import StoreError
from pytest_cellprose.store.manifest import (
    SPREADSHEETS,
    EarlierRun,
    EncodedTexts,
    Manifest,
    Matrix,
    Mode,
    ModelEntry,
    PlannedOut,
    Shard,
)
from pytest_cellprose.store.records import Store, open_run
from pytest_cellprose.store.shards import parts, parts_deviation, shard_cells
from pytest_cellprose.store.spending import nanousd, spent_before
from pytest_cellprose.wording import counted, relative


@dataclass(frozen=True)
class Plan:
    """An accepted plan."""

    spec: RunSpec
    notes: tuple[str, ...]
    """Lines for the header."""
    refusals: tuple[Problem, ...] = ()
    """What the gate would refuse; only ``--collect-only`` gets to see a plan that has any."""
    earlier: EarlierRuns = field(default_factory=EarlierRuns)
    """Of a final run: all that is known to have run before it."""

    @property
    def matrix(self) -> Matrix:
        return self.spec.manifest.matrix


def build_plan(settings: Settings, line: CommandLine, registered: Registered, root: Path, cache: TextCache) -> Plan:
    """Raises `PlanError` with everything that is wrong with the settings, the folders and the selection."""
    draft = Draft()
    suite = suite_of(settings, registered, draft)
    if suite is None:
        raise PlanError(draft.problems, line.invocation)
    suite = registered.suite(suite.name, cache, final=settings.final)
    if suite.name == SPREADSHEETS:
        tasks = planned_workbooks(settings, line, registered, suite, root, cache, draft)
    else:
        tasks = planned_tasks(suite, settings, draft)
    readable = any(suite.unreadable(variant, explores=False) is None for variant in tasks.variants)
    models = planned_models(settings, registered, draft, reader=readable or suite.name == SPREADSHEETS)
    left_out = planned_out(models, suite, tasks.variants)
    agents = planned_agents(settings, suite, tasks, models, left_out, draft)
    if settings.models is not None and settings.encodings is not None:
        draft.problems += [Problem(f"{out.model} with {out.encoding}: {out.reason}") for out in left_out]
    git = git_state(root, settings.out)
    agreement = _price_agreement(models, draft) if settings.live else None
    hosts = hosts_called([model.vendor for model in models if model.live and settings.live], registered.providers)
    if settings.final:
        draft.unpublishable += elsewhere(hosts.items())
        _judge_final(settings, [variant.name for variant in tasks.variants], models, registered, git, draft)
    else:
        draft.unpublishable.append(f"{_mode(settings)} mode: only a final run is publishable")
    ancestor = _ancestor(settings, draft)
    lineage = _lineage(ancestor, draft)
    _check_caps(settings, registered, draft)
    if draft.problems or (draft.gate and not line.collect_only):
        raise PlanError([*draft.problems, *draft.gate], line.invocation)

    matrix = _matrix(settings, models, tasks, left_out)
    shard = _shard(settings, matrix, line, draft)
    outputs = recorded_outputs(settings.out, models)
    manifest = Manifest(
        run=new_run_id(),
        mode=_mode(settings),
        started=utc_now(),
        invocation=list(line.invocation),
        git=git,
        versions=versions(),
        package_sha256=package_sha256(),
        measuring_sha256=measuring_sha256(),
        method=method(),
        suite=suite.name,
        axes=suite.axes,
        challenger=tasks.challenger,
        matrix=matrix,
        shard=shard,
        models=[_model_entry(model) for model in models],
        encoding_versions={variant.name: variant.version for variant in tasks.variants},
        encoding_code={variant.name: suite.code_sha256(variant) for variant in tasks.variants},
        deviations=[*draft.unpublishable, *draft.deviations],
        publishable=not draft.unpublishable,
        settings=_recorded_settings(settings, tasks, ancestor, agreement, outputs),
        split_sha256={relative(path, root): digest for path, digest in tasks.splits.items()},
        not_here=sorted(tasks.not_here),
        hosts={vendor: host for vendor, host in hosts.items() if host is not None},
        lineage=lineage,
        agents=agents,
    )
    manifest = with_encoded(manifest, manifest.encoded).model_copy(update={"experiment": experiment_id(manifest)})
    spec = RunSpec(
        manifest=manifest,
        sources=dict(tasks.sources),
        models={model.alias: model for model in models},
        out=settings.out,
        cache=cache.folder,
        outputs=outputs,
        limits=Limits(turns=settings.max_turns, nanousd=nanousd(settings.max_call_usd)),
        sandbox=SandboxChoice(name=settings.sandbox, slots=slots_of(settings)),
        in_flight=dict(settings.in_flight),
        fault_retries=_fault_retries(settings),
        ancestor=None if ancestor is None else ancestor.folder,
        caps={vendor: nanousd(cap) for vendor, cap in settings.vendor_caps.items()},
        spent_before={
            vendor: sum(earlier.accounts[vendor].counted for earlier in lineage if vendor in earlier.accounts)
            for vendor in sorted({vendor for earlier in lineage for vendor in earlier.accounts})
        },
    )
    earlier = earlier_runs([settings.usual_out, settings.out], root) if settings.final else EarlierRuns()
    return Plan(spec, tuple(_header(matrix, manifest.axes, tasks, draft)), tuple(draft.gate), earlier)


def _mode(settings: Settings) -> Mode:
    return "final" if settings.final else "live" if settings.live else "development"


def _matrix(
    settings: Settings, models: Sequence[ModelSpec], tasks: PlannedTasks, left_out: Sequence[PlannedOut]
) -> Matrix:
    return Matrix(
        models=[model.alias for model in models],
        encodings=[variant.name for variant in tasks.variants],
        workbooks=list(tasks.entries),
        repeats=_repeats(settings),
        none_once=settings.none_once,
        planned_out=list(left_out),
        skipped_models={
            model.alias: f"{model.alias} is a live model: --cellprose-live runs it"
            for model in models
            if model.live and not settings.live
        },
    )


def _recorded_settings(
    settings: Settings, tasks: PlannedTasks, ancestor: Store | None, agreement: Agreement | None, outputs: Outputs
) -> dict[str, Any]:
    """Of the settings what the manifest has nowhere else."""
    return {
        "baseline": settings.baseline or tasks.challenger,
        "subset": settings.subset,
        "seed": None,
        "resumed_from": None if ancestor is None else ancestor.run,
        "excluded_runs": [],
        "excluded_workbooks": [],
        "split_by_digest": settings.split_by_digest,
        "approved_usd": None if settings.approve_usd is None else str(settings.approve_usd),
        "vendor_cap_usd": {vendor: str(cap) for vendor, cap in settings.vendor_caps.items()},
        "wall_clock_seconds": settings.wall_clock,
        "price_check": None if agreement is None else agreement.model_dump(mode="json"),
        "output_estimate": outputs.method(),
        **tasks.settings,
    }


def _shard(settings: Settings, matrix: Matrix, line: CommandLine, draft: Draft) -> Shard | None:
    """The share of the plan that this invocation runs."""
    if settings.shard is None:
        return None
    shard = Shard(number=settings.shard[0], of=settings.shard[1])
    if shard.of > parts(matrix):
        draft.refuse(
            f"--cellprose-shard: {counted(shard.of, 'shard')} of a plan that has {counted(parts(matrix), 'part')} (all "
            f"encodings of one model, workbook and repeat are one part): at most {parts(matrix)}"
        )
        raise PlanError(draft.problems, line.invocation)
    cells = len(shard_cells(matrix, shard))
    draft.unpublishable += parts_deviation(shard)
    draft.notes.append(f"shard {shard}: {counted(cells, 'cell')} of these; `report --merge` puts shards together")
    return shard


def with_inputs(plan: Plan, texts: EncodedTexts) -> Plan:
    """The plan with what its encodings made of the workbooks; a final one, judged by the runs before it."""
    manifest = with_encoded(plan.spec.manifest, texts)
    notes = plan.notes
    if manifest.mode == "final":
        found = history(manifest, plan.earlier)
        notes += found.notes
        update = {
            "deviations": [*found.deviations, *manifest.deviations],
            "publishable": manifest.publishable and not found.deviations,
        }
        manifest = manifest.model_copy(update=update)
    return replace(plan, spec=plan.spec.model_copy(update={"manifest": manifest}), notes=notes)


def _ancestor(settings: Settings, draft: Draft) -> Store | None:
    """The run to take cells over from."""
    if settings.resume is None:
        return None
    if settings.final:
        draft.refuse("--cellprose-resume: a final run is one invocation (protocol section 5.2), nothing is taken over")
        return None
    try:
        store = open_run(settings.out, settings.resume)
        store.require_resumable()
    except StoreError as error:
        draft.refuse(f"--cellprose-resume: {error}")
        return None
    draft.unpublishable.append(f"exploratory: cells were taken over from run {store.run}")
    draft.notes.append(f"resuming {store.run}: its cells are kept where they were asked the same")
    return store


def _lineage(ancestor: Store | None, draft: Draft) -> list[EarlierRun]:
    """What the run to take cells over from has cost, and those before it."""
    try:
        return [] if ancestor is None else spent_before(ancestor)
    except StoreError as error:
        draft.refuse(f"--cellprose-resume: {error}")
        return []


def _judge_final(
    settings: Settings,
    encodings: Sequence[str],
    models: Sequence[ModelSpec],
    registered: Registered,
    git: Git,
    draft: Draft,
) -> None:
    """The protocol's conditions for a run that may be published."""
    if git.dirty is None:
        draft.gate.append(Problem("a final run needs the benchmark under git: this is no git repository"))
    elif git.dirty and settings.allow_dirty:
        draft.deviations.append("the working tree had uncommitted changes (--cellprose-allow-dirty)")
    elif git.dirty:
        draft.gate.append(
            Problem("a final run needs a clean working tree: commit, or allow it", remedy=("--cellprose-allow-dirty",))
        )
    scope = judge_scope(
        models,
        encodings,
        registered.models,
        builtin_models(),
        repeats=_repeats(settings),
        none_once=settings.none_once,
    )
    draft.deviations += [*scope.deviations, *price_dates(models, datetime.now(UTC).date())]
    draft.unpublishable += scope.unpublishable
    if settings.challenger != DEFAULT_CHALLENGER:
        draft.unpublishable.append(f"the challenger is {settings.challenger}, not {DEFAULT_CHALLENGER}")
    draft.notes += [f"deviation: {deviation}" for deviation in draft.deviations]
    if draft.unpublishable:
        draft.notes.append("not publishable: " + "; ".join(draft.unpublishable))


def _price_agreement(models: Sequence[ModelSpec], draft: Draft) -> Agreement:
    agreement = price_agreement(models)
    differ = [f"prices of {alias}: {agreement.table} differs: {how}" for alias, how in agreement.differ.items()]
    draft.deviations += differ
    draft.notes += differ
    return agreement


def _check_caps(settings: Settings, registered: Registered, draft: Draft) -> None:
    vendors = sorted({model.vendor for model in registered.models.values() if model.live})
    for vendor in settings.vendor_caps:
        if vendor not in vendors:
            draft.refuse(
                f"--cellprose-vendor-cap-usd: no model is called at {vendor!r}: vendors are {', '.join(vendors)}"
            )


def _repeats(settings: Settings) -> int:
    return settings.reps if settings.reps is not None else REPEATS if settings.final else 1


def _fault_retries(settings: Settings) -> int:
    return settings.fault_retries if settings.fault_retries is not None else 0 if settings.final else 1


def _model_entry(model: ModelSpec) -> ModelEntry:
    return ModelEntry(
        alias=model.alias,
        model_id=model.model_id,
        vendor=model.vendor,
        tier=model.tier,
        status=model.status,
        max_tokens=model.max_tokens,
        settings=model.settings,
        prices=model.prices,
        prices_checked=None if model.checked is None else model.checked.isoformat(),
        price_source=model.price_source,
        note=model.note,
    )


def _header(matrix: Matrix, axes: tuple[str, str], tasks: PlannedTasks, draft: Draft) -> Iterable[str]:
    cells = sum(1 for _ in matrix.cells())
    yield (
        f"{counted(len(matrix.models), 'model')} × {counted(len(matrix.encodings), axes[0])} × "
        f"{counted(len(matrix.workbooks), axes[1])} × {counted(matrix.repeats, 'repeat')} = "
        f"{counted(cells, 'cell')}"
    )
    if matrix.skipped_models:
        yield (
            f"{counted(len(matrix.skipped_models), 'live model')} planned and skipped "
            f"({', '.join(matrix.skipped_models)}): --cellprose-live runs them"
        )
    yield from (f"left out: {out.model} with {out.encoding}: {out.reason}" for out in matrix.planned_out)
    yield from tasks.notes
    yield from draft.notes

"""Settings -> Plan: which cells there are, which of them run, and whether they may (DESIGN section 4).

The plan is a pure function of the settings, the files of the cells folders and the registered models and
encodings. It is built once, before anything is collected; what it refuses, it refuses all at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from pytest_cellprose.cache import TextCache
from pytest_cellprose.encodings.base import Encoding
from pytest_cellprose.encodings.keys import code_digest
from pytest_cellprose.measure.spec import RunSpec, WorkbookSource
from pytest_cellprose.method.digests import method, package_sha256
from pytest_cellprose.method.roles import REPEATS
from pytest_cellprose.models.agreement import Agreement, price_agreement
from pytest_cellprose.models.registry import ModelSpec, builtin_models
from pytest_cellprose.options import DEFAULT_CHALLENGER, Settings
from pytest_cellprose.plan.command_line import named_in_keyword, workbooks_in_node_ids
from pytest_cellprose.plan.history import EarlierRuns, earlier_runs, history
from pytest_cellprose.plan.models import Registered, planned_encodings, planned_models, planned_out
from pytest_cellprose.plan.outputs import recorded_outputs
from pytest_cellprose.plan.problems import Draft, PlanError, Problem
from pytest_cellprose.plan.scope import judge_scope, price_dates
from pytest_cellprose.plan.workbooks import choose, seed_of
from pytest_cellprose.providers.hosts import elsewhere, hosts_called
from pytest_cellprose.record.record import Git, utc_now
from pytest_cellprose.sets.discover import Discovery, discover
from pytest_cellprose.sets.frozen import committed_splits
from pytest_cellprose.sets.split import always_held_out
from pytest_cellprose.store.identity import experiment_id, git_state, new_run_id, versions, with_encoded
from pytest_cellprose.store.layout import StoreError
from pytest_cellprose.store.ledger import nanousd, spent_before
from pytest_cellprose.store.manifest import (
    EarlierRun,
    EncodedTexts,
    Manifest,
    Matrix,
    Mode,
    ModelEntry,
    Shard,
    WorkbookEntry,
)
from pytest_cellprose.store.records import Store, open_run
from pytest_cellprose.store.shards import parts, shard_cells
from pytest_cellprose.wording import counted, relative, some

GENERATED = "generated:"
"""How the source of a workbook begins that `sets build` made, and nobody in real life."""


@dataclass(frozen=True)
class CommandLine:
    """What of pytest's own command line matters to the plan."""

    invocation: tuple[str, ...] = ()
    """The arguments as typed."""
    keyword: str = ""
    """The ``-k`` expression."""
    selected: tuple[str, ...] = ()
    """Paths and node ids."""
    collect_only: bool = False


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
    discovery = discover(
        settings.cells,
        split_by_digest=settings.split_by_digest,
        elsewhere=committed_splits(root),
        texts=cache,
    )
    draft.problems += [Problem(text) for text in discovery.problems]
    _refuse_heldout(settings, line, discovery, registered, draft)
    if any(problem.remedy for problem in draft.problems):
        raise PlanError(draft.problems, line.invocation)

    mode: Mode = "final" if settings.final else "live" if settings.live else "development"
    encodings = planned_encodings(settings, registered, draft)
    models = planned_models(settings, registered, draft)
    choice = choose(
        settings, discovery, committed_splits(root, discovery.splits) if settings.final else (), cache, draft
    )
    left_out = planned_out(models, encodings)
    if settings.models is not None and settings.encodings is not None:
        draft.problems += [Problem(f"{out.model} with {out.encoding}: {out.reason}") for out in left_out]
    git = git_state(root, settings.out)
    agreement = _price_agreement(models, draft) if settings.live else None
    vendors = [model.vendor for model in models if model.live and settings.live]
    hosts = hosts_called(vendors, registered.providers)
    if settings.final:
        draft.unpublishable += elsewhere(hosts.items())
        _judge_final(settings, encodings, models, registered, git, draft)
    else:
        draft.unpublishable.append(f"{mode} mode: only a final run is publishable")
    ancestor = _ancestor(settings, draft)
    lineage = _lineage(ancestor, draft)
    _check_caps(settings, registered, draft)
    if draft.problems or (draft.gate and not line.collect_only):
        raise PlanError([*draft.problems, *draft.gate], line.invocation)

    matrix = Matrix(
        models=[model.alias for model in models],
        encodings=[encoding.name for encoding in encodings],
        workbooks=[
            WorkbookEntry(
                name=found.name,
                set=found.set,
                workbook_sha256=found.workbook_sha256,
                questions_sha256=found.questions_sha256,
                questions=len(found.questions.without(choice.uncertified[found.name]).questions),
                uncertified={name: list(reasons) for name, reasons in choice.uncertified[found.name].items()},
                computed=[question.id for question in found.questions.questions if question.computed],
                synthetic=(found.questions.source or "").startswith(GENERATED) or None,
            )
            for found in choice.workbooks
        ],
        repeats=_repeats(settings),
        none_once=settings.none_once,
        planned_out=left_out,
        skipped_models={
            model.alias: f"{model.alias} is a live model: --cellprose-live runs it"
            for model in models
            if model.live and not settings.live
        },
    )
    shard = _shard(settings, matrix, line, draft)
    run = new_run_id()
    outputs = recorded_outputs(settings.out, models)
    manifest = Manifest(
        run=run,
        mode=mode,
        started=utc_now(),
        invocation=list(line.invocation),
        git=git,
        versions=versions(),
        package_sha256=package_sha256(),
        method=method(),
        challenger=settings.challenger,
        matrix=matrix,
        shard=shard,
        models=[_model_entry(model) for model in models],
        encoding_versions={encoding.name: encoding.version for encoding in encodings},
        encoding_code={encoding.name: code_digest(encoding) for encoding in encodings},
        deviations=[*draft.unpublishable, *draft.deviations],
        publishable=not draft.unpublishable,
        settings={
            "baseline": settings.baseline or settings.challenger,
            "subset": settings.subset,
            "seed": seed_of(settings, discovery) if settings.subset is not None else None,
            "resumed_from": None if ancestor is None else ancestor.run,
            "excluded_runs": list(choice.before.runs),
            "excluded_workbooks": list(choice.excluded),
            "split_by_digest": settings.split_by_digest,
            "approved_usd": None if settings.approve_usd is None else str(settings.approve_usd),
            "vendor_cap_usd": {vendor: str(cap) for vendor, cap in settings.vendor_caps.items()},
            "wall_clock_seconds": settings.wall_clock,
            "price_check": None if agreement is None else agreement.model_dump(mode="json"),
            "output_estimate": outputs.method(),
        },
        split_sha256={relative(path, root): digest for path, digest in discovery.splits.items()},
        not_here=sorted(discovery.not_here),
        hosts={vendor: host for vendor, host in hosts.items() if host is not None},
        lineage=lineage,
    )
    manifest = with_encoded(manifest, manifest.encoded).model_copy(update={"experiment": experiment_id(manifest)})
    spec = RunSpec(
        manifest=manifest,
        sources={
            found.name: WorkbookSource(questions=found.question_path, workbook=found.workbook_path)
            for found in choice.workbooks
        },
        models={model.alias: model for model in models},
        out=settings.out,
        cache=cache.folder,
        outputs=outputs,
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
    return Plan(spec, tuple(_header(settings, matrix, discovery, draft)), tuple(draft.gate), earlier)


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
    draft.unpublishable.append(f"exploratory: shard {shard} of a plan")
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
    """The run to take cells over from (DESIGN section 7)."""
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


def _refuse_heldout(
    settings: Settings, line: CommandLine, discovery: Discovery, registered: Registered, draft: Draft
) -> None:
    """A held-out workbook that is named, in whatever way, is refused before anything is planned or priced."""
    if settings.final:
        return
    heldout = {found.name for found in discovery.found if found.set == "heldout"}
    heldout |= {name for name, side in discovery.not_here.items() if side == "heldout"}
    heldout |= discovery.known_heldout
    heldout |= {name for name in settings.workbooks or () if always_held_out(name)}
    others = {found.name for found in discovery.found if found.name not in heldout}
    others |= {name for name, side in discovery.not_here.items() if side == "development"}
    others |= {*registered.models, *registered.encodings, "test_cell", "rep123456789"}
    named = {name for name in settings.workbooks or () if name in heldout}
    heads = [f"{model}-{encoding}-" for model in registered.models for encoding in registered.encodings]
    named.update(named_in_keyword(line.keyword, heldout, others, heads if line.keyword else ()))
    named.update(workbooks_in_node_ids(line.selected, heldout))
    for name in sorted(named):
        draft.refuse(f"workbook {name!r} is held out: only a final run may use it", "--cellprose-final")


def _judge_final(
    settings: Settings,
    encodings: Sequence[Encoding],
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
            Problem("a final run needs a clean working tree: commit, or allow it", ("--cellprose-allow-dirty",))
        )
    scope = judge_scope(
        models,
        [encoding.name for encoding in encodings],
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


def _header(settings: Settings, matrix: Matrix, discovery: Discovery, draft: Draft) -> Iterable[str]:
    cells = sum(1 for _ in matrix.cells())
    yield (
        f"{counted(len(matrix.models), 'model')} × {counted(len(matrix.encodings), 'encoding')} × "
        f"{counted(len(matrix.workbooks), 'workbook')} × {counted(matrix.repeats, 'repeat')} = "
        f"{counted(cells, 'cell')}"
    )
    if matrix.skipped_models:
        yield (
            f"{counted(len(matrix.skipped_models), 'live model')} planned and skipped "
            f"({', '.join(matrix.skipped_models)}): --cellprose-live runs them"
        )
    yield from (f"left out: {out.model} with {out.encoding}: {out.reason}" for out in matrix.planned_out)
    absent = sorted(name for name, side in discovery.not_here.items() if side == "development")
    if absent:
        yield (
            f"{counted(len(absent), 'workbook')} not here ({some(absent)}): name their folder with "
            "--cellprose-cells DIR"
        )
    heldout_absent = sum(side == "heldout" for side in discovery.not_here.values())
    if heldout_absent:
        yield f"{counted(heldout_absent, 'held-out workbook')} not here: `python -m pytest_cellprose sets build`"
    if not settings.split_by_digest:
        for folder in discovery.unsplit:
            yield f"{folder} has no split.json: its workbooks are development"
    yield from draft.notes

"""Which workbooks a plan has, and which of their questions (docs/ARCHITECTURE.md): the mode's sets, named, drawn,
readable, and certified."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_cellprose.cache import TextCache
from pytest_cellprose.plan.command_line import CommandLine, named_in_keyword, workbooks_in_node_ids
from pytest_cellprose.plan.models import Registered, planned_encodings
from pytest_cellprose.plan.problems import Draft, PlanError
from pytest_cellprose.plan.settings import Settings
from pytest_cellprose.plan.tasks import PlannedTasks
from pytest_cellprose.questions.extents import workbook_extents
from pytest_cellprose.questions.kind import Kinds
from pytest_cellprose.questions.kinds import BUILTIN_KINDS
from pytest_cellprose.questions.schema import check_against
from pytest_cellprose.sets.certify import Reason
from pytest_cellprose.sets.check import uncertified
from pytest_cellprose.sets.discover import Discovery, Found, discover
from pytest_cellprose.sets.draw import LookedAt, drawn, looked_at
from pytest_cellprose.sets.frozen import committed_splits, differences, frozen_set
from pytest_cellprose.sets.split import SEED, Split, always_held_out
from pytest_cellprose.store.layout import StoreError
from pytest_cellprose.store.manifest import WorkbookEntry
from pytest_cellprose.suites.base import Suite, TaskSource
from pytest_cellprose.wording import counted, relative, some
from pytest_cellprose.workbook.model import WorkbookError

CHECK = "python -m pytest_cellprose sets check"


@dataclass(frozen=True)
class Choice:
    """The workbooks of a plan."""

    workbooks: Sequence[Found]
    uncertified: dict[str, dict[str, list[Reason]]]
    """By workbook: the questions that are left out, by id, and why."""
    before: LookedAt
    """What the excluded runs looked at."""
    excluded: Sequence[str]
    """Held-out workbooks that are left out because of it."""


def planned_workbooks(
    settings: Settings,
    line: CommandLine,
    registered: Registered,
    suite: Suite,
    root: Path,
    cache: TextCache,
    draft: Draft,
) -> PlannedTasks:
    """The workbooks and encodings of a plan, certified and drawn; what is wrong goes into `draft`.

    Raises `PlanError` at once for a held-out workbook that is named: nothing else is said of it.
    """
    discovery = discover(
        settings.cells,
        split_by_digest=settings.split_by_digest,
        elsewhere=committed_splits(root),
        texts=cache,
        kinds=registered.kinds,
    )
    draft.problems += discovery.problems_told
    _refuse_heldout(settings, line, discovery, [*registered.models], [each.name for each in suite.variants()], draft)
    if any(problem.remedy for problem in draft.problems):
        raise PlanError(draft.problems, line.invocation)
    encodings = planned_encodings(settings, suite, registered.models, draft)
    splits = committed_splits(root, discovery.splits) if settings.final else ()
    choice = choose(settings, discovery, splits, cache, draft, registered.kinds)
    return PlannedTasks(
        suite=suite,
        variants=encodings,
        entries=[_entry(found, choice.uncertified.get(found.name, {})) for found in choice.workbooks],
        sources={found.name: _source(found) for found in choice.workbooks},
        challenger=settings.challenger,
        settings={
            "seed": seed_of(settings, discovery) if settings.subset is not None else None,
            "excluded_runs": list(choice.before.runs),
            "excluded_workbooks": list(choice.excluded),
        },
        splits=discovery.splits,
        not_here=list(discovery.not_here),
        notes=list(_notes(settings, discovery)),
    )


def _entry(found: Found, left_out: Mapping[str, Sequence[Reason]]) -> WorkbookEntry:
    return WorkbookEntry(
        name=found.name,
        set=found.set,
        workbook_sha256=found.workbook_sha256,
        questions_sha256=found.questions_sha256,
        questions=len(found.questions.without(left_out).questions),
        uncertified={name: list(reasons) for name, reasons in left_out.items()},
        computed=[question.id for question in found.questions.questions if question.computed],
        synthetic=found.questions.synthetic,
    )


def _source(found: Found) -> TaskSource:
    files = {"questions": found.question_path, "workbook": found.workbook_path}
    return TaskSource(folder=found.question_path.parent, files=files)


def _notes(settings: Settings, discovery: Discovery) -> Iterator[str]:
    """What is not here, and what no split governs."""
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


def _refuse_heldout(
    settings: Settings,
    line: CommandLine,
    discovery: Discovery,
    models: Sequence[str],
    encodings: Sequence[str],
    draft: Draft,
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
    others |= {*models, *encodings, "test_cell", "rep123456789"}
    named = {name for name in settings.workbooks or () if name in heldout}
    heads = [f"{model}-{encoding}-" for model in models for encoding in encodings]
    named.update(named_in_keyword(line.keyword, heldout, others, heads if line.keyword else ()))
    named.update(workbooks_in_node_ids(line.selected, heldout))
    for name in sorted(named):
        draft.refuse(f"workbook {name!r} is held out: only a final run may use it", "--cellprose-final")


def choose(
    settings: Settings,
    discovery: Discovery,
    splits: Sequence[Split],
    cache: TextCache,
    draft: Draft,
    kinds: Kinds = BUILTIN_KINDS,
) -> Choice:
    """The workbooks of the mode's sets that the settings leave; what is wrong with them goes into `draft`.

    `splits` are the committed ones.
    """
    eligible = [found for found in discovery.found if settings.final or found.set == "development"]
    before, excluded = LookedAt(), list[str]()
    if settings.final:
        before = _looked_at(settings, draft)
        eligible, excluded = _drawn(settings, discovery, eligible, before, splits, draft)
    if settings.workbooks is not None:
        eligible = _named(settings, discovery, eligible, draft)
    _check(eligible, cache, draft)
    left_out = _uncertified(settings, eligible, discovery, cache, draft, kinds)
    return Choice(eligible, left_out, before, excluded)


def _named(settings: Settings, discovery: Discovery, eligible: Sequence[Found], draft: Draft) -> list[Found]:
    assert settings.workbooks is not None
    by_name = {found.name: found for found in eligible}
    for name in settings.workbooks:
        if name in discovery.not_here:
            draft.refuse(
                f"--cellprose-workbooks: {name!r} has questions, but its workbook is in no cells folder: "
                "name its folder with --cellprose-cells DIR"
            )
        elif name not in by_name:
            draft.refuse(f"--cellprose-workbooks: unknown workbook {name!r}: known are {', '.join(by_name) or 'none'}")
    if settings.final:
        draft.unpublishable.append("--cellprose-workbooks: a choice of workbooks by name")
    return [by_name[name] for name in by_name if name in settings.workbooks]


def _check(workbooks: Sequence[Found], cache: TextCache, draft: Draft) -> None:
    """Whether each can be read, and has the places that its questions name."""
    for found in workbooks:
        try:
            extents = workbook_extents(found.workbook_path, found.workbook_sha256, cache)
        except WorkbookError as error:
            why = error if found.set == "development" else "cannot be read"
            draft.refuse(f"{found.question_path}: workbook: {why}")
            continue
        for problem in check_against(found.questions, extents):
            shown = problem if found.set == "development" else problem.withheld
            draft.problems.append(shown.of(found.question_path))
        if found.changed is not None:
            draft.notes.append(found.changed)
            draft.deviations.append(found.changed)


def _uncertified(
    settings: Settings,
    workbooks: Sequence[Found],
    discovery: Discovery,
    cache: TextCache,
    draft: Draft,
    kinds: Kinds,
) -> dict[str, dict[str, list[Reason]]]:
    """Which questions are not certified, and are left out. A question file with none left is refused."""
    if draft.problems:  # it will be refused, and evidence cannot be read from files that are wrong
        return {}
    result = uncertified(workbooks, discovery.found, cache, kinds)
    left = {found.name: len(found.questions.without(result[found.name]).questions) for found in workbooks}
    why = f"`{CHECK} {shlex.join(relative(folder, Path.cwd()) for folder in settings.cells)}` says why"
    left_out = [f"{name} {question}: {', '.join(said)}" for name, of in result.items() for question, said in of.items()]
    if left_out:
        draft.notes.append(
            f"{counted(len(left_out), 'question')} of {sum(left.values()) + len(left_out):,} not certified and left "
            f"out ({some(left_out, most=2)}): {why}"
        )
    for found in workbooks:
        if not left[found.name]:
            reasons = sorted({reason for said in result[found.name].values() for reason in said})
            draft.refuse(f"{found.question_path}: no question is certified ({', '.join(reasons)}): {why}")
    return result


def _looked_at(settings: Settings, draft: Draft) -> LookedAt:
    try:
        return looked_at(settings.out, settings.exclude)
    except StoreError as error:
        draft.refuse(f"--cellprose-exclude: {error}")
        return LookedAt()


def _drawn(
    settings: Settings,
    discovery: Discovery,
    eligible: list[Found],
    before: LookedAt,
    splits: Sequence[Split],
    draft: Draft,
) -> tuple[list[Found], list[str]]:
    """Held-out workbooks of a final run: all that are known, or a seeded draw, without those looked at before; and
    the names of these."""
    absent = {name for name, side in discovery.not_here.items() if side == "heldout"} | discovery.known_heldout
    heldout = dict.fromkeys(absent, "")
    heldout.update((found.name, found.workbook_sha256) for found in eligible if found.set == "heldout")
    excluded = sorted(name for name, sha256 in heldout.items() if (name, sha256) in before)
    names = drawn(heldout, settings.subset, seed_of(settings, discovery), excluded)
    _hold_against_frozen(heldout, discovery, splits, draft)
    cuts = [] if settings.subset is None else [f"seed {seed_of(settings, discovery)}"]
    if settings.exclude:
        cuts.append(f"{len(excluded)} left out that were looked at by {', '.join(before.runs)}")
        draft.notes.append(f"held-out workbooks: {cuts[-1]}")
        if excluded and not names:
            draft.refuse("--cellprose-exclude: every held-out workbook was looked at by those runs: none is left")
    if cuts:
        draft.deviations.append(f"scope cut: {len(names)} of {len(heldout)} held-out workbooks, {', '.join(cuts)}")
    missing = sorted(names - {found.name for found in eligible})
    if missing:
        draft.refuse(
            f"{counted(len(missing), 'held-out workbook')} not here ({some(missing)}): build the sets, name "
            "their folders with --cellprose-cells DIR, or draw fewer with --cellprose-subset N"
        )
    return [found for found in eligible if found.set == "development" or found.name in names], excluded


def _hold_against_frozen(heldout: Iterable[str], discovery: Discovery, splits: Sequence[Split], draft: Draft) -> None:
    """A held-out set that is not wholly the frozen one, or more than it, rules publication out, whatever is drawn."""
    found = differences(frozen_set(splits), heldout, discovery).sentences(most=8)
    if found:
        draft.unpublishable.append(f"the held-out set is not the frozen one: {'; '.join(found)}")


def seed_of(settings: Settings, discovery: Discovery) -> int:
    """Of a draw of held-out workbooks."""
    if settings.seed is not None:
        return settings.seed
    return SEED if discovery.seed is None else discovery.seed

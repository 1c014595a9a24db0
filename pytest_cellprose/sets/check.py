"""Question files, certified: all of some folders for ``sets check``, and those of a plan."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pytest_cellprose.cache import TextCache
from pytest_cellprose.encodings.keys import functions_digest, package_digest
from pytest_cellprose.files import sha256_of
from pytest_cellprose.questions.kind import Kinds
from pytest_cellprose.questions.kinds import BUILTIN_KINDS
from pytest_cellprose.record.record import SetName
from pytest_cellprose.sets.casepack import left_out_by_pack
from pytest_cellprose.sets.certify import REASONS, Case, Certificate, Reason, certify, contradictions
from pytest_cellprose.sets.discover import Found, Unusable, discover
from pytest_cellprose.sets.frozen import committed_splits, differences, frozen_set
from pytest_cellprose.sets.split import load_split


class Checked(NamedTuple):
    """A question file and what was found about its questions."""

    name: str
    set: SetName
    certificates: tuple[Certificate, ...] = ()
    problems: tuple[str, ...] = ()
    """Of the file as a whole, or of a question in a way that no certificate says."""
    here: bool = True
    """Whether its workbook is in any of the folders; without it nothing can be said."""
    changed: tuple[str, ...] = ()
    """How workbook and questions differ from what is frozen, if they do."""

    @property
    def certified(self) -> int:
        return sum(certificate.certified for certificate in self.certificates)

    @property
    def passes(self) -> bool:
        """A held-out set that is not the frozen one is no set to publish about."""
        frozen = self.set == "development" or not self.changed
        return frozen and not self.problems and self.certified == len(self.certificates)


class Sets(NamedTuple):
    """What `check` found."""

    checked: list[Checked]
    """By name."""
    problems: list[str]
    """Of the folders themselves."""
    lacking: list[str]
    """Held-out workbooks of the folders' ``split.json`` that have no question file there."""
    unknown_kinds: bool = False
    """Whether a question is of a kind that is none of those given."""


def check(folders: Sequence[Path], *, split_by_digest: bool = False, kinds: Kinds = BUILTIN_KINDS) -> Sets:
    """The question files of `folders`, with questions of these kinds, certified and held against what is frozen."""
    discovery = discover(folders, split_by_digest=split_by_digest, elsewhere=committed_splits(Path.cwd()), kinds=kinds)
    cases = [case for found in discovery.found for case in cases_of(found)]
    cases += [case for unusable in discovery.unusable for case in _cases(unusable)]
    by_file: dict[str, list[Certificate]] = {}
    for certificate in certify(cases, kinds):  # together: a conflict may be between two files
        by_file.setdefault(certificate.case.pack, []).append(certificate)
    checked = [_usable(found, by_file[str(found.question_path)]) for found in discovery.found]
    checked += [_wrong(unusable, by_file.get(str(unusable.question_path), [])) for unusable in discovery.unusable]
    checked += [Checked(name, side, here=False) for name, side in discovery.not_here.items()]
    files = {unusable.question_path for unusable in discovery.unusable}
    heldout = [each.name for each in checked if each.set == "heldout"]
    differ = differences(frozen_set(map(load_split, discovery.splits)), heldout, discovery)
    return Sets(
        sorted((each._replace(changed=each.changed + differ.of(each.name)) for each in checked), key=lambda e: e.name),
        [str(problem) for problem in discovery.problems_told if problem.place.file not in files],
        sorted(discovery.known_heldout - discovery.question_files.keys()),
        any(problem.place.known_field == "kind" for unusable in discovery.unusable for problem in unusable.problems),
    )


def uncertified(
    planned: Sequence[Found], everything: Sequence[Found], cache: TextCache, kinds: Kinds = BUILTIN_KINDS
) -> dict[str, dict[str, list[Reason]]]:
    """By workbook: the id of each question that is not certified, and why, in the order of `REASONS`. Also the
    rows of its case pack that never became questions.

    What a question file and its workbooks say is worked out once; what `everything` else that was found says
    about the same workbooks is compared anew. Only ids and reasons are cached: no truth.
    """
    contradicted = contradictions((case for found in everything for case in cases_of(found)), kinds)
    result = {}
    for found in planned:
        reasons = {name: set(alone) for name, alone in _alone(found, cache, kinds).items()}
        for number, question in enumerate(found.questions.questions, start=1):
            if (str(found.question_path), number) in contradicted:
                reasons.setdefault(question.id, set()).add("conflicting outcomes")
        ids = [question.id for question in found.questions.questions if question.id in reasons]
        result[found.name] = {name: sorted(reasons[name], key=REASONS.index) for name in ids}
        for name, why in left_out_by_pack(found.question_path).items():
            result[found.name].setdefault(name, why)
    return result


def _alone(found: Found, cache: TextCache, kinds: Kinds) -> dict[str, list[Reason]]:
    def make() -> str:
        judged = certify(list(cases_of(found)), kinds)
        return json.dumps({each.id: each.reasons for each in judged if not each.certified})

    theirs = [question.rules for question in found.questions.questions if question.kind not in BUILTIN_KINDS]
    answers = (f"{name} {sha256_of(path)}" for name, path in sorted(found.answer_paths.items()))
    text = cache.get_or_make(
        make,
        "certification",
        found.workbook_sha256,
        found.questions_sha256,
        *answers,
        package_digest("workbook", "questions", "sets"),
        *sorted({functions_digest(rules.truth, rules.score) for rules in theirs}),
    )
    reasons: dict[str, list[Reason]] = json.loads(text)
    return reasons


def cases_of(found: Found) -> Iterator[Case]:
    """The questions of a file that can be used; the file is their pack."""
    for number, question in enumerate(found.questions.questions, start=1):
        yield Case(
            pack=str(found.question_path),
            number=number,
            fields=question.model_dump(),
            workbook=found.workbook_path,
            identity=found.workbook_sha256,
            answer_workbook=found.answer_paths.get(question.id),
        )


def _usable(found: Found, certificates: Sequence[Certificate]) -> Checked:
    changed = (found.changed,) if found.set == "development" and found.changed else ()
    return Checked(found.name, found.set, tuple(certificates), changed=changed)


def _wrong(unusable: Unusable, certificates: Sequence[Certificate]) -> Checked:
    """What is wrong with a question is among the doubts about it; what no doubt covers is said of the file."""
    told = zip(unusable.problems, unusable.told, strict=True)
    if not any(not certificate.certified for certificate in certificates):
        of_file = unusable.told
    elif unusable.questions is not None:
        of_file = []
    else:
        of_file = [text for problem, text in told if not problem.place.is_question]
    return Checked(unusable.name, unusable.set, tuple(certificates), tuple(of_file))


def _cases(unusable: Unusable) -> Iterator[Case]:
    path = unusable.question_path
    if unusable.questions is not None:
        rows: list[Any] = [question.model_dump() for question in unusable.questions.questions]
        missing = "; ".join(unusable.told)
    else:
        rows, missing = _as_written(path), ""
    for number, row in enumerate(rows, start=1):
        fields = row if isinstance(row, dict) else {}
        yield Case(str(path), number, fields, unusable.workbook_path, missing=missing)


def _as_written(path: Path) -> list[Any]:
    """The questions of a file that cannot be loaded, as far as it is JSON."""
    try:
        content = json.loads(path.read_bytes().decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return []
    questions = content.get("questions") if isinstance(content, dict) else None
    return questions if isinstance(questions, list) else []

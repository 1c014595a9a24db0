"""Certification: before any call is planned, every recorded truth is held against the scorer and the workbook.

A question is certified if nothing speaks against it, and all that does is collected. What is not certified is
not asked.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from pytest_cellprose.questions.about import Scalar
from pytest_cellprose.questions.cellset import Area, CellSet
from pytest_cellprose.questions.kind import Kinds
from pytest_cellprose.questions.kinds import BUILTIN_KINDS
from pytest_cellprose.questions.schema import Question, QuestionFile, check_against, question_problems
from pytest_cellprose.questions.scoring import score_reply
from pytest_cellprose.questions.values import folded, shortest
from pytest_cellprose.sets.evidence import Evidence
from pytest_cellprose.workbook.model import WorkbookError
from pytest_cellprose.workbook.refs import MAX_COLUMN, MAX_ROW, AddressError, cell_name, quote_sheet

Reason: TypeAlias = Literal[
    "no id",
    "duplicate id",
    "unlabelled",
    "conflicting outcomes",
    "missing workbook",
    "not gradable",
    "not what the workbook says",
]
REASONS: tuple[Reason, ...] = get_args(Reason)


class Doubt(NamedTuple):
    """One thing that speaks against a question."""

    reason: Reason
    detail: str
    """For who may see the truth: it may quote it and the workbook. Never shown of a held-out question."""


class Case(NamedTuple):
    """One question as it was written, with the files it needs."""

    pack: str
    """The question file or workbook that it belongs to: ids differ within a pack."""
    number: int
    """1-based, within the file or table it came from."""
    fields: Mapping[str, Any]
    """As in a question file."""
    workbook: Path | None
    identity: str = ""
    """What tells the workbook from others: its SHA-256, or for want of it the name that was given."""
    answer_workbook: Path | None = None
    missing: str = ""
    """Why there is no workbook."""
    own_id: str | None = None
    """Where it came from, if it has another id there than in `fields`."""


class Certificate(NamedTuple):
    """What was found about one case."""

    case: Case
    doubts: tuple[Doubt, ...]

    @property
    def id(self) -> str:
        """The question's own id, or for want of one its number."""
        return _id(self.case) or f"number {self.case.number}"

    @property
    def certified(self) -> bool:
        return not self.doubts

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Each once, in the order of `REASONS`."""
        found = {doubt.reason for doubt in self.doubts}
        return tuple(reason for reason in REASONS if reason in found)


def certify(cases: Sequence[Case], kinds: Kinds = BUILTIN_KINDS) -> list[Certificate]:
    """Judge every case, and name everything that speaks against it. Cases of one workbook best stand together."""
    ids = Counter((case.pack, _plain(_id(case))) for case in cases)
    contradicted = contradictions(cases, kinds)

    @lru_cache(maxsize=4)
    def evidence(path: Path) -> Evidence | str:
        try:
            return Evidence.read(path)
        except WorkbookError as error:
            return str(error)

    def doubts(case: Case) -> Iterator[Doubt]:
        own = _id(case)
        if not own:
            yield Doubt("no id", f"question number {case.number} has none")
        elif (times := ids[case.pack, _plain(own)]) > 1:
            yield Doubt("duplicate id", f"{own!r} is the id of {times} questions")
        unlabelled = _is_unlabelled(case.fields, kinds)
        if unlabelled:
            yield Doubt("unlabelled", "no truth is recorded")
        if truths := contradicted.get((case.pack, case.number)):
            yield Doubt("conflicting outcomes", f"asked more than once, with {truths} different truths")
        yield from _judged(case, own, unlabelled, evidence, kinds)

    return [Certificate(case, tuple(doubts(case))) for case in cases]


def _judged(
    case: Case, own: str, unlabelled: bool, evidence: Callable[[Path], Evidence | str], kinds: Kinds
) -> Iterator[Doubt]:
    """What speaks against a case when it is looked at alone: form, files, grading, evidence."""
    fields = {"id": f"q{case.number}", **case.fields} if own else {**case.fields, "id": f"q{case.number}"}
    question, problems = question_problems(fields, kinds)
    yield from (
        Doubt("not gradable", str(problem))
        for problem in problems
        if not (unlabelled and problem.place.known_field == "answer")
    )
    if case.workbook is None:
        yield Doubt("missing workbook", case.missing or "it is in no folder that was named")
        return
    book = evidence(case.workbook)
    if isinstance(book, str):
        yield Doubt("missing workbook", book)
        return
    if question is None or unlabelled:
        return
    if question.computed:
        if case.answer_workbook is None:
            yield Doubt("missing workbook", "the answer workbook of a computed question is not here")
            yield from unfit(question, book)
            return
        answers = evidence(case.answer_workbook)
        if isinstance(answers, str):
            yield Doubt("missing workbook", f"answer workbook: {answers}")
            return
        yield from doubts_about(question, book, answers)
    else:
        yield from doubts_about(question, book, book)


def doubts_about(question: Question, book: Evidence, answers: Evidence) -> Iterator[Doubt]:
    """What speaks against a well-formed question.

    `book` is the workbook that is sent, `answers` the one that holds the truth: the same, but for a computed
    question.
    """
    found = list(unfit(question, book))
    yield from found
    if not found and (objection := question.rules.against(question, answers)) is not None:
        yield Doubt("not what the workbook says", objection)


def unfit(question: Question, book: Evidence) -> Iterator[Doubt]:
    """What rules the question out before evidence is asked for: its places are not in the workbook, or right and
    wrong answers are not told apart."""
    file = QuestionFile(workbook="it", questions=(question,))
    misplaced = check_against(file, book.extents)
    if misplaced:
        yield from (
            Doubt("not what the workbook says", f'field "{problem.place.field}": {problem.said}')
            for problem in misplaced
        )
        return
    (asked,) = file.with_extents(book.extents).questions
    if (points := _graded(asked, question.answer)) < 1:
        yield Doubt("not gradable", f"the recorded truth, given as an answer, scores {points:g} and not 1")
    wrong = _graded(asked, damaged(question))
    if wrong == 1:
        yield Doubt("not gradable", f"a damaged copy of the recorded truth, given as an answer, scores {wrong:g}")


def _graded(question: Question, answer: object) -> float:
    """The score of an answer as a reply would give it."""
    reply = json.dumps({question.id: answer})
    return score_reply([question], reply).scores[question.id]


def damaged(question: Question) -> Scalar | list[Scalar]:
    """The truth made wrong: another number, date or text, or a list with a cell that it does not have."""
    truth = question.answer
    if isinstance(truth, tuple):
        return [*truth, f"{quote_sheet(question.sheet)}!{cell_name(MAX_ROW, MAX_COLUMN)}"]
    if isinstance(truth, bool):
        return not truth
    if isinstance(truth, int | float):
        return 0 if abs(truth) >= 1 else truth + 1
    if question.type == "date":
        there = date.fromisoformat(truth)
        return str(there - timedelta(days=1) if there == date.max else there + timedelta(days=1))
    return f"not {truth}"


def contradictions(cases: Iterable[Case], kinds: Kinds = BUILTIN_KINDS) -> dict[tuple[str, int], int]:
    """``(pack, number)`` of each case that is asked elsewhere, too, with another truth -> how many truths there are.

    The same question is the same text about the same worksheet of the same workbook, in whatever file and
    whatever else is wrong with it.
    """
    truths: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    askers: dict[tuple[str, str, str], list[Case]] = defaultdict(list)
    for case in cases:
        text, sheet = case.fields.get("text"), case.fields.get("sheet")
        if not isinstance(text, str) or not text.strip() or _is_unlabelled(case.fields, kinds):
            continue
        key = (case.identity or case.pack, folded(str(sheet or "")), folded(text))
        truths[key].add(_truth_text(case.fields["answer"], str(sheet or "")))
        askers[key].append(case)
    return {
        (case.pack, case.number): len(found) for key, found in truths.items() if len(found) > 1 for case in askers[key]
    }


def _id(case: Case) -> str:
    value = case.fields.get("id") if case.own_id is None else case.own_id
    return "" if value is None else str(value).strip()


def _plain(name: str) -> str:
    """Ids that differ in case or in what is no letter, digit or underscore only are one id."""
    return re.sub(r"\W+", "_", name).casefold()


def _is_unlabelled(fields: Mapping[str, Any], kinds: Kinds) -> bool:
    """An empty list is a truth of some kinds, and means "no cell"; of others it is none."""
    answer, kind = fields.get("answer"), fields.get("kind")
    if isinstance(answer, str):
        return not answer.strip()
    if answer is None or answer not in ([], ()):
        return answer is None
    try:
        kinds[kind if isinstance(kind, str) else ""].truth(answer, fields)
    except KeyError:
        return False
    except ValueError:
        return True
    return False


def _truth_text(answer: object, sheet: str) -> str:
    """The same text for the same truth, however it is spelled."""
    if isinstance(answer, list | tuple):
        cells, unreadable = CellSet(), []
        for member in answer:
            try:
                area = Area.parse(str(member), sheet)
            except AddressError:
                unreadable.append(str(member))
            else:
                cells.add(area.sheet, area.range)
        return repr((cells.columns, sorted(unreadable)))
    if isinstance(answer, int | float) and not isinstance(answer, bool):
        return shortest(answer) or repr(answer)
    return folded(answer) if isinstance(answer, str) else repr(answer)

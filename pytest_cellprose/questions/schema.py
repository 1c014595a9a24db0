"""The question file: what is asked about one workbook, and what is true (docs/questions.md)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from pydantic import (
    Field,
    StrictBool,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from pytest_cellprose.questions.about import FORMS, TAGS, About, Scalar
from pytest_cellprose.questions.asked import Asked, OfAKind, Reach, kinds_of
from pytest_cellprose.questions.cell_answers import areas_of
from pytest_cellprose.questions.cellset import Area
from pytest_cellprose.questions.kind import Kinds
from pytest_cellprose.questions.kinds import BUILTIN_KINDS
from pytest_cellprose.questions.problem import Place, Problem, expected, quoted
from pytest_cellprose.record.record import Frozen
from pytest_cellprose.workbook.refs import AddressError, Range

QUESTION_SCHEMA: Literal[1] = 1

Scorer: TypeAlias = Literal["cellprose", "spreadsheetbench"]

_ID = re.compile(r"q\w+")
_GENERATED = "generated:"
"""How the source of a synthetic workbook begins in files that do not say `synthetic`."""
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")


class Question(OfAKind):
    """One question and its truth. Field order matters: each field is checked against those above it."""

    id: str
    """``q`` and at least one more letter, digit or underscore."""
    kind: str
    text: str
    sheet: str
    """The worksheet that bare addresses belong to."""
    type: Literal["date"] | None = None
    """``date``: the answer is text ``YYYY-MM-DD``."""
    unit: Literal["percent"] | None = None
    """``percent``: the truth is in percent points, 12 for 12 %."""
    computed: StrictBool = False
    """The truth is not in the workbook that is sent."""
    about: About | None = Field(default=None, validate_default=True)
    """What a program must look at: the cell of a value, trace or impact question, the range of a hardcode
    question, where to find the cell of an address question. Only a computed question may have none."""
    answer: Scalar | tuple[Scalar, ...]
    """A value, or for the other kinds a list of addresses; a bare one belongs to `sheet`."""
    reach: Reach | None = Field(default=None, validate_default=True)
    """For trace and impact: ``direct`` precedents or dependents, or ``all`` with what lies between."""
    answer_workbook: str | None = Field(default=None, validate_default=True)
    """For a computed question: the workbook that holds the truth."""
    answer_sha256: str | None = None
    extent: dict[str, str | None] | None = None
    """Worksheet -> used extent (None: no cells), to clip whole columns in answers; filled in on loading."""
    scorer: Scorer = "cellprose"
    """``spreadsheetbench``: a value is compared by that benchmark's own rules (`questions.spreadsheetbench`)."""
    case: str | None = None
    """The id this question had where it came from."""
    note: str | None = None

    @field_validator("id")
    @classmethod
    def _id(cls, value: str) -> str:
        if not _ID.fullmatch(value):
            raise expected("q followed by letters, digits or underscores, like q1")
        return value

    @field_validator("text", "sheet")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
            raise expected("some text")
        return value

    @field_validator("about")
    @classmethod
    def _about(cls, value: About | None, info: ValidationInfo) -> About | None:
        kind, sheet = info.data.get("kind"), info.data.get("sheet")
        if kind is None or sheet is None:
            return value
        form = FORMS[kinds_of(info)[kind].about]
        if value is None:
            if info.data.get("computed"):
                return None
            raise expected(f"what the question is about: {form.expected}")
        if (form.parse is None) == isinstance(value, str):
            raise expected(f"{form.expected}, as the question's kind is {kind}")
        if isinstance(value, str) and form.parse is not None:
            try:
                form.parse(value, sheet)
            except AddressError as error:
                raise expected(form.expected, f", but {error}") from None
        return value

    @field_validator("answer", mode="before")
    @classmethod
    def _answer(cls, value: Any, info: ValidationInfo) -> Any:
        kind = info.data.get("kind")
        return "" if kind is None else kinds_of(info)[kind].truth(value, info.data)

    @field_validator("reach")
    @classmethod
    def _reach(cls, value: Reach | None, info: ValidationInfo) -> Reach | None:
        kind = info.data.get("kind")
        if kind is None:
            return value
        taken = "reach" in kinds_of(info)[kind].takes
        if taken and value is None:
            raise expected(f'"direct" or "all", as the question\'s kind is {kind}')
        if value is not None and not taken:
            raise expected(f"no reach, as the question's kind is {kind}")
        return value

    @field_validator("type", "unit", "computed")
    @classmethod
    def _taken(cls, value: Any, info: ValidationInfo) -> Any:
        if value and (said := _not_taken(info)):
            raise expected(f"nothing here, {said}")
        return value

    @field_validator("answer_workbook", "answer_sha256")
    @classmethod
    def _computed_only(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and info.data.get("computed") is False:
            raise expected('nothing here, or "computed": true')
        return _digest(value) if info.field_name == "answer_sha256" else value

    @field_validator("scorer")
    @classmethod
    def _scorer(cls, value: Scorer, info: ValidationInfo) -> Scorer:
        if value == "spreadsheetbench" and (said := _not_taken(info)):
            raise expected(f"cellprose, {said}")
        if value == "spreadsheetbench" and info.data.get("unit") is not None:
            raise expected("cellprose, as the other scorer compares stored values, not percent points")
        return value

    @field_validator("extent", mode="before")
    @classmethod
    def _extent(cls, value: Any, info: ValidationInfo) -> Any:
        extents = {info.data.get("sheet"): value} if isinstance(value, str) else value
        for text in extents.values() if isinstance(extents, dict) else ():
            if isinstance(text, str):
                try:
                    Range.parse(text)
                except AddressError as error:
                    raise expected("used extents like A1:F20", f", but {error}") from None
        return extents

    def asked(self) -> Asked:
        """The question without its truth."""
        fields = {name: getattr(self, name) for name in Asked.model_fields}
        return Asked.model_validate(fields, context={"kinds": {self.kind: self.rules}})


class QuestionFile(Frozen):
    """All questions about one workbook."""

    schema_: Literal[1] = Field(default=QUESTION_SCHEMA, alias="schema")
    workbook: str
    """A path relative to the question file, or a file name to be found in a cells folder."""
    sha256: str | None = None
    """Of the workbook's bytes, hex; must match when given."""
    source: str | None = None
    synthetic: StrictBool | None = None
    """Generated rather than found; None: not said."""
    questions: tuple[Question, ...]

    @field_validator("questions", mode="before")
    @classmethod
    def _questions(cls, value: Any) -> Any:
        if not isinstance(value, list | tuple) or not value:
            raise expected("a list of at least one question")
        return tuple(value)

    @field_validator("workbook")
    @classmethod
    def _workbook(cls, value: str) -> str:
        if not value.strip():
            raise expected("the workbook's file name")
        return value

    @field_validator("sha256")
    @classmethod
    def _sha256(cls, value: str | None) -> str | None:
        return _digest(value)

    @model_validator(mode="after")
    def _ids_differ(self) -> QuestionFile:
        for repeated in _repeated(question.id for question in self.questions):
            raise PydanticCustomError("repeated_id", "{what}", {"what": str(repeated)})
        return self

    def without(self, ids: Container[str]) -> QuestionFile:
        """The same file without the questions of these ids."""
        left = tuple(question for question in self.questions if question.id not in ids)
        return self.model_copy(update={"questions": left})

    def with_extents(self, extents: Mapping[str, Range | None]) -> QuestionFile:
        """The same questions knowing every worksheet's used extent (`Worksheet.extent`), for scoring."""
        texts = {name: None if extent is None else str(extent) for name, extent in extents.items()}
        filled = tuple(question.model_copy(update={"extent": texts}) for question in self.questions)
        return self.model_copy(update={"questions": filled})


class QuestionFileError(ValueError):
    """A question file that cannot be used; `problems` has all that is wrong with it."""

    def __init__(self, file: Path, problems: Iterable[Problem]) -> None:
        self.file = file
        self.problems = tuple(problems)
        super().__init__("\n".join(self.lines(sealed=False)))

    def lines(self, *, sealed: bool) -> list[str]:
        """A line for each problem; `sealed`: of a file that is held out, nothing that it holds."""
        return [str((problem.withheld if sealed else problem).of(self.file)) for problem in self.problems]


def load_questions(path: str | PathLike[str], kinds: Kinds = BUILTIN_KINDS) -> QuestionFile:
    """Read and check a question file whose questions are of these kinds; raises `QuestionFileError` with all that is
    wrong with it."""
    file = Path(path)

    def unusable(expected: str, *, found: str = "", detail: str = "") -> QuestionFileError:
        return QuestionFileError(file, [Problem(expected, found=found, detail=detail)])

    try:
        text = file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise unusable(f"not UTF-8 text (byte {error.start}): save it as UTF-8") from None
    except IsADirectoryError:
        raise unusable("a folder, expected a question file NAME.json") from None
    except OSError as error:
        raise unusable(f"cannot be read: {error.strerror or error}") from None
    if not text.strip():
        raise unusable("empty, expected a JSON object with workbook and questions")
    repeated_keys: list[Problem] = []
    try:
        raw = json.loads(text, object_pairs_hook=lambda pairs: _object(pairs, repeated_keys))
    except json.JSONDecodeError as error:
        raise unusable(f"not JSON: {error.msg} (line {error.lineno}, column {error.colno})") from None
    except RecursionError:
        raise unusable("JSON nested too deeply to be a question file") from None
    except ValueError as error:  # an integer of thousands of digits
        raise unusable("not usable JSON", detail=f": {error}") from None
    if not isinstance(raw, dict):
        raise unusable("expected a JSON object with workbook and questions", found=quoted(raw))
    problems = list(repeated_keys)
    asked = raw.get("questions")
    questions = asked if isinstance(asked, list) else []
    ids = [question.get("id") for question in questions if isinstance(question, dict)]
    problems += _repeated(i for i in ids if isinstance(i, str))
    try:
        loaded = QuestionFile.model_validate(raw, context={"kinds": kinds})
    except ValidationError as error:
        problems += [_problem(each, questions) for each in error.errors() if each["type"] != "repeated_id"]
    if problems:
        raise QuestionFileError(file, problems)
    if loaded.synthetic is None and (loaded.source or "").startswith(_GENERATED):
        return loaded.model_copy(update={"synthetic": True})
    return loaded


def question_problems(fields: Mapping[str, Any], kinds: Kinds = BUILTIN_KINDS) -> tuple[Question | None, list[Problem]]:
    """A single question, and what is wrong with it; it has no number."""
    try:
        return Question.model_validate(fields, context={"kinds": kinds}), []
    except ValidationError as error:
        prefixed = [cast(ErrorDetails, {**each, "loc": ("questions", 0, *each["loc"])}) for each in error.errors()]
        problems = [_problem(each, [fields]) for each in prefixed]
        return None, [replace(each, place=replace(each.place, number=None, id="")) for each in problems]


def check_against(questions: QuestionFile, worksheets: Mapping[str, Range | None]) -> list[Problem]:
    """What in the questions cannot be right about a workbook with these worksheets (name -> used extent).

    Worksheets that do not exist, compared without case, and truths that name no cell of the used extent. A
    computed question's answer and `about` are in another workbook.
    """
    extents = {name.casefold(): extent for name, extent in worksheets.items()}
    there = ", ".join(worksheets) or "none"
    problems = []
    for number, question in enumerate(questions.questions, start=1):
        for name, texts in _addressed(question):
            place = Place(number, question.id, field=name, known_field=name)
            for sheet, area in texts:
                extent = extents.get(sheet.casefold())
                if sheet.casefold() not in extents:
                    problems.append(
                        Problem("expected one of the workbook's", place, f"worksheet {sheet!r}", f": {there}")
                    )
                elif area is not None and (extent is None or area.intersection(extent) is None):
                    used = "no cell" if extent is None else extent
                    problems.append(
                        Problem("outside what its worksheet uses", place, f"{area}", f": {sheet!r} uses {used}")
                    )
    return problems


def _addressed(question: Question) -> Iterator[tuple[str, list[tuple[str, Range | None]]]]:
    """Field name -> the worksheets, and maybe areas, that it names."""
    yield "sheet", [(question.sheet, None)]
    if question.computed:
        return
    if isinstance(question.about, str):
        yield "about", [Area.parse(question.about, question.sheet)]
    if question.rules.lists_cells:
        areas: list[tuple[str, Range | None]] = [*areas_of(question)]
        yield "answer", areas


def _not_taken(info: ValidationInfo) -> str | None:
    """Why the question has not this field, if its kind takes none of the name."""
    kind, kinds = info.data.get("kind"), kinds_of(info)
    if kind is None or info.field_name in kinds[kind].takes:
        return None
    takers = [name for name, each in kinds.items() if info.field_name in each.takes]
    return f"as the question's kind is {kind}, not {' or '.join(takers)}"


def _digest(value: str | None) -> str | None:
    if value is not None and not _SHA256.fullmatch(value):
        raise expected("64 hexadecimal digits, a file's SHA-256")
    return None if value is None else value.lower()


def _repeated(ids: Iterable[str]) -> list[Problem]:
    """Ids are compared without case, because the keys of a reply are."""
    counts = Counter(text.casefold() for text in ids)
    return [_more_than_once("id", name, n) for name, n in counts.items() if n > 1]


def _object(pairs: list[tuple[str, Any]], repeated: list[Problem]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        name = found["id"] if isinstance(found.get("id"), str) else ""
        repeated += [_more_than_once(key, name, n) for key, n in counts.items() if n > 1]
    return found


def _more_than_once(field: str, question: str, times: int) -> Problem:
    place = Place(id=question, field=field, known_field=field if field in _FIELDS else "")
    return Problem("expected once", place, f"{times} times")


def _problem(error: ErrorDetails, questions: list[Any]) -> Problem:
    """Which question, which field, what was found, what was expected."""
    path = list(error["loc"])
    number, name = None, ""
    if path[:1] == ["questions"] and len(path) > 1 and isinstance(path[1], int):
        raw = questions[path[1]] if path[1] < len(questions) else None
        named = raw.get("id") if isinstance(raw, dict) else None
        number, name = path[1] + 1, named if isinstance(named, str) else ""
        path = path[2:]
        if len(path) > 1 and path[0] == "about" and path[1] in TAGS:
            del path[1]
    known = str(path[0]) if path and path[0] in _FIELDS else ""
    place = Place(number, name, ".".join(map(str, path)), known)
    if error["type"] == "missing":
        return Problem("missing", place)
    if error["type"] == "extra_forbidden":
        return Problem("there is none of this name: remove it or correct its spelling", place)
    found = quoted(error["input"])
    if error["type"] == "model_type":
        return Problem("expected an object", place, found)
    if error["type"] == "expected":
        ctx = error["ctx"]
        return Problem(f"expected {ctx['what']}", place, found, ctx["detail"])
    if error["type"] == "value_error":  # a plugin's words, which may quote the file
        return Problem("not what its kind takes", place, found, f": {error['ctx']['error']}")
    return Problem(error["msg"].replace("Input should be ", "expected ", 1), place, found)


_FIELDS = frozenset({*Question.model_fields, *QuestionFile.model_fields, "schema"} - {"schema_"})

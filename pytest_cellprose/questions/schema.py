"""The question file: what is asked about one workbook, and what is true (DESIGN section 10)."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, cast, get_args

from pydantic import (
    Discriminator,
    Field,
    StrictBool,
    Tag,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from pytest_cellprose.questions.cellset import Area
from pytest_cellprose.questions.problem import Place, Problem
from pytest_cellprose.record.record import Frozen
from pytest_cellprose.workbook.refs import AddressError, CellAddress, Range

QUESTION_SCHEMA: Literal[1] = 1

Kind: TypeAlias = Literal["value", "address", "trace", "impact", "hardcode"]
KINDS: tuple[Kind, ...] = get_args(Kind)

Reach: TypeAlias = Literal["direct", "all"]
Scorer: TypeAlias = Literal["cellprose", "spreadsheetbench"]
Scalar: TypeAlias = bool | int | float | str

_ID = re.compile(r"q\w+")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")


class RowAndColumn(Frozen):
    """A cell by what is shown beside and above it; `pytest_cellprose.questions.locate` has the rule."""

    row: tuple[str | int | float, ...]
    """Displayed texts that lead, step by step, to one row."""
    column: tuple[str | int | float, ...]
    """Displayed texts that lead, step by step, to one column."""

    @field_validator("row", "column", mode="before")
    @classmethod
    def _labels(cls, value: Any) -> Any:
        fits = isinstance(value, list | tuple) and len(value) > 0
        if not fits or not all(_is_scalar(label) and not isinstance(label, bool) for label in value):
            raise _expected("a list of at least one displayed text or number")
        return tuple(value)


class TypedValue(Frozen):
    """A cell by the constant that is typed in it, and in no other cell of the worksheet."""

    value: Scalar

    @field_validator("value", mode="before")
    @classmethod
    def _value(cls, value: Any) -> Any:
        if not _is_scalar(value):
            raise _expected("a finite number, a text or true/false")
        return value


def _about_form(about: Any) -> str | None:
    if isinstance(about, str):
        return "address"
    if isinstance(about, TypedValue) or (isinstance(about, dict) and "value" in about):
        return "value"
    return "labels" if isinstance(about, RowAndColumn | dict) else None


_ABOUT_FORMS = ("address", "value", "labels")

About: TypeAlias = Annotated[
    Annotated[str, Tag("address")] | Annotated[TypedValue, Tag("value")] | Annotated[RowAndColumn, Tag("labels")],
    Discriminator(
        _about_form,
        custom_error_type="about_form",
        custom_error_message='expected an address, or {"row": […], "column": […]}, or {"value": …}',
    ),
]


class Asked(Frozen):
    """A question without its truth: all that prompts and the offline reader ever get."""

    id: str
    kind: Kind
    text: str
    sheet: str
    about: About | None = None
    """For programs; never part of a prompt."""
    reach: Reach | None = None
    type: Literal["date"] | None = None
    unit: Literal["percent"] | None = None
    computed: bool = False
    """The workbook that is sent does not hold the answer: a program that only looks things up has none."""


class Question(Frozen):
    """One question and its truth. Field order matters: each field is checked against those above it."""

    id: str
    """``q`` and at least one more letter, digit or underscore."""
    kind: Kind
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
    answer: Scalar | tuple[str, ...]
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
            raise _expected("q followed by letters, digits or underscores, like q1")
        return value

    @field_validator("text", "sheet")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
            raise _expected("some text")
        return value

    @field_validator("about")
    @classmethod
    def _about(cls, value: About | None, info: ValidationInfo) -> About | None:
        kind, sheet = info.data.get("kind"), info.data.get("sheet")
        if kind is None or sheet is None:
            return value
        if value is None:
            if info.data.get("computed"):
                return None
            raise _expected(f"what the question is about: {_ABOUT_EXPECTED[kind]}")
        if (kind == "address") == isinstance(value, str):
            raise _expected(f"{_ABOUT_EXPECTED[kind]}, as the question's kind is {kind}")
        if isinstance(value, str):
            parse: Callable[[str, str], object] = Area.parse if kind == "hardcode" else CellAddress.parse
            try:
                parse(value, sheet)
            except AddressError as error:
                raise _expected(_ABOUT_EXPECTED[kind], f", but {error}") from None
        return value

    @field_validator("answer", mode="before")
    @classmethod
    def _answer(cls, value: Any, info: ValidationInfo) -> Any:
        kind = info.data.get("kind")
        if kind is None:
            return ""
        if kind != "value":
            if not isinstance(value, list | tuple):
                raise _expected(f"a list of addresses, as the question's kind is {kind}")
            wrong = list(_unreadable(value, info.data.get("sheet", "")))
            if wrong:
                raise _expected("addresses only", ", but " + "; ".join(wrong))
            if kind == "address" and not value:
                raise _expected("at least one address, as the question's kind is address")
            return tuple(value)
        if not _is_scalar(value):
            raise _expected("a finite number, a text or true/false, as the question's kind is value")
        if info.data.get("type") == "date" and not _is_date(value):
            raise _expected('a date of the calendar as text YYYY-MM-DD, as the question\'s type is "date"')
        return value

    @field_validator("reach")
    @classmethod
    def _reach(cls, value: Reach | None, info: ValidationInfo) -> Reach | None:
        kind = info.data.get("kind")
        if kind in ("trace", "impact") and value is None:
            raise _expected(f'"direct" or "all", as the question\'s kind is {kind}')
        if kind in ("value", "address", "hardcode") and value is not None:
            raise _expected(f"no reach, as the question's kind is {kind}")
        return value

    @field_validator("type", "unit", "computed")
    @classmethod
    def _value_only(cls, value: Any, info: ValidationInfo) -> Any:
        if value and info.data.get("kind", "value") != "value":
            raise _expected(f"nothing here, as the question's kind is {info.data['kind']}, not value")
        return value

    @field_validator("answer_workbook", "answer_sha256")
    @classmethod
    def _computed_only(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and info.data.get("computed") is False:
            raise _expected('nothing here, or "computed": true')
        return _digest(value) if info.field_name == "answer_sha256" else value

    @field_validator("scorer")
    @classmethod
    def _scorer(cls, value: Scorer, info: ValidationInfo) -> Scorer:
        if value == "spreadsheetbench" and info.data.get("kind", "value") != "value":
            raise _expected(f"cellprose, as the question's kind is {info.data['kind']}, not value")
        if value == "spreadsheetbench" and info.data.get("unit") is not None:
            raise _expected("cellprose, as the other scorer compares stored values, not percent points")
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
                    raise _expected("used extents like A1:F20", f", but {error}") from None
        return extents

    def asked(self) -> Asked:
        """The question without its truth."""
        return Asked(**{name: getattr(self, name) for name in Asked.model_fields})


class QuestionFile(Frozen):
    """All questions about one workbook."""

    schema_: Literal[1] = Field(default=QUESTION_SCHEMA, alias="schema")
    workbook: str
    """A path relative to the question file, or a file name to be found in a cells folder."""
    sha256: str | None = None
    """Of the workbook's bytes, hex; must match when given."""
    source: str | None = None
    questions: tuple[Question, ...]

    @field_validator("questions", mode="before")
    @classmethod
    def _questions(cls, value: Any) -> Any:
        if not isinstance(value, list | tuple) or not value:
            raise _expected("a list of at least one question")
        return tuple(value)

    @field_validator("workbook")
    @classmethod
    def _workbook(cls, value: str) -> str:
        if not value.strip():
            raise _expected("the workbook's file name")
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
        return [f"{self.file}: {problem.sealed if sealed else problem}" for problem in self.problems]


def load_questions(path: str | PathLike[str]) -> QuestionFile:
    """Read and check a question file; raises `QuestionFileError` with all that is wrong with it."""
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
        raise unusable("expected a JSON object with workbook and questions", found=_found(raw))
    problems = list(repeated_keys)
    asked = raw.get("questions")
    questions = asked if isinstance(asked, list) else []
    ids = [question.get("id") for question in questions if isinstance(question, dict)]
    problems += _repeated(i for i in ids if isinstance(i, str))
    try:
        loaded = QuestionFile.model_validate(raw)
    except ValidationError as error:
        problems += [_problem(each, questions) for each in error.errors() if each["type"] != "repeated_id"]
    if problems:
        raise QuestionFileError(file, problems)
    return loaded


def question_problems(fields: Mapping[str, Any]) -> tuple[Question | None, list[Problem]]:
    """A single question, and what is wrong with it; it has no number."""
    try:
        return Question.model_validate(fields), []
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
    if isinstance(question.answer, tuple):
        areas: list[tuple[str, Range | None]] = [Area.parse(text, question.sheet) for text in question.answer]
        yield "answer", areas


_ABOUT_EXPECTED: Mapping[Kind, str] = {
    "value": "the address of a single cell",
    "trace": "the address of a single cell",
    "impact": "the address of a single cell",
    "hardcode": "the address of a range",
    "address": '{"row": […], "column": […]} or {"value": …}',
}


def _expected(what: str, detail: str = "") -> PydanticCustomError:
    """`what` is the same whatever the question holds; `detail` may quote it."""
    return PydanticCustomError("expected", "expected {what}{detail}", {"what": what, "detail": detail})


def _digest(value: str | None) -> str | None:
    if value is not None and not _SHA256.fullmatch(value):
        raise _expected("64 hexadecimal digits, a file's SHA-256")
    return None if value is None else value.lower()


def _is_scalar(value: object) -> bool:
    return isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value))


def _is_date(value: object) -> bool:
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        return False
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True


def _unreadable(members: Iterable[Any], sheet: str) -> Iterator[str]:
    for member in members:
        if not isinstance(member, str):
            yield f"{_found(member)} is not an address"
            continue
        try:
            Area.parse(member, sheet)
        except AddressError as error:
            yield str(error)


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
        if len(path) > 1 and path[0] == "about" and path[1] in _ABOUT_FORMS:
            del path[1]
    known = str(path[0]) if path and path[0] in _FIELDS else ""
    place = Place(number, name, ".".join(map(str, path)), known)
    if error["type"] == "missing":
        return Problem("missing", place)
    if error["type"] == "extra_forbidden":
        return Problem("there is none of this name: remove it or correct its spelling", place)
    found = _found(error["input"])
    if error["type"] == "model_type":
        return Problem("expected an object", place, found)
    if error["type"] == "expected":
        ctx = error["ctx"]
        return Problem(f"expected {ctx['what']}", place, found, ctx["detail"])
    expected = error["msg"]
    if expected.startswith("Input should be "):
        expected = "expected " + expected.removeprefix("Input should be ")
    return Problem(expected, place, found)


_FIELDS = frozenset({*Question.model_fields, *QuestionFile.model_fields, "schema"} - {"schema_"})


def _found(value: Any) -> str:
    """The value as its file writes it, cut to a line."""
    if value is None:
        return "nothing"
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"

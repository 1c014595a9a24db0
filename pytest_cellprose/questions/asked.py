"""A question as it is put: without its truth."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from pydantic import PrivateAttr, ValidationInfo, field_validator

from pytest_cellprose.questions.about import About, RowAndColumn, TypedValue
from pytest_cellprose.questions.cellset import Area
from pytest_cellprose.questions.kind import Kinds, QuestionKind
from pytest_cellprose.questions.kinds import BUILTIN_KINDS
from pytest_cellprose.questions.problem import expected
from pytest_cellprose.record.record import Frozen
from pytest_cellprose.workbook.refs import CellAddress

Reach: TypeAlias = Literal["direct", "all"]


def kinds_of(info: ValidationInfo) -> Kinds:
    """The kinds that a question may be of: those of the validation's context, else our own."""
    return _kinds(info.context)


def _kinds(context: Any) -> Kinds:
    kinds: Kinds = BUILTIN_KINDS if context is None else context["kinds"]
    return kinds


class OfAKind(Frozen):
    """What has a kind, by its name, and knows the kind itself."""

    _rules: QuestionKind = PrivateAttr()

    @field_validator("kind", mode="before", check_fields=False)
    @classmethod
    def _kind(cls, value: Any, info: ValidationInfo) -> Any:
        kinds = kinds_of(info)
        if not isinstance(value, str) or value not in kinds:
            *others, last = map(repr, kinds)
            raise expected(f"{', '.join(others)} or {last}")
        return value

    def model_post_init(self, context: Any) -> None:
        self._rules = _kinds(context)[self.kind]  # type: ignore[attr-defined]

    @property
    def rules(self) -> QuestionKind:
        """How the truth of such a question is read, scored, looked up and certified."""
        return self._rules


class Asked(OfAKind):
    """A question without its truth: all that prompts and the offline reader ever get."""

    id: str
    kind: str
    text: str
    sheet: str
    about: About | None = None
    """For programs; never part of a prompt."""
    reach: Reach | None = None
    type: Literal["date"] | None = None
    unit: Literal["percent"] | None = None
    computed: bool = False
    """The workbook that is sent does not hold the answer: a program that only looks things up has none."""

    @property
    def cell(self) -> CellAddress:
        """What the question is about, where its kind says that this is a cell."""
        assert isinstance(self.about, str)
        return CellAddress.parse(self.about, self.sheet)

    @property
    def area(self) -> Area:
        """The same of a range."""
        assert isinstance(self.about, str)
        return Area.parse(self.about, self.sheet)

    @property
    def labels(self) -> RowAndColumn | TypedValue:
        """The same of labels."""
        assert isinstance(self.about, RowAndColumn | TypedValue)
        return self.about

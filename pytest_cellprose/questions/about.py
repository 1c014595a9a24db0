"""What a question is about: the forms in which a question file says where a program must look."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

from pydantic import Discriminator, Tag, field_validator

from pytest_cellprose.questions.cellset import Area
from pytest_cellprose.questions.problem import expected
from pytest_cellprose.record.record import Frozen
from pytest_cellprose.workbook.refs import CellAddress

Scalar: TypeAlias = bool | int | float | str


def is_scalar(value: object) -> bool:
    return isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value))


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
        if not fits or not all(is_scalar(label) and not isinstance(label, bool) for label in value):
            raise expected("a list of at least one displayed text or number")
        return tuple(value)


class TypedValue(Frozen):
    """A cell by the constant that is typed in it, and in no other cell of the worksheet."""

    value: Scalar

    @field_validator("value", mode="before")
    @classmethod
    def _value(cls, value: Any) -> Any:
        if not is_scalar(value):
            raise expected("a finite number, a text or true/false")
        return value


def _tag(about: Any) -> str | None:
    if isinstance(about, str):
        return "address"
    if isinstance(about, TypedValue) or (isinstance(about, dict) and "value" in about):
        return "value"
    return "labels" if isinstance(about, RowAndColumn | dict) else None


TAGS = ("address", "value", "labels")
"""What pydantic puts into the place of an error, after the field's name."""

About: TypeAlias = Annotated[
    Annotated[str, Tag("address")] | Annotated[TypedValue, Tag("value")] | Annotated[RowAndColumn, Tag("labels")],
    Discriminator(
        _tag,
        custom_error_type="about_form",
        custom_error_message='expected an address, or {"row": […], "column": […]}, or {"value": …}',
    ),
]

AboutForm: TypeAlias = Literal["cell", "range", "labels"]


class Form(NamedTuple):
    """One way of saying what a question is about."""

    expected: str
    parse: Callable[[str, str], object] | None
    """Of an address and the worksheet that a bare one belongs to; None: not by an address."""


FORMS: Mapping[AboutForm, Form] = {
    "cell": Form("the address of a single cell", CellAddress.parse),
    "range": Form("the address of a range", Area.parse),
    "labels": Form('{"row": […], "column": […]} or {"value": …}', None),
}

"""What an encoding is: a named, versioned function from a workbook to the text that a model is sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from pytest_cellprose.workbook.model import Workbook

Kept: TypeAlias = Literal["values", "formulas", "addresses", "formats", "names", "merged", "hidden"]
KEPT: tuple[Kept, ...] = get_args(Kept)


@dataclass(frozen=True)
class Told:
    """What of a workbook its text holds and loses beyond the words of `KEPT`: nothing, and nothing, by default."""

    tables: bool = False
    """Whether tables are named with their ranges."""
    comments: frozenset[tuple[int, int, int]] = frozenset()
    """``(worksheet from 0, row, column)`` of the comments that are written."""
    rounded: int = 0
    """How many numbers are written with fewer digits than they have."""
    lost: Mapping[str, int] = field(default_factory=dict)
    """What else of the cells is not in the text: a noun in the singular -> how many."""


@dataclass(frozen=True)
class Encoding:
    """One way of writing a workbook as text."""

    name: str
    """The id in cells, options and reports: ``cellprose_lean_gfm``."""
    version: str
    """Changes whenever any workbook's text could change; a library's version for a library's output."""
    label: str
    """How the prompt names the format to the model; empty if no workbook is sent."""
    encode: Callable[[Workbook], str]
    """Deterministic: the same workbook gives the same text on every machine."""
    decode: Callable[[str], Workbook] | None = None
    """The text back into cells, for the offline reader; None if nobody wrote one."""
    keeps: frozenset[Kept] = frozenset({"values"})
    """What can be read back from the text; each claim is tested."""
    tells: Callable[[Workbook], Told] | None = None
    """What `keeps` cannot say of one workbook, for those who ask what its text leaves out."""

    def __post_init__(self) -> None:
        unknown = self.keeps - set(KEPT)
        if unknown:
            raise ValueError(f"encoding {self.name!r} keeps {sorted(unknown)}: known are {', '.join(KEPT)}")

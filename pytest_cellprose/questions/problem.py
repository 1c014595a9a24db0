"""What is wrong with a file or a plan, in parts: of a held-out file, the parts that come from it are left out."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic_core import PydanticCustomError


@dataclass(frozen=True)
class Place:
    """Where in a file."""

    number: int | None = None
    """Of the question, 1-based; None: the file as a whole, or not known which."""
    id: str = ""
    """The question's, as the file has it."""
    field: str | None = ""
    """As the file has it, dotted: ``about.row``; empty: none; None: one whose name is not told."""
    known_field: str = ""
    """The field of the schema that this is or is part of; empty if the schema has none of that name."""
    file: Path | None = None
    part: str = ""
    """Of the file, in our own words: ``line 3``."""

    @property
    def is_question(self) -> bool:
        return self.number is not None or bool(self.id)

    def __str__(self) -> str:
        """Without the file."""
        number = "" if self.number is None else f"number {self.number}"
        subject = f"{self.id} ({number})" if self.id and number else self.id or number
        field = "a field" if self.field is None else f'field "{self.field}"' if self.field else ""
        return ", ".join(part for part in (f"question {subject}" if subject else "", field) if part)

    @property
    def withheld(self) -> Place:
        """Without a word of the file's: number and schema only."""
        field = self.known_field or ("" if self.field == "" else None)
        return Place(self.number, field=field, known_field=self.known_field, file=self.file, part=self.part)


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong."""

    expected: str
    """In our own words, the same whatever the file holds: ``expected some text``, ``missing``."""
    place: Place = Place()
    found: str = ""
    """Quotes the file; empty if there is nothing to quote."""
    detail: str = ""
    """What follows `expected` for who may see the file: quotes it or its workbook."""
    remedy: tuple[str, ...] = ()
    """Arguments that would make the command line acceptable; none if it takes more than an option."""

    def __str__(self) -> str:
        """One line, after the file's path if there is one."""
        where = _folded(str(self.place))
        line = f"{where}: {self.said}" if where else self.said
        file = ", ".join(str(part) for part in (self.place.file, self.place.part) if part)
        return f"{file}: {line}" if file else line

    @property
    def said(self) -> str:
        """The line without the place."""
        found = f"found {_folded(self.found)}, " if self.found else ""
        return f"{found}{self.expected}{_folded(self.detail)}"

    @property
    def withheld(self) -> Problem:
        """What may be said of a held-out question: its number, a field of the schema, and our own words."""
        return Problem(self.expected, self.place.withheld, remedy=self.remedy)

    @property
    def sealed(self) -> str:
        return str(self.withheld)

    def of(self, file: Path) -> Problem:
        """The same, of a file."""
        return replace(self, place=replace(self.place, file=file))


def _folded(quoted: str) -> str:
    """What comes from a file, on one line."""
    return " ".join(quoted.split())


def expected(what: str, detail: str = "") -> PydanticCustomError:
    """What a validator raises. `what` is the same whatever the file holds; `detail` may quote it."""
    return PydanticCustomError("expected", "expected {what}{detail}", {"what": what, "detail": detail})


def quoted(value: Any) -> str:
    """The value as its file writes it, cut to a line."""
    if value is None:
        return "nothing"
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"

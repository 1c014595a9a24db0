"""What is wrong with a question file, in parts: of a held-out file, the parts that come from it are left out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pydantic_core import PydanticCustomError


@dataclass(frozen=True)
class Place:
    """Where in a question file."""

    number: int | None = None
    """Of the question, 1-based; None: the file as a whole, or not known which."""
    id: str = ""
    """The question's, as the file has it."""
    field: str = ""
    """As the file has it, dotted: ``about.row``."""
    known_field: str = ""
    """The field of the schema that this is or is part of; empty if the schema has none of that name."""

    @property
    def is_question(self) -> bool:
        return self.number is not None or bool(self.id)

    def __str__(self) -> str:
        number = "" if self.number is None else f"number {self.number}"
        subject = f"{self.id} ({number})" if self.id and number else self.id or number
        return self._joined(f"question {subject}" if subject else "", f'field "{self.field}"' if self.field else "")

    @property
    def sealed(self) -> str:
        """Without a word of the file's: number and schema only."""
        field = f'field "{self.known_field}"' if self.known_field else "a field" if self.field else ""
        return self._joined("" if self.number is None else f"question number {self.number}", field)

    @staticmethod
    def _joined(subject: str, field: str) -> str:
        return ", ".join(part for part in (subject, field) if part)


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong."""

    expected: str
    """A clause in our own words, the same whatever the file holds: ``expected some text``, ``missing``."""
    place: Place = Place()
    found: str = ""
    """Quotes the file; empty if there is nothing to quote."""
    detail: str = ""
    """What follows `expected` for who may see the file: quotes it or its workbook."""

    def __str__(self) -> str:
        """One line."""
        return _after(str(self.place), self.said)

    @property
    def said(self) -> str:
        """The line without the place."""
        found = f"found {self.found}, " if self.found else ""
        return " ".join(f"{found}{self.expected}{self.detail}".split())

    @property
    def sealed(self) -> str:
        """What may be said of a held-out question: its number, a field of the schema, and our own words."""
        return _after(self.place.sealed, self.expected)


def _after(place: str, said: str) -> str:
    return " ".join((f"{place}: {said}" if place else said).split())


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

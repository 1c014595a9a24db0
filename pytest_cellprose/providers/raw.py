"""Parts of the JSON that a host sent, which may have any shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def at(value: Any, *path: str) -> Any:
    """What is there in JSON, by the names of the objects that it lies in; None if nothing is."""
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def text_at(value: Any, *path: str) -> str:
    """A text; empty if it is left out or null. Raises TypeError for anything else."""
    found = at(value, *path)
    if found is not None and not isinstance(found, str):
        raise TypeError(f"{'.'.join(path)} is no text")
    return found or ""


def name_at(value: Any, *path: str) -> str | None:
    """The same of a mere name, such as a model's id: None if it is no text."""
    found = at(value, *path)
    return found if isinstance(found, str) and found else None

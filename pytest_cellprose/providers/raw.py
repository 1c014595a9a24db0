"""Parts of the JSON that a host sent, which may have any shape."""

from __future__ import annotations

import re
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


_NAME = re.compile("[a-zA-Z0-9_-]{1,128}")
_NO_NAME = re.compile("[^a-zA-Z0-9_-]")


def taken_back_name(name: object) -> str:
    """A tool's name, as a model wrote it, as vendors take it back.

    They refuse a whole request for one name in its history that no tool can have, and the model may have made it up.
    """
    text = name if isinstance(name, str) else ""
    return text if _NAME.fullmatch(text) else _NO_NAME.sub("_", text[:64]) or "_"

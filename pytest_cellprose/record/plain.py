"""Plain JSON of whatever a provider or a test hands over.

A record is a line of JSON, and xdist's workers pass reports on as plain Python types, in UTF-8: a NumPy number, a
date or a lone surrogate in one of them would end the run and lose what was paid for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Set
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any
from unicodedata import category

from pydantic import BaseModel

_DEEP = 100
"""Deeper than anybody nests on purpose, and far from Python's recursion limit."""


def plain_text(value: object) -> str:
    r"""`str` of anything, as UTF-8 can hold it: lone surrogates become backslash escapes. Never raises.

    >>> plain_text("a\ud83d")
    'a\\ud83d'
    """
    try:
        text = value if isinstance(value, str) else str(value)
        return text.encode("utf-8", "backslashreplace").decode("utf-8")
    except Exception:  # a stranger's __str__
        return f"<{type(value).__name__}>"


def visible(text: str) -> str:
    r"""Text from outside as a terminal or a page may show it: what would not be seen, but acts, as backslash escapes.

    That is every control character, line ends among them, and every format character, such as those that turn the
    direction of a line, but for the two joiners that scripts need within words.

    >>> visible("a\x1b[2J\n")
    'a\\x1b[2J\\n'
    """
    return "".join(_escaped(character) if _acts(character) else character for character in plain_text(text))


def _acts(character: str) -> bool:
    return category(character) in ("Cc", "Cf", "Zl", "Zp") and character not in "\u200c\u200d"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def sendable_integer(number: int) -> int | str:
    """As text, if it is below what execnet, which carries xdist's messages, can send (2.1.2: ``struct.error``)."""
    return number if number >= -(2**31) else str(number)


def plain(value: object, integer: Callable[[int], int | str] = int) -> Any:
    """The value in types that JSON and xdist both know; what is so already stays as it is.

    NumPy's numbers and arrays become Python's, sets lists, and models and dataclasses without a text of their own
    dictionaries; keys become text, and so do numbers that JSON does not have (NaN, infinities) and all other
    objects. Never raises. `integer` is what becomes of an integer.
    """
    return _plain(value, integer, ())


def _plain(value: object, integer: Callable[[int], int | str], around: tuple[int, ...]) -> Any:
    """`around`: the ids of the containers that the value lies in."""
    if isinstance(value, Enum):
        value = value.value
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return plain_text(value)
    if isinstance(value, int):
        return integer(int(value))
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else plain_text(float(value))
    if isinstance(value, bytes | bytearray):
        return value.decode("utf-8", "backslashreplace")
    if id(value) in around or len(around) > _DEEP:
        return f"<{type(value).__name__}>"
    inside = (*around, id(value))
    try:
        unpacked = _unpacked(value)
    except Exception:
        return plain_text(value)
    match unpacked:
        case dict():
            return {plain_text(key): _plain(item, integer, inside) for key, item in unpacked.items()}
        case list():
            return [_plain(item, integer, inside) for item in unpacked]
        case tuple():
            return tuple(_plain(item, integer, inside) for item in unpacked)
        case _:
            return plain_text(value) if unpacked is value else _plain(unpacked, integer, inside)


def _unpacked(value: object) -> object:
    """A container as a list, tuple or dictionary, another library's scalar as Python's; anything else as it is."""
    if isinstance(value, BaseModel) and type(value).__str__ is BaseModel.__str__:
        return value.model_dump(warnings=False)
    if is_dataclass(value) and not isinstance(value, type) and type(value).__str__ is object.__str__:
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, list):
        return list(value)
    if isinstance(value, tuple):
        return tuple(value)
    if isinstance(value, Set):
        return sorted(value, key=plain_text)
    made_plain = getattr(value, "tolist", None)  # NumPy's scalars and arrays, and what imitates them
    if made_plain is None or isinstance(value, type):
        return value
    python = made_plain()
    return value if type(python) is type(value) else python

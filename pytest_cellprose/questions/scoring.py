"""Scoring: a pure function of questions and reply text (protocol section 6).

Nothing here raises on a reply, however odd, and the time is linear in its length.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from pytest_cellprose.questions.schema import Question

SCORER_VERSION = "2"
"""Changes whenever any reply's score could change."""


class Scored(NamedTuple):
    """What a reply is worth."""

    answers: dict[str, Any] | None
    """The answer object, keys as the model wrote them, fit to be stored; None if the reply has none."""
    scores: dict[str, float]
    """Question id -> score in [0, 1], every question."""
    accuracy: float
    """Mean of the scores."""


def score_reply(questions: Sequence[Question], reply: str) -> Scored:
    """Find the answer in a reply and score every question; without an answer all score 0."""
    answers = find_answer(reply)
    given = {key.casefold(): value for key, value in (answers or {}).items()}
    scores = {question.id: score(question, given.get(question.id.casefold())) for question in questions}
    stored = None if answers is None else _storable(answers)
    return Scored(stored, scores, math.fsum(scores.values()) / len(scores) if scores else 0.0)


def score(question: Question, answer: Any) -> float:
    """The score in [0, 1] of one answer as parsed from JSON; None (missing or null) scores 0."""
    if answer is None:
        return 0.0
    return question.rules.score(question, answer)


_OBJECT_WITH_KEY = re.compile(r'\{\s*"')
_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+"|([{\[])|[}\]]', re.DOTALL)
_WINDOW = 4096
_LONGEST_TOKEN = 16
"""More than the characters of ``-Infinity`` or of an escaped surrogate pair."""
_DEEP = 400


def find_answer(reply: str) -> dict[str, Any] | None:
    r"""The last JSON object of the reply whose keys all begin with ``q``, in any case; None if there is none.

    Objects at any depth count, the outermost first: what lies inside such an object is not looked at. JSON is
    read leniently: raw newlines in strings, ``NaN`` and ``Infinity``; of a repeated key the last one counts.

    >>> find_answer('The total is {"q1": 1250}. {"note": {"sure": true}}')
    {'q1': 1250}
    """
    last: dict[str, Any] | None = None

    def closed(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        # Objects are closed in the order of their ends: a later one lies behind the last or around it. And
        # what is whole inside an object that proves to be broken further on has been seen.
        nonlocal last
        found = dict(pairs)
        if found and all(key[:1] in ("q", "Q") for key in found):
            last = found
        return found

    decoder = json.JSONDecoder(object_pairs_hook=closed, parse_int=_integer, strict=False)
    position = 0
    while start := _OBJECT_WITH_KEY.search(reply, position):
        position = _read_object(decoder, reply, start.start())
    return last


def _read_object(decoder: json.JSONDecoder, text: str, start: int) -> int:
    """Have the object at `start` read; return where to look for the next one.

    Only a window is handed to the decoder, which counts lines up to an error, so that a hundred thousand
    broken objects do not cost a hundred thousand times the text.
    """
    window = _WINDOW
    while True:
        part = text[start : start + window]
        try:
            return start + decoder.raw_decode(part)[1]
        except json.JSONDecodeError as error:
            broken_by_window = error.pos > len(part) - _LONGEST_TOKEN or error.msg.startswith("Unterminated")
            if broken_by_window and start + window < len(text):
                window *= 8
                continue
            # Objects around the error are broken too; those closed before it are known. The last string may
            # have begun with a stray quotation mark: look again from its beginning.
            closing = part.rfind('"', 1, error.pos)
            return start + max(1, part.rfind('"', 1, max(1, closing)))
        except RecursionError:  # passed over; what is deeper inside may still be read
            return start + _first_deep_bracket(part)


def _first_deep_bracket(text: str) -> int:
    depth = 0
    for token in _BRACKET.finditer(text):
        if token[0][0] != '"':
            depth += 1 if token[1] else -1
        if depth > _DEEP:
            return token.start()
    return 1


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) < 4000 else float(digits)  # Python refuses integers of over 4,300 digits


def _storable(answers: dict[str, Any]) -> dict[str, Any]:
    """The answers as UTF-8 JSON can hold them.

    A lone surrogate becomes a question mark, NaN and infinities become their names, and a value that nests lists
    or objects, which is no answer to any question, becomes null: a thousand levels of it could not be written.
    """
    flat = {key: value for key, value in answers.items() if not _is_nested(value)}
    text = json.dumps({key: flat.get(key) for key in answers}, ensure_ascii=False)
    stored: dict[str, Any] = json.loads(text.encode("utf-8", "replace"), parse_int=_integer, parse_constant=str)
    return stored


def _is_nested(value: Any) -> bool:
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(isinstance(member, dict | list) for member in members)

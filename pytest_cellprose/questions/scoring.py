"""Scoring: a pure function of questions and reply text (protocol section 6; DESIGN section 10).

Nothing here raises on a reply, however odd, and the time is linear in its length.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from pytest_cellprose.questions.cellset import Area, CellSet, Extents
from pytest_cellprose.questions.schema import Question, Scalar
from pytest_cellprose.questions.spreadsheetbench import day, same_value
from pytest_cellprose.workbook.refs import AddressError

SCORER_VERSION = "2"
"""Changes whenever any reply's score could change."""

RELATIVE_TOLERANCE = 0.005
ABSOLUTE_TOLERANCE = 0.01


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
    if isinstance(question.answer, tuple):
        truth, given, unreadable = _cell_sets(question, answer)
        if question.kind == "address":
            return float(truth == given and not unreadable)
        return _f1(truth, given, unreadable)
    return float(_is_right_value(question, question.answer, answer))


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


def _is_right_value(question: Question, truth: Scalar, answer: Any) -> bool:
    if question.scorer == "spreadsheetbench":
        return same_value(day(truth), day(answer)) if question.type == "date" else same_value(truth, answer)
    if isinstance(truth, bool):
        return answer is truth or (isinstance(answer, str) and folded(answer) == str(truth).casefold())
    if isinstance(truth, int | float):
        number = _number(answer, percent_points=question.unit == "percent")
        return number is not None and _is_close(number, truth)
    if question.type == "date":
        return isinstance(answer, str) and _date(answer) == truth
    if isinstance(answer, int | float) and not isinstance(answer, bool):
        return shortest(answer) == folded(truth)
    return isinstance(answer, str) and folded(answer) == folded(truth)


def folded(text: str) -> str:
    """How texts are compared: trimmed, runs of white space as one space, without regard to case."""
    return " ".join(text.split()).casefold()


def _is_close(answer: float, truth: float) -> bool:
    if answer == truth:
        return True
    try:
        answer, truth = float(answer), float(truth)
    except OverflowError:
        return False
    if not math.isfinite(answer):
        return False
    tolerance = max(RELATIVE_TOLERANCE * abs(truth), ABSOLUTE_TOLERANCE)
    rounding = math.ulp(max(abs(answer), abs(truth)))  # 1.01 - 1 is a little more than 0.01
    return abs(answer - truth) <= tolerance + rounding


_DASHES = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212\ufe63\uff0d", "-"))
_LONGEST_NUMBER = 400
_CURRENCY_CODES = """
AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF
CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL
HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD
MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG
QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD
TWD TZS UAH UGX USD UYU UZS VES VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG
"""
"""ISO 4217. Not any three letters: a unit such as kWh is no currency."""
_CURRENCY = "[$€£¥]|(?i:" + "|".join(_CURRENCY_CODES.split()) + ")"
_NUMBER = re.compile(
    rf"""
    (?P<currency1>{_CURRENCY})?[ ]?
    (?P<sign>[+-])?[ ]?
    (?P<currency2>{_CURRENCY})?[ ]?
    (?P<open>\([ ]?)?
    (?P<currency3>{_CURRENCY})?[ ]?
    (?P<whole>[0-9]+|[1-9][0-9]{{0,2}}(?P<separator>[ ,'’])[0-9]{{3}}(?:(?P=separator)[0-9]{{3}})*)?
    (?P<rest>(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)
    [ ]?(?P<percent1>%)?
    [ ]?(?P<currency4>{_CURRENCY})?
    (?P<close>[ ]?\))?
    [ ]?(?P<percent2>%)?
    [ ]?(?P<currency5>{_CURRENCY})?
    """,
    re.VERBOSE,
)


def _number(answer: Any, percent_points: bool) -> float | None:
    """The number that an answer is or reads as; None if it is none."""
    if isinstance(answer, bool) or not isinstance(answer, int | float | str):
        return None
    if not isinstance(answer, str):
        return answer
    text = " ".join(answer.split()).translate(_DASHES) if len(answer) <= _LONGEST_NUMBER else ""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    found = match.groupdict()
    brackets, percents = bool(found["open"]), bool(found["percent1"]) + bool(found["percent2"])
    if brackets != bool(found["close"]) or (brackets and found["sign"]) or percents > 1:
        return None
    if sum(found[f"currency{n}"] is not None for n in range(1, 6)) > 1:
        return None
    digits = re.sub("[ ,'’]", "", found["whole"] or "") + found["rest"]
    try:
        number = float(digits)
    except ValueError:  # no digit before the exponent, or none at all
        return None
    if percents and not percent_points:
        number /= 100
    return -number if brackets or found["sign"] == "-" else number


_DATE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ]00:00(?::00(?:\.0+)?)?Z?)?")


def _date(answer: str) -> str | None:
    match = _DATE.fullmatch(answer.strip())
    return match[1] if match else None


def shortest(number: float) -> str | None:
    """``2024.0 -> "2024"``, ``1e-7 -> "0.0000001"``; None for what is not finite or no float could be."""
    try:
        if not math.isfinite(number):
            return None
    except OverflowError:
        return None
    return str(number) if isinstance(number, int) else f"{Decimal(repr(number)):f}".removesuffix(".0")


_MOST_MEMBERS = 100_000
"""Addresses read of one answer; each further one counts as a wrong cell. No model can write as many."""


def _cell_sets(question: Question, answer: Any) -> tuple[CellSet, CellSet, int]:
    """Truth, answer, and how many members of the answer name no cell: each counts as one wrong cell."""
    assert isinstance(question.answer, tuple)
    areas = [Area.parse(text, question.sheet) for text in question.answer]
    extents = Extents.guessed(areas) if question.extent is None else Extents(question.extent)
    truth, given, unreadable = CellSet(), CellSet(), 0
    for area in areas:
        if clipped := extents.clip(area):
            truth.add(area.sheet, clipped)
    members = list(_members(answer))
    for text in members[:_MOST_MEMBERS]:
        try:
            area = Area.parse(text, question.sheet)
        except AddressError:
            continue
        if clipped := extents.clip(area):
            given.add(area.sheet, clipped)
            unreadable -= 1
    return truth, given, unreadable + len(members)


_NO_ADDRESS = "?"


def _members(answer: Any) -> Iterator[str]:
    """Each address of an answer; what is no text is a member that cannot be read."""
    if isinstance(answer, str):
        yield from _split(answer)
    elif isinstance(answer, list):
        for member in answer:
            if not isinstance(member, str) or not member.strip():
                yield _NO_ADDRESS
            elif "," in member or ";" in member:
                yield from _split(member)
            else:
                yield member
    else:
        yield _NO_ADDRESS


def _split(text: str) -> Iterator[str]:
    """Cut at commas and semicolons outside quoted worksheet names."""
    quoted = text.split("'")
    if len(quoted) % 2 == 0:  # a stray apostrophe
        parts = re.split("[,;]", text)
    else:
        outside = [re.sub("[,;]", "\0", part) if n % 2 == 0 else part for n, part in enumerate(quoted)]
        parts = "'".join(outside).split("\0")
    return (part for part in parts if part.strip())


def _f1(truth: CellSet, given: CellSet, unreadable: int) -> float:
    expected, answered = len(truth), len(given) + unreadable
    return 2 * truth.shared(given) / (expected + answered) if expected + answered else 1.0

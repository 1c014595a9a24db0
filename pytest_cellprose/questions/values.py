"""Values: when an answer is the same as a truth, and a cell the same as what was recorded of it."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pytest_cellprose.questions.about import Scalar
from pytest_cellprose.questions.spreadsheetbench import day, same_value

if TYPE_CHECKING:
    from pytest_cellprose.questions.schema import Question

RELATIVE_TOLERANCE = 0.005
ABSOLUTE_TOLERANCE = 0.01
SAME = 1e-9
"""Relative: numbers closer than this are one number in two notations."""


def is_right_value(question: Question, answer: Any) -> bool:
    """Whether an answer is the question's value, by protocol section 6."""
    truth = question.answer
    assert not isinstance(truth, tuple)
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


def percent_points(value: float) -> float:
    """``0.07 -> 7.0``, exactly as its digits say."""
    return float(Decimal(repr(value)) * 100)


def is_same_value(question: Question, shown: Scalar) -> bool:
    """Whether a recorded truth is what a cell shows: graded right as an answer, and a number to its last digit.

    A truth may be rounded, 12.35 for 12.3482, but not more coarsely than its own digits say.
    """
    truth = question.answer
    if isinstance(truth, bool) or isinstance(shown, bool) or not isinstance(truth, int | float):
        return isinstance(truth, bool) == isinstance(shown, bool) and is_right_value(question, shown)
    number = _number_shown(shown)
    if number is None or not is_right_value(question, shown):
        return False
    exponent = Decimal(repr(truth)).normalize().as_tuple().exponent
    step = 10.0 ** min(0, exponent) if isinstance(exponent, int) else 0.0
    return math.isclose(number, truth, rel_tol=SAME) or abs(number - truth) <= step / 2 * (1 + SAME)


def _number_shown(shown: Scalar) -> float | None:
    """Of a number, or of a text cell that holds one."""
    if not isinstance(shown, str):
        return float(shown)
    try:
        return float(shown.replace(",", ""))
    except ValueError:
        return None

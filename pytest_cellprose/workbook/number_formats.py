"""Which number formats show a date or a time, and what a serial number under one of them reads as.

Serials, the fictitious 29 February 1900 and the 1904 system follow ECMA-376 part 1, 18.17.4.1; format codes
follow 18.8.31.
"""

from __future__ import annotations

import re
from datetime import date, timedelta
from functools import lru_cache
from typing import Literal, TypeAlias

DateKind: TypeAlias = Literal["date", "datetime", "time", "elapsed"]

DATE_FORMAT = "yyyy-mm-dd"
DATETIME_FORMAT = "yyyy-mm-dd hh:mm:ss"
TIME_FORMAT = "hh:mm:ss"
ELAPSED_FORMAT = "[h]:mm:ss"

_LITERAL = re.compile(r'"[^"]*"?|\\.|_.|\*.')
_GENERAL = re.compile(r"general|standard", re.IGNORECASE)
_ELAPSED = re.compile(r"\[(h+|m+|s+)\]", re.IGNORECASE)
_BRACKETS = re.compile(r"\[[^\]]*\]")
_AM_PM = re.compile(r"am/pm|a/p", re.IGNORECASE)
_ERA = re.compile(r"(?=.*(?:[egb]|aaa))[^0#?a-z]*(?:[aegbymdhs][^0#?a-z]*)+", re.DOTALL)
"""``e`` is the year (of an era where ``g`` names it), ``b`` the Buddhist year, ``aaa`` the weekday. Beside a digit's
placeholder an ``e`` is an exponent's, and among other letters all of them are a word that somebody did not quote."""

_DAY_SECONDS = 86_400
_LAST_SERIAL = {False: 2_958_466, True: 2_957_004}
"""The first serial after 9999-12-31, by date system: Excel shows ``####`` from there on."""
_DAY_ZERO = {False: date(1899, 12, 30), True: date(1904, 1, 1)}

_ISO = re.compile(
    r"(?:(?P<date>[0-9]{4}-[0-9][0-9]-[0-9][0-9])"
    r"(?:[ T](?P<hour>[0-9][0-9]):(?P<minute>[0-9][0-9])(?::(?P<second>[0-9][0-9](?:\.[0-9]{1,3})?))?)?"
    r"|(?P<sign>-)?(?P<hours>[0-9]+):(?P<minutes>[0-5][0-9])(?::(?P<seconds>[0-5][0-9](?:\.[0-9]{1,3})?))?)"
)


@lru_cache(maxsize=4096)
def date_kind(number_format: str) -> DateKind | None:
    """How a positive number under this format code is shown; None for anything but a date or time.

    Only the first section counts: it is the one that a serial number is shown with.
    """
    if number_format == "General":
        return None
    code = _GENERAL.sub("", _LITERAL.sub("", number_format).split(";", 1)[0])
    if _ELAPSED.search(code):
        return "elapsed"
    code = _AM_PM.sub("h", _BRACKETS.sub("", code)).casefold()
    clock = "h" in code or "s" in code
    # An "m" beside hours or seconds is minutes, but three or more are a month's name wherever they stand.
    calendar = "y" in code or "d" in code or "mmm" in code or ("m" in code and not clock) or bool(_ERA.fullmatch(code))
    if calendar:
        return "datetime" if clock else "date"
    return "time" if clock else None


def serial_text(serial: float, number_format: str, date1904: bool = False, *, exact: bool = False) -> str | None:
    """The date or time that a serial number reads as, in ISO form; None if `number_format` shows neither.

    A date is ``2024-01-31``, a date with time ``2024-01-31 13:45``, a time ``13:45``, an elapsed time
    ``36:00``; seconds are written when there are any. A time format on a serial of a day or more is written
    with its date, so that the day is not lost. Also None for serials that have no date (negative, or after
    9999-12-31).

    With `exact` the value decides, not the format: milliseconds are kept, a date with a time of day is
    written with it, and midnight is left out.
    """
    kind = date_kind(number_format)
    if kind is None:
        return None
    if kind == "elapsed":
        sign = "-" if serial < 0 else ""
        return sign + _clock(abs(serial) * _DAY_SECONDS, hour_width=1, exact=exact)
    if not 0 <= serial < _LAST_SERIAL[date1904]:
        return None
    days = int(serial)
    seconds = round((serial - days) * _DAY_SECONDS, 3 if exact else 0)
    if seconds >= _DAY_SECONDS:
        days, seconds = days + 1, 0.0
        if days >= _LAST_SERIAL[date1904]:
            return None
    if kind == "date" and not exact:
        return _day(int(serial), date1904)
    if kind == "time" and days == 0:
        return _clock(seconds, hour_width=2, exact=exact)
    if exact and not seconds:
        return _day(days, date1904)
    return f"{_day(days, date1904)} {_clock(seconds, hour_width=2, exact=exact)}"


def _day(days: int, date1904: bool) -> str:
    if not date1904:
        if days == 0:
            return "1900-01-00"  # what Excel shows: the 1900 system counts from the day before 1 January
        if days == 60:
            return "1900-02-29"  # a day that Lotus 1-2-3 invented and Excel kept
        if days < 60:
            days += 1
    return (_DAY_ZERO[date1904] + timedelta(days=days)).isoformat()


def _clock(seconds: float, *, hour_width: int, exact: bool) -> str:
    milliseconds = round(seconds * 1000) if exact else round(seconds) * 1000
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    text = f"{hours:0{hour_width}d}:{minutes:02d}"
    if rest:
        text += f":{rest // 1000:02d}"
        if rest % 1000:
            text += f".{rest % 1000:03d}"
    return text


def serial_from_text(text: str) -> tuple[float, str] | None:
    """A serial in the 1900 system and a number format for a text that `serial_text` writes; else None.

    ``"2024-01-31" -> (45322, "yyyy-mm-dd")``, ``"36:00" -> (1.5, "[h]:mm:ss")``.
    """
    match = _ISO.fullmatch(text)
    if match is None:
        return None
    if match["date"] is None:
        seconds = int(match["hours"]) * 3600 + int(match["minutes"]) * 60 + float(match["seconds"] or 0)
        of_day = len(match["hours"]) == 2 and seconds < _DAY_SECONDS and not match["sign"]
        serial = seconds / _DAY_SECONDS
        return (-serial if match["sign"] else serial), (TIME_FORMAT if of_day else ELAPSED_FORMAT)
    days = _serial_of_day(match["date"])
    if days is None:
        return None
    if match["hour"] is None:
        return days, DATE_FORMAT
    hour, minute = int(match["hour"]), int(match["minute"])
    if hour > 23 or minute > 59 or float(match["second"] or 0) >= 60:
        return None
    seconds = hour * 3600 + minute * 60 + float(match["second"] or 0)
    return days + seconds / _DAY_SECONDS, DATETIME_FORMAT


def day_serial(day: date, date1904: bool = False) -> int | None:
    """The serial of a day; None in the 1900 system for a day before its first.

    Serial 0 of that system is no day: files write 1899-12-31 for it, which is one day before serial 1, or
    1899-12-30, from which the days of other programs count.
    """
    days = (day - _DAY_ZERO[date1904]).days
    if date1904:
        return days
    if days < 2:
        return 0 if days >= 0 else None
    return days - 1 if days <= 60 else days


def _serial_of_day(text: str) -> int | None:
    if text == "1900-01-00":
        return 0
    if text == "1900-02-29":
        return 60
    try:
        return day_serial(date.fromisoformat(text)) or None  # before serial 1 the text is another
    except ValueError:
        return None

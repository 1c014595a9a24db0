"""ISO 8601 dates, times and durations as serial numbers: what strict files store in their ``t="d"`` cells.

ECMA-376 part 1, §18.17.4 and §18.18.11. Excel writes ``2024-01-31T13:45:00`` and ``PT48H11M0.000S``; other
programs use what else the standard allows, so every form of a whole day, a time and a length is read.
"""

from __future__ import annotations

import re
from datetime import date, time, timedelta
from math import isfinite

from pytest_cellprose.workbook.number_formats import (
    DATE_FORMAT,
    DATETIME_FORMAT,
    ELAPSED_FORMAT,
    TIME_FORMAT,
    day_serial,
)

_DAY_SECONDS = 86_400

_DAY = re.compile(
    r"([0-9]{4}(?:-[0-9]{2}-[0-9]{2}|[0-9]{4}|-W[0-9]{2}-[1-7]|W[0-9]{2}[1-7])|(?P<year>[0-9]{4})-(?P<ordinal>[0-9]{3}))"
    r"(?:Z|[+-][0-9]{2}:[0-9]{2})?"
)
_CLOCK = re.compile(
    r"(?P<midnight>24(?=:?00(?::?00(?:[.,]0+)?)?(?![0-9.,:])))?([0-9:.,]*)(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)?"
)
_NUMBER = r"([0-9]+(?:[.,][0-9]+)?)"
_DURATION = re.compile(
    rf"(?P<sign>[+-]?)P(?=[0-9T])(?:{_NUMBER}Y)?(?:{_NUMBER}M)?(?:{_NUMBER}W)?(?:{_NUMBER}D)?"
    rf"(?:T(?=[0-9])(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?"
)
_LENGTHS = (7 * _DAY_SECONDS, _DAY_SECONDS, 3600, 60, 1)
"""Seconds of a week, day, hour, minute, second."""


def iso_serial(text: str, date1904: bool) -> tuple[int | float, str] | None:
    """The serial number, and the number format that shows it, of a date, a time, both or a duration.

    ``2024-01-31 -> (45322, "yyyy-mm-dd")``, ``PT36H -> (1.5, "[h]:mm:ss")``. Time zones are dropped: a serial has
    none. None for other text: also for a day before the first of the date system, which Excel keeps as text, and for
    a duration in months or years, which have no length.
    """
    text = text.upper()
    if text.lstrip("+-").startswith("P"):
        length = _duration(text)
        return None if length is None else (_whole(length), ELAPSED_FORMAT)
    day_text, mark, clock_text = text.replace(" ", "T", 1).partition("T")
    if not mark and text[2:3] == ":":
        day_text, clock_text = "", text
    days = _day(day_text, date1904) if day_text else 0
    seconds = _clock(clock_text) if clock_text else 0.0
    if days is None or seconds is None or not (day_text or clock_text):
        return None
    if not day_text:
        return _whole(seconds / _DAY_SECONDS), TIME_FORMAT
    return _whole(days + seconds / _DAY_SECONDS), DATETIME_FORMAT if seconds % _DAY_SECONDS else DATE_FORMAT


def _whole(serial: float) -> int | float:
    return int(serial) if serial == int(serial) else serial


def _day(text: str, date1904: bool) -> int | None:
    match = _DAY.fullmatch(text)
    if match is None:
        return None
    if match[1] == "1900-02-29" and not date1904:
        return 60  # a day that Lotus 1-2-3 invented and Excel kept
    try:
        if match["ordinal"]:
            day = date(int(match["year"]), 1, 1) + timedelta(days=int(match["ordinal"]) - 1)
            if day.year != int(match["year"]):
                return None
        else:
            day = date.fromisoformat(match[1])
    except (ValueError, OverflowError):
        return None
    return day_serial(day, date1904)


def _clock(text: str) -> float | None:
    """Seconds since midnight; ``24:00`` is the end of the day."""
    match = _CLOCK.fullmatch(text)
    if match is None:
        return None
    if match["midnight"]:
        return float(_DAY_SECONDS)
    try:
        at = time.fromisoformat(match[2])
    except ValueError:
        return None
    return at.hour * 3600 + at.minute * 60 + at.second + at.microsecond / 1e6


def _duration(text: str) -> float | None:
    """In days."""
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    _, years, months, *rest = (
        float((part or "0").replace(",", ".")) if n else 0.0 for n, part in enumerate(match.groups())
    )
    if years or months:
        return None
    seconds = sum(number * length for number, length in zip(rest, _LENGTHS, strict=True))
    days = seconds / _DAY_SECONDS
    if not isfinite(days):
        return None
    return -days if match["sign"] == "-" else days

"""Date formats and serials against openpyxl, and the cases that openpyxl does not know."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl.styles.numbers import BUILTIN_FORMATS, is_date_format
from openpyxl.utils.datetime import CALENDAR_MAC_1904, CALENDAR_WINDOWS_1900, from_excel

from pytest_cellprose.workbook.number_formats import date_kind, serial_from_text, serial_text


@pytest.mark.parametrize("code", BUILTIN_FORMATS.values())
def test_built_in_formats_are_what_openpyxl_takes_them_for(code: str) -> None:
    assert (date_kind(code) is not None) == is_date_format(code)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("yyyy-mm-dd", "date"),
        ("mmm-yy", "date"),
        ("m", "date"),
        ("mmmm", "date"),
        ("[$-409]d/m/yyyy;@", "date"),
        ("[$-F800]dddd\\,\\ mmmm\\ dd\\,\\ yyyy", "date"),
        ('d "of" mmm', "date"),
        ("d/m/yy h:mm", "datetime"),
        ("mmm h", "datetime"),
        ("h:mm AM/PM", "time"),
        ("mm:ss.0", "time"),
        ("[h]:mm", "elapsed"),
        ("[mm]:ss", "elapsed"),
        ("General", None),
        ("GENERAL", None),
        ("Standard", None),
        ("0.00E+00", None),
        ('0 "days"', None),
        ("0\\d", None),
        ("_d0", None),
        ("*d0", None),
        ("[Red]0.0;[Blue]-0.0", None),
        ("[$SEK] #,##0", None),
        ("e", "date"),
        ("ggge", "date"),
        ("[$-411]ge.m.d;@", "date"),
        ('[$-411]ggge"年"m"月"d"日" h:mm', "datetime"),
        ("bbbb", "date"),
        ("[$-411]aaaa", "date"),
        ("[Red]General", None),
        ('General" kg"', None),
        ("[Blue]Standard", None),
        ("##0.0E+0", None),
        ("e+0", None),
        ("0.0 kg", None),
        ("#,##0 EUR", None),
        ("BOOLEAN", None),
        ("begin", None),
        ("0%;d", None),
        ("", None),
    ],
)
def test_kind(code: str, kind: str | None) -> None:
    assert date_kind(code) == kind


@given(st.integers(61, 2_958_465), st.integers(0, 86_399), st.booleans())
def test_serials_are_the_dates_that_openpyxl_reads(days: int, second: int, date1904: bool) -> None:
    days -= 1462 if date1904 and days > 1523 else 0
    serial = days + second / 86_400
    expected = from_excel(serial, CALENDAR_MAC_1904 if date1904 else CALENDAR_WINDOWS_1900)
    assert isinstance(expected, datetime.datetime)
    shown = serial_text(serial, "d/m/yy h:mm", date1904)
    assert shown is not None
    assert datetime.datetime.fromisoformat(shown) == expected.replace(microsecond=0)
    exact = serial_text(serial, "d/m/yy", date1904, exact=True)
    assert exact is not None
    assert datetime.datetime.fromisoformat(exact) == expected.replace(microsecond=0)


@pytest.mark.parametrize(
    ("serial", "code", "text"),
    [
        (0, "d/m/yy", "1900-01-00"),
        (1, "d/m/yy", "1900-01-01"),
        (59, "d/m/yy", "1900-02-28"),
        (60, "d/m/yy", "1900-02-29"),
        (61, "d/m/yy", "1900-03-01"),
        (45322.99, "d/m/yy", "2024-01-31"),
        (2_958_465, "d/m/yy", "9999-12-31"),
        (2_958_465.9999999, "d/m/yy h:mm", None),
        (2_958_466, "d/m/yy", None),
        (-1, "d/m/yy", None),
        (0.5, "h:mm", "12:00"),
        (1.5, "h:mm", "1900-01-01 12:00"),
        (0.99999999, "h:mm", "1900-01-01 00:00"),
        (-0.25, "[h]:mm", "-6:00"),
        (100, "[h]:mm", "2400:00"),
        (0.5 + 1 / 86_400, "[h]:mm", "12:00:01"),
        (12, "0.0", None),
    ],
)
def test_text_of_a_serial(serial: float, code: str, text: str | None) -> None:
    assert serial_text(serial, code) == text


@given(st.floats(0, 2_958_465), st.sampled_from(["d/m/yy", "d/m/yy h:mm", "h:mm", "[h]:mm"]))
def test_exact_texts_read_back_to_the_millisecond(serial: float, code: str) -> None:
    text = serial_text(serial, code, exact=True)
    if text is None:
        return
    found = serial_from_text(text)
    assert found is not None
    assert abs(found[0] - serial) < 1 / 86_400_000
    assert date_kind(found[1]) is not None


@pytest.mark.parametrize(
    "text",
    ["", "2024-13-01", "2024-02-30", "24-01-01", "2024-01-01 25:00", "12:60", "1:2", "1899-12-31", "12", "２024-01-01"],
)
def test_what_is_no_date(text: str) -> None:
    assert serial_from_text(text) is None

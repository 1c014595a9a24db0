"""ISO 8601 dates, times and durations of ``t="d"`` cells: every form, against openpyxl and the standard library."""

from __future__ import annotations

import datetime
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl.utils.datetime import from_ISO8601, to_excel

from pytest_cellprose.workbook.iso_dates import iso_serial
from pytest_cellprose.workbook.model import Workbook
from pytest_cellprose.workbook.number_formats import serial_text
from tests.workbook import raw_xlsx as raw


@pytest.mark.parametrize(
    ("text", "serial", "shown"),
    [
        ("2024-01-31", 45322, "2024-01-31"),
        ("20240131", 45322, "2024-01-31"),
        ("2024-W05-3", 45322, "2024-01-31"),
        ("2024W053", 45322, "2024-01-31"),
        ("2024-031", 45322, "2024-01-31"),
        ("2024-01-31Z", 45322, "2024-01-31"),
        ("2024-01-31+02:00", 45322, "2024-01-31"),
        ("2024-01-31T18:00:00", 45322.75, "2024-01-31 18:00"),
        ("2024-01-31T18:00:00.000Z", 45322.75, "2024-01-31 18:00"),
        ("2024-01-31T18:00:00-05:00", 45322.75, "2024-01-31 18:00"),
        ("2024-01-31T18:00", 45322.75, "2024-01-31 18:00"),
        ("20240131T180000", 45322.75, "2024-01-31 18:00"),
        ("2024-01-31 18:00", 45322.75, "2024-01-31 18:00"),
        ("2024-01-31t18:00:00,5", 45322 + 64800.5 / 86400, "2024-01-31 18:00:00.500"),
        ("2024-01-31T00:00:00", 45322, "2024-01-31"),
        ("2024-01-30T24:00:00", 45322, "2024-01-31"),
        ("06:00", 0.25, "06:00"),
        ("T06:00:00", 0.25, "06:00"),
        ("06:00:00.000Z", 0.25, "06:00"),
        ("1899-12-31T06:00:00", 0.25, "06:00"),
        ("1899-12-30T06:00:00", 0.25, "06:00"),
        ("1899-12-30", 0, "1900-01-00"),
        ("1899-12-31", 0, "1900-01-00"),
        ("1900-01-01", 1, "1900-01-01"),
        ("1900-02-28", 59, "1900-02-28"),
        ("1900-02-29", 60, "1900-02-29"),
        ("1900-03-01", 61, "1900-03-01"),
        ("9999-12-31", 2_958_465, "9999-12-31"),
        ("PT48H0M0.000S", 2, "48:00"),
        ("PT0H11M0.000S", 11 / 1440, "0:11"),
        ("PT36H", 1.5, "36:00"),
        ("P1DT12H", 1.5, "36:00"),
        ("P1D", 1, "24:00"),
        ("P2W", 14, "336:00"),
        ("PT90M", 0.0625, "1:30"),
        ("PT1.5H", 0.0625, "1:30"),
        ("PT1,5H", 0.0625, "1:30"),
        ("P0Y0M0DT1H", 1 / 24, "1:00"),
        ("-PT6H", -0.25, "-6:00"),
        ("+PT6H", 0.25, "6:00"),
        ("PT0S", 0, "0:00"),
    ],
)
def test_every_form(text: str, serial: float, shown: str) -> None:
    found = iso_serial(text, False)
    assert found is not None
    assert found[0] == pytest.approx(serial, abs=1e-9)
    if found[1].startswith("hh") or ("1899" in text and "T" in text):
        assert serial_text(found[0], "hh:mm:ss") == shown
    else:
        assert serial_text(*found, exact="." in shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "", "T", "P", "PT", "P1", "someday", "Peter", "12", "45322", "2024", "2024-01", "2024-13-01", "2024-02-30",
        "2023-366", "2024-W54-1", "2024-01-31T", "2024-01-31T25:00", "2024-01-31T24:30", "24:00:01", "10:61",
        "P1Y", "P2M", "P1H", "PT1D", "1850-05-01", "PT" + "9" * 400 + "H", "١٢:٣٠",
    ],
)  # fmt: skip
def test_what_is_none_or_has_no_serial(text: str) -> None:
    """A year or month has no length, and Excel keeps a day before 1900 as text."""
    if text == "2024-01-31T":
        assert iso_serial(text, False) == (45322, "yyyy-mm-dd")
    else:
        assert iso_serial(text, False) is None


@given(
    st.datetimes(datetime.datetime(1900, 3, 1), datetime.datetime(9999, 12, 31)),
    st.sampled_from(["auto", "seconds", "milliseconds"]),
)
def test_dates_are_what_the_standard_library_writes(moment: datetime.datetime, precision: str) -> None:
    text = moment.isoformat(timespec=precision)
    found = iso_serial(text, False)
    assert found is not None
    assert found[0] == pytest.approx(to_excel(datetime.datetime.fromisoformat(text)), abs=1e-8)


@given(st.integers(0, 10_000), st.integers(0, 59), st.integers(0, 59_999))
def test_durations_as_excel_writes_them(hours: int, minutes: int, milliseconds: int) -> None:
    found = iso_serial(f"PT{hours}H{minutes}M{milliseconds / 1000:.3f}S", False)
    assert found is not None
    exact = Fraction(hours, 24) + Fraction(minutes, 1440) + Fraction(milliseconds, 86_400_000)
    assert found[0] == pytest.approx(float(exact), abs=1e-9)
    assert from_ISO8601(f"PT{hours}H{minutes}M") == datetime.timedelta(hours=hours, minutes=minutes)


@given(st.text(alphabet="0123456789-:.,TPWDHMSYZ+ ", max_size=24))
def test_no_text_is_an_error(text: str) -> None:
    for date1904 in (False, True):
        iso_serial(text, date1904)


def test_the_1904_system_counts_from_its_own_first_day() -> None:
    assert iso_serial("1904-01-01", True) == (0, "yyyy-mm-dd")
    assert iso_serial("1904-01-02T12:00:00", True) == (1.5, "yyyy-mm-dd hh:mm:ss")
    assert iso_serial("PT12H", True) == (0.5, "[h]:mm:ss")


def test_cells_get_the_serial_and_a_format_that_shows_it_unless_their_own_does() -> None:
    rows = (
        '<row r="1"><c r="A1" t="d"><v>PT36H</v></c><c r="B1" t="d" s="1"><v>PT36H</v></c>'
        '<c r="C1" t="d"><f>A1</f><v>06:00:00</v></c><c r="D1" t="d"><v>45322.5</v></c>'
        '<c r="E1" t="d"><v>1850-05-01</v></c><c r="F1" t="d"><v>P1Y</v></c></row>'
    )
    data = raw.workbook(raw.worksheet(rows), styles='<cellXfs><xf numFmtId="0"/><xf numFmtId="20"/></cellXfs>')
    (sheet,) = Workbook.read(data).worksheets
    assert [(cell.value, cell.number_format) for *_, cell in sheet.cells()] == [
        (1.5, "[h]:mm:ss"),
        (1.5, "h:mm"),
        (0.25, "hh:mm:ss"),
        (45322.5, "General"),
        ("1850-05-01", "General"),
        ("P1Y", "General"),
    ]

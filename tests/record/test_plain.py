"""Whatever is handed over comes out as JSON, and as what it was if it was JSON already."""

from __future__ import annotations

import datetime
import enum
import json
import math
from collections import OrderedDict
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any

import execnet
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_cellprose.record.plain import plain, plain_text, sendable_integer
from pytest_cellprose.record.record import CellId, Usage

any_text = st.text(st.characters(codec=None, exclude_categories=[]))
finite = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
keys = any_text | st.dates() | st.integers() | finite.map(numpy.float64)
strange = (
    keys
    | st.binary()
    | st.floats()
    | st.decimals()
    | st.fractions()
    | st.datetimes()
    | st.integers(-(2**63), 2**63 - 1).map(numpy.int64)
    | st.floats(width=32).map(numpy.float32)
    | any_text.map(PurePosixPath)
)
holding = st.lists(strange, max_size=3) | st.tuples(strange, strange) | st.frozensets(keys, max_size=3)
strange_values = strange | holding | st.dictionaries(keys, strange | holding, max_size=3)


@settings(deadline=None, max_examples=60)
@given(json_values)
def test_json_stays_as_it_is(value: Any) -> None:
    assert plain(value) == value
    assert json.dumps(plain(value)) == json.dumps(value)


@settings(deadline=None, max_examples=60)
@given(strange_values)
def test_everything_becomes_strict_json_in_utf_8_and_crosses_between_processes(value: Any) -> None:
    made = plain(value)
    json.dumps(made, ensure_ascii=False, allow_nan=False).encode("utf-8")
    assert plain(made) == made
    sent = plain(value, integer=sendable_integer)
    assert execnet.loads(execnet.dumps(sent)) == sent


@settings(deadline=None, max_examples=60)
@given(any_text)
def test_text_keeps_everything_but_lone_surrogates(text: str) -> None:
    escaped = "".join(f"\\u{ord(c):04x}" if 0xD800 <= ord(c) < 0xE000 else c for c in text)
    assert plain_text(text) == escaped


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Point:
    x: Any
    y: Any


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (numpy.int64(7), 7),
        (numpy.float64(0.5), 0.5),
        (numpy.bool_(True), True),
        (numpy.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (numpy.longdouble("1.5"), "1.5"),
        (numpy.str_("a"), "a"),
        (Decimal("1.50"), "1.50"),
        (Fraction(1, 3), "1/3"),
        (datetime.date(2026, 11, 30), "2026-11-30"),
        (PurePosixPath("a/b"), "a/b"),
        (math.inf, "inf"),
        (b"\xffa", "\\xffa"),
        ({"b", "a"}, ["a", "b"]),
        ((1, Decimal(2)), (1, "2")),
        ({1: Decimal(2), None: 3}, {"1": "2", "None": 3}),
        (OrderedDict(a="\ud83d"), {"a": "\\ud83d"}),
        (Colour.RED, "red"),
        (Point(1, {2}), {"x": 1, "y": [2]}),
        (CellId(model="m", encoding="csv", workbook="w", repeat=2), "m-csv-w-rep2"),
        (Usage(input=1), {"input": 1, "cached": None, "output": None, "reasoning": None, "raw": None, "problem": None}),
    ],
)
def test_what_becomes_of_it(value: Any, expected: Any) -> None:
    made = plain(value)
    assert made == expected
    assert type(made) is type(expected)


def test_a_number_is_of_pythons_own_type() -> None:
    assert [type(plain(value)) for value in (numpy.float64(1), numpy.int8(1), numpy.bool_(1))] == [float, int, bool]


def test_what_holds_itself_and_what_cannot_be_shown_become_a_name() -> None:
    class Shy:
        def __str__(self) -> str:
            raise ValueError

    around: list[Any] = [1]
    around.append(around)
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    assert plain(around) == [1, "<list>"]
    assert plain([Shy()]) == ["<Shy>"]
    json.dumps(plain(deep))


def test_raw_usage_is_plain_from_the_start() -> None:
    usage = Usage(input=numpy.int64(5), raw={"at": datetime.date(2026, 1, 2), "n": numpy.int32(3), "s": "\ud83d"})
    assert usage.raw == {"at": "2026-01-02", "n": 3, "s": "\\ud83d"}
    assert type(usage.input) is int
    json.loads(usage.model_dump_json())

"""Scoring by the rules of the protocol's section 6; the examples are those of its reference page."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_cellprose.questions.schema import Question
from pytest_cellprose.questions.scoring import find_answer, score, score_reply

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def value_question(truth: Any, **more: Any) -> Question:
    return Question(id="q1", kind="value", text="?", sheet="Model", about="A1", answer=truth, **more)


def cells_question(kind: str, truth: list[str], extent: dict[str, str | None] | None = None) -> Question:
    about: Any = {"value": 1} if kind == "address" else "A1"
    reach = "all" if kind in ("trace", "impact") else None
    return Question(id="q1", kind=kind, text="?", sheet="Model", about=about, answer=truth, reach=reach, extent=extent)


# The reply


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ('{"q1": 1} … {"note": 2}', {"q1": 1}),
        ('{"a": {"q1": 1}}', {"q1": 1}),
        ('…{"q1": "}"}', {"q1": "}"}),
        ('{"q1": 1} and then {"q1": 2}', {"q1": 2}),
        ('{"q1": {"q2": 5}}', {"q1": {"q2": 5}}),
        ('{"Q1": 1, "q2": null}', {"Q1": 1, "q2": None}),
        ('{"q1": 1, "q1": 2}', {"q1": 2}),
        ('{"q1": "two\nlines"}', {"q1": "two\nlines"}),
        ('[{"q1": 1}, {"q2": 2}]', {"q2": 2}),
        ('{"q1": 1', None),
        ('{"q1": 1, "total": 2}', None),
        ("{}", None),
        ('{"": 1}', None),
        ("", None),
        ('{see {"q1": 1}', {"q1": 1}),
        ('{"he said {"q1": 1}', {"q1": 1}),
        ('{"a": 1, "b {", {"q1": 1}', {"q1": 1}),
        ('{"open": [1, {"q1": 1}, oops', {"q1": 1}),
        ('{"q1": "\\"}", "q2": "\\\\"}', {"q1": '"}', "q2": "\\"}),
        ("{" * 5000 + '{"q1": 1}', {"q1": 1}),
        ('{"a":' * 5000 + '{"q1": 1}', {"q1": 1}),
        ('{"long": "' + "x" * 9000 + '", "in": {"q1": 1}}', {"q1": 1}),
        ('{"q1": "' + "x" * 9000 + '"}', {"q1": "x" * 9000}),
        ('{"cut": "' + "x" * 9000 + ' {"q1": 1}', {"q1": 1}),
    ],
)
def test_the_last_object_of_question_ids_is_the_answer(reply: str, answer: dict[str, Any] | None) -> None:
    assert find_answer(reply) == answer


@given(st.text(), st.dictionaries(st.from_regex(r"[qQ]\w{1,3}", fullmatch=True), json_values, min_size=1))
def test_an_answer_is_found_after_any_text_that_opens_no_string(before: str, answer: dict[str, Any]) -> None:
    text = before.replace('"', "'") + "\n```json\n" + json.dumps(answer) + "\n```\n"
    assert repr(find_answer(text)) == repr(answer)


@given(st.text('{}[]":,qa1\\ \n', max_size=60))
def test_odd_punctuation_never_raises(text: str) -> None:
    find_answer(text)
    assert find_answer(text.replace('"', "") + '{"q9": 1}') == {"q9": 1}


@pytest.mark.parametrize(
    "text",
    [
        "x" * 10_000_000,
        "{" * 100_000,
        '{"' * 100_000,
        '{"q":' * 100_000,
        '{"q":[' * 100_000,
        '{"q1":' * 50_000 + "1" + "}" * 50_000,
        '{"a":"' + "{" * 10_000_000,
        ('{"q1": ["' + "a" * 90) * 100_000,
        '{"q1": [' + '"A1", ' * 1_000_000 + '"A1"]}',
        '{"q1": ' + "9" * 1_000_000 + "}",
        '"' * 10_000_000,
    ],
    ids=lambda text: f"{text[:12]}…",
)
def test_a_hostile_reply_costs_seconds_at_most(text: str) -> None:
    question = cells_question("trace", ["A1"], {"Model": "A1:Z500"})
    started = time.process_time()
    score_reply([question], text)
    assert time.process_time() - started < 3  # about 0.3 s on an idle machine


def test_an_ordinary_reply_costs_less_than_a_millisecond() -> None:
    trace = cells_question("trace", ["Inputs!B2:B4"], {"Model": "A1:Z500", "Inputs": "A1:C9"})
    questions = [trace.model_copy(update={"id": f"q{n}"}) for n in range(8)]
    reply = "Let me look.\n" + json.dumps({f"q{n}": ["Inputs!B2:B4", "Model!C7"] for n in range(8)})
    started = time.process_time()
    for _ in range(100):
        score_reply(questions, reply)
    assert (time.process_time() - started) / 100 < 0.002  # 0.2 ms on an idle machine


# Values


@pytest.mark.parametrize(
    ("truth", "answer", "right"),
    [
        (1234.5, "1,234.50", 1),
        (1234.5, "1234,5", 0),
        (100, 100.5, 1),
        (100, 99.5, 1),
        (100, 100.51, 0),
        (0.1, 0.11, 1),
        (0.1, 0.09, 1),
        (1, 1.01, 1),
        (2, 2.0101, 0),
        (-5, "(5)", 1),
        (-5, "−5", 1),
        (0.12, "12%", 1),
        (0.12, "12 %", 1),
        (-0.12, "(12%)", 1),
        (12, "12%", 0),
        (1000000, "1e6", 1),
        (1000000, "1,000,000", 1),
        (1000000, "1 000 000", 1),
        (1000000, "1\u00a0000\u202f000", 1),
        (1000000, "1'000'000", 1),
        (1000000, "1’000’000.", 1),
        (1000000, "1,00,000", 0),
        (1000000, "1,000 000", 0),
        (1234567, "1234,567", 0),
        (123, "0,123", 0),
        (5, True, 0),
        (1, True, 0),
        (5, "5 units", 0),
        (5, "5 or 6", 0),
        (5, "", 0),
        (5, ".", 0),
        (5, [5], 0),
        (5, "NaN", 0),
        (5, float("nan"), 0),
        (5, float("inf"), 0),
        (5, 10**400, 0),
        (5, "+5", 1),
        (0.5, ".5", 1),
        (5, "USD 5", 1),
        (5, "5 EUR", 1),
        (5, "£5", 1),
        (5, "5 chf", 1),
        (5, "5 kWh", 0),
        (5, "5 PCS", 0),
        (5e-7, "5e-7", 1),
        (-5, "-$5", 1),
        (-5, "$-5", 1),
        (-5, "($5)", 1),
        (5, "$5 USD", 0),
        (5, "$$5", 0),
        (5, "٥", 0),
        ("North", " north ", 1),
        ("New  York", "new\nyork", 1),
        ("007", 7, 0),
        ("2024", 2024, 1),
        ("2024", 2024.0, 1),
        ("0.0000001", 1e-7, 1),
        ("North", None, 0),
        ("#DIV/0!", "#div/0!", 1),
        (True, True, 1),
        (True, "TRUE", 1),
        (True, False, 0),
        (True, 1, 0),
        (False, " false", 1),
        (False, 0, 0),
    ],
)
def test_values(truth: Any, answer: Any, right: int) -> None:
    assert score(value_question(truth), answer) == right


def test_numbers_as_long_as_a_page_are_no_numbers() -> None:
    for text in ("1," * 10_000, "(" * 10_000, " " * 10_000 + "5", "$ " * 190, "1 " * 190, "-" * 390):
        started = time.process_time()
        assert score(value_question(7), text) == 0
        assert time.process_time() - started < 0.1


@pytest.mark.parametrize(("answer", "right"), [("12%", 1), (12, 1), ("0.12", 0), ("1200%", 0)])
def test_a_truth_in_percent_points(answer: Any, right: int) -> None:
    assert score(value_question(12, unit="percent"), answer) == right


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("2024-01-05", 1),
        (" 2024-01-05 00:00:00", 1),
        ("2024-01-05T00:00", 1),
        ("2024-01-05T00:00:00.000Z", 1),
        ("2024-01-05 12:00:00", 0),
        ("05.01.2024", 0),
        ("January 5, 2024", 0),
        ("2024-1-5", 0),
        ("2024-01-06", 0),
        (45296, 0),
    ],
)
def test_dates(answer: Any, right: int) -> None:
    assert score(value_question("2024-01-05", type="date"), answer) == right


@given(st.floats(-1e15, 1e15).filter(lambda x: abs(x) > 1), st.sampled_from(["{:,.4f}", "{:.17e}", "{!r}"]))
def test_numbers_as_python_writes_them_are_read(number: float, form: str) -> None:
    question = value_question(number)
    text = form.format(number)
    assert score(question, text) == 1
    assert score(question, f"${text}") == 1
    assert score(question, text.replace("-", "−")) == 1
    assert score(question, f"({text})") == 0
    assert score(value_question(-abs(number)), f"({form.format(abs(number))})") == 1


@given(st.floats(-1e12, 1e12), st.floats(-1e12, 1e12))
def test_the_tolerance_is_that_of_exact_arithmetic(truth: float, answer: float) -> None:
    from fractions import Fraction

    apart = abs(Fraction(answer) - Fraction(truth))
    tolerance = max(abs(Fraction(truth)) * Fraction(5, 1000), Fraction(1, 100))
    if abs(apart - tolerance) > Fraction(math.ulp(max(abs(answer), abs(truth), 1.0))) * 4:
        assert score(value_question(truth), answer) == (apart <= tolerance)


# Cells


@pytest.mark.parametrize(
    ("truth", "answer", "right"),
    [
        (["Model!D41"], "$D$41", 1),
        (["Model!D41"], "'model'!d41", 1),
        (["Model!D41"], ["D41", "MODEL!$d$41"], 1),
        (["Model!D41"], "Inputs!D41", 0),
        (["Model!D41"], ["D41", "D42"], 0),
        (["Model!D41"], ["D41", "?"], 0),
        (["Model!D41"], "the cell D41", 0),
        (["Model!D41"], 41, 0),
        (["A1", "A2", "A3"], ["A1:A3"], 1),
        (["A1:A3"], "A3; A2, a1", 1),
        (["A1:B3"], "$B$3:A1", 1),
        (["A1:B3"], "A3:B1", 1),
        (["'Costs, 2025'!A1", "B2"], "'costs, 2025'!A1, B2", 1),
        (["'Bob''s'!A1"], "'Bob''s'!A1", 1),
        (["'Bob''s'!A1", "A2"], "Bob's!A1, A2", 1),
        (["A1:A4"], "Model!A1:Model!A4", 1),
        (["A1:A4"], ["'model'!$A$4:MODEL!a1"], 1),
        (["A1:A4"], "A1:Model!A4", 1),
        (["A:C"], "Model!A:Model!C", 1),
        (["2:4"], "Model!$2:Model!4", 1),
        (["'Costs, 2025'!A1:B2"], "'Costs, 2025'!A1:'Costs, 2025'!B2", 1),
        (["'Yes! No'!A1:B2"], "'Yes! No'!A1:'Yes! No'!B2", 1),
        (["'Bob''s'!A1:A4"], "Bob's!A1:'Bob''s'!A4", 1),
        (["A1:A4"], "Model!A1:Inputs!A4", 0),
        (["A1:A4"], "Inputs!A1:Model!A4", 0),
        (["A1:A4"], "A1:Inputs!A4", 0),
        (["A1:A4"], "Inputs!A1:Inputs!A4", 0),
        (["A1:A4"], "Model!A1:Model!", 0),
        (["A1:A4"], "!A1:Model!A4", 0),
        (["A1"], "Model:Inputs!A1", 0),
        (["A1:C5"], "Model!A1:Model!B2:C5", 0),
    ],
)
def test_addresses(truth: list[str], answer: Any, right: int) -> None:
    assert score(cells_question("address", truth), answer) == right


@pytest.mark.parametrize("kind", ["trace", "impact", "hardcode"])
@pytest.mark.parametrize(
    ("truth", "answer", "f1"),
    [
        (["A1:A4"], "A1:A2, B1", 4 / 7),
        ([], [], 1),
        ([], "", 1),
        ([], ["A1"], 0),
        ([], ["none"], 0),
        (["A1"], [], 0),
        (["A1"], ["A1", "A1", "A1:A1"], 1),
        (["A1"], ["A1", "nothing else", 7, None, {}], 2 / 6),
        (["A1"], {"cells": ["A1"]}, 0),
        (["A1", "Inputs!A1"], "A1", 2 / 3),
    ],
)
def test_lists_of_cells(kind: str, truth: list[str], answer: Any, f1: float) -> None:
    assert score(cells_question(kind, truth), answer) == pytest.approx(f1)


@pytest.mark.parametrize(
    ("answer", "f1"),
    [
        ("A:A", 1),
        ("A1:A1048576", 1),
        ("Model!A1:Model!A1048576", 1),
        ("A:XFD", 2 * 10 / (10 + 40)),
        ("1:1048576", 2 * 10 / (10 + 40)),
        ("Nowhere!A:XFD", 0),
        ("Empty!A:XFD", 0),
        (["A:A", "Nowhere!A1:Z99"], 2 * 10 / (10 + 11)),
        (["A:A", "Z99"], 2 * 10 / (10 + 11)),
    ],
)
def test_ranges_are_clipped_to_the_used_extent(answer: Any, f1: float) -> None:
    question = cells_question("trace", ["A:A"], {"Model": "A1:D10", "Empty": None})
    assert score(question, answer) == pytest.approx(f1)


def test_a_whole_worksheet_costs_nothing_even_where_the_extent_is_unknown() -> None:
    started = time.process_time()
    assert score(cells_question("trace", ["A1:A4"]), ["A:A"]) == 1
    assert score(cells_question("trace", ["A1:A4"]), ["A:XFD", "Other!A:XFD", "B2:XFC1048575"]) < 1
    assert time.process_time() - started < 0.5


columns, rows = st.sampled_from("ABCDE"), st.integers(1, 8)
addresses = st.one_of(
    st.builds("{}{}".format, columns, rows), st.builds("{}{}:{}{}".format, columns, rows, columns, rows)
)


def naive(texts: list[str]) -> set[tuple[str, int]]:
    cells = set()
    for text in texts:
        first, _, last = text.partition(":")
        last = last or first
        for column in "ABCDE":
            for row in range(1, 9):
                if min(first[0], last[0]) <= column <= max(first[0], last[0]):
                    low, high = sorted((int(first[1:]), int(last[1:])))
                    if low <= row <= high:
                        cells.add((column, row))
    return cells


@given(st.lists(addresses, min_size=1, max_size=6), st.lists(addresses, min_size=1, max_size=6), st.randoms())
def test_f1_is_that_of_plain_sets_whatever_order_and_repeats(truth: Any, answer: Any, random: Any) -> None:
    wanted, got = naive(truth), naive(answer)
    hits = len(wanted & got)
    precision, recall = hits / len(got), hits / len(wanted)
    f1 = 2 * precision * recall / (precision + recall) if hits else 0
    question = cells_question("trace", truth)
    shuffled = answer + answer[:2]
    random.shuffle(shuffled)
    assert score(question, answer) == pytest.approx(f1)
    assert score(question, shuffled) == pytest.approx(f1)
    assert score(question, "; ".join(shuffled)) == pytest.approx(f1)
    assert score(question, truth) == 1


# Whole replies


def test_every_question_is_scored_and_the_mean_is_the_accuracy() -> None:
    questions = [value_question(3.5), value_question(12).model_copy(update={"id": "q2"})]
    assert score_reply(questions, '{"Q1": 3.5, "q7": 1}') == ({"Q1": 3.5, "q7": 1}, {"q1": 1.0, "q2": 0.0}, 0.5)
    assert score_reply(questions, "I cannot say.") == (None, {"q1": 0.0, "q2": 0.0}, 0.0)


@settings(max_examples=200)
@given(json_values, st.sampled_from([5, "North", True, ["A1:B3"], []]))
def test_scoring_never_raises_and_its_answers_can_be_stored(answer: Any, truth: Any) -> None:
    question = cells_question("trace", truth) if isinstance(truth, list) else value_question(truth)
    assert 0 <= score(question, answer) <= 1
    scored = score_reply([question], json.dumps({"q1": answer}))
    assert scored.accuracy in (0, 1) or question.kind == "trace"
    json.dumps(scored.answers, ensure_ascii=False).encode()


@given(st.one_of(st.booleans(), st.integers(-(10**300), 10**300), st.floats(-1e300, 1e300), st.text(min_size=1)))
def test_the_truth_scores_full_marks(truth: Any) -> None:
    assert score_reply([value_question(truth)], json.dumps({"q1": truth})).accuracy == 1


def test_lone_surrogates_and_deep_nesting_are_stored_as_something_plain() -> None:
    scored = score_reply([value_question("x")], r'{"q1": "\ud800", "q2": ' + "[" * 300 + "]" * 300 + "}")
    assert scored.answers == {"q1": "?", "q2": None}


# Faults that others reported


def bug(shared_data: Path, name: str) -> tuple[str, dict[str, Any]]:
    folder = shared_data / "bugs" / name
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))["expected"]
    return (folder / "reply.txt").read_text(encoding="utf-8"), expected


@pytest.mark.parametrize("name", ["b01_fenced_json", "b02_backticks_inside_value", "b04_braces_in_strings"])
def test_reported_replies_are_read(shared_data: Path, name: str) -> None:
    reply, expected = bug(shared_data, name)
    assert find_answer(reply) == expected["answers"]


def test_reported_nan_is_one_wrong_answer(shared_data: Path) -> None:
    reply, expected = bug(shared_data, "b05_nan_not_json")
    truths = json.loads((shared_data / "bugs/b05_nan_not_json/questions.json").read_text(encoding="utf-8"))
    questions = [value_question(truth).model_copy(update={"id": name}) for name, truth in truths.items()]
    scored = score_reply(questions, reply)
    assert scored.scores == expected["scores"]
    assert scored.accuracy == expected["mean_score"]


LENIENT = {"9{,}500": 0, "1 234": 1, "-(67.00)": 0, "–1,000": 1}
"""What the bug reports leave open, as the reference page decides it."""


@pytest.mark.parametrize(
    "name", ["b06_thousands_separator", "b09_parentheses_negative", "b10_unicode_minus", "b11_percent"]
)
def test_reported_numbers(shared_data: Path, name: str) -> None:
    reply, expected = bug(shared_data, name)
    assert find_answer(reply) is not None
    for pair in expected["pairs"]:
        right = LENIENT[pair["got"]] if pair["match"] == "lenient only" else pair["match"]
        assert score(value_question(pair["want"]), pair["got"]) == right, pair


def test_a_number_and_words_is_a_wrong_answer_not_an_empty_one(shared_data: Path) -> None:
    reply, _ = bug(shared_data, "b08_stray_comma")
    scored = score_reply([value_question(72)], reply)
    assert scored.answers == {"q1": "72, in total"}
    assert scored.accuracy == 0


def test_reported_spellings_of_a_range(shared_data: Path) -> None:
    reply, expected = bug(shared_data, "b28_mixed_absolute_range")
    question = cells_question("trace", ["A1:B3"]).model_copy(update={"sheet": "Sheet1"})
    assert find_answer(reply) is not None
    for spelling in expected["same_as_A1:B3"]:
        assert score(question, spelling) == 1, spelling
        assert score(question, [spelling, *expected["expanded"]]) == 1, spelling
    for spelling in expected["invalid"]:
        assert score(question, ["A1:B3", spelling]) == pytest.approx(12 / 13), spelling


def test_an_integer_that_python_refuses_to_write_is_just_wrong() -> None:
    assert score(value_question("North"), 10**5000) == 0
    assert score(value_question(5), 10**5000) == 0
    assert score_reply([value_question(5)], '{"q1": ' + "9" * 5000 + "}").accuracy == 0

"""The rules of a verdict, each by the smallest case in which it decides."""

from __future__ import annotations

import re

import pytest

from pytest_cellprose.stats import Comparison, WorkbookMean, compare

Side = dict[str, WorkbookMean]


def side(costs: list[float | None], accuracies: list[float]) -> Side:
    pairs = zip(costs, accuracies, strict=True)
    return {f"w{i:02}": WorkbookMean(cost, accuracy) for i, (cost, accuracy) in enumerate(pairs)}


def flat(cost: float, accuracy: float, workbooks: int = 12) -> Side:
    return side([cost] * workbooks, [accuracy] * workbooks)


def verdict(challenger: Side, baseline: Side, csv: Side | None, planned: int | None = None) -> tuple[str | None, str]:
    comparison: Comparison = compare(challenger, baseline, csv, planned or len(baseline))
    return comparison.verdict


def test_cheaper_and_as_right_is_a_win() -> None:
    challenger = side([120, 300, 90, 450, 210, 160], [1, 0.8, 1, 0.6, 0.9, 1])
    baseline = side([260, 520, 150, 900, 400, 310], [1, 0.7, 1, 0.6, 0.8, 1])
    word, reason = verdict(challenger, baseline, baseline)
    assert word == "win"
    assert "below 1" in reason
    assert "6 workbooks" in reason


def test_an_interval_around_1_is_no_difference() -> None:
    challenger = side([100, 200, 300, 150], [0.5, 0.75, 0.25, 1])
    baseline = side([110, 180, 320, 140], [0.5, 1, 0.25, 0.75])
    word, reason = verdict(challenger, baseline, baseline)
    assert word == "no difference"
    assert "includes 1" in reason


def test_dearer_is_a_loss_with_or_without_csv() -> None:
    assert verdict(flat(2, 1), flat(1, 1), None) == ("loss", "interval above 1")
    assert verdict(flat(2, 1), flat(1, 1), flat(1, 1))[0] == "loss"


def test_exactly_the_same_is_no_difference() -> None:
    assert verdict(flat(0.1, 0.7), flat(0.1, 0.7), flat(0.1, 0.7))[0] == "no difference"


def test_the_last_bit_of_a_float_decides_nothing() -> None:
    # Three times the cost for three times the accuracy; in floats the interval is [1 - 4e-16, 1 - 4e-16].
    challenger, baseline = flat(0.1 * 3, 0.1), flat(0.1 * 3 * 3, 0.1 * 3)
    numbers = compare(challenger, baseline, challenger, 12).numbers
    assert numbers is not None
    assert numbers.interval is not None
    assert numbers.interval[1] < 1
    assert verdict(challenger, baseline, challenger) == ("no difference", "interval includes 1")


@pytest.mark.parametrize(
    ("csv_accuracy", "word"),
    [(0.90, "win"), (0.91, "win"), (0.9100001, "no difference"), (0.95, "no difference")],
)
def test_a_win_may_cost_one_point_of_accuracy_against_csv(csv_accuracy: float, word: str) -> None:
    found, reason = verdict(flat(1, 0.9), flat(5, 0.9), flat(3, csv_accuracy))
    assert found == word
    assert (word == "win") == ("below csv" not in reason)


def test_no_win_without_csv() -> None:
    word, reason = verdict(flat(1, 0.9), flat(5, 0.9), None)
    assert word == "no difference"
    assert "without csv" in reason


def test_a_challenger_with_nothing_right_loses_whatever_the_interval() -> None:
    challenger = side([100, 200, 300, 150, 120, 80], [0] * 6)
    baseline = side([200, 300, 500, 250, 210, 130], [0.5, 0, 0, 0, 0, 0])
    comparison = compare(challenger, baseline, baseline, 6)
    assert comparison.numbers is not None
    assert comparison.numbers.interval is not None
    assert comparison.numbers.interval[0] == 0
    assert comparison.verdict.word == "loss"
    assert "nothing right" in comparison.verdict.reason


@pytest.mark.parametrize("workbooks", [1, 12])
def test_the_side_with_nothing_right_loses_on_one_workbook_or_many(workbooks: int) -> None:
    right, wrong, csv = flat(3, 0.5, workbooks), flat(1, 0, workbooks), flat(2, 0.5, workbooks)
    assert verdict(right, wrong, csv)[0] == "win"
    assert verdict(wrong, right, csv)[0] == "loss"
    assert verdict(wrong, wrong, csv)[0] == "no difference"


def test_a_baseline_with_nothing_right_loses_also_where_csv_is_far_ahead() -> None:
    right, wrong = flat(3, 0.5), flat(1, 0)
    assert verdict(right, wrong, flat(1, 0.9))[0] == "win"
    assert verdict(right, wrong, None)[0] == "no difference"  # the protocol lets no win be claimed without csv


def test_nothing_right_on_either_side_is_no_difference() -> None:
    word, reason = verdict(flat(1, 0), flat(9, 0), flat(1, 0))
    assert word == "no difference"
    assert "neither" in reason


def test_one_workbook_decides_nothing() -> None:
    comparison = compare(flat(1, 1, 1), flat(9, 1, 1), flat(9, 1, 1), 1)
    assert comparison.verdict == ("no difference", "one workbook")
    assert comparison.numbers is not None
    assert comparison.numbers.interval is None


@pytest.mark.parametrize(("workbooks", "said"), [(2, True), (9, True), (10, False)])
def test_below_ten_workbooks_the_verdict_carries_the_number(workbooks: int, said: bool) -> None:
    sides = flat(1, 1, workbooks), flat(2, 1, workbooks)
    assert (f"{workbooks} workbooks only" in verdict(*sides, sides[1])[1]) == said


@pytest.mark.parametrize("lacking", ["challenger", "baseline"])
@pytest.mark.parametrize("costs", [(1.0, 2.0), (2.0, 1.0), (1.0, 1.0)], ids=["ahead", "behind", "level"])
def test_what_one_side_lacks_leaves_numbers_and_no_verdict(lacking: str, costs: tuple[float, float]) -> None:
    challenger, baseline = flat(costs[0], 1), flat(costs[1], 1)
    del (challenger if lacking == "challenger" else baseline)["w00"]
    comparison = compare(challenger, baseline, flat(2, 1), 12)
    assert comparison.numbers is not None
    assert comparison.numbers.workbooks == 11
    assert comparison.verdict == (None, "incomplete: 11 of 12 workbooks")


def test_what_else_must_be_there_leaves_no_verdict_either() -> None:
    comparison = compare(flat(1, 1), flat(2, 1), flat(2, 1), 12, whole=False)
    assert comparison.numbers is not None
    assert comparison.verdict.word is None
    assert comparison.verdict.reason.startswith("incomplete")


def test_a_win_waits_for_the_csv_that_it_is_checked_against() -> None:
    csv = flat(2, 1)
    del csv["w03"]
    assert verdict(flat(1, 1), flat(2, 1), csv)[0] is None
    assert verdict(flat(2, 1), flat(1, 1), csv)[0] == "loss"  # which needs no check


@pytest.mark.parametrize("short", [1.0001, 1.00001, 1.0000002, 1.006, 1.5, 42.0])
def test_the_reason_shows_by_how_much_accuracy_is_too_low(short: float) -> None:
    word, reason = verdict(flat(1, 0.5), flat(5, 0.5), flat(3, 0.5 + short / 100))
    assert word == "no difference"
    shown = re.search(r"accuracy is ([\d.]+) points below csv", reason)
    assert shown is not None
    assert float(shown[1]) > 1
    assert float(shown[1]) == pytest.approx(short, rel=0.01)


def test_no_common_workbook() -> None:
    comparison = compare({}, flat(2, 1), flat(2, 1), 12)
    assert comparison.numbers is None
    assert comparison.verdict.word is None


def test_unknown_costs_decide_nothing() -> None:
    word, reason = verdict(side([None, 1], [1, 1]), side([9, 9], [1, 1]), side([9, 9], [1, 1]))
    assert word == "no difference"
    assert "tokens" in reason

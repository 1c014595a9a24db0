from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pytest

from pytest_cellprose.record.record import CellId, Record
from pytest_cellprose.report.pairs import paired
from tests.report.report_factories import record


def calls(encoding: str, passes: Sequence[int], repeats: int = 1) -> list[Record]:
    """`passes` of the repeats, workbook by workbook."""
    return [
        record(
            CellId(model="haiku55", encoding=encoding, workbook=f"w{i:03}", repeat=repeat + 1),
            (1.0 if repeat < passed else 0.0, 1.0),
        )
        for i, passed in enumerate(passes)
        for repeat in range(repeats)
    ]


def sides(**passes: Sequence[int]) -> Mapping[str, list[Record]]:
    return {encoding: calls(encoding, found) for encoding, found in passes.items()}


def test_a_pair_that_decides() -> None:
    a = [1] * 50 + [1] * 12 + [0] * 2 + [0] * 36
    b = [1] * 50 + [0] * 12 + [1] * 2 + [0] * 36
    (row,) = paired(sides(a=a, b=b), "a").rows
    assert (row.workbooks, row.both_passed, row.a_only, row.b_only, row.both_failed) == (100, 50, 12, 2, 36)
    assert row.p == pytest.approx(0.0129394531)
    assert row.p_holm is None
    assert row.finding == "a better"


def test_six_against_five_does_not_decide() -> None:
    (row,) = paired(sides(a=[1] * 6 + [0] * 5, b=[0] * 6 + [1] * 5), "a").rows
    assert row.p == 1
    assert row.finding == "no detectable difference at these workbooks"


def test_five_disagreements_never_decide() -> None:
    (row,) = paired(sides(a=[1] * 5, b=[0] * 5), "a").rows
    assert row.finding == "too few disagreements to decide"


def test_with_repeats_a_workbook_counts_once() -> None:
    a = calls("a", [3, 3, 2, 3, 1, 0, 2, 3, 0, 2], repeats=3)
    b = calls("b", [1, 2, 2, 0, 1, 0, 0, 3, 1, 1], repeats=3)
    (row,) = paired({"a": a, "b": b}, "a").rows
    assert (row.a_only, row.b_only, row.both_passed, row.both_failed, row.tied) == (5, 1, 1, 1, 2)
    assert row.p == 0.21875
    assert row.finding == "no detectable difference at these workbooks"


def test_only_repeats_that_both_have_are_compared() -> None:
    a, b = calls("a", [2, 2], repeats=2), calls("b", [1, 0], repeats=2)
    del b[1]  # b's second, failed repeat of the first workbook: what is left is a pass on both sides
    (row,) = paired({"a": a, "b": b}, "a").rows
    assert (row.both_passed, row.a_only) == (1, 1)
    (row,) = paired({"a": a, "b": b[:1]}, "a").rows
    assert (row.workbooks, row.left_out) == (1, 1)


def test_holm_is_shown_for_several_pairs() -> None:
    report = paired(sides(a=[1] * 7, b=[0] * 7, c=[1] * 7), "a")
    by_pair = {(row.a, row.b): row for row in report.rows}
    assert by_pair["a", "b"].p == 0.015625
    assert by_pair["a", "b"].p_holm == pytest.approx(0.046875)
    assert by_pair["a", "b"].finding == "a better"
    assert by_pair["a", "c"].p_holm == 1
    assert "7 disagreements" in report.note


def test_beyond_five_only_pairs_with_the_baseline_but_holm_over_all() -> None:
    """The worked example of six: nothing is decided over 15 pairs, though two would be over 5."""
    wins = {"b": (12, 1), "c": (10, 1), "d": (9, 2), "e": (8, 3), "f": (4, 1)}
    best = [1] * 30 + [0] * 30
    passes = {"a": best}
    for name, (ahead, behind) in wins.items():
        passes[name] = [0] * ahead + [1] * (30 - ahead) + [1] * behind + [0] * (30 - behind)
    report = paired(sides(**passes), "a")
    assert [(row.a, row.b) for row in report.rows] == [("a", name) for name in wins]
    assert [row.p for row in report.rows] == pytest.approx([0.003418, 0.011719, 0.06543, 0.226562, 0.375], abs=1e-6)
    assert all(row.p_holm is not None and row.p_holm > 0.05 for row in report.rows)
    assert report.rows[0].p_holm == pytest.approx(15 * 0.00341796875)
    assert "15 pairs" in report.note


def test_no_word_of_a_verdict() -> None:
    report = paired(sides(a=[1] * 20, b=[0] * 20, c=[1, 0] * 10), "a")
    text = report.model_dump_json().lower()
    assert "win" not in text
    assert "loss" not in text


def test_a_single_encoding_has_no_pairs() -> None:
    assert paired(sides(a=[1]), "a").rows == []


@pytest.mark.parametrize("baseline", ["challenger", "csv", "zebra"])
def test_the_baselines_pairs_come_first_and_never_vanish(baseline: str) -> None:
    """Also behind encodings that passed as often and come first by name."""
    names = ["address_list", "challenger", "csv", "markdown", "toon", "zebra"]
    everyone = dict.fromkeys(names, [1] * 8)
    report = paired(sides(**everyone), baseline)
    assert {(row.a, row.b) for row in report.rows} == {(baseline, name) for name in names if name != baseline}
    assert f"pairs of {baseline}" in report.note
    few = paired(sides(**{name: everyone[name] for name in names[1:]}), baseline)
    assert [row.a for row in few.rows[:4]] == [baseline] * 4
    assert len(few.rows) == 10


def test_a_baseline_without_a_call_gives_way_to_the_best() -> None:
    passes = {name: [0, 1, 1] for name in "bcdef"} | {"a": [1, 1, 1]}
    assert {row.a for row in paired(sides(**passes), "challenger").rows} == {"a"}


@pytest.mark.parametrize("encodings", [2, 3, 4, 5])
def test_the_note_and_the_findings_agree_on_how_many_disagreements_are_too_few(encodings: int) -> None:
    for disagreements in range(1, 12):
        passes = {"a": [1] * disagreements} | {f"b{i}": [1] * disagreements for i in range(encodings - 2)}
        report = paired(sides(**passes, z=[0] * disagreements), "a")
        row = next(row for row in report.rows if (row.a, row.b) == ("a", "z"))
        found = re.search(r"needs (\d+) disagreements", report.note)
        needed = int(found[1]) if found else 6
        assert row.finding == ("too few disagreements to decide" if disagreements < needed else "a better")


def test_nothing_is_found_in_an_incomplete_set() -> None:
    (row,) = paired(sides(a=[1] * 20, b=[0] * 20), "a", complete=False).rows
    assert row.a_only == 20
    assert row.finding == "none: the set is incomplete"

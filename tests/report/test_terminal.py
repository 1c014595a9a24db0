from __future__ import annotations

import re
from unicodedata import category

import pytest

from pytest_cellprose.record.record import Outcome, Prices, Usage
from pytest_cellprose.report.analysis import analyse
from pytest_cellprose.report.model import Report
from pytest_cellprose.report.terminal import lines
from tests.report.report_factories import SIX, all_records, failure, fault, manifest, record, refusal, workbook_entry


@pytest.fixture(scope="module")
def small() -> Report:
    plan = manifest(["reader"], SIX, list("abcdefghijkl"), mode="development", publishable=False)
    return analyse(plan, all_records(plan))


@pytest.fixture(scope="module")
def large() -> Report:
    models = ["haiku55", "sonnet55", "opus55", "gpt6luna", "gpt61sol", "gpt6astra", "haiku45"]
    books = [workbook_entry(f"sb_{i}", "heldout") for i in range(3)] + [workbook_entry("a"), workbook_entry("b")]
    plan = manifest(models, SIX, books, repeats=3, deviations=["prices were checked on another day"])
    records = all_records(plan)
    records[0] = failure(records[0].cell, set=records[0].set)
    records[1] = fault(records[1].cell, set=records[1].set)
    return analyse(plan, records[:-1])


def row(text: list[str], start: str) -> str:
    (found,) = [line for line in text if line.strip().startswith(start)]
    return found


def test_every_encoding_has_a_row_and_every_baseline_a_verdict(small: Report) -> None:
    text = lines(small, 80)
    model = small.sets["development"].models["reader"]
    table = text[: next(i for i, line in enumerate(text) if "over each baseline" in line)]
    for name, encoding in model.encodings.items():
        assert encoding.accuracy is not None
        assert encoding.input_tokens is not None
        found = row(table, name + " ")
        assert f"{encoding.accuracy:.1%}" in found
        assert f"{int(encoding.input_tokens):,}" in found
        assert found.count("$") == 2
    verdicts = text[len(table) : len(table) + 1 + len(model.against)]
    for name, against in model.against.items():
        assert re.search(r"\d\.\d\d× +\[\d\.\d\d, \d\.\d\d\] +(win|loss|no difference): ", row(verdicts, name + " "))
        assert against.verdict
    assert not any(line.strip().startswith("none") for line in verdicts)


def test_a_note_stands_over_the_numbers_it_is_about(small: Report) -> None:
    text = lines(small, 80)
    assert text[0].startswith("reader")
    assert text[1].strip() == "reader: a program; ceiling accuracy, nominal prices"


@pytest.mark.parametrize("width", [20, 80, 81, 100, 160])
@pytest.mark.parametrize("unicode", [True, False])
def test_no_line_is_too_long(small: Report, large: Report, width: int, unicode: bool) -> None:
    for report in (small, large):
        text = lines(report, width, unicode=unicode)
        assert max(map(len, text)) <= max(width, 80)
        assert unicode or "\n".join(text).isascii()


def test_at_80_columns_names_and_numbers_are_whole(small: Report, large: Report) -> None:
    for report in (small, large):
        assert any(line.strip().startswith("cellprose_lean_gfm ") for line in lines(report, 80))
        assert not any("…" in line for line in lines(report, 80) if "$" in line)


def test_colour_only_when_asked(small: Report) -> None:
    assert "\x1b[" not in "\n".join(lines(small, 80))
    assert "\x1b[" in "\n".join(lines(small, 80, colour=True))


def test_held_out_comes_first_and_apart_is_said(large: Report) -> None:
    heads = [line for line in lines(large, 100) if " workbooks, " in line and " · " in line]
    assert [head.split(" ")[0] for head in heads[:7]] == list(large.sets["heldout"].models)
    assert all("held-out: 3 workbooks, 12 questions, 3 repeats" in head for head in heads[:7])
    assert all("development: 2 workbooks" in head for head in heads[7:])
    assert "haiku45 (reported apart)" in heads[6]


def test_what_went_wrong_has_a_line_each(large: Report) -> None:
    text = "\n".join(lines(large, 120))
    assert "1 model failure, scored 0: 1 truncated" in text
    assert "1 cell faulted, without a score: 1 timeout (haiku55-markitdown-sb_0-rep1)" in text
    assert "1 planned cell not run: haiku45-none-b-rep3" in text
    assert "no headline: 628 of 630 cells measured" in text
    assert "deviation: prices were checked on another day" in text
    assert "not publishable" in text


def test_small_amounts_can_be_told_apart() -> None:
    plan = manifest(["haiku55"], ["csv", "toon"], ["a"])
    cost = {"csv": 123_000, "toon": 124_000}
    report = analyse(plan, [record(cell, cost=cost[cell.encoding]) for cell in plan.matrix.cells()])
    text = lines(report, 80)
    assert "$0.000123" in row(text, "csv")
    assert "$0.000124" in row(text, "toon")


def test_nothing_right_and_nothing_measured_are_no_numbers_but_signs() -> None:
    plan = manifest()
    records = [
        fault(cell) if cell.encoding == "csv" else record(cell, (0.0 if "gfm" in cell.encoding else 1.0,))
        for cell in plan.matrix.cells()
    ]
    text = lines(analyse(plan, records), 80)
    assert "∞" in next(line for line in text if line.strip().startswith("cellprose_lean_gfm "))
    assert next(line for line in text if line.strip().startswith("csv")).count("–") >= 4
    assert "nan" not in "\n".join(text).lower()
    plain = "\n".join(lines(analyse(plan, records), 80, unicode=False))
    assert " inf" in plain


def test_a_run_without_a_call_says_so() -> None:
    text = lines(analyse(manifest(), []), 80)
    assert text[0].startswith("6 planned cells not run")


VERDICT = re.compile(r"\b(win|loss|no difference)\b", re.IGNORECASE)


@pytest.mark.parametrize("width", [80, 120])
def test_an_incomplete_set_has_no_word_of_a_verdict_and_says_what_its_rows_are_over(width: int) -> None:
    plan = manifest(["haiku55"], SIX, [f"book{i}" for i in range(12)], mode="live")
    left = [found for found in all_records(plan) if found.cell.workbook not in ("book3", "book7")]
    text = lines(analyse(plan, left), width)
    assert not VERDICT.search("\n".join(text))
    flat = " ".join(" ".join(text).split())
    assert "rows are over the 10 of 12 workbooks that every measured encoding completed: all but book3, book7" in flat
    assert flat.count("no verdict: incomplete: 10 of 12 workbooks") == 4
    table = text[: next(i for i, line in enumerate(text) if "over each baseline" in line)]
    for name in SIX:
        assert row(table, name + " ").endswith("10 of 12")
    assert "incomplete, so there is no headline: 60 of 72 cells measured" in flat


def test_a_comparison_with_nothing_on_one_side_has_no_line() -> None:
    plan = manifest(["haiku55"], SIX, ["a", "b"], mode="live")
    only = [found for found in all_records(plan) if found.cell.encoding in ("cellprose_lean_gfm", "csv")]
    text = lines(analyse(plan, only), 80)
    start = next(i for i, line in enumerate(text) if "over each baseline" in line)
    compared = [line.split()[0] for line in text[start + 1 : text.index("", start)] if "×" in line]
    assert set(compared) == {"csv"}
    nothing = [found for found in only if found.cell.encoding == "csv"]
    assert not any("over each baseline" in line for line in lines(analyse(plan, nothing), 80))


def test_what_hangs_on_one_workbook_has_a_line() -> None:
    tier = Prices(input="1", output="1", above=1000, input_above="5", output_above="5")
    plan = manifest(["haiku55"], ["cellprose_lean_gfm", "csv", "toon"], [*"abcdefghijk", "ledger"])
    records = []
    for found in all_records(plan):
        long = found.cell.encoding == "csv" and found.cell.workbook == "ledger"
        usage = Usage(input=1001 if long else 900, output=1)
        cost = 200_000_000 if long else 2_000_000
        records.append(found.model_copy(update={"usage": usage, "prices": tier, "cost_nanousd": cost, "accuracy": 1.0}))
    text = lines(analyse(plan, records), 80)
    start = next(i for i, line in enumerate(text) if "left out in turn" in line)
    assert text[start + 1].split(maxsplit=1) == [
        "csv",
        "0.10× to 1.00×  farthest without ledger; long prompts 0 and 1",
    ]
    assert not any(line.strip().startswith("toon") for line in text[start:])


def test_what_was_not_let_start_has_who_which_limit_and_until_when() -> None:
    plan = manifest(["haiku55"], ["csv"], ["a", "b", "c"], mode="live")
    first, second, third = plan.matrix.cells()
    report = analyse(
        plan,
        [
            refusal(first, by="the keeper", limit=80, used=82, unit="%", resets="2026-12-01T15:00Z"),
            refusal(second, by="a vendor's cap", limit=2.0, used=1.98, unit="USD"),
            refusal(third, by="another", limit="five-hour window", used="all"),
        ],
    )
    text = "\n".join(lines(report, 120))
    assert "the keeper: 1 call of anthropic not started: window_full, 82 of 80 % used, resets 2026-12-01T15:00Z" in text
    assert "a vendor's cap: 1 call of anthropic not started: window_full, $1.98 of $2.00 used" in text
    assert "another: 1 call of anthropic not started: window_full, all of five-hour window used" in text
    assert "cells kept from starting: 1 by the keeper and 1 by a vendor's cap and 1 by another" in text
    assert "faulted" not in text


def test_models_of_one_encoding_share_a_table() -> None:
    plan = manifest(["alpha", "beta", "gamma", "reader"], ["csv"], ["a", "b"])
    text = lines(analyse(plan, all_records(plan)), 80)
    heads = [line.split(" · ")[0] for line in text if " · " in line]
    assert heads == ["reader", "csv"]
    assert sum(line.strip().startswith("model ") for line in text) == 1
    for alias in ("alpha", "beta", "gamma"):
        assert "$" in row(text, alias)


HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\n\u202e<script>alert(1)</script>|`**x**`"


def test_text_from_outside_has_no_control_character_and_still_fits() -> None:
    books = [workbook_entry(f"bo\x1b[2Jok\u202e{i}") for i in range(3)]
    plan = manifest(["haiku55"], SIX, books, mode="live", deviations=[HOSTILE])
    records = all_records(plan)
    outcome = Outcome(status="fault", kind="api_error\x1b[31m", detail=HOSTILE)
    records[0] = record(records[0].cell, outcome=outcome)
    records[1] = refusal(records[1].cell, by=HOSTILE, limit=HOSTILE, used="\x07", unit="\x1b", resets=HOSTILE)
    for mode in ("live", "final"):
        for width in (80, 120):
            text = lines(analyse(plan.model_copy(update={"mode": mode}), records), width)
            assert not [sign for line in text for sign in line if category(sign) in ("Cc", "Cf")]
            assert max(map(len, text)) <= width
            assert "\\x1b" in "\n".join(text)

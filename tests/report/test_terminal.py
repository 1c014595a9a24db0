from __future__ import annotations

import re

import pytest
from report_factories import SIX, all_records, failure, fault, manifest, record, workbook_entry

from pytest_cellprose.report.analysis import analyse
from pytest_cellprose.report.model import Report
from pytest_cellprose.report.terminal import lines


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
        assert f"{encoding.input_tokens:,.0f}" in found
        assert found.count("$") == 2
    verdicts = text[len(table) :]
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

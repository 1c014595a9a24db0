from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from pytest_cellprose.report.model import Report
from pytest_cellprose.report.schema import schemas
from pytest_cellprose.report.write import write_reports
from tests.report.report_factories import RUN, SIX, all_records, manifest, record, workbook_entry

BOOKS = [workbook_entry("sb_1", "heldout"), workbook_entry("a"), workbook_entry("b"), workbook_entry("c")]


def test_the_files_are_written_whole(tmp_path: Path) -> None:
    plan = manifest(["haiku55"], SIX, BOOKS)
    report = write_reports(tmp_path / "new", plan, all_records(plan))
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["report.json", "report.md", "verdicts.json"]
    stored = json.loads((tmp_path / "new" / "report.json").read_bytes())
    assert stored["schema"] == 1
    assert Report.model_validate(stored) == report


def test_verdicts_have_the_documented_form(tmp_path: Path) -> None:
    plan = manifest(["haiku55"], SIX, BOOKS, deviations=["one"])
    write_reports(tmp_path, plan, all_records(plan))
    verdicts = json.loads((tmp_path / "verdicts.json").read_bytes())
    assert verdicts["schema"] == 1
    assert verdicts["run"] == RUN
    assert verdicts["publishable"] is True
    assert verdicts["deviations"] == ["one"]
    assert list(verdicts["sets"]) == ["heldout", "development"]
    model = verdicts["sets"]["development"]["models"]["haiku55"]
    assert list(model["encodings"]) == list(SIX)
    row = model["encodings"]["csv"]
    assert row["cost_per_correct"] == pytest.approx(row["cost_per_call"] / row["accuracy"])
    assert {"input_tokens", "output_tokens"} <= row.keys()
    against = model["against"]["markitdown"]
    assert {"ratio", "interval", "accuracy_difference", "accuracy_interval", "verdict", "reason"} <= against.keys()
    assert against["verdict"] in ("win", "loss", "no difference")
    low, high = against["interval"]
    assert low <= against["ratio"] <= high
    assert "none" not in model["against"]
    heldout = verdicts["sets"]["heldout"]["models"]["haiku55"]["against"]["markitdown"]
    assert heldout["interval"] is None
    assert heldout["reason"] == "one workbook"


def test_infinite_is_a_word_and_nothing_is_nan(tmp_path: Path) -> None:
    plan = manifest(workbooks=["a", "b", "c"])
    records = [
        record(cell, (0.0,) if cell.encoding == "cellprose_lean_gfm" else (1.0,)) for cell in plan.matrix.cells()
    ]
    report = write_reports(tmp_path, plan, records)
    verdicts = json.loads((tmp_path / "verdicts.json").read_bytes(), parse_constant=pytest.fail)
    model = verdicts["sets"]["development"]["models"]["haiku55"]
    assert model["against"]["csv"]["ratio"] == "inf"
    assert model["against"]["csv"]["interval"] == ["inf", "inf"]
    assert model["against"]["csv"]["verdict"] == "loss"
    assert model["encodings"]["cellprose_lean_gfm"]["cost_per_correct"] == "inf"
    stored = json.loads((tmp_path / "report.json").read_bytes(), parse_constant=pytest.fail)
    assert Report.model_validate(stored) == report


def test_the_bytes_depend_on_neither_order_nor_time(tmp_path: Path) -> None:
    plan = manifest(["haiku55", "reader"], SIX, BOOKS, repeats=2)
    records = all_records(plan)
    write_reports(tmp_path / "one", plan, records)
    later = [found.model_copy(update={"started": "2027-01-01T00:00:00Z", "seconds": 9.5}) for found in records]
    random.Random(7).shuffle(later)
    write_reports(
        tmp_path / "two", plan.model_copy(update={"started": "2027-01-01T00:00:00Z", "finished": None}), later
    )
    one, two = ((tmp_path / name / "verdicts.json").read_bytes() for name in ("one", "two"))
    assert one == two


def test_the_last_digits_of_a_float_are_not_written(tmp_path: Path) -> None:
    plan = manifest(workbooks=["a", "b", "c"], repeats=3)
    write_reports(tmp_path, plan, [record(cell, (1.0, 0.0, 0.1), cost=1_234_567_891) for cell in plan.matrix.cells()])
    for name in ("verdicts.json", "report.json"):
        found = re.findall(r"\d*\.\d+", (tmp_path / name).read_text(encoding="utf-8"))
        assert any(len(number) > 9 for number in found)
        assert all(len(number.replace(".", "").lstrip("0")) <= 9 for number in found)


def test_a_report_replaces_the_one_before(tmp_path: Path) -> None:
    plan = manifest()
    write_reports(tmp_path, plan, [])
    write_reports(tmp_path, plan, all_records(plan))
    assert json.loads((tmp_path / "verdicts.json").read_bytes())["complete"] is True
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("name", sorted(schemas()))
def test_the_published_schema_is_current(name: str) -> None:
    published = Path(__file__).parents[2] / "docs" / "schema" / name
    found = json.loads(published.read_text(encoding="utf-8"))
    assert found == schemas()[name], "write it anew: python -m pytest_cellprose.report.schema docs/schema"

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from pytest_cellprose.record.record import CellId, Host, Prices, Usage
from pytest_cellprose.report.analysis import analyse
from pytest_cellprose.report.model import ModelReport, Report
from pytest_cellprose.store.manifest import Manifest, PlannedOut
from pytest_cellprose.store.shards import own_cells
from tests.report.report_factories import (
    SIX,
    all_records,
    failure,
    fault,
    manifest,
    model_entry,
    record,
    refusal,
    workbook_entry,
)


def cell(encoding: str = "csv", workbook: str = "a", repeat: int = 1, model: str = "haiku55") -> CellId:
    return CellId(model=model, encoding=encoding, workbook=workbook, repeat=repeat)


def only_model(report: Report) -> ModelReport:
    (of_set,) = report.sets.values()
    (model,) = of_set.models.values()
    return model


def test_cost_per_correct_averages_repeats_first_and_then_workbooks() -> None:
    plan = manifest(encodings=["csv"], workbooks=["a", "b"], repeats=2)
    report = analyse(
        plan,
        [
            record(cell(workbook="a", repeat=1), (1, 1, 1, 1), cost=1_000_000_000),
            record(cell(workbook="a", repeat=2), (1, 1, 0, 0), cost=3_000_000_000),
            record(cell(workbook="b", repeat=1), (0.5, 0, 0, 0), cost=5_000_000_000),
            record(cell(workbook="b", repeat=2), (0.5, 0, 0, 0), cost=5_000_000_000),
        ],
    )
    row = only_model(report).encodings["csv"]
    assert row.accuracy == 0.4375  # (0.75 + 0.125) / 2
    assert row.cost_per_call == 3.5
    assert row.cost_per_correct == 8.0
    assert row.calls == 4
    assert row.workbooks == 2


def test_the_accuracy_by_question_weighs_every_question_alike() -> None:
    plan = manifest(encodings=["csv"])
    report = analyse(
        plan,
        [
            record(cell(workbook="a"), (1, 1, 1), kinds=("value", "value", "trace")),
            record(cell(workbook="b"), (0,), kinds=("value",)),
        ],
    )
    row = only_model(report).encodings["csv"]
    assert row.accuracy == 0.5
    assert row.accuracy_by_question == 0.75
    assert row.by_kind["value"].questions == 3
    assert row.by_kind["value"].right == 2
    assert row.by_kind["value"].accuracy == pytest.approx(2 / 3, abs=1e-9)
    assert row.by_kind["trace"].accuracy == 1


def test_a_failure_scores_0_and_keeps_its_tokens_and_cost() -> None:
    plan = manifest(encodings=["csv"])
    report = analyse(
        plan,
        [
            record(cell(workbook="a"), cost=2_000_000_000, tokens=(100, 10, None)),
            failure(cell(workbook="b"), cost=4_000_000_000, tokens=(300, 30, None)),
        ],
    )
    row = only_model(report).encodings["csv"]
    assert row.accuracy == 0.5
    assert row.accuracy_by_question == 0.5
    assert row.cost_per_call == 3
    assert (row.input_tokens, row.output_tokens) == (200, 20)
    assert row.failures == {"truncated": 1}
    assert report.cells.failed == 1
    assert report.complete
    assert report.publishable


def test_a_failure_without_reported_tokens_costs_nothing_known() -> None:
    report = analyse(
        manifest(encodings=["csv"]),
        [
            record(cell(workbook="a"), cost=2_000_000_000, tokens=(100, 10, None)),
            failure(cell(workbook="b"), "api_error", cost=None, tokens=(None, None, None)),
        ],
    )
    row = only_model(report).encodings["csv"]
    assert row.cost_per_call == 1
    assert row.input_tokens == 100


def test_an_answer_without_reported_tokens_has_an_unknown_cost() -> None:
    plan = manifest()
    records = [
        record(planned, cost=None if planned.encoding == "cellprose_lean_gfm" else 1_000)
        for planned in plan.matrix.cells()
    ]
    model = only_model(analyse(plan, records))
    assert model.encodings["cellprose_lean_gfm"].cost_per_call is None
    assert model.encodings["cellprose_lean_gfm"].cost_per_correct is None
    assert model.against["csv"].ratio is None
    assert model.against["csv"].verdict == "no difference"


def test_nothing_right_is_infinite_and_loses() -> None:
    plan = manifest(workbooks=["w1", "w2", "w3", "w4"])
    scores = {"w1": 0.5, "w2": 1.0, "w3": 0.0, "w4": 0.5}
    records = [
        record(planned, (0,), cost=10_000_000)
        if planned.encoding == "cellprose_lean_gfm"
        else record(planned, (scores[planned.workbook],), cost=20_000_000)
        for planned in plan.matrix.cells()
    ]
    model = only_model(analyse(plan, records))
    assert model.encodings["cellprose_lean_gfm"].cost_per_correct == float("inf")
    against = model.against["markitdown"]
    assert against.ratio == float("inf")
    assert against.verdict == "loss"


def test_the_latest_record_that_is_not_a_fault_counts() -> None:
    plan = manifest(encodings=["csv"], workbooks=["a"])
    lines = [
        record(cell(), (0,), start=0),
        record(cell(), (1,), start=10),
        fault(cell(), start=20),
        record(cell(), (0.25,), start=99, run="another-run"),
    ]
    for order in (lines, lines[::-1]):
        report = analyse(plan, order)
        assert only_model(report).encodings["csv"].accuracy == 1
        assert report.cells.measured == 1
        assert report.cells.faulted == 0
        assert report.faults == []


def test_superseded_and_faulted_attempts_are_spent_but_cost_no_cell() -> None:
    plan = manifest(encodings=["csv"], workbooks=["a"])
    report = analyse(plan, [fault(cell(), cost=1_000_000_000), record(cell(), cost=2_000_000_000, start=5)])
    assert report.spent == 3
    assert only_model(report).encodings["csv"].cost_per_call == 2


def test_nominal_prices_are_not_spent() -> None:
    plan = manifest(models=["reader"], encodings=["csv"], workbooks=["a"])
    report = analyse(plan, [record(cell(model="reader"), cost=2_000_000_000)])
    assert report.spent == 0
    assert only_model(report).encodings["csv"].cost_per_call == 2


def test_every_planned_cell_is_counted_once() -> None:
    plan = manifest(
        models=["reader", "haiku55"],
        encodings=["csv", "toon"],
        workbooks=["a", "b", "c"],
        matrix={"skipped_models": {"haiku55": "live models need --cellprose-live"}},
        mode="development",
        publishable=False,
    )
    cells = [planned for planned in plan.matrix.cells() if planned.model == "reader"]
    report = analyse(plan, [record(cells[0]), failure(cells[1]), fault(cells[2]), record(cells[3])])
    counts = report.cells
    assert (counts.planned, counts.measured, counts.failed) == (12, 3, 1)
    assert (counts.faulted, counts.skipped, counts.not_run) == (1, 6, 2)
    assert report.not_run == [str(planned) for planned in cells[4:]]
    assert [found.kind for found in report.faults] == ["timeout"]
    assert not report.complete


def test_a_run_with_skipped_models_is_not_complete_and_nothing_is_missing() -> None:
    plan = manifest(
        models=["reader", "haiku55"],
        matrix={"skipped_models": {"haiku55": "needs a key"}},
        mode="development",
        publishable=False,
    )
    records = [record(planned) for planned in plan.matrix.cells() if planned.model == "reader"]
    report = analyse(plan, records)
    assert not report.complete
    assert (report.cells.skipped, report.cells.missing, report.cells.lacking) == (6, 0, 0)
    (reader,) = report.sets["development"].models.values()
    assert reader.complete
    assert all(against.verdict for against in reader.against.values())


@pytest.mark.parametrize("missing", ["not run", "faulted"])
def test_an_incomplete_run_is_not_publishable_and_says_why(missing: str) -> None:
    plan = manifest(workbooks=["a", "b", "c"])
    records = [record(planned) for planned in plan.matrix.cells()]
    last = records.pop()
    if missing == "faulted":
        records.append(fault(last.cell))
    report = analyse(plan, records)
    assert not report.publishable
    assert any("1 of 9 planned cells" in deviation for deviation in report.deviations)
    against = only_model(report).against["csv"]
    assert (against.workbooks, against.verdict, against.complete) == (2, None, False)
    assert against.reason == "incomplete: 2 of 3 workbooks"


def lacking(plan: Manifest, missing: str, cells: Sequence[CellId]) -> Report:
    """A run whose cells are all measured but some."""
    records = [found for found in all_records(plan) if found.cell not in cells]
    if missing == "faulted":
        records += [fault(found) for found in cells]
    if missing == "refused":
        records += [refusal(found) for found in cells]
    return analyse(plan, records)


@pytest.mark.parametrize("mode", ["development", "live", "final"])
@pytest.mark.parametrize("missing", ["not run", "faulted", "refused"])
@pytest.mark.parametrize("encoding", SIX)
def test_no_verdict_without_all_cells_of_both_sides_and_in_a_final_run_of_the_set(
    mode: str, missing: str, encoding: str
) -> None:
    plan = manifest(models=["haiku55", "sonnet55"], encodings=SIX, workbooks=list("abc"), repeats=2, mode=mode)
    report = lacking(plan, missing, [cell(encoding, "b", 2)])
    models = report.sets["development"].models
    assert all(against.verdict for against in models["sonnet55"].against.values())  # which lacks nothing
    for baseline, against in models["haiku55"].against.items():
        side = encoding in ("cellprose_lean_gfm", baseline)
        assert ("incomplete" in against.reason) == (against.verdict is None) == (not against.complete)
        if encoding == "csv" and not side and mode != "final":
            assert against.verdict != "win"  # which would have to be checked against csv
        else:
            assert (against.verdict is None) == (side or mode == "final")
        assert against.workbooks == (2 if side else 3)
        assert against.ratio is not None


def test_no_verdict_in_a_shard() -> None:
    plan = manifest(workbooks=list("abcd"), mode="live", shard={"number": 1, "of": 2})
    own = set(own_cells(plan))
    report = analyse(plan, [found for found in all_records(plan) if found.cell in own])
    assert {against.verdict for against in only_model(report).against.values()} == {None}
    assert only_model(report).compared_on == sorted({found.workbook for found in own})


def test_rows_of_an_incomplete_set_are_over_the_workbooks_that_all_completed() -> None:
    """Cheap workbooks only for one encoding: by its own workbooks it would look ten times cheaper than it is."""
    plan = manifest(encodings=["cellprose_lean_gfm", "csv"], workbooks=["cheap", "dear", "odd"], mode="live")
    cost = {"cheap": 1_000_000, "dear": 100_000_000, "odd": 7_000_000}
    records = [
        record(planned, cost=cost[planned.workbook] * (1 if planned.encoding == "csv" else 2))
        for planned in plan.matrix.cells()
        if planned not in (cell("csv", "dear"), cell("cellprose_lean_gfm", "odd"))
    ]
    model = only_model(analyse(plan, records))
    assert (model.complete, model.compared_on, model.workbooks) == (False, ["cheap"], ["cheap", "dear", "odd"])
    assert [row.cost_per_call for row in model.encodings.values()] == [0.002, 0.001]
    assert [(row.calls, row.planned, row.workbooks) for row in model.encodings.values()] == [(2, 3, 1), (2, 3, 1)]
    for row in model.encodings.values():
        assert row.frontier is not None
        assert row.resources is not None
        assert row.frontier.calls == 1
        assert row.resources.cost == row.cost_per_call
    assert model.against["csv"].ratio == 2


def test_an_encoding_that_completed_nothing_leaves_the_others_their_rows() -> None:
    plan = manifest(encodings=SIX, workbooks=["a", "b"], repeats=2, mode="live")
    absent = [found for found in plan.matrix.cells() if found.encoding == "toon" and found.repeat == 1]
    model = only_model(lacking(plan, "not run", absent))
    assert model.compared_on == ["a", "b"]
    assert model.encodings["toon"].accuracy is None
    assert model.encodings["toon"].calls == 2
    assert model.encodings["csv"].accuracy is not None
    assert model.against["toon"].workbooks == 0
    assert model.against["toon"].verdict is None


def test_how_much_hangs_on_one_workbook_and_on_a_price_tier() -> None:
    plan = manifest(workbooks=[*(f"w{i:02}" for i in range(10)), "ledger"], encodings=["cellprose_lean_gfm", "csv"])
    tier = Prices(input="1", output="1", above=1000, input_above="5", output_above="5")
    records = []
    for planned in plan.matrix.cells():
        long = planned.encoding == "csv" and planned.workbook == "ledger"
        own = record(
            planned, cost=200_000_000 if long else 2_000_000, tokens=(1001 if long else 1000, 1, None), prices=tier
        )
        records.append(own)
    against = only_model(analyse(plan, records)).against["csv"]
    assert against.ratio == pytest.approx(22 / 220)
    assert against.without_one is not None
    assert against.without_one.workbook == "ledger"
    assert against.without_one.ratio == against.without_one.highest == 1
    assert against.without_one.lowest == pytest.approx(20 / 218)
    assert (against.long_prompts.challenger, against.long_prompts.baseline) == (0, 1)


def test_the_requests_of_an_agent_cross_a_tier_one_by_one() -> None:
    plan = manifest(workbooks=["a"], encodings=["cellprose_lean_gfm", "agent_xlsx"])
    tier = Prices(input="1", output="1", above=1000, input_above="5", output_above="5")
    turns = [Usage(input=900, output=1), Usage(input=1100, output=1), Usage(input=1300, output=1)]
    records = [
        record(planned, prices=tier, tokens=(3300, 3, None), turns=turns if "agent" in planned.encoding else None)
        for planned in plan.matrix.cells()
    ]
    crossed = only_model(analyse(plan, records)).against["agent_xlsx"].long_prompts
    assert (crossed.challenger, crossed.baseline) == (1, 2)


def test_refused_calls_are_counted_apart_and_listed_by_who_refused() -> None:
    plan = manifest(models=["haiku55", "own"], encodings=["csv"], workbooks=list("abc"), mode="live")
    records = [
        refusal(cell(workbook="a"), limit=80, used=81, unit="%", start=1),
        refusal(cell(workbook="b"), limit=80, used=85, unit="%", resets="2026-12-01T15:00:00+00:00", start=2),
        refusal(cell(workbook="c"), by="a vendor's cap", limit=2.0, used=1.5, unit="USD"),
        fault(cell(model="own", workbook="a")),
        record(cell(model="own", workbook="b")),
        record(cell(model="own", workbook="c")),
    ]
    report = analyse(plan, records)
    counts = report.cells
    assert (counts.refused, counts.faulted, counts.measured, counts.missing) == (3, 1, 2, 4)
    assert [found.cell for found in report.faults] == ["own-csv-a-rep1"]
    by_plugin, by_cap = report.refused
    assert (by_plugin.by, by_plugin.kind, by_plugin.vendor) == ("a plugin", "window_full", "anthropic")
    assert by_plugin.cells == ["haiku55-csv-a-rep1", "haiku55-csv-b-rep1"]
    assert (by_plugin.limit, by_plugin.used, by_plugin.unit) == (80, 85, "%")
    assert by_plugin.resets == "2026-12-01T15:00:00+00:00"
    assert (by_cap.by, by_cap.used) == ("a vendor's cap", 1.5)
    assert any("2 by a plugin and 1 by a vendor's cap" in deviation for deviation in report.deviations)


def test_the_baseline_of_paired_comparisons_is_the_challenger_unless_another_is_named() -> None:
    encodings = [*SIX, "mine", "own"]
    for named, first in (({}, "cellprose_lean_gfm"), ({"settings": {"baseline": "toon"}}, "toon")):
        plan = manifest(encodings=encodings, **named)
        report = analyse(plan, all_records(plan))
        assert report.baseline == first
        assert {row.a for row in only_model(report).paired.rows} == {first}


def test_a_workbook_counts_only_when_every_repeat_was_measured() -> None:
    plan = manifest(workbooks=["a", "b", "c"], repeats=3)
    records = [record(planned) for planned in plan.matrix.cells() if planned != cell("csv", "b", 2)]
    against = only_model(analyse(plan, records)).against
    assert against["csv"].workbooks == 2
    assert against["markitdown"].workbooks == 3


def test_a_control_that_runs_once_is_complete_and_compared_with_nothing() -> None:
    plan = manifest(encodings=SIX, repeats=3, matrix={"none_once": True})
    report = analyse(plan, all_records(plan))
    assert report.complete
    model = only_model(report)
    assert model.encodings["none"].calls == 2
    assert model.encodings["none"].role == "control"
    assert list(model.against) == ["markitdown", "csv", "markdown", "toon"]
    assert all("none" not in (row.a, row.b) for row in model.paired.rows)


def test_primary_baselines_come_first_and_agent_cellprose_is_not_tested() -> None:
    encodings = ["toon", "agent_cellprose", "csv", "mine", "agent_xlsx", "cellprose_lean_gfm", "markitdown"]
    plan = manifest(encodings=encodings)
    against = only_model(analyse(plan, all_records(plan))).against
    assert list(against) == ["agent_xlsx", "markitdown", "csv", "toon", "mine", "agent_cellprose"]
    assert against["agent_cellprose"].verdict is None
    assert against["agent_cellprose"].ratio is not None
    assert against["mine"].verdict is not None


def test_another_challenger_is_compared_with_the_rest() -> None:
    plan = manifest(challenger="csv")
    against = only_model(analyse(plan, all_records(plan))).against
    assert list(against) == ["markitdown", "cellprose_lean_gfm"]


def test_sets_and_models_are_never_mixed() -> None:
    books = [workbook_entry("a"), workbook_entry("sb_1", "heldout"), workbook_entry("sb_2", "heldout")]
    plan = manifest(models=["haiku55", "sonnet55"], workbooks=books)
    sets = {book.name: book.set for book in books}
    records = [
        record(planned, (1.0 if planned.workbook == "a" else 0.5,), set=sets[planned.workbook])
        for planned in plan.matrix.cells()
    ]
    report = analyse(plan, records)
    assert list(report.sets) == ["heldout", "development"]
    for name, accuracy, workbooks in (("heldout", 0.5, 2), ("development", 1.0, 1)):
        of_set = report.sets[name]  # type: ignore[index]
        assert of_set.workbooks == workbooks
        assert list(of_set.models) == ["haiku55", "sonnet55"]
        for model in of_set.models.values():
            assert model.encodings["csv"].accuracy == accuracy
            assert model.against["csv"].workbooks == workbooks
    assert report.sets["development"].models["haiku55"].against["csv"].reason == "one workbook"


def test_a_pair_that_was_planned_out_has_no_row() -> None:
    out = PlannedOut(model="reader", encoding="markitdown", reason="it has no decoder")
    plan = manifest(models=["reader", "haiku55"], matrix={"planned_out": [out]})
    models = analyse(plan, all_records(plan)).sets["development"].models
    assert "markitdown" not in models["reader"].encodings
    assert "markitdown" not in models["reader"].against
    assert "markitdown" in models["haiku55"].against


def test_notes_travel_with_the_numbers() -> None:
    plan = manifest(models=["reader", "haiku45", model_entry("own", vendor="compat", note=None)])
    models = analyse(plan, all_records(plan)).sets["development"].models
    assert models["reader"].note == "reader: a program; ceiling accuracy, nominal prices"
    assert models["haiku45"].status == "apart"
    assert models["own"].note is None


def test_tokenizer_counts_are_set_against_csv() -> None:
    plan = manifest(encodings=["csv", "toon"], workbooks=["a", "b"])
    records = [record(planned, counted=400 if planned.encoding == "csv" else 300) for planned in plan.matrix.cells()]
    (counted,) = only_model(analyse(plan, records)).encodings["toon"].counted
    assert counted.counter == "toktok-rs 0.3.0 o200k_base"
    assert (counted.tokens, counted.over_csv) == (300, 0.75)


def test_frontier_and_resources_of_a_worked_example() -> None:
    """Worked out by hand: passes, tokens, cached, micro-dollars, start and length in milliseconds."""
    rows = [
        (1, 900, 100, 300, 2000, 0, 20000),
        (1, 1100, 140, 0, 2500, 5000, 30000),
        (0, 1000, 401, 500, 4001, 10000, 61000),
        (1, 950, 90, None, 1900, 40000, 10000),
        (0, 870, 77, 0, 1600, 60000, 40000),
    ]
    plan = manifest(encodings=["csv"], workbooks=list("abcde"))
    records = [
        record(
            cell(workbook=name),
            (float(right),),
            cost=cost * 1000,
            start=start / 1000,
            seconds=length / 1000,
            usage=Usage(input=inputs, output=outputs, cached=cached),
        )
        for name, (right, inputs, outputs, cached, cost, start, length) in zip("abcde", rows, strict=True)
    ]
    row = only_model(analyse(plan, records)).encodings["csv"]
    frontier, used = row.frontier, row.resources
    assert frontier is not None
    assert used is not None
    assert (frontier.calls, frontier.passes) == (5, 3)
    assert frontier.cost_per_call == pytest.approx(0.0024002)
    assert frontier.cost_per_pass == pytest.approx(0.004000333, rel=1e-6)
    assert frontier.tokens_per_call == 1125
    assert (used.input_per_call, used.output_per_call) == (964, 161)
    assert used.cached_share == pytest.approx(0.165975, abs=5e-7)
    assert (used.median_seconds, used.p90_seconds) == (30, 40)
    assert used.summed_seconds == 161
    assert used.cost == pytest.approx(0.012001)


def test_an_unknown_share_of_cached_tokens_is_not_0() -> None:
    report = analyse(manifest(encodings=["csv"], workbooks=["a"]), [record(cell())])
    used = only_model(report).encodings["csv"].resources
    assert used is not None
    assert used.cached_share is None


def test_the_order_of_the_records_changes_nothing() -> None:
    plan = manifest(models=["haiku55", "reader"], encodings=SIX, workbooks=list("abcde"), repeats=2)
    records = all_records(plan)
    records += [fault(records[3].cell, start=0.5), record(records[5].cell, (0.1,), start=0.1)]
    expected = analyse(plan, records).model_dump_json()
    for seed in range(3):
        shuffled = list(records)
        random.Random(seed).shuffle(shuffled)
        assert analyse(plan, shuffled).model_dump_json() == expected


def test_a_run_in_which_nothing_was_called() -> None:
    plan: Manifest = manifest()
    report = analyse(plan, [])
    assert report.cells.not_run == report.cells.planned == 6
    assert report.sets["development"].models == {}
    assert not report.publishable


def test_a_model_of_which_every_call_faulted_is_shown_without_numbers() -> None:
    plan = manifest()
    model = only_model(analyse(plan, [fault(planned) for planned in plan.matrix.cells()]))
    assert model.encodings["csv"].accuracy is None
    assert model.encodings["csv"].faults == {"timeout": 2}
    assert model.against["csv"].verdict is None


def test_limitations_name_size_synthetic_share_prices_and_agents() -> None:
    books = [workbook_entry("made", synthetic=True), workbook_entry("rw_x", "heldout", questions=7)]
    plan = manifest(workbooks=books, encodings=["cellprose_lean_gfm", "agent_xlsx", "csv"])
    text = " ".join(analyse(plan, []).limitations)
    assert "1 held-out workbook (7 questions) and 1 development workbook (4 questions)" in text
    assert "1 of 2 workbooks are synthetic" in text
    assert "2026-10-11" in text
    assert "agent loop" in text
    assert "tokenizer" in text
    assert "No open-weight model" in text
    hosted = manifest(models=[model_entry("own", vendor="compat", model_id="qwen-9", prices_checked=None)])
    text = " ".join(analyse(hosted, []).limitations)
    assert "own (qwen-9)" in text
    assert "never checked" in text


def test_an_offline_models_ceiling_is_taken_without_computed_questions() -> None:
    plan = manifest(["reader", "haiku55"])
    first, second, *others = plan.matrix.workbooks
    workbooks = [
        first.model_copy(update={"questions": 2, "computed": ["q1"]}),
        second.model_copy(update={"questions": 2, "computed": ["q1", "q2"]}),
        *others,
    ]
    plan = plan.model_copy(update={"matrix": plan.matrix.model_copy(update={"workbooks": workbooks})})
    marks = {"scores": {"q1": 0.0, "q2": 1.0}, "kinds": {"q1": "value", "q2": "value"}, "accuracy": 0.5}
    report = analyse(plan, [record(cell).model_copy(update=marks) for cell in plan.matrix.cells()])
    (found,) = report.sets.values()
    reader, haiku = (found.models[name].encodings["csv"] for name in ("reader", "haiku55"))
    assert haiku.accuracy == 0.5
    assert haiku.workbooks == len(workbooks)
    assert reader.workbooks == len(workbooks) - 1  # the second has nothing that a text could answer
    assert reader.accuracy == (1 + 0.5 * len(others)) / (1 + len(others))
    assert report.complete


STRANGE = Host(scheme="http", host="10.0.0.7", port=8080)


@pytest.mark.parametrize("mode", ["final", "live"])
@pytest.mark.parametrize(
    ("host", "strange"),
    [(STRANGE, True), (Host(scheme="https", host="api.anthropic.com", port=443), False), (None, False)],
)
def test_a_final_call_that_went_elsewhere_is_a_deviation_whatever_was_planned(
    mode: str, host: Host | None, strange: bool
) -> None:
    plan = manifest(mode=mode)
    first, *rest = all_records(plan)
    report = analyse(plan, [first.model_copy(update={"host": host}), *rest])
    told = [deviation for deviation in report.deviations if "calls went to" in deviation]
    said = strange and mode == "final"
    assert told == (["calls went to http://10.0.0.7:8080, which is not anthropic's own"] if said else [])
    assert report.publishable is not said


@pytest.mark.parametrize(
    ("kind", "problem", "cost"),
    [
        ("truncated", "half", None),
        ("refused", "missing", None),
        ("truncated", None, 0),
        ("api_error", "half", 0),
        ("context_exceeded", "missing", 0),
    ],
)
def test_a_failure_whose_reply_told_no_usage_has_an_unknown_cost(
    kind: str, problem: str | None, cost: float | None
) -> None:
    plan = manifest(encodings=["csv"], workbooks=["a"])
    (cell,) = plan.matrix.cells()
    found = failure(cell, kind, cost=None, tokens=(None, None, None))
    found = found.model_copy(update={"usage": Usage.model_validate({"problem": problem})})
    (model,) = analyse(plan, [found]).sets["development"].models.values()
    assert model.encodings["csv"].cost_per_call == cost


def test_what_is_assumed_of_calls_is_summed_and_counted() -> None:
    plan = manifest(encodings=["csv"], workbooks=["a", "b"])
    one, two = plan.matrix.cells()
    records = [
        record(one, cost=None, assumed_nanousd=3_000_000),
        fault(two, cost=None, assumed_nanousd=4_000_000),
        record(two, cost=1_000_000, start=9),
    ]
    report = analyse(plan, records)
    assert (report.spent, report.unreported, report.assumed) == (0.001, 2, 0.007)

"""What a run may cost, is expected to cost and did cost: shown first, never exceeded, said afterwards."""

from __future__ import annotations

import inspect
import json
import re
import textwrap
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pytest_cellprose import hookspecs
from tests.integration.conftest import HOUSE, Bench, own_workers
from tests.integration.test_gate import committed

USAGE_ERROR = 4
LIVE = ("--cellprose-live", "--cellprose-models", "house", "--cellprose-encodings", "csv,none")
CALL = 1000 * 1000 + 20 * 2000
"""Nano-dollars of every call to the house: 1,000 tokens in at $1, 20 out at $2 per million."""


@pytest.fixture
def house(bench: Bench) -> Bench:
    bench.pytester.makeconftest(HOUSE)
    return bench


def expected_of(record: dict[str, Any], output: int) -> int:
    return int(record["counted_tokens"]["n"] * 1000 + output * 2000)


def calls(bench: Bench) -> int:
    log = bench.pytester.path / "calls.log"
    return len(log.read_text().splitlines()) if log.exists() else 0


def ledger(bench: Bench) -> dict[str, Any]:
    return bench.written("ledger.json")  # type: ignore[no-any-return]


def kinds(bench: Bench) -> list[str | None]:
    return [record["outcome"]["kind"] for record in bench.records()]


def shown_in(text: str, pattern: str) -> Decimal:
    found = re.search(pattern, text)
    assert found is not None, text
    return Decimal(found[1])


# --- before the first call


def test_costs_are_shown_per_model_and_encoding_and_in_all_before_any_call(
    house: Bench, workers: tuple[str, ...]
) -> None:
    header = ("cellprose: expected cost of the plan:", "cellprose:   house *4 cells  expected $*, worst case $*")
    result = house.run(*LIVE)
    result.stdout.fnmatch_lines(
        [
            *header,
            "cellprose:       csv $0.0* ($0.0*), none $0.0* ($0.0*)",
            "cellprose:   in all *4 cells  expected $*, worst case $*",
            "cellprose:   (input counted with o200k_base, output assumed: 100 tokens a call and 250 a question; worst*",
            "2 workers ?4 items?" if workers else "collected 4 items",
        ]
    )
    records = house.records()
    text = result.stdout.str()
    expected = sum(expected_of(record, 100 + 5 * 250) for record in records)
    worst = sum(expected_of(record, 4000) for record in records)
    shown = shown_in(text, r"in all .*expected \$([\d.]+),")
    assert shown == round(Decimal(expected) / 10**9, -shown.as_tuple().exponent)  # type: ignore[operator]
    shown = shown_in(text, r"in all .*worst case \$([\d.]+)")
    assert shown == round(Decimal(worst) / 10**9, -shown.as_tuple().exponent)  # type: ignore[operator]


def test_a_development_run_shows_costs_in_its_plan_and_not_in_its_header(house: Bench) -> None:
    arguments = ("--cellprose-models", "reader,house", "--cellprose-encodings", "csv,none")
    plan = house.run("--collect-only", *arguments)
    plan.stdout.fnmatch_lines(["  house *4 cells  expected $*", "      csv $*, none $*", "  in all *"])
    assert not any("expected cost" in line for line in house.run(*arguments).outlines)
    assert calls(house) == 0


def test_recorded_calls_replace_the_assumed_output(house: Bench) -> None:
    assert house.run(*LIVE, "--cellprose-reps", "2").ret == 0
    records = [record for record in house.records() if record["cell"]["repeat"] == 1]
    result = house.run("--collect-only", *LIVE)
    text = result.stdout.str()
    assert "output per question as in the recorded calls of 1 earlier run: house (8)" in " ".join(text.split())
    expected = sum(expected_of(record, 20) for record in records)
    shown = shown_in(text, r"in all .*expected \$([\d.]+),")
    assert shown == round(Decimal(expected) / 10**9, -shown.as_tuple().exponent)  # type: ignore[operator]


def test_the_header_names_caps_with_their_greatest_overshoot(house: Bench, workers: tuple[str, ...]) -> None:
    result = house.run(*LIVE, "--cellprose-vendor-cap-usd", "house=0.5")
    assert result.ret == 0
    line = next(line for line in result.outlines if "cap for house" in line)
    assert line.startswith("cellprose: cap for house: $0.50, to be exceeded by $0.")
    in_flight = int(shown_in(line, r"\((\d+) calls? in flight"))
    assert (2 if workers else 1) <= in_flight <= 4
    # a call can cost 4,000 tokens of output where 1,350 are expected
    overshoot = shown_in(line, r"exceeded by \$([\d.]+)")
    most = Decimal(in_flight * (4000 - 1350) * 2000) / 10**9
    assert overshoot == round(most, -overshoot.as_tuple().exponent)  # type: ignore[operator]
    assert "stop short" not in result.stdout.str()


def test_a_cap_below_the_expected_cost_is_said_before_it_stops_the_run(house: Bench) -> None:
    result = house.run("--collect-only", *LIVE, "--cellprose-vendor-cap-usd", "house=0.001")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*the cap for house is below the expected $*: the run will stop short*"])


@pytest.mark.parametrize("quiet", ["-q", "-qq", "--no-header"])
def test_costs_are_said_before_the_first_call_of_a_quiet_run_too(house: Bench, quiet: str) -> None:
    result = house.run(*LIVE, quiet, "--cellprose-vendor-cap-usd", "house=1")
    assert result.ret == 0
    told = "\n".join(result.outlines).split("cells/test_cells.py" if quiet == "--no-header" else "[100%]")[0]
    for text in ("expected cost of the plan:", "expected $0.0", "worst case $0.0", "cap for house: $1.00"):
        assert told.count(text) >= 1, told
    assert result.stdout.str().count("expected cost of the plan") == 1


def test_a_quiet_development_run_stays_quiet(house: Bench) -> None:
    result = house.run("-q", "--cellprose-models", "reader", "--cellprose-encodings", "csv")
    assert not any(line.startswith("cellprose:") for line in result.outlines)


# --- caps


def test_a_cap_stops_calls_and_the_run_says_that_it_is_incomplete(house: Bench) -> None:
    # a call is expected to cost some $0.0031 and costs $0.00104: the fourth does not fit
    result = house.run(*LIVE, "--cellprose-reps", "2", "--cellprose-vendor-cap-usd", "house=0.006")
    assert result.ret == 1
    spent = ledger(house)["vendors"]["house"]
    assert 2 <= calls(house) < 8
    assert kinds(house).count(None) == calls(house) == spent["calls"]
    assert kinds(house).count("spend_cap") == 8 - calls(house)
    assert spent["spent"] == calls(house) * CALL <= 6_000_000
    assert sum(record["cost_nanousd"] or 0 for record in house.records()) == spent["spent"]
    assert ledger(house)["open"] == {}
    result.stdout.fnmatch_lines(
        [
            "*was not started: spend_cap: house: $* spent, $* reserved*over the cap of $0.0060*",
            "cells kept from starting: * by a vendor's cap: this run is incomplete and is not*",
            "a vendor's cap: * calls of house not started: spend_cap, $* of $0.00600*",
            "incomplete, so there is no headline: *",
        ]
    )
    verdicts = house.written("verdicts.json")
    assert (verdicts["complete"], verdicts["publishable"]) == (False, False)
    assert any("by a vendor's cap" in deviation for deviation in verdicts["deviations"])


@own_workers
def test_workers_share_one_ledger(house: Bench) -> None:
    arguments = (*LIVE, "--cellprose-reps", "4", "--cellprose-vendor-cap-usd", "house=0.01", "-n", "4")
    assert house.run(*arguments).ret == 1
    spent = ledger(house)["vendors"]["house"]
    assert spent["spent"] == calls(house) * CALL <= 10_000_000
    assert kinds(house).count(None) == calls(house)
    assert len(house.records()) == 16


def test_a_refused_call_is_a_fault_in_a_final_run_too(house: Bench) -> None:
    committed(house)
    result = house.run("--cellprose-final", *LIVE[1:], "--cellprose-vendor-cap-usd", "house=0")
    assert result.ret == 1
    assert {(r["outcome"]["status"], r["outcome"]["kind"]) for r in house.records()} == {("fault", "spend_cap")}
    assert all(record["scores"] is None for record in house.records())
    assert calls(house) == 0
    result.stdout.fnmatch_lines(["not publishable"])


def test_the_offline_reader_never_meets_a_cap(house: Bench) -> None:
    arguments = ("--cellprose-models", "reader,house", "--cellprose-encodings", "csv")
    result = house.run(
        "--cellprose-live", *arguments, "--cellprose-vendor-cap-usd", "house=0", "--cellprose-wall-clock", "0"
    )
    assert result.ret == 1
    outcomes = {(r["cell"]["model"], r["outcome"]["status"]) for r in house.records()}
    assert outcomes == {("reader", "scored"), ("house", "fault")}


def test_an_offline_run_keeps_no_ledger(house: Bench) -> None:
    assert house.run("--cellprose-models", "reader", "--cellprose-encodings", "csv").ret == 0
    assert list(house.results.glob("*/ledger.json")) == []


def test_a_call_without_reported_tokens_counts_as_expected(bench: Bench) -> None:
    bench.pytester.makeconftest(HOUSE.replace("usage=Usage(input=1000, output=20)", "usage=Usage()"))
    assert bench.run(*LIVE).ret == 0
    spent = ledger(bench)["vendors"]["house"]
    assert spent["spent"] == 0
    assert spent["assumed"] == sum(expected_of(record, 1350) for record in bench.records())


def test_a_bug_of_a_provider_settles_its_call(bench: Bench) -> None:
    bench.pytester.makeconftest(HOUSE.replace("        return Reply(", "        raise KeyError('x')\n        Reply("))
    assert bench.run(*LIVE, "--cellprose-vendor-cap-usd", "house=1").ret == 1
    books = json.loads(next(bench.results.glob("*/ledger.json")).read_text())
    assert books["open"] == {}
    assert books["vendors"]["house"]["assumed"] > 0


@own_workers
def test_the_call_of_a_worker_that_dies_stays_reserved(bench: Bench) -> None:
    bench.pytester.makeconftest(
        HOUSE.replace("        return Reply(", "        import os; os._exit(1)\n        Reply(")
    )
    result = bench.run(*LIVE, "-k", "csv", "-n", "1", "--cellprose-inflight=1", "--max-worker-restart", "0")
    assert result.ret == 1
    assert kinds(bench) == ["interrupted"]
    result.stdout.fnmatch_lines(
        [
            "3 planned cells not run: *",
            "1 call under way in a process that died, maybe billed: house-csv-alpha-rep1",
        ]
    )
    (path,) = bench.results.glob("*/ledger.json")
    books = json.loads(path.read_text())
    assert [held["cell"] for held in books["open"].values()] == ["house-csv-alpha-rep1"]


# --- other bounds


def test_the_wall_clock_bounds_live_calls(house: Bench) -> None:
    result = house.run(*LIVE, "--cellprose-wall-clock", "0")
    assert result.ret == 1
    assert set(kinds(house)) == {"wall_clock"}
    assert calls(house) == 0
    result.stdout.fnmatch_lines(["cells kept from starting: 4 by the wall clock: *"])


def test_calls_within_the_wall_clock_start(house: Bench) -> None:
    assert house.run(*LIVE, "--cellprose-wall-clock", "3600").ret == 0


def test_a_plugin_may_refuse_calls(house: Bench, workers: tuple[str, ...]) -> None:
    example = textwrap.dedent((inspect.getdoc(hookspecs.pytest_cellprose_admit) or "").partition("::")[2])
    assert "return 40" in example
    house.pytester.makeconftest(HOUSE + example)
    assert workers or house.run(*LIVE).ret == 0
    house.pytester.makeconftest(HOUSE + example.replace("return 40", "return 80"))
    result = house.run(*LIVE)
    assert result.ret == 1
    result.assert_outcomes(failed=4)  # and none rerun
    refused = [record for record in house.records() if record["outcome"]["kind"] == "window_full"]
    assert len(refused) == len({str(record["cell"]) for record in refused}) == 4
    for record in refused:
        assert record["attempts"] == 0
        assert record["outcome"]["not_started"] == {
            "by": "the window's keeper", "limit": 80, "used": 80, "unit": "%", "resets": None,
        }  # fmt: skip
    result.stdout.fnmatch_lines(
        [
            "*window_full: 80 % of the window of house is used*",
            "cells kept from starting: 4 by the window's keeper: this run is incomplete*",
            "the window's keeper: 4 calls of house not started: window_full, 80 of 80 % used",
        ]
    )
    path = max(house.results.glob("*/report.json"))
    report = json.loads(path.read_text(encoding="utf-8"))
    assert (report["cells"]["refused"], report["cells"]["faulted"], report["faults"]) == (4, 0, [])
    (block,) = report["refused"]
    assert (block["vendor"], block["limit"], block["used"], len(block["cells"])) == ("house", 80, 80, 4)
    assert "| the window's keeper |" in path.with_name("report.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", ["authentication", "interrupted", "encoding", "spend_cap"])
def test_a_plugin_may_call_its_refusal_what_it_likes(house: Bench, kind: str) -> None:
    """It stops no other call, is made once a run, and a resumed run makes the calls."""
    refusing = f"""
from pytest_cellprose import Refusal
from datetime import datetime, timezone
import math

def pytest_cellprose_admit(call):
    if call.cell.workbook == "alpha" and not Path(__file__).with_name("open").exists():
        return Refusal({kind!r}, "not\x1b[2Jnow", limit=math.nan, used=object(), unit=7,
                       resets=datetime(2026, 12, 1, 15, tzinfo=timezone.utc))
"""
    house.pytester.makeconftest(HOUSE + refusing)
    result = house.run(*LIVE)
    result.assert_outcomes(passed=2, failed=2)
    assert kinds(house).count(kind) == 2
    assert "\x1b[2J" not in result.stdout.str()
    (block,) = house.written("report.json")["refused"]
    assert block["resets"] == "2026-12-01T15:00:00+00:00"
    (house.pytester.path / "open").touch()
    (manifest,) = (house.results / "runs").glob("*.json")
    result = house.run(*LIVE, f"--cellprose-resume={manifest.stem}")
    result.assert_outcomes(passed=4)
    assert calls(house) == 4


# --- options


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--cellprose-vendor-cap-usd", "house"), ["--cellprose-vendor-cap-usd", "vendor=dollars"]),
        (("--cellprose-vendor-cap-usd", "house=lots"), ["--cellprose-vendor-cap-usd", "house=lots"]),
        (("--cellprose-vendor-cap-usd", "house=1,house=2"), ["--cellprose-vendor-cap-usd"]),
        (("--cellprose-vendor-cap-usd", "antropic=1"), ["antropic", "anthropic, house, openai"]),
        (("--cellprose-wall-clock", "soon"), ["--cellprose-wall-clock", "soon"]),
        (("--cellprose-wall-clock", "nan"), ["--cellprose-wall-clock", "nan"]),
        (("--cellprose-openweight", "q=q-8b"), ["--cellprose-openweight", "'q=q-8b'", "price_in"]),
        (
            ("--cellprose-openweight", "haiku55=q-8b,1,2"),
            ["--cellprose-openweight", "the name 'haiku55' is the protocol's"],
        ),
        (("--cellprose-effort", "turbo", "--cellprose-models", "haiku55"), ["haiku55", "turbo"]),
        (
            ("--cellprose-effort", "low", "--cellprose-models", "haiku55@high,reader"),
            ["'haiku55@high' asks for effort 'high'", "--cellprose-effort for 'low'"],
        ),
        (
            ("--cellprose-effort", "low", "--cellprose-models", "haiku55@low,haiku55"),
            ["given twice: 'haiku55@low'"],
        ),
    ],
)
def test_a_wrong_option_is_named(house: Bench, arguments: tuple[str, ...], told: list[str]) -> None:
    result = house.run(*arguments)
    assert result.ret == USAGE_ERROR
    for text in told:
        assert text in result.stderr.str()
    assert not house.results.exists()


def ids(bench: Bench, *arguments: str) -> list[str]:
    result = bench.run("--collect-only", "-q", "--cellprose-encodings", "csv", "-k", "alpha", *arguments)
    assert result.ret == 0
    return [line.partition("[")[2].partition("-csv")[0] for line in result.outlines if "::" in line]


def test_an_open_weight_model_is_planned_beside_the_others_or_when_named(bench: Bench) -> None:
    qwen = ("--cellprose-openweight", "qwen=Qwen/Qwen3-8B,0.05,0.4")
    assert ids(bench, *qwen)[-2:] == ["gpt6astra", "qwen"]
    assert ids(bench, *qwen, "--cellprose-models", "reader,qwen") == ["reader", "qwen"]
    assert ids(bench, *qwen, "--cellprose-models", "reader") == ["reader"]


def test_an_effort_for_all_models_is_part_of_their_ids(bench: Bench) -> None:
    found = ids(bench, "--cellprose-effort", "low", "--cellprose-models", "reader,haiku55,gpt6luna@low")
    assert found == ["reader", "haiku55@low", "gpt6luna@low"]


def test_models_of_a_users_own_file(house: Bench) -> None:
    house.pytester.makepyprojecttoml('[tool.pytest]\ntestpaths = ["cells"]\ncellprose_registry = ["models.toml"]\n')
    own = house.pytester.path / "models.toml"
    own.write_text('[small]\nmodel_id = "house-1b"\nvendor = "house"\ninput = "0.5"\noutput = "3"\n')
    arguments = ("--cellprose-live", "--cellprose-models", "small", "--cellprose-encodings", "csv")
    assert house.run(*arguments).ret == 0
    assert {record["cost_nanousd"] for record in house.records()} == {1000 * 500 + 20 * 3000}
    own.write_text(
        '[small]\nmodel_id = "house-1b"\nvendor = "house"\ninput = "0.5"\n\n[house]\ninput = 1\noutput = 1\n'
    )
    result = house.run(*arguments)
    assert result.ret == USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*ini cellprose_registry: *models.toml: model 'small' has no price*", "*models.toml: model 'house': model_id*"]
    )


@pytest.mark.parametrize(
    ("prices", "told"),
    [("input='0', output='0'", "has no price"), ("input='a', output='0'", "input: 'a' is no price")],
)
def test_a_model_of_a_hook_without_a_price_is_refused(bench: Bench, prices: str, told: str) -> None:
    bench.pytester.makeconftest(HOUSE.replace('prices=Prices(input="1", output="2")', f"prices=Prices({prices})"))
    result = bench.run()
    assert result.ret == USAGE_ERROR
    result.stderr.fnmatch_lines([f"*hook pytest_cellprose_models: model 'house'*{told}*"])


# --- what is said for the record


def test_a_final_plan_names_its_cuts_and_what_rules_it_out(bench: Bench) -> None:
    plan = ("--collect-only", "--cellprose-final", "--cellprose-reps", "2", "--cellprose-encodings")
    result = bench.run(*plan, "cellprose_lean_gfm,csv,none", "--cellprose-models", "haiku55,sonnet55,gpt6luna,gpt61sol")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "cellprose: deviation: scope cut: the plan of haiku55, sonnet55, gpt6luna, gpt61sol (without *",
            "cellprose: deviation: scope cut: markdown dropped",
            "cellprose: deviation: scope cut: 2 repeats instead of 3",
            "cellprose: deviation: prices of haiku55, sonnet55, gpt6luna, gpt61sol checked on 2026-10-11, not on *",
            "cellprose: not publishable: the held-out set is not the frozen one: *; markitdown absent; agent_xlsx *",
        ]
    )
    result = bench.run(*plan, "markdown,none", "--cellprose-models", "haiku55,opus55,gpt6luna")
    result.stdout.fnmatch_lines(
        ["cellprose: not publishable: *OpenAI without a top model*; csv dropped before markdown: *"]
    )


def test_the_manifest_has_caps_estimate_and_the_check_of_the_prices(house: Bench) -> None:
    arguments = (*LIVE, "--cellprose-vendor-cap-usd", "house=2.50,openai=0", "--cellprose-wall-clock", "60")
    assert house.run(*arguments).ret == 0
    (path,) = Path(house.results / "runs").glob("*.json")
    settings = json.loads(path.read_text())["settings"]
    assert settings["vendor_cap_usd"] == {"house": "2.50", "openai": "0"}
    assert settings["wall_clock_seconds"] == 60
    assert settings["output_estimate"].startswith("output assumed")
    assert settings["price_check"]["table"].startswith("genai-prices ")
    assert settings["price_check"]["unknown"] == ["house"]

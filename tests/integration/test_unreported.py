"""Calls whose tokens nobody told: their cost is unknown, it is assumed, and every sum says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import HOUSE, Bench, one_process
from tests.providers.vendor_server import MESSAGES, RESPONSES, Answer, VendorServer, stream

IN_ORDER = "--cellprose-inflight=1"
MODELS = ("--cellprose-live", "--cellprose-openweight=open=some/model-7b,0.20,0.60", IN_ORDER)
AS_ERRORS = ("-Werror", "-Wignore::ResourceWarning", "-Wignore::pytest.PytestUnraisableExceptionWarning")
"""Of connections that other tests left behind nothing is said here."""
TEXT = '{"q1": -1, "q2": "Model!B5"}'


def telling(sent: object, got: object) -> Any:
    """A whole stream with these counts, in the protocol that is spoken."""

    def play(handler: Any, body: dict[str, Any]) -> None:
        chat = handler.path not in (MESSAGES, RESPONSES)
        names = ("prompt_tokens", "completion_tokens") if chat else ("input_tokens", "output_tokens")
        stream(Answer(text=TEXT, usage=dict(zip(names, (sent, got), strict=True))))(handler, body)

    return play


@one_process("what each vendor's module makes of a count")
@pytest.mark.parametrize(
    ("sent", "got", "problem"),
    [
        (-5, 1, "not_a_count"),
        (None, 100, "half"),
        (1000, None, "half"),
        (float("inf"), 5, "not_a_count"),
        (float("nan"), 5, "not_a_count"),
        (10**18, 5, "too_many"),
        (0, 0, "zero"),
        (0, 5, "zero"),
        (True, 5, "not_a_count"),
        (100.5, 5, "not_a_count"),
        ("100", 5.0, None),
    ],
)
def test_half_reported_and_absurd_usage_is_unreported_in_every_protocol(
    bench: Bench, server: VendorServer, sent: object, got: object, problem: str | None
) -> None:
    server.default = telling(sent, got)
    models = "--cellprose-models=haiku55,gpt6luna,open"
    result = bench.run(*MODELS, models, "--cellprose-encodings=csv", "--cellprose-workbooks=alpha", *AS_ERRORS)
    assert result.ret == 0
    records = bench.records()
    assert len(records) == 3
    for record in records:
        usage = record["usage"]
        assert record["outcome"]["status"] == "scored"
        assert record["scores"]["q2"] == 1.0
        assert usage["problem"] == problem
        assert usage["raw"] is not None
        if problem is None:
            assert (usage["input"], usage["output"], record["assumed_nanousd"]) == (100, 5, None)
        else:
            assert (usage["input"], usage["output"]) == (None, None)
            assert record["cost_nanousd"] is record["cost_as_billed_nanousd"] is None
            assert record["assumed_nanousd"] > 0
    ledger = bench.written("ledger.json")["vendors"]
    assumed = {record["cell"]["model"]: record["assumed_nanousd"] or 0 for record in records}
    vendors = {"haiku55": "anthropic", "gpt6luna": "openai", "open": "compat"}
    assert {vendors[alias]: cost for alias, cost in assumed.items()} == {v: a["assumed"] for v, a in ledger.items()}
    assert {account["unreported"] for account in ledger.values()} == {0 if problem is None else 1}


def test_more_input_than_the_model_takes_is_no_report(bench: Bench, server: VendorServer) -> None:
    server.script = [telling(1_000_000, 5), telling(1_000_001, 5)]
    bench.run("--cellprose-live", IN_ORDER, "--cellprose-models=haiku55", "--cellprose-encodings=csv")
    assert [record["usage"]["problem"] for record in bench.records()] == [None, "too_many"]


def test_no_cap_is_passed_by_calls_that_tell_half(bench: Bench, server: VendorServer) -> None:
    server.default = telling(None, 1)  # a call is expected to cost some $0.0008
    arguments = ("--cellprose-models=haiku55", "--cellprose-encodings=csv", "--cellprose-reps=12")
    cap = "--cellprose-vendor-cap-usd=anthropic=0.003"
    result = bench.run("--cellprose-live", IN_ORDER, *arguments, cap, "--cellprose-fault-retries=0")
    assert result.ret == 1
    measured = [record for record in bench.records() if record["outcome"]["status"] == "scored"]
    assert 1 <= len(measured) == len(server.bodies) < 24
    assert sum(record["assumed_nanousd"] for record in measured) <= 3_000_000


def test_the_summary_says_how_many_told_nothing_and_what_is_assumed(bench: Bench, server: VendorServer) -> None:
    server.script = [telling(1000, 20)]
    server.default = telling(None, None)
    arguments = ("--cellprose-models=haiku55", "--cellprose-encodings=csv", "--cellprose-reps=4")
    result = bench.run("--cellprose-live", IN_ORDER, *arguments)
    assert result.ret == 0
    report = bench.written("report.json")
    assumed = [record["assumed_nanousd"] for record in bench.records() if record["assumed_nanousd"] is not None]
    assert (report["unreported"], len(assumed)) == (7, 7)
    assert report["assumed"] == pytest.approx(sum(assumed) / 1e9)
    said = f"at least $0.000110; 7 calls reported no usage, for which ${sum(assumed) / 1e9:.5f} is assumed"
    (page,) = bench.results.glob("*/report.md")
    for text in (result.stdout.str(), page.read_text(encoding="utf-8")):
        assert f"spent in all, at list price: {said}" in " ".join(text.split()).replace("Spent", "spent")
    (row,) = report["sets"]["development"]["models"]["haiku55"]["encodings"].values()
    assert (row["cost_per_call"], row["accuracy"]) == (None, 0.2)


def test_a_failure_with_absurd_usage_is_not_for_nothing(bench: Bench, server: VendorServer) -> None:
    server.default = stream(Answer(text="{", stop="max_tokens", usage={"input_tokens": -1, "output_tokens": 5}))
    bench.run("--cellprose-live", "--cellprose-models=haiku55", "--cellprose-encodings=csv")
    assert {record["outcome"]["kind"] for record in bench.records()} == {"truncated"}
    (row,) = bench.written("report.json")["sets"]["development"]["models"]["haiku55"]["encodings"].values()
    assert row["cost_per_call"] is None


def test_counting_that_breaks_loses_no_reply(bench: Bench) -> None:
    counting = "\n    def counted_tokens(self, request):\n        raise KeyError('x')\n"
    bench.pytester.makeconftest(HOUSE.replace("class House:", f"class House:{counting}"))
    assert bench.run(*LIVE).ret == 0
    assert {(r["outcome"]["status"], r["counted_tokens"]) for r in bench.records()} == {("scored", None)}


# --- resumed runs

LIVE = ("--cellprose-live", "--cellprose-models", "house", "--cellprose-encodings", "csv,none", IN_ORDER)
CALL = 1000 * 1000 + 20 * 2000


def runs(bench: Bench) -> list[str]:
    return sorted(path.stem for path in (bench.results / "runs").glob("*.json"))


def written(bench: Bench, run: str, name: str) -> Any:
    return json.loads((bench.results / run / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("ledgers", [True, False], ids=["ledger", "records"])
def test_the_cap_of_a_resumed_run_counts_what_its_lineage_spent(bench: Bench, ledgers: bool) -> None:
    bench.pytester.makeconftest(HOUSE)
    resumed: tuple[str, ...] = ()
    for part in ("csv-alpha", "csv-beta"):  # the second goes on from the first, and the third from both
        assert bench.run(*LIVE, "-k", part, *resumed).ret == 0
        resumed = ("--cellprose-resume", runs(bench)[-1])
    first, second = runs(bench)
    if not ledgers:
        for path in bench.results.glob("*/ledger.json"):
            path.unlink()
    cap = ("--cellprose-vendor-cap-usd", f"house={(2 * CALL + 3_200_000) / 1e9:.9f}")  # the lineage, and one call more
    result = bench.run(*LIVE, *resumed, *cap)
    assert result.ret == 1
    last = runs(bench)[-1]
    accounts = {earlier["run"]: earlier["accounts"]["house"]["spent"] for earlier in manifest(bench, last)["lineage"]}
    assert accounts == {second: CALL, first: CALL}
    assert list(accounts) == [second, first]
    assert written(bench, last, "ledger.json")["vendors"]["house"]["calls"] == 1
    result.stdout.fnmatch_lines(
        [
            "cellprose: cap for house: $0.0053 (of this $0.0021 spent by the runs that this one goes on from), *",
            "*spend_cap: house: $0.0021 spent by the runs that this one goes on from, $0.0010 spent, *",
        ]
    )


def manifest(bench: Bench, run: str) -> Any:
    return json.loads((bench.results / "runs" / f"{run}.json").read_text(encoding="utf-8"))


def test_what_a_run_spent_names_the_runs_that_it_goes_on_from(bench: Bench) -> None:
    bench.pytester.makeconftest(HOUSE.replace("usage=Usage(input=1000, output=20)", "usage=Usage(input=7)"))
    bench.run(*LIVE, "-k", "csv-alpha")
    (first,) = runs(bench)
    bench.pytester.makeconftest(HOUSE)
    result = bench.run(*LIVE, "--cellprose-resume", first)
    assert result.ret == 0
    last = runs(bench)[-1]
    said = f"$0.00312; not included: at least $0.00 by run {first}, which it goes on from"
    for text in (result.stdout.str(), Path(bench.results / last / "report.md").read_text(encoding="utf-8")):
        assert f"in all, at list price: {said}" in " ".join(text.split())
    assert written(bench, last, "report.json")["spent"] == pytest.approx(3 * CALL / 1e9)

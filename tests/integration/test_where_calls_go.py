"""Where prompts go and what a key does: hosts on record, redirects that are not followed, replies as they came."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from pytest_cellprose.providers.hosts import OWN_ADDRESSES
from tests.integration.conftest import Bench, as_written
from tests.integration.test_live_models import committed, everything_written
from tests.providers.vendor_server import Answer, VendorServer, serving, stream

IN_ORDER = "--cellprose-inflight=1"
LUNA = ("--cellprose-models=gpt6luna", "--cellprose-encodings=csv", IN_ORDER)
FINAL = ("--cellprose-final", "--cellprose-reps=2", "--cellprose-allow-dirty", *LUNA)


def manifests(bench: Bench) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted((bench.results / "runs").glob("*.json"))]


def told_of(server: VendorServer) -> dict[str, Any]:
    port = int(server.address.rpartition(":")[2])
    return {"scheme": "http", "host": "127.0.0.1", "port": port}


# --- hosts


def test_the_host_of_each_vendor_is_on_record_before_the_first_call(
    bench: Bench, server: VendorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_the_call: list[Any] = []

    def look(handler: Any, body: dict[str, Any]) -> None:
        at_the_call.append(manifests(bench)[0]["hosts"])
        stream(Answer(text='{"q1": -1}'))(handler, body)

    server.default = look
    monkeypatch.setenv("OPENAI_BASE_URL", server.address.replace("//", "//me:secret-word@") + "/v1?token=secret-word")
    models = "--cellprose-models=reader,haiku55,gpt6luna,open"
    open_model = "--cellprose-openweight=open=some/model-7b,0.20,0.60"
    bench.run("--cellprose-live", open_model, models, "--cellprose-encodings=csv", IN_ORDER)
    assert at_the_call[0] == dict.fromkeys(("anthropic", "compat", "openai"), told_of(server))
    hosts = {record["cell"]["model"]: record["host"] for record in bench.records()}
    assert hosts == {"reader": None, **dict.fromkeys(("haiku55", "gpt6luna", "open"), told_of(server))}
    assert bench.written("report.json")["publishable"] is False
    assert not any("calls went to" in deviation for deviation in manifests(bench)[0]["deviations"])
    assert "secret-word" not in everything_written(bench.results)


def test_in_a_final_run_a_strange_host_is_said_before_the_start_and_rules_publication_out(
    bench: Bench, server: VendorServer
) -> None:
    committed(bench)
    server.default = Answer(text='{"q1": -1}')
    result = bench.run(*FINAL)
    assert result.ret == 0
    deviation = f"calls went to {server.address}, which is not openai's own"
    result.stdout.fnmatch_lines([f"cellprose: not publishable: *{deviation}; *", f"*deviation: {deviation[:40]}*"])
    (manifest,) = manifests(bench)
    assert manifest["publishable"] is False
    for found in (manifest, bench.written("report.json"), bench.written("verdicts.json")):
        assert found["deviations"].count(deviation) == 1


def test_in_a_final_run_the_vendor_s_own_host_is_no_deviation(
    bench: Bench, server: VendorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed(bench)
    monkeypatch.setitem(OWN_ADDRESSES, "openai", server.address)
    server.default = Answer(text='{"q1": -1}')
    assert bench.run(*FINAL).ret == 0
    assert manifests(bench)[0]["hosts"] == {"openai": told_of(server)}
    assert not any("calls went to" in deviation for deviation in bench.written("report.json")["deviations"])


@as_written
def test_a_plugin_in_a_vendor_s_place_that_tells_no_address_is_no_vendor(bench: Bench) -> None:
    bench.pytester.makeconftest(
        "from pytest_cellprose import ModelSpec, Prices\n"
        "from pytest_cellprose.providers.openai import OpenAI\n"
        "OpenAI.address = None\n"
    )
    committed(bench)
    result = bench.pytester.runpytest_subprocess("--collect-only", *FINAL)
    result.stdout.fnmatch_lines(
        ["*not publishable: *calls went to an address that is not known, which is not openai's*"]
    )


# --- redirects


def test_a_prompt_goes_to_no_host_that_nobody_named(bench: Bench, server: VendorServer) -> None:
    with serving() as other:

        def elsewhere(handler: Any, body: dict[str, Any]) -> None:
            handler.raw(307, b"", {"location": f"{other.address}/v1/responses"})

        server.default = elsewhere
        result = bench.run("--cellprose-live", *LUNA, "--cellprose-fault-retries=0")
        assert other.journal == []
    assert result.ret == 1
    assert Counter(record["outcome"]["kind"] for record in bench.records()) == {"redirect": 2}
    assert len(server.bodies) == 2
    result.stdout.fnmatch_lines(
        [f"*was not measured: redirect: *redirects to {other.address}/v1/responses (HTTP 307)*"]
    )


# --- keys


@pytest.mark.parametrize("key", ["B", "Model", "q2"])
def test_a_short_key_changes_no_answer(
    bench: Bench, server: VendorServer, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    server.default = Answer(text='{"q1": -1, "q2": "Model!B5"}', model="Model-B-q2")
    assert bench.run("--cellprose-live", *LUNA).ret == 0
    for record in bench.records():
        assert record["scores"]["q2"] == 1.0
        assert record["answers"] == {"q1": -1, "q2": "Model!B5"}
        assert (record["model"]["returned"], record["redacted"]) == ("Model-B-q2", False)


def test_a_long_key_in_a_reply_is_scored_as_it_came_stored_without_and_resumed_with_its_score(
    bench: Bench, server: VendorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "15875.00000000000000"  # the right answer to q1 of alpha, and wrong once it is taken out
    monkeypatch.setenv("OPENAI_API_KEY", key)
    server.default = Answer(text=f'{{"q1": "{key}", "q9": ["{key}"], "q2": "Model!B5"}}', model=f"m-{key}")
    bench.run("--cellprose-live", *LUNA, "--cellprose-workbooks=alpha")
    (before,) = bench.records()
    assert before["scores"]["q2"] == before["scores"]["q1"] == 1.0
    assert before["redacted"] is True
    assert before["reply"].startswith('{"q1": "[OPENAI_API_KEY]"')
    (run,) = (path.stem for path in (bench.results / "runs").glob("*.json"))
    assert bench.run("--cellprose-live", *LUNA, "--cellprose-workbooks=alpha", "--cellprose-resume", run).ret == 0
    _, after = bench.records()
    assert after["kept_from"] == run
    assert (after["scores"], after["accuracy"]) == (before["scores"], before["accuracy"])
    assert len(server.bodies) == 1
    assert key not in everything_written(bench.results)

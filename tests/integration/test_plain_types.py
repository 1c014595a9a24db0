"""What a provider or a user's test hands over is stored and passed on, whatever its types, by one process or two."""

from __future__ import annotations

import json
import logging
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import HOUSE, Bench, deselected

LIVE = ("--cellprose-live", "--cellprose-models", "house", "--cellprose-encodings", "csv,none")

STRANGE = (
    HOUSE.replace("        return Reply(", "        return strange(request)\n        Reply(")
    + """
import datetime, decimal, pathlib
import numpy
from pytest_cellprose import ModelFailure, PathFault

def strange(request):
    raw = {"n": numpy.int64(1000), "cost": decimal.Decimal("0.10"), "at": datetime.date(2026, 1, 2), 3: {1},
           "file": pathlib.PurePosixPath("a"), "text": "\\ud83d", "odd": float("nan")}
    usage = Usage(input=numpy.int64(1000), output=decimal.Decimal(20), raw=raw)
    reply = Reply(text='\\ud83d {"q1": -1, "q2": "Model!B5"}', returned_model="house\\udfff", usage=usage,
                  attempts=numpy.int64(2), limited=numpy.int64(1))
    if "=SUM" not in request.prompt and "Units" not in request.prompt:  # the control
        raise ModelFailure("refused", "no \\ud800", reply)
    if "2250" in request.prompt:  # alpha
        return reply
    raise PathFault("odd\\ud83d", "cable \\ud800", reply)
"""
)


def test_nothing_a_provider_returns_ends_the_run_or_loses_a_record(bench: Bench) -> None:
    bench.pytester.makeconftest(STRANGE)
    result = bench.run(*LIVE, "--junit-xml=junit.xml")
    assert result.ret == 1
    result.assert_outcomes(passed=3, failed=1)
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()
    by_cell = {f"{r['cell']['encoding']} {r['cell']['workbook']}": r for r in bench.records()}
    assert len(by_cell) == 4
    for record in by_cell.values():
        assert record["model"]["returned"] == "house\\udfff"
        assert record["usage"]["raw"] == {
            "n": 1000, "cost": "0.10", "at": "2026-01-02", "3": [1], "file": "a", "text": "\\ud83d", "odd": "nan",
        }  # fmt: skip
        assert (record["usage"]["input"], record["usage"]["output"]) == (1000, 20)
        assert record["cost_nanousd"] == 1000 * 1000 + 20 * 2000
        assert (record["attempts"], record["limited"]) == (2, 1)
        assert record["reply"].startswith("\\ud83d {")
    outcomes = {name: (r["outcome"]["kind"], r["outcome"]["detail"]) for name, r in by_cell.items()}
    assert outcomes == {
        "csv alpha": (None, None),
        "csv beta": ("odd\\ud83d", "cable \\ud800"),
        "none alpha": ("refused", "no \\ud800"),
        "none beta": ("refused", "no \\ud800"),
    }
    assert len(list(ElementTree.parse("junit.xml").iter("testcase"))) == 4


USERS_TESTS = r"""
import datetime, decimal, logging, pathlib, warnings
import numpy
import pytest

VALUES = {
    "number": numpy.float64(0.25), "exact": decimal.Decimal("0.10"), "day": datetime.date(2026, 1, 2),
    "file": pathlib.PurePosixPath("a/b"), "low": -(2**40), "nan": float("nan"), "text": "a\ud83d",
    "plain": 7, "list": [numpy.int64(1), {"k": {"v"}}],
}

def test_records(cell, record_property):
    cell.run()
    for name, value in VALUES.items():
        record_property(name, value)

def test_fails(cell):
    cell.run()
    print("out \ud83d")
    logging.getLogger("x").warning("logged \ud83d")
    reply = "said \ud83d"
    assert reply == "nothing"

def test_raises(cell):
    cell.run()
    raise ValueError("\udfff", decimal.Decimal(1))

def test_warns(cell):
    cell.run()
    warnings.warn("beware \ud83d")

def test_of_no_cell(record_property):
    record_property("number", numpy.float64(1))
    assert "\ud83d" == "other"

@pytest.fixture
def broken(cell):
    cell.run()
    yield
    raise ValueError("torn \ud83d")

def test_torn_down(broken):
    pass
"""


def strictly(line: str) -> dict[str, Any]:
    """JSON without Python's NaN."""
    fields: dict[str, Any] = json.loads(line, parse_constant=pytest.fail)
    return fields


def test_nothing_a_users_test_says_ends_the_run(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pytest_reportlog")
    monkeypatch.setattr(logging.root, "handlers", [])  # what is logged in there is not for the report of this test
    (bench.cells / "test_cells.py").write_text(USERS_TESTS, encoding="utf-8")
    bench.pytester.makeconftest(HOUSE)
    result = bench.run(
        *LIVE, "-k", "csv and alpha or no_cell", "-rA", "--junit-xml=junit.xml", "-o", "junit_family=xunit1",
        "--report-log=log.jsonl",
    )  # fmt: skip
    assert result.ret == 1
    result.assert_outcomes(passed=3, failed=3, errors=1, warnings=1, deselected=deselected(15))
    output = result.stdout.str() + result.stderr.str()
    assert "INTERNALERROR" not in output
    assert "assert 'said \\ud83d' == 'nothing'" in output
    assert bench.ids() == ["house-csv-alpha-rep1"]
    cases = {case.attrib["name"].partition("[")[0]: case for case in ElementTree.parse("junit.xml").iter("testcase")}
    found = {p.attrib["name"]: p.attrib["value"] for p in cases["test_records"].iter("property")}
    assert json.loads(found.pop("cellprose"))["outcome"] == "scored"
    text = found.pop("text")  # pytest's own escape in one process, ours from a worker
    assert text in ("a#xD83D", "a\\ud83d")
    assert found == {
        "number": "0.25", "exact": "0.10", "day": "2026-01-02", "file": "a/b", "low": "-1099511627776", "nan": "nan",
        "plain": "7", "list": found["list"],
    }  # fmt: skip
    logged = [strictly(line) for line in Path("log.jsonl").read_text(encoding="utf-8").splitlines()]
    (properties,) = [
        dict(entry["user_properties"])
        for entry in logged
        if entry.get("when") == "call" and "test_records" in entry["nodeid"]
    ]
    assert properties["number"] == 0.25
    assert properties["list"] == [1, {"k": ["v"]}]
    assert properties["text"] == "a\\ud83d"

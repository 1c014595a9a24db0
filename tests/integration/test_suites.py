"""Another suite than spreadsheets, from a conftest.py: planned, priced, run, resumed, reported by the same trunk."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from pytest_cellprose import hookspecs
from tests.integration.conftest import HOUSE, TEST_CELLS, deselected, run
from tests.integration.test_hooks import example_of

ANSWERS = """
import re

class House:
    def call(self, request):
        with Path(__file__).with_name("calls.log").open("a") as log:
            log.write(request.prompt + "\\n")
        left, sign, right = re.search(r"(\\d+) (\\S+) (\\d+)", request.prompt).groups()
        total = int(left) + int(right)
        said = str(total) if sign == "+" or total < 10 else "many"
        return Reply(text=said, returned_model="house-8b", usage=Usage(input=50, output=2 if sign == "+" else 8))
"""
LIVE = ("--cellprose-live", "--cellprose-models=house")


@pytest.fixture
def sums(pytester: pytest.Pytester) -> pytest.Pytester:
    """Four sums in two wordings; the model adds two-digit numbers only where it sees a plus sign."""
    pytester.makepyprojecttoml('[tool.pytest]\ntestpaths = ["cells"]\n')
    cells = pytester.mkdir("cells")
    (cells / "test_cells.py").write_text(TEST_CELLS, encoding="utf-8")
    (cells / "split.json").write_text(json.dumps({"schema": 1, "suite": "sums"}), encoding="utf-8")
    (cells / "sums.txt").write_text("one 1 2\ntwo 3 4\nthree 50 60\nfour 70 80\n", encoding="utf-8")
    provider = ANSWERS + HOUSE[HOUSE.index("def pytest_cellprose_providers") :]
    pytester.makeconftest(
        example_of(hookspecs.pytest_cellprose_suites)
        + "\nfrom pathlib import Path\nfrom pytest_cellprose import ModelSpec, Prices, Reply, Usage\n"
        + provider
    )
    return pytester


def _records(pytester: pytest.Pytester, run: str = "*") -> list[dict[str, object]]:
    files = sorted(pytester.path.glob(f"results/{run}/records-*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines() if line]


def test_it_is_planned_with_its_own_words(sums: pytest.Pytester) -> None:
    result = run(sums, "--collect-only")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "*development run of 6 models × 2 wordings × 4 sums × 1 repeat = 48 cells",
            "*test_cell?haiku55-digits-four-rep1?*",
            "*haiku55 *8 cells  expected $*",
        ]
    )


def test_it_runs_is_priced_and_reported(sums: pytest.Pytester) -> None:
    result = run(sums, *LIVE, "--cellprose-reps=2")
    assert result.ret == 0
    records = _records(sums)
    assert len(records) == len((sums.path / "calls.log").read_text().splitlines()) == 16
    scores = {(r["cell"]["encoding"], r["cell"]["workbook"]): r["scores"] for r in records}  # type: ignore[index]
    assert scores["digits", "three"] == scores["words", "one"] == {"sum": 1.0}
    assert scores["words", "three"] == scores["words", "four"] == {"sum": 0.0}
    assert {r["cost_nanousd"] for r in records} == {50 * 1000 + 2 * 2000, 50 * 1000 + 8 * 2000}
    (path,) = sums.path.glob("results/*/verdicts.json")
    found = json.loads(path.read_text(encoding="utf-8"))["sets"]["development"]
    assert (found["workbooks"], found["questions"]) == (4, 4)
    against = found["models"]["house"]["against"]["words"]
    # cost per correct 54/1.0 of the challenger over 66/0.5
    assert against["ratio"] == pytest.approx(54 / 132)
    assert against["verdict"] in ("win", "no difference")
    assert against["reason"].endswith("; 4 sums only")
    assert "csv" not in against["reason"]
    result.stdout.fnmatch_lines(["*house · development: 4 sums, 4 parts*", "*wording *accuracy*", "*digits *100.0%*"])


def test_it_resumes_and_scores_again(sums: pytest.Pytester) -> None:
    run(sums, *LIVE, "-k", "one or two")
    (first,) = (path.stem for path in sums.path.glob("results/runs/*.json"))
    assert len(_records(sums, first)) == 4
    result = run(sums, *LIVE, f"--cellprose-resume={first}")
    assert result.ret == 0
    assert len((sums.path / "calls.log").read_text().splitlines()) == 8
    later = [record for record in _records(sums) if record["run"] != first]
    assert Counter(record["kept_from"] for record in later) == {first: 4, None: 4}


def test_a_changed_task_is_another(sums: pytest.Pytester) -> None:
    run(sums, *LIVE)
    (first,) = (path.stem for path in sums.path.glob("results/runs/*.json"))
    (sums.path / "cells" / "sums.txt").write_text("one 1 3\ntwo 3 4\nthree 50 60\nfour 70 80\n", encoding="utf-8")
    run(sums, *LIVE, f"--cellprose-resume={first}")
    assert len((sums.path / "calls.log").read_text().splitlines()) == 8 + 2


def test_what_a_suite_raises_is_a_fault_of_its_cells_only(sums: pytest.Pytester) -> None:
    conftest = sums.path / "conftest.py"
    text = conftest.read_text(encoding="utf-8").replace(
        "        sign =", "        if task.name == 'two':\n            raise KeyError('no such sum')\n        sign ="
    )
    conftest.write_text(text, encoding="utf-8")
    result = run(sums, *LIVE, "--cellprose-fault-retries=0")
    result.assert_outcomes(passed=6, failed=2)
    result.stdout.fnmatch_lines(["*house-digits-two-rep1 was not measured: opening: suite 'sums' raised KeyError*"])


def test_a_check_that_raises_loses_no_reply(sums: pytest.Pytester) -> None:
    conftest = sums.path / "conftest.py"
    whole = conftest.read_text(encoding="utf-8")
    broken = "        raise KeyError(task.name)\n        return Check("
    conftest.write_text(whole.replace("        return Check(", broken), encoding="utf-8")
    result = run(sums, *LIVE, "-k", "one")
    result.assert_outcomes(failed=2, deselected=deselected(6))
    records = _records(sums)
    assert [(record["outcome"]["kind"], record["scores"]) for record in records] == [("check", None)] * 2  # type: ignore[index]
    assert {record["reply"] for record in records} == {"3"}
    assert {record["cost_nanousd"] for record in records} == {50 * 1000 + 2 * 2000, 50 * 1000 + 8 * 2000}


@pytest.mark.parametrize(
    ("split", "arguments", "told"),
    [
        ({"schema": 1, "suite": "product"}, (), "suite: none of this name is known: known are spreadsheets, sums"),
        ({"schema": 1, "suite": "sums"}, ("--cellprose-final",), "the protocol is about spreadsheets"),
        ({"schema": 1, "suite": "sums"}, ("--cellprose-encodings=csv",), "unknown wording 'csv': known are digits"),
        ({"schema": 1, "suite": "sums"}, ("--cellprose-workbooks=five",), "unknown sum 'five': known are one"),
        (
            {"schema": 1, "suite": "sums"},
            ("--cellprose-models=reader", "--cellprose-encodings=digits"),
            "the offline reader answers nothing of the suite 'sums'",
        ),
    ],
)
def test_what_is_wrong_is_named(
    sums: pytest.Pytester, split: dict[str, object], arguments: tuple[str, ...], told: str
) -> None:
    (sums.path / "cells" / "split.json").write_text(json.dumps(split), encoding="utf-8")
    result = run(sums, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert told in result.stderr.str()


def test_two_suites_are_two_runs(sums: pytest.Pytester, tmp_path: Path) -> None:
    (tmp_path / "split.json").write_text('{"schema": 1}', encoding="utf-8")
    result = run(sums, f"--cellprose-cells={tmp_path}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "one run is one suite" in result.stderr.str()


def test_the_name_of_ours_is_reserved(sums: pytest.Pytester) -> None:
    conftest = sums.path / "conftest.py"
    conftest.write_text(conftest.read_text().replace('name, axes = "sums"', 'name, axes = "spreadsheets"'))
    result = run(sums)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "spreadsheets" in result.stderr.str()
    assert "INTERNALERROR" not in result.stdout.str()


TOOLS = """
import hashlib, json
from pytest_cellprose import Check, ModelSpec, Opening, Prices, Reply, Suite, Task, Tool, ToolCall, Usage, Variant

LOG = Path(__file__).with_name("worlds.log")

class Box:
    digest = "box 1"
    def __enter__(self):
        self.gold = 0
        return self
    def __exit__(self, *why):
        with LOG.open("a") as log:
            log.write(f"{self.gold}\\n")
    def call(self, name, arguments):
        self.gold += arguments["gold"]
        return f"{self.gold} in the box"

class Boxes(Suite):
    name, axes = "boxes", ("label", "box")
    def tasks(self, folder):
        return [Task("small", "1", {"gold": "state"})]
    def variants(self):
        return [Variant("plain", "1")]
    def opening(self, task, variant):
        schema = {"type": "object", "properties": {"gold": {"type": "integer"}}, "required": ["gold"]}
        return Opening("Use the tool.", "Put 5 gold into the box.", [Tool("put", "Puts gold.", schema)])
    def world(self, task, variant):
        return Box()
    def check(self, task, episode, world):
        return Check({"gold": float(world.gold == 5)}, {"gold": world.gold})

class House:
    def call(self, request):
        usage = Usage(input=100 * (1 + len(request.turns)), output=10)
        if len(request.turns) < 2:
            calls = [ToolCall("c1", "put", json.dumps({"gold": 2 + len(request.turns)}))]
            return Reply(text="", returned_model="house-8b", usage=usage, calls=calls)
        return Reply(text="done", returned_model="house-8b", usage=usage)

def pytest_cellprose_suites():
    return [Boxes()]
"""


def test_an_opening_with_tools_is_an_episode_in_a_world_of_its_own(pytester: pytest.Pytester) -> None:
    pytester.makepyprojecttoml('[tool.pytest]\ntestpaths = ["cells"]\n')
    cells = pytester.mkdir("cells")
    (cells / "test_cells.py").write_text(TEST_CELLS, encoding="utf-8")
    (cells / "split.json").write_text('{"schema": 1, "suite": "boxes"}', encoding="utf-8")
    pytester.makeconftest("from pathlib import Path\n" + TOOLS + HOUSE[HOUSE.index("def pytest_cellprose_providers") :])
    result = run(pytester, *LIVE, "--cellprose-reps=2")
    assert result.ret == 0, result.stdout.str()
    assert (pytester.path / "worlds.log").read_text().split() == ["5", "5"]
    records = _records(pytester)
    assert [record["accuracy"] for record in records] == [1.0, 1.0]
    for record in records:
        assert record["usage"]["input"], record["usage"]["output"] == (600, 30)  # type: ignore[index]
        assert record["cost_nanousd"] == 600 * 1000 + 30 * 2000
        assert [turn["input"] for turn in record["turns"]] == [100, 200, 300]  # type: ignore[attr-defined]
        asked = [(step["name"], step["result"]["head"]) for step in record["tool_trace"]]  # type: ignore[attr-defined]
        assert asked == [("put", "2 in the box"), ("put", "5 in the box")]
        assert record["counted_tokens"] is None
    (ledger,) = pytester.path.glob("results/*/ledger.json")
    assert json.loads(ledger.read_text())["vendors"]["house"]["spent"] == 2 * (600 * 1000 + 30 * 2000)
    (first,) = (path.stem for path in pytester.path.glob("results/runs/*.json"))
    again = run(pytester, *LIVE, "--cellprose-reps=2", f"--cellprose-resume={first}")
    assert again.ret == 0
    assert len((pytester.path / "worlds.log").read_text().split()) == 2
    assert [record["accuracy"] for record in _records(pytester)] == [1.0] * 4

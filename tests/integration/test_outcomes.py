"""What a cell's outcome does to its test: letters, words, exit codes, properties, records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.conftest import HOUSE, Bench, deselected


def test_a_bare_run_measures_the_reader_and_skips_live_models_in_one_line(bench: Bench) -> None:
    result = bench.run()
    assert result.ret == 0
    result.assert_outcomes(passed=12, skipped=72)
    result.stdout.fnmatch_lines(
        ["72 live cells skipped: they would cost about $1.*, at worst $*; --cellprose-live runs them"]
    )
    assert len(bench.ids()) == 12
    assert all(name.startswith("reader-") for name in bench.ids())


def test_letters_show_scores_and_skipped_live_cells_none(bench: Bench, workers: tuple[str, ...]) -> None:
    result = bench.run("--cellprose-encodings", "cellprose_lean_gfm,csv,none", "--cellprose-workbooks", "alpha")
    # cellprose_lean_gfm: all five right; csv: value and address of five; none: nothing can be read
    if workers:  # in the order in which they come
        (line,) = [line for line in result.outlines if line.endswith("[100%]")]
        assert sorted(line.split()[0]) == sorted(".40")
    else:
        (line,) = [line for line in result.outlines if line.startswith("cells") and "test_cells.py" in line]
        assert line.split()[1] == ".40"


def verbose(cell: str, word: str, workers: tuple[str, ...]) -> str:
    """The line of a cell's test; with workers the word is before its name."""
    return f"*{word} *{cell}?*" if workers else f"*{cell}? {word}*"


def test_verbose_words_carry_the_score(bench: Bench, workers: tuple[str, ...]) -> None:
    result = bench.run("-v", "--cellprose-models", "reader", "--cellprose-encodings", "cellprose_lean_gfm,csv")
    lines = [
        verbose("reader-cellprose_lean_gfm-alpha-rep1", "SCORED 1.00", workers),
        verbose("reader-csv-alpha-rep1", "SCORED 0.40", workers),
    ]
    if workers:
        result.stdout.fnmatch_lines_random(lines)
    else:
        result.stdout.fnmatch_lines(lines)


@pytest.mark.parametrize("keys", [False, True], ids=["no-keys", "keys"])
def test_a_live_model_is_skipped_whatever_keys_are_set(
    bench: Bench, keys: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if keys:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret-1")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-2")
    result = bench.run("-k", "haiku55", "-rs")
    assert result.ret == 0
    result.assert_outcomes(skipped=12, deselected=deselected(72))
    result.stdout.fnmatch_lines(
        [
            "12 live cells skipped: they would cost about $*; --cellprose-live runs them",
            "SKIPPED *haiku55 is a live model: --cellprose-live runs it",
        ]
    )
    assert not bench.results.exists()
    assert "sk-secret" not in result.stdout.str()


def test_a_user_test_may_assert_on_the_record(bench: Bench) -> None:
    (bench.cells / "test_cells.py").write_text(
        "def test_good_enough(cell):\n    assert cell.run().accuracy >= 0.9\n", encoding="utf-8"
    )
    result = bench.run("--cellprose-models", "reader", "--cellprose-encodings", "cellprose_lean_gfm,csv")
    result.assert_outcomes(passed=2, failed=2)
    assert result.ret == 1
    assert len(bench.records()) == 4


def test_a_cell_offers_its_coordinates_and_its_record(bench: Bench) -> None:
    (bench.cells / "test_cells.py").write_text(
        "def test_cell(cell):\n"
        "    assert cell.record is None\n"
        "    record = cell.run()\n"
        "    assert record is cell.record is cell.run()\n"
        "    assert (cell.model, cell.encoding, cell.workbook, cell.repeat, cell.set) == "
        "('reader', 'csv', 'alpha', 1, 'development')\n"
        "    assert record.scores == {'q1': 1.0, 'q2': 1.0, 'q3': 0.0, 'q4': 0.0, 'q5': 0.0}\n",
        encoding="utf-8",
    )
    result = bench.run("--cellprose-models", "reader", "-k", "csv and alpha")
    result.assert_outcomes(passed=1, deselected=deselected(11))


def test_tests_that_share_a_cell_share_its_one_call(bench: Bench) -> None:
    bench.pytester.makeconftest(HOUSE)
    (bench.cells / "test_cells.py").write_text(
        "def test_one(cell):\n    cell.run()\n\ndef test_two(cell):\n    cell.run()\n", encoding="utf-8"
    )
    arguments = ["--cellprose-live", "--cellprose-models", "house", "--cellprose-encodings", "csv,none"]
    result = bench.run(*arguments)
    result.assert_outcomes(passed=8)
    assert len(bench.ids()) == 4
    assert len((bench.pytester.path / "calls.log").read_text().split()) == 4


def test_a_planned_cell_that_no_test_ran_counts_as_not_run(bench: Bench) -> None:
    (bench.cells / "test_cells.py").write_text("def test_cell(cell):\n    cell.model\n", encoding="utf-8")
    result = bench.run("--cellprose-models", "reader")
    assert result.ret == 0
    assert not bench.results.exists()


FAULTY = HOUSE.replace("    def call(self, request):\n", "    def call(self, request):\n        raise RAISED\n")


@pytest.mark.parametrize(
    ("raised", "outcome"),
    [
        ("__import__('pytest_cellprose').ModelFailure('truncated', 'cut at max_tokens')", "TRUNCATED 0.00"),
        (
            "__import__('pytest_cellprose').ModelFailure('refused', 'no', "
            "__import__('pytest_cellprose').Reply('I will not', usage=Usage(input=7, output=2)))",
            "REFUSED 0.00",
        ),
    ],
)
def test_a_model_failure_passes_with_score_zero(
    bench: Bench, raised: str, outcome: str, workers: tuple[str, ...]
) -> None:
    bench.pytester.makeconftest(FAULTY.replace("RAISED", raised))
    arguments = ["--cellprose-live", "--cellprose-models", "house", "-k", "csv and alpha"]
    result = bench.run("-v", *arguments)
    assert result.ret == 0
    result.stdout.fnmatch_lines([verbose("house-csv-alpha-rep1", outcome, workers)])
    (record,) = bench.records()
    assert record["outcome"]["status"] == "failure"
    assert set(record["scores"].values()) == {0.0}
    assert record["accuracy"] == 0.0
    if "usage" in raised:
        assert record["usage"]["input"] == 7
        assert record["cost_nanousd"] == 7 * 1000 + 2 * 2000


def test_a_fault_fails_without_a_traceback_and_without_a_score(bench: Bench) -> None:
    bench.pytester.makeconftest(
        FAULTY.replace("RAISED", "__import__('pytest_cellprose').PathFault('transport', 'cable cut')")
    )
    once = "--cellprose-fault-retries=0"
    result = bench.run("--cellprose-live", "--cellprose-models", "house", "-k", "csv and alpha", once)
    assert result.ret == 1
    result.assert_outcomes(failed=1, deselected=deselected(11))
    result.stdout.fnmatch_lines(["*house-csv-alpha-rep1 was not measured: transport: cable cut*"])
    assert "Traceback" not in result.stdout.str()
    (record,) = bench.records()
    told = {"status": "fault", "kind": "transport", "detail": "cable cut", "not_started": None}
    assert record["outcome"] == told
    assert record["scores"] is None
    assert record["accuracy"] is None


def test_a_bug_in_a_provider_is_an_error_with_its_traceback_and_no_record(bench: Bench) -> None:
    bench.pytester.makeconftest(FAULTY.replace("RAISED", "ZeroDivisionError('oops')"))
    result = bench.run("--cellprose-live", "--cellprose-models", "house", "-k", "csv and alpha")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*ZeroDivisionError: oops*"])
    assert bench.records() == []


def test_a_reply_without_an_answer_object_is_no_answer(bench: Bench) -> None:
    bench.pytester.makeconftest(HOUSE.replace("""'{"q1": -1, "q2": "Model!B5"}'""", "'I do not know.'"))
    result = bench.run("-v", "--cellprose-live", "--cellprose-models", "house", "-k", "csv and alpha")
    result.stdout.fnmatch_lines(["*NO_ANSWER 0.00*"])
    (record,) = bench.records()
    assert record["outcome"]["kind"] == "no_answer"
    assert record["reply"] == "I do not know."


def test_outcomes_are_in_junit_xml_as_json(bench: Bench, tmp_path: Path) -> None:
    import xml.etree.ElementTree as ElementTree

    file = tmp_path / "junit.xml"
    bench.run("--cellprose-models", "reader", "-k", "csv and alpha", f"--junit-xml={file}")
    (found,) = ElementTree.parse(file).iter("property")
    assert json.loads(found.attrib["value"]) == {
        "cell": "reader-csv-alpha-rep1",
        "outcome": "scored",
        "status": "scored",
        "accuracy": 0.4,
        "cost_nanousd": bench.records()[0]["cost_nanousd"],
        "kept_from": None,
    }


def test_a_record_holds_what_was_sent_and_what_it_cost(bench: Bench) -> None:
    bench.run("--cellprose-models", "reader", "-k", "cellprose_lean_gfm and alpha")
    (record,) = bench.records()
    assert record["schema"] == 1
    assert record["set"] == "development"
    assert record["model"]["requested"].startswith("cellprose-reader")
    assert record["prices"]["input"] == "0.10"
    assert len(record["inputs_id"]) == len(record["prompt_sha256"]) == 64
    usage = record["usage"]
    assert record["counted_tokens"]["n"] == usage["input"] > 200
    assert record["cost_nanousd"] == usage["input"] * 100 + usage["output"] * 500
    assert json.loads(record["reply"]).keys() == {"q1", "q2", "q3", "q4", "q5"}
    assert record["kinds"] == {"q1": "value", "q2": "address", "q3": "trace", "q4": "impact", "q5": "hardcode"}

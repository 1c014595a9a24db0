"""What earlier runs say about a final one (protocol section 3)."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from pytest_cellprose.measure.spec import RunSpec
from pytest_cellprose.method.digests import Method
from pytest_cellprose.plan.build import Plan, with_inputs
from pytest_cellprose.plan.history import EarlierRuns, earlier_runs, history
from pytest_cellprose.store.manifest import EncodedTexts, Manifest
from pytest_cellprose.store.records import Store
from tests.report.report_factories import manifest, workbook_entry

METHOD = Method(protocol="a" * 64, prompts="b" * 64, scorer="c" * 64)
CODE = {"cellprose_lean_gfm": "d" * 64, "markitdown": "e" * 64, "csv": "f" * 64}


def run(name: str = "now", texts: str = "1", books: tuple[str, ...] = ("rw_a", "rw_b"), **fields: Any) -> Manifest:
    """A final run of held-out workbooks, each with its own digests."""
    held = [workbook_entry(book, "heldout", workbook_sha256=book * 16, questions_sha256=f"q{book}") for book in books]
    encoded = EncodedTexts(sha256={book: {"csv": texts * 64, "markitdown": texts * 64} for book in books})
    return manifest(
        workbooks=held, **{"run": name, "method": METHOD, "encoding_code": CODE, "encoded": encoded, **fields}
    )


def test_a_first_look_is_nothing_to_be_told() -> None:
    assert history(run(), EarlierRuns()).deviations == history(run(), EarlierRuns()).notes == ()
    other = run("r1", books=("rw_c",), method=METHOD.model_copy(update={"prompts": "0" * 64}))
    assert history(run(), EarlierRuns([other])).deviations == ()


def test_the_same_method_again_is_one_note_for_all_runs() -> None:
    found = history(run(), EarlierRuns([run("r1"), run("r2", books=("rw_b",))]))
    assert found.deviations == ()
    assert found.notes == ("2 held-out workbooks run before under the same method, in r1, r2",)


@pytest.mark.parametrize(
    ("change", "how"),
    [
        ({"method": METHOD.model_copy(update={"prompts": "0" * 64})}, "under other prompts"),
        ({"method": METHOD.model_copy(update={"scorer": "0" * 64})}, "under another scorer"),
        ({"method": None}, "under a method that is not on record"),
        ({"texts": "2"}, "under another markitdown and another csv"),
        ({"encoding_versions": {"csv": "2", "markitdown": "1"}}, "under another csv"),
        ({"encoded": EncodedTexts(), "encoding_code": {**CODE, "csv": "0"}}, "under another csv"),
        ({"encoded": EncodedTexts(), "encoding_code": {}},
         "under another cellprose_lean_gfm, another markitdown and another csv"),
    ],
)  # fmt: skip
def test_another_method_is_a_deviation(change: dict[str, Any], how: str) -> None:
    found = history(run(), EarlierRuns([run("r1", **change)]))
    expected = f"held-out workbooks rw_a, rw_b were run in r1 {how}"
    assert found.deviations == (expected,)
    assert found.notes == (f"not publishable: {expected}",)


@pytest.mark.parametrize(
    "change",
    [
        {"encoding_code": {**CODE, "csv": "0" * 64}, "matrix": {"encodings": ["csv", "markitdown"]},
         "encoding_versions": {"csv": "1", "markitdown": "1"}},
        {"method": METHOD.model_copy(update={"protocol": "0" * 64})},
        {"encoding_versions": {"gone": "1"}},
    ],
    ids=["other-code-that-writes-the-same", "another-protocol-page", "an-encoding-that-is-not-in-this-run"],
)  # fmt: skip
def test_what_changed_nothing_that_was_sent_or_scored_is_the_same_method(change: dict[str, Any]) -> None:
    found = history(run(), EarlierRuns([run("r1", **change)]))
    assert found.deviations == ()
    assert len(found.notes) == 1


def test_a_workbook_is_known_by_its_content_and_by_its_questions() -> None:
    other = METHOD.model_copy(update={"prompts": "0" * 64})
    (book, second) = run().matrix.workbooks
    for known, change in (
        (book.model_copy(update={"name": "x"}), ""),
        (book.model_copy(update={"name": "x", "questions_sha256": "0"}), "with other questions"),
        (book.model_copy(update={"name": "x", "workbook_sha256": "0"}), "with another workbook"),
    ):
        before = run("r1", method=other)
        before = before.model_copy(update={"matrix": before.matrix.model_copy(update={"workbooks": [known]})})
        how = f"{change}, so as another test set, and under other prompts" if change else "under other prompts"
        assert history(run(), EarlierRuns([before])).deviations == (f"held-out workbook rw_a was run in r1 {how}",)
        same_method = before.model_copy(update={"method": METHOD})
        again = (f"held-out workbook rw_a was run in r1 {change}, so as another test set",) if change else ()
        assert history(run(), EarlierRuns([same_method])).deviations == again
    same_name = second.model_copy(update={"workbook_sha256": "0", "questions_sha256": "0"})
    before = before.model_copy(update={"matrix": before.matrix.model_copy(update={"workbooks": [same_name]})})
    assert history(run(), EarlierRuns([before])).deviations == ()


def test_a_workbook_that_was_tuned_on_is_not_held_out() -> None:
    before = run("r1")
    books = [book.model_copy(update={"set": "development"}) for book in before.matrix.workbooks]
    before = before.model_copy(update={"matrix": before.matrix.model_copy(update={"workbooks": books})})
    assert history(run(), EarlierRuns([before])).deviations == (
        "held-out workbooks rw_a, rw_b were run in r1 as development data",
    )


def plan(out: Path, **fields: Any) -> Plan:
    spec = RunSpec(manifest=run(**fields), sources={}, models={}, out=out, cache=None)
    return Plan(spec, ("first",), earlier=earlier_runs([out], out))


def test_it_rules_publication_out_and_only_of_a_final_run(tmp_path: Path) -> None:
    texts = run().encoded
    assert with_inputs(plan(tmp_path), texts).spec.manifest.publishable is True
    Store(tmp_path, "r1").write_manifest(run("r1", method=METHOD.model_copy(update={"prompts": "0" * 64})))
    judged = with_inputs(plan(tmp_path, deviations=["known"]), texts)
    said = "held-out workbooks rw_a, rw_b were run in r1 under other prompts"
    assert judged.spec.manifest.publishable is False
    assert judged.spec.manifest.deviations == [said, "known"]
    assert judged.notes == ("first", f"not publishable: {said}")
    live = with_inputs(plan(tmp_path, mode="live"), texts)
    assert (live.spec.manifest.deviations, live.notes) == ([], ("first",))


def test_a_manifest_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    Store(tmp_path, "r1").write_manifest(run("r1"))
    (tmp_path / "runs" / "broken.json").write_text('{"schema": 1, "run"')
    (tmp_path / "runs" / "later.json").write_text('{"schema": 99}')
    found = history(run(), earlier_runs([tmp_path, tmp_path], tmp_path))
    assert found.deviations == ()
    assert found.notes == (
        "2 held-out workbooks run before under the same method, in r1",
        "2 manifests that this version cannot read, so that what they ran is not known: broken.json, later.json",
    )


def test_a_committed_manifest_is_known_wherever_results_go_now_and_though_it_was_deleted(tmp_path: Path) -> None:
    """In any folder of the repository, and each version of it."""

    def git(*arguments: str) -> None:
        command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)

    git("init", "--initial-branch=main")
    first, second, third = (f"2026112{day}T120000000Z-00000{day}" for day in (1, 2, 3))
    other = METHOD.model_copy(update={"prompts": "0" * 64})
    Store(tmp_path / "results", first).write_manifest(run(first, method=other))
    git("add", "-A")
    git("commit", "-m", "a run")
    Store(tmp_path / "results", first).write_manifest(run(first))  # made to look harmless
    git("commit", "-am", "an edit")
    git("rm", "-q", f"results/runs/{first}.json")
    git("commit", "-m", "forgotten")
    git("checkout", "-q", "-b", "side")
    Store(tmp_path / "deep" / "elsewhere", second).write_manifest(run(second))
    git("add", "-A")
    git("commit", "-m", "on a branch")
    git("checkout", "-q", "main")
    git("merge", "-q", "--no-ff", "--strategy=ours", "side", "-m", "without its files")
    Store(tmp_path / "new", third).write_manifest(run(third))
    found = earlier_runs([tmp_path / "new", tmp_path / "fresh"], tmp_path)
    assert [manifest.run for manifest in found.manifests] == [first, first, second, third]
    assert history(run(), found).deviations == (
        f"held-out workbooks rw_a, rw_b were run in {first} under other prompts",
    )
    (note,) = history(run(), EarlierRuns([each for each in found.manifests if each.method == METHOD])).notes
    assert note == f"2 held-out workbooks run before under the same method, in {first}, {second}, {third}"

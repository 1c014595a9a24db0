"""The manifest: what a run was made from, by digests that can be taken again, on disk before the first call."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_cellprose.__main__ import main
from tests.integration.conftest import Bench, as_written, sha256

READER = ("--cellprose-models", "reader", "--cellprose-encodings", "csv,cellprose_lean_gfm")

# A live model that keeps each prompt, and what of the manifest is on disk when it is called.
WITNESS = """
import hashlib, json
from pathlib import Path
from pytest_cellprose import Encoding, ModelSpec, Prices, Reply, Usage

HERE = Path(__file__).parent

class Witness:
    def call(self, request):
        manifests = [path.read_text() for path in (HERE / "results" / "runs").glob("*.json")]
        seen = {"prompt": request.prompt, "manifests": manifests}
        name = hashlib.sha256(request.prompt.encode()).hexdigest()
        (HERE / f"seen-{name}.json").write_text(json.dumps(seen))
        return Reply(text='{"q1": 1}', returned_model="w-1", usage=Usage(input=1000, output=20))

def broken(workbook):
    raise ValueError("Total revenue is 15875")

def pytest_cellprose_encodings():
    return [Encoding("broken", version="1", label="nothing", encode=broken)]

def pytest_cellprose_providers():
    return {"house": Witness}

def pytest_cellprose_models():
    prices = Prices(input="1", output="2", cache_read="0.1", above=5000, input_above="3", output_above="4")
    return [ModelSpec(alias="witness", model_id="w", vendor="house", max_tokens=4000, prices=prices)]
"""


def manifests(bench: Bench) -> list[dict[str, Any]]:
    """Oldest first."""
    return [json.loads(path.read_text()) for path in sorted((bench.results / "runs").glob("*.json"))]


def git(bench: Bench, *arguments: str) -> str:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments]
    return subprocess.run(command, cwd=bench.pytester.path, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def committed(bench: Bench) -> Bench:
    """With one held-out workbook, in a repository."""
    bench.add("gamma", scale=5, heldout=True)
    (bench.pytester.path / ".gitignore").write_text("__pycache__/\n.pytest_cache/\n")
    git(bench, "init")
    git(bench, "add", "-A")
    git(bench, "commit", "-m", "all")
    return bench


def test_before_the_first_call_the_digests_of_all_inputs_are_on_disk(bench: Bench) -> None:
    bench.pytester.makeconftest(WITNESS)
    bench.run("--cellprose-live", "--cellprose-models", "witness", "--cellprose-encodings", "csv,broken")
    (manifest,) = manifests(bench)
    seen = [json.loads(path.read_text()) for path in bench.pytester.path.glob("seen-*.json")]
    assert len(seen) == 2
    for call in seen:
        (then,) = map(json.loads, call["manifests"])
        assert {**then, "finished": manifest["finished"]} == manifest

    sent = {
        hashlib.sha256(re.search(r"```\n(.*?)\n```\n", call["prompt"], re.S)[1].encode()).hexdigest() for call in seen
    }
    encoded = manifest["encoded"]
    assert {texts["csv"] for texts in encoded["sha256"].values()} == sent
    assert [texts["broken"] for texts in encoded["sha256"].values()] == [None, None]
    assert encoded["reasons"] == {name: {"broken": "encoding 'broken' raised ValueError"} for name in ("alpha", "beta")}
    for book in manifest["matrix"]["workbooks"]:
        assert book["workbook_sha256"] == sha256(bench.cells / f"{book['name']}.xlsx")
        assert book["questions_sha256"] == sha256(bench.cells / f"{book['name']}.json")
    assert manifest["split_sha256"] == {"cells/split.json": sha256(bench.cells / "split.json")}
    inputs = {
        "questions": {book["name"]: book["questions_sha256"] for book in manifest["matrix"]["workbooks"]},
        "workbooks": {book["name"]: book["workbook_sha256"] for book in manifest["matrix"]["workbooks"]},
        "encoded": encoded["sha256"],
        "splits": manifest["split_sha256"],
    }
    text = json.dumps(inputs, sort_keys=True, separators=(",", ":"))
    assert manifest["inputs_sha256"] == hashlib.sha256(text.encode()).hexdigest()
    (model,) = manifest["models"]
    assert (model["model_id"], model["vendor"], model["max_tokens"]) == ("w", "house", 4000)
    assert model["prices"] == {
        "input": "1", "output": "2", "cache_read": "0.1",
        "above": 5000, "input_above": "3", "output_above": "4", "nominal": False,
    }  # fmt: skip


def test_a_development_run_puts_down_the_texts_that_it_made(bench: Bench) -> None:
    bench.with_a_cache_of_its_own()
    bench.pytester.makeconftest(WITNESS)
    bench.run("--cellprose-models", "reader", "--cellprose-encodings", "csv,none", "-k", "alpha")
    (manifest,) = manifests(bench)
    assert manifest["encoded"]["reasons"] == {}
    made = manifest["encoded"]["sha256"]
    assert list(made) == ["alpha"]
    assert list(made["alpha"]) == ["csv"]


def test_a_development_run_says_which_encoding_gave_no_text(bench: Bench) -> None:
    bench.pytester.makeconftest(WITNESS.replace("encode=broken", "encode=broken, decode=lambda text: None"))
    bench.run("--cellprose-models", "reader", "--cellprose-encodings", "broken", "-k", "alpha")
    (manifest,) = manifests(bench)
    assert manifest["encoded"]["sha256"] == {"alpha": {"broken": None}}
    assert not re.search(r"\b15875\b", json.dumps(manifest))  # digests hold any digits


def test_the_same_plan_has_the_same_experiment_id_and_an_edited_question_another(bench: Bench) -> None:
    bench.run(*READER, "-k", "alpha and csv")
    bench.run(*READER, "-k", "beta and csv", "--cellprose-inflight", "3")
    path = bench.cells / "alpha.json"
    path.write_text(path.read_text() + "\n")
    bench.run(*READER, "-k", "alpha and csv")
    first, second, third = manifests(bench)
    assert re.fullmatch("[0-9a-f]{64}", first["experiment"])
    assert first["experiment"] == second["experiment"] != third["experiment"]
    assert first["run"] != second["run"]


def test_a_dirty_tree_is_on_record_with_what_differs(committed: Bench) -> None:
    committed.run(*READER, "-k", "alpha and csv")
    (committed.cells / "test_cells.py").write_text("def test_cell(cell):\n    assert cell.run()\n")
    by_hand = hashlib.sha256(git(committed, "diff", "--full-index", "HEAD").encode()).hexdigest()
    committed.run(*READER, "-k", "alpha and csv")
    commit = git(committed, "rev-parse", "HEAD").strip()
    assert [manifest["git"] for manifest in manifests(committed)] == [
        {"commit": commit, "dirty": False, "diff_sha256": None},
        {"commit": commit, "dirty": True, "diff_sha256": by_hand},
    ]


FINAL = ("--cellprose-final", "--cellprose-models", "reader", "--cellprose-encodings", "csv")


def edited(bench: Bench, change: Callable[[dict[str, Any]], object]) -> str:
    """Change the only manifest; returns its run."""
    (path,) = (bench.results / "runs").glob("*.json")
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))
    return path.stem


def test_what_held_out_workbooks_were_run_under_before_is_said_before_a_final_run(committed: Bench) -> None:
    committed.run(*FINAL)
    (original,) = manifests(committed)
    assert original["mode"] == "final"
    run = original["run"]

    def header(change: Callable[[dict[str, Any]], object]) -> list[str]:
        edited(committed, lambda manifest: (manifest.clear(), manifest.update(json.loads(json.dumps(original)))))
        edited(committed, change)
        result = committed.run("--collect-only", *FINAL)
        assert result.ret == 0
        lines = [line.removeprefix("cellprose: ") for line in result.outlines if line.startswith("cellprose: ")]
        lines = [line for line in lines if "not the frozen one" not in line]
        return [line for line in lines if "gamma" in line or "before" in line or "manifest" in line]

    not_again = f"not publishable: held-out workbook gamma was run in {run}"
    gamma = next(book["name"] for book in original["matrix"]["workbooks"] if book["set"] == "heldout")
    assert header(lambda m: None) == [f"1 held-out workbook run before under the same method, in {run}"]
    assert header(lambda m: m["method"].update(prompts="0" * 64)) == [f"{not_again} under other prompts"]
    assert header(lambda m: m["method"].update(scorer="0" * 64)) == [f"{not_again} under another scorer"]
    assert header(lambda m: m["encoding_versions"].update(csv="0")) == [f"{not_again} under another csv"]
    assert header(lambda m: m["encoded"]["sha256"][gamma].update(csv="0" * 64)) == [f"{not_again} under another csv"]
    assert header(lambda m: (m.pop("encoded"), m["encoding_code"].update(csv="0" * 64))) == [
        f"{not_again} under another csv"
    ]
    assert header(lambda m: m.pop("method")) == [f"{not_again} under a method that is not on record"]
    assert header(lambda m: m.update(schema=99)) == [
        f"1 manifest that this version cannot read, so that what they ran is not known: {run}.json"
    ]
    # a development workbook may be run under whatever its author likes
    assert header(lambda m: m["matrix"].update(workbooks=[b for b in m["matrix"]["workbooks"] if b["name"] != gamma],
                                               repeats=1)) == []  # fmt: skip

    def renamed(manifest: dict[str, Any]) -> None:
        (book,) = (book for book in manifest["matrix"]["workbooks"] if book["name"] == gamma)
        book.update(name="other", questions_sha256="0" * 64)
        manifest["method"]["prompts"] = "0" * 64

    assert header(renamed) == [f"{not_again} with other questions, so as another test set, and under other prompts"]

    edited(committed, lambda manifest: manifest["method"].update(prompts="0" * 64, scorer="1" * 64))
    committed.run(*FINAL)
    last = manifests(committed)[-1]
    how = "with other questions, so as another test set, and under other prompts and another scorer"
    said = f"held-out workbook gamma was run in {run} {how}"
    assert said in last["deviations"]
    assert last["publishable"] is False
    report = (committed.results / last["run"] / "report.md").read_text()
    assert said in report


def test_a_manifest_from_before_these_fields_is_still_a_runs(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.run(*READER)

    def older(manifest: dict[str, Any]) -> None:
        for name in ("experiment", "package_sha256", "method", "encoding_code", "encoded", "inputs_sha256"):
            del manifest[name]
        del manifest["git"]["diff_sha256"]
        for model in manifest["models"]:
            for name in ("prices", "max_tokens", "settings"):
                del model[name]

    run = edited(bench, older)
    assert main(["report", run, "--out", str(bench.results)]) == 0
    resumed = bench.run(*READER, "--cellprose-resume", run)
    assert resumed.ret == 0
    resumed.stdout.fnmatch_lines([f"4 cells kept from run {run}"])
    capsys.readouterr()


@as_written
def test_the_installed_package_has_the_protocol(tmp_path: Path) -> None:
    wheel = pytest.importorskip("hatchling.builders.wheel")
    root = Path(__file__).resolve().parents[2]
    (built,) = wheel.WheelBuilder(str(root)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(built) as archive:
        assert archive.read("pytest_cellprose/PROTOCOL.md") == (root / "docs" / "PROTOCOL.md").read_bytes()

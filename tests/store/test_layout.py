"""Every file of a run is named in one module, and what it names is what a run leaves."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

import pytest_cellprose
from pytest_cellprose.files import replace_bytes
from pytest_cellprose.store import layout
from pytest_cellprose.store.identity import new_run_id
from pytest_cellprose.store.layout import LEDGER, ledger_files, ledger_name, manifest_file, manifest_files, record_files
from tests.integration.conftest import HOUSE, Bench, bench  # noqa: F401

PACKAGE = Path(pytest_cellprose.__file__).parent

NAMES = (
    r"\.run\.lock|\.run\.holder|\.home|\.shared-by|\.process-died|\.probe|ledger\.json|ledger\*|records-|rescued-"
    r"|report\.json|verdicts\.json|report\.md|\.gitignore"
)


def test_no_other_module_spells_a_file_of_a_run() -> None:
    """In code, that is: help texts and docstrings may name them."""
    spelled = re.compile(rf"""(?:(?:/ |= |\(|f)"(?:{NAMES}|runs/)|/ "runs")""")
    found = {
        f"{path.relative_to(PACKAGE)}: {line.strip()}"
        for path in PACKAGE.rglob("*.py")
        if path.name != "layout.py"
        for line in path.read_text(encoding="utf-8").splitlines()
        if spelled.search(line)
    }
    assert found == set()


def test_a_run_leaves_what_the_layout_names(bench: Bench) -> None:  # noqa: F811
    bench.pytester.makeconftest(HOUSE)
    bench.run("--cellprose-live", "--cellprose-models=house", "--cellprose-encodings=csv")
    (manifest,) = manifest_files(bench.results)
    folder = bench.results / manifest.stem
    assert manifest == manifest_file(bench.results, manifest.stem)
    named = {layout.LEDGER, layout.REPORT_JSON, layout.REPORT_MD, layout.VERDICTS_JSON}
    named |= {layout.LOCK_FILE, layout.HOLDER_FILE, layout.HOME_FILE, *(path.name for path in record_files(folder))}
    left = {path.name for path in folder.iterdir()} - {".store.lock", f".{LEDGER}.lock"}
    assert left == named
    assert {path.name for path in bench.results.iterdir()} == {layout.GITIGNORE, layout.MANIFESTS, manifest.stem}


def test_a_run_id_is_what_git_and_shells_match() -> None:
    run = new_run_id()
    assert fnmatchcase(run, layout.RUN_ID_GLOB)
    assert fnmatchcase(f"runs/{run}.json", layout.MANIFEST_GLOB)


def test_manifests_come_oldest_first(tmp_path: Path) -> None:
    assert manifest_files(tmp_path) == []
    runs = ["20261130T000000001Z-aaaaaa", "20261129T235959999Z-ffffff"]
    for run in runs:
        replace_bytes(manifest_file(tmp_path, run), b"{}")
    assert [path.stem for path in manifest_files(tmp_path)] == sorted(runs)


def test_ledgers_of_processes_elsewhere_are_found_with_the_runs_own(tmp_path: Path) -> None:
    for name in (LEDGER, ledger_name(0), ledger_name(12)):
        (tmp_path / name).touch()
    assert {path.name for path in ledger_files(tmp_path)} == {"ledger.json", "ledger-0.json", "ledger-12.json"}


def test_a_file_that_cannot_be_written_is_what_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"before")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pytest_cellprose.files.os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        replace_bytes(file, b"after")
    assert file.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [file]

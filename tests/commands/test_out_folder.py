"""``--out`` of the commands means what ``--cellprose-out`` means, and has the same default."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_cellprose.__main__ import main
from tests.integration.conftest import Bench, bench  # noqa: F401

PROJECT = '[tool.pytest]\ntestpaths = ["cells"]\n'

WAYS = {
    "default": ("", "", "results"),
    "ini": ('cellprose_out = "kept/runs"\n', "", "kept/runs"),
    "addopts": ('cellprose_out = "kept"\naddopts = ["--cellprose-out=opted"]\n', "", "opted"),
    "environment": ('cellprose_out = "kept"\naddopts = ["--cellprose-out=opted"]\n', "--cellprose-out=told", "told"),
}


@pytest.fixture(params=WAYS)
def stored(request: pytest.FixtureRequest, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Path:  # noqa: F811
    """The folder of a project in which a plain pytest has stored one run."""
    setting, environment, folder = WAYS[request.param]
    bench.pytester.makepyprojecttoml(PROJECT + setting)
    monkeypatch.setenv("PYTEST_ADDOPTS", f"{os.environ['PYTEST_ADDOPTS']} {environment}")
    bench.run("--cellprose-models", "reader", "--cellprose-encodings", "csv", "--cellprose-workbooks", "alpha")
    return bench.pytester.path / folder


def test_report_sets_check_and_doctor_look_where_pytest_stores(
    stored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (manifest,) = (stored / "runs").glob("*.json")
    assert main(["report", manifest.stem]) == 0
    main(["doctor"])
    assert f"1runsin{stored}" in "".join(capsys.readouterr().out.split())  # a narrow table
    assert main(["sets", "check", "--run", manifest.stem, "cells"]) == 0


def test_an_out_folder_that_is_named_counts(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: F811
    bench.pytester.makepyprojecttoml(PROJECT + 'cellprose_out = "kept"\n')
    assert main(["report", "20261130T000000000Z-abcdef", "--out", "named"]) == 1
    assert "under named:" in capsys.readouterr().err


def test_the_project_counts_from_a_folder_below(
    bench: Bench,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    bench.pytester.makepyprojecttoml(PROJECT + 'cellprose_out = "kept"\n')
    monkeypatch.chdir(bench.cells)
    assert main(["report", "20261130T000000000Z-abcdef"]) == 1
    assert f"under {bench.pytester.path / 'kept'}:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("file", "environment"), [("[tool.pytest\n", ""), (PROJECT, "'open"), (PROJECT, "--cellprose-out")]
)
def test_settings_that_pytest_would_not_start_with_end_in_one_line(
    file: str,
    environment: str,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytester.makepyprojecttoml(file)
    monkeypatch.setenv("PYTEST_ADDOPTS", environment)
    with pytest.raises(SystemExit) as ended:
        main(["doctor"])
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("name the folder with --out")

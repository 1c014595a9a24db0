"""``sets build SET``: results as exit codes, errors as lines; and ``sets check`` of what was built."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_cellprose.__main__ import main
from tests.conftest import takes_long


@pytest.mark.parametrize("name", ["spreadsheetbench", "realworld"])
def test_a_source_that_is_not_there_is_one_line(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "nowhere"
    assert main(["sets", "build", name, "--from", str(source), str(tmp_path / "out")]) == 1
    printed = capsys.readouterr()
    assert str(source) in printed.err
    assert len(printed.err.splitlines()) == 1
    assert printed.out == ""
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("in the way")
    assert main(["sets", "build", "development", str(tmp_path / "file")]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_spreadsheetbench_needs_a_source(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["sets", "build", "spreadsheetbench", str(tmp_path)])
    assert stopped.value.code == 2


@takes_long
def test_both_held_out_sets_are_built_and_certified_whole(
    shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(
            ["sets", "build", "spreadsheetbench", "--from", str(shared_data / "spreadsheetbench"), str(tmp_path / "sb")]
        )
        == 0
    )
    assert main(["sets", "build", "realworld", "--from", str(shared_data / "heldout_real"), str(tmp_path / "rw")]) == 0
    capsys.readouterr()
    questions = Path(__file__).resolve().parents[2] / "cells" / "realworld"
    assert main(["sets", "check", str(tmp_path), str(questions)]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "187 of 187 questions certified" in printed.out  # 120 and 67
    assert "not here" not in printed.out


def test_a_build_says_which_questions_are_not_the_pinned_ones(
    shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = Path(__file__).resolve().parents[2] / "cells" / "realworld"
    for name in ("rw_wb_CLASS.json", "rw_us_census_h08.json"):
        (tmp_path / name).write_bytes((cells / name).read_bytes())
    with (tmp_path / "rw_wb_CLASS.json").open("a") as file:
        file.write("\n")
    assert main(["sets", "build", "realworld", "--from", str(shared_data / "heldout_real"), str(tmp_path)]) == 0
    said = [line for line in capsys.readouterr().out.splitlines() if "not the questions" in line]
    assert [line.partition(":")[0] for line in said] == ["rw_wb_CLASS"]
    assert main(["sets", "check", str(tmp_path)]) == 1
    assert "rw_wb_CLASS: other questions than the frozen" in capsys.readouterr().err

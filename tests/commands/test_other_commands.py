"""``score``, ``report`` and ``sets``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_cellprose.__main__ import main
from pytest_cellprose.sets import split
from pytest_cellprose.sets.pinned import Pinned, PinnedFile, content_sha256
from pytest_cellprose.workbook.model import Workbook
from tests.integration.conftest import Bench, bench  # noqa: F401

ROOT = Path(__file__).resolve().parents[2]


def test_score_prints_the_scores_of_a_reply(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: F811
    reply = bench.cells / "reply.txt"
    reply.write_text('So:\n{"q1": "15,875", "q2": "$B$5", "q3": "B4:G4,A1", "q4": []}', encoding="utf-8")
    assert main(["score", str(bench.cells / "alpha.json"), str(reply)]) == 0
    scores = json.loads(capsys.readouterr().out)
    # q3: six of the seven cells named are right and none is missing: F1 = 2·6/(7+6)
    assert scores == {"q1": 1.0, "q2": 1.0, "q3": pytest.approx(12 / 13), "q4": 0.0, "q5": 0.0}


@pytest.mark.parametrize("how", ["name", "split", "digest", "content"])
def test_score_tells_no_held_out_truth_unless_that_is_meant(
    bench: Bench,  # noqa: F811
    how: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Scores say which guesses are right. The question file is held out, or the workbook beside it."""
    name = "rw_one" if how == "name" else "gamma"
    path = bench.add(name, scale=5, heldout=how == "split", listed=how == "split")
    if how in ("digest", "content"):
        workbook = Workbook.read(path.with_suffix(".xlsx"))
        digests = {"sha256": workbook.sha256, "content": content_sha256(workbook)}
        digests["sha256" if how == "content" else "content"] = "0" * 64
        monkeypatch.setattr(split, "pinned", lambda: Pinned(workbooks={"rw_x": PinnedFile(**digests)}))
    reply = bench.cells / "reply.txt"
    reply.write_text('{"q2": "B5"}', encoding="utf-8")
    assert main(["score", str(path), str(reply)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"{path}: held out: only a final run may use it; --held-out")
    assert main(["score", "--held-out", str(path), str(reply)]) == 0
    assert json.loads(capsys.readouterr().out)["q2"] == 1.0


def test_score_refuses_what_it_cannot_read(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: F811
    assert main(["score", str(bench.cells / "none.json"), "-"]) == 2
    assert main(["score", str(bench.cells / "alpha.json"), str(bench.cells / "none.txt")]) == 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 2
    assert "none.json" in told[0]
    assert "none.txt" in told[1]


def test_report_renders_a_stored_run_again(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: F811
    bench.run("--cellprose-models", "reader", "--cellprose-encodings", "cellprose_lean_gfm,csv")
    (folder,) = (path.parent for path in bench.results.glob("*/report.json"))
    before = {name: (folder / name).read_bytes() for name in ("report.json", "verdicts.json", "report.md")}
    for name in before:
        (folder / name).unlink()
    manifest = bench.results / "runs" / f"{folder.name}.json"
    for run in (folder.name, str(folder), str(manifest)):
        assert main(["report", "--out", str(bench.results), run]) == 0
        assert "reader · development: 2 workbooks" in capsys.readouterr().out
        assert {name: (folder / name).read_bytes() for name in before} == before


def test_report_names_a_run_that_is_not_there(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: F811
    bench.run("--cellprose-models", "reader", "--cellprose-encodings", "csv")
    (manifest,) = (bench.results / "runs").glob("*.json")
    assert main(["report", "--out", str(bench.results), "20200101T000000Z-000000"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "20200101T000000Z-000000" in line
    assert manifest.stem in line


def test_report_refuses_another_schema_by_name(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: F811
    bench.run("--cellprose-models", "reader", "--cellprose-encodings", "csv")
    (manifest,) = (bench.results / "runs").glob("*.json")
    manifest.write_text(manifest.read_text().replace('"schema": 1', '"schema": 99'), encoding="utf-8")
    assert main(["report", "--out", str(bench.results), manifest.stem]) == 1
    assert "schema 99 is not known" in capsys.readouterr().err


def test_building_the_development_set_reports_a_broken_split(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "split.json").write_text("{", encoding="utf-8")
    assert main(["sets", "build", "development", str(tmp_path)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "split.json" in line

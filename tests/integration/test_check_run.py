"""``sets check --run RUN``: a stored run held against what is here. Each kind of difference is found, by name."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pytest_cellprose.__main__ import main
from tests.integration.conftest import Bench, write_workbook

READER = ("--cellprose-models", "reader", "--cellprose-encodings", "csv,cellprose_lean_gfm")


def git(bench: Bench, *arguments: str) -> None:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments]
    subprocess.run(command, cwd=bench.pytester.path, check=True, capture_output=True)


def committed(bench: Bench) -> Bench:
    (bench.pytester.path / ".gitignore").write_text("__pycache__/\n.pytest_cache/\n")
    git(bench, "init")
    git(bench, "add", "-A")
    git(bench, "commit", "-m", "all")
    return bench


@contextmanager
def instead(path: Path, content: bytes | None) -> Iterator[None]:
    """The file with another content, or without it, for a while."""
    before = path.read_bytes() if path.exists() else None
    for now in (content, before):
        if now is None:
            path.unlink()
        else:
            path.write_bytes(now)
        if now is content:
            yield


@pytest.fixture
def check(bench: Bench, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Exit code and output of the command, in the project's folder."""

    def check(*arguments: str) -> tuple[int, str]:
        capsys.readouterr()
        code = main(["sets", "check", *arguments])
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return check


def stored(bench: Bench) -> Path:
    (path,) = (bench.results / "runs").glob("*.json")
    return path


def manifest_with(path: Path, change: Callable[[dict[str, Any]], object]) -> bytes:
    manifest = json.loads(path.read_text())
    change(manifest)
    return json.dumps(manifest).encode()


FOLLOW = {"digest of all inputs": "differs", "experiment id": "differs"}
"""What is over all inputs differs with any of them."""
TREE = {"repository": "agrees; differs: uncommitted changes"}


class Stored:
    """A committed benchmark with one stored run, and what `sets check --run` finds of it."""

    def __init__(self, bench: Bench, check: Callable[..., tuple[int, str]]) -> None:
        committed(bench).run(*READER)
        self.bench, self.path, self._check = bench, stored(bench), check

    def verdicts(self) -> dict[str, str]:
        """What does not agree, in the order of the output."""
        code, output = self._check("--run", self.path.stem)
        assert code == (0 if "all agree" in output else 1)
        lines = [(line[2:24].strip(), line[24:]) for line in output.splitlines() if line.startswith("  ")]
        assert len(lines) == 10
        return {what: verdict for what, verdict in lines if verdict not in ("agrees", "2 agree", "3 agree", "4 agree")}

    def found(self) -> dict[str, str]:
        """The same without the versions where they agree: how many there are is not pinned here."""
        found = self.verdicts()
        if found["versions"].endswith(" agree"):
            del found["versions"]
        return found

    def edited(self, change: Callable[[dict[str, Any]], object]) -> dict[str, str]:
        with instead(self.path, manifest_with(self.path, change)):
            return self.found()


@pytest.fixture
def run(bench: Bench, check: Callable[..., tuple[int, str]]) -> Stored:
    return Stored(bench, check)


def test_a_run_agrees_with_what_it_was_made_from(run: Stored) -> None:
    assert list(run.verdicts()) == ["versions"]
    assert run.found() == {}


def test_a_changed_or_absent_question_file_is_named(run: Stored) -> None:
    alpha = run.bench.cells / "alpha.json"
    with instead(alpha, alpha.read_bytes() + b"\n"):
        assert run.found() == {"question files": "agrees; differs: alpha", **TREE, **FOLLOW}
    with instead(alpha, None):
        assert run.found() == {
            "question files": "agrees; not here: alpha",
            "workbooks": "agrees; not here: alpha",
            "encoded texts": "2 agree; not here: alpha in csv, alpha in cellprose_lean_gfm",
            **TREE,
            **FOLLOW,
        }


def test_a_changed_or_absent_workbook_is_named_with_its_texts(run: Stored) -> None:
    book, beta = run.bench.cells / "beta.xlsx", run.bench.cells / "beta.json"
    other = write_workbook(run.bench.pytester.path / "other.xlsx", scale=9)
    content = other.read_bytes()
    other.unlink()
    with instead(book, content):  # its question file says that it is another
        assert run.found()["workbooks"] == "agrees; differs: beta"
    questions = json.loads(beta.read_text())
    del questions["sha256"]
    with instead(book, content), instead(beta, json.dumps(questions).encode()):
        changed = run.found()
        assert changed["workbooks"] == "agrees; differs: beta"
        assert changed["question files"] == "agrees; differs: beta"
        assert changed["encoded texts"] == "2 agree; differs: beta in csv, beta in cellprose_lean_gfm"
    with instead(book, None):
        assert run.found()["workbooks"] == "agrees; not here: beta"


def test_a_changed_or_absent_split_is_named(run: Stored) -> None:
    split = run.bench.cells / "split.json"
    with instead(split, split.read_bytes() + b"\n"):
        assert run.found() == {"split files": "differs: cells/split.json", **TREE, **FOLLOW}
    with instead(split, None):
        assert run.found()["split files"] == "not here: cells/split.json"


def test_the_repository_is_held_against_the_run(run: Stored) -> None:
    with instead(run.bench.pytester.path / "new.txt", b"x"):
        assert run.found() == {**TREE, "experiment id": "differs"}
    git(run.bench, "add", "-f", "results/runs")
    git(run.bench, "commit", "-m", "the run")
    assert run.found() == {}  # a manifest is committed after its run
    (run.bench.pytester.path / "new.txt").write_text("x")
    git(run.bench, "add", "-A")
    git(run.bench, "commit", "-m", "more")
    assert run.found() == {"repository": "agrees; differs: commit", "experiment id": "differs"}


def test_another_method_or_other_code_is_named(run: Stored) -> None:
    for name in ("protocol", "prompts", "scorer"):
        assert run.edited(lambda m, name=name: m["method"].update({name: "0" * 64})) == {
            "method": f"2 agree; differs: {name}"
        }
    assert run.edited(lambda m: m.update(package_sha256="0" * 64)) == {"code": "2 agree; differs: this package"}
    assert run.edited(lambda m: m["encoding_code"].update(csv="0" * 64)) == {"code": "2 agree; differs: csv"}
    assert run.edited(lambda m: m["versions"].update(numpy="0"))["versions"].endswith(" agree; differs: numpy")
    assert run.edited(lambda m: m["encoding_versions"].update(csv="0"))["versions"].endswith("differs: encoding csv")


def test_another_text_digest_or_order_is_named(run: Stored) -> None:
    assert run.edited(lambda m: m["encoded"]["sha256"]["alpha"].update(csv="0" * 64)) == {
        "encoded texts": "3 agree; differs: alpha in csv"
    }
    assert run.edited(lambda m: m.update(inputs_sha256="0" * 64)) == {"digest of all inputs": "differs"}
    assert run.edited(lambda m: m.update(experiment="0" * 64)) == {"experiment id": "differs"}
    assert run.edited(lambda m: m["matrix"].update(repeats=2)) == {"experiment id": "differs"}
    assert run.edited(lambda m: m["matrix"]["encodings"].reverse()) == {"experiment id": "differs"}


def test_what_an_older_run_has_not_on_record_is_said(run: Stored) -> None:
    for absent in ("experiment", "inputs_sha256"):
        assert "not on record" in run.edited(lambda m, absent=absent: m.pop(absent)).values()
    assert run.edited(lambda m: m.pop("method"))["method"] == "not on record: protocol, prompts, scorer"


def test_a_final_run_has_every_text_on_record_and_nothing_held_out_is_told(
    bench: Bench, check: Callable[..., tuple[int, str]]
) -> None:
    bench.add("gamma", scale=5, heldout=True)
    committed(bench).run("--cellprose-final", *READER)
    path = stored(bench)
    code, output = check("--run", str(path))
    assert code == 0
    assert "encoded texts         6 agree" in output
    with instead(path, manifest_with(path, lambda m: m["encoded"]["sha256"]["gamma"].pop("csv"))):
        code, output = check("--run", str(bench.results / path.stem))
    assert code == 1
    assert "encoded texts         5 agree; not on record: gamma in csv" in output
    gamma = bench.cells / "gamma.json"
    with instead(gamma, gamma.read_bytes().replace(b"Total revenue", b"SECRET").replace(b'"q1"', b"q1")):
        code, output = check("--run", path.stem)
    assert code == 1
    assert "question files        2 agree; differs: gamma" in output
    assert "SECRET" not in output
    assert "revenue" not in output


def test_cells_may_lie_outside_the_repository(
    bench: Bench, check: Callable[..., tuple[int, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "omega.xlsx").write_bytes((bench.cells / "alpha.xlsx").read_bytes())
    (outside / "omega.json").write_text((bench.cells / "alpha.json").read_text().replace("alpha.xlsx", "omega.xlsx"))
    committed(bench).run(f"--cellprose-cells={outside}", *READER, "-k", "omega and csv")
    assert check("--run", stored(bench).stem, str(outside), "cells")[0] == 0


def test_what_cannot_be_checked_is_wrong_usage(bench: Bench, check: Callable[..., tuple[int, str]]) -> None:
    code, output = check("--run", "20200101T000000000Z-abcdef")
    assert code == 2
    assert "no run '20200101T000000000Z-abcdef' under results: there are none" in output
    bench.run(*READER, "-k", "alpha and csv")
    path = stored(bench)
    assert check("--run", path.stem)[0] == 0
    for arguments in (
        ("--run", path.stem, "nowhere"),
        ("--run", path.stem, "--out", "elsewhere"),
        ("--out", "results"),
    ):
        code, output = check(*arguments)
        assert code == 2
        assert len(output.splitlines()) == 1
    path.write_text(path.read_text()[:200])
    assert check("--run", path.stem)[0] == 2


def test_the_projects_own_encodings_are_checked_too(bench: Bench, check: Callable[..., tuple[int, str]]) -> None:
    mine = (
        "from pytest_cellprose import Encoding\n"
        "def write(workbook):\n    return 'SIGN'.join(sheet.name for sheet in workbook.worksheets) + 'SIGN'\n"
        "def pytest_cellprose_encodings():\n"
        "    return [Encoding('mine', version='1', label='names', encode=write, keeps=frozenset(),\n"
        "                     decode=lambda text: None)]\n"
    )
    bench.pytester.makeconftest(mine)
    command = [sys.executable, "-m", "pytest_cellprose", "sets", "check", "--run"]
    bench.run("--cellprose-models", "reader", "--cellprose-encodings", "mine", "-k", "alpha")
    run = stored(bench).stem

    def checked() -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, run], cwd=bench.pytester.path, capture_output=True, text=True, timeout=120)

    same = checked()
    assert (same.returncode, same.stderr) == (0, "")
    bench.pytester.makeconftest(mine.replace("SIGN", "OTHER"))
    other = checked()
    assert other.returncode == 1
    assert "encoded texts         differs: alpha in mine" in other.stdout
    assert "code                  agrees; differs: mine" in other.stdout
    bench.pytester.makeconftest("raise RuntimeError('broken')")
    code, output = check("--run", run)
    assert code == 2
    assert "broken" in output

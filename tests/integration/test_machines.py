"""Workers that do not share the run's folder: their own copies, their own store, and what comes back from them."""

from __future__ import annotations

import json
import os
import shutil
import site
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

import pytest

from .conftest import HOUSE, Bench

LIVE = ("--cellprose-live", "--cellprose-models", "house", "--cellprose-encodings", "csv,none")
CALL = 1000 * 1000 + 20 * 2000
"""Nano-dollars of every call to the house."""


class Elsewhere:
    """A copy of the project in a folder of its own, as it would lie on another machine."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.bench = bench
        self.path = folder
        shutil.copytree(bench.pytester.path, folder, ignore=shutil.ignore_patterns("results", "elsewhere*", "*.log"))

    @property
    def calls(self) -> int:
        log = self.path / "calls.log"
        return len(log.read_text().splitlines()) if log.exists() else 0

    def records(self) -> list[dict[str, Any]]:
        files = sorted(self.path.glob("results/*/records-*.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def house(bench: Bench) -> Bench:
    bench.pytester.makeconftest(HOUSE)
    return bench


@pytest.fixture
def elsewhere(house: Bench, tmp_path: Path) -> Elsewhere:
    return Elsewhere(house, tmp_path / "elsewhere")


@pytest.fixture(scope="module")
def other_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of another environment, with what is installed in this one."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=os.name != "nt")
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    here = [*site.getsitepackages(), str(Path(__file__).resolve().parents[2])]
    (packages / "here.pth").write_text("\n".join(f"import site; site.addsitedir({path!r})" for path in here))
    return python


def run(bench: Bench, *arguments: str) -> pytest.RunResult:
    """In a process of its own: xdist sends its pytest to other folders, and asks the process for its command line."""
    command = [sys.executable, "-m", "pytest", "-p", "no:randomly", *LIVE, "--dist", "load", *arguments]
    return bench.pytester.run(*command)


def at(folder: Path, python: Path | None = None) -> list[str]:
    return ["--tx", f"popen//chdir={folder}" + (f"//python={python}" if python else "")]


def test_records_come_back(elsewhere: Elsewhere, other_python: Path) -> None:
    bench = elsewhere.bench
    result = run(bench, *at(elsewhere.path, other_python), "--tx", "popen", "--cellprose-reps", "3", "--junitxml=j.xml")
    print(result.stdout.str(), result.stderr.str())
    assert result.ret == 0
    result.assert_outcomes(passed=12)
    assert len(bench.ids()) == len(set(bench.ids())) == 12
    assert elsewhere.calls == 6

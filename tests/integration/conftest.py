"""Small benchmarks in a folder of their own, run by a real pytest."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import pkgutil
import shlex
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

import pytest_cellprose
from pytest_cellprose.sandbox.choose import probe, sandboxes
from tests.providers.vendor_server import VendorServer, serving

# pytester forgets the modules that a run in this process imported, and compiled ones cannot be imported twice:
# what a run needs is here before it. It is also much faster than importing it anew for every run.
for _name in (
    *("anthropic.resources.messages", "openai.resources.chat", "openai.resources.responses", "httpcore2"),
    *("genai_prices.data", "hypothesis", "markitdown", "rich.console", "rich.table"),
    *("toktok", "toon_format", "xdist.dsession", "xdist.scheduler"),
    *(module.name for module in pkgutil.walk_packages(pytest_cellprose.__path__, "pytest_cellprose.")),
):
    if not _name.endswith("__main__"):
        importlib.import_module(_name)

_NO_SANDBOX = probe(sandboxes(None, 1, Path(tempfile.gettempdir(), "cellprose-tests"))).problem
needs_sandbox = pytest.mark.skipif(_NO_SANDBOX is not None, reason=f"no sandbox: {_NO_SANDBOX}")

WAY = shlex.split(os.environ.get("CELLPROSE_WAY", ""))
"""Arguments for every run of these tests, to have all of them another way: ``--cellprose-inflight=1``, ``-n 2``.

What a test asks for itself counts. What does not hold, or is the same, in another way says so with one of the three
marks below; expectations that differ with workers ask the fixture `workers`."""


def one_process(what: str) -> pytest.MarkDecorator:
    """The test is about what one process does."""
    return pytest.mark.skipif("-n" in WAY, reason=f"about one process: {what}")


own_workers = pytest.mark.skipif("-n" in WAY, reason="chooses its workers itself, in any way")
as_written = pytest.mark.skipif(bool(WAY), reason="starts its runs as it writes them, or none, in any way")


def deselected(number: int) -> int:
    """What a run tells of deselected tests: its workers tell nothing."""
    return 0 if "-n" in WAY else number


TEST_CELLS = "def test_cell(cell):\n    cell.run()\n"

# A live model whose calls stay in the process: it answers q1 wrongly and q2 rightly, and counts its calls.
HOUSE = """
from pathlib import Path
import pytest
from pytest_cellprose import ModelSpec, Prices, Reply, Usage

class House:
    def call(self, request):
        with Path(__file__).with_name("calls.log").open("a") as log:
            log.write(request.model_id + "\\n")
        return Reply(text='{"q1": -1, "q2": "Model!B5"}', returned_model="house-8b", usage=Usage(input=1000, output=20))

def pytest_cellprose_providers():
    return {"house": House}

def pytest_cellprose_models():
    return [
        ModelSpec(alias="house", model_id="house-8b", vendor="house", max_tokens=4000,
                  prices=Prices(input="1", output="2")),
        ModelSpec(alias="dear", model_id="house-900b", vendor="house", max_tokens=4000,
                  prices=Prices(input="2000", output="9000")),
    ]
"""


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """pytest in this process. What a test asks for itself comes last, and counts."""
    return pytester.runpytest(*(() if "no:cellprose" in arguments else WAY), *arguments)


@dataclass
class Bench:
    """A project with a ``cells`` folder."""

    pytester: pytest.Pytester
    cells: Path

    @property
    def results(self) -> Path:
        return self.pytester.path / "results"

    def add(self, name: str, *, scale: int = 1, heldout: bool = False, listed: bool = True) -> Path:
        """A workbook with five questions, one of each kind; returns its question file."""
        workbook = self.cells / f"{name}.xlsx"
        workbook.write_bytes(_workbook(scale))
        path = self.cells / f"{name}.json"
        path.write_text(json.dumps(questions_about(workbook, scale)), encoding="utf-8")
        if listed:
            split = self.split
            split["heldout" if heldout else "development"][name] = sha256(workbook)
            self.split = split
        return path

    @property
    def split(self) -> dict[str, Any]:
        return json.loads((self.cells / "split.json").read_text(encoding="utf-8"))

    @split.setter
    def split(self, value: dict[str, Any]) -> None:
        (self.cells / "split.json").write_text(json.dumps(value), encoding="utf-8")

    def with_a_cache_of_its_own(self) -> None:
        """For tests about what is in the cache; others keep encoded texts in one place, which saves half their time."""
        self.pytester.makepyprojecttoml('[tool.pytest]\ntestpaths = ["cells"]\n')

    def run(self, *arguments: str) -> pytest.RunResult:
        return run(self.pytester, *arguments)

    def records(self) -> list[dict[str, Any]]:
        """Every record of every run."""
        files = sorted(self.results.glob("*/records-*.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").split("\n") if line]

    def ids(self) -> list[str]:
        """The recorded cells, sorted."""
        cells = [record["cell"] for record in self.records()]
        return sorted(f"{c['model']}-{c['encoding']}-{c['workbook']}-rep{c['repeat']}" for c in cells)

    def written(self, name: str) -> Any:
        """A JSON file of the only run."""
        (path,) = self.results.glob(f"*/{name}")
        return json.loads(path.read_text(encoding="utf-8"))


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@cache
def _workbook(scale: int) -> bytes:
    """The same bytes each time, so that the session's cache has their texts."""
    with tempfile.TemporaryDirectory() as folder:
        return write_workbook(Path(folder, "workbook.xlsx"), scale).read_bytes()


def write_workbook(path: Path, scale: int = 1) -> Path:
    """``Model``: units times price for six months, one of them typed, and a total; all results stored."""
    units = [100, 120, 90, 140, 110, 95]
    with xlsxwriter.Workbook(str(path)) as workbook:
        sheet = workbook.add_worksheet("Model")
        sheet.write_row("A1", ["Line", "Jan", "Feb", "Mar", "Apr", "May", "Jun"])
        sheet.write_row("A2", ["Units", *units])
        sheet.write("A3", "Price")
        sheet.write_row("B3", [25 * scale] * 6)
        sheet.write("A4", "Revenue")
        for column, count in zip("BCDEFG", units, strict=True):
            if column == "E":
                sheet.write("E4", 3000 * scale)
            else:
                sheet.write_formula(f"{column}4", f"={column}2*{column}3", None, count * 25 * scale)
        total = sum(units) * 25 * scale - units[3] * 25 * scale + 3000 * scale
        sheet.write("A5", "Total revenue")
        sheet.write_formula("B5", "=SUM(B4:G4)", None, total)
    return path


def questions_about(workbook: Path, scale: int = 1) -> dict[str, Any]:
    total = (100 + 120 + 90 + 110 + 95) * 25 * scale + 3000 * scale
    return {
        "schema": 1,
        "workbook": workbook.name,
        "sha256": sha256(workbook),
        "questions": [
            {
                "id": "q1",
                "kind": "value",
                "text": "What is the total revenue?",
                "sheet": "Model",
                "about": "Model!B5",
                "answer": total,
            },
            {
                "id": "q2",
                "kind": "address",
                "text": "Which cell holds the total revenue?",
                "sheet": "Model",
                "about": {"row": ["Total revenue"], "column": ["Jan"]},
                "answer": ["Model!B5"],
            },
            {
                "id": "q3",
                "kind": "trace",
                "text": "Which cells does B5 refer to directly?",
                "sheet": "Model",
                "about": "Model!B5",
                "reach": "direct",
                "answer": ["Model!B4:G4"],
            },
            {
                "id": "q4",
                "kind": "impact",
                "text": "Which cells depend on C2, directly or through others?",
                "sheet": "Model",
                "about": "Model!C2",
                "reach": "all",
                "answer": ["Model!C4", "Model!B5"],
            },
            {
                "id": "q5",
                "kind": "hardcode",
                "text": "Which revenue cells in B4:G4 are typed numbers?",
                "sheet": "Model",
                "about": "Model!B4:G4",
                "answer": ["Model!E4"],
            },
        ],
    }


@pytest.fixture
def bench(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Bench:
    """Two development workbooks, ``alpha`` and ``beta``; encoded texts are kept between tests."""
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    kept = tmp_path_factory.getbasetemp() / "kept-texts"
    pytester.makepyprojecttoml(f'[tool.pytest]\ntestpaths = ["cells"]\ncache_dir = "{kept.as_posix()}"\n')
    cells = pytester.mkdir("cells")
    (cells / "test_cells.py").write_text(TEST_CELLS, encoding="utf-8")
    made = Bench(pytester, cells)
    made.split = {"schema": 1, "seed": 7, "development": {}, "heldout": {}}
    made.add("alpha")
    made.add("beta", scale=3)
    return made


@pytest.fixture
def workers() -> tuple[str, ...]:
    """Arguments for the way's workers, for a test that starts runs by itself or expects more of two processes."""
    return ("-n", "2") if "-n" in WAY else ()


KEYS = {"ANTHROPIC_API_KEY": "sk-ant-live-0123456789", "OPENAI_API_KEY": "sk-oai-live-0123456789"}


@pytest.fixture
def server(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Iterator[VendorServer]:
    """Keys and addresses that lead to the local server, and nothing else of the machine's."""
    for name in ("ANTHROPIC_AUTH_TOKEN", "CELLPROSE_COMPAT_API_KEY", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    with serving() as running:
        for name, key in KEYS.items():
            monkeypatch.setenv(name, key)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", running.address)
        monkeypatch.setenv("OPENAI_BASE_URL", running.address + "/v1")
        monkeypatch.setenv("CELLPROSE_COMPAT_BASE_URL", running.address + "/v1")
        yield running

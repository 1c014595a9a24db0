"""What the documents tell people to type works."""

from __future__ import annotations

import json
import re
from pathlib import Path

from pytest_cellprose.questions.schema import load_questions
from tests.integration.conftest import Bench

ROOT = Path(__file__).resolve().parents[2]


def blocks(document: str, language: str) -> list[str]:
    text = (ROOT / document).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def test_the_first_two_shell_blocks_of_the_readme_are_its_two_commands() -> None:
    benchmark, tests = blocks("README.md", "sh")[:2]
    assert len(benchmark.splitlines()) == len(tests.splitlines()) == 1
    assert benchmark.endswith("pytest\n")
    assert "pytest tests" in tests


def test_the_encoding_of_the_guide_is_measured(bench: Bench) -> None:
    (example,) = blocks("docs/encodings.md", "python")
    assert len([line for line in example.splitlines() if line]) <= 15
    house = (
        "from pytest_cellprose import ModelSpec, Prices, Reply, Usage\n"
        "class House:\n"
        "    def call(self, request):\n"
        "        assert '[Model]' in request.prompt and 'B5 15875 <- =SUM(B4:G4)' in request.prompt, request.prompt\n"
        "        return Reply(text='{\"q1\": 15875}', usage=Usage(input=9, output=9))\n"
        "def pytest_cellprose_providers():\n    return {'house': House}\n"
        "def pytest_cellprose_models():\n"
        "    return [ModelSpec(alias='house', model_id='h', vendor='house', max_tokens=9,\n"
        "                      prices=Prices(input='1', output='1'))]\n"
    )
    bench.pytester.makeconftest(example + "\n" + house)
    arguments = ["--cellprose-live", "--cellprose-models", "house", "--cellprose-workbooks", "alpha"]
    result = bench.run(*arguments, "--cellprose-encodings", "arrows")
    assert result.ret == 0
    assert [record["scores"]["q1"] for record in bench.records()] == [1.0]


def test_the_question_files_of_the_documents_are_valid(tmp_path: Path) -> None:
    examples = [*blocks("README.md", "json"), blocks("docs/questions.md", "json")[0]]
    assert len(examples) == 2
    for number, example in enumerate(examples):
        path = tmp_path / f"example{number}.json"
        path.write_text(example, encoding="utf-8")
        assert load_questions(path).questions
        assert json.loads(example)["schema"] == 1


def test_links_between_documents_lead_somewhere() -> None:
    for document in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (document.parent / target).exists(), f"{document.name}: {target}"

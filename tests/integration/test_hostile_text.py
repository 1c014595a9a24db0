"""Text from outside reaches the terminal and the page with nothing in it that acts."""

from __future__ import annotations

from unicodedata import category

import pytest

from tests.integration.conftest import HOUSE, Bench, own_workers

LIVE = ("--cellprose-live", "--cellprose-models", "house", "--cellprose-encodings", "csv")
MESSAGE = "\x1b]0;owned\x07\x1b[2J\x9b31m<script>alert(1)</script>\r\n\u202etxt"


def acting(text: str) -> list[str]:
    return [sign for sign in text if sign not in "\n" and category(sign) in ("Cc", "Cf", "Zl", "Zp")]


def pages(bench: Bench) -> list[str]:
    found = [path.read_text(encoding="utf-8") for path in bench.results.rglob("*") if path.suffix in (".md", ".html")]
    assert found
    return found


@pytest.mark.parametrize("kind", ["transport", "authentication"])
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param((), id="plain"),
        pytest.param(("-v", "-rA"), id="verbose"),
        pytest.param(("-n", "2"), id="two-workers", marks=own_workers),
    ],
)
def test_a_servers_message(bench: Bench, arguments: tuple[str, ...], kind: str) -> None:
    bench.pytester.makeconftest(
        HOUSE.replace(
            "        return Reply(", f"        raise PathFault({kind!r}, {MESSAGE!r})\n        Reply("
        ).replace("Reply, Usage", "PathFault, Reply, Usage")
    )
    result = bench.run(*LIVE, *arguments)
    assert result.ret != 0
    output = result.stdout.str() + result.stderr.str()
    assert acting(output) == []
    assert "\\x1b]0;owned\\x07\\x1b[2J" in output
    for page in pages(bench):
        assert acting(page) == []
        assert "<script" not in page
    assert any(MESSAGE in record["outcome"]["detail"] for record in bench.records())  # what is stored is exact


def test_a_models_reply_and_id(bench: Bench) -> None:
    bench.pytester.makeconftest(
        HOUSE.replace("""text='{"q1": -1, "q2": "Model!B5"}'""", f"text={MESSAGE!r}").replace(
            'returned_model="house-8b"', f"returned_model={MESSAGE!r}"
        )
    )
    result = bench.run(*LIVE, "-v", "-rA")
    assert result.ret == 0
    assert acting(result.stdout.str()) == []
    for page in pages(bench):
        assert acting(page) == []
        assert "<script" not in page


def test_a_workbooks_name_and_a_questions_reasons(bench: Bench) -> None:
    bench.add("al\x1b[2Jpha<b>\u202e")
    for arguments in (("--collect-only",), ("-v",), ("-k", "not beta"), ("--cellprose-workbooks=\x1b[2J",)):
        result = bench.run("--cellprose-models=reader", "--cellprose-encodings=csv,cellprose_lean_gfm", *arguments)
        assert acting(result.stdout.str() + result.stderr.str()) == []
    for page in pages(bench):
        assert acting(page) == []
        assert "pha<b>" not in page


def test_an_encodings_error(bench: Bench) -> None:
    bench.pytester.makeconftest(
        "from pytest_cellprose import Encoding\n"
        f"def write(workbook):\n    raise ValueError({MESSAGE!r})\n"
        "def pytest_cellprose_encodings():\n    return [Encoding('mine', '1', 'x', write)]\n"
        + HOUSE.replace("import pytest\n", "")
    )
    result = bench.run("--cellprose-live", "--cellprose-models=house", "--cellprose-encodings=mine,csv")
    assert result.ret == 1
    assert acting(result.stdout.str()) == []
    for page in pages(bench):
        assert acting(page) == []
        assert "<script" not in page

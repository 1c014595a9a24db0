"""``doctor``: a table of what is here, an exit code for what is missing, and never a key."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pytest_cellprose.__main__ import main
from pytest_cellprose.commands import doctor
from pytest_cellprose.commands.doctor import Check, examine

KEY = "sk-not-a-real-key-0123456789"
VARIABLES = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "OPENAI_API_KEY",
    "CELLPROSE_COMPAT_API_KEY",
    "CELLPROSE_COMPAT_BASE_URL",
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder outside any repository, and an environment without keys."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def checked(here: Path, *vendors: str) -> dict[str, Check]:
    return {check.name: check for check in examine(here, here / "results", vendors)}


def test_the_offline_benchmark_needs_no_key(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    table = capsys.readouterr().out
    for area in ("versions", "keys", "tokenizers", "git", "sandbox", "caches", "results", "prices"):
        assert f"\n{area}" in f"\n{table}"
    assert "MISSING" not in table
    assert "ANTHROPIC_API_KEY is not set" in table


def test_a_key_is_named_and_never_shown(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in VARIABLES:
        monkeypatch.setenv(name, KEY if name.endswith(("KEY", "TOKEN")) else f"http://user:{KEY}@localhost/v1")
    assert main(["doctor", "--vendors", "anthropic,openai,compat"]) == 0
    printed = "".join(capsys.readouterr())
    assert KEY not in printed
    for name in VARIABLES:
        assert f"{name} is set" in printed


@pytest.mark.parametrize(
    ("vendor", "told"),
    [
        ("anthropic", "ANTHROPIC_API_KEY is not set"),
        ("openai", "OPENAI_API_KEY is not set"),
        ("compat", "CELLPROSE_COMPAT_BASE_URL is not set"),
    ],
)
def test_what_live_calls_need_is_missing_when_asked_for(
    here: Path, vendor: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--vendors", vendor]) == 1
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "MISSING" in line)
    assert told in line


def test_an_unknown_vendor_is_wrong_usage(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--vendors", "antropic"]) == 2
    assert "antropic" in capsys.readouterr().err


def test_a_missing_package_and_a_wrong_version_are_told_with_what_to_do(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    needs = ["not-installed-anywhere>=2", "markitdown[xlsx]==0.0.1", 'also-not>=1; extra == "test"', "pytest>=8"]
    monkeypatch.setattr(doctor, "requires", lambda name: needs)
    found = checked(here)
    assert found["not-installed-anywhere"].state == "MISSING"
    assert "pip install 'not-installed-anywhere>=2'" in found["not-installed-anywhere"].detail
    assert (found["markitdown"].state, found["markitdown"].detail) == ("MISSING", "0.1.7 is not ==0.0.1")
    assert found["pytest"].state == "ok"
    assert "also-not" not in found
    assert main(["doctor"]) == 1


def test_git_is_told_as_a_final_run_would_judge_it(here: Path) -> None:
    assert checked(here)["repository"].state == "absent"
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
    (here / "file").write_text("x")
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"]):
        subprocess.run([*command, *arguments], cwd=here, check=True, capture_output=True)
    assert checked(here)["repository"].state == "ok"
    (here / "other").write_text("x")
    assert checked(here)["repository"].state == "look"


def test_a_place_for_results_that_is_none_is_missing(here: Path) -> None:
    (here / "results").write_text("a file")
    assert checked(here)["store"].state == "MISSING"


def test_caches_and_runs_are_counted(here: Path) -> None:
    assert checked(here)["encoded texts"].state == "absent"
    cache = here / ".pytest_cache" / "d" / "cellprose"
    cache.mkdir(parents=True)
    (cache / "one").write_bytes(bytes(2_000_000))
    (here / "results" / "runs").mkdir(parents=True)
    (here / "results" / "runs" / "a.json").write_text("{}")
    found = checked(here)
    assert found["encoded texts"].detail.startswith("1 entries, 2.0 MB")
    assert found["store"].detail.startswith("1 runs")


def test_prices_are_compared_and_their_age_is_told(here: Path) -> None:
    found = checked(here)
    tables = [name for name, check in found.items() if name.startswith("genai-prices") and check.area == "prices"]
    assert len(tables) == 1
    assert "2026-10-11" in found["price pages"].detail

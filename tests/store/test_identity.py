"""What identifies a run: the experiment id, the method's digests, the repository's state."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pytest_cellprose
from pytest_cellprose.method import digests as module
from pytest_cellprose.method.digests import (
    MEASURING,
    NOT_IN_WORKERS,
    SCORER,
    measuring_sha256,
    method,
    package_sha256,
    working_sha256,
)
from pytest_cellprose.record.record import Git
from pytest_cellprose.store.identity import experiment_id, git_state, same_but_results, versions
from pytest_cellprose.store.manifest import Manifest
from pytest_cellprose.store.records import Store
from tests.report.report_factories import manifest as make_manifest

PACKAGE = Path(pytest_cellprose.__file__).parent

FULL = {
    **make_manifest(["haiku55", "reader"], workbooks=["a", "b"]).model_dump(mode="json"),
    "package_sha256": "9" * 64,
    "measuring_sha256": "a" * 64,
    "method": {"protocol": "b" * 64, "prompts": "c" * 64, "scorer": "d" * 64},
    "encoding_code": {"cellprose_lean_gfm": "e" * 64, "markitdown": "f" * 64, "csv": "0" * 64},
}
FULL["models"][0] |= {"max_tokens": 16000, "settings": {"effort": "medium", "thinking": "adaptive"}}
FULL["models"][0]["prices"] = {"input": "1", "output": "2"}


def identified(fields: dict[str, Any]) -> str:
    return experiment_id(Manifest.model_validate(fields))


Where = tuple[str | int, ...]


def leaves(value: Any, where: Where = ()) -> Iterator[Where]:
    """Where in a JSON value a text or a number is."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if entries is None:
        if isinstance(value, str | int):
            yield where
        return
    for key, inner in entries:
        yield from leaves(inner, (*where, key))


INSIDE = (
    ("matrix",), ("challenger",), ("method",), ("versions",), ("measuring_sha256",), ("encoding_versions",),
    ("encoding_code",), ("git",),
)  # fmt: skip
OF_A_MODEL = ("alias", "model_id", "vendor", "max_tokens", "settings")
ALL_LEAVES = [where for where in leaves(FULL) if where[0] not in ("schema", "mode")]
DECIDING = [where for where in ALL_LEAVES if where[:1] in INSIDE or (where[0] == "models" and where[2] in OF_A_MODEL)]
OTHER = [where for where in ALL_LEAVES if where not in DECIDING and where[-1] not in ("tier", "status", "nominal")]


def changed(where: Where) -> dict[str, Any]:
    fields = deepcopy(FULL)
    inner: Any = fields
    for key in where[:-1]:
        inner = inner[key]
    old = inner[where[-1]]
    new = not old if isinstance(old, bool) else old + 1 if isinstance(old, int) else f"{old}x"
    inner[where[-1]] = "heldout" if where[-1] == "set" else new
    return fields


@given(st.sampled_from(DECIDING))
def test_whatever_decides_what_is_measured_changes_the_id(where: Where) -> None:
    assert identified(changed(where)) != identified(FULL)


@given(st.sampled_from(OTHER))
def test_run_id_times_prices_settings_and_invocation_do_not(where: Where) -> None:
    assert identified(changed(where)) == identified(FULL)


def test_both_kinds_of_fields_were_tried() -> None:
    deciding, other = ({where[0] for where in group} for group in (DECIDING, OTHER))
    assert {"matrix", "models", "method", "git", "versions"} <= deciding
    assert {"run", "started", "finished", "invocation", "models"} <= other
    assert ("models", 0, "prices", "input") in OTHER


def test_the_mode_changes_the_id() -> None:
    """In a final run what the path did counts as the model's failure."""
    assert identified({**FULL, "mode": "live"}) != identified(FULL)


def shuffled(draw: st.DrawFn, value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shuffled(draw, value[key]) for key in draw(st.permutations(list(value)))}
    return [shuffled(draw, item) for item in value] if isinstance(value, list) else value


@given(st.composite(shuffled)(FULL))
def test_the_order_of_keys_does_not_count(fields: dict[str, Any]) -> None:
    assert identified(fields) == identified(FULL)


@pytest.mark.parametrize("name", ["models", "encodings", "workbooks"])
def test_the_order_of_lists_counts(name: str) -> None:
    fields = deepcopy(FULL)
    fields["matrix"][name].reverse()
    assert identified(fields) != identified(FULL)


def test_the_id_is_the_digest_of_the_documented_parts() -> None:
    parts = {name: FULL[name] for (name,) in INSIDE} | {"mode": FULL["mode"]}
    parts["models"] = [{name: model[name] for name in OF_A_MODEL} for model in FULL["models"]]
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    assert identified(FULL) == hashlib.sha256(text.encode()).hexdigest()


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_protocol_and_prompts_are_the_digests_of_their_files() -> None:
    found = method()
    assert found.protocol == sha256(PACKAGE.parent / "docs" / "PROTOCOL.md")
    assert found.prompts == sha256(PACKAGE / "questions" / "prompts.py")


def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package whose files a test may change."""
    copy = tmp_path / "pytest_cellprose"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("PACKAGE", "PROMPTS"):
        monkeypatch.setattr(module, name, copy / getattr(module, name).relative_to(PACKAGE))
    monkeypatch.setattr(module, "SCORER", tuple(copy / file.relative_to(PACKAGE) for file in module.SCORER))
    return copy


def test_a_changed_scorer_changes_its_digest_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = method()
    copy = copied(tmp_path, monkeypatch)
    assert method() == before
    with (copy / "questions" / "cellset.py").open("a") as stream:
        stream.write("# more\n")
    assert method().scorer != before.scorer
    assert method().model_copy(update={"scorer": before.scorer}) == before


def test_any_file_of_the_package_changes_its_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = package_sha256()
    copy = copied(tmp_path, monkeypatch)
    assert package_sha256() == before
    (copy / "report" / "note.txt").write_text("no code")
    assert package_sha256() == before
    (copy / "providers" / "more.py").write_text("")
    assert package_sha256() != before


@pytest.mark.parametrize("room", sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py")))
def test_code_that_cannot_change_a_measurement_is_outside_the_experiment(
    room: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same experiment with a table of another colour; machines need not have what never runs there."""
    before, worker = measuring_sha256(), working_sha256()
    copy = copied(tmp_path, monkeypatch)
    assert (measuring_sha256(), working_sha256()) == (before, worker)
    (copy / room / "more.py").write_text("")
    assert (measuring_sha256() != before) == (room in MEASURING)
    assert (working_sha256() != worker) == (room not in NOT_IN_WORKERS)


def test_runs_of_versions_that_told_no_digest_of_what_measures_are_told_apart_by_all_code() -> None:
    old = {name: value for name, value in FULL.items() if name != "measuring_sha256"}
    assert identified(old) != identified(old | {"package_sha256": "8" * 64})
    assert identified(FULL) == identified(FULL | {"package_sha256": "8" * 64})


def test_the_scorer_is_all_that_scoring_imports_of_ours() -> None:
    """But for `record`, of which it takes the base class of its models only."""
    code = (
        "import sys, pytest_cellprose.record.record; before = set(sys.modules)\n"
        "import pytest_cellprose.questions.scoring\n"
        "print(*sorted(name for name in sys.modules.keys() - before if name.startswith('pytest_cellprose.')))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    ours = {".".join(("pytest_cellprose", *path.relative_to(PACKAGE).with_suffix("").parts)) for path in SCORER}
    assert set(loaded) - {"pytest_cellprose.questions", "pytest_cellprose.workbook"} == ours


def test_versions_are_those_of_the_packages_metadata() -> None:
    found = versions()
    for name in ("pytest-cellprose", "pytest", "pytest-xdist", "execnet", "anthropic", "openai", "httpx2", "markitdown",
                 "pandas", "openpyxl", "markdownify", "numpy", "toktok-rs", "tiktoken", "toon-format"):  # fmt: skip
        assert found[name] == metadata.version(name)


def test_versions_are_read_without_an_import() -> None:
    code = (
        "import sys; from pytest_cellprose.store.identity import versions; versions()\n"
        "print(*sys.modules.keys() & {'anthropic','openai','httpx2','markitdown','pandas','numpy','tiktoken','toktok'})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


Repository = tuple[Path, Callable[..., str]]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository with one commit, and git in it."""
    top = tmp_path / "repository"
    top.mkdir()

    def git(*arguments: str) -> str:
        command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments]
        return subprocess.run(command, cwd=top, check=True, capture_output=True, text=True).stdout

    git("init")
    (top / "a.txt").write_text("one\n")
    (top / "b.bin").write_bytes(bytes(range(256)))
    git("add", "-A")
    git("commit", "-m", "first")
    return top, git


def test_a_clean_repository_has_no_diff(repository: Repository) -> None:
    top, git = repository
    assert git_state(top, top / "results") == Git(commit=git("rev-parse", "HEAD").strip(), dirty=False)


def test_the_diff_is_gits_own(repository: Repository) -> None:
    top, git = repository
    (top / "a.txt").write_text("two\n")
    by_hand = hashlib.sha256(git("diff", "--full-index", "HEAD").encode()).hexdigest()
    assert git_state(top, top / "results").diff_sha256 == by_hand
    git("add", "-A")  # staged or not, the tree is the same
    assert git_state(top, top / "results").diff_sha256 == by_hand


def test_names_and_contents_of_untracked_files_count(repository: Repository) -> None:
    top, _ = repository
    digests = [git_state(top, top / "results").diff_sha256]
    for name, content in (("new.txt", "1"), ("new.txt", "2"), ("sub/new.txt", "2")):
        (top / name).parent.mkdir(exist_ok=True)
        (top / name).write_text(content)
        digests.append(git_state(top, top / "results").diff_sha256)
    assert digests[0] is None
    assert len(set(digests)) == len(digests)
    (top / "sub" / "new.txt").unlink()
    assert git_state(top, top / "results").diff_sha256 == digests[2]


def test_changed_bytes_of_a_binary_file_count(repository: Repository) -> None:
    top, _ = repository
    seen = set()
    for last in (1, 2):
        (top / "b.bin").write_bytes(bytes(range(255)) + bytes([last]))
        seen.add(git_state(top, top / "results").diff_sha256)
    assert len(seen) == 2
    assert None not in seen


def test_results_and_ignored_files_leave_it_clean(repository: Repository) -> None:
    top, git = repository
    (top / ".gitignore").write_text("*.tmp\n")
    git("add", "-A")
    git("commit", "-m", "ignore")
    (top / "x.tmp").write_text("")
    written(top / "results")
    assert git_state(top, top / "results").dirty is False
    assert git_state(top, top / "elsewhere").dirty is True


def written(out: Path, run: str = "20261129T214718042Z-3f9a2c") -> None:
    """What a run leaves."""
    (out / run).mkdir(parents=True, exist_ok=True)
    (out / "runs").mkdir(exist_ok=True)
    (out / "runs" / f"{run}.json").write_text("{}")
    (out / run / "records-heldout.jsonl").write_text("{}")


@pytest.mark.parametrize("out", [".", "cells", "cells/[odd] *", ".hidden"])
@pytest.mark.parametrize(
    "name",
    [
        "test_cells.py",
        "runs/other.json",
        "runs/test_x.py",
        "20261129/conftest.py",
        "new/20261129T214718042Z-3f9a2c.json",
    ],
)
def test_an_out_folder_hides_what_runs_wrote_and_nothing_else(repository: Repository, out: str, name: str) -> None:
    """Neither a changed file nor a new one; a tracked one of a run may differ."""
    top, git = repository
    path = top / out / name
    written(top / out)
    git("add", "-A")
    git("commit", "-m", "a run, committed with its records")
    written(top / out, "20261130T000000000Z-000000")
    run_file = top / out / "20261129T214718042Z-3f9a2c" / "records-heldout.jsonl"
    run_file.write_text("more")
    assert git_state(top, (top / out).resolve()).dirty is False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("one")
    new = git_state(top, (top / out).resolve())
    assert (new.dirty, new.diff_sha256 is None) == (True, False)
    git("add", "-A")
    git("commit", "-m", "all")
    assert git_state(top, (top / out).resolve()).dirty is False
    path.write_text("two")
    changed = git_state(top, (top / out).resolve())
    assert changed.dirty is True
    assert changed.diff_sha256 not in (None, new.diff_sha256)


def test_the_ignore_file_of_an_out_folder_hides_no_other_file(repository: Repository) -> None:
    top, git = repository
    (top / "cells").mkdir()
    (top / "cells" / "test_cells.py").write_text("")
    git("add", "-A")
    git("commit", "-m", "cells")
    Store(top / "cells", "20261129T214718042Z-3f9a2c").write_manifest(make_manifest())
    (top / "cells" / "20261129T214718042Z-3f9a2c").mkdir()
    (top / "cells" / "20261129T214718042Z-3f9a2c" / "records-heldout.jsonl").write_text("")
    assert git_state(top, top / "cells").dirty is False
    assert git("status", "--porcelain", "-uall").split() == ["??", "cells/runs/20261129T214718042Z-3f9a2c.json"]
    (top / "cells" / "conftest.py").write_text("")
    assert git_state(top, top / "cells").dirty is True


def test_a_users_taste_in_diffs_does_not_count(repository: Repository) -> None:
    top, git = repository
    (top / "a.txt").write_text("two\n")
    before = git_state(top, top / "results")
    for name, value in (("diff.noprefix", "true"), ("diff.context", "0"), ("color.ui", "always"),
                        ("diff.external", "false"), ("diff.algorithm", "patience")):  # fmt: skip
        git("config", name, value)
    assert git_state(top, top / "results") == before


def test_it_is_the_folders_repository_and_not_that_of_a_hook(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top, _ = repository
    subprocess.run(["git", "init", str(tmp_path / "other")], check=True, capture_output=True)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    monkeypatch.chdir(tmp_path / "other")
    assert git_state(top, top / "results").commit is not None
    (top / "sub").mkdir()
    (top / "a.txt").write_text("two\n")
    assert git_state(top / "sub", top / "results").dirty is True  # the whole repository counts, not the subfolder


def test_without_repository_or_commit_there_is_none(tmp_path: Path) -> None:
    assert git_state(tmp_path, tmp_path / "results") == Git()
    subprocess.run(["git", "init", str(tmp_path)], check=True, capture_output=True)
    assert git_state(tmp_path, tmp_path / "results") == Git(commit=None, dirty=False)
    (tmp_path / "a.txt").write_text("one")
    state = git_state(tmp_path, tmp_path / "results")
    assert (state.commit, state.dirty) == (None, True)
    assert state.diff_sha256 is not None


def test_a_later_commit_of_results_alone_is_the_same(repository: Repository) -> None:
    top, git = repository
    first = git("rev-parse", "HEAD").strip()
    written(top / "results")
    git("add", "-A")
    git("commit", "-m", "a run")
    assert same_but_results(top, top / "results", first)
    (top / "a.txt").write_text("two\n")
    git("commit", "-am", "a change")
    assert not same_but_results(top, top / "results", first)
    assert not same_but_results(top, top / "results", "0" * 40)

"""A final run by an owner who would like another result: what he tries, and what the run says of itself then."""

from __future__ import annotations

import io
import json
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_cellprose.sets import discover, frozen, split
from pytest_cellprose.sets.pinned import Pinned, PinnedFile, content_sha256
from pytest_cellprose.workbook.model import Workbook
from tests.integration.conftest import Bench, needs_sandbox, sha256

USAGE_ERROR = 4
FINAL = ("--cellprose-final", "--cellprose-models=reader", "--cellprose-encodings=csv", "--cellprose-reps=2")
PLAN = ("--collect-only", "-q", *FINAL)
NOT_FROZEN = "the held-out set is not the frozen one: "


def git(bench: Bench, *arguments: str) -> None:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments]
    subprocess.run(command, cwd=bench.pytester.path, check=True, capture_output=True)


def commit(bench: Bench) -> None:
    git(bench, "add", "-A")
    git(bench, "commit", "-m", "all")


@pytest.fixture
def pin(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Have other sets pinned than the protocol's, whose files are not in this repository; none without arguments."""

    def patch(**workbooks: PinnedFile) -> None:
        for module in (discover, frozen, split):
            monkeypatch.setattr(module, "pinned", lambda: Pinned(workbooks=workbooks))

    return patch


@pytest.fixture
def sealed(bench: Bench, pin: Callable[..., None]) -> Bench:
    """A repository with a frozen held-out set of three workbooks, questions and all. Nothing is pinned."""
    pin()
    names = {"gamma": 5, "delta": 7, "epsilon": 9}
    files = {name: bench.add(name, scale=scale, heldout=True) for name, scale in names.items()}
    freeze(bench, files)
    (bench.pytester.path / ".gitignore").write_text("__pycache__/\n.pytest_cache/\nignored/\n")
    git(bench, "init")
    commit(bench)
    return bench


def freeze(bench: Bench, files: dict[str, Path]) -> None:
    bench.split = {**bench.split, "questions": {name: sha256(path) for name, path in files.items()}}


def said(bench: Bench, *arguments: str) -> list[str]:
    """What the plan says against publication."""
    result = bench.run(*PLAN, *arguments)
    assert result.ret == 0, result.stderr.str()
    manifest = bench.run("--collect-only", *FINAL, *arguments)
    lines = [line for line in manifest.outlines if line.startswith("cellprose: not publishable: ")]
    return lines[0].removeprefix("cellprose: not publishable: ").split("; ")  # another is about earlier runs


def against_the_set(bench: Bench, *arguments: str) -> list[str]:
    lines = said(bench, *arguments)
    known = ("no language model", "cellprose_lean_gfm absent", "markitdown absent", "agent_xlsx absent", "the control")
    return [line for line in lines if not line.startswith(known)]


def test_the_frozen_set_has_nothing_against_it(sealed: Bench) -> None:
    assert against_the_set(sealed) == []
    assert against_the_set(sealed, "--cellprose-subset=2") == []


@needs_sandbox
def test_the_protocol_s_whole_plan_may_be_published(sealed: Bench) -> None:
    """The publishable run exists: nothing that was planned rules it out, agents among it."""
    shown = sealed.run("--collect-only", "--cellprose-final").stdout.str()
    assert "6 models × 8 encodings × 5 workbooks × 3 repeats = 720 cells" in shown
    assert "not publishable" not in shown
    assert "the gate would refuse: the selected cells are expected to cost" in shown  # and nothing else
    assert shown.count("the gate would refuse") == 1


def test_what_is_pinned_and_not_here_is_lacking_wherever_the_benchmark_is(
    sealed: Bench, pin: Callable[..., None]
) -> None:
    """Another repository, or one without the protocol's sets, is no way around them."""
    digests = {"sha256": "a" * 64, "content": "b" * 64}
    pin(rw_one=PinnedFile(**digests, questions="c" * 64), rw_two=PinnedFile(**digests))  # the second has no questions
    assert against_the_set(sealed) == [f"{NOT_FROZEN}lacks rw_one"]
    assert against_the_set(sealed, "--cellprose-subset=1") == [f"{NOT_FROZEN}lacks rw_one"]


def copied(bench: Bench, folder: str, *names: str, heldout: bool = False) -> Path:
    """Some of the workbooks, with their questions, in a folder that may have a split of its own."""
    target = bench.pytester.mkdir(folder)
    for name in names:
        for suffix in (".json", ".xlsx"):
            (target / f"{name}{suffix}").write_bytes((bench.cells / f"{name}{suffix}").read_bytes())
    if heldout:
        own = {name: sha256(target / f"{name}.xlsx") for name in names}
        (target / "split.json").write_text(json.dumps({"schema": 1, "heldout": own}))
    return target


@pytest.mark.parametrize("own_split", [True, False], ids=["with-a-split", "without-one"])
@pytest.mark.parametrize("more", [(), ("--cellprose-subset=1",)], ids=["all", "drawn"])
def test_a_folder_with_some_of_the_set_is_not_the_set(sealed: Bench, own_split: bool, more: tuple[str, ...]) -> None:
    copied(sealed, "picked", "gamma", "delta", heldout=own_split)
    commit(sealed)
    assert against_the_set(sealed, "-o", "cellprose_cells=picked", "cells", *more) == [f"{NOT_FROZEN}lacks epsilon"]


@pytest.mark.parametrize("folder", ["extra", "ignored"])
def test_a_folder_that_adds_to_the_set_is_not_the_set(sealed: Bench, folder: str) -> None:
    """By a held-out name; git may know the folder or not, and its split is no committed one."""
    extra = copied(sealed, folder, "alpha")
    for suffix in (".json", ".xlsx"):
        (extra / f"alpha{suffix}").rename(extra / f"sb_easy{suffix}")
    content = json.loads((extra / "sb_easy.json").read_text())
    (extra / "sb_easy.json").write_text(json.dumps({**content, "workbook": "sb_easy.xlsx"}))
    if folder == "ignored":
        (extra / "split.json").write_text(json.dumps({"schema": 1, "heldout": {"sb_easy": "0" * 64}}))
    else:
        commit(sealed)
    assert against_the_set(sealed, f"--cellprose-cells={folder}") == [f"{NOT_FROZEN}adds sb_easy"]


def reworded(content: dict[str, Any]) -> None:
    content["questions"][0]["text"] = "What is the total revenue, in cell B5?"


def dropped(content: dict[str, Any]) -> None:
    del content["questions"][3:]


@pytest.mark.parametrize("change", [reworded, dropped])
@pytest.mark.parametrize("tracked", [True, False], ids=["committed", "ignored-by-git"])
def test_other_questions_are_another_set(
    sealed: Bench, change: Callable[[dict[str, Any]], None], tracked: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    from pytest_cellprose.__main__ import main

    path = sealed.cells / "gamma.json"
    if not tracked:
        with (sealed.pytester.path / ".gitignore").open("a") as ignore:
            ignore.write("cells/gamma.json\n")
        git(sealed, "rm", "-q", "--cached", "cells/gamma.json")
        commit(sealed)
    capsys.readouterr()
    assert main(["sets", "check", str(sealed.cells)]) == 0
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    if tracked:
        commit(sealed)
    assert against_the_set(sealed) == [f"{NOT_FROZEN}other questions than the frozen ones: gamma"]
    capsys.readouterr()
    assert main(["sets", "check", str(sealed.cells)]) == 1
    assert "gamma: other questions than the frozen" in capsys.readouterr().err


def test_questions_without_a_committed_digest_are_not_frozen(sealed: Bench) -> None:
    sealed.split = {name: value for name, value in sealed.split.items() if name != "questions"}
    commit(sealed)
    assert against_the_set(sealed) == [f"{NOT_FROZEN}no committed digest of the questions of delta, epsilon, gamma"]


def test_a_run_of_another_set_is_not_publishable_and_says_so(sealed: Bench) -> None:
    copied(sealed, "picked", "gamma", "delta", heldout=True)
    commit(sealed)
    assert sealed.run(*FINAL, "-o", "cellprose_cells=picked", "cells").ret == 0
    (path,) = (sealed.results / "runs").glob("*.json")
    manifest = json.loads(path.read_text())
    assert manifest["publishable"] is False
    assert f"{NOT_FROZEN}lacks epsilon" in manifest["deviations"]


def repacked(content: bytes) -> bytes:
    """The same workbook in another zip file."""
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as new:
        for name in reversed(old.namelist()):
            new.writestr(name, old.read(name))
        new.comment = b"x"
    return packed.getvalue()


@pytest.mark.parametrize("repack", [False, True], ids=["the-bytes", "repacked"])
@pytest.mark.parametrize("listed", [False, True], ids=["no-split", "listed-as-development"])
def test_a_pinned_workbook_is_held_out_whatever_folder_and_name_it_has(
    bench: Bench, pin: Callable[..., None], repack: bool, listed: bool
) -> None:
    mine = bench.pytester.mkdir("mine")
    content = (bench.cells / "beta.xlsx").read_bytes()
    workbook = Workbook.read(content)
    pin(rw_one=PinnedFile(sha256=workbook.sha256, content=content_sha256(workbook), questions="c" * 64))
    (mine / "innocent.xlsx").write_bytes(repacked(content) if repack else content)
    questions = json.loads((bench.cells / "beta.json").read_text())
    del questions["sha256"]
    (mine / "innocent.json").write_text(json.dumps({**questions, "workbook": "innocent.xlsx"}))
    for suffix in (".json", ".xlsx"):
        (mine / f"alpha{suffix}").write_bytes((bench.cells / f"alpha{suffix}").read_bytes())
    if listed:
        own = {name: sha256(mine / f"{name}.xlsx") for name in ("alpha", "innocent")}
        (mine / "split.json").write_text(json.dumps({"schema": 1, "development": own}))
    only_mine = ("-o", "cellprose_cells=mine", "cells", "--cellprose-models=reader", "--cellprose-encodings=csv")
    result = bench.run(*only_mine)
    assert result.ret == 0
    assert {record["cell"]["workbook"] for record in bench.records()} == {"alpha"}
    refused = bench.run(*only_mine, "--cellprose-workbooks=innocent")
    assert refused.ret == USAGE_ERROR
    refused.stderr.fnmatch_lines(["*workbook 'innocent' is held out*"])


def test_a_pinned_question_file_is_held_out_under_another_name(bench: Bench, pin: Callable[..., None]) -> None:
    pin(rw_one=PinnedFile(sha256="a" * 64, content="b" * 64, questions=sha256(bench.cells / "beta.json")))
    result = bench.run("--cellprose-models=reader", "--cellprose-workbooks=beta")
    assert result.ret == USAGE_ERROR
    result.stderr.fnmatch_lines(["*workbook 'beta' is held out*"])


def test_what_a_committed_split_holds_out_is_held_out_in_any_folder(sealed: Bench) -> None:
    """And not development because the folder that is named has no split."""
    copied(sealed, "elsewhere", "alpha", "gamma")
    result = sealed.run("-o", "cellprose_cells=elsewhere", "cells", "--cellprose-models=reader", "-v")
    assert result.ret == 0
    assert {record["cell"]["workbook"] for record in sealed.records()} == {"alpha"}


@pytest.mark.parametrize("out", ["cells", ".", "cells/sub", "results"])
@pytest.mark.parametrize("change", ["tracked", "new", "after-a-run"])
def test_an_out_folder_hides_no_change(sealed: Bench, out: str, change: str) -> None:
    if change == "after-a-run":  # which leaves a .gitignore there
        assert sealed.run(*FINAL, f"--cellprose-out={out}").ret == 0
    name = "test_cells.py" if change == "tracked" else "conftest.py"
    target = sealed.pytester.path / (out if change != "tracked" else "cells") / name
    target.parent.mkdir(exist_ok=True)
    with target.open("a") as file:
        file.write("# changed\n")
    result = sealed.run(*FINAL, f"--cellprose-out={out}")
    assert result.ret == USAGE_ERROR
    result.stderr.fnmatch_lines(["*a final run needs a clean working tree*"])


def test_what_runs_wrote_leaves_the_tree_clean(sealed: Bench) -> None:
    for out in ("cells", ".", "results"):
        assert sealed.run(*FINAL, f"--cellprose-out={out}").ret == 0
        assert sealed.run(*FINAL, f"--cellprose-out={out}", "--collect-only").ret == 0
        commit(sealed)  # the manifests


@pytest.mark.parametrize("committed", [True, False])
def test_a_fresh_out_folder_forgets_no_look(sealed: Bench, committed: bool) -> None:
    assert sealed.run(*FINAL).ret == 0
    (path,) = (sealed.results / "runs").glob("*.json")
    manifest = json.loads(path.read_text())
    manifest["method"]["prompts"] = "0" * 64
    path.write_text(json.dumps(manifest))
    if committed:
        commit(sealed)
        git(sealed, "rm", "-q", f"results/runs/{path.name}")
        git(sealed, "commit", "-m", "forget it")
    result = sealed.run("--collect-only", *FINAL, "--cellprose-out=fresh")
    result.stdout.fnmatch_lines([f"*not publishable: held-out workbooks * were run in {path.stem} under other prompts"])


def test_questions_changed_after_a_look_are_another_test_set(sealed: Bench) -> None:
    """Also if they were frozen anew."""
    assert sealed.run(*FINAL).ret == 0
    run = next((sealed.results / "runs").glob("*.json")).stem
    path = sealed.cells / "gamma.json"
    content = json.loads(path.read_text())
    reworded(content)
    path.write_text(json.dumps(content))
    freeze(sealed, {name: sealed.cells / f"{name}.json" for name in ("gamma", "delta", "epsilon")})
    commit(sealed)
    assert against_the_set(sealed) == []
    result = sealed.run("--collect-only", *FINAL)
    result.stdout.fnmatch_lines(
        [f"*not publishable: held-out workbook gamma was run in {run} with other questions, so as another test set"]
    )


FAKE = """
from pytest_cellprose import Encoding, ModelSpec, Prices

def pytest_cellprose_encodings():
    return [Encoding(name, "1", name, lambda workbook: "nothing") for name in ENCODINGS]

def pytest_cellprose_models():
    prices = Prices(input="0.001", output="0.001")
    return [ModelSpec(alias=alias, model_id="tiny", vendor="compat", max_tokens=9, prices=prices) for alias in MODELS]

def pytest_cellprose_providers():
    return dict.fromkeys(VENDORS, type("P", (), {"call": lambda self, request: None}))
"""
NAMES = {
    "ENCODINGS": ["agent_xlsx", "agent_cellprose", "cellprose_lean_gfm", "markitdown", "none", "cellprose_values"],
    "MODELS": ["haiku55", "gpt6astra", "fable51", "haiku45", "reader"],
    "VENDORS": ["anthropic", "openai", "offline"],
}


@pytest.mark.parametrize("how", ["conftest", "plugin", "without-ours"])
@pytest.mark.parametrize("mode", [(), ("--cellprose-live",), ("--cellprose-final",)], ids=["dev", "live", "final"])
def test_the_protocols_names_are_ours_whoever_is_first(bench: Bench, how: str, mode: tuple[str, ...]) -> None:
    source = FAKE + "".join(f"{name} = {value}\n" for name, value in NAMES.items())
    bench.pytester.makepyfile(**{"conftest" if how == "conftest" else "stand_ins": source})
    bench.pytester.syspathinsert()
    plugin = {"conftest": (), "plugin": ("-p", "stand_ins")}.get(how, ("-p", "stand_ins", "-p", "no:cellprose-builtin"))
    result = bench.run(*plugin, *mode, "--collect-only")
    assert result.ret == USAGE_ERROR
    text = result.stderr.str()
    file = "conftest.py" if how == "conftest" else "stand_ins.py"
    for kind, noun in (("ENCODINGS", "name"), ("MODELS", "name"), ("VENDORS", "vendor")):
        for name in NAMES[kind]:
            (line,) = [line for line in text.splitlines() if f"the {noun} {name!r} is the protocol's" in line]
            assert file in line
            assert f"hook pytest_cellprose_{'provider' if kind == 'VENDORS' else kind.lower()[:-1]}s: " in line


def test_nor_is_a_protocols_name_to_be_had_from_a_file_or_an_option(bench: Bench) -> None:
    (bench.pytester.path / "mine.toml").write_text(
        '[opus55]\nmodel_id = "x"\nvendor = "compat"\ninput = 1\noutput = 1\n'
    )
    result = bench.run("-o", "cellprose_registry=mine.toml", "--cellprose-openweight=haiku45=x,1,2", "cells")
    assert result.ret == USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "*cellprose_registry: mine.toml: the name 'opus55' is the protocol's*",
            "*openweight: *'haiku45' is the protocol*",
        ]
    )


def test_a_model_that_replaces_the_protocols_is_named(sealed: Bench) -> None:
    (sealed.pytester.path / "mine.toml").write_text(
        '[hx]\nmodel_id = "claude-haiku-5-5"\nvendor = "anthropic"\ntier = "cheap"\nmax_tokens = 50\ninput = "0.10"\n'
        'output = "0.50"\nabove = 100000\ninput_above = "0.50"\noutput_above = "2.50"\ncache_read = "0.01"\n'
    )
    commit(sealed)
    openweight = "--cellprose-openweight=ox=gpt-6-luna,0.10,0.50"
    lines = said(
        sealed, "-o", "cellprose_registry=mine.toml", "cells", openweight,
        "--cellprose-models=hx,ox,sonnet55,opus55,gpt61sol,gpt6astra", "--cellprose-approve-usd=9",
    )  # fmt: skip
    how = "max_tokens 50 and not 16000, effort None and not medium, thinking None and not adaptive"
    assert f"hx asks for haiku55's claude-haiku-5-5 in another way: {how}" in lines
    assert any(line.startswith("ox asks for gpt6luna's gpt-6-luna in another way: vendor compat and") for line in lines)

"""What a model of the field expects of `bash` and `read_file`, and what it is told where that does not hold."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest

from pytest_cellprose.measure.toolcalls import Misfit, Tools
from pytest_cellprose.providers.base import ToolCall
from pytest_cellprose.sandbox import bubblewrap as bubblewrap_module
from pytest_cellprose.sandbox.base import LIMITS, SandboxError, Sandboxes
from pytest_cellprose.sandbox.box import remove_stale
from pytest_cellprose.sandbox.choose import probe, sandboxes
from pytest_cellprose.sandbox.tools import TOOLS, answer
from tests.sandbox.conftest import Shell


def test_the_descriptions_say_the_limits() -> None:
    bash, read_file = (tool.description for tool in TOOLS)
    for told in ("fresh shell", "16,000 bytes", "30 seconds", "120 at most", "openpyxl", "no network"):
        assert told in bash
    assert "15,500 bytes" in read_file


@pytest.mark.parametrize(
    ("name", "arguments", "fits"),
    [
        ("bash", '{"command": "ls"}', True),
        ("bash", '{"command": "ls", "timeout": 60}', True),
        ("bash", '{"command": "ls", "timeout": 121}', False),
        ("bash", '{"command": "ls", "timeout": 0}', False),
        ("bash", '{"cmd": "ls"}', False),
        ("bash", '{"command": ["ls"]}', False),
        ("read_file", '{"path": "a", "first_line": 2, "last_line": 3}', True),
        ("read_file", '{"path": "a", "first_line": 0}', False),
        ("read_file", '{"path": "a", "first_line": 1.5}', False),
    ],
)
def test_arguments_fit_or_do_not(name: str, arguments: str, fits: bool) -> None:
    assert isinstance(Tools(TOOLS).arguments(ToolCall("c", name, arguments)), Misfit) != fits


def test_python_has_openpyxl_and_the_versions_that_are_on_record(shell: Shell, bubblewrap: Sandboxes) -> None:
    facts = bubblewrap.facts()
    told = shell.bash("python3 -c 'import platform, openpyxl; print(platform.python_version(), openpyxl.__version__)'")
    assert told.text.split() == [facts["python"], facts["openpyxl"]]
    assert facts["python"] == ".".join(map(str, sys.version_info[:3]))
    assert facts["level"] == "bubblewrap"
    assert facts["seconds"] == LIMITS.seconds


def test_lines_of_a_file(shell: Shell) -> None:
    shell.bash("seq -f 'line %g' 30 > file; printf 'no end' >> file")
    assert shell.read("file").text.splitlines() == [*(f"line {n}" for n in range(1, 31)), "no end"]
    assert shell.read("file", first_line=3, last_line=4).text == "line 3\nline 4\n"
    assert shell.read("file", first_line=30).text == "line 30\nno end"
    assert shell.read("./file", last_line=1).text == "line 1\n"
    assert shell.read("/work/file", first_line=99).text == "[the file has 31 lines: none of these]\n"
    shell.bash("mkdir sub; cd sub; echo there > own; touch empty")
    assert shell.read("own").text == "there\n"  # where the last command ended
    assert shell.read("empty").text == "[the file is empty]\n"


def test_a_long_file_comes_in_pieces_that_are_whole(shell: Shell) -> None:
    shell.bash("seq -f 'row %06g | value' 3000 > long")
    first, found = 1, ""
    for _ in range(10):
        text = shell.read("long", first_line=first).text
        assert len(text) <= LIMITS.output_bytes
        body, _, note = text.partition("[the file has 3,000 lines; go on with first_line ")
        found += body
        if not note:
            break
        first = int(note.rstrip("]\n").replace(",", ""))
    assert found.splitlines() == [f"row {n:06} | value" for n in range(1, 3001)]


def test_a_line_that_is_too_long_is_cut(shell: Shell) -> None:
    shell.bash("(head -c 40000 /dev/zero | tr '\\0' x; echo; echo next) > wide")
    told = shell.read("wide").text
    assert told.startswith("xxx")
    assert "[line 1 has 40,001 bytes: the rest is left out]" in told
    assert told.endswith("[the file has 2 lines; go on with first_line 2]\n")
    assert shell.read("wide", first_line=2).text == "next\n"


def test_what_is_no_text_is_refused_with_a_hint(shell: Shell) -> None:
    shell.bash("printf 'PK\\0\\0' > book.xlsx; printf '\\xe9t\\xe9' > latin")
    assert "binary file of 4 bytes: use bash and python3 (an .xlsx: openpyxl)" in shell.read("book.xlsx").text
    assert "not UTF-8 (line 1)" in shell.read("latin").text
    assert "a directory: list it by bash" in shell.read("/work").text
    assert "No such file" in shell.read("nowhere").text


def test_so_many_commands_run_at_a_time_in_all_processes(bubblewrap: Sandboxes, tmp_path: Path) -> None:
    """Two sets of sandboxes that name one folder are as two processes."""
    both = [sandboxes(None, 1, tmp_path / "slots") for _ in range(2)]
    seen: list[tuple[float, float]] = []

    def run(made: Sandboxes) -> None:
        with made.open({}) as sandbox:
            answer(sandbox, "bash", {"command": "true"})  # warm
            ran = answer(sandbox, "bash", {"command": "date +%s.%N; sleep 0.3; date +%s.%N"})
            start, end = map(float, ran.text.split())
            seen.append((start, end))

    threads = [threading.Thread(target=run, args=(made,)) for made in (*both, *both)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ordered = sorted(seen)
    assert len(ordered) == 4
    assert all(end <= start for (_, end), (start, _) in pairwise(ordered))


def test_without_bubblewrap_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = probe(sandboxes(None, 1, tmp_path))
    assert found.problem == "bubblewrap is not installed"
    assert "apt install bubblewrap" in found.remedy
    assert found.facts == {}


def test_where_it_does_not_work_it_says_what_it_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where user namespaces are switched off."""
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = probe(sandboxes(None, 1, tmp_path / "slots"))
    assert found.problem is not None
    assert "No permissions to create a new namespace" in found.problem


def test_what_a_dead_process_left_is_removed() -> None:
    dead = Path(tempfile.mkdtemp(prefix="cellprose-box-4194305-"))  # more than the greatest process id
    mine = Path(tempfile.mkdtemp(prefix=f"cellprose-box-{os.getpid()}-"))
    remove_stale()
    assert not dead.exists()
    assert mine.exists()
    mine.rmdir()


def test_unsafe_runs_here_with_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-SECRET")
    made = sandboxes("unsafe", 1, tmp_path)
    with made.open({"workbook.xlsx": b"abc"}) as sandbox:
        shell = Shell(sandbox)
        assert shell.bash("ls; mkdir a; cd a").text == "workbook.xlsx\n"
        assert shell.bash("basename $(pwd)").text == "a\n"
        assert "SECRET" not in shell.bash("env").text
        began = time.monotonic()
        ran = shell.bash("setsid sleep 99 & echo x; sleep 99", timeout=1)
        assert time.monotonic() - began < 10
        assert ran.exit_code is None
        assert shell.read("../workbook.xlsx").text == "abc"
    assert made.facts()["level"] == "unsafe"


DOCKER = """#!{python}
import os, subprocess, sys
arguments = sys.argv[1:]
with open({log!r}, "a") as log:
    log.write("\\n".join(arguments) + "\\n--\\n")
if arguments[0] == "rm":
    sys.exit(0)
mounts = dict(reversed(each.rsplit(":", 1)) for flag, each in zip(arguments, arguments[1:]) if flag == "--volume")
command = arguments[arguments.index("IMAGE") + 1 :]
script = command[4].replace("/run/state", mounts["/run/state"]).replace("/work", mounts["/work"])
environment = {{"PATH": os.path.dirname(sys.executable) + ":/usr/bin:/bin"}}
sys.exit(subprocess.run([*command[:4], script, *command[5:]], env=environment).returncode)
"""


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for docker: it writes down how it was called, and runs the command on this machine."""
    folder = tmp_path / "bin"
    folder.mkdir()
    log = tmp_path / "docker.log"
    program = folder / "docker"
    program.write_text(DOCKER.format(python=sys.executable, log=str(log)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return log


def test_a_container_gets_nothing_but_the_box(engine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-SECRET")
    made = sandboxes("container:IMAGE", 1, tmp_path / "slots")
    found = probe(made)
    assert found.problem is None
    assert (found.facts["level"], found.facts["image"]) == ("container", "IMAGE")
    with made.open({"workbook.xlsx": b"abc"}) as sandbox:
        assert answer(sandbox, "bash", {"command": "ls; echo x > y"}).text == "workbook.xlsx\n"
        assert answer(sandbox, "bash", {"command": "ls"}).text == "workbook.xlsx\ny\n"
    calls = [call.split("\n") for call in engine.read_text().split("\n--\n") if call]
    runs = [call for call in calls if call[0] == "run"]
    assert {call[-1] for call in calls if call[0] == "rm"} == {call[call.index("--name") + 1] for call in runs}
    for call in runs:
        assert call[call.index("--network") + 1] == "none"
        assert call[call.index("--cap-drop") + 1] == "ALL"
        assert call[call.index("--security-opt") + 1] == "no-new-privileges"
        assert "--read-only" in call
        assert int(call[call.index("--pids-limit") + 1]) == LIMITS.processes
        volumes = [each for flag, each in pairwise(call) if flag == "--volume"]
        assert sorted(each.rpartition(":")[2] for each in volumes) == ["/run/state", "/work"]
        assert not [each for each in call if "SECRET" in each]
        assert call[call.index("--user") + 1].split(":")[0] != "0"


def test_an_engine_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert probe(sandboxes("container:IMAGE", 1, tmp_path)).problem == "neither docker nor podman is installed"


def test_a_box_that_cannot_be_made_is_an_error_of_its_own(
    bubblewrap: Sandboxes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(SandboxError, match="no folder for a sandbox could be made"):
        bubblewrap.open({})


def test_a_process_that_is_no_root_needs_no_other_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert bubblewrap_module.own_user() is None
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    users = {bubblewrap_module.own_user() for _ in range(20)}
    assert len(users) == 20
    assert 0 not in users

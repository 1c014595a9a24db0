"""How the command line is read: values apart from their options, and that a worker makes no plan from it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.integration.conftest import HOUSE, Bench, as_written

pytestmark = as_written

ONE_KILLED = """
import os, signal
def pytest_runtest_setup(item):
    once = Path(__file__).with_name("killed")
    if os.environ.get("PYTEST_XDIST_WORKER") == "gw1" and not once.exists():
        once.touch()
        os.kill(os.getpid(), signal.SIGKILL)
"""


def _pytest(bench: Bench, *arguments: str, seconds: float = 90) -> subprocess.CompletedProcess[str]:
    """As a user types it, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=bench.pytester.path,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


@pytest.fixture
def elsewhere(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder outside the project, as its user would name it."""
    return os.path.relpath(tmp_path_factory.mktemp("elsewhere"), bench.pytester.path)


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one-process", "two-workers"])
@pytest.mark.parametrize(
    "option", ["--cellprose-cells", "--cellprose-out", "--cellprose-resume", "--cellprose-exclude"]
)
def test_a_value_apart_that_would_cost_the_ini_file_is_refused(
    bench: Bench, elsewhere: str, workers: tuple[str, ...], option: str
) -> None:
    result = _pytest(bench, *workers, option, elsewhere)
    assert result.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"write {option}={elsewhere}" in result.stderr
    assert str(bench.pytester.path / "pyproject.toml") in result.stderr
    assert "Traceback" not in result.stderr
    assert not bench.results.exists()


def test_so_is_one_in_the_environment_and_one_for_a_folder_that_is_still_to_be_made(
    bench: Bench, elsewhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", f"--cellprose-out {elsewhere}/new")
    result = _pytest(bench)
    assert result.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"write --cellprose-out={elsewhere}/new" in result.stderr


def test_a_value_apart_that_costs_nothing_is_taken(bench: Bench) -> None:
    (bench.pytester.path / "more").mkdir()
    arguments = ("--cellprose-cells", "more", "--cellprose-out", "new", "--cellprose-models", "reader")
    for _ in range(2):  # the second time the results folder is there
        result = _pytest(bench, *arguments)
        assert result.returncode == 0, result.stdout
        assert "testpaths: cells" in result.stdout
    assert len(list((bench.pytester.path / "new" / "runs").glob("*.json"))) == 2


def test_with_a_sign_between_them_any_value_is_taken(bench: Bench, elsewhere: str) -> None:
    result = _pytest(bench, f"--cellprose-out={elsewhere}", "--cellprose-models=reader")
    assert result.returncode == 0, result.stdout
    assert "configfile: pyproject.toml" in result.stdout


def test_pytest_main_in_a_script_returns(bench: Bench) -> None:
    (bench.pytester.path / "mine").mkdir()
    script = (
        "import pytest\n"
        "code = pytest.main(['--cellprose-cells', 'mine', '--cellprose-models', 'reader', '-q'])\n"
        "print('returned', int(code))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=bench.pytester.path, capture_output=True, text=True, timeout=90, check=False
    )
    assert done.stdout.rstrip().endswith("returned 0")


def test_a_wrong_hook_argument_is_named_by_pytest(bench: Bench) -> None:
    (bench.pytester.path / "mine").mkdir()
    bench.pytester.makeconftest("def pytest_runtest_setup(itemm):\n    pass\n")
    result = _pytest(bench, "--cellprose-cells", "mine")
    assert "Argument(s) {'itemm'} are declared in the hookimpl but can not be found in the hookspec" in (
        result.stdout + result.stderr
    )
    assert "Error while loading plugin" not in result.stdout + result.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is POSIX")
def test_a_worker_that_replaces_a_killed_one_makes_no_plan_of_its_own(bench: Bench) -> None:
    """The results folder was not there when the first workers read the command line, and is now."""
    bench.pytester.makeconftest(HOUSE + ONE_KILLED)
    arguments = ("--cellprose-live", "--cellprose-models", "house", "--cellprose-out", "new", "-n", "2")
    result = _pytest(bench, *arguments)
    assert "1 failed, 11 passed" in result.stdout
    calls = (bench.pytester.path / "calls.log").read_text().splitlines()
    assert len(calls) in (11, 12)  # the one that was under way in the killed worker may have been counted
    new = bench.pytester.path / "new"
    assert len(list((new / "runs").glob("*.json"))) == len(list(new.glob("*/ledger*.json"))) == 1
    (records,) = new.glob("*/records-*.jsonl")
    assert len({line for line in records.read_text().splitlines() if line}) == 12


def test_a_worker_without_the_controllers_plan_has_no_cells(bench: Bench) -> None:
    bench.pytester.makeconftest(
        HOUSE + "@pytest.hookimpl(trylast=True)\n"
        "def pytest_configure_node(node):\n"
        "    node.workerinput.pop('cellprose_run')\n"
    )
    result = _pytest(bench, "-n", "2", "--cellprose-live", "--cellprose-models", "house")
    assert "1 skipped" in result.stdout
    assert not (bench.pytester.path / "calls.log").exists()
    assert not bench.results.exists() or not list(bench.results.rglob("*"))


def test_a_worker_cannot_make_a_plan(bench: Bench) -> None:
    """By whichever way it would get there."""
    bench.pytester.makeconftest(
        HOUSE + "def pytest_collection_finish(session):\n"
        "    if hasattr(session.config, 'workerinput'):\n"
        "        from pytest_cellprose.session.controller import build_run\n"
        "        with pytest.raises(RuntimeError, match='makes none of its own'):\n"
        "            build_run(session.config)\n"
        "        Path(__file__).with_name('refused').touch()\n"
    )
    result = _pytest(bench, "-n", "1", "--cellprose-models", "reader")
    assert result.returncode == 0, result.stdout
    assert (bench.pytester.path / "refused").exists()


def test_no_hook_relies_on_another_that_ran_before_it(bench: Bench) -> None:
    """pytest-xdist's own tests call hooks on a config that nobody configured."""
    from pytest_cellprose import plugin

    config = bench.pytester.parseconfig()

    class Node:
        def __init__(self) -> None:
            self.config = config
            self.workeroutput: dict[str, object] = {}

    class Session:
        def __init__(self) -> None:
            self.config = config
            self.items: list[pytest.Item] = []

    class Scheduler:
        def __init__(self) -> None:
            self.config = config

    node: object = Node()
    assert plugin.pytest_configure_node(node) is None
    assert plugin.pytest_testnodedown(node, None) is None
    assert plugin.pytest_xdist_node_collection_finished(node, []) is None
    assert plugin.pytest_handlecrashitem("x::y", None, Scheduler()) is None  # type: ignore[arg-type]
    assert plugin.pytest_xdist_make_scheduler(config, None) is None
    assert plugin.pytest_report_header(config) == []
    assert plugin.pytest_collection_finish(Session()) is None  # type: ignore[arg-type,func-returns-value]
    assert plugin.pytest_sessionfinish(Session()) is None  # type: ignore[arg-type,func-returns-value]
    assert plugin.pytest_terminal_summary(None, config) is None  # type: ignore[arg-type,func-returns-value]
    assert plugin.pytest_report_teststatus(None, config) is None  # type: ignore[arg-type]

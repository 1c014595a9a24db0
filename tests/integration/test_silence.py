"""Where there are no cells the plugin is silent, and it can be switched off."""

from __future__ import annotations

import pytest

from tests.integration.conftest import Bench


def test_a_project_without_cells_sees_nothing_of_ours(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    pytester.makepyfile("def test_it():\n    pass\n")
    result = pytester.runpytest("-v", *workers)
    result.assert_outcomes(passed=1)
    output = (result.stdout.str() + result.stderr.str()).replace("plugins: ", "\nplugins: ")
    shown = [line for line in output.splitlines() if not line.startswith("plugins:")]
    assert not any("cellprose" in line for line in shown)
    assert not (pytester.path / "results").exists()


def test_other_tests_of_a_project_with_cells_see_nothing_of_ours(bench: Bench) -> None:
    bench.pytester.makepyfile(test_other="def test_it():\n    pass\n")
    result = bench.run("test_other.py")
    result.assert_outcomes(passed=1)
    assert not any(line.startswith("cellprose") for line in result.outlines)


def test_it_can_be_switched_off(bench: Bench) -> None:
    result = bench.run("-p", "no:cellprose")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*fixture 'cell' not found*"])
    assert "--cellprose-live" not in bench.run("-p", "no:cellprose", "--help").stdout.str()


def test_a_project_may_have_a_cell_of_its_own(bench: Bench) -> None:
    bench.pytester.makepyfile(
        test_own="import pytest\n"
        "@pytest.fixture\n"
        "def cell():\n"
        "    return 7\n"
        "def test_fixture(cell):\n"
        "    assert cell == 7\n"
    )
    bench.pytester.makepyfile(
        test_parameter="import pytest\n@pytest.mark.parametrize('cell', [1, 2])\ndef test_it(cell):\n    assert cell\n"
    )
    bench.run("test_own.py", "test_parameter.py").assert_outcomes(passed=3)


@pytest.mark.parametrize(
    "decorator",
    ["@pytest.mark.parametrize('row, cell', [(1, 2)])", "@pytest.mark.parametrize(['row', 'cell'], [(1, 2)])"],
)
def test_tests_with_a_parameter_of_that_name_plan_nothing(bench: Bench, decorator: str) -> None:
    bench.pytester.makepyfile(
        test_parameter=f"import pytest\n{decorator}\ndef test_it(row, cell):\n    helper(cell)\n"
        "def helper(cell):\n    assert cell == 2\n"
    )
    result = bench.run("test_parameter.py")
    result.assert_outcomes(passed=1)
    assert not any(line.startswith("cellprose") for line in result.outlines)


def test_a_test_that_takes_a_cell_without_any_is_skipped_with_advice(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_cell(cell):\n    cell.run()\n")
    result = pytester.runpytest("-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*no cells: *--cellprose-cells DIR*"])


def test_settings_are_listed_in_help(pytester: pytest.Pytester) -> None:
    text = pytester.runpytest("--help").stdout.str()
    for option in ("--cellprose-live", "--cellprose-final", "--cellprose-reps", "cellprose_cells", "cellprose_models"):
        assert option in text

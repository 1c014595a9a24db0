"""``--collect-only`` is the plan; filters slice it; its order is the protocol's."""

from __future__ import annotations

import hashlib
import json
import random
import re
import shutil

import pytest

from pytest_cellprose.options import VALUED
from tests.integration.conftest import HOUSE, Bench, as_written

PROPOSED = ["haiku55", "sonnet55", "opus55", "gpt6luna", "gpt61sol", "gpt6astra"]


def planned(bench: Bench, *arguments: str) -> list[str]:
    result = bench.run("--collect-only", "-q", *arguments)
    assert result.ret == 0
    return [line.partition("[")[2][:-1] for line in result.outlines if "::" in line]


def test_collect_only_lists_exactly_the_planned_ids_in_order(bench: Bench) -> None:
    ids = planned(bench, "--cellprose-encodings", "cellprose_lean_gfm,csv", "--cellprose-reps", "2")
    assert ids == [
        f"{model}-{encoding}-{workbook}-rep{repeat}"
        for repeat in (1, 2)
        for workbook in ("alpha", "beta")
        for model in ["reader", *PROPOSED]
        for encoding in ("cellprose_lean_gfm", "csv")
    ]
    assert not bench.results.exists()


def test_collect_only_prints_nothing_but_ids_when_quiet(bench: Bench) -> None:
    result = bench.run("--collect-only", "-q", "--cellprose-models", "reader", "--cellprose-encodings", "csv")
    assert [line for line in result.outlines if line] == [
        "cells/test_cells.py::test_cell[reader-csv-alpha-rep1]",
        "cells/test_cells.py::test_cell[reader-csv-beta-rep1]",
        result.outlines[-1],
    ]
    result.stdout.fnmatch_lines(["2 tests collected in *"])


def test_collect_only_shows_counts_and_costs_of_live_models(bench: Bench) -> None:
    result = bench.run("--collect-only", "--cellprose-encodings", "cellprose_lean_gfm,csv,none")
    result.stdout.fnmatch_lines(
        [
            "cellprose: development run of 7 models × 3 encodings × 2 workbooks × 1 repeat = 42 cells",
            "42 of 42 planned cells selected",
            "*haiku55 *6 cells  expected $0.0*, worst case $0.0*",
            "*gpt6astra *6 cells  expected $*, worst case $4.8*",
            "*in all *36 cells  expected $*, worst case $*",
        ]
    )


def test_the_order_survives_a_plugin_that_shuffles(bench: Bench) -> None:
    bench.pytester.makeconftest(
        "import random\ndef pytest_collection_modifyitems(items):\n    random.Random(1).shuffle(items)\n"
    )
    ids = planned(bench, "--cellprose-models", "reader", "--cellprose-reps", "3")
    assert ids == sorted(ids, key=lambda name: (name.rsplit("rep", 1)[1], name.split("-")[2]))
    assert len(ids) == 3 * 2 * 6
    assert random.Random(1).sample(ids, len(ids)) != ids


def test_none_once_runs_the_control_in_the_first_repeat_only(bench: Bench) -> None:
    arguments = ["--cellprose-models", "reader", "--cellprose-reps", "2", "--cellprose-encodings", "csv,none"]
    ids = planned(bench, *arguments, "--cellprose-none-once")
    assert [name for name in ids if "none" in name] == ["reader-none-alpha-rep1", "reader-none-beta-rep1"]
    assert len(ids) == 6


def test_keywords_and_filters_run_just_those_cells(bench: Bench) -> None:
    arguments = ["--cellprose-models", "reader", "--cellprose-reps", "2", "-k", "cellprose_lean_gfm and rep1"]
    result = bench.run(*arguments)
    assert result.ret == 0
    assert bench.ids() == ["reader-cellprose_lean_gfm-alpha-rep1", "reader-cellprose_lean_gfm-beta-rep1"]


def test_a_workbook_filter_and_a_node_id(bench: Bench) -> None:
    assert planned(bench, "--cellprose-workbooks", "beta", "--cellprose-models", "reader", "-k", "csv") == [
        "reader-csv-beta-rep1"
    ]
    result = bench.run("cells/test_cells.py::test_cell[reader-none-beta-rep1]")
    assert result.ret == 0
    assert bench.ids() == ["reader-none-beta-rep1"]


def test_an_effort_is_a_model_of_its_own(bench: Bench) -> None:
    ids = planned(bench, "--cellprose-models", "haiku55,haiku55@low", "--cellprose-encodings", "csv", "-k", "alpha")
    assert ids == ["haiku55-csv-alpha-rep1", "haiku55@low-csv-alpha-rep1"]


def test_ini_settings_name_models_and_folders(bench: Bench) -> None:
    bench.cells.rename(bench.pytester.path / "elsewhere")
    bench.pytester.makepyprojecttoml(
        '[tool.pytest]\ntestpaths = ["elsewhere"]\ncellprose_cells = ["elsewhere"]\ncellprose_models = ["reader"]\n'
    )
    assert planned(bench, "-k", "csv") == ["reader-csv-alpha-rep1", "reader-csv-beta-rep1"]


def test_a_question_file_whose_workbook_is_elsewhere_is_counted_and_left_out(bench: Bench) -> None:
    away = bench.pytester.mkdir("away")
    (bench.cells / "beta.xlsx").rename(away / "beta.xlsx")
    result = bench.run("--collect-only", "--cellprose-models", "reader")
    result.stdout.fnmatch_lines(["cellprose: 1 workbook not here (beta): name their folder with --cellprose-cells DIR"])
    assert all("-alpha-" in name for name in planned(bench))
    with_folder = planned(bench, "--cellprose-cells", "away", "--cellprose-models", "reader", "-k", "csv")
    assert with_folder == ["reader-csv-alpha-rep1", "reader-csv-beta-rep1"]


def test_a_folder_without_a_split_is_development_and_the_header_says_so(bench: Bench) -> None:
    (bench.cells / "split.json").unlink()
    result = bench.run("--collect-only", "--cellprose-models", "reader", "--cellprose-cells", "cells")
    result.stdout.fnmatch_lines(["cellprose: */cells has no split.json: its workbooks are development"])
    assert result.ret == 0


def test_split_digest_divides_a_folder_without_a_split(bench: Bench) -> None:
    # second-seed.md 3g lists the sides of such names; ours hash the workbook's name alone
    (bench.cells / "split.json").unlink()
    for number in range(12):
        bench.add(f"book{number}", listed=False)

    expected = {
        name
        for name in ["alpha", "beta", *(f"book{number}" for number in range(12))]
        if int(hashlib.sha256(name.encode()).hexdigest()[:8], 16) < 1431655765
    }
    arguments = ["--cellprose-cells", "cells", "--cellprose-split", "digest", "--cellprose-models", "reader"]
    ids = planned(bench, *arguments, "-k", "csv")
    assert {name.split("-")[2] for name in ids} == expected
    assert 0 < len(expected) < 14


def test_models_of_a_hook_are_planned_when_named(bench: Bench) -> None:
    bench.pytester.makeconftest(HOUSE)
    assert planned(bench, "--cellprose-models", "house", "--cellprose-encodings", "csv", "-k", "alpha") == [
        "house-csv-alpha-rep1"
    ]


@as_written
def test_a_cells_folder_outside_the_project_does_not_lose_its_settings(bench: Bench) -> None:
    """Apart from its option it would, and is refused (tests/integration/test_command_line.py)."""
    away = bench.pytester.path.parent / f"{bench.pytester.path.name}-away"
    away.mkdir()
    (bench.cells / "beta.xlsx").rename(away / "beta.xlsx")
    arguments = [f"--cellprose-cells=../{away.name}"]
    result = bench.pytester.runpytest_subprocess(*arguments, "--cellprose-models", "reader", "-k", "csv")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["configfile: pyproject.toml", "testpaths: cells"])
    assert bench.ids() == ["reader-csv-alpha-rep1", "reader-csv-beta-rep1"]
    assert bench.pytester.runpytest_subprocess(*arguments, "--cellprose-models", "gpt99").ret == 4


@as_written
def test_every_option_with_a_value_is_known_to_the_second_look_at_the_command_line(bench: Bench) -> None:
    help_text = bench.pytester.runpytest("--help").stdout.str()
    assert sorted(re.findall(r"^  (--cellprose-[a-z-]+)=", help_text, re.MULTILINE)) == sorted(VALUED)


@as_written
def test_an_option_value_that_is_too_long_for_a_path_is_no_path(bench: Bench) -> None:
    names = ",".join(["alpha", "beta", "x" * 300])
    result = bench.pytester.runpytest_subprocess("--cellprose-workbooks", names)
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*unknown workbook 'xxx*"])


def test_the_baseline_of_paired_comparisons_is_judged_in_the_plan_and_recorded(bench: Bench) -> None:
    for name, told in (("cvs", "'cvs' is not in the plan, which has csv, toon"), ("none", "'none' is the control")):
        result = bench.run("--cellprose-encodings=csv,toon", f"--cellprose-baseline={name}")
        assert result.ret == 4
        result.stderr.fnmatch_lines([f"*--cellprose-baseline: *{told}*"])
    assert bench.run("--cellprose-models=reader", "--cellprose-encodings=csv,toon,markdown").ret == 0
    assert bench.written("report.json")["baseline"] == "cellprose_lean_gfm"
    shutil.rmtree(bench.results)
    arguments = ("--cellprose-models=reader", "--cellprose-encodings=csv,toon,markdown", "--cellprose-baseline=toon")
    assert bench.run(*arguments).ret == 0
    (manifest,) = (bench.results / "runs").glob("*.json")
    assert json.loads(manifest.read_text(encoding="utf-8"))["settings"]["baseline"] == "toon"
    rows = bench.written("report.json")["sets"]["development"]["models"]["reader"]["paired"]["rows"]
    assert [(row["a"], row["b"]) for row in rows[:2]] == [("toon", "csv"), ("toon", "markdown")]


@pytest.mark.parametrize("arguments", [("-k", "not beta"), ("-x",), ("-k", "not (csv and beta)")])
def test_a_run_that_was_cut_short_has_no_word_of_a_verdict(bench: Bench, arguments: tuple[str, ...]) -> None:
    """Also where it is the user who cut it."""
    bench.pytester.makeconftest(
        "import pytest\n"
        "@pytest.fixture(autouse=True)\n"
        "def cut(request):\n"
        "    if request.config.option.maxfail and 'csv-beta' in request.node.nodeid:\n"
        "        pytest.fail('cut')\n"
    )
    models = ("--cellprose-models=reader", "--cellprose-encodings=cellprose_lean_gfm,csv")
    word = re.compile(r"\b(win|loss|no difference)\b", re.IGNORECASE)
    result = bench.run(*models, *arguments)
    text = result.stdout.str().split("= cellprose =")[1]
    page = next(bench.results.glob("*/report.md")).read_text(encoding="utf-8")
    assert not word.search(text.split("short test summary")[0])
    assert not word.search(page)
    verdicts = bench.written("verdicts.json")
    against = verdicts["sets"]["development"]["models"]["reader"]["against"]["csv"]
    assert against["verdict"] is None
    assert against["reason"] == "incomplete: 1 of 2 workbooks"
    assert verdicts["complete"] is False
    shutil.rmtree(bench.results)
    assert word.search(bench.run(*models).stdout.str())


def test_a_run_with_skipped_models_does_not_call_itself_complete(bench: Bench) -> None:
    assert bench.run("--cellprose-models=reader,haiku55", "--cellprose-encodings=csv").ret == 0
    for name in ("report.json", "verdicts.json"):
        assert bench.written(name)["complete"] is False
        assert bench.written(name)["cells"]["skipped"] == 2

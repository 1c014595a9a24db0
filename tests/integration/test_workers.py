"""The same records and verdicts, however many processes make them."""

from __future__ import annotations

import json
import shutil
from typing import Any

from tests.integration.conftest import HOUSE, Bench, own_workers


def measured(bench: Bench, *arguments: str) -> tuple[list[dict[str, Any]], str]:
    """Records without what differs from run to run, and the text of verdicts.json without the run id."""
    if bench.results.exists():
        shutil.rmtree(bench.results)
    result = bench.run("--cellprose-models", "reader", "--cellprose-reps", "2", *arguments)
    assert result.ret == 0
    records = bench.records()
    for record in records:
        for name in ("run", "started", "seconds"):
            del record[name]
    (path,) = bench.results.glob("*/verdicts.json")
    text = path.read_text(encoding="utf-8")
    return sorted(records, key=lambda record: json.dumps(record["cell"])), text.replace(json.loads(text)["run"], "RUN")


@own_workers
def test_records_and_verdicts_are_the_same_with_any_workers_and_distribution(bench: Bench) -> None:
    alone = measured(bench)
    assert len(alone[0]) == 2 * 2 * 6
    for arguments in (
        "-n 4",
        "-n auto --maxprocesses 2 --dist loadscope",
        "-n 1 --dist loadgroup",
        "-n 2 --dist worksteal",
    ):
        assert measured(bench, *arguments.split()) == alone, arguments
        assert len(list((bench.results / "runs").glob("*.json"))) == 1, arguments


@own_workers
def test_every_worker_calls_its_share_in_the_plans_order(bench: Bench) -> None:
    # xdist's default chunks start the second repeat of a cell while the first of another is still to come
    bench.pytester.makeconftest(
        HOUSE.replace(
            "        with Path", "        import os; worker = os.environ['PYTEST_XDIST_WORKER']\n        with Path"
        ).replace('returned_model="house-8b"', "returned_model=worker")
    )
    arguments = ["--cellprose-live", "--cellprose-models", "house", "--cellprose-encodings", "csv", "-n", "2"]
    assert bench.run(*arguments, "--cellprose-reps", "10", "--cellprose-inflight", "1").ret == 0
    shares: dict[str, list[int]] = {}
    for record in sorted(bench.records(), key=lambda record: record["started"]):
        cell = record["cell"]
        place = 2 * (cell["repeat"] - 1) + (cell["workbook"] == "beta")
        shares.setdefault(record["model"]["returned"], []).append(place)
    assert shares == {"gw0": list(range(0, 20, 2)), "gw1": list(range(1, 20, 2))}


CRASHING = HOUSE.replace(
    "        with Path",
    "        try:\n"
    "            Path(__file__).with_name('crashed').touch(exist_ok=False)  # one worker alone\n"
    "        except FileExistsError:\n"
    "            pass\n"
    "        else:\n"
    "            import os; os._exit(1)\n"
    "        with Path",
)
LIVE = ("--cellprose-live", "--cellprose-models", "house", "--cellprose-encodings", "csv,none", "--cellprose-reps", "4")


@own_workers
def test_a_crashed_workers_cells_are_measured_by_the_others_and_the_lost_one_by_a_resumed_run(bench: Bench) -> None:
    bench.pytester.makeconftest(CRASHING)
    result = bench.run(*LIVE, "-n", "2", "--cellprose-inflight=1")  # so that one call is lost and no more
    assert result.ret == 1
    result.assert_outcomes(passed=15, failed=1)
    assert len(bench.ids()) == len(set(bench.ids())) == 16
    (lost,) = [record for record in bench.records() if record["outcome"]["status"] == "fault"]
    assert lost["outcome"]["kind"] == "interrupted"
    assert lost["scores"] is None
    cell = "-".join(str(part) for part in list(lost["cell"].values())[:3]) + f"-rep{lost['cell']['repeat']}"
    said = f"{cell} was not measured: interrupted: the worker gw? died while the call was under way: it may be billed"
    result.stdout.fnmatch_lines(
        [f"*{said}", "1 cell faulted, without a score: 1 interrupted*", f"* under way in a process that died*{cell}*"]
    )
    (run,) = (bench.results / "runs").glob("*.json")
    again = bench.run(*LIVE, "--cellprose-resume", run.stem)
    assert again.ret == 0
    again.stdout.fnmatch_lines([f"15 cells kept from run {run.stem}"])
    assert (bench.pytester.path / "calls.log").read_text().count("house-8b") == 16


@own_workers
def test_what_a_worker_recorded_before_it_crashed_is_not_bought_again(bench: Bench) -> None:
    bench.pytester.makeconftest(HOUSE)
    (bench.cells / "test_cells.py").write_text(
        "import os, pathlib, time\n"
        "def recorded():\n"
        "    files = pathlib.Path('results').glob('*/records-*.jsonl')\n"
        "    return sum(len(list(filter(None, path.read_bytes().splitlines()))) for path in files)\n"
        "def test_cell(cell):\n"
        "    cell.run()\n"
        "    flag = pathlib.Path(__file__).with_name('crashed')\n"
        "    if cell.repeat == 2 and not flag.exists():\n"
        "        deadline = time.monotonic() + 60\n"
        "        while recorded() < 16 and time.monotonic() < deadline:  # the calls ahead, of both workers\n"
        "            time.sleep(0.02)\n"
        "        flag.touch()\n"
        "        os._exit(1)\n",
        encoding="utf-8",
    )
    result = bench.run(*LIVE, "-n", "2", "--cellprose-inflight", "8")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*worker 'gw?' crashed while running*"])
    assert len(bench.ids()) == len(set(bench.ids())) == 16
    assert {record["outcome"]["status"] for record in bench.records()} == {"scored"}
    assert (bench.pytester.path / "calls.log").read_text().count("house-8b") == 16


@own_workers
def test_workers_of_which_none_measures_anything_miss_no_store(bench: Bench) -> None:
    bench.pytester.makeconftest(HOUSE)
    result = bench.run("--cellprose-models", "house", "--cellprose-encodings", "csv", "-n", "2")
    assert result.ret == 0
    result.assert_outcomes(skipped=2)
    assert "removed" not in result.stdout.str()
    assert not bench.results.exists()

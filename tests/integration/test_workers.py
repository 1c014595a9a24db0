"""The same records and verdicts, however many processes make them."""

from __future__ import annotations

import json
import shutil
from typing import Any

from .conftest import Bench


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


def test_records_and_verdicts_are_the_same_with_and_without_workers(bench: Bench) -> None:
    alone = measured(bench)
    assert len(alone[0]) == 2 * 2 * 6
    assert measured(bench, "-n", "2") == alone
    assert measured(bench, "-n", "4") == alone
    assert measured(bench, "-n", "2", "--dist", "worksteal") == alone


def test_workers_share_one_run(bench: Bench) -> None:
    bench.run("--cellprose-models", "reader", "-n", "4")
    assert len({record["run"] for record in bench.records()}) == 1
    assert len(list((bench.results / "runs").glob("*.json"))) == 1


def test_workers_keep_to_the_plans_order_within_a_cell_each(bench: Bench) -> None:
    bench.run("--cellprose-models", "reader", "--cellprose-encodings", "csv,none", "--cellprose-reps", "8", "-n", "2")
    order = [record["cell"]["repeat"] for record in bench.records()]
    assert len(order) == 32
    displaced = [abs(place - expected) for expected, place in enumerate(sorted(range(32), key=lambda i: order[i]))]
    assert max(displaced) <= 4

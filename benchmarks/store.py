"""Reading a run's records and working out its report: seconds and peak memory. ``python benchmarks/store.py``.

Each figure is taken in a process of its own, of a run whose records have a reply of 5 kB. Wanted: streaming in flat
memory, and a report whose memory grows with the cells and not with their replies.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from pytest_cellprose.record.record import Record
from pytest_cellprose.report.analysis import analyse
from pytest_cellprose.store.manifest import Manifest
from pytest_cellprose.store.records import Index, Store, line_of

SIZES = (1_000, 10_000, 100_000)
QUESTIONS = 17
START = datetime(2026, 12, 1, 10, tzinfo=UTC)
REPLY = 5_000
"""Characters."""


def manifest(cells: int) -> Manifest:
    """Two models, five encodings, 20 workbooks, and as many repeats as it takes."""
    workbooks = [
        {"name": f"w{n:02d}", "set": "development", "workbook_sha256": "1" * 64, "questions_sha256": "2" * 64,
         "questions": QUESTIONS}
        for n in range(20)
    ]  # fmt: skip
    encodings = ["cellprose_lean_gfm", "markitdown", "csv", "markdown", "toon"]
    models = ["haiku55", "gpt6luna"]
    return Manifest.model_validate(
        {
            "run": "20261201T100000000Z-abc123", "mode": "live", "started": "2026-12-01T10:00:00Z", "invocation": [],
            "git": {}, "versions": {}, "challenger": "cellprose_lean_gfm",
            "matrix": {"models": models, "encodings": encodings, "workbooks": workbooks, "repeats": cells // 200},
            "models": [{"alias": name, "model_id": name, "vendor": name, "status": "proposed"} for name in models],
            "encoding_versions": {},
        }
    )  # fmt: skip


def write(store: Store, plan: Manifest) -> None:
    """Records as runs write them, without waiting for the disk after each."""
    store.folder.mkdir(parents=True)
    store.write_manifest(plan)
    names = [f"q{n}" for n in range(1, QUESTIONS + 1)]
    with store.records_path("development").open("wb") as file:
        for number, cell in enumerate(plan.matrix.cells()):
            right = {name: float((number + place) % 3 > 0) for place, name in enumerate(names)}
            record = Record.model_validate(
                {
                    "run": plan.run, "git": {"commit": "0" * 40, "dirty": False}, "cell": cell, "set": "development",
                    "encoding_version": "1", "inputs_id": f"{number:064x}", "prompt_sha256": "3" * 64,
                    "model": {"requested": cell.model, "returned": cell.model, "settings": {"max_tokens": 16_000}},
                    "prices": {"input": "0.1", "output": "0.5"},
                    "usage": {"input": 9_000 + number, "output": 4_000, "raw": {"input_tokens": 9_000 + number}},
                    "counted_tokens": {"counter": "o200k_base", "n": 9_000 + number},
                    "cost_nanousd": 3_000_000 + number, "cost_as_billed_nanousd": 3_000_000 + number,
                    "started": (START + timedelta(milliseconds=number)).isoformat(timespec="milliseconds"),
                    "seconds": 12.5 + number / 1e6, "outcome": {"status": "scored"},
                    "answers": dict.fromkeys(names, 1234.5), "kinds": dict.fromkeys(names, "value"),
                    "scores": right, "accuracy": sum(right.values()) / QUESTIONS,
                    "reply": f"{number} ".ljust(REPLY, "x"),
                }
            )  # fmt: skip
            file.write(line_of(record))


def stream(store: Store) -> object:
    return sum(1 for _ in store.records())


def report(store: Store) -> object:
    return analyse(store.manifest(), store.records()).cells.measured


def index(store: Store) -> object:
    return Index(store).measured()


def json_lines(store: Store) -> object:
    """The least that a reader in Python does: `json.loads` of every line."""
    with store.records_path("development").open("rb") as file:
        return sum(1 for _ in map(json.loads, file))


def measured(task: Callable[[Store], object], out: Path, run: str, answer: Any) -> None:
    """Sends processor seconds of one pass, then the peak in bytes of another under tracemalloc."""
    store = Store(out, run)
    task(store)  # imports and caches
    gc.collect()
    clock = time.process_time()
    task(store)
    seconds = time.process_time() - clock
    tracemalloc.start()
    task(store)
    answer.send((seconds, tracemalloc.get_traced_memory()[1]))


def main() -> None:
    context = multiprocessing.get_context("spawn")
    print(
        "| records | file, MB | json.loads, s | stream, s | peak, MB | index, s | peak, MB | report, s | peak, MB "
        "| per cell |"
    )
    print("|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for size in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            plan = manifest(size)
            store = Store(Path(folder), plan.run)
            write(store, plan)
            megabytes = store.records_path("development").stat().st_size / 1e6
            found = {}
            for task in (json_lines, stream, index, report):
                receiver, sender = context.Pipe(duplex=False)
                process = context.Process(target=measured, args=(task, store.out, store.run, sender))
                process.start()
                found[task] = receiver.recv()
                process.join()
            print(
                f"| {size:,} | {megabytes:,.0f} | {found[json_lines][0]:.2f} | "
                + " | ".join(f"{found[task][0]:.2f} | {found[task][1] / 1e6:.1f}" for task in (stream, index, report))
                + f" | {found[report][1] / size:,.0f} B |",
                flush=True,
            )


if __name__ == "__main__":
    main()

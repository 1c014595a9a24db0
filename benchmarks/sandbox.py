"""What a sandbox adds to a tool call: ``python benchmarks/sandbox.py``.

`true`, as an agent calls it in a real sandbox, against the same in a bare ``bash -c``, in turn; and a sandbox that is
made and removed. Wanted: a median under 50 ms more a call.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from pytest_cellprose.sandbox.choose import probe, sandboxes
from pytest_cellprose.sandbox.tools import answer

ROUNDS = 60


def milliseconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - began)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        made = sandboxes(None, 2, Path(folder))
        found = probe(made)
        if found.problem is not None:
            print(f"no sandbox: {found.problem}", file=sys.stderr)
            return 1
        found_ms: dict[str, list[float]] = {}
        with made.open({"workbook.xlsx": b"", "file.txt": b"a\nb\n"}) as sandbox:
            contenders: dict[str, Callable[[], object]] = {
                "bash -c true": lambda: subprocess.run(["bash", "-c", "true"], capture_output=True, check=True),
                "the tool bash": lambda: answer(sandbox, "bash", {"command": "true"}),
                "python3 -c pass": lambda: subprocess.run([sys.executable, "-ISc", "pass"], check=True),
                "the tool read_file": lambda: answer(sandbox, "read_file", {"path": "file.txt"}),
            }
            for call in contenders.values():
                call()
            for _ in range(ROUNDS):
                for name, call in contenders.items():
                    found_ms.setdefault(name, []).append(milliseconds(call))
        for _ in range(ROUNDS):
            found_ms.setdefault("made and removed", []).append(
                milliseconds(lambda: made.open({"a": b""}).__exit__(*[None] * 3))
            )
    medians = {name: statistics.median(each) for name, each in found_ms.items()}
    for name, median in medians.items():
        print(f"{name:<20} {median:7.1f} ms")
    print(f"{'bash costs more':<20} {medians['the tool bash'] - medians['bash -c true']:7.1f} ms (wanted: under 50)")
    print(f"{'read_file costs more':<20} {medians['the tool read_file'] - medians['python3 -c pass']:7.1f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())

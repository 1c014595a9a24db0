"""What the ledger of spending adds to a call: processor time of a reservation and its settlement. Prints a line.

python benchmarks/ledger.py

Forty other calls are open, as in the harness's throughput benchmark; the best of seven rounds of 200.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from pytest_cellprose.models.registry import builtin_models
from pytest_cellprose.record.record import CellId
from pytest_cellprose.store.ledger import Ledger, PendingCall

CALLS, OPEN, ROUNDS, CAP = 200, 40, 7, 10**12


def main() -> None:
    cell = CellId(model="haiku55", encoding="csv", workbook="budget", repeat=1)
    call = PendingCall("run", cell, builtin_models()["haiku55"], 1_000, 2_000, 1.0)
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "ledger.json")
        for _ in range(OPEN):
            ledger.reserve(call, CAP)

        def milliseconds() -> float:
            start = time.process_time()
            for _ in range(CALLS):
                name = ledger.reserve(call, CAP)
                assert isinstance(name, str)
                ledger.settle(name, 5)
            return (time.process_time() - start) / CALLS * 1000

        print(f"{min(milliseconds() for _ in range(ROUNDS)):.2f} ms CPU a call, with {OPEN} calls open")


if __name__ == "__main__":
    main()

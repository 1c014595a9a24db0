"""What a run and those it goes on from have cost, whatever is left of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_cellprose.store.account import Account
from pytest_cellprose.store.ledger import Ledger, LedgerState, Reservation
from pytest_cellprose.store.manifest import EarlierRun, Manifest
from pytest_cellprose.store.records import Store
from pytest_cellprose.store.spending import spent_before
from tests.report.report_factories import manifest as make_manifest
from tests.report.report_factories import record as make_record


def stored(out: Path, run: str, ledger: LedgerState | None = None, costs: Any = (), **fields: Any) -> Store:
    plan: Manifest = make_manifest(["haiku55", "reader"], run=run, **fields)
    store = Store(out, run)
    store.write_manifest(plan)
    store.folder.mkdir()
    cells = [cell for cell in plan.matrix.cells() if cell.model == "haiku55"]
    for cell, (cost, assumed) in zip(cells, costs, strict=False):
        store.append(make_record(cell, run=run, cost=cost, assumed_nanousd=assumed), plan)
    if ledger is not None:
        Ledger(store.folder / "ledger.json").add(ledger)
    return store


def accounts(store: Store) -> dict[str, Account]:
    return spent_before(store)[0].accounts


BOOKED = Account(spent=70, assumed=5, calls=3, unreported=1)


def test_a_ledger_tells_what_its_run_cost(tmp_path: Path) -> None:
    assert accounts(stored(tmp_path, "r1", LedgerState(vendors={"anthropic": BOOKED}))) == {"anthropic": BOOKED}


def test_a_call_that_a_process_took_with_it_counts_as_expected(tmp_path: Path) -> None:
    lost = Reservation(vendor="anthropic", cell="c", expected=30, started=0)
    store = stored(tmp_path, "r1", LedgerState(vendors={"anthropic": BOOKED}, open={"x": lost}))
    assert accounts(store)["anthropic"] == Account(spent=70, assumed=35, calls=4, unreported=2)


def test_records_tell_it_where_no_ledger_is_or_where_it_knows_less(tmp_path: Path) -> None:
    costs = [(40, None), (50, None), (None, 7)]
    told = Account(spent=90, assumed=7, calls=3, unreported=1)
    assert accounts(stored(tmp_path, "r1", costs=costs)) == {"anthropic": told}
    known = LedgerState(vendors={"anthropic": BOOKED})
    assert accounts(stored(tmp_path, "r2", known, costs)) == {"anthropic": told}
    assert accounts(stored(tmp_path, "r3", known, costs[:1])) == {"anthropic": BOOKED}


@pytest.mark.parametrize("gone", [False, True])
def test_a_lineage_is_told_by_its_runs_or_by_what_a_later_one_says_of_them(tmp_path: Path, gone: bool) -> None:
    if not gone:
        stored(tmp_path, "r1", LedgerState(vendors={"anthropic": BOOKED}))
    earlier = EarlierRun(run="r1", accounts={"anthropic": BOOKED})
    known = {"settings": {"resumed_from": "r1"}, "lineage": [earlier]}
    second = stored(tmp_path, "r2", LedgerState(vendors={"openai": BOOKED}), **known)
    assert spent_before(second) == [EarlierRun(run="r2", accounts={"openai": BOOKED}), earlier]

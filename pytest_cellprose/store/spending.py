"""What calls have cost: of one record, of a run, and of those that it goes on from."""

from __future__ import annotations

from collections import defaultdict
from decimal import ROUND_FLOOR, Decimal

from pytest_cellprose.record.record import Record
from pytest_cellprose.store.account import Account, of_call
from pytest_cellprose.store.layout import LEDGER
from pytest_cellprose.store.ledger import Ledger, LedgerState
from pytest_cellprose.store.manifest import EarlierRun
from pytest_cellprose.store.records import Store, lineage
from pytest_cellprose.wording import NANOUSD


def settled_cost(record: Record) -> int | None:
    """What a call's record says it cost, in nano-dollars; None if tokens may have been billed that nobody reported."""
    if record.attempts == 0 or record.outcome.policy.billed == "no":
        return record.cost_nanousd or 0
    return None if record.assumed_nanousd is not None else record.cost_nanousd


def spent_before(store: Store) -> list[EarlierRun]:
    """What a run that is to be resumed has cost, and each of those that it goes on from itself, the latest first.

    Of one that is no longer here, what the manifest of a later one says. Raises `StoreError`.
    """
    stores = lineage(store)
    found = {earlier.run: EarlierRun(run=earlier.run, accounts=_accounts(earlier)) for earlier in stores}
    for earlier in stores:
        for told in earlier.manifest().lineage:
            found.setdefault(told.run, told)
    return list(found.values())


def _accounts(store: Store) -> dict[str, Account]:
    """Vendor -> what a run's own calls cost: by its ledger or its records, whichever knows of more.

    A ledger knows of calls that a process took with it when it died; records are there where it is not.
    """
    booked, recorded = _booked(Ledger(store.folder / LEDGER).state()), _recorded(store)
    return {
        vendor: max((known.get(vendor, Account()) for known in (booked, recorded)), key=lambda account: account.counted)
        for vendor in sorted({*booked, *recorded})
    }


def _booked(state: LedgerState) -> dict[str, Account]:
    accounts = defaultdict(Account, state.vendors)
    for held in state.open.values():
        accounts[held.vendor] += of_call(None, held.counted)
    return dict(accounts)


def _recorded(store: Store) -> dict[str, Account]:
    manifest = store.manifest()
    vendors = {model.alias: model.vendor for model in manifest.models if model.vendor != "offline"}
    accounts: dict[str, Account] = defaultdict(Account)
    for record in store.records():
        vendor = vendors.get(record.cell.model)
        if vendor is not None and record.run in manifest.runs and record.attempts and not record.kept_from:
            accounts[vendor] += of_call(settled_cost(record), record.assumed_nanousd or 0)
    return dict(accounts)


def nanousd(amount: Decimal | str) -> int:
    """Dollars as whole nano-dollars, rounded down: a cap is never stretched."""
    return int((Decimal(amount) * NANOUSD).to_integral_value(rounding=ROUND_FLOOR))

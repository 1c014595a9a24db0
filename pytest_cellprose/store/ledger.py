"""What a run may spend: one ledger for all its processes, and the question that is asked before every live call.

The ledger is a small file in the run's folder. A call reserves its expected cost before it starts and settles
what it cost when it is over; a process that dies leaves its reservation behind, since the money may be spent.
A call starts only if spent + reserved + its own expected cost is within its vendor's cap (protocol section 8). Where
only the reservations of calls that still run stand in its way it waits for them, since most settle for less.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import ROUND_FLOOR, Decimal
from functools import cached_property
from pathlib import Path

from filelock import FileLock
from pydantic import Field, ValidationError

from pytest_cellprose.models.registry import ModelSpec
from pytest_cellprose.record.outcomes import SPEND_CAP
from pytest_cellprose.record.plain import plain, plain_text
from pytest_cellprose.record.record import CellId, Frozen, NotStarted, Outcome, Record, utc_now
from pytest_cellprose.store.account import Account, of_call
from pytest_cellprose.store.layout import LEDGER, StoreError
from pytest_cellprose.store.manifest import EarlierRun
from pytest_cellprose.store.records import Store, lineage
from pytest_cellprose.wording import NANOUSD, dollars

LONGEST_CALL = 1900.0
"""Seconds: the wall clock of a call, and a little. A reservation that is older belongs to a process that died."""

MOST_LIMITS = 500
"""So many changes of limits are kept: the file is written anew for each call."""


@dataclass(frozen=True)
class PendingCall:
    """A live call that is about to start, as the hook ``pytest_cellprose_admit`` sees it."""

    run: str
    cell: CellId
    model: ModelSpec
    expected_nanousd: int
    """Its expected cost: 10^9 nano-dollars are a dollar."""
    worst_nanousd: int
    """What it costs if it uses max_tokens."""
    run_seconds: float
    """Since the run was planned."""


@dataclass(frozen=True)
class Refusal:
    """Why a call may not start. Its cell has no score and is not called again in this run, which is incomplete."""

    kind: str
    """One word, such as ``spend_cap``."""
    detail: str
    """One line for a reader."""
    limit: float | str | None = None
    """Which limit: how much it allows in `unit`, or in words."""
    used: float | str | None = None
    """How much of it is used."""
    unit: str = ""
    """Of both, if they are numbers: ``%``, ``USD``, ``s``, …"""
    resets: datetime | str | None = None
    """When there is room again: a time, local if it has no time zone, or ISO 8601."""
    by: str = "a plugin"
    """Who refuses, as the report names it."""

    def __post_init__(self) -> None:
        if not self.kind.isidentifier():
            raise ValueError(f"{self.kind!r} is no kind of refusal: one word of letters, digits and '_'")

    def outcome(self) -> Outcome:
        """What is recorded of the cell."""
        resets = self.resets.astimezone(UTC).isoformat() if isinstance(self.resets, datetime) else self.resets
        reason = NotStarted(
            by=plain_text(self.by),
            limit=_number_or_text(self.limit),
            used=_number_or_text(self.used),
            unit=plain_text(self.unit),
            resets=None if resets is None else plain_text(resets),
        )
        return Outcome(status="fault", kind=self.kind, detail=plain_text(self.detail), not_started=reason)


def _number_or_text(value: object) -> float | str | None:
    """Whatever a plugin gave, as a record can hold it."""
    value = plain(value)
    return value if value is None or isinstance(value, int | float) else plain_text(value)


class Reservation(Frozen):
    """A call that has started and not ended, as far as is known."""

    vendor: str
    cell: str
    expected: int
    started: float
    """Seconds since the epoch."""


class Limit(Frozen):
    """A new number of calls that one process may run at a vendor at a time."""

    vendor: str
    process: str
    """``main``, or the name of xdist's worker."""
    calls: int
    since: str
    """UTC, ISO 8601."""


class LedgerState(Frozen):
    vendors: dict[str, Account] = Field(default_factory=dict)
    open: dict[str, Reservation] = Field(default_factory=dict)
    capped: bool = False
    """A call was refused because its vendor's cap had no room for it."""
    limits: list[Limit] = Field(default_factory=list)
    """How refusals for too many requests lowered the number of calls at a time, and how it recovered; the latest."""

    def reserved(self, vendor: str) -> int:
        return sum(held.expected for held in self.open.values() if held.vendor == vendor)

    def running(self, vendor: str, now: float) -> int:
        """What is reserved by calls that can still end."""
        held = (held for held in self.open.values() if held.vendor == vendor)
        return sum(one.expected for one in held if now - one.started < LONGEST_CALL)

    def counted(self, vendor: str) -> int:
        """All that counts towards a vendor's cap."""
        return self.vendors.get(vendor, Account()).counted + self.reserved(vendor)


@dataclass(frozen=True)
class Ledger:
    """The file. Every change is one locked, whole replacement, so that any number of processes may use it."""

    path: Path
    before: Mapping[str, int] = field(default_factory=dict)
    """Vendor -> nano-dollars that the runs cost which this one goes on from: they count towards its caps."""
    _mutex: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def state(self) -> LedgerState:
        """Raises `StoreError` for a file that is no ledger."""
        try:
            return LedgerState.model_validate_json(self.path.read_bytes())
        except FileNotFoundError:
            return LedgerState()
        except (OSError, ValidationError) as error:
            raise StoreError(f"{self.path}: not a readable ledger of spending: {error}") from None

    def reserve(self, call: PendingCall, cap: int | None) -> str | Refusal | None:
        """The name of the call's reservation, or why the cap (nano-dollars) has no room for it.

        None: there is no room now, and there may be some when calls that run have ended.
        """
        vendor, expected, now = call.model.vendor, call.expected_nanousd, time.time()
        with self._lock(make_folder=True):
            state = self.state()
            counted = state.counted(vendor) + self.before.get(vendor, 0)
            if cap is not None and counted + expected > cap:
                if counted - state.running(vendor, now) + expected <= cap:
                    return None
                self._write(state.model_copy(update={"capped": True}))
                return _no_room(state, vendor, expected, cap, self.before.get(vendor, 0))
            name = secrets.token_hex(8)
            held = Reservation(vendor=vendor, cell=str(call.cell), expected=expected, started=now)
            self._write(state.model_copy(update={"open": {**state.open, name: held}}))
        return name

    def settle(self, name: str, cost: int | None) -> None:
        """Replace a reservation by what the call cost; None: unknown, and its expected cost stays counted.

        Raises `StoreError`.
        """
        with self._lock():
            state = self.state()
            still_open = dict(state.open)
            held = still_open.pop(name, None)
            if held is None:
                raise StoreError(f"{self.path}: the reservation of a call is gone: the file was removed or replaced")
            account = state.vendors.get(held.vendor, Account()) + of_call(cost, held.expected)
            vendors = {**state.vendors, held.vendor: account}
            self._write(state.model_copy(update={"vendors": vendors, "open": still_open}))

    def note_limit(self, vendor: str, calls: int, process: str) -> None:
        """Add a new limit of calls at a time to the history."""
        limit = Limit(vendor=vendor, process=process, calls=calls, since=utc_now())
        with self._lock():
            state = self.state()
            self._write(state.model_copy(update={"limits": [*state.limits, limit][-MOST_LIMITS:]}))

    def add(self, other: LedgerState) -> None:
        """Add what was booked elsewhere; calls that are open there stay counted here."""
        with self._lock():
            state = self.state()
            vendors = dict(state.vendors)
            for vendor, account in other.vendors.items():
                vendors[vendor] = vendors.get(vendor, Account()) + account
            limits = sorted([*state.limits, *other.limits], key=lambda limit: limit.since)[-MOST_LIMITS:]
            calls = {**state.open, **other.open}
            capped = state.capped or other.capped
            self._write(LedgerState(vendors=vendors, open=calls, capped=capped, limits=limits))

    @contextmanager
    def _lock(self, *, make_folder: bool = False) -> Iterator[None]:
        try:
            if make_folder:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            # threads queue at the mutex, so that only processes have to look again and again whether the file is free
            with self._mutex, self._file_lock.acquire(poll_interval=0.005):
                yield
        except OSError as error:
            raise StoreError(f"{self.path}: the ledger of spending could not be written: {error}") from None

    @cached_property
    def _file_lock(self) -> FileLock:
        return FileLock(self.path.with_name(f".{self.path.name}.lock"))

    def _write(self, state: LedgerState) -> None:
        """Whole or not at all. Not flushed to the disk: it has to survive a process, and a run no power cut."""
        temporary = self.path.with_name(f".{self.path.name}.tmp")
        temporary.write_text(state.model_dump_json(indent=1) + "\n", encoding="utf-8")
        temporary.replace(self.path)


def _no_room(state: LedgerState, vendor: str, expected: int, cap: int, before: int) -> Refusal:
    reserved = state.reserved(vendor)
    spent = state.counted(vendor) - reserved
    earlier = f"{dollars(before)} spent by the runs that this one goes on from, " if before else ""
    return Refusal(
        SPEND_CAP.name,
        f"{vendor}: {earlier}{dollars(spent)} spent, {dollars(reserved)} reserved by calls that run, and "
        f"{dollars(expected)} expected for this one are over the cap of {dollars(cap)}",
        limit=cap / NANOUSD,
        used=(before + spent + reserved) / NANOUSD,
        unit="USD",
        by="a vendor's cap",
    )


def settled_cost(record: Record) -> int | None:
    """What a call's record says it cost, in nano-dollars; None if tokens may have been billed that nobody reported."""
    unsent = record.attempts == 0 or record.outcome.policy.billed == "no"
    return 0 if record.cost_nanousd is None and unsent else record.cost_nanousd


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
        accounts[held.vendor] += of_call(None, held.expected)
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

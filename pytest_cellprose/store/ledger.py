"""What a run may spend: one ledger for all its processes, and the question that is asked before every live call.

The ledger is a small file in the run's folder. A call reserves its expected cost before it starts and settles
what it cost when it is over; a process that dies leaves its reservation behind, since the money may be spent.
The file is a `LedgerState`, one JSON object. While calls run it is that object on one line and then a line for each
reservation, turn and settlement since; whoever reads it whole (`Ledger.state`) leaves it as the object alone.
A call starts only if spent + reserved + its own expected cost is within its vendor's cap (protocol section 8). Where
only the reservations of calls that still run stand in its way it waits for them, since most settle for less.
"""

from __future__ import annotations

import errno
import os
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from filelock import FileLock
from pydantic import Field, TypeAdapter

from pytest_cellprose.models.registry import ModelSpec
from pytest_cellprose.record.outcomes import SPEND_CAP
from pytest_cellprose.record.plain import plain, plain_text
from pytest_cellprose.record.record import CellId, Frozen, NotStarted, Outcome, utc_now
from pytest_cellprose.store.account import Account, of_call
from pytest_cellprose.store.layout import StoreError
from pytest_cellprose.wording import NANOUSD, dollars

LONGEST_CALL = 1900.0
"""Seconds: the wall clock of a call or a turn, and a little. An older reservation belongs to a process that died."""

MOST_LIMITS = 500
"""So many changes of limits are kept."""

MOST_LINES = 200
"""A file of so many lines is written anew, as one line, before the next is added: every process reads it each time."""


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
    """Seconds since the epoch; of an episode with tools, its last turn."""
    spent: int = 0
    """Nano-dollars that its turns cost so far; only of an episode with tools."""

    @property
    def counted(self) -> int:
        """What counts towards the vendor's cap while it runs."""
        return max(self.expected, self.spent)


class Limit(Frozen):
    """A new number of calls that one process may run at a vendor at a time."""

    vendor: str
    process: str
    """``main``, or the name of xdist's worker."""
    calls: int
    since: str
    """UTC, ISO 8601."""


class Opened(Frozen):
    """A line of the file: a call was admitted."""

    opened: str
    """The name of its reservation."""
    call: Reservation


class Answered(Frozen):
    """A line of the file: a turn of a call with tools was answered, and the call goes on."""

    answered: str
    """The name of its reservation."""
    turn: int
    """Nano-dollars: what it cost, or was expected to where nobody knows."""
    at: float
    """Seconds since the epoch."""


class Settled(Frozen):
    """A line of the file: a call is over."""

    settled: str
    """The name of its reservation."""
    cost: int | None
    """Nano-dollars; None: unknown."""
    assumed: int | None = None
    """What is counted in its place; None: what was reserved."""


_LINE: TypeAdapter[Opened | Answered | Settled] = TypeAdapter(Opened | Answered | Settled)


class LedgerState(Frozen):
    vendors: dict[str, Account] = Field(default_factory=dict)
    open: dict[str, Reservation] = Field(default_factory=dict)
    capped: bool = False
    """A call was refused because its vendor's cap had no room for it."""
    limits: list[Limit] = Field(default_factory=list)
    """How refusals for too many requests lowered the number of calls at a time, and how it recovered; the latest."""

    def reserved(self, vendor: str) -> int:
        return sum(held.counted for held in self.open.values() if held.vendor == vendor)

    def running(self, vendor: str, now: float) -> int:
        """What is reserved by calls that can still end."""
        held = (held for held in self.open.values() if held.vendor == vendor)
        return sum(one.counted for one in held if now - one.started < LONGEST_CALL)

    def counted(self, vendor: str) -> int:
        """All that counts towards a vendor's cap."""
        return self.vendors.get(vendor, Account()).counted + self.reserved(vendor)

    def after(self, line: Opened | Answered | Settled) -> LedgerState:
        """The state that a line makes of this one. Raises `KeyError` for a call that is not open."""
        if isinstance(line, Opened):
            return self.model_copy(update={"open": {**self.open, line.opened: line.call}})
        if isinstance(line, Answered):
            held = self.open[line.answered]
            grown = held.model_copy(update={"spent": held.spent + line.turn, "started": line.at})
            return self.model_copy(update={"open": {**self.open, line.answered: grown}})
        still_open = dict(self.open)
        held = still_open.pop(line.settled)
        account = self.vendors.get(held.vendor, Account()) + of_call(
            line.cost, held.counted if line.assumed is None else line.assumed
        )
        return self.model_copy(update={"vendors": {**self.vendors, held.vendor: account}, "open": still_open})


@dataclass(frozen=True)
class _Read:
    """The bytes of a ledger, and what they come to."""

    content: bytes = b""
    """Empty: there is no file."""
    state: LedgerState = field(default_factory=LedgerState)

    @classmethod
    def of(cls, content: bytes) -> _Read:
        """Raises ValueError and `KeyError`."""
        if not _has_lines(content):
            return cls(content, LedgerState.model_validate_json(content))
        first, _, rest = content.partition(b"\n")
        return cls(first + b"\n", LedgerState.model_validate_json(first)).grown(rest)

    def grown(self, added: bytes) -> _Read:
        """With whole lines added. What a process left of one when it died is no line, and its call was not made."""
        whole = added[: added.rfind(b"\n") + 1]
        state = self.state
        for line in whole.splitlines():
            state = state.after(_LINE.validate_json(line))
        return _Read(self.content + whole, state)


def _has_lines(content: bytes) -> bool:
    """Whether a file has its object on one line, with others after it."""
    first, end, _ = content.partition(b"\n")
    return bool(end) and first.strip() != b"{"


@dataclass
class _Known:
    """What this process knows of the file, so that it takes in only what was added since."""

    read: _Read = _Read()

    def update(self, content: bytes) -> _Read:
        """Raises ValueError and `KeyError`."""
        known = self.read
        added_to = _has_lines(known.content) and content.startswith(known.content)
        self.read = known.grown(content[len(known.content) :]) if added_to else _Read.of(content)
        return self.read


@dataclass(frozen=True)
class Ledger:
    """The file. Every change is locked, and one whole line or one whole replacement, so that any number of processes
    may use it."""

    path: Path
    before: Mapping[str, int] = field(default_factory=dict)
    """Vendor -> nano-dollars that the runs cost which this one goes on from: they count towards its caps."""
    _mutex: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    _known: _Known = field(default_factory=_Known, repr=False, compare=False)

    def state(self) -> LedgerState:
        """What the file says, which is one JSON object then if it can be written.

        Raises `StoreError` for a file that is no ledger.
        """
        read = self._read(_Known())
        if _has_lines(read.content):
            with suppress(StoreError), self._lock():
                read = self._read(self._known)
                if _has_lines(read.content):
                    self._write(read.state)
        return read.state

    def look(self) -> LedgerState:
        """What the file says, without a hand on it; nothing while it cannot be read."""
        with suppress(StoreError):
            return self._read(_Known()).state
        return LedgerState()

    def reserve(self, call: PendingCall, cap: int | None) -> str | Refusal | None:
        """The name of the call's reservation, or why the cap (nano-dollars) has no room for it.

        None: there is no room now, and there may be some when calls that run have ended.
        """
        vendor, expected, now = call.model.vendor, call.expected_nanousd, time.time()
        with self._lock(make_folder=True):
            read = self._read(self._known)
            state = read.state
            counted = state.counted(vendor) + self.before.get(vendor, 0)
            if cap is not None and counted + expected > cap:
                if counted - state.running(vendor, now) + expected <= cap:
                    return None
                self._write(state.model_copy(update={"capped": True}))
                return _no_room(state, vendor, expected, cap, self.before.get(vendor, 0))
            name = secrets.token_hex(8)
            held = Reservation(vendor=vendor, cell=str(call.cell), expected=expected, started=now)
            self._add_line(read, Opened(opened=name, call=held))
        return name

    def note_turn(self, name: str, nanousd: int) -> None:
        """Add what a turn cost to a call that goes on, before its tools run. Raises `StoreError`."""
        with self._lock():
            read = self._read(self._known)
            self._add_line(self._held(read, name), Answered(answered=name, turn=nanousd, at=time.time()))

    def settle(self, name: str, cost: int | None, assumed: int | None = None) -> None:
        """Replace a reservation by what the call cost; None: unknown, and `assumed` is counted, or what was reserved.

        Raises `StoreError`.
        """
        with self._lock():
            read = self._read(self._known)
            self._add_line(self._held(read, name), Settled(settled=name, cost=cost, assumed=assumed))

    def _held(self, read: _Read, name: str) -> _Read:
        """Raises `StoreError` for a call that the file knows nothing of."""
        if name not in read.state.open:
            raise StoreError(f"{self.path}: the reservation of a call is gone: the file was removed or replaced")
        return read

    def note_limit(self, vendor: str, calls: int, process: str) -> None:
        """Add a new limit of calls at a time to the history."""
        limit = Limit(vendor=vendor, process=process, calls=calls, since=utc_now())
        with self._lock():
            state = self._read(self._known).state
            self._write(state.model_copy(update={"limits": [*state.limits, limit][-MOST_LIMITS:]}))

    def add(self, other: LedgerState) -> None:
        """Add what was booked elsewhere; calls that are open there stay counted here."""
        with self._lock():
            state = self._read(self._known).state
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

    def _read(self, known: _Known) -> _Read:
        """Raises `StoreError` for a file that is no ledger."""
        try:
            return known.update(self.path.read_bytes())
        except FileNotFoundError:
            known.read = _Read()
            return known.read
        except (OSError, ValueError, KeyError) as error:
            raise StoreError(f"{self.path}: not a readable ledger of spending: {error}") from None

    def _add_line(self, read: _Read, line: Opened | Answered | Settled) -> None:
        """Whole or not at all, like `_write`; raises OSError."""
        text = f"{line.model_dump_json()}\n".encode()
        if not _has_lines(read.content) or read.content.count(b"\n") >= MOST_LINES:
            self._replace(f"{read.state.model_dump_json()}\n".encode() + text)
            return
        with self.path.open("rb+", buffering=0) as stream:
            end = len(read.content)
            stream.seek(end)
            if stream.write(text) != len(text):
                stream.truncate(end)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            stream.truncate()  # what a process that died left of a line

    def _write(self, state: LedgerState) -> None:
        self._replace(f"{state.model_dump_json(indent=1)}\n".encode())

    def _replace(self, content: bytes) -> None:
        """Whole or not at all. Not flushed to the disk: it has to survive a process, and a run no power cut."""
        temporary = self.path.with_name(f".{self.path.name}.tmp")
        temporary.write_bytes(content)
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

"""Whether a live call may start: the plugins' hook first, then the vendor's cap."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from pytest_cellprose.record.outcomes import WALL_CLOCK
from pytest_cellprose.store.ledger import Ledger, PendingCall, Refusal

AdmitHook: TypeAlias = Callable[[PendingCall], object]


@dataclass(frozen=True)
class Admission:
    """Who decides whether a live call may start: first every hook, then the vendor's cap."""

    ledger: Ledger
    caps: Mapping[str, int]
    """Vendor -> nano-dollars; a vendor that is not named has no cap."""
    ask: AdmitHook = lambda call: None
    """The hook ``pytest_cellprose_admit``: None, or the first `Refusal` of a plugin."""
    pause: float = 0.25
    """Seconds between looks at the ledger while a call waits for room."""

    def start(self, call: PendingCall) -> str | Refusal:
        """The name of a reservation, to be settled when the call is over, or why it may not start.

        Waits while only calls that still run keep this one from starting.
        """
        asked = time.monotonic()
        while True:
            waited = time.monotonic() - asked
            held = self._start(replace(call, run_seconds=call.run_seconds + waited))
            if held is not None:
                return held
            time.sleep(self.pause)

    def _start(self, call: PendingCall) -> str | Refusal | None:
        refusal = self.ask(call)
        if isinstance(refusal, Refusal):
            return refusal
        if refusal is not None:
            raise TypeError(f"hook pytest_cellprose_admit: {refusal!r} is neither None nor a Refusal")
        return self.ledger.reserve(call, self.caps.get(call.model.vendor))


def wall_clock_refusal(call: PendingCall, bound: float | None) -> Refusal | None:
    """Refuse a call that would start later than `bound` seconds after the run was planned."""
    if bound is None or call.run_seconds < bound:
        return None
    return Refusal(
        WALL_CLOCK.name,
        f"{call.run_seconds:,.0f} s after the run was planned, over the bound of {bound:,.0f} s",
        limit=bound,
        used=round(call.run_seconds),
        unit="s",
        by="the wall clock",
    )

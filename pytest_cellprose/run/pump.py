"""Calls in flight: the calls of coming tests run while the test of an earlier cell waits for its own.

Tests report one after another, in the plan's order, and each gets the record of its own cell; only the waiting
is shared. What a call needs is made in the thread that runs the tests, and the calls themselves run in threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Condition
from typing import Generic, TypeVar

K = TypeVar("K")
R = TypeVar("R")

AHEAD = 4
"""How many calls may be done or under way and not yet taken, in multiples of the calls allowed in flight: a
bound, so that ``-x`` and Ctrl-C come soon and little is paid for that nobody takes."""


@dataclass
class Lane:
    """The calls of one vendor: at most `allowed` at a time.

    After a refusal for too many requests the number halves; each call without one brings back a part of one, so
    that a full round of calls brings back one (additive increase, multiplicative decrease).
    """

    ceiling: int
    allowed: float = 0.0
    running: int = 0
    halved: int = 0
    """How often it was halved."""

    def __post_init__(self) -> None:
        self.allowed = float(self.ceiling)

    @property
    def free(self) -> bool:
        return self.running < int(self.allowed)

    def learn(self, limited: bool) -> None:
        """Take note of a call that ended, `limited` if the vendor refused it for too many requests."""
        if limited:
            self.allowed = max(1.0, self.allowed / 2)
            self.halved += 1
        else:
            self.allowed = min(float(self.ceiling), self.allowed + 1 / self.allowed)


class Pump(Generic[K, R]):
    """Runs the calls for the keys of `upcoming`, in that order, ahead of `take`.

    `lane_of` names a key's lane in `ceilings`. `prepare` makes, in the caller's thread, the function that is then
    called in a thread of its own; `limited` tells of a result whether the vendor asked for fewer calls, and `last`
    whether calling on makes no sense, so that nothing more is started ahead.
    """

    def __init__(
        self,
        upcoming: Iterable[K],
        *,
        lane_of: Callable[[K], str],
        prepare: Callable[[K], Callable[[], R]],
        ceilings: Mapping[str, int],
        limited: Callable[[R], bool] = lambda result: False,
        last: Callable[[R], bool] = lambda result: False,
    ) -> None:
        self.lanes = {name: Lane(ceiling) for name, ceiling in ceilings.items()}
        self._waiting = deque(upcoming)
        self._lane_of = lane_of
        self._prepare = prepare
        self._limited = limited
        self._last = last
        self._started: dict[K, Future[R]] = {}
        self._ended = Condition()
        self._stopped = False
        in_flight = max(1, sum(ceilings.values()))
        self._ahead = AHEAD * in_flight
        self._threads = ThreadPoolExecutor(max_workers=in_flight, thread_name_prefix="cellprose-call")

    def take(self, key: K) -> R:
        """The result for a key; calls for later keys are started meanwhile. Raises what its call raised.

        A key that was not announced, or was passed over, is called now.
        """
        while True:
            self._fill(wanted=key)
            with self._ended:
                future = self._started.get(key)
                if future is not None and future.done():
                    del self._started[key]
                    return future.result()
                self._ended.wait()

    def stop(self) -> None:
        """Start nothing more for keys that nobody asks for."""
        self._stopped = True

    def drain(self) -> list[K]:
        """Let the calls under way finish; returns the keys that were called and never taken."""
        self.stop()
        self._threads.shutdown(wait=True)
        left = list(self._started)
        self._started.clear()
        return left

    def _fill(self, wanted: K) -> None:
        """Start what may be started: the wanted key first, then the others in their order."""
        if self._stopped:
            self._waiting.clear()
        if wanted not in self._started:
            if wanted in self._waiting:
                self._waiting.remove(wanted)
            self._waiting.appendleft(wanted)
        passed_over: list[K] = []
        full: set[str] = set()
        while self._waiting and len(full) < len(self.lanes) and len(passed_over) < self._ahead:
            if len(self._started) >= self._ahead and self._waiting[0] != wanted:
                break
            key = self._waiting.popleft()
            lane = self._lane_of(key)
            if lane in full or not self._start(key, lane):
                full.add(lane)
                passed_over.append(key)
        self._waiting.extendleft(reversed(passed_over))

    def _start(self, key: K, name: str) -> bool:
        lane = self.lanes[name]
        with self._ended:
            if not lane.free:
                return False
            lane.running += 1
        future: Future[R]
        try:
            call = self._prepare(key)
        except Exception as error:  # it belongs to the key's own test, and not to the one that waits now
            future = Future()
            future.set_exception(error)
            lane.running -= 1
        else:
            future = self._threads.submit(self._run, call, lane)
        self._started[key] = future
        future.add_done_callback(self._wake)
        return True

    def _run(self, call: Callable[[], R], lane: Lane) -> R:
        limited = False
        try:
            result = call()
            limited = self._limited(result)
            self._stopped = self._stopped or self._last(result)
            return result
        finally:
            with self._ended:
                lane.running -= 1
                lane.learn(limited)

    def _wake(self, future: Future[R]) -> None:
        with self._ended:
            self._ended.notify_all()

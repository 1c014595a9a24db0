"""Calls in flight: the calls of coming tests run while the test of an earlier cell waits for its own.

Tests report one after another, in the plan's order, and each gets the record of its own cell; only the waiting
is shared. What a call needs is made in the thread that runs the tests, and each call runs in a thread of its own:
Ctrl-C reaches the thread that waits, and never a call that is paid for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass
from threading import Condition, Lock, Thread
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
    def limit(self) -> int:
        """How many calls may run now."""
        return int(self.allowed)

    @property
    def free(self) -> bool:
        return self.running < self.limit

    def learn(self, limited: bool) -> None:
        """Take note of a call that ended, `limited` if the vendor refused it for too many requests."""
        if limited:
            self.allowed = max(1.0, self.allowed / 2)
            self.halved += 1
        else:
            self.allowed = min(float(self.ceiling), self.allowed + 1 / self.allowed)


class Prefetch(Generic[K, R]):
    """Runs the calls for the keys of `upcoming`, in that order, ahead of `take`.

    `lane_of` names a key's lane in `ceilings`. `prepare` makes, in the caller's thread, the function that is then
    called in a thread of its own; `limited` tells of a result whether the vendor asked for fewer calls, and `last`
    whether calling on makes no sense, so that nothing more is started ahead. `halted` is asked before anything is
    started ahead. `changed` hears of every new limit of a lane, in calls at a time.
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
        halted: Callable[[], bool] = lambda: False,
        changed: Callable[[str, int], None] = lambda lane, limit: None,
    ) -> None:
        self.lanes = {name: Lane(ceiling) for name, ceiling in ceilings.items()}
        self._waiting = deque(upcoming)
        self._lane_of = lane_of
        self._prepare = prepare
        self._limited = limited
        self._last = last
        self._halted = halted
        self._changed = changed
        self._started: dict[K, Future[R]] = {}
        self._ended = Condition()
        self._telling = Lock()
        """So that limits are told in the order in which they came about."""
        self._stopped = False
        self._ahead = AHEAD * max(1, sum(ceilings.values()))

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

    @property
    def under_way(self) -> int:
        """How many calls have started and not ended."""
        return sum(not future.done() for future in self._started.values())

    def drain(self) -> dict[K, BaseException | None]:
        """Let the calls under way finish; the keys that were called and never taken, with what their calls raised.

        May be interrupted by Ctrl-C and asked again.
        """
        self.stop()
        called = {key: future for key, future in self._started.items() if not future.cancel()}  # or about to be
        wait(called.values())
        self._started.clear()
        return {key: future.exception() for key, future in called.items()}

    def abandon(self) -> list[K]:
        """Wait for nothing; the keys whose calls are still under way."""
        self.stop()
        return [key for key, future in self._started.items() if not future.done()]

    def _fill(self, wanted: K) -> None:
        """Start what may be started: the wanted key first, then the others in their order."""
        if self._stopped or self._halted():
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
        future: Future[R] = Future()
        future.add_done_callback(self._wake)
        try:
            call = self._prepare(key)
        except Exception as error:  # it belongs to the key's own test, and not to the one that waits now
            with self._ended:
                lane.running -= 1
            self._started[key] = future
            future.set_exception(error)
        else:
            self._started[key] = future  # before its thread starts: Ctrl-C may come in between
            Thread(target=self._run, args=(call, name, future), name=f"cellprose-call {key}", daemon=True).start()
        return True

    def _run(self, call: Callable[[], R], name: str, future: Future[R]) -> None:
        """In the call's own thread; what it raises is its taker's to see."""
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = call()
        except BaseException as error:
            self._leave(name, limited=False)
            future.set_exception(error)
        else:
            self._stopped = self._stopped or self._last(result)
            limited = self._limited(result)
            with self._telling:
                limit = self._leave(name, limited=limited)
                future.set_result(result)
                if limit is not None:
                    self._changed(name, limit)

    def _leave(self, name: str, *, limited: bool) -> int | None:
        """A call has ended; the lane's limit, if that changed it."""
        lane = self.lanes[name]
        with self._ended:
            before = lane.limit
            lane.running -= 1
            lane.learn(limited)
            return None if lane.limit == before else lane.limit

    def _wake(self, future: Future[R]) -> None:
        with self._ended:
            self._ended.notify_all()

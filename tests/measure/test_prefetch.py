"""Calls in flight: as many as allowed, in order, and each result to the test that asked for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_cellprose.measure.prefetch import Lane, Prefetch


class Calls:
    """A vendor whose calls end after `seconds`, and that remembers them."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.started: list[int] = []
        self.called: list[int] = []
        self.running = 0
        self.most = 0
        self.lock = threading.Lock()

    def prepare(self, key: int) -> Callable[[], int]:
        assert threading.current_thread() is threading.main_thread()
        self.started.append(key)

        def call() -> int:
            with self.lock:
                self.called.append(key)
                self.running += 1
                self.most = max(self.most, self.running)
            time.sleep(self.seconds)
            with self.lock:
                self.running -= 1
            return key * 10

        return call

    def pump(self, keys: list[int], in_flight: int = 4, **more: object) -> Prefetch[int, int]:
        return Prefetch(keys, lane_of=lambda key: "v", prepare=self.prepare, ceilings={"v": in_flight}, **more)  # type: ignore[arg-type]


def test_calls_overlap_up_to_the_limit_and_start_in_order() -> None:
    calls = Calls(0.05)
    pump = calls.pump(list(range(20)), in_flight=5)
    began = time.monotonic()
    assert [pump.take(key) for key in range(20)] == [key * 10 for key in range(20)]
    spent = time.monotonic() - began
    assert calls.most == 5
    assert calls.started == list(range(20))
    assert 20 / 5 * 0.05 <= spent < 20 * 0.05 / 2


def test_one_in_flight_is_one_after_the_other() -> None:
    calls = Calls(0.005)
    pump = calls.pump(list(range(6)), in_flight=1)
    assert [pump.take(key) for key in range(6)] == [0, 10, 20, 30, 40, 50]
    assert calls.most == 1


@given(
    taken=st.lists(st.integers(0, 30), unique=True),
    announced=st.lists(st.integers(0, 30), unique=True),
    in_flight=st.integers(1, 5),
)
@settings(max_examples=50, deadline=None)
def test_everyone_gets_his_own_result_once_called(taken: list[int], announced: list[int], in_flight: int) -> None:
    calls = Calls()
    pump = calls.pump(announced, in_flight)
    assert [pump.take(key) for key in taken] == [key * 10 for key in taken]
    left = pump.drain()
    assert len(set(calls.started)) == len(calls.started)
    assert set(calls.called) == set(taken) | set(left)


def test_look_ahead_is_bounded() -> None:
    calls = Calls()
    pump = calls.pump(list(range(100)), in_flight=2)
    pump.take(0)
    time.sleep(0.05)
    pump.take(1)
    assert len(calls.started) <= 2 + 4 * 2 + 1


def test_after_a_stop_nothing_is_started_but_what_runs_is_finished() -> None:
    calls = Calls(0.05)
    pump = calls.pump(list(range(50)), in_flight=3)
    pump.take(0)
    pump.stop()
    started = list(calls.started)
    left = pump.drain()
    assert calls.started == started
    assert left == {key: None for key in started if key != 0}
    assert calls.running == 0


def test_lanes_do_not_wait_for_each_other() -> None:
    calls = Calls(0.03)
    pump = Prefetch(
        list(range(12)),
        lane_of=lambda key: "slow" if key < 6 else "quick",
        prepare=calls.prepare,
        ceilings={"slow": 1, "quick": 3},
    )
    assert [pump.take(key) for key in range(12)] == [key * 10 for key in range(12)]
    assert calls.most == 4
    assert [key for key in calls.started if key < 6] == list(range(6))
    assert [key for key in calls.started if key >= 6] == list(range(6, 12))


def test_an_exception_belongs_to_its_own_key() -> None:
    def prepare(key: int) -> Callable[[], int]:
        if key == 2:
            raise ValueError("cannot be prepared")

        def call() -> int:
            if key == 1:
                raise KeyError("cannot be called")
            return key

        return call

    pump = Prefetch(range(4), lane_of=lambda key: "v", prepare=prepare, ceilings={"v": 4})
    assert pump.take(0) == 0
    with pytest.raises(KeyError):
        pump.take(1)
    with pytest.raises(ValueError, match="prepared"):
        pump.take(2)
    assert pump.take(3) == 3
    assert pump.drain() == {}


def test_refusals_halve_the_limit_and_it_recovers() -> None:
    lane = Lane(16)
    lane.learn(limited=True)
    lane.learn(limited=True)
    assert int(lane.allowed) == 4
    for _ in range(4):
        lane.learn(limited=False)
    assert int(lane.allowed) == 4  # a full round brings back (almost) one
    lane.learn(limited=False)
    assert int(lane.allowed) == 5
    for _ in range(300):
        lane.learn(limited=False)
    assert lane.allowed == 16
    for _ in range(10):
        lane.learn(limited=True)
    assert lane.allowed == 1
    assert lane.free


def test_a_vendor_that_refuses_gets_fewer_calls_at_a_time() -> None:
    calls = Calls(0.01)
    pump = calls.pump(list(range(60)), in_flight=8, limited=lambda result: result < 300)
    for key in range(30):
        pump.take(key)
    calls.most = 0
    for key in range(30, 40):
        pump.take(key)
    assert calls.most <= 5
    assert pump.lanes["v"].halved >= 20


def test_what_a_call_raised_that_nobody_took_is_not_lost() -> None:
    def prepare(key: int) -> Callable[[], int]:
        def call() -> int:
            if key == 1:
                raise OSError("the disk is full")
            return key

        return call

    pump = Prefetch(range(3), lane_of=lambda key: "v", prepare=prepare, ceilings={"v": 1})
    assert pump.take(0) == 0
    assert pump.take(2) == 2
    left = pump.drain()
    assert isinstance(left[1], OSError)


def test_calls_that_are_abandoned_are_named_and_keep_nobody_waiting() -> None:
    release = threading.Event()

    def prepare(key: int) -> Callable[[], int]:
        def call() -> int:
            assert key == 0 or release.wait(30)
            return key

        return call

    pump = Prefetch(range(9), lane_of=lambda key: "v", prepare=prepare, ceilings={"v": 3})
    assert pump.take(0) == 0
    assert pump.under_way == len(pump.abandon()) >= 2
    release.set()
    assert set(pump.drain()) >= {1, 2}


def test_nothing_is_started_ahead_once_halted() -> None:
    calls, halted = Calls(), threading.Event()
    pump = calls.pump(list(range(50)), in_flight=2, halted=halted.is_set)
    pump.take(0)
    halted.set()
    started = len(calls.started)
    pump.take(1)
    assert len(calls.started) <= started + 1


def test_every_new_limit_is_told() -> None:
    calls, told = Calls(0.001), list[tuple[str, int]]()
    pump = calls.pump(
        list(range(60)), in_flight=8, limited=lambda result: result < 50, changed=lambda *change: told.append(change)
    )
    for key in range(60):
        pump.take(key)
    pump.drain()
    limits = [limit for _, limit in told]
    assert {lane for lane, _ in told} == {"v"}
    assert min(limits) == 1
    assert limits[-1] > min(limits)
    assert all(one != other for one, other in pairwise(limits))

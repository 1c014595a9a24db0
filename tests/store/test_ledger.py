"""The ledger: exact sums, one for all processes, and never a call that the cap has no room for."""

from __future__ import annotations

import json
import multiprocessing
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_cellprose.measure.admission import Admission, wall_clock_refusal
from pytest_cellprose.models.registry import ModelSpec
from pytest_cellprose.record.record import CellId, Prices
from pytest_cellprose.store.account import Account
from pytest_cellprose.store.layout import StoreError
from pytest_cellprose.store.ledger import LONGEST_CALL, Ledger, LedgerState, PendingCall, Refusal
from pytest_cellprose.store.spending import nanousd


def model(vendor: str = "anthropic") -> ModelSpec:
    return ModelSpec(alias="m", model_id="m-1", vendor=vendor, prices=Prices(input="1", output="1"), max_tokens=100)


def call(expected: int, vendor: str = "anthropic", seconds: float = 0.0) -> PendingCall:
    cell = CellId(model="m", encoding="csv", workbook="w", repeat=1)
    return PendingCall(
        run="r",
        cell=cell,
        model=model(vendor),
        expected_nanousd=expected,
        worst_nanousd=10 * expected,
        run_seconds=seconds,
    )


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "run" / "ledger.json")


def held(result: str | Refusal | None) -> str:
    assert isinstance(result, str)
    return result


def test_a_call_starts_only_if_spent_reserved_and_expected_are_within_the_cap(ledger: Ledger) -> None:
    first = held(ledger.reserve(call(40), 100))
    second = held(ledger.reserve(call(40), 100))
    assert ledger.reserve(call(21), 100) is None  # not now: one of the two may cost less than expected
    refused = ledger.reserve(call(101), 100)
    assert isinstance(refused, Refusal)
    assert refused.kind == "spend_cap"
    held(ledger.reserve(call(20), 100))  # exactly the cap
    ledger.settle(first, 10)
    held(ledger.reserve(call(30), 100))
    ledger.settle(second, 55)  # more than it reserved: admitted is admitted
    assert ledger.state().counted("anthropic") == 10 + 55 + 20 + 30
    assert ledger.reserve(call(1), 100) is None
    assert isinstance(ledger.reserve(call(36), 100), Refusal)


def test_a_call_waits_for_those_that_run_and_starts_if_they_leave_room(ledger: Ledger) -> None:
    running = held(ledger.reserve(call(60), 100))
    seconds: list[float] = []
    admission = Admission(ledger, {"anthropic": 100}, lambda pending: seconds.append(pending.run_seconds), pause=0.01)
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(admission.start, call(60))
        time.sleep(0.1)
        assert not waiting.done()
        ledger.settle(running, 40)
        assert isinstance(waiting.result(timeout=5), str)
    assert seconds[0] < seconds[-1]  # a bound on time is asked again


def test_nobody_waits_for_a_process_that_died(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger.reserve(call(60), 100)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + LONGEST_CALL)
    assert isinstance(Admission(ledger, {"anthropic": 100}).start(call(60)), Refusal)


def test_a_refusal_names_what_was_spent_reserved_expected_and_the_cap(ledger: Ledger) -> None:
    ledger.settle(held(ledger.reserve(call(10**9), None)), 2 * 10**9)
    ledger.reserve(call(3 * 10**9), None)
    refused = ledger.reserve(call(4 * 10**9), 5 * 10**9)  # not even if nothing more is spent
    assert isinstance(refused, Refusal)
    for amount in ("$2.00 spent", "$3.00 reserved", "$4.00 expected", "cap of $5.00"):
        assert amount in refused.detail


def test_vendors_have_caps_of_their_own(ledger: Ledger) -> None:
    admission = Admission(ledger, {"anthropic": 10, "openai": 100})
    assert isinstance(admission.start(call(11)), Refusal)
    assert isinstance(admission.start(call(11, "openai")), str)
    assert isinstance(admission.start(call(10**15, "compat")), str)


def test_a_call_whose_cost_is_unknown_counts_as_expected_and_one_that_never_ended_stays_reserved(
    ledger: Ledger,
) -> None:
    ledger.settle(held(ledger.reserve(call(7), 100)), None)
    ledger.reserve(call(5), 100)
    state = ledger.state()
    assert (state.vendors["anthropic"].spent, state.vendors["anthropic"].assumed) == (0, 7)
    assert state.reserved("anthropic") == 5
    assert state.counted("anthropic") == 12


def test_a_plugin_is_asked_first_and_its_refusal_reserves_nothing(ledger: Ledger) -> None:
    asked: list[PendingCall] = []

    def pause(pending: PendingCall) -> Refusal:
        asked.append(pending)
        return Refusal("window_full", "82 % of the window is used")

    admission = Admission(ledger, {}, pause)
    assert admission.start(call(1)) == Refusal("window_full", "82 % of the window is used")
    assert asked[0].expected_nanousd == 1
    assert not ledger.path.exists()


def test_an_answer_of_a_plugin_that_is_no_refusal_is_its_bug(ledger: Ledger) -> None:
    with pytest.raises(TypeError, match=r"pytest_cellprose_admit.*'no'"):
        Admission(ledger, {}, lambda pending: "no").start(call(1))
    with pytest.raises(ValueError, match="no kind of refusal"):
        Refusal("not a kind", "")


def test_the_wall_clock_bounds_starts(ledger: Ledger) -> None:
    assert wall_clock_refusal(call(1, seconds=59.9), 60) is None
    assert wall_clock_refusal(call(1, seconds=1e9), None) is None
    refused = wall_clock_refusal(call(1, seconds=60), 60)
    assert refused is not None
    assert refused.kind == "wall_clock"
    assert wall_clock_refusal(call(1), 0) is not None


@pytest.mark.parametrize("content", ["", "[]", '{"vendors": 3}', '{"extra": 1}'])
def test_a_file_that_is_no_ledger_is_named_and_not_overwritten(ledger: Ledger, content: str) -> None:
    ledger.path.parent.mkdir()
    ledger.path.write_text(content)
    with pytest.raises(StoreError, match=r"ledger\.json: not a readable ledger"):
        ledger.reserve(call(1), 10)
    assert ledger.path.read_text() == content


def test_dollars_become_whole_nano_dollars_and_never_more() -> None:
    assert nanousd("20") == 20_000_000_000
    assert nanousd("0.0000000019") == 1


def _spend(path: str, seed: int, calls: int, cap: int) -> None:
    """One worker: many calls of random expected cost, each costing up to twice as much."""
    ledger, draw = Ledger(Path(path)), random.Random(seed)
    for _ in range(calls):
        expected = draw.randrange(1, 1_000)
        name = Admission(ledger, {"anthropic": cap}, pause=0.01).start(call(expected))
        if isinstance(name, str):
            ledger.settle(name, draw.randrange(0, 2 * expected))


def test_processes_that_spend_at_once_lose_nothing_and_keep_the_cap(ledger: Ledger) -> None:
    processes, calls, cap = 4, 60, 80_000
    spawn = multiprocessing.get_context("fork")
    workers = [spawn.Process(target=_spend, args=(str(ledger.path), n, calls, cap)) for n in range(processes)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert {worker.exitcode for worker in workers} == {0}
    state = ledger.state()
    account = state.vendors["anthropic"]
    assert state.open == {}
    # overshoot: at most what the calls in flight cost beyond what was expected of them
    assert account.spent <= cap + processes * 1_000
    assert account.spent > cap - 1_000 or account.calls == processes * calls
    assert json.loads(ledger.path.read_text())["vendors"]["anthropic"]["spent"] == account.spent


def test_threads_that_spend_at_once_lose_nothing(ledger: Ledger) -> None:
    def spend() -> None:
        for _ in range(20):
            ledger.settle(held(ledger.reserve(call(3), None)), 2)

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.state() == LedgerState(vendors={"anthropic": Account(spent=320, calls=160)})


def test_a_call_costs_little_time_of_the_processor(ledger: Ledger) -> None:
    def milliseconds(calls: int = 40) -> float:
        started = time.process_time()
        for _ in range(calls):
            ledger.settle(held(ledger.reserve(call(3), 10**9)), 2)
        return (time.process_time() - started) / calls * 1000

    assert min(milliseconds() for _ in range(5)) < 2


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 100), st.booleans()), max_size=15),
    st.integers(0, 200),
)
def test_what_is_admitted_was_within_the_cap(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int, bool]], cap: int
) -> None:
    ledger = Ledger(tmp_path_factory.mktemp("ledger") / "ledger.json")
    counted = 0
    running = 0
    for expected, cost, ends in steps:
        name = ledger.reserve(call(expected), cap)
        assert isinstance(name, Refusal) == (counted - running + expected > cap)
        assert isinstance(name, str) == (counted + expected <= cap)
        if isinstance(name, str):
            if ends:
                ledger.settle(name, cost)
            counted += cost if ends else expected
            running += 0 if ends else expected
        assert ledger.state().counted("anthropic") == counted


def whole(ledger: Ledger) -> dict[str, Any]:
    """The file as anything that reads JSON sees it."""
    return json.loads(ledger.path.read_text())  # type: ignore[no-any-return]


def test_whoever_reads_the_file_whole_leaves_one_json_object(ledger: Ledger) -> None:
    ledger.settle(held(ledger.reserve(call(7), 100)), 4)
    held(ledger.reserve(call(5), 100))
    state = Ledger(ledger.path).state()
    assert state == LedgerState.model_validate(whole(ledger))
    assert (state.vendors["anthropic"].spent, state.reserved("anthropic")) == (4, 5)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_file_that_is_one_object_goes_on(ledger: Ledger, end: str) -> None:
    before = LedgerState(vendors={"anthropic": Account(spent=60, calls=2)})
    ledger.path.parent.mkdir()
    ledger.path.write_text(before.model_dump_json(indent=1).replace("\n", end))
    assert isinstance(ledger.reserve(call(41), 100), Refusal)
    ledger.settle(held(ledger.reserve(call(40), 100)), 30)
    assert ledger.state().vendors == {"anthropic": Account(spent=90, calls=3)}


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_a_process_that_dies_while_it_writes_takes_no_other_calls_money_with_it(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("ledger") / "ledger.json"
    ours, other = Ledger(path), Ledger(path)
    held(ours.reserve(call(1), None))
    first = held(ours.reserve(call(20), None))
    before = path.read_bytes()
    other.settle(first, 9)
    written = path.read_bytes()[len(before) :]
    path.write_bytes(before + written[: data.draw(st.integers(0, len(written) - 1))])  # the rest was never written
    last = held(data.draw(st.sampled_from([ours, Ledger(path)])).reserve(call(300), None))
    assert ours.state().counted("anthropic") == 1 + 20 + 300
    ours.settle(last, 4000)
    assert Ledger(path).state().counted("anthropic") == 1 + 20 + 4000


def test_a_line_that_is_none_is_no_ledger(ledger: Ledger) -> None:
    name = held(ledger.reserve(call(1), None))
    with ledger.path.open("a") as stream:
        stream.write("garbage\n")
    with pytest.raises(StoreError, match=r"ledger\.json: not a readable ledger"):
        ledger.settle(name, 1)


def test_a_file_that_was_removed_or_replaced_is_no_longer_the_ledger_of_a_call(ledger: Ledger) -> None:
    name = held(ledger.reserve(call(1), None))
    ledger.path.unlink()
    with pytest.raises(StoreError, match="was removed or replaced"):
        ledger.settle(name, 1)
    Ledger(ledger.path).reserve(call(2), None)
    with pytest.raises(StoreError, match="was removed or replaced"):
        ledger.settle(name, 1)


def test_the_file_does_not_grow_with_the_calls(ledger: Ledger) -> None:
    other = Ledger(ledger.path)
    sizes = []
    for number in range(600):
        (ledger, other)[number % 2].settle(held((other, ledger)[number % 3 % 2].reserve(call(3), None)), 2)
        sizes.append(ledger.path.stat().st_size)
    assert max(sizes) < 50_000  # a line for each would be 90 kB
    assert ledger.state() == LedgerState(vendors={"anthropic": Account(spent=1200, calls=600)})


def test_turns_of_a_call_that_goes_on_count_as_soon_as_they_were_answered(ledger: Ledger) -> None:
    name = held(ledger.reserve(call(40), 100))
    ledger.note_turn(name, 30)
    assert ledger.state().counted("anthropic") == 40  # within what was reserved
    ledger.note_turn(name, 35)
    assert ledger.state().counted("anthropic") == 65
    assert ledger.reserve(call(36), 100) is None  # there may be room when it ends
    again = Ledger(ledger.path).state()
    assert [(one.expected, one.spent, one.counted) for one in again.open.values()] == [(40, 65, 65)]
    ledger.settle(name, 70)
    assert ledger.state().vendors["anthropic"] == Account(spent=70, calls=1)


def test_a_call_that_ends_with_no_word_counts_what_its_turns_cost(ledger: Ledger) -> None:
    name = held(ledger.reserve(call(40), None))
    ledger.note_turn(name, 65)
    ledger.settle(name, None)
    assert ledger.state().vendors["anthropic"] == Account(assumed=65, calls=1, unreported=1)


def test_a_turn_of_a_call_that_nobody_opened_is_refused(ledger: Ledger) -> None:
    held(ledger.reserve(call(40), None))
    with pytest.raises(StoreError, match="reservation of a call is gone"):
        ledger.note_turn("0" * 16, 1)

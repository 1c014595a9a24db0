"""One process's share of a run: it turns planned cells into stored records.

The controller makes a `RunSpec` once; every process builds its `Engine` from the same one and checks
nothing again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property, lru_cache, partial
from threading import Lock
from typing import NamedTuple, TypeVar

from pytest_cellprose.cache import TextCache
from pytest_cellprose.files import digest
from pytest_cellprose.measure.admission import Admission
from pytest_cellprose.measure.call import Trial, count_prompt, measure, not_measured, not_opened, request_of, taken_over
from pytest_cellprose.measure.spec import RunSpec
from pytest_cellprose.measure.turns import cost_or_assumed, expected_input
from pytest_cellprose.models.pricing import CallPrice, cost_nanousd
from pytest_cellprose.models.tokens import counter_name
from pytest_cellprose.providers.base import Provider, Request, lacking
from pytest_cellprose.record.outcomes import INTERRUPTED
from pytest_cellprose.record.record import CellId, Outcome, Record, SetName
from pytest_cellprose.store.keeper import Keeper, NoMoreCalls
from pytest_cellprose.store.layout import StoreError
from pytest_cellprose.store.ledger import Ledger, PendingCall, Refusal
from pytest_cellprose.store.records import Index, Measured, Store, lineage
from pytest_cellprose.store.spending import settled_cost
from pytest_cellprose.suites.base import InputChanged, Opening, OpeningFault, PlayedTurn, Suite, Task
from pytest_cellprose.workbook.model import WorkbookError

T = TypeVar("T")


class _Prompt(NamedTuple):
    """A first request, as it is priced."""

    tokens: int
    tools: bool
    """Whether it offers any: it is the first turn of an episode then."""


class Engine:
    """Measures cells of one run in this process."""

    def __init__(
        self,
        spec: RunSpec,
        suite: Suite,
        providers: Mapping[str, type[Provider]],
        ask: Callable[[PendingCall], object] = lambda call: None,
        store: Store | None = None,
    ) -> None:
        """`ask`: the hook ``pytest_cellprose_admit``, asked before every live call. `store`: another than the run's."""
        self.spec = spec
        self.tries = 1
        """How often a cell may be called by now: once more with each pass over faults."""
        self.store = store or Store(spec.out, spec.manifest.run)
        self.keeper = Keeper(self.store, lambda: self.spec.manifest)
        self.ledger = Ledger(self.store.folder / spec.ledger, spec.spent_before)
        self.suite = suite
        self.texts_made = 0
        """How often `text` was asked, for who waits."""
        self._variants = {variant.name: variant for variant in suite.variants()}
        self._provider_types = providers
        self._providers: dict[str, Provider] = {}
        self._making_provider = Lock()
        self._admission = Admission(self.ledger, spec.caps, ask)
        self._planned = datetime.fromisoformat(spec.manifest.started)
        self._prompts: dict[tuple[str, str], _Prompt | None] = {}
        self._prices: dict[tuple[str, str, str], CallPrice] = {}
        self._inputs_ids: dict[tuple[str, str, str], str] = {}
        self._cache = TextCache(spec.cache)
        self._entries = {entry.name: entry for entry in spec.manifest.matrix.workbooks}
        # The plan's order visits a task's cells together, so a few of each are enough.
        self._task = lru_cache(maxsize=4)(self._load_task)
        self._opening = lru_cache(maxsize=32)(self._make_opening)
        self._world_digest = lru_cache(maxsize=32)(self._digest_world)

    @cached_property
    def set_of(self) -> dict[str, SetName]:
        return {name: entry.set for name, entry in self._entries.items()}

    @property
    def has_heldout(self) -> bool:
        return "heldout" in self.set_of.values()

    def request(self, cell: CellId) -> Request:
        """The exact request of a cell; raises `OpeningFault` if its task cannot be put."""
        opening, model = self._opening(cell.workbook, cell.encoding), self.spec.models[cell.model]
        return request_of(opening, model, self._world_digest(cell.workbook, cell.encoding) if opening.tools else "")

    def text(self, task: str, variant: str) -> str | bytes | None:
        """What of a task is handed over, None for a control; raises `OpeningFault`, and there is no price."""
        self.texts_made += 1
        try:
            return self._guarded(lambda: self.suite.text(self._task(task), self._variants[variant]))
        except OpeningFault:
            self._prompts[task, variant] = None
            raise

    def known_text(self, task: str, variant: str) -> str | bytes | None:
        """The same, where it is at hand without being made."""
        return self.suite.known_text(self._entries[task], self._variants[variant])

    def questions(self, workbook: str) -> int:
        """How many questions are asked about a workbook."""
        return self._entries[workbook].questions

    def not_ready(self, cells: Iterable[CellId]) -> list[str]:
        """What the environment lacks for calling the models of `cells`: a sentence for each vendor."""
        vendors = {self.spec.models[name].vendor for name in {cell.model for cell in cells}}
        said = [lacking(self._provider_types[vendor]) for vendor in sorted(vendors & self._provider_types.keys())]
        return [sentence for sentence in said if sentence is not None]

    def price(self, cell: CellId) -> CallPrice | None:
        """Expected and worst cost of a cell's call; None if its encoding gives no text, so that nothing is sent."""
        key = (cell.model, cell.encoding, cell.workbook)  # every repeat costs the same
        price = self._prices.get(key) or self._price(cell)
        if price is not None:
            self._prices[key] = price
        return CallPrice(expected=0, worst=0) if price is not None and self.is_kept(cell) else price

    def _price(self, cell: CellId) -> CallPrice | None:
        key = (cell.workbook, cell.encoding)  # the prompt is the same for every model
        if key not in self._prompts:
            try:
                self._prompts[key] = self._count(request_of(self._opening(*key), self.spec.models[cell.model]))
            except OpeningFault:
                self._prompts[key] = None
        prompt, model = self._prompts[key], self.spec.models[cell.model]
        if prompt is None:
            return None
        if prompt.tools:
            expected = self.spec.outputs.episode(cell.model, cell.encoding, model.prices, prompt.tokens)
            most = self.spec.limits.nanousd
            return CallPrice(expected, expected) if most is None else CallPrice(min(expected, most), most)
        output = self.spec.outputs.expected(cell.model, cell.encoding, self.questions(cell.workbook))
        return CallPrice(
            expected=cost_nanousd(model.prices, prompt.tokens, min(output, model.max_tokens)),
            worst=cost_nanousd(model.prices, prompt.tokens, model.max_tokens),
        )

    def _count(self, request: Request) -> _Prompt:
        """Kept between runs and shared by workers, since to load the tokenizer takes longest."""
        if request.tools:
            return _Prompt(expected_input(request, ()), tools=True)
        count = self._cache.get_or_make(lambda: str(count_prompt(request)), counter_name(), request.prompt_sha256)
        return _Prompt(int(count), tools=False)

    def prepared(self, cell: CellId, *, shared: bool = False) -> Callable[[], Record]:
        """All that a cell's call needs, made here. What is returned calls the model once, scores what comes back and
        stores the record, which is on disk then; it may do so in any thread.

        `shared`: other tests, maybe in other processes, take the same cell; the first to come makes the call
        and the others get its record.
        """
        return partial(self._once, cell, self._prepared(cell)) if shared else self._prepared(cell)

    def _once(self, cell: CellId, call: Callable[[], Record]) -> Record:
        name = hashlib.sha256(str(cell).encode()).hexdigest()[:16]
        with self.store.lock(f"cell-{name}"):
            return self.store.find(cell, self.tries) or call()

    def give_up(self, cell: CellId, why: str = "the run was interrupted") -> Record:
        """Record that a cell's call was under way, as far as is known, and nobody waited for its end."""
        manifest = self.spec.manifest
        said = f"{why} while the call was under way: it may be billed"
        record = not_measured(self._trial(cell), Outcome.of(INTERRUPTED, said), run=manifest.run, git=manifest.git)
        price = self._prices.get((cell.model, cell.encoding, cell.workbook))
        spent = [held.spent for held in self.ledger.state().open.values() if held.cell == str(cell)]
        assumed = None if price is None else max(price.expected, *spent, 0)
        return self._stored(record.model_copy(update={"attempts": 1, "assumed_nanousd": assumed}))

    def lost_calls(self) -> list[str]:
        """The cells whose calls were under way in a process that died."""
        return [held.cell for held in self.ledger.state().open.values()] if self.store.process_died else []

    @property
    def capped(self) -> bool:
        """Whether a call of this run was refused because its vendor's cap had no room for it."""
        return self.ledger.state().capped

    def note_limit(self, process: str, vendor: str, limit: int) -> None:
        """Keep the history of how many calls of a vendor may run at a time in this process."""
        with suppress(StoreError, OSError):  # a ledger that cannot be written stops the next call, and says so
            self.ledger.note_limit(vendor, limit, process)

    def _prepared(self, cell: CellId) -> Callable[[], Record]:
        manifest, trial = self.spec.manifest, self._trial(cell)
        try:
            request = self.request(cell)
        except OpeningFault as fault:
            return partial(self._stored, not_opened(trial, fault, run=manifest.run, git=manifest.git))
        before = self._ancestors.get(cell)
        if before is not None and before.inputs_id == request.inputs_id:
            return partial(self._stored, taken_over(trial, before.read(), run=manifest.run, git=manifest.git))
        if not trial.model.live:
            return partial(self._called, trial, request)
        key = (cell.workbook, cell.encoding)
        if self._prompts.get(key) is None:  # also when there was no opening before and there is one now
            self._prompts[key] = self._count(request)
        price = self.price(cell)
        assert price is not None
        return partial(self._paid, trial, request, price)

    @cached_property
    def _ancestors(self) -> Mapping[CellId, Measured]:
        """What the run that is resumed measured: verdicts and failures; its faults run again.

        If it was a resumed one itself and ended before it had taken over everything, the rest is in those before it.
        """
        ancestor, found = self.spec.ancestor, dict[CellId, Measured]()
        if ancestor is not None:
            for store in reversed(lineage(Store(ancestor.parent, ancestor.name))):
                found |= Index(store).measured()
        return found

    def is_kept(self, cell: CellId) -> bool:
        """Whether the run that is resumed was asked exactly what this cell would be asked now."""
        before = self._ancestors.get(cell)
        if before is None:
            return False
        key = (cell.model, cell.encoding, cell.workbook)  # every repeat asks the same
        if key not in self._inputs_ids:
            self._inputs_ids[key] = self.request(cell).inputs_id
        return before.inputs_id == self._inputs_ids[key]

    def calls_at_a_time(self, vendor: str) -> int:
        """How many calls of a vendor this process may keep running."""
        return self.spec.in_flight.get(vendor, self.spec.in_flight[""])

    def _paid(self, trial: Trial, request: Request, price: CallPrice) -> Record:
        """A live call, between the reservation of what it may cost and the settlement of what it did cost."""
        manifest = self.spec.manifest
        self.keeper.check()
        self.store.begin(manifest)  # what may be sent is on record before anything is
        since_plan = (datetime.now(UTC) - self._planned).total_seconds()
        pending = PendingCall(manifest.run, trial.cell, trial.model, price.expected, price.worst, since_plan)
        held = self._admission.start(pending)
        if isinstance(held, Refusal):
            return self._stored(not_measured(trial, held.outcome(), run=manifest.run, git=manifest.git))
        cost = assumed = None
        try:
            record = self._answered(trial, request, partial(self._heard, held) if request.tools else None)
            cost = settled_cost(record)
            if cost is None and record.assumed_nanousd is None:
                record = record.model_copy(update={"assumed_nanousd": price.expected})
            assumed = record.assumed_nanousd
            return self._stored(record)
        except NoMoreCalls:
            cost = 0
            raise
        finally:
            self._settle(held, cost, assumed)

    def _heard(self, held: str, turn: PlayedTurn) -> Outcome | None:
        """Book a turn before its tools run; why its episode ends, None if it may go on."""
        try:
            self.ledger.note_turn(held, cost_or_assumed(turn))
        except StoreError as error:
            self.keeper.fail(str(error))
        if self.keeper.failure is not None:
            return Outcome.of(INTERRUPTED, "the run could not go on after this turn")
        if self.store.interrupted:
            return Outcome.of(INTERRUPTED, "the run was interrupted after this turn")
        return None

    def _settle(self, held: str, cost: int | None, assumed: int | None) -> None:
        """What was answered is stored by now, so that a ledger that cannot be written only ends the run."""
        try:
            self.ledger.settle(held, cost, assumed)
        except StoreError as error:
            self.keeper.fail(str(error))

    def _called(self, trial: Trial, request: Request) -> Record:
        return self._stored(self._answered(trial, request))

    def _answered(
        self, trial: Trial, request: Request, heard: Callable[[PlayedTurn], Outcome | None] | None = None
    ) -> Record:
        """The call itself; raises `NoMoreCalls` if it may not start."""
        self.keeper.check()
        manifest, provider = self.spec.manifest, self._provider(trial.model.vendor)
        final = manifest.mode == "final"
        limits, run, git = self.spec.limits, manifest.run, manifest.git
        record = measure(trial, request, provider, limits, run=run, git=git, final=final, heard=heard)
        stale = self._ancestors.get(trial.cell)
        return record if stale is None else record.model_copy(update={"replaces": stale.run})

    def _stored(self, record: Record) -> Record:
        self.keeper.keep(record)
        return record

    def _trial(self, cell: CellId) -> Trial:
        model, variant = self.spec.models[cell.model], self._variants[cell.encoding]
        return Trial(cell, model, self.suite, self._task(cell.workbook), variant)

    def _provider(self, vendor: str) -> Provider:
        with self._making_provider:
            if vendor not in self._providers:
                self._providers[vendor] = self._provider_types[vendor]()
            return self._providers[vendor]

    def _load_task(self, name: str) -> Task:
        return self.suite.load(self._entries[name], self.spec.sources[name])

    def _make_opening(self, task: str, variant: str) -> Opening:
        return self._guarded(lambda: self.suite.opening(self._task(task), self._variants[variant]))

    def _digest_world(self, task: str, variant: str) -> str:
        world = self._guarded(lambda: self.suite.world(self._task(task), self._variants[variant]))
        if world is None:
            raise OpeningFault(f"suite {self.suite.name!r} offers tools and has no world that answers them")
        return digest([world.digest, self.spec.limits.turns, self.spec.limits.nanousd])

    def _guarded(self, make: Callable[[], T]) -> T:
        """What a suite makes of a task; raises `OpeningFault` for whatever its code raises."""
        try:
            return make()
        except (OpeningFault, InputChanged, WorkbookError):
            raise
        except Exception as error:
            reason = " ".join(str(error).split()) or "no message"
            raise OpeningFault(f"suite {self.suite.name!r} raised {type(error).__name__}", reason) from error

"""How xdist's controller hands cells to workers: each gets every n-th item, all at once.

xdist's own chunks let a second repeat start before the first is through, and with one item at a time a worker
sees no further than the next, so that it cannot keep calls in flight. A fixed stride keeps the plan's order to
within the number of workers and shows every worker its own future.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from execnet import XSpec
from xdist.scheduler.load import LoadScheduling
from xdist.workermanage import WorkerController

T = TypeVar("T")


def place_of(node: WorkerController) -> int:
    """A worker's place among the ``--tx`` specifications, from 0; one that replaces a crashed worker has its place."""
    specs = node.nodemanager.specs
    return next(place for place, spec in enumerate(specs) if spec is node.gateway.spec)


def one_by_one(specs: Sequence[str]) -> Iterator[XSpec]:
    """``--tx`` specifications, each as often as it is meant: ``2*popen`` twice."""
    for text in specs:
        number, star, rest = text.partition("*")
        many = star and number.isdecimal()
        yield from [XSpec(rest if many else text)] * (int(number) if many else 1)


def is_apart(spec: XSpec) -> bool:
    """Whether a worker is anything else than a process beside this one, with its folder and its interpreter."""
    return not spec.popen or bool(spec.chdir or spec.python or spec.via)


def stride(items: Sequence[T], worker: int, workers: int) -> Sequence[T]:
    """The items of one of `workers` workers, in order."""
    return items[worker::workers]


class StridedScheduling(LoadScheduling):  # type: ignore[misc]  # xdist ships no types
    """Fixed shares at the start; what a crashed worker leaves goes to the others in small pieces."""

    collection: list[str] | None

    def schedule(self) -> None:
        """Give every worker its share, once all have collected; later calls look after what a crash left."""
        assert self.collection_is_completed
        if self.collection is not None:
            for node in self.nodes:
                self.check_schedule(node)
            return
        if not self._check_nodes_have_same_collection():
            self.log("**Different tests collected, aborting run**")
            return
        collection = next(iter(self.node2collection.values()))
        self.collection = collection
        indices = range(len(collection))
        by_place = sorted(self.nodes, key=place_of)
        for place, node in enumerate(by_place):
            share = list(stride(indices, place, len(by_place)))
            self.node2pending[node].extend(share)
            if share:
                node.send_runtest_some(share)

    def check_schedule(self, node: WorkerController, duration: float = 0) -> None:
        """Send what a crashed worker left, two items at a time; shutting down is the session's to decide."""
        if self.pending and not node.shutting_down and len(self.node2pending[node]) < 2:
            self._send_tests(node, 2)

"""Which held-out workbooks a final run takes: all, a seeded draw, or those that no earlier run looked at."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from pytest_cellprose.store.records import open_run


def drawn(heldout: Collection[str], subset: int | None, seed: int, excluded: Collection[str] = ()) -> set[str]:
    """`subset` of the held-out names, or all (None); a smaller draw of a seed is a prefix of a larger one.

    The order is that of all names, whatever is excluded: a fresh draw goes on where the last one ended.
    """
    order = sorted(heldout)
    random.Random(seed).shuffle(order)
    left = [name for name in order if name not in excluded]
    return set(left if subset is None else left[:subset])


@dataclass(frozen=True)
class LookedAt:
    """The held-out workbooks of earlier runs."""

    runs: tuple[str, ...] = ()
    """Run ids."""
    names: frozenset[str] = frozenset()
    digests: frozenset[str] = frozenset()
    """SHA-256 of the files: a workbook that was looked at is so under another name, too."""

    def __contains__(self, workbook: tuple[str, str]) -> bool:
        """Of a name and a digest; an empty digest is not known."""
        name, sha256 = workbook
        return name in self.names or sha256 in self.digests


def looked_at(out: Path, runs: Iterable[str]) -> LookedAt:
    """What these runs (ids, folders or manifests) had planned of held-out workbooks; raises `StoreError`."""
    manifests = [open_run(out, run).manifest() for run in runs]
    workbooks = [book for manifest in manifests for book in manifest.matrix.workbooks if book.set == "heldout"]
    return LookedAt(
        tuple(manifest.run for manifest in manifests),
        frozenset(book.name for book in workbooks),
        frozenset(book.workbook_sha256 for book in workbooks),
    )

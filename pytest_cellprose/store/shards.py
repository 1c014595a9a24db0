"""Shards: one plan run by several invocations, each its share of the cells (``--cellprose-shard K/N``).

What is dealt out is a *part*: all encodings of one model, workbook and repeat. They stay together because every
comparison is between encodings of the same model on the same workbook, so that each shard's own report compares
what it measured, and a workbook is encoded where it is asked about.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

from pytest_cellprose.record.record import CellId
from pytest_cellprose.store.manifest import Manifest, Matrix, Shard


def parts(matrix: Matrix) -> int:
    """How many parts a plan has: more shards than this would leave some without a cell."""
    return matrix.repeats * len(matrix.workbooks) * len(matrix.models)


def shard_cells(matrix: Matrix, shard: Shard) -> list[CellId]:
    """The cells of one shard, in the plan's order.

    Parts are dealt out in turn, in the plan's order, so that shards differ by one part at most. Where the number of
    models and of shards have a common divisor d, dealing alone would give a model to the same shards again and
    again: the deal moves on by one shard after every N / d workbooks, and within any N workbooks each model comes to
    every shard once.
    """
    models = {name: place for place, name in enumerate(matrix.models)}
    workbooks = {entry.name: place for place, entry in enumerate(matrix.workbooks)}
    cycle = shard.of // gcd(len(models), shard.of)

    def number(cell: CellId) -> int:
        asked = (cell.repeat - 1) * len(workbooks) + workbooks[cell.workbook]
        return (asked * len(models) + models[cell.model] + asked // cycle) % shard.of + 1

    return [cell for cell in matrix.cells() if number(cell) == shard.number]


def own_cells(manifest: Manifest) -> list[CellId]:
    """The planned cells that this run was to measure: all, or those of its shard or of the shards merged in it."""
    shards = shards_of(manifest)
    if None in shards:
        return list(manifest.matrix.cells())
    own = {cell for shard in shards if shard is not None for cell in shard_cells(manifest.matrix, shard)}
    return [cell for cell in manifest.matrix.cells() if cell in own]


def parts_deviation(shard: Shard | None, merged: int = 0) -> list[str]:
    """What a run that is a part of a plan, or was put together from so many parts, says of that: it is exploratory.

    It follows from the manifest's own fields, so that a run put together from this one says it anew.
    """
    if merged:
        return [f"exploratory: put together from {merged} runs"]
    return [] if shard is None else [f"exploratory: shard {shard} of a plan"]


def missing_shards(manifest: Manifest) -> list[Shard]:
    """Those of the plan that are not in this run."""
    shards = shards_of(manifest)
    if None in shards:
        return []
    present = {shard for shard in shards if shard is not None}
    counts = sorted({shard.of for shard in present})
    return [
        shard
        for of in counts
        for shard in (Shard(number=number, of=of) for number in range(1, of + 1))
        if shard not in present
    ]


def shards_of(manifest: Manifest) -> Iterable[Shard | None]:
    """None stands for a run of the whole plan."""
    if manifest.merged_from:
        return [part.shard for part in manifest.merged_from]
    return [manifest.shard]

"""How a plan is dealt out to shards: everything once, evenly, and encodings of one workbook together."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_cellprose.store.manifest import Manifest, MergedRun, Shard
from pytest_cellprose.store.shards import missing_shards, own_cells, parts, shard_cells
from tests.report.report_factories import manifest


def plan(models: int, workbooks: int, repeats: int) -> Manifest:
    return manifest([f"m{i}" for i in range(models)], workbooks=[f"w{i}" for i in range(workbooks)], repeats=repeats)


@given(models=st.integers(1, 7), workbooks=st.integers(1, 9), repeats=st.integers(1, 2), data=st.data())
@settings(deadline=None, max_examples=40)
def test_every_cell_is_in_one_shard_and_shards_are_even(
    models: int, workbooks: int, repeats: int, data: st.DataObject
) -> None:
    matrix = plan(models, workbooks, repeats).matrix
    of = data.draw(st.integers(1, min(12, parts(matrix))))
    shares = [shard_cells(matrix, Shard(number=number, of=of)) for number in range(1, of + 1)]
    assert Counter(cell for share in shares for cell in share) == Counter(matrix.cells())
    sizes = [len(share) for share in shares]
    assert min(sizes) > 0
    assert max(sizes) - min(sizes) <= len(matrix.encodings)  # one part
    order = {cell: place for place, cell in enumerate(matrix.cells())}
    for share in shares:
        assert share == sorted(share, key=order.__getitem__)
        parts_of = Counter((cell.model, cell.workbook, cell.repeat) for cell in share)
        assert set(parts_of.values()) == {len(matrix.encodings)}  # encodings stay together
        for model in matrix.models:  # each model comes to a shard once in `of` workbooks
            asked = repeats * workbooks
            mine = sum(of_model == model for of_model, _, _ in parts_of)
            assert asked // of <= mine <= -(-asked // of)


@pytest.mark.parametrize(
    ("shards", "missing"),
    [([None], []), (["1/3", "3/3"], ["2/3"]), (["1/2", "2/2"], []), (["1/2", None], [])],
)
def test_what_a_merged_run_lacks(shards: list[str | None], missing: list[str]) -> None:
    whole = plan(2, 6, 1)
    merged = whole.model_copy(
        update={
            "merged_from": [
                MergedRun(run=f"r{i}", shard=text and as_shard(text), started="2026-12-01T10:00:00Z", invocation=[])
                for i, text in enumerate(shards)
            ]
        }
    )
    assert [str(shard) for shard in missing_shards(merged)] == missing
    absent = {cell for text in missing for cell in shard_cells(whole.matrix, as_shard(text))}
    assert own_cells(merged) == [cell for cell in whole.matrix.cells() if cell not in absent]


def as_shard(text: str) -> Shard:
    number, _, of = text.partition("/")
    return Shard(number=int(number), of=int(of))

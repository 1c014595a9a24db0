"""Several runs of one experiment as one: the shards of a CI matrix, or a run and what a machine of it still has.

Runs are put together, not pooled: no cell may have been measured by two of them, unless one took it over from the
other. The records are copied as they are, with the ids of their own runs.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

from pytest_cellprose.record.record import CellId, SetName
from pytest_cellprose.store.identity import experiment_id, new_run_id, with_encoded
from pytest_cellprose.store.layout import LEDGER, StoreError
from pytest_cellprose.store.ledger import Ledger
from pytest_cellprose.store.manifest import EncodedTexts, Manifest, MergedRun
from pytest_cellprose.store.records import Store, line_of
from pytest_cellprose.store.shards import parts_deviation
from pytest_cellprose.wording import some


class MergeError(ValueError):
    """Runs that do not go together; the message names them and what differs."""


def merge(stores: Sequence[Store], out: Path) -> Store:
    """A new run under `out` with the records of all.

    Raises `MergeError` for runs that do not go together, `StoreError` for one that cannot be read or a new one that
    cannot be written. The manifest comes last: before it, there is no such run.
    """
    manifests = [store.manifest() for store in stores]
    _require_one_experiment(manifests)
    texts = _texts(manifests)
    copies = _taken_over(stores, manifests)
    merged = Store(out, new_run_id())
    parts: dict[str, MergedRun] = {}
    for manifest in manifests:
        for part in manifest.merged_from or [_part(manifest)]:
            parts.setdefault(part.run, part)
    cells: dict[str, dict[CellId, None]] = {run: {} for run in parts}
    spent: Counter[str] = Counter()
    unreported: Counter[str] = Counter()
    try:
        for set_name in get_args(SetName):
            lines = _chosen(stores, manifests, set_name, copies, cells, spent, unreported)
            _write(merged.records_path(set_name), lines)
        _add_up_ledgers(stores, merged)
        listed = [
            part.model_copy(
                update={
                    "cells": [str(cell) for cell in cells[run]],
                    "spent_nanousd": spent[run],
                    "unreported": unreported[run],
                }
            )
            for run, part in parts.items()
        ]
        merged.write_manifest(with_encoded(_manifest(manifests, merged.run, listed), texts))
    except OSError as error:
        raise StoreError(f"{merged.folder}: the merged run could not be written: {error}") from error
    return merged


def _part(manifest: Manifest) -> MergedRun:
    return MergedRun(
        run=manifest.run,
        shard=manifest.shard,
        started=manifest.started,
        finished=manifest.finished,
        invocation=manifest.invocation,
    )


def _require_one_experiment(manifests: Sequence[Manifest]) -> None:
    first = manifests[0]
    for manifest in manifests:
        if manifest.mode == "final":
            raise MergeError(f"{manifest.run} is a final run: it is one invocation (protocol section 5.2), not merged")
        if manifest.mode != first.mode:
            raise MergeError(f"{first.run} is a {first.mode} run and {manifest.run} a {manifest.mode} run")
        if experiment_id(manifest) != experiment_id(first):
            differ = some(list(_differences("", _compared(first), _compared(manifest))))
            raise MergeError(f"{first.run} and {manifest.run} are different experiments: {differ}")
    divisions = sorted({part.shard.of for m in manifests for part in m.merged_from or [_part(m)] if part.shard})
    if len(divisions) > 1:
        raise MergeError(f"shards of different divisions: {' and '.join(f'K/{of}' for of in divisions)}")


def _texts(manifests: Sequence[Manifest]) -> EncodedTexts:
    """The texts of all; what one run could not make and another could is a text. Raises `MergeError` where two runs
    made different texts of one workbook."""
    joined = EncodedTexts()
    made_by: dict[tuple[str, str], str] = {}
    for manifest in manifests:
        for book, texts in manifest.encoded.sha256.items():
            known, reasons = joined.sha256.setdefault(book, {}), joined.reasons.setdefault(book, {})
            for encoding, digest in texts.items():
                if digest is None and known.get(encoding) is None:
                    known[encoding], reasons[encoding] = None, manifest.encoded.reasons[book][encoding]
                elif digest is not None and known.get(encoding) in (None, digest):
                    known[encoding] = digest
                    reasons.pop(encoding, None)
                    made_by.setdefault((book, encoding), manifest.run)
                elif digest is not None:
                    run = made_by[book, encoding]
                    raise MergeError(f"{run} and {manifest.run} made different texts of {book} in {encoding}")
    return joined.model_copy(update={"reasons": {book: told for book, told in joined.reasons.items() if told}})


def _compared(manifest: Manifest) -> dict[str, Any]:
    """The manifest without what runs of one experiment may differ in."""
    own = {"run", "experiment", "started", "finished", "invocation", "shard", "merged_from", "deviations", "settings"}
    own |= {"publishable", "encoded", "inputs_sha256", "not_here", "hosts", "lineage"}
    own |= {"package_sha256"} if manifest.measuring_sha256 else set()
    return manifest.model_dump(mode="json", exclude=own)


def _differences(where: str, one: Any, other: Any) -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in {**one, **other}:
            yield from _differences(f"{where}.{key}" if where else str(key), one.get(key), other.get(key))
    elif one != other:
        short = not isinstance(one, list | dict) and not isinstance(other, list | dict)
        yield f"{where} ({one} and {other})" if short else where


def _taken_over(stores: Sequence[Store], manifests: Sequence[Manifest]) -> set[tuple[str, CellId]]:
    """Run and cell of records that one run took over from another one here: copies, which the original replaces."""
    measured: dict[CellId, dict[str, str | None]] = {}
    for store, manifest in zip(stores, manifests, strict=True):
        for record in store.records():
            if record.run in manifest.runs and record.outcome.status != "fault":
                measured.setdefault(record.cell, {})[record.run] = record.kept_from
    copies: set[tuple[str, CellId]] = set()
    for cell, origins in measured.items():
        # a run that made the call itself comes first: what others kept is a copy of it or of a run that is not here
        ordered = sorted(origins, key=lambda run: (origins[run] is not None, run))
        first = ordered[0]
        for run in ordered[1:]:
            if origins[run] not in (first, origins[first] or first):
                raise MergeError(
                    f"{cell} was measured by {first} and by {run}: runs are put together, not pooled; leave one out"
                )
            copies.add((run, cell))
    return copies


def _chosen(
    stores: Sequence[Store],
    manifests: Sequence[Manifest],
    set_name: SetName,
    copies: set[tuple[str, CellId]],
    cells: dict[str, dict[CellId, None]],
    spent: Counter[str],
    unreported: Counter[str],
) -> Iterator[bytes]:
    """The lines of one set, each once, noted under their runs: cells that were measured, nano-dollars, and calls whose
    cost nobody told."""
    seen: set[bytes] = set()
    for store, manifest in zip(stores, manifests, strict=True):
        for record in store.records():
            if record.set != set_name or record.run not in manifest.runs or (record.run, record.cell) in copies:
                continue
            line = line_of(record)
            name = hashlib.sha256(line).digest()
            if name in seen:  # a machine's own store repeats what had reached the run's
                continue
            seen.add(name)
            if record.outcome.status != "fault":
                cells[record.run][record.cell] = None
            if not (record.prices.nominal or record.kept_from):
                spent[record.run] += record.cost_nanousd or 0
                unreported[record.run] += record.assumed_nanousd is not None
            yield line


def _write(path: Path, lines: Iterator[bytes]) -> None:
    """A file of these lines, durable when this returns; none if there are no lines."""
    first = next(lines, None)
    if first is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as stream:
        stream.write(first)
        stream.writelines(lines)
        stream.flush()
        os.fsync(stream.fileno())


def _add_up_ledgers(stores: Sequence[Store], merged: Store) -> None:
    ledger = Ledger(merged.folder / LEDGER)
    counted: set[str] = set()
    for store in stores:
        path = store.folder / LEDGER
        if store.run not in counted and path.is_file():
            ledger.add(Ledger(path).state())
            counted.add(store.run)


def _manifest(manifests: Sequence[Manifest], run: str, parts: list[MergedRun]) -> Manifest:
    first = manifests[0]
    ends = [part.finished for part in parts]
    named = dict.fromkeys(
        text for m in manifests for text in m.deviations if text not in parts_deviation(m.shard, len(m.merged_from))
    )
    here = {part.run for part in parts}
    lineage = {earlier.run: earlier for m in manifests for earlier in m.lineage if earlier.run not in here}
    return first.model_copy(
        update={
            "run": run,
            "started": min(part.started for part in parts),
            "finished": None if None in ends else max(end for end in ends if end is not None),
            "invocation": [],
            "shard": None,
            "merged_from": parts,
            "deviations": [*named, *parts_deviation(None, len(parts))],
            "publishable": False,
            "package_sha256": first.package_sha256 if len({m.package_sha256 for m in manifests}) == 1 else "",
            "lineage": list(lineage.values()),
            "hosts": {
                vendor: host
                for vendor, host in first.hosts.items()
                if all(manifest.hosts.get(vendor) == host for manifest in manifests)
            },
            "settings": {
                name: value
                for name, value in first.settings.items()
                if all(manifest.settings.get(name) == value for manifest in manifests)
            },
        }
    )

"""Paired comparisons of one model's encodings: exact McNemar over workbooks, Holm over all pairs.

A second opinion on passes alone, beside the headline: it knows no cost and never speaks of wins or losses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

from pytest_cellprose.report.attempts import Attempt, passed
from pytest_cellprose.report.model import Paired, PairedRow
from pytest_cellprose.stats import holm, mcnemar
from pytest_cellprose.stats.paired import ALPHA, fewest_deciding

SHOWN = 5
"""Up to so many encodings every pair is shown, beyond only those with the baseline."""


class _Counts(NamedTuple):
    both_passed: int
    a_only: int
    b_only: int
    both_failed: int
    tied: int
    left_out: int


def paired(measured: Mapping[str, Sequence[Attempt]], baseline: str, *, complete: bool = True) -> Paired:
    """Encoding -> its measured calls, of one model and set; encodings without a call are left out.

    The pairs of `baseline` come first, and beyond five encodings alone; where it has no call, those of the encoding
    that passed most often. Nothing is found in a set that is not `complete`.
    """
    passes = {
        encoding: {(record.cell.workbook, record.cell.repeat): passed(record) for record in records}
        for encoding, records in measured.items()
        if records
    }
    if not passes:
        return Paired(rows=[], note=_note(0, 0, baseline))
    first = baseline if baseline in passes else _best(passes)
    pairs = list(combinations(sorted(passes, key=lambda encoding: encoding != first), 2))
    counts = [_count(passes[a], passes[b]) for a, b in pairs]
    ps = [mcnemar(count.a_only, count.b_only) for count in counts]
    adjusted = holm(ps)
    needed = fewest_deciding(len(pairs)) if pairs else 0
    shown = {pair for pair in pairs if len(passes) <= SHOWN or first in pair}
    rows = [
        PairedRow(
            a=a,
            b=b,
            workbooks=sum(count[:5]),
            **count._asdict(),
            p=p,
            p_holm=p_holm if len(pairs) > 1 else None,
            finding=_finding(a, b, count, p_holm, needed) if complete else "none: the set is incomplete",
        )
        for (a, b), count, p, p_holm in zip(pairs, counts, ps, adjusted, strict=True)
        if (a, b) in shown
    ]
    return Paired(rows=rows, note=_note(len(pairs), len(rows), first))


def _count(a: Mapping[tuple[str, int], bool], b: Mapping[tuple[str, int], bool]) -> _Counts:
    """Each workbook once, by the pass rates over the repeats that both have."""
    both_passed = a_only = b_only = both_failed = tied = 0
    workbooks = {workbook for workbook, _ in a.keys() | b.keys()}
    compared = {workbook: [0, 0, 0] for workbook, _ in a.keys() & b.keys()}
    for key in a.keys() & b.keys():
        tally = compared[key[0]]
        tally[0] += 1
        tally[1] += a[key]
        tally[2] += b[key]
    for repeats, a_passes, b_passes in compared.values():
        if a_passes > b_passes:
            a_only += 1
        elif b_passes > a_passes:
            b_only += 1
        elif a_passes == repeats:
            both_passed += 1
        elif a_passes == 0:
            both_failed += 1
        else:
            tied += 1
    return _Counts(both_passed, a_only, b_only, both_failed, tied, len(workbooks) - len(compared))


def _best(passes: Mapping[str, Mapping[tuple[str, int], bool]]) -> str:
    """The encoding with the highest pass rate, the first by name among equals."""
    rates = {encoding: Fraction(sum(found.values()), len(found)) for encoding, found in passes.items()}
    return min(rates, key=lambda encoding: (-rates[encoding], encoding))


def _finding(a: str, b: str, count: _Counts, p_holm: float, needed: int) -> str:
    """`needed`: how many disagreements, all one way, would decide the clearest of all pairs."""
    if p_holm < ALPHA:
        return f"{a if count.a_only > count.b_only else b} better"
    if count.a_only + count.b_only < needed:
        return "too few disagreements to decide"
    return "no detectable difference at these workbooks"


def _note(pairs: int, shown: int, first: str) -> str:
    parts = [
        "A pass is a workbook with every question right; a workbook counts once, and its questions are not "
        "counted singly because they share a call.",
        "No detectable difference is not equality.",
    ]
    if pairs > 1:
        parts.append(
            f"p is adjusted (Holm) over all {pairs} pairs: even the clearest needs {fewest_deciding(pairs)} "
            "disagreements, all one way."
        )
    if shown < pairs:
        parts.append(f"Shown are the pairs of {first}.")
    return " ".join(parts)

"""Paired comparisons of one model's encodings: exact McNemar over workbooks, Holm over all pairs.

A second opinion on passes alone, beside the headline: it knows no cost and never speaks of wins or losses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

from pytest_cellprose.report.attempt import Attempt
from pytest_cellprose.report.attempts import passed
from pytest_cellprose.report.model import Paired, PairedRow
from pytest_cellprose.stats import holm, mcnemar
from pytest_cellprose.stats.paired import ALPHA, fewest_deciding

SHOWN = 5
"""Up to so many encodings every pair is shown, beyond only those with the best."""

TOO_FEW = 5
"""So many disagreements never decide: 5 to 0 has p = 0.0625."""


class _Counts(NamedTuple):
    both_passed: int
    a_only: int
    b_only: int
    both_failed: int
    tied: int
    left_out: int


def paired(measured: Mapping[str, Sequence[Attempt]]) -> Paired:
    """Encoding -> its measured calls, of one model and set; encodings without a call are left out."""
    passes = {
        encoding: {(record.cell.workbook, record.cell.repeat): passed(record) for record in records}
        for encoding, records in measured.items()
        if records
    }
    pairs = list(combinations(passes, 2))
    counts = [_count(passes[a], passes[b]) for a, b in pairs]
    ps = [mcnemar(count.a_only, count.b_only) for count in counts]
    adjusted = holm(ps)
    shown = set(pairs) if len(passes) <= SHOWN else _with_best(passes, pairs)
    rows = [
        PairedRow(
            a=a,
            b=b,
            workbooks=sum(count[:5]),
            **count._asdict(),
            p=p,
            p_holm=p_holm if len(pairs) > 1 else None,
            finding=_finding(a, b, count, p_holm),
        )
        for (a, b), count, p, p_holm in zip(pairs, counts, ps, adjusted, strict=True)
        if (a, b) in shown
    ]
    return Paired(rows=rows, note=_note(len(pairs), len(rows)))


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


def _with_best(
    passes: Mapping[str, Mapping[tuple[str, int], bool]], pairs: Sequence[tuple[str, str]]
) -> set[tuple[str, str]]:
    """The pairs with the highest pass rate, the first by name among equals."""
    rates = {encoding: Fraction(sum(found.values()), len(found)) for encoding, found in passes.items()}
    best = min(rates, key=lambda encoding: (-rates[encoding], encoding))
    return {pair for pair in pairs if best in pair}


def _finding(a: str, b: str, count: _Counts, p_holm: float) -> str:
    if count.a_only + count.b_only <= TOO_FEW:
        return "too few disagreements to decide"
    if p_holm < ALPHA:
        return f"{a if count.a_only > count.b_only else b} better"
    return "no detectable difference at these workbooks"


def _note(pairs: int, shown: int) -> str:
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
        parts.append("Shown are the pairs with the encoding that passed most often.")
    return " ".join(parts)

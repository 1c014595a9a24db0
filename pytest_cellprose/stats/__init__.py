"""The statistics of a report, usable on their own: every function is pure and takes plain numbers."""

from __future__ import annotations

from pytest_cellprose.stats.influence import LeaveOneOut, leave_one_out
from pytest_cellprose.stats.intervals import PairedBootstrap, WorkbookMean, jeffreys, paired_bootstrap
from pytest_cellprose.stats.paired import holm, mcnemar
from pytest_cellprose.stats.verdicts import Comparison, Verdict, compare, judge

__all__ = [
    "Comparison",
    "LeaveOneOut",
    "PairedBootstrap",
    "Verdict",
    "WorkbookMean",
    "compare",
    "holm",
    "jeffreys",
    "judge",
    "leave_one_out",
    "mcnemar",
    "paired_bootstrap",
]

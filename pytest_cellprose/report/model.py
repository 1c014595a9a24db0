"""What a report holds: the shape of ``report.json``. Worked out by `analysis`, shown by its neighbours."""

from __future__ import annotations

import math
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from pytest_cellprose.method.digests import Method
from pytest_cellprose.method.roles import Role
from pytest_cellprose.record.record import Frozen, Git, Host, Prices, SetName
from pytest_cellprose.stats.verdicts import Word
from pytest_cellprose.store.manifest import (
    AXES,
    SPREADSHEETS,
    EarlierRun,
    MergedRun,
    Mode,
    ModelEntry,
    PlannedOut,
    Shard,
    WorkbookEntry,
)

REPORT_SCHEMA = 1

SIGNIFICANT = 9
"""Digits kept of an amount, and decimals of a share: fewer than a float has, so that the last bit, which may
differ between processors, is never written."""


def _amount(value: Any) -> Any:
    if value == "inf":
        return math.inf
    return float(f"{value:.{SIGNIFICANT}g}") if isinstance(value, (int, float)) else value


def _share(value: Any) -> Any:
    return round(value, SIGNIFICANT) + 0.0 if isinstance(value, (int, float)) else value


Amount: TypeAlias = Annotated[
    float,
    BeforeValidator(_amount),
    PlainSerializer(lambda value: "inf" if math.isinf(value) else value, return_type=float | str),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"const": "inf"}]}),
]
"""A number of any size, 9 significant digits; infinite is written ``"inf"``."""

Share: TypeAlias = Annotated[float, BeforeValidator(_share)]
"""A number between −1 and 1, 9 decimals."""


class CellCounts(Frozen):
    """Planned = measured + faulted + refused + skipped + not_run + in_other_shards."""

    planned: int
    measured: int
    """Scored or failed."""
    failed: int
    """The model's failures; scored 0, and among the measured."""
    faulted: int
    """Called, but without a score: the path's fault or ours."""
    refused: int
    """Not called: a cap, the wall clock or a plugin did not let them start."""
    skipped: int
    """Of models that do not run in this mode."""
    not_run: int
    """Nobody ran them: deselected, stopped or interrupted."""
    in_other_shards: int = 0
    """For other invocations to run, and not merged into this run."""

    @property
    def missing(self) -> int:
        """Cells that this run was to measure and did not."""
        return self.faulted + self.refused + self.not_run

    @property
    def lacking(self) -> int:
        """Planned cells of the models that run in this mode which are not measured here."""
        return self.missing + self.in_other_shards

    @property
    def complete(self) -> bool:
        """Whether every planned cell was measured; one that the mode skips was not."""
        return self.measured == self.planned


class Fault(Frozen):
    """A cell without a score."""

    cell: str
    set: SetName
    kind: str
    detail: str | None = None


class Refused(Frozen):
    """Calls that were not let start, of one vendor and for one reason."""

    by: str
    kind: str
    vendor: str
    cells: list[str]
    """In plan order."""
    limit: int | float | str | None
    used: int | float | str | None
    """As the last of them was told."""
    unit: str
    resets: str | None
    """When there is room again, as the last of them was told; None: not known, or never."""
    detail: str | None
    """Of the last of them, one line."""


class KindScore(Frozen):
    """One kind of question, over all measured calls."""

    questions: int
    """Answers asked for: a question counts once a call."""
    right: int
    """With full marks."""
    accuracy: Share


class Counted(Frozen):
    """A tokenizer's own count of system prompt and prompt, mean over the workbooks."""

    counter: str
    tokens: Amount
    over_csv: Amount | None = None
    """Divided by the count of csv on the same workbooks."""


class Frontier(Frozen):
    """Calls, not workbooks: repeats of a workbook are counted singly, so the interval is too narrow."""

    calls: int
    passes: int
    """Every question right."""
    pass_interval: tuple[Share, Share]
    """Jeffreys, 95 %."""
    cost_per_call: Amount | None
    """US dollars, mean over the calls; None: unknown."""
    cost_per_pass: Amount | None
    """US dollars; the cost of all calls over the passes; None without a pass."""
    tokens_per_call: int | None
    """Input and output, rounded down, of the calls that reported them."""


class Resources(Frozen):
    """What the calls took."""

    input_per_call: int | None
    """Cached tokens included; rounded down, like the output; of the calls that reported them."""
    output_per_call: int | None
    cached_share: Share | None
    """Of the input; None when no call recorded it (unknown is not 0)."""
    median_seconds: Amount
    p90_seconds: Amount
    """The value at place ⌊0.9 (n − 1)⌋, not interpolated."""
    summed_seconds: Amount
    cost: Amount | None
    """US dollars, of all these calls; None when answered calls reported no tokens."""
    cost_as_billed: Amount | None
    """With cached tokens at the cache rate, of the calls that reported tokens; in no verdict."""


class EncodingReport(Frozen):
    """One encoding of one model and set. What is None was not measured or is undefined (0 / 0).

    All numbers but `calls`, `failures` and `faults` are over the workbooks that `ModelReport.compared_on` names.
    """

    role: Role
    planned: int
    """Cells."""
    calls: int
    """Measured cells."""
    workbooks: int
    """That the numbers are over."""
    accuracy: Share | None
    """Mean over workbooks of the mean over repeats: what the bootstrap resamples."""
    accuracy_by_question: Share | None
    """Mean over all answers asked for: a workbook with more questions weighs more."""
    input_tokens: Amount | None
    """Mean per call, over workbooks like the accuracy; calls that reported no tokens are left out."""
    output_tokens: Amount | None
    cost_per_call: Amount | None
    """US dollars, all input uncached; None also when answered calls reported no tokens."""
    cost_per_correct: Amount | None
    """US dollars; cost per call over accuracy."""
    counted: list[Counted]
    failures: dict[str, int]
    """Kind of failure -> calls."""
    faults: dict[str, int]
    """Kind of fault -> cells without a score."""
    by_kind: dict[str, KindScore]
    """Kind of question -> how it was answered."""
    frontier: Frontier | None
    resources: Resources | None


class WithoutOne(Frozen):
    """How far the ratio moves when a single workbook is left out: each in turn."""

    lowest: Amount
    highest: Amount
    workbook: str
    """The one whose absence moves the ratio most."""
    ratio: Amount | None
    """Without it; None: undefined."""


class LongPrompts(Frozen):
    """How many prompts of each side had more tokens than the price's tier allows, and cost more a token."""

    challenger: int
    baseline: int


class Against(Frozen):
    """The challenger against one baseline, over the workbooks that both sides completed."""

    role: Role
    complete: bool
    """Whether all was measured that a verdict needs."""
    workbooks: int
    """Completed on both sides."""
    ratio: Amount | None
    """Cost per correct, challenger over baseline."""
    interval: tuple[Amount, Amount] | None
    """95 %, paired bootstrap over workbooks."""
    accuracy_difference: Share | None
    accuracy_interval: tuple[Share, Share] | None
    without_one: WithoutOne | None
    """None where there is nothing to move: one workbook, an unknown cost, a ratio of 0 or infinite."""
    long_prompts: LongPrompts
    verdict: Word | None
    """None: incomplete, or reported and not tested (protocol section 1)."""
    reason: str


class PairedRow(Frozen):
    """Two encodings on the workbooks that both have a measured repeat of. A workbook counts once."""

    a: str
    b: str
    workbooks: int
    both_passed: int
    a_only: int
    """A passed in more of the repeats."""
    b_only: int
    both_failed: int
    tied: int
    """Passed equally often, neither always nor never."""
    left_out: int
    """Workbooks without a repeat that both have."""
    p: Share
    p_holm: Share | None
    """None with a single pair."""
    finding: str


class Paired(Frozen):
    """Exact McNemar tests over workbooks; nothing here decides the headline."""

    rows: list[PairedRow]
    note: str


class ModelReport(Frozen):
    """One model on one set; never pooled or compared with another."""

    status: str
    note: str | None
    """To be said wherever the numbers are shown."""
    nominal: bool
    """Whether its costs are at prices that nobody pays."""
    complete: bool
    """Whether every planned cell of the set was measured."""
    workbooks: list[str]
    """Planned."""
    compared_on: list[str]
    """The workbooks that every row is over: all, or in an incomplete set those that every compared encoding
    completed (of those that completed any)."""
    encodings: dict[str, EncodingReport]
    """In plan order."""
    against: dict[str, Against]
    """Primary baselines first."""
    paired: Paired


class SetReport(Frozen):
    workbooks: int
    questions: int
    models: dict[str, ModelReport]
    """With at least one call, in plan order."""


class ModelFacts(Frozen):
    """A model of the plan and what its calls said about it."""

    entry: ModelEntry
    skipped: str | None
    """Why none of its cells ran in this mode."""
    returned: list[str]
    """Model ids that came back."""
    prices: list[Prices]
    """That the calls were priced at; more than one is a change during the run."""
    settings: dict[str, Any]


class Report(Frozen):
    """All that a run shows, worked out from its manifest and records alone."""

    schema_: int = Field(default=REPORT_SCHEMA, alias="schema")
    run: str
    mode: Mode
    started: str
    finished: str | None
    invocation: list[str]
    experiment: str
    """Equal for runs that measure the same; empty in runs from before it."""
    method: Method | None
    git: Git
    versions: dict[str, str]
    settings: dict[str, Any]
    suite: str = SPREADSHEETS
    axes: tuple[str, str] = AXES
    """What the suite's variants and tasks are called."""
    challenger: str
    baseline: str
    """The encoding whose pairs are shown first, and beyond five encodings alone, among the paired comparisons."""
    repeats: int
    publishable: bool
    complete: bool
    """Every planned cell was measured. One that the mode skips was not, though nothing is missing then (`cells`)."""
    deviations: list[str]
    limitations: list[str]
    shard: Shard | None = None
    """The share of the plan that the run was to measure; None: all of it."""
    missing_shards: list[Shard] = Field(default_factory=list)
    """Shards of the plan whose cells are not in this run."""
    merged_from: list[MergedRun] = Field(default_factory=list)
    """The runs that this one was put together from, with the cells that each measured."""
    cells: CellCounts
    kept: dict[str, int]
    """Run -> how many of this run's cells were taken over from it."""
    stale: int
    """Cells that a resumed run had measured when they were asked something else, and that were called again."""
    kept_cells: dict[str, list[str]] = Field(default_factory=dict)
    """Run -> the cells that were taken over from it, in plan order."""
    after_fault: int = 0
    """Measured cells whose earlier calls in this run had ended in a fault."""
    spent: Amount
    """US dollars at list price, superseded and faulted attempts included, nominal prices left out. By the usage that
    was reported, and by this run's own calls."""
    unreported: int = 0
    """Calls that may be billed and told no usage: they are not in `spent`, which is the least that was spent."""
    assumed: Amount = 0.0
    """US dollars that these calls were expected to cost; this counts against the caps."""
    lineage: list[EarlierRun] = Field(default_factory=list)
    """Runs that this one goes on from, with what their own calls cost, which is not in `spent`."""
    hosts: dict[str, Host] = Field(default_factory=dict)
    """Vendor -> where its calls were to go."""
    sets: dict[SetName, SetReport]
    """Held out first."""
    models: list[ModelFacts]
    encoding_versions: dict[str, str]
    workbooks: list[WorkbookEntry]
    planned_out: list[PlannedOut]
    faults: list[Fault]
    refused: list[Refused]
    """Of the calls that were not let start."""
    not_run: list[str]
    """Cell ids, in plan order."""
    not_here: list[str]
    """Question files whose workbook was found in no cells folder."""
    split_sha256: dict[str, str]

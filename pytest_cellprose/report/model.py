"""What a report holds: the shape of ``report.json``. Worked out by `analysis`, shown by its neighbours."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from pytest_cellprose.record import Frozen, Git, Prices, SetName
from pytest_cellprose.run.manifest import MergedRun, Mode, ModelEntry, PlannedOut, Shard, WorkbookEntry
from pytest_cellprose.run.method import Method
from pytest_cellprose.stats.verdicts import Word

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

Role: TypeAlias = Literal["challenger", "primary", "reference", "secondary", "reported", "control", "other"]


class CellCounts(Frozen):
    """Planned = measured + faulted + skipped + not_run + in_other_shards."""

    planned: int
    measured: int
    """Scored or failed."""
    failed: int
    """The model's failures; scored 0, and among the measured."""
    faulted: int
    """Called, but without a score: the path's fault or ours."""
    skipped: int
    """Of models that do not run in this mode."""
    not_run: int
    """Nobody ran them: deselected, stopped or interrupted."""
    in_other_shards: int = 0
    """For other invocations to run, and not merged into this run."""

    @property
    def missing(self) -> int:
        """Cells that this run was to measure and did not."""
        return self.faulted + self.not_run

    @property
    def complete(self) -> bool:
        """Whether the whole plan was measured, but for models that the mode skips."""
        return not self.missing and not self.in_other_shards


class Fault(Frozen):
    """A cell without a score."""

    cell: str
    set: SetName
    kind: str
    detail: str | None = None


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
    """Attempts, not workbooks: repeats of a workbook are counted singly, so the interval is too narrow."""

    attempts: int
    passes: int
    """Every question right."""
    pass_interval: tuple[Share, Share]
    """Jeffreys, 95 %."""
    mean_score: Share
    cost_per_attempt: Amount | None
    """US dollars; None: unknown."""
    cost_per_pass: Amount | None
    """US dollars; the cost of all attempts over the passes; None without a pass."""
    tokens_per_attempt: int | None
    """Input and output, rounded down."""


class Resources(Frozen):
    """What the attempts took."""

    input_per_attempt: int | None
    """Cached tokens included; rounded down, like the output."""
    output_per_attempt: int | None
    cached_share: Share | None
    """Of the input; None when no attempt recorded it (unknown is not 0)."""
    median_seconds: Amount
    p90_seconds: Amount
    """The value at place ⌊0.9 (n − 1)⌋, not interpolated."""
    summed_seconds: Amount
    wall_seconds: Amount
    """From the first start to the last end."""
    cost: Amount | None
    """US dollars, of all measured attempts; None when answered calls reported no tokens."""
    cost_as_billed: Amount | None
    """With cached tokens at the cache rate, of the calls that reported tokens; in no verdict."""


class EncodingReport(Frozen):
    """One encoding of one model and set. What is None was not measured or is undefined (0 / 0)."""

    role: Role
    planned: int
    """Cells."""
    calls: int
    """Measured cells."""
    workbooks: int
    """With a measured cell."""
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


class Against(Frozen):
    """The challenger against one baseline."""

    role: Role
    workbooks: int
    """Completed on both sides."""
    ratio: Amount | None
    """Cost per correct, challenger over baseline."""
    interval: tuple[Amount, Amount] | None
    """95 %, paired bootstrap over workbooks."""
    accuracy_difference: Share | None
    accuracy_interval: tuple[Share, Share] | None
    verdict: Word | None
    """None: reported, not tested (protocol section 1)."""
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
    challenger: str
    repeats: int
    publishable: bool
    complete: bool
    """Every planned cell of the models that run was measured; otherwise there is no headline."""
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
    """US dollars at list price, superseded and faulted attempts included, nominal prices left out."""
    sets: dict[SetName, SetReport]
    """Held out first."""
    models: list[ModelFacts]
    encoding_versions: dict[str, str]
    workbooks: list[WorkbookEntry]
    planned_out: list[PlannedOut]
    faults: list[Fault]
    not_run: list[str]
    """Cell ids, in plan order."""
    not_here: list[str]
    """Question files whose workbook was found in no cells folder."""
    split_sha256: dict[str, str]

"""A run's manifest: what was planned, from which commit and inputs, and how the run was started.

Small and committed (``results/runs/<run id>.json``); with the records it is all that a report needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

from pydantic import Field

from pytest_cellprose.method.digests import Method
from pytest_cellprose.record.record import CellId, Frozen, Git, Host, Prices, SetName, is_none
from pytest_cellprose.store.account import Account

MANIFEST_SCHEMA = 1

SPREADSHEETS = "spreadsheets"
"""The suite that the protocol is about."""
AXES = ("encoding", "workbook")
"""What its variants and tasks are called."""

Mode: TypeAlias = Literal["development", "live", "final"]


class WorkbookEntry(Frozen):
    """A workbook of the plan."""

    name: str
    set: SetName
    workbook_sha256: str
    questions_sha256: str
    """Of the question file's bytes."""
    questions: int
    """How many are asked."""
    uncertified: dict[str, list[str]] = Field(default_factory=dict)
    """Question id -> why it is not asked (`pytest_cellprose.sets.certify.REASONS`)."""
    computed: list[str] = Field(default_factory=list)
    """Ids of the questions whose truth is in no text that is sent: an offline model's ceiling is taken without them."""
    synthetic: bool | None = None
    """Generated rather than found; None: not known. For the share of synthetic data beside the headline."""


class PlannedOut(Frozen):
    """A pair that cannot be, left out of the matrix."""

    model: str
    encoding: str
    reason: str


class Matrix(Frozen):
    """The planned cells: every model × encoding × workbook × repeat but the pairs planned out."""

    models: list[str]
    encodings: list[str]
    workbooks: list[WorkbookEntry]
    repeats: int
    none_once: bool = False
    """The control ``none`` runs in the first repeat only (protocol section 9)."""
    planned_out: list[PlannedOut] = Field(default_factory=list)
    skipped_models: dict[str, str] = Field(default_factory=dict)
    """Models in the plan whose cells do not run in this mode, with the reason."""

    def cells(self) -> Iterator[CellId]:
        """In the order of the run: repeat, workbook, model, encoding (protocol section 5.3)."""
        impossible = {(out.model, out.encoding) for out in self.planned_out}
        for repeat in range(1, self.repeats + 1):
            for workbook in self.workbooks:
                for model in self.models:
                    for encoding in self.encodings:
                        if (model, encoding) in impossible:
                            continue
                        if self.none_once and encoding == "none" and repeat > 1:
                            continue
                        yield CellId(model=model, encoding=encoding, workbook=workbook.name, repeat=repeat)


class ModelEntry(Frozen):
    """A model of the plan, as the registry had it."""

    alias: str
    model_id: str
    vendor: str
    tier: str | None = None
    status: str
    """``proposed``, ``parked``, ``apart`` (reported in a table of its own), ``offline`` or ``other``."""
    max_tokens: int | None = None
    settings: dict[str, str] = Field(default_factory=dict)
    """What is sent explicitly beside max_tokens."""
    prices: Prices | None = None
    prices_checked: str | None = None
    price_source: str | None = None
    note: str | None = None
    """Said wherever the model's numbers are shown."""


class Shard(Frozen):
    """One invocation's share of a plan (``--cellprose-shard K/N``)."""

    number: int
    """1-based."""
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


class AgentPlan(Frozen):
    """How variants with tools are run."""

    encodings: list[str]
    max_turns: int
    max_call_usd: str
    """List price of all turns of a call, in dollars."""
    sandbox: dict[str, str | int | float] = Field(default_factory=dict)
    """What the sandbox of the spreadsheets suite says of itself: its level, its limits, what it offers."""


class MergedRun(Frozen):
    """A run whose records are in a merged one."""

    run: str
    shard: Shard | None = None
    """None: it was a run of the whole plan."""
    started: str
    finished: str | None = None
    invocation: list[str]
    cells: list[str] = Field(default_factory=list)
    """Ids of the cells that it measured."""
    spent_nanousd: int = 0
    """By its own calls; cells that it took over from another run cost it nothing."""
    unreported: int = 0
    """Of its calls, those that told no tokens and are in no sum."""


class EarlierRun(Frozen):
    """A run that this one goes on from by being resumed, and what its own calls cost."""

    run: str
    accounts: dict[str, Account] = Field(default_factory=dict)
    """Vendor -> its account."""

    @property
    def total(self) -> Account:
        return sum(self.accounts.values(), Account())


class EncodedTexts(Frozen):
    """What the run's encodings made of its workbooks."""

    sha256: dict[str, dict[str, str | None]] = Field(default_factory=dict)
    """Workbook -> encoding -> SHA-256 of the text in UTF-8; None: the encoding gave none. A pair that is not here was
    not asked for: a development run puts down what it made."""
    reasons: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Workbook -> encoding -> why there is no text, without a word of the workbook's."""


class Manifest(Frozen):
    schema_: int = Field(default=MANIFEST_SCHEMA, alias="schema")
    run: str
    experiment: str = ""
    """`pytest_cellprose.store.identity.experiment_id`; empty in manifests older than it."""
    mode: Mode
    started: str
    finished: str | None = None
    """UTC, ISO 8601; None while it runs, and for good if it was killed."""
    invocation: list[str]
    """The command line's arguments."""
    git: Git
    versions: dict[str, str]
    """Python, this package, and every library whose output is measured."""
    package_sha256: str = ""
    """Over this package's own Python files."""
    measuring_sha256: str = ""
    """Over those that can change a measurement (`pytest_cellprose.method.digests`); empty in older manifests."""
    method: Method | None = None
    """Digests of protocol, prompts and scorer."""
    suite: str = SPREADSHEETS
    axes: tuple[str, str] = AXES
    """What the suite's variants and tasks are called."""
    challenger: str
    """The encoding whose ratio is taken against every other but ``none``."""
    matrix: Matrix
    """The whole plan, also of a shard."""
    shard: Shard | None = None
    """The share of the plan that this run was to measure; None: all of it."""
    merged_from: list[MergedRun] = Field(default_factory=list)
    """The runs that this one was put together from; their records keep their own run ids."""
    models: list[ModelEntry]
    encoding_versions: dict[str, str]
    encoding_code: dict[str, str] = Field(default_factory=dict)
    """Encoding -> SHA-256 over the code that its texts come from (`pytest_cellprose.encodings.keys.code_digest`)."""
    deviations: list[str] = Field(default_factory=list)
    """Departures from the protocol that were known when the run started."""
    publishable: bool = False
    """Whether the plan could be published; the report takes it back if cells were not measured."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Other settings, for the record: subset, seed, spend caps, …"""
    split_sha256: dict[str, str] = Field(default_factory=dict)
    """Split file, relative to the root -> SHA-256."""
    encoded: EncodedTexts = EncodedTexts()
    inputs_sha256: str = ""
    """One digest over all inputs: question files, workbooks, encoded texts, split files."""
    not_here: list[str] = Field(default_factory=list)
    """Question files whose workbook was found in no cells folder."""
    hosts: dict[str, Host] = Field(default_factory=dict)
    """Vendor -> where its calls go, of the models that the run may call; none for a provider that does not tell."""
    agents: AgentPlan | None = Field(default=None, exclude_if=is_none)
    """None, and not written: no variant of the plan has tools."""
    lineage: list[EarlierRun] = Field(default_factory=list)
    """The runs that this one goes on from, the latest first: what they cost counts towards its caps."""

    @property
    def runs(self) -> frozenset[str]:
        """The run ids of its records."""
        return frozenset({self.run, *(part.run for part in self.merged_from)})

"""The finished plan as every process of the run gets it."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from pytest_cellprose.measure.episode import Limits
from pytest_cellprose.measure.expected_output import Outputs
from pytest_cellprose.method.roles import MAX_CALL_USD, MAX_TURNS
from pytest_cellprose.models.registry import ModelSpec
from pytest_cellprose.record.record import Frozen
from pytest_cellprose.store.layout import LEDGER
from pytest_cellprose.store.manifest import Manifest
from pytest_cellprose.store.spending import nanousd
from pytest_cellprose.suites.base import TaskSource


class SandboxChoice(Frozen):
    """Which sandbox, and how much of the machine it may use."""

    name: str | None = None
    """``container:IMAGE``, ``unsafe``, or None: bubblewrap."""
    slots: int = 1
    """Commands that may run at a time, in all processes of the run together."""


class RunSpec(Frozen):
    """A finished plan, in plain types: what the controller hands to every process of the run."""

    manifest: Manifest
    sources: dict[str, TaskSource]
    """By the task's name."""
    models: dict[str, ModelSpec]
    out: Path
    cache: Path | None
    outputs: Outputs = Outputs()
    """What calls are expected to answer; with it, every process reserves the same cost for a call."""
    limits: Limits = Limits(turns=MAX_TURNS, nanousd=nanousd(MAX_CALL_USD))
    """Of every episode with tools."""
    sandbox: SandboxChoice = SandboxChoice()
    """Where the commands of agents run."""
    in_flight: dict[str, int] = Field(default_factory=lambda: {"": 1})
    """Vendor -> calls at a time in one process; under the empty name, for every other vendor."""
    fault_retries: int = 0
    """How many more passes there are over faulted cells at the end of the run."""
    ancestor: Path | None = None
    """The folder of the run to take cells over from."""
    ledger: str = LEDGER
    """The file in the run's folder that books what calls cost: one for all processes that share the caps."""
    caps: dict[str, int] = Field(default_factory=dict)
    """Vendor -> nano-dollars that its calls may cost."""
    spent_before: dict[str, int] = Field(default_factory=dict)
    """Vendor -> nano-dollars of these that the runs cost which this one goes on from."""

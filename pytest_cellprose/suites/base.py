"""What a suite is to the trunk: tasks, variants, an opening, maybe a world, and a check.

The trunk (plan, gate, money, store, resume, statistics, report) knows nothing else of what it measures. A cell is one
model × variant × task × repeat; spreadsheets call a variant an encoding and a task a workbook.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pytest_cellprose.providers.base import Tool, ToolCall, ToolResult
from pytest_cellprose.record.record import SetName, Usage


@dataclass(frozen=True)
class Task:
    """One thing that is asked of a model, in every variant alike."""

    name: str
    """A file name's letters: it stands in node ids."""
    digest: str
    """Of all that can change what is asked or how it is scored: another digest is another task."""
    parts: Mapping[str, str]
    """Part -> its kind. Each part has a score of its own; the cell's accuracy is their mean."""
    set: SetName = "development"
    strata: Mapping[str, str] = field(default_factory=dict)
    """What tasks may be told apart by, such as ``{"size": "large"}``; for reports."""
    source: Path | None = None
    """Where it was read from."""


@dataclass(frozen=True)
class Variant:
    """One way of putting a task to a model."""

    name: str
    version: str
    """Changes whenever any opening could change."""
    label: str = ""


@dataclass(frozen=True)
class Opening:
    """How a task is put: all that a model is told before its first turn. It never holds a truth."""

    system: str
    prompt: str
    tools: Sequence[Tool] = ()
    aside: object = None
    """For an offline model of the suite; never sent."""


class World(AbstractContextManager["World"], Protocol):
    """What tools act on: opened for one attempt, discarded after it."""

    digest: str
    """Of all that is in it, tool versions and limits included; known before it is opened, and part of the inputs id."""

    def call(self, call: ToolCall) -> str:
        """What a tool answers. Arguments that do not fit are answered with the error, not raised."""
        ...


@dataclass(frozen=True)
class PlayedTurn:
    """One request and what came of it."""

    reply: str
    """The model's words."""
    usage: Usage
    calls: Sequence[ToolCall] = ()
    results: Sequence[ToolResult] = ()
    """In the order of `calls`."""


@dataclass(frozen=True)
class Episode:
    """What a model did until it answered: turns up to a reply without tool calls; one shot is one turn."""

    turns: Sequence[PlayedTurn]

    @property
    def reply(self) -> str:
        """The last turn's words."""
        return self.turns[-1].reply if self.turns else ""


@dataclass(frozen=True)
class Check:
    """What an episode is worth."""

    scores: Mapping[str, float]
    """Part -> score in [0, 1]; a part that is not here has 0."""
    answers: Mapping[str, Any] | None = field(default_factory=dict)
    """What was found in the episode, for a reader; None: no answer at all, which is the failure ``no_answer``."""
    evidence: Any = None
    """Plain JSON that says why, for a reader."""
    cost_nanousd: int = 0
    """Of the check itself, if it made paid calls; never in a cell's cost."""


class SuiteError(ValueError):
    """A folder that a suite cannot make tasks of; the message names the file, what is wrong and what to do."""


class Suite(ABC):
    """Implement the abstract methods and return an instance from the hook ``pytest_cellprose_suites``.

    An instance is made once per process, so that workers have their own. Everything but `world` is to be a pure
    function of its arguments and files: what a worker sees is what was planned, or the cell is refused.
    """

    name: str
    """As the ``suite`` of a ``split.json`` names it."""
    axes: tuple[str, str] = ("variant", "task")
    """What variants and tasks are called in tables."""

    @abstractmethod
    def tasks(self, folder: Path) -> Iterable[Task]:
        """Every task of a cells folder; raises `SuiteError`."""

    @abstractmethod
    def variants(self) -> Iterable[Variant]:
        """Every variant, in the order of tables; the first is the challenger unless another is named."""

    @abstractmethod
    def opening(self, task: Task, variant: Variant) -> Opening:
        """Gets no truth. May raise: the cell is then the fault ``opening``, and nothing is sent."""

    @abstractmethod
    def check(self, task: Task, episode: Episode, world: World | None) -> Check:
        """Scores an episode; `world` is what its tools left, None where there was none."""

    def world(self, task: Task, variant: Variant) -> World | None:
        """What the opening's tools act on, not opened yet; None where it has no tools."""
        return None


class InputChanged(RuntimeError):
    """A file of the plan is not what it was when the run was planned."""

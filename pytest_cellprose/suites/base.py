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
from typing import Any, Literal, Protocol

from pydantic import Field

from pytest_cellprose.cache import TextCache
from pytest_cellprose.encodings.base import Encoding
from pytest_cellprose.encodings.keys import functions_digest
from pytest_cellprose.providers.base import Tool, ToolCall
from pytest_cellprose.questions.kind import Kinds
from pytest_cellprose.record.record import CallProblem, Frozen, SetName, Usage
from pytest_cellprose.sandbox.base import Answer, Sandboxes
from pytest_cellprose.store.manifest import WorkbookEntry


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
    aside: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `Request` for an offline model of the suite; never sent."""


class World(AbstractContextManager["World"], Protocol):
    """What tools act on: opened for one attempt, discarded after it."""

    digest: str
    """Of all that is in it, tool versions and limits included; known before it is opened, and part of the inputs id."""

    def call(self, name: str, arguments: Mapping[str, Any]) -> str | Answer:
        """What a tool of the opening answers; its arguments fit its schema. What the model did wrong is an answer too.

        What is raised ends the episode with the fault ``world``.
        """
        ...


@dataclass(frozen=True)
class PlayedCall:
    """A tool call and what it was answered."""

    call: ToolCall
    result: str | None = None
    """The whole text that the model was told; None: the episode ended before."""
    problem: CallProblem | None = None
    """Why no tool ran and `result` is an error."""
    exit_code: int | None = None
    """Of a command that came to its end."""
    output_bytes: int | None = None
    """Of all that a command wrote."""
    seconds: float = 0.0
    """Of the tool."""


@dataclass(frozen=True)
class PlayedTurn:
    """One request and what came of it."""

    reply: str | None
    """The model's words; None: nothing came."""
    usage: Usage
    """As it counts: half reported or absurd is unreported."""
    calls: Sequence[PlayedCall] = ()
    """All that were made, in their order."""
    cost_nanousd: int | None = None
    """At list price and this turn's own tier, all input uncached; None: no tokens were reported."""
    cost_as_billed_nanousd: int | None = None
    assumed_nanousd: int | None = None
    """What it was expected to cost, if it may be billed and told no tokens; None also in one shot, whose price its
    caller knows better."""
    seconds: float = 0.0
    """Until the reply was there."""
    attempts: int = 1
    limited: int = 0
    """Of the attempts, those refused for too many requests."""
    answered: bool = True
    """Whether a reply came, be it a failure: a path that broke answered nothing."""


@dataclass(frozen=True)
class Episode:
    """What a model did until it answered: turns up to a reply without tool calls; one shot is one turn."""

    turns: Sequence[PlayedTurn]

    @property
    def reply(self) -> str:
        """The last turn's words."""
        return (self.turns[-1].reply or "") if self.turns else ""


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


class InputChanged(RuntimeError):
    """A file of the plan is not what it was when the run was planned."""


class OpeningFault(Exception):
    """A task that could not be put: its cells are faults of this kind, and nothing is sent for them."""

    kind = "opening"

    def __init__(self, told: str, quoted: str = "") -> None:
        super().__init__(f"{told}: {quoted}" if quoted else told)
        self.told = told
        """The message without what the suite's own exception says, which may quote the task."""


class TaskSource(Frozen):
    """Where a planned task is read from again, in the process that measures it."""

    folder: Path
    """The cells folder that holds it."""
    files: dict[str, Path] = Field(default_factory=dict)
    """Its files, by what the suite calls them."""


@dataclass(frozen=True)
class Workplace:
    """What a process has for a suite to work with."""

    cache: TextCache
    encodings: Mapping[str, Encoding]
    """What the hook ``pytest_cellprose_encodings`` brought, by name."""
    kinds: Kinds
    """Of questions."""
    final: bool = False
    sandboxes: Sandboxes | None = None
    """Where the commands of agents run; None: the plan has no agents."""
    sandbox_facts: Mapping[str, Any] | None = None
    """What the plan says of them; None: it is being made."""


class Suite(ABC):
    """Implement the abstract methods and return an instance from the hook ``pytest_cellprose_suites``.

    Each process has an instance of its own. Everything but `world` is to be a function of its arguments and of files:
    what a worker sees is what was planned, or the cell is refused.
    """

    name: str
    """As the ``suite`` of a ``split.json`` names it."""
    axes: tuple[str, str] = ("variant", "task")
    """What variants and tasks are called in tables, in the singular."""

    @abstractmethod
    def tasks(self, folder: Path) -> Iterable[Task]:
        """Every task of a cells folder; raises `SuiteError`."""

    @abstractmethod
    def variants(self) -> Iterable[Variant]:
        """Every variant, in the order of tables; the first is the challenger unless another is named."""

    @abstractmethod
    def opening(self, task: Task, variant: Variant) -> Opening:
        """Gets no truth. Whatever it raises is a fault of the cell."""

    @abstractmethod
    def check(self, task: Task, episode: Episode, world: World | None) -> Check:
        """Scores an episode; `world` is what its tools left, None where there was none."""

    def within(self, place: Workplace) -> Suite:
        """The suite as it measures in this process."""
        return self

    def world(self, task: Task, variant: Variant) -> World | None:
        """What the opening's tools act on, not opened yet; None where it has no tools."""
        return None

    def unreadable(self, variant: Variant, *, explores: bool) -> str | None:
        """Why an offline model, a program, cannot answer from a variant; None if it can.

        `explores`: it works with tools and reads no prompt (`ModelSpec.explores`).
        """
        return f"the offline reader answers nothing of the suite {self.name!r}"

    def tools(self, variant: Variant) -> Literal["none", "world", "sandbox"]:
        """Whether a variant's openings offer tools, and whether these are a world's own or commands in a sandbox."""
        return "none" if type(self).world is Suite.world else "world"

    def load(self, entry: WorkbookEntry, source: TaskSource) -> Task:
        """A planned task again; raises `InputChanged` if it is not what was planned."""
        for task in self.tasks(source.folder):
            if task.name == entry.name and task.digest == entry.workbook_sha256:
                return task
        what = f"{self.axes[1]} {entry.name!r}"
        raise InputChanged(f"{source.folder}: {what} changed after the run was planned: run again")

    def text(self, task: Task, variant: Variant) -> str | bytes | None:
        """What of a task is handed over in the variant's own way, in the prompt or as a file: its digest is on record.
        None: nothing of the task is."""
        opening = self.opening(task, variant)
        return f"{opening.system}\n{opening.prompt}"

    def known_text(self, entry: WorkbookEntry, variant: Variant) -> str | bytes | None:
        """The same, where it is at hand without being made."""
        return None

    def code_sha256(self, variant: Variant) -> str:
        """Of the code that the variant's openings and all checks come from."""
        return functions_digest(type(self))

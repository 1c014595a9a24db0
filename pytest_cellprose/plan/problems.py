"""A plan while it is made: what is wrong with it so far, and what is to be said of it."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from pytest_cellprose.questions.problem import Problem
from pytest_cellprose.record.plain import visible


class PlanError(ValueError):
    """A plan that is refused, with every reason and, where options would do, the accepted command line."""

    def __init__(self, problems: Sequence[Problem], invocation: Sequence[str]) -> None:
        self.problems = tuple(problems)
        lines = ["cellprose:", *(f"  {visible(str(problem))}" for problem in problems)]
        remedies = list(dict.fromkeys(flag for problem in problems for flag in problem.remedy))
        if remedies and all(problem.remedy for problem in problems):
            lines.append(f"  accepted: {shlex.join(['pytest', *invocation, *remedies])}")
        super().__init__("\n".join(lines))


@dataclass
class Draft:
    """Notes of a plan in the making."""

    problems: list[Problem] = field(default_factory=list)
    gate: list[Problem] = field(default_factory=list)
    """Problems of key, tree or money, which ``--collect-only`` shows instead of refusing."""
    notes: list[str] = field(default_factory=list)
    deviations: list[str] = field(default_factory=list)
    """Departures that a publication must name."""
    unpublishable: list[str] = field(default_factory=list)
    """Departures that rule a publication out."""

    def refuse_unknown(self, option: str, noun: str, names: Iterable[str], known: Collection[str]) -> None:
        """Refuse what an option names and nobody knows."""
        for name in names:
            if name not in known:
                self.refuse(f"{option}: unknown {noun} {name!r}: known are {', '.join(known) or 'none'}")

    def refuse(self, text: str, *remedy: str) -> None:
        self.problems.append(Problem(text, remedy=remedy))

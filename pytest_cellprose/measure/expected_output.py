"""What a call is expected to use, by what earlier runs recorded or by assumption."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field

from pytest_cellprose.measure.expected_episode import RecordedEpisodes, assumed_turns
from pytest_cellprose.record.record import Frozen, Prices
from pytest_cellprose.wording import counted

TOKENS_PER_CALL = 100
TOKENS_PER_QUESTION = 250
"""Answers take about 15 tokens a question; the rest is room for reasoning at medium effort. An assumption, not a
measurement: no live call has been made."""

LEAST_CALLS = 5
"""Fewer recorded calls say too little to replace the assumption."""


class Recorded(Frozen):
    """Calls of one model about one encoding, summed over earlier runs."""

    calls: int
    questions: int
    tokens: int
    """Output tokens, reasoning included."""

    def __add__(self, other: Recorded) -> Recorded:
        return Recorded(
            calls=self.calls + other.calls,
            questions=self.questions + other.questions,
            tokens=self.tokens + other.tokens,
        )


class Outputs(Frozen):
    """The estimate of every model of a plan, in plain types: every process of a run reserves by the same one."""

    recorded: dict[str, dict[str, Recorded]] = Field(default_factory=dict)
    """Model alias -> encoding -> what earlier runs recorded of calls in one shot."""
    episodes: dict[str, dict[str, RecordedEpisodes]] = Field(default_factory=dict)
    """Model alias -> encoding -> what they recorded of episodes with tools."""
    runs: list[str] = Field(default_factory=list)
    """The runs that were read."""

    def expected(self, model: str, encoding: str, questions: int) -> int:
        """Output tokens of one call: recorded tokens a question, of this encoding or else of all, or the assumption."""
        by_encoding = self.recorded.get(model, {})
        for found in (by_encoding.get(encoding), _sum(by_encoding.values())):
            if found is not None and found.calls >= LEAST_CALLS:
                return -(-found.tokens * questions // found.questions)
        return TOKENS_PER_CALL + TOKENS_PER_QUESTION * questions

    def episode(self, model: str, encoding: str, prices: Prices, prompt: int) -> int:
        """Nano-dollars of an episode with tools: the mean of those that were recorded, or as many turns as are assumed.

        `prompt`: tokens of its first request.
        """
        found = self.episodes.get(model, {}).get(encoding)
        if found is not None:
            return -(-found.nanousd // found.calls)
        return assumed_turns(encoding).nanousd(prices, prompt)

    def episode_method(self, encodings: Iterable[str]) -> str:
        """Where the expected cost of episodes is from, for a reader."""
        calls = {model: sum(found.calls for found in by.values()) for model, by in self.episodes.items()}
        assumed = ", ".join(f"{assumed_turns(encoding).turns} for {encoding}" for encoding in encodings)
        recorded = f"as recorded for {', '.join(f'{model} ({n})' for model, n in calls.items())}, " if calls else ""
        return f"with tools it is rougher: {recorded}{'else ' if calls else ''}so many turns are assumed: {assumed}"

    def method(self) -> str:
        """Where the expected output is from, for a reader."""
        assumed = f"{TOKENS_PER_CALL} tokens a call and {TOKENS_PER_QUESTION} a question"
        calls = {model: total.calls for model, found in self.recorded.items() if (total := _sum(found.values()))}
        measured = [f"{model} ({number})" for model, number in calls.items() if number >= LEAST_CALLS]
        if not measured:
            return f"output assumed: {assumed}"
        number = len(self.runs)
        return (
            f"output per question as in the recorded calls of {counted(number, 'earlier run')}: "
            f"{', '.join(measured)}; else assumed: {assumed}"
        )


def _sum(found: Iterable[Recorded]) -> Recorded | None:
    total = None
    for recorded in found:
        total = recorded if total is None else total + recorded
    return total

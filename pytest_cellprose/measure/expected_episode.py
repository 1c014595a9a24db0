"""What an episode with tools is expected to cost: by what earlier runs recorded, or by a table of turns."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from pytest_cellprose.models.pricing import cost_nanousd
from pytest_cellprose.record.record import Frozen, Prices


class RecordedEpisodes(Frozen):
    """Episodes of one model in one variant, summed over earlier runs."""

    calls: int
    nanousd: int
    """At today's list price, every turn at its own tier."""

    def __add__(self, other: RecordedEpisodes) -> RecordedEpisodes:
        return RecordedEpisodes(calls=self.calls + other.calls, nanousd=self.nanousd + other.nanousd)


class AssumedTurns(Frozen):
    """The turns that a variant's episodes are taken to have."""

    turns: int
    output: int
    """Tokens of a turn's words and tool calls."""
    result: int
    """Tokens of what a turn's tools answer."""
    source: str

    def nanousd(self, prices: Prices, prompt: int) -> int:
        """Of an episode whose first request has `prompt` tokens: each turn sends again all that came before it."""
        inputs = (prompt + turn * (self.output + self.result) for turn in range(self.turns))
        return sum(cost_nanousd(prices, tokens, self.output) for tokens in inputs)


@cache
def _table() -> Mapping[str, AssumedTurns]:
    text = (files("pytest_cellprose.models") / "agent_turns.toml").read_text(encoding="utf-8")
    return {variant: AssumedTurns(**entry) for variant, entry in tomllib.loads(text).items()}


def assumed_turns(variant: str) -> AssumedTurns:
    """Of a variant, or those of every other one."""
    return _table().get(variant, _table()[""])

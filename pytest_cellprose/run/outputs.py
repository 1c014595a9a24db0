"""How many output tokens a call is expected to use: from earlier runs' records where there are any, else assumed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from pytest_cellprose.models.registry import ModelSpec
from pytest_cellprose.record import Frozen
from pytest_cellprose.run.store import Store

TOKENS_PER_CALL = 100
TOKENS_PER_QUESTION = 250
"""Answers take about 15 tokens a question; the rest is room for reasoning at medium effort. An assumption, not a
measurement: no live call has been made."""

LEAST_CALLS = 5
"""Fewer recorded calls say too little to replace the assumption."""
MOST_RUNS = 20
"""The latest ones, so that planning stays fast however many runs are stored."""


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
    """Model alias -> encoding -> what earlier runs recorded."""
    runs: list[str] = Field(default_factory=list)
    """The runs that were read."""

    def expected(self, model: str, encoding: str, questions: int) -> int:
        """Output tokens of one call: recorded tokens a question, of this encoding or else of all, or the assumption."""
        by_encoding = self.recorded.get(model, {})
        for found in (by_encoding.get(encoding), _sum(by_encoding.values())):
            if found is not None and found.calls >= LEAST_CALLS:
                return -(-found.tokens * questions // found.questions)
        return TOKENS_PER_CALL + TOKENS_PER_QUESTION * questions

    def method(self) -> str:
        """Where the expected output is from, for a reader."""
        assumed = f"{TOKENS_PER_CALL} tokens a call and {TOKENS_PER_QUESTION} a question"
        calls = {model: total.calls for model, found in self.recorded.items() if (total := _sum(found.values()))}
        measured = [f"{model} ({number})" for model, number in calls.items() if number >= LEAST_CALLS]
        if not measured:
            return f"output assumed: {assumed}"
        number = len(self.runs)
        return (
            f"output per question as in the recorded calls of {number} earlier run{'' if number == 1 else 's'}: "
            f"{', '.join(measured)}; else assumed: {assumed}"
        )


def _sum(found: Iterable[Recorded]) -> Recorded | None:
    total = None
    for recorded in found:
        total = recorded if total is None else total + recorded
    return total


def recorded_outputs(out: Path, models: Sequence[ModelSpec]) -> Outputs:
    """What the runs under `out` recorded of these models: same model id, same settings, development records only.

    Runs and lines that this version cannot read are passed by: an estimate needs none of them.
    """
    live = [model for model in models if model.live]
    if not live:
        return Outputs()
    recorded: dict[str, dict[str, Recorded]] = {}
    runs: list[str] = []
    for store in _stores(out, {model.model_id for model in live}):
        found = False
        for fields in _records(store):
            for model in live:
                call = _call(fields, model)
                if call is not None:
                    encoding, one = call
                    of_model = recorded.setdefault(model.alias, {})
                    of_model[encoding] = of_model[encoding] + one if encoding in of_model else one
                    found = True
        if found:
            runs.append(store.run)
        if len(runs) == MOST_RUNS:
            break
    return Outputs(recorded=recorded, runs=runs)


def _stores(out: Path, model_ids: set[str]) -> Iterator[Store]:
    """Runs that called one of the models, latest first."""
    for path in sorted((out / "runs").glob("*.json"), reverse=True):
        try:
            manifest = json.loads(path.read_bytes())
            skipped = manifest["matrix"]["skipped_models"]
            called = {model["model_id"] for model in manifest["models"] if model["alias"] not in skipped}
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if called & model_ids:
            yield Store(out, path.stem)


def _records(store: Store) -> Iterator[Mapping[str, Any]]:
    try:
        with store.records_path("development").open("rb") as stream:
            for line in stream:
                try:
                    fields = json.loads(line)
                except ValueError:
                    continue
                if isinstance(fields, dict):
                    yield fields
    except OSError:
        return


def _call(fields: Mapping[str, Any], model: ModelSpec) -> tuple[str, Recorded] | None:
    """A record's encoding and output, if it is a measured call of `model` as it would be called now."""
    try:
        used, tokens, questions = fields["model"], fields["usage"]["output"], len(fields["kinds"])
        same = used["requested"] == model.model_id
        same = same and used["settings"] == {"max_tokens": model.max_tokens, **model.settings}
        if not same or fields["outcome"]["status"] == "fault" or not isinstance(tokens, int) or not questions:
            return None
        return str(fields["cell"]["encoding"]), Recorded(calls=1, questions=questions, tokens=tokens)
    except (KeyError, TypeError):
        return None

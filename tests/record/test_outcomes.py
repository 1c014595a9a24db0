"""The table of outcomes against the rules that it stands for (protocol section 5.6, docs/ARCHITECTURE.md)."""

from __future__ import annotations

import json

import pytest

from pytest_cellprose.providers.base import ModelFailure
from pytest_cellprose.record import outcomes
from pytest_cellprose.record.outcomes import FAILURES, OUTCOMES, policy
from pytest_cellprose.record.record import NotStarted, Outcome
from pytest_cellprose.session.letters import PROPERTY
from pytest_cellprose.session.letters import test_status as shown

THE_MODELS = {
    "truncated",
    "refused",
    "no_answer",
    "context_exceeded",
    "cache_leak",
    "turn_limit",
    "budget_exceeded",
    "api_error",
}
"""Scores 0 on every question, tokens kept, never retried, done for a resume."""

THE_PATHS = {
    "transport",
    "time_out",
    "cut_stream",
    "malformed_stream",
    "not_a_stream",
    "stream_error",
    "redirect",
    "api_error",
}
"""No score, run again once, in a final run the failure ``api_error``: a status, an in-stream error, a cut or malformed
stream, a time-out, a body that is no JSON."""

OURS = {"encoding", "opening", "world", "check", "quota", "authentication", "spend_cap", "wall_clock", "interrupted"}
"""No score in any mode."""

NEVER_AGAIN = {"authentication", "spend_cap", "wall_clock", "interrupted", "world", "check"}
"""In every mode never run again in the same run; `wall_clock` as everything that admission refused,
and `world`, for what was paid before it broke."""


def names(chosen: object) -> set[str]:
    return {row.name for row in OUTCOMES if chosen(row)}  # type: ignore[operator]


def test_every_outcome_has_one_row() -> None:
    keys = [(row.status, row.name) for row in OUTCOMES]
    assert len(keys) == len(set(keys))
    expected = {("scored", "scored")}
    expected |= {("failure", name) for name in THE_MODELS} | {("fault", name) for name in THE_PATHS | OURS}
    assert set(keys) == expected
    assert all(row.meaning for row in OUTCOMES)
    assert set(FAILURES) == THE_MODELS


def test_a_failure_scores_and_is_done() -> None:
    failures = [row for row in OUTCOMES if row.status == "failure"]
    assert all(row.has_score and row.kept and not row.again and row.letter == "x" for row in failures)
    assert all(row.in_final == "failure" for row in failures)


def test_a_fault_has_no_score_and_a_resumed_run_makes_the_call() -> None:
    faults = [row for row in OUTCOMES if row.status == "fault"]
    assert not any(row.has_score or row.kept for row in faults)


def test_what_scores_in_a_final_run() -> None:
    """There only what says nothing about a model stays without a score."""
    assert names(lambda row: row.in_final == "fault") == OURS
    assert names(lambda row: row.status == "fault" and row.in_final == "failure") == THE_PATHS


def test_what_runs_again_in_the_same_run() -> None:
    assert names(lambda row: row.status == "fault" and not row.again) == NEVER_AGAIN


def test_what_ends_the_calls_of_a_vendor() -> None:
    assert names(lambda row: row.stops) == {"authentication"}


def test_what_is_not_billed() -> None:
    """A refused key and an empty account come before any token; of a call that was cut off nobody knows."""
    assert names(lambda row: row.billed == "no") == {"authentication", "quota"}
    assert policy("fault", "interrupted").billed == policy("fault", "transport").billed == "yes"


def test_an_interrupted_call_is_made_again_by_a_resumed_run_only() -> None:
    interrupted = policy("fault", "interrupted")
    assert (interrupted.stands, interrupted.kept, interrupted.again) == (True, False, False)


@pytest.mark.parametrize("kind", ["authentication", "interrupted", "encoding", "transport", "mine"])
def test_a_refusal_means_the_same_whatever_it_is_called(kind: str) -> None:
    """It was not started: it stops nobody, is not tried again, is not billed, and a resumed run makes the call."""
    row = Outcome(status="fault", kind=kind, detail="", not_started=NotStarted(by="a plugin")).policy
    assert (row.has_score, row.stops, row.again, row.kept, row.stands, row.billed) == (*[False] * 5, "no")


def test_a_provider_has_words_of_its_own_for_faults_and_none_for_failures() -> None:
    own = Outcome(status="fault", kind="mine", detail="").policy
    assert (own.has_score, own.again, own.in_final, own.stops, own.word) == (False, True, "failure", False, "MINE")
    with pytest.raises(ValueError, match="'mine' is no kind of failure"):
        ModelFailure("mine", "")


@pytest.mark.parametrize(
    ("kind", "status", "accuracy", "letter", "word"),
    [
        ("scored", "scored", 1.0, ".", "SCORED 1.00"),
        ("scored", "scored", 0.83, "8", "SCORED 0.83"),
        ("scored", "scored", 0.0, "0", "SCORED 0.00"),
        *[(kind, "failure", 0.0, "x", f"{kind.upper()} 0.00") for kind in sorted(THE_MODELS)],
    ],
)
def test_the_terminal_shows_each_outcome(kind: str, status: str, accuracy: float, letter: str, word: str) -> None:
    told = {"outcome": kind, "status": status, "accuracy": accuracy, "kept_from": None}
    assert shown([(PROPERTY, json.dumps(told))]) == (letter, word)


@pytest.mark.parametrize("kind", sorted(THE_PATHS | OURS))
def test_a_fault_has_no_letter_of_ours(kind: str) -> None:
    told = {"outcome": kind, "status": "fault", "accuracy": None, "kept_from": None}
    assert shown([(PROPERTY, json.dumps(told))]) is None


def test_the_constants_are_the_rows() -> None:
    rows = [value for value in vars(outcomes).values() if isinstance(value, outcomes.Policy)]
    assert sorted(map(id, rows)) == sorted([*map(id, OUTCOMES), id(outcomes.NOT_STARTED)])

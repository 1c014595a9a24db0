"""TODO"""

from __future__ import annotations

FAILURES = (
    "truncated",
    "refused",
    "no_answer",
    "context_exceeded",
    "cache_leak",
    "turn_limit",
    "budget_exceeded",
    "api_error",
)
"""The model's: every question scores 0, tokens count (protocol section 5.6)."""

UNSCORED_FAULTS = ("authentication", "quota", "spend_cap", "interrupted")
"""Faults of the account or the run, which say nothing about a model: no score in a final run either."""

NEVER_RERUN = frozenset({"authentication", "interrupted"})
"""Faults that are the same when their cell runs again in the same run (DESIGN section 5); so is every `NotStarted`."""

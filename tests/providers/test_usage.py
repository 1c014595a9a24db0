"""What each vendor's usage object means; fields and their meaning as the SDKs' type definitions say."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_cellprose.providers.usage import (
    anthropic_cache_tokens,
    anthropic_usage,
    chat_usage,
    judged,
    openai_usage,
)
from pytest_cellprose.record.record import Usage


def tokens(usage: Usage) -> tuple[int | None, int | None, int | None, int | None]:
    return usage.input, usage.cached, usage.output, usage.reasoning


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"input_tokens": 900, "output_tokens": 30}, (900, None, 30, None)),
        (
            {
                "input_tokens": 900,
                "cache_read_input_tokens": 50,
                "cache_creation_input_tokens": 7,
                "output_tokens": 30,
                "output_tokens_details": {"thinking_tokens": 12},
            },
            (957, 50, 30, 12),
        ),
        ({"input_tokens": 900, "output_tokens": 30, "output_tokens_details": None}, (900, None, 30, None)),
        ({"cache_read_input_tokens": 50}, (None, 50, None, None)),
        ({"input_tokens": "900", "output_tokens": 30.0}, (900, None, 30, None)),
        ({}, (None, None, None, None)),
    ],
)
def test_anthropic_input_excludes_the_cache_and_ours_includes_it(raw: dict[str, Any], expected: object) -> None:
    usage = anthropic_usage(raw)
    assert tokens(usage) == expected
    assert usage.raw == raw


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (
            {
                "input_tokens": 900,
                "input_tokens_details": {"cached_tokens": 50, "cache_write_tokens": 3},
                "output_tokens": 30,
                "output_tokens_details": {"reasoning_tokens": 12},
                "total_tokens": 930,
            },
            (900, 50, 30, 12),
        ),
        ({"input_tokens": 900, "output_tokens": 30, "total_tokens": 930}, (900, None, 30, None)),
        (
            {"input_tokens": 9, "input_tokens_details": None, "output_tokens": 3, "output_tokens_details": {}},
            (9, None, 3, None),
        ),
        ({}, (None, None, None, None)),
    ],
)
def test_openai_input_includes_the_cache_and_output_the_reasoning(raw: dict[str, Any], expected: object) -> None:
    usage = openai_usage(raw)
    assert tokens(usage) == expected
    assert usage.raw == raw


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (
            {
                "prompt_tokens": 900,
                "prompt_tokens_details": {"cached_tokens": 50},
                "completion_tokens": 30,
                "completion_tokens_details": {"reasoning_tokens": 12},
                "total_tokens": 930,
            },
            (900, 50, 30, 12),
        ),
        (
            {
                "prompt_tokens": 900,
                "completion_tokens": 30,
                "completion_tokens_details": {"reasoning_tokens": 12},
                "total_tokens": 942,
            },
            (900, None, 42, 12),
        ),
        ({"prompt_tokens": 900, "completion_tokens": 30, "total_tokens": 930}, (900, None, 30, None)),
        ({"prompt_tokens": 900, "completion_tokens": 30, "completion_tokens_details": None}, (900, None, 30, None)),
        ({"prompt_tokens": None}, (None, None, None, None)),
    ],
)
def test_chat_output_always_includes_the_reasoning(raw: dict[str, Any], expected: object) -> None:
    usage = chat_usage(raw)
    assert tokens(usage) == expected
    assert usage.raw == raw


@pytest.mark.parametrize("normalise", [anthropic_usage, openai_usage, chat_usage])
def test_no_usage_at_all_is_not_reported(normalise: Any) -> None:
    assert normalise(None) == Usage()


def test_cache_tokens_are_found_wherever_they_are_told() -> None:
    assert anthropic_cache_tokens(None) == (0, 0)
    assert anthropic_cache_tokens({"input_tokens": 3, "cache_read_input_tokens": None}) == (0, 0)
    assert anthropic_cache_tokens({"cache_read_input_tokens": 4, "cache_creation_input_tokens": 5}) == (4, 5)


# --- what is a count, and what is a report ---------------------------------------------------------------------------

SIDES = [
    (anthropic_usage, "input_tokens", "output_tokens"),
    (openai_usage, "input_tokens", "output_tokens"),
    (chat_usage, "prompt_tokens", "completion_tokens"),
]


@pytest.mark.parametrize("normalise, sent, got", SIDES)
@pytest.mark.parametrize("hundred", [100, 100.0, "100"])
def test_a_count_is_read_alike_however_it_is_written(normalise: Any, sent: str, got: str, hundred: object) -> None:
    usage = normalise({sent: hundred, got: hundred})
    assert (usage.input, usage.output, usage.problem) == (100, 100, None)
    assert type(usage.input) is type(usage.output) is int


NO_COUNT = [-5, -5.0, "-5", 100.5, "100.5", "x", "", "１００", float("inf"), float("nan"), True, [], {}]


@pytest.mark.parametrize("normalise, sent, got", SIDES)
@pytest.mark.parametrize("value", NO_COUNT, ids=repr)
def test_what_is_no_count_makes_the_whole_unreported(normalise: Any, sent: str, got: str, value: object) -> None:
    for raw in ({sent: value, got: 100}, {sent: 100, got: value}):
        usage = judged(normalise(raw), context=None, text="x")
        assert tokens(usage) == (None, None, None, None)
        assert usage.problem == "not_a_count"
        assert repr(usage.raw).replace("'inf'", "inf").replace("'nan'", "nan") == repr(raw)


@pytest.mark.parametrize("normalise, sent, got", SIDES)
@pytest.mark.parametrize("raw", ["lots", 7, [1, 2]])
def test_usage_that_is_no_object_is_kept_and_no_report(normalise: Any, sent: str, got: str, raw: object) -> None:
    usage = judged(normalise(raw), context=None, text="x")
    assert (usage.problem, usage.raw) == ("not_a_count", raw)


@pytest.mark.parametrize("normalise, sent, got", SIDES)
@pytest.mark.parametrize(
    ("told", "problem"),
    [
        ((None, 100), "half"),
        ((1000, None), "half"),
        ((None, None), "missing"),
        ((0, 100), "zero"),
        ((0, 0), "zero"),
        ((1000, 0), "zero"),
        ((10**18, 5), "too_many"),
        ((1000, 10**18), "too_many"),
        ((200_001, 5), "too_many"),
        ((200_000, 5), None),
    ],
)
def test_half_reported_and_absurd_usage_is_unreported(
    normalise: Any, sent: str, got: str, told: tuple[int | None, int | None], problem: str | None
) -> None:
    raw = dict(zip((sent, got), told, strict=True))
    usage = judged(normalise(raw), context=200_000, text="an answer")
    assert usage.problem == problem
    assert (usage.input, usage.output) == ((None, None) if problem else told)
    assert usage.raw == raw


def test_a_part_that_is_more_than_its_whole_is_no_report() -> None:
    for usage in (Usage(input=10, cached=11, output=5), Usage(input=10, output=5, reasoning=6)):
        assert judged(usage, context=None, text="x").problem == "contradictory"
    assert judged(Usage(input=10, cached=10, output=5, reasoning=5), context=None, text="x").problem is None


def test_the_numbers_of_any_provider_are_judged_and_kept() -> None:
    usage = judged(Usage(input=-5, output=100), context=None, text="x")
    assert (usage.input, usage.output, usage.problem) == (None, None, "not_a_count")
    assert usage.raw == {"input": -5, "output": 100}
    assert judged(Usage(input=900, output=0), context=None, text="").problem is None


def test_what_the_beginning_of_a_stream_says_of_its_output_is_no_total() -> None:
    usage = anthropic_usage({"input_tokens": 900, "output_tokens": 1}, ended=False)
    assert (usage.input, usage.output) == (900, None)

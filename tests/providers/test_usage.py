"""What each vendor's usage object means; fields and their meaning as the SDKs' type definitions say."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_cellprose.providers.usage import anthropic_cache_tokens, anthropic_usage, chat_usage, openai_usage
from pytest_cellprose.record import Usage


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
        ({"input_tokens": "900", "output_tokens": True}, (None, None, None, None)),
        ({"input_tokens": -1, "output_tokens": 1.5}, (None, None, None, None)),
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

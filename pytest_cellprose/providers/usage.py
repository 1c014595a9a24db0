"""Each vendor's usage object, verbatim, as the tokens that a record counts: one pure function per vendor.

The three mean different things by "input tokens", and any of them may leave a detail, or everything, out. What is
not there, or is no count, is None: not reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_cellprose.record import Usage


def anthropic_usage(raw: Mapping[str, Any] | None) -> Usage:
    """Messages: ``input_tokens`` excludes what was read from or written to a cache; ``output_tokens`` is all of it."""
    if raw is None:
        return Usage()
    read = _tokens(raw, "cache_read_input_tokens")
    written = _tokens(raw, "cache_creation_input_tokens")
    uncached = _tokens(raw, "input_tokens")
    return Usage(
        input=None if uncached is None else uncached + (read or 0) + (written or 0),
        cached=read,
        output=_tokens(raw, "output_tokens"),
        reasoning=_tokens(raw, "output_tokens_details", "thinking_tokens"),
        raw=dict(raw),
    )


def anthropic_cache_tokens(raw: Mapping[str, Any] | None) -> tuple[int, int]:
    """Tokens read from and written to Anthropic's cache: any at all is a leak (protocol section 5.4)."""
    told = raw or {}
    return _tokens(told, "cache_read_input_tokens") or 0, _tokens(told, "cache_creation_input_tokens") or 0


def openai_usage(raw: Mapping[str, Any] | None) -> Usage:
    """Responses: ``input_tokens`` includes cached ones, ``output_tokens`` includes reasoning."""
    if raw is None:
        return Usage()
    return Usage(
        input=_tokens(raw, "input_tokens"),
        cached=_tokens(raw, "input_tokens_details", "cached_tokens"),
        output=_tokens(raw, "output_tokens"),
        reasoning=_tokens(raw, "output_tokens_details", "reasoning_tokens"),
        raw=dict(raw),
    )


def chat_usage(raw: Mapping[str, Any] | None) -> Usage:
    """Chat Completions: as OpenAI defines it, but some hosts leave reasoning out of ``completion_tokens``.

    They are told by their own sum: prompt, completion and reasoning make ``total_tokens``.
    """
    if raw is None:
        return Usage()
    prompt, output = _tokens(raw, "prompt_tokens"), _tokens(raw, "completion_tokens")
    reasoning = _tokens(raw, "completion_tokens_details", "reasoning_tokens")
    if reasoning and prompt is not None and output is not None:
        apart = _tokens(raw, "total_tokens") == prompt + output + reasoning
        output += reasoning if apart else 0
    return Usage(
        input=prompt,
        cached=_tokens(raw, "prompt_tokens_details", "cached_tokens"),
        output=output,
        reasoning=reasoning,
        raw=dict(raw),
    )


def _tokens(raw: Mapping[str, Any], *path: str) -> int | None:
    value: Any = raw
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None

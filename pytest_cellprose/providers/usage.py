"""Each vendor's usage object, verbatim, as the tokens that a record counts: one pure function per vendor, and one that
judges what any provider reports.

The three mean different things by "input tokens", and any of them may leave a detail, or everything, out. What is not
there is None: not reported. A count is a whole number, however it is written: ``100``, ``100.0`` or ``"100"``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pytest_cellprose.providers.raw import at
from pytest_cellprose.record.record import Usage, UsageProblem

MOST_TOKENS = 10**9
"""More than any call has on either side; for models whose context is not known."""


def anthropic_usage(raw: Any, *, ended: bool = True) -> Usage:
    """Messages: ``input_tokens`` excludes what was read from or written to a cache; ``output_tokens`` is all of it.

    `ended`: whether the stream's end told its output. What the beginning says of it is no total.
    """
    read = _tokens(raw, "cache_read_input_tokens")
    written = _tokens(raw, "cache_creation_input_tokens")
    uncached = _tokens(raw, "input_tokens")
    output = _tokens(raw, "output_tokens") if ended else None
    return Usage(
        input=None if uncached is None else uncached + (read or 0) + (written or 0),
        cached=read,
        output=output,
        reasoning=_tokens(raw, "output_tokens_details", "thinking_tokens"),
        problem=_miscounted(raw, "input_tokens", "output_tokens", *_CACHE),
        raw=raw,
    )


_CACHE = ("cache_read_input_tokens", "cache_creation_input_tokens")


def anthropic_cache_tokens(raw: Any) -> tuple[int, int]:
    """Tokens read from and written to Anthropic's cache: any at all is a leak (protocol section 5.4)."""
    read, written = (_tokens(raw, name) or 0 for name in _CACHE)
    return read, written


def openai_usage(raw: Any) -> Usage:
    """Responses: ``input_tokens`` includes cached ones, ``output_tokens`` includes reasoning."""
    return Usage(
        input=_tokens(raw, "input_tokens"),
        cached=_tokens(raw, "input_tokens_details", "cached_tokens"),
        output=_tokens(raw, "output_tokens"),
        reasoning=_tokens(raw, "output_tokens_details", "reasoning_tokens"),
        problem=_miscounted(raw, "input_tokens", "output_tokens"),
        raw=raw,
    )


def chat_usage(raw: Any) -> Usage:
    """Chat Completions: as OpenAI defines it, but some hosts leave reasoning out of ``completion_tokens``.

    They are told by their own sum: prompt, completion and reasoning make ``total_tokens``.
    """
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
        problem=_miscounted(raw, "prompt_tokens", "completion_tokens"),
        raw=raw,
    )


def judged(usage: Usage, *, context: int | None, text: str) -> Usage:
    """The usage of a reply as it counts: whole, or, half reported or absurd, not at all and with the reason.

    `context`: the model's greatest input, if it is known. `text`: what was answered. A prompt is never empty.
    """
    problem = usage.problem or _problem(usage, context, text)
    if problem is None:
        return usage
    return Usage(problem=problem, raw=usage.model_dump(exclude_none=True) or None if usage.raw is None else usage.raw)


def _problem(usage: Usage, context: int | None, text: str) -> UsageProblem | None:
    sent, got = usage.input, usage.output
    if sent is None or got is None:
        return "missing" if sent is got else "half"
    cached, reasoning = usage.cached or 0, usage.reasoning or 0
    if min(sent, got, cached, reasoning) < 0:
        return "not_a_count"
    if sent == 0 or (got == 0 and text.strip()):
        return "zero"
    if sent > (MOST_TOKENS if context is None else context) or got > MOST_TOKENS:
        return "too_many"
    return "contradictory" if cached > sent or reasoning > got else None


def _miscounted(raw: Any, *names: str) -> UsageProblem | None:
    """Whether something stands where one of these counts, or the whole object, should."""
    if raw is None:
        return None
    if not isinstance(raw, Mapping):
        return "not_a_count"
    told = (name for name in names if raw.get(name) is not None)
    return "not_a_count" if any(_tokens(raw, name) is None for name in told) else None


def _tokens(raw: Any, *path: str) -> int | None:
    return as_count(at(raw, *path))


def as_count(value: Any) -> int | None:
    """A number of tokens, however it is written; None for everything else, `True` among it."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= _MOST_DIGITS:
        value = int(value)
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


_MOST_DIGITS = 20

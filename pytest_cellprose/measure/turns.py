"""Turns that were played: what the next one will send, what they cost in all, and what a record keeps of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_cellprose.models.tokens import count
from pytest_cellprose.providers.base import Request
from pytest_cellprose.record.plain import plain_text
from pytest_cellprose.record.record import Clip, ToolStep, TurnUsage, Usage
from pytest_cellprose.suites.base import PlayedTurn

TRACE_CHARACTERS = 4_000
"""Of a call's arguments, and of its result, that a record keeps: half from either end."""
NAME_CHARACTERS = 100
"""Of a tool's name as a model wrote it."""


@dataclass(frozen=True)
class Totals:
    """An episode as one call: what a record says of it."""

    usage: Usage
    """The sum of the turns'; with the first problem of one that replied and told no tokens, all of it is unknown."""
    cost_nanousd: int | None
    """The sum of what turns cost, each rounded at its own tier. A turn whose path broke before it told any tokens adds
    nothing, as in one shot; None: a reply told none, or no turn did."""
    cost_as_billed_nanousd: int | None
    assumed_nanousd: int | None
    """What counts against the vendor's cap where a turn may be billed and told no tokens: known and expected costs.
    None: all is known, or it was one shot."""
    attempts: int
    limited: int


def expected_input(request: Request, turns: Sequence[PlayedTurn]) -> int:
    """Tokens of the next request: all that the last turn sent and answered, by its own report, and what came since.

    `turns` are those that `request.turns` resends. What nobody reported is counted in o200k_base tokens.
    """
    since = 0
    for turn, sent in zip(reversed(turns), reversed(request.turns), strict=True):
        since += sum(count(result.text) for result in sent.results) + count(sent.told)
        if turn.usage.input is not None and turn.usage.output is not None:
            return turn.usage.input + turn.usage.output + since
        since += said_tokens(turn)
    tools = sum(count(tool.text) for tool in request.tools)
    return count(request.system) + count(request.prompt) + tools + since


def said_tokens(turn: PlayedTurn) -> int:
    """o200k_base tokens of a model's words and calls."""
    return count(turn.reply or "") + sum(count(made.call.name) + count(made.call.arguments) for made in turn.calls)


def totals(turns: Sequence[PlayedTurn]) -> Totals:
    """The turns of an episode as one call; one turn is itself."""
    counted = turns if len(turns) == 1 else [turn for turn in turns if turn.answered or _told(turn)]
    assumed = any(turn.assumed_nanousd is not None for turn in turns)
    return Totals(
        usage=turns[0].usage if len(turns) == 1 else _sum([turn.usage for turn in counted]),
        cost_nanousd=_all([turn.cost_nanousd for turn in counted]),
        cost_as_billed_nanousd=_all([turn.cost_as_billed_nanousd for turn in counted]),
        assumed_nanousd=sum(map(cost_or_assumed, turns)) if assumed else None,
        attempts=sum(turn.attempts for turn in turns),
        limited=sum(turn.limited for turn in turns),
    )


def cost_or_assumed(turn: PlayedTurn) -> int:
    """What a turn cost, or what it was expected to where nobody knows."""
    return turn.cost_nanousd if turn.cost_nanousd is not None else turn.assumed_nanousd or 0


def _told(turn: PlayedTurn) -> bool:
    return turn.usage.input is not None and turn.usage.output is not None


def _sum(usages: Sequence[Usage]) -> Usage:
    """Without the vendors' own objects, one a turn; a detail that one turn left out is unknown."""
    if any(usage.input is None or usage.output is None for usage in usages):
        return Usage(problem=next((usage.problem for usage in usages if usage.problem is not None), None))
    return Usage(
        input=_all([usage.input for usage in usages]),
        cached=_all([usage.cached for usage in usages]),
        output=_all([usage.output for usage in usages]),
        reasoning=_all([usage.reasoning for usage in usages]),
    )


def _all(amounts: Sequence[int | None]) -> int | None:
    """Their sum; None for none at all, and if one is not known."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known and len(known) == len(amounts) else None


def recorded_turns(turns: Sequence[PlayedTurn], redacted: Callable[[Any], Any]) -> list[TurnUsage]:
    """For `Record.turns`. `redacted` takes keys out of plain JSON: `KeepsSecrets.redacted` of the provider."""
    return [
        TurnUsage(
            **turn.usage.model_copy(update={"raw": redacted(turn.usage.raw)}).model_dump(),
            reply=None if place == len(turns) else redacted(turn.reply),
            cost_nanousd=turn.cost_nanousd,
            cost_as_billed_nanousd=turn.cost_as_billed_nanousd,
            seconds=round(turn.seconds, 6),
        )
        for place, turn in enumerate(turns, 1)
    ]


def tool_trace(turns: Sequence[PlayedTurn], redacted: Callable[[Any], Any]) -> list[ToolStep]:
    """For `Record.tool_trace`. A text is redacted before it is clipped, so that no half of a key is left."""
    return [
        ToolStep(
            turn=number,
            name=plain_text(redacted(made.call.name))[:NAME_CHARACTERS],
            arguments=clipped(redacted(made.call.arguments)),
            result=None if made.result is None else clipped(redacted(made.result)),
            problem=made.problem,
            exit_code=made.exit_code,
            output_bytes=made.output_bytes,
            seconds=round(made.seconds, 6),
        )
        for number, turn in enumerate(turns, 1)
        for made in turn.calls
    ]


def clipped(text: str, most: int = TRACE_CHARACTERS) -> Clip:
    """A text, or as many characters of it from its two ends."""
    text = plain_text(text)
    if len(text) <= most:
        return Clip(head=text)
    half = most // 2
    return Clip(head=text[:half], left_out=len(text) - 2 * half, tail=text[-half:])

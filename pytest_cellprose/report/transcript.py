"""One cell's record as a text to read: what the model said and called, what it was told, and what each turn cost."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator

from pytest_cellprose.record.plain import visible
from pytest_cellprose.record.record import Clip, Record, ToolStep, TurnUsage, Usage
from pytest_cellprose.wording import counted, dollars

_WORDS = "  "
_GIVEN = "  > "
_TOLD = "  | "


def transcript(record: Record, *, width: int = 100) -> Iterator[str]:
    """The lines of a record's episode, safe for a terminal; one shot is an episode of one turn.

    A text that the record has only the two ends of says how much is missing.
    """
    yield from map(visible, _lines(record, width))


def _lines(record: Record, width: int) -> Iterator[str]:
    turns = record.turns if record.turns is not None else [_only_turn(record)]
    yield _heading(record, len(turns))
    steps = record.tool_trace or []
    for number, turn in enumerate(turns, 1):
        yield ""
        yield f"turn {number} · {_spent(turn)}"
        reply = record.reply if number == len(turns) else turn.reply
        yield from _block(reply or "", _WORDS, width)
        for step in steps:
            if step.turn == number:
                yield from _step(step, width)
    yield ""
    yield from _ending(record)


def _only_turn(record: Record) -> TurnUsage:
    usage = record.usage.model_dump(include={"input", "cached", "output", "reasoning", "problem"})
    return TurnUsage(**usage, cost_nanousd=record.cost_nanousd, seconds=record.seconds)


def _heading(record: Record, turns: int) -> str:
    asked = record.model.requested if record.model.returned in (None, record.model.requested) else record.model.returned
    return f"{record.cell} · {asked} · {counted(turns, 'turn')} · started {record.started} · run {record.run}"


def _spent(turn: TurnUsage) -> str:
    cached = f" ({turn.cached:,} of the input cached)" if turn.cached else ""
    return f"{_tokens(turn)}{cached} · {_cost(turn.cost_nanousd)} · {turn.seconds:,.1f} s"


def _tokens(usage: Usage) -> str:
    if usage.input is None or usage.output is None:
        return "tokens not told"
    return f"{usage.input:,} tokens in, {usage.output:,} out"


def _cost(nanousd: int | None) -> str:
    return "cost unknown" if nanousd is None else dollars(nanousd)


def _step(step: ToolStep, width: int) -> Iterator[str]:
    yield f"  {step.name}:"
    yield from _block(_arguments(step), _GIVEN, width)
    if step.result is None:
        yield "  not answered: the episode ended before"
        return
    ended = {
        None: "" if step.exit_code is None else f"exit code {step.exit_code} · ",
        "no_object": "its arguments are no JSON object: no tool ran · ",
        "unknown_tool": "there is no such tool · ",
        "misfit": "its arguments do not fit: no tool ran · ",
    }[step.problem]
    size = "" if step.output_bytes is None else f" · {counted(step.output_bytes, 'byte')} of output"
    yield f"  {ended}{step.seconds:,.2f} s{size}"
    yield from _block(_whole(step.result), _TOLD, width)


def _arguments(step: ToolStep) -> str:
    """The one argument of a command as it is, others by name; what is no JSON as the model wrote it."""
    text = _whole(step.arguments)
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(told, dict):
        return text
    if [*told] == ["command"] and isinstance(told["command"], str):
        return str(told["command"])
    return ", ".join(f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in told.items())


def _whole(clip: Clip) -> str:
    left_out = f"\n… {counted(clip.left_out, 'character')} not on record …\n" if clip.left_out else ""
    return f"{clip.head}{left_out}{clip.tail}"


def _block(text: str, mark: str, width: int) -> Iterable[str]:
    for line in text.splitlines():
        parts = textwrap.wrap(line, max(20, width - len(mark)), drop_whitespace=False, replace_whitespace=False) or [""]
        yield from (f"{mark}{part}".rstrip() for part in parts)


def _ending(record: Record) -> Iterator[str]:
    outcome = record.outcome
    if outcome.status == "scored":
        yield f"scored {record.accuracy or 0:.1%}"
    else:
        yield f"{outcome.status} {outcome.kind}: {outcome.detail or ''}".rstrip(": ")
    spent = f"{_tokens(record.usage)} · {_cost(record.cost_nanousd)}"
    yield f"in all {spent} · {record.seconds:,.1f} s of waiting for the model"
    for name, score in (record.scores or {}).items():
        answer = (record.answers or {}).get(name)
        yield f"  {name:<6} {score:.2f}  {json.dumps(answer, ensure_ascii=False)}"

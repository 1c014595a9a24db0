"""The episode of the trunk: turns until a reply without tool calls; one shot is the episode of one turn.

The loop belongs to no agent and to no suite: a suite's opening offers tools, its world answers their calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from traceback import extract_tb
from typing import Any, NamedTuple

from pytest_cellprose.measure.toolcalls import Misfit, Tools
from pytest_cellprose.measure.turns import cost_or_assumed, expected_input, said_tokens
from pytest_cellprose.models.pricing import cost_as_billed_nanousd, cost_nanousd, usage_cost_nanousd
from pytest_cellprose.providers.base import (
    ModelFailure,
    PathFault,
    Provider,
    Reply,
    Request,
    ToolCall,
    ToolResult,
    Turn,
)
from pytest_cellprose.providers.usage import judged
from pytest_cellprose.questions.prompts import CORRECTION
from pytest_cellprose.record.plain import plain, plain_text
from pytest_cellprose.record.record import Outcome, Prices, Usage
from pytest_cellprose.suites.base import Episode, PlayedCall, PlayedTurn, World
from pytest_cellprose.wording import dollars


@dataclass(frozen=True)
class Limits:
    """How far an episode may go; one shot has no limits but those of its call."""

    turns: int
    """Requests. The one after the last is the failure ``turn_limit``."""
    nanousd: int | None = None
    """List price of all turns. A turn whose input alone is expected to go beyond is the failure ``budget_exceeded``."""
    seconds: float | None = None
    """Looked at between turns and between tools, so that one under way is waited for. Then: the fault ``time_out``."""


_SCORED = Outcome(status="scored")


@dataclass(frozen=True)
class Played(Episode):
    """An episode that is over, with how it ended."""

    outcome: Outcome = _SCORED
    """``scored``: the last turn's reply is to be checked. Else the failure or fault that ended it; the turns before it
    stay."""
    returned_model: str | None = None
    """The model id that the last reply named, as it came."""
    raised: Exception | None = None
    """What a world raised, for the fault ``world``: its message may hold what may not be told."""


def play(
    provider: Provider,
    request: Request,
    world: World | None,
    limits: Limits,
    *,
    prices: Prices,
    context: int | None = None,
    heard: Callable[[PlayedTurn], Outcome | None] | None = None,
) -> Played:
    """Ask until there is a reply without tool calls. A request without tools is one shot: one call, as it is.

    The caller opens `world` before and closes it after it has checked what is left there::

        with world:
            played = play(provider, request, world, limits, prices=model.prices, context=model.context)
            check = suite.check(task, played, world) if played.outcome.status == "scored" else None

    A record is then made of `played.outcome`, the last turn's `reply`, `turns.totals(played.turns)` and, if the
    request offered tools, `turns.recorded_turns(played.turns, redacted)` and `turns.tool_trace(…)`. What counts
    against a cap is `Totals.assumed_nanousd` where it is not None, also beside a known cost. There is no turn at all
    where the first one would have been too dear.

    `context`: the model's greatest input, to judge what is reported. `heard` gets every turn as soon as it was
    answered or failed, before its tools run; what it returns ends an episode that would go on. What it raises comes
    through, and the turns are lost.

    Never raises for what a model, its path or a world does. A provider's bug comes through as it is. Raises
    `ValueError` for tools without a world or with a schema that is none, before anything is sent.
    """
    if not request.tools:
        asked = _ask(provider, request, (), prices, context)
        if heard is not None:
            heard(asked.turn)
        return Played([asked.turn], asked.outcome, asked.returned_model)
    if world is None:
        raise ValueError("a request that offers tools needs a world that answers them")
    return _Table(provider, request, world, limits, prices, context, heard).play()


class _Asked(NamedTuple):
    """A turn before its tools run."""

    turn: PlayedTurn
    outcome: Outcome
    reply: Reply | None
    returned_model: str | None


def _ask(
    provider: Provider, request: Request, before: Sequence[PlayedTurn], prices: Prices, context: int | None
) -> _Asked:
    clock = time.perf_counter()
    reply: Reply | None
    answered = True
    try:
        reply = provider.call(request)
        attempts, limited, outcome = reply.attempts, reply.limited, _SCORED
    except ModelFailure as failure:
        reply, attempts, limited = failure.reply, failure.attempts, failure.limited
        outcome, answered = _failure(failure.kind, failure.detail), reply is not None
    except PathFault as fault:
        reply, attempts, limited = fault.reply, fault.attempts, fault.limited
        outcome, answered = _fault(fault.kind, fault.detail), False
    seconds = time.perf_counter() - clock
    usage = _usage(reply, context, whole=outcome.status != "fault")
    turn = PlayedTurn(
        reply=None if reply is None else plain_text(reply.text),
        usage=usage,
        calls=[] if reply is None else [PlayedCall(call) for call in reply.calls],
        cost_nanousd=usage_cost_nanousd(prices, usage),
        cost_as_billed_nanousd=cost_as_billed_nanousd(prices, usage),
        seconds=seconds,
        attempts=attempts,
        limited=limited,
        answered=answered,
    )
    if request.tools and turn.cost_nanousd is None and attempts:
        expected = cost_nanousd(prices, expected_input(request, before), said_tokens(turn))
        turn = replace(turn, assumed_nanousd=expected)
    return _Asked(turn, outcome, reply, None if reply is None else reply.returned_model)


def _usage(reply: Reply | None, context: int | None, *, whole: bool) -> Usage:
    """The usage of a reply as it counts; `whole`: the reply is, so that it should have told all."""
    if reply is None or (not whole and reply.usage == Usage()):
        return Usage()
    said = reply.text + "".join(call.name for call in reply.calls)
    return judged(reply.usage, context=context, text=said)


def _failure(kind: str, detail: str) -> Outcome:
    return Outcome(status="failure", kind=kind, detail=plain_text(detail))


def _fault(kind: str, detail: str) -> Outcome:
    return Outcome(status="fault", kind=plain_text(kind), detail=plain_text(detail))


class _Table:
    """An episode with tools while it is played."""

    def __init__(
        self,
        provider: Provider,
        request: Request,
        world: World,
        limits: Limits,
        prices: Prices,
        context: int | None,
        heard: Callable[[PlayedTurn], Outcome | None] | None,
    ) -> None:
        self._provider = provider
        self._request = request
        self._world = world
        self._limits = limits
        self._prices = prices
        self._context = context
        self._heard = heard
        self._tools = Tools(request.tools)
        self._began = time.monotonic()
        self._turns: list[PlayedTurn] = []
        self._sent: list[Turn] = []
        """What goes back of every turn but the last."""
        self._returned_model: str | None = None
        self._raised: Exception | None = None

    def play(self) -> Played:
        ended = self._over()
        while ended is None:
            ended = self._turn() or self._over()
        return Played(tuple(self._turns), ended, self._returned_model, self._raised)

    def _over(self) -> Outcome | None:
        """Which limit the next turn would break; None: none."""
        if len(self._turns) >= self._limits.turns:
            return self._turn_limit()
        return self._late() or self._too_dear()

    def _turn_limit(self) -> Outcome:
        return _failure("turn_limit", f"no answer in {self._limits.turns} turns")

    def _late(self) -> Outcome | None:
        seconds = self._limits.seconds
        if seconds is None or time.monotonic() - self._began < seconds:
            return None
        return _fault("time_out", f"the episode took over {seconds:g} seconds")

    def _too_dear(self) -> Outcome | None:
        limit = self._limits.nanousd
        if limit is None:
            return None
        spent = sum(cost_or_assumed(turn) for turn in self._turns)
        expected = expected_input(replace(self._request, turns=self._sent), self._turns)
        next_input = cost_nanousd(self._prices, expected, 0)
        if spent + next_input <= limit:
            return None
        told = f"{dollars(spent)} spent, and {dollars(next_input)} for what the next turn sends"
        return _failure("budget_exceeded", f"{told}: more than {dollars(limit)}")

    def _turn(self) -> Outcome | None:
        """Ask once and run what tools are called; how the episode ended, None: it goes on."""
        request = replace(self._request, turns=tuple(self._sent))
        turn, outcome, reply, returned_model = _ask(self._provider, request, self._turns, self._prices, self._context)
        self._turns.append(turn)
        self._returned_model = returned_model or self._returned_model
        told_to_end = None if self._heard is None else self._heard(turn)
        if outcome.status != "scored" or reply is None:
            return outcome
        if told_to_end is not None and (turn.calls or reply.paused or not (turn.reply or "").strip()):
            return told_to_end
        said = plain(reply.said)  # what cannot be sent, such as a lone surrogate, would end every later turn
        if turn.calls:
            return self._answer(turn, said)
        if reply.paused:
            self._sent.append(Turn(said))
            return None
        if turn.reply and turn.reply.strip():
            return outcome
        if len(self._turns) >= self._limits.turns or any(sent.told for sent in self._sent):
            return _failure("no_answer", "the last reply is empty")
        self._sent.append(Turn(said, told=CORRECTION))
        return None

    def _answer(self, turn: PlayedTurn, said: Sequence[Any]) -> Outcome | None:
        """Answer all calls of the last turn, in their order."""
        if len(self._turns) >= self._limits.turns:  # nobody would hear what the tools say
            return self._turn_limit()
        calls = list(turn.calls)
        ended: Outcome | None = None
        for place, made in enumerate(turn.calls):
            ended = self._late()
            if ended is None:
                calls[place], ended = self._run(made.call)
            if ended is not None:
                break
        self._turns[-1] = replace(turn, calls=calls)
        if ended is None:
            self._sent.append(Turn(said, [ToolResult(made.call.id, made.result or "") for made in calls]))
        return ended

    def _run(self, call: ToolCall) -> tuple[PlayedCall, Outcome | None]:
        clock = time.perf_counter()
        arguments = self._tools.arguments(call)
        if isinstance(arguments, Misfit):
            return PlayedCall(call, plain_text(arguments.text), arguments.problem), None
        try:
            answer = self._world.call(call.name, arguments)
        except Exception as error:  # a suite's bug: what was paid for stays
            self._raised = error
            return PlayedCall(call, seconds=time.perf_counter() - clock), _fault("world", _broke(call, error))
        seconds = time.perf_counter() - clock
        if isinstance(answer, str):
            return PlayedCall(call, plain_text(answer), seconds=seconds), None
        told = plain_text(answer.text)
        return PlayedCall(call, told, None, answer.exit_code, answer.output_bytes, seconds), None


def _broke(call: ToolCall, error: Exception) -> str:
    """Which tool, which type of error and where it was raised: no text of the suite's, which may be held out."""
    frames = extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"the tool {call.name} raised {type(error).__name__}{where}"

"""A cell of the benchmark: one attempt of one model at one task, put in one way.

The way from a task to a record is one straight line: opening -> request -> reply -> check -> record.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

from pytest_cellprose.measure.episode import Limits, Played, play
from pytest_cellprose.measure.turns import recorded_turns, tool_trace, totals
from pytest_cellprose.models.registry import ModelSpec
from pytest_cellprose.models.tokens import count, counter_name
from pytest_cellprose.providers.base import (
    CountsTokens,
    KeepsSecrets,
    Provider,
    Request,
    called_address,
)
from pytest_cellprose.providers.hosts import host_of
from pytest_cellprose.record.outcomes import API_ERROR, CHECK, NO_ANSWER, WORLD, policy
from pytest_cellprose.record.plain import plain, plain_text
from pytest_cellprose.record.record import (
    CellId,
    CountedTokens,
    Git,
    ModelUsed,
    Outcome,
    Record,
    Usage,
    utc_now,
)
from pytest_cellprose.suites.base import Episode, Opening, OpeningFault, PlayedTurn, Suite, Task, Variant, World


@dataclass(frozen=True)
class Trial:
    """Everything that a cell's call is made from."""

    cell: CellId
    model: ModelSpec
    suite: Suite
    task: Task
    variant: Variant

    @property
    def shape(self) -> dict[str, Any]:
        """What every record of it has, whatever becomes of the call."""
        return {
            "cell": self.cell,
            "set": self.task.set,
            "encoding_version": self.variant.version,
            "prices": self.model.prices,
            "kinds": dict(self.task.parts),
        }


def request_of(opening: Opening, model: ModelSpec, world_digest: str = "") -> Request:
    """The exact request; no truth is in an opening."""
    return Request(
        model_id=model.model_id,
        system=opening.system,
        prompt=opening.prompt,
        max_tokens=model.max_tokens,
        settings=model.settings,
        tools=tuple(opening.tools),
        world_digest=world_digest,
        **opening.aside,
    )


def measure(
    trial: Trial,
    request: Request,
    provider: Provider,
    limits: Limits,
    *,
    run: str,
    git: Git,
    final: bool,
    heard: Callable[[PlayedTurn], Outcome | None] | None = None,
) -> Record:
    """Play the episode and score what comes of it. In a final run a fault of the path is a failure (protocol 5.6).

    `heard`: see `play`. Never raises for what a model, the path to it or a world does; a provider's bug comes through
    as it is.
    """
    address = called_address(type(provider))
    started = utc_now()
    with ExitStack() as worlds:
        world = _opened(trial, worlds) if request.tools else None
        if isinstance(world, Outcome):
            return _unmeasured(trial, world, run=run, git=git, started=started)
        context, prices = trial.model.context, trial.model.prices
        played = play(provider, request, world, limits, prices=prices, context=context, heard=heard)
        outcome = _outcome(played, final=final)
        marks: dict[str, Any] = {}
        if outcome.status == "scored":
            marks = _checked(trial, played, world)
        elif outcome.status == "failure":
            marks = _no_marks(trial.task)
    last = played.turns[-1] if played.turns else None
    text = None if last is None else last.reply
    total = totals(played.turns)
    stored = provider.redacted if isinstance(provider, KeepsSecrets) else _as_it_is
    kept = stored(text)
    reached = last is not None and played.outcome.status != "fault"
    agent: dict[str, Any] = {}
    if request.tools:
        agent = {"turns": recorded_turns(played.turns, stored), "tool_trace": tool_trace(played.turns, stored)}
    return _unmeasured(trial, outcome, run=run, git=git, started=started).model_copy(
        update={
            "inputs_id": request.inputs_id,
            "prompt_sha256": request.prompt_sha256,
            "model": ModelUsed(
                requested=request.model_id,
                returned=stored(plain(played.returned_model)),
                settings={"max_tokens": request.max_tokens, **request.settings},
            ),
            "usage": total.usage.model_copy(update={"raw": stored(total.usage.raw)}),
            "counted_tokens": _counted_tokens(provider, request) if reached and not request.tools else None,
            "cost_nanousd": total.cost_nanousd,
            "cost_as_billed_nanousd": total.cost_as_billed_nanousd,
            "assumed_nanousd": total.assumed_nanousd,
            "seconds": round(sum(turn.seconds for turn in played.turns), 6),
            "attempts": plain(total.attempts),
            "limited": plain(total.limited),
            **agent,
            **marks,
            "answers": stored(marks.get("answers")),
            "reply": kept,
            "redacted": kept != text,
            "host": host_of(address) if address and total.attempts else None,
        }
    )


def _opened(trial: Trial, worlds: ExitStack) -> World | Outcome | None:
    """The cell's world, which `worlds` closes; the fault if it cannot be opened: nothing is sent then.

    What closing it raises loses no reply that is paid for.
    """
    try:
        world = trial.suite.world(trial.task, trial.variant)
        if world is not None:
            world.__enter__()
    except Exception as error:  # its message may quote the task
        return Outcome.of(WORLD, f"the suite {trial.suite.name!r} raised {type(error).__name__}: nothing was sent")
    if world is not None:
        worlds.callback(_close, world)
    return world


def _close(world: World) -> None:
    with suppress(Exception):
        world.__exit__(None, None, None)


def _as_it_is(value: Any) -> Any:
    return value


def _outcome(played: Played, *, final: bool) -> Outcome:
    """How it ended, as the mode takes it."""
    outcome, kind = played.outcome, played.outcome.kind or ""
    if final and outcome.status == "fault" and policy("fault", kind).in_final == "failure":
        detail = outcome.detail or ""
        return Outcome.of(API_ERROR, detail if kind == API_ERROR.name else f"{kind}: {detail}")
    return outcome


def _counted_tokens(provider: Provider, request: Request) -> CountedTokens | None:
    """None also where counting breaks: a reply is here by now, and nothing that comes after it may lose it."""
    with suppress(Exception):
        if isinstance(provider, CountsTokens):
            return provider.counted_tokens(request)
        return CountedTokens(counter=counter_name(), n=count_prompt(request))
    return None


def taken_over(trial: Trial, before: Record, *, run: str, git: Git) -> Record:
    """An earlier run's record of the same request as a record of this run, scored with today's questions.

    A reply that a key was taken out of keeps its scores, and so does an episode whose world is gone.
    """
    update: dict[str, Any] = {
        "run": run,
        "git": git,
        "set": trial.task.set,
        "kept_from": before.kept_from or before.run,
        "replaces": None,
        "kinds": dict(trial.task.parts),
    }
    if before.redacted or before.turns is not None:  # what is stored is not what was scored
        return before.model_copy(update=update)
    if before.outcome.status == "scored" or before.outcome.policy == NO_ANSWER:
        update |= _checked(trial, Episode([PlayedTurn(before.reply or "", before.usage)]), None)
    else:
        update |= _no_marks(trial.task)
    return before.model_copy(update=update)


def _checked(trial: Trial, episode: Episode, world: World | None) -> dict[str, Any]:
    """What an episode makes of a record. A check that breaks loses no reply."""
    try:
        check = trial.suite.check(trial.task, episode, world)
    except Exception as error:  # its message may quote a truth
        broke = Outcome.of(CHECK, f"the suite {trial.suite.name!r} raised {type(error).__name__}")
        return {"outcome": broke, "scores": None, "accuracy": None, "answers": None}
    outcome = Outcome(status="scored")
    if check.answers is None:
        outcome = Outcome.of(NO_ANSWER, "the reply holds no answer object")
    scores = {part: float(check.scores.get(part, 0.0)) for part in trial.task.parts}
    return {
        "outcome": outcome,
        "answers": None if check.answers is None else plain(dict(check.answers)),
        "scores": scores,
        "accuracy": sum(scores.values()) / len(scores) if scores else 0.0,
    }


def _no_marks(task: Task) -> dict[str, Any]:
    """A failure scores 0 on every part (protocol section 5.6)."""
    return {"scores": dict.fromkeys(task.parts, 0.0), "accuracy": 0.0}


def not_opened(trial: Trial, fault: OpeningFault, *, run: str, git: Git) -> Record:
    """The record of a cell whose task could not be put: a fault, nothing was sent."""
    reason = fault.told if trial.task.set == "heldout" else str(fault)
    outcome = Outcome(status="fault", kind=fault.kind, detail=plain_text(reason))
    return _unmeasured(trial, outcome, run=run, git=git, started=utc_now())


def not_measured(trial: Trial, outcome: Outcome, *, run: str, git: Git) -> Record:
    """The record of a live cell that was not allowed to start, or whose call nobody waited for."""
    return _unmeasured(trial, outcome, run=run, git=git, started=utc_now())


def _unmeasured(trial: Trial, outcome: Outcome, *, run: str, git: Git, started: str) -> Record:
    return Record(
        run=run,
        git=git,
        inputs_id="",
        prompt_sha256="",
        model=ModelUsed(requested=trial.model.model_id),
        usage=Usage(),
        started=started,
        seconds=0.0,
        attempts=0,
        outcome=outcome,
        **trial.shape,
    )


def count_prompt(request: Request) -> int:
    """o200k_base tokens of system prompt and prompt."""
    return count(request.system) + count(request.prompt)

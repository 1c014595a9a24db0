"""A cell of the benchmark: one call of one model about one workbook in one encoding.

The way from a question file to a record is one straight line: ask -> request -> reply -> scores -> record.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pytest_cellprose.encodings.base import Encoding
from pytest_cellprose.models.pricing import cost_as_billed_nanousd, usage_cost_nanousd
from pytest_cellprose.models.registry import ModelSpec
from pytest_cellprose.models.tokens import count, counter_name
from pytest_cellprose.providers.base import (
    CountsTokens,
    KeepsSecrets,
    ModelFailure,
    PathFault,
    Provider,
    Reply,
    Request,
    called_address,
)
from pytest_cellprose.providers.hosts import host_of
from pytest_cellprose.providers.usage import judged
from pytest_cellprose.questions.prompts import SYSTEM, prompt
from pytest_cellprose.questions.schema import Question, QuestionFile
from pytest_cellprose.questions.scoring import score_reply
from pytest_cellprose.record.outcomes import UNSCORED_FAULTS
from pytest_cellprose.record.plain import plain, plain_text
from pytest_cellprose.record.record import (
    CellId,
    CountedTokens,
    Git,
    ModelUsed,
    Outcome,
    Record,
    SetName,
    Usage,
    utc_now,
)


@dataclass(frozen=True)
class Ask:
    """Everything that a cell's call is made from."""

    cell: CellId
    set: SetName
    model: ModelSpec
    encoding: Encoding
    text: str | None
    """The encoded workbook; None for the control, which sends none."""
    questions: QuestionFile


def request_of(ask: Ask) -> Request:
    """The exact request. Truths are left behind here: only `Asked` questions go on."""
    asked = [question.asked() for question in ask.questions.questions]
    return Request(
        model_id=ask.model.model_id,
        system=SYSTEM,
        prompt=prompt(ask.encoding.label, ask.text, asked),
        max_tokens=ask.model.max_tokens,
        settings=ask.model.settings,
        encoding=ask.encoding,
        asked=asked,
    )


def measure(ask: Ask, provider: Provider, *, run: str, git: Git, final: bool) -> Record:
    """Make the call and score what comes back. In a final run a fault of the path is a failure (DESIGN section 5).

    Never raises for what a model or the path to it does; a provider's bug comes through as it is.
    """
    request = request_of(ask)
    address = called_address(type(provider))
    started, clock = utc_now(), time.perf_counter()
    reply: Reply | None
    reached = True
    try:
        reply = provider.call(request)
        attempts, limited, outcome = reply.attempts, reply.limited, Outcome(status="scored")
    except ModelFailure as failure:
        reply, attempts, limited = failure.reply, failure.attempts, failure.limited
        outcome = Outcome(status="failure", kind=failure.kind, detail=plain_text(failure.detail))
    except PathFault as fault:
        reply, attempts, limited, reached = fault.reply, fault.attempts, fault.limited, False
        outcome = _path_outcome(plain_text(fault.kind), plain_text(fault.detail), final=final)
    seconds = time.perf_counter() - clock

    questions = ask.questions.questions
    text = None if reply is None else plain_text(reply.text)
    marks: dict[str, Any] = {}
    if outcome.status == "scored":
        marks = _scored(questions, text or "")
    elif outcome.status == "failure":
        marks = _no_marks(questions)
    usage = _usage(reply, ask.model.context, whole=reached)
    stored = provider.redacted if isinstance(provider, KeepsSecrets) else _as_it_is
    kept = stored(text)
    return _unmeasured(ask, outcome, run=run, git=git, started=started).model_copy(
        update={
            "inputs_id": request.inputs_id,
            "prompt_sha256": request.prompt_sha256,
            "model": ModelUsed(
                requested=request.model_id,
                returned=None if reply is None else stored(plain(reply.returned_model)),
                settings={"max_tokens": request.max_tokens, **request.settings},
            ),
            "usage": usage.model_copy(update={"raw": stored(usage.raw)}),
            "counted_tokens": _counted_tokens(provider, request) if reached else None,
            "cost_nanousd": usage_cost_nanousd(ask.model.prices, usage),
            "cost_as_billed_nanousd": cost_as_billed_nanousd(ask.model.prices, usage),
            "seconds": round(seconds, 6),
            "attempts": plain(attempts),
            "limited": plain(limited),
            **marks,
            "answers": stored(marks.get("answers")),
            "reply": kept,
            "redacted": kept != text,
            "host": host_of(address) if address and attempts else None,
        }
    )


def _as_it_is(value: Any) -> Any:
    return value


def _usage(reply: Reply | None, context: int | None, *, whole: bool) -> Usage:
    """The usage of a reply as it counts; `whole`: the reply is, so that it should have told all."""
    if reply is None or (not whole and reply.usage == Usage()):
        return Usage()
    return judged(reply.usage, context=context, text=reply.text)


def _path_outcome(kind: str, detail: str, *, final: bool) -> Outcome:
    if final and kind not in UNSCORED_FAULTS:
        return Outcome(
            status="failure", kind="api_error", detail=detail if kind == "api_error" else f"{kind}: {detail}"
        )
    return Outcome(status="fault", kind=kind, detail=detail)


def _counted_tokens(provider: Provider, request: Request) -> CountedTokens | None:
    """None also where counting breaks: a reply is here by now, and nothing that comes after it may lose it."""
    with suppress(Exception):
        if isinstance(provider, CountsTokens):
            return provider.counted_tokens(request)
        return CountedTokens(counter=counter_name(), n=count_prompt(request))
    return None


def taken_over(ask: Ask, before: Record, *, run: str, git: Git) -> Record:
    """An earlier run's record of the same request as a record of this run, scored with today's questions.

    A reply that a key was taken out of keeps its scores.
    """
    questions = ask.questions.questions
    update: dict[str, Any] = {
        "run": run,
        "git": git,
        "set": ask.set,
        "kept_from": before.kept_from or before.run,
        "replaces": None,
        "kinds": {question.id: question.kind for question in questions},
    }
    if before.redacted:  # what is stored is not what was scored
        return before.model_copy(update=update)
    if before.outcome.status == "scored" or before.outcome.kind == "no_answer":
        update |= _scored(questions, before.reply or "")
    else:
        update |= _no_marks(questions)
    return before.model_copy(update=update)


def _scored(questions: Sequence[Question], text: str) -> dict[str, Any]:
    """What a reply's text makes of a record."""
    scored = score_reply(questions, text)
    outcome = Outcome(status="scored")
    if scored.answers is None:
        outcome = Outcome(status="failure", kind="no_answer", detail="the reply holds no answer object")
    return {
        "outcome": outcome,
        "answers": scored.answers,
        "scores": dict(scored.scores),
        "accuracy": scored.accuracy,
    }


def _no_marks(questions: Sequence[Question]) -> dict[str, Any]:
    """A failure scores 0 on every question (protocol section 5.6)."""
    return {"scores": {question.id: 0.0 for question in questions}, "accuracy": 0.0}


def not_encoded(ask: Ask, reason: str, *, run: str, git: Git) -> Record:
    """The record of a cell whose encoding gave no text: a fault, nothing was sent."""
    outcome = Outcome(status="fault", kind="encoding", detail=plain_text(reason))
    return _unmeasured(ask, outcome, run=run, git=git, started=utc_now())


def not_measured(ask: Ask, outcome: Outcome, *, run: str, git: Git) -> Record:
    """The record of a live cell that was not allowed to start, or whose call nobody waited for."""
    return _unmeasured(ask, outcome, run=run, git=git, started=utc_now())


def _unmeasured(ask: Ask, outcome: Outcome, *, run: str, git: Git, started: str) -> Record:
    return Record(
        run=run,
        git=git,
        cell=ask.cell,
        set=ask.set,
        encoding_version=ask.encoding.version,
        inputs_id="",
        prompt_sha256="",
        model=ModelUsed(requested=ask.model.model_id),
        prices=ask.model.prices,
        usage=Usage(),
        started=started,
        seconds=0.0,
        attempts=0,
        outcome=outcome,
        kinds={question.id: question.kind for question in ask.questions.questions},
    )


def count_prompt(request: Request) -> int:
    """o200k_base tokens of system prompt and prompt."""
    return count(request.system) + count(request.prompt)

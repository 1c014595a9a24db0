"""How a cell can end, and all that follows from it: one row for each failure and fault.

Whoever has to know what becomes of a kind, whether it has a score, is called again, is billed or ends the run, reads
its row (`Outcome.policy`) and compares no names. Which ending of a vendor is which kind, the vendors' modules say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Status: TypeAlias = Literal["scored", "failure", "fault"]
"""``scored``: an answer was scored. ``failure``: the model's, scores 0. ``fault``: the path's or ours, no score."""

Billed: TypeAlias = Literal["yes", "maybe", "no"]
"""Of a call that was sent and told no tokens. ``yes``: some are owed, and the cost is unknown. ``maybe``: a vendor may
well not bill it; what there is of a reply tells usage by chance only. ``no``: nothing was read for it."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What one way of ending means for its cell, for its run and for runs that go on from it."""

    status: Status
    name: str
    """`Outcome.kind`, and the word in reports; when scored there is no kind."""
    meaning: str
    in_final: Status
    """Its status in a final run. A fault that is a failure there is recorded as `API_ERROR`."""
    again: bool = False
    """Whether its cell is called once more at the end of the same run; else nothing would be different."""
    stands: bool = True
    """Whether another test of the same run that takes the same cell gets its record, without a call."""
    billed: Billed = "yes"
    stops: bool = False
    """Whether every other call to the vendor would end the same way, so that none is started."""
    kept: bool = False
    """Whether a run that resumes this one takes the cell over without a call."""
    letter: str | None = None
    """In the terminal; None: a scored cell's is a digit of its accuracy, and a fault's is pytest's own."""

    @property
    def has_score(self) -> bool:
        return self.status != "fault"

    @property
    def word(self) -> str:
        """In the terminal, under ``-v``."""
        return self.name.upper()


def _failure(name: str, meaning: str, *, billed: Billed = "yes") -> Policy:
    """The model's: every question scores 0, and tokens that were told count (protocol section 5.6)."""
    return Policy("failure", name, meaning, in_final="failure", billed=billed, kept=True, letter="x")


def _path(name: str, meaning: str) -> Policy:
    """The path to the model failed: worth another try, but in a final run a call is made once."""
    return Policy("fault", name, meaning, in_final="failure", again=True, stands=False)


def _fault(
    name: str,
    meaning: str,
    *,
    again: bool = False,
    stands: bool = False,
    billed: Billed = "yes",
    stops: bool = False,
) -> Policy:
    """The account's or the run's, which says nothing about a model: no score in a final run either."""
    return Policy("fault", name, meaning, in_final="fault", again=again, stands=stands, billed=billed, stops=stops)


SCORED = Policy("scored", "scored", "an answer was scored", in_final="scored", kept=True)

TRUNCATED = _failure("truncated", "the reply ended at max_tokens")
REFUSED = _failure("refused", "the model or its host's filter declined to answer")
NO_ANSWER = _failure("no_answer", "the reply holds no answer object")
CONTEXT_EXCEEDED = _failure("context_exceeded", "the prompt is longer than the model takes", billed="maybe")
CACHE_LEAK = _failure("cache_leak", "tokens came from a cache or went into one, although none was asked for")
TURN_LIMIT = _failure("turn_limit", "all turns of the cell were used")
BUDGET_EXCEEDED = _failure("budget_exceeded", "all the money of the cell was used")
API_ERROR = _failure("api_error", "in a final run: the call ended without a usable reply", billed="maybe")

TRANSPORT = _path("transport", "no connection, or one that broke")
TIME_OUT = _path("time_out", "nothing came, or not all, within the call's time")
CUT_STREAM = _path("cut_stream", "the stream ended without its last event")
MALFORMED_STREAM = _path("malformed_stream", "an event of the stream cannot be read")
NOT_A_STREAM = _path("not_a_stream", "the host answered something else than an event stream")
STREAM_ERROR = _path("stream_error", "the vendor told of an error inside the stream")
REDIRECT = _path("redirect", "the host sent the call to an address that nobody named")
API_FAULT = _path("api_error", "the vendor answered with an error, retries included")

ENCODING = _fault("encoding", "the encoding gave no text of the workbook: nothing was sent", again=True)
OPENING = _fault("opening", "the suite could not put the task: nothing was sent", again=True)
WORLD = _fault("world", "what the suite's tools act on broke")
CHECK = _fault("check", "the reply is stored, and what scores it broke", stands=True)
QUOTA = _fault("quota", "the account has no credit left", again=True, billed="no")
AUTHENTICATION = _fault("authentication", "the key is missing or was refused", billed="no", stops=True)
SPEND_CAP = _fault("spend_cap", "the vendor's cap has no room for the call: nothing was sent")
WALL_CLOCK = _fault("wall_clock", "the run's time was over: nothing was sent")
INTERRUPTED = _fault("interrupted", "the run or its process ended while the call was under way", stands=True)

NOT_STARTED = _fault("refusal", "the call was not admitted: nothing was sent", billed="no")
"""Of every refusal: a plugin calls its own what it likes."""

OUTCOMES = (
    SCORED,
    TRUNCATED, REFUSED, NO_ANSWER, CONTEXT_EXCEEDED, CACHE_LEAK, TURN_LIMIT, BUDGET_EXCEEDED, API_ERROR,
    TRANSPORT, TIME_OUT, CUT_STREAM, MALFORMED_STREAM, NOT_A_STREAM, STREAM_ERROR, REDIRECT, API_FAULT,
    ENCODING, OPENING, WORLD, CHECK, QUOTA, AUTHENTICATION, SPEND_CAP, WALL_CLOCK, INTERRUPTED,
)  # fmt: skip

FAILURES = tuple(row.name for row in OUTCOMES if row.status == "failure")

_ROWS = {(row.status, row.name): row for row in OUTCOMES}


def policy(status: Status, kind: str | None) -> Policy:
    """The row of an outcome. A provider's own word for a fault means what a fault of the path means."""
    name = kind or status
    return _ROWS.get((status, name)) or (_path if status == "fault" else _failure)(name, "")

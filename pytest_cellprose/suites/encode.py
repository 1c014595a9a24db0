"""Encoding a workbook so that no encoding can take a run down with it.

An encoding that raises, returns something other than text, or takes too long is a fault of its own cells only.
To be killable it runs in a child process; where the platform cannot fork one, it runs here, without a limit.
"""

from __future__ import annotations

import multiprocessing
import warnings
from multiprocessing.connection import Connection

from pytest_cellprose.encodings.base import Encoding
from pytest_cellprose.encodings.markitdown import MARKITDOWN, can_fork
from pytest_cellprose.suites.base import OpeningFault
from pytest_cellprose.workbook.model import Workbook

LIMIT_SECONDS = 60.0


class EncodingFault(OpeningFault):
    """An encoding that gave no text; the message names it and says why, in one line."""

    kind = "encoding"


def encode_text(encoding: Encoding, workbook: Workbook, limit: float | None = LIMIT_SECONDS) -> str:
    """The workbook's text, in a child process that is killed after `limit` seconds (None: here, no limit).

    Raises `EncodingFault`.
    """
    if limit is None or not _can_fork(encoding):
        return _unwrapped(encoding, _outcome(encoding, workbook))
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_send_outcome, args=(sender, encoding, workbook), daemon=True)
    with warnings.catch_warnings():
        # Python warns of forking beside threads; the child only computes and is killed if it should hang.
        warnings.simplefilter("ignore", DeprecationWarning)
        child.start()
    sender.close()
    try:
        if not receiver.poll(limit):
            raise EncodingFault(f"encoding {encoding.name!r} took over {limit:g} s and was stopped")
        try:
            outcome = receiver.recv()
        except EOFError:
            child.join(1)
            raise EncodingFault(f"encoding {encoding.name!r} ended its process (exit code {child.exitcode})") from None
    finally:
        receiver.close()
        if child.is_alive():
            child.kill()
        child.join()
    return _unwrapped(encoding, outcome)


def _can_fork(encoding: Encoding) -> bool:
    if encoding is MARKITDOWN and not can_fork():
        return False
    return "fork" in multiprocessing.get_all_start_methods()


def _send_outcome(sender: Connection, encoding: Encoding, workbook: Workbook) -> None:
    sender.send(_outcome(encoding, workbook))
    sender.close()


def _outcome(encoding: Encoding, workbook: Workbook) -> tuple[str | None, str]:
    """``(None, text)`` or ``(what went wrong, the exception's own words)``; an author's code may raise anything."""
    try:
        text: object = encoding.encode(workbook)
    except Exception as error:
        reason = " ".join(str(error).split()) or "no message"
        return f"raised {type(error).__name__}", reason
    if not isinstance(text, str):
        return f"returned {type(text).__name__}, not text", ""
    return None, text


def _unwrapped(encoding: Encoding, outcome: tuple[str | None, str]) -> str:
    wrong, text = outcome
    if wrong is not None:
        raise EncodingFault(f"encoding {encoding.name!r} {wrong}", text)
    return text

"""Exact o200k_base token counts, without a network.

toktok-rs has the ranks built in. tiktoken, the reference, is asked only where its own copy of the ranks is at
hand: it would delete a damaged copy and download another.
"""

from __future__ import annotations

import hashlib
import os
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pytest_cellprose.record.record import CountedTokens

ENCODING = "o200k_base"

TIKTOKEN_RANKS_FILE = "fb374d419588a4632f3f557e76b4b70aebbca790"
"""The name of the ranks in tiktoken's cache: the SHA-1 of their address."""
TIKTOKEN_RANKS_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"


class RanksNotHere(LookupError):
    """tiktoken cannot count without going online; the message says what is missing."""


def count(text: str) -> int:
    """o200k_base tokens of a text; what looks like a special token is counted as the text it is."""
    from toktok import batch_count

    counted: list[int] = batch_count([_encodable(text)], ENCODING)
    return counted[0]


@cache
def counter_name() -> str:
    """Who counted, with its version: ``toktok-rs 0.3.0 o200k_base``."""
    return f"toktok-rs {version('toktok-rs')} {ENCODING}"


def count_tiktoken(text: str) -> int:
    """The same count by tiktoken. Raises `RanksNotHere` where that would need a download."""
    problem = _ranks_problem(os.environ.get("TIKTOKEN_CACHE_DIR", ""))
    if problem is not None:
        raise RanksNotHere(problem)
    import tiktoken

    return len(tiktoken.get_encoding(ENCODING).encode_ordinary(_encodable(text)))


def recorded_count(*texts: str) -> CountedTokens:
    """What is recorded beside an OpenAI call: by tiktoken where its ranks are at hand, else by toktok-rs."""
    try:
        n = sum(map(count_tiktoken, texts))
    except RanksNotHere:
        return CountedTokens(counter=counter_name(), n=sum(map(count, texts)))
    return CountedTokens(counter=f"tiktoken {version('tiktoken')} {ENCODING}", n=n)


@lru_cache(maxsize=8)
def _ranks_problem(folder: str) -> str | None:
    try:
        version("tiktoken")
    except PackageNotFoundError:
        return "tiktoken is not installed"
    if not folder:
        return f"TIKTOKEN_CACHE_DIR is not set: name the folder that holds {TIKTOKEN_RANKS_FILE}"
    ranks = Path(folder) / TIKTOKEN_RANKS_FILE
    try:
        digest = hashlib.sha256(ranks.read_bytes()).hexdigest()
    except OSError as error:
        return f"{ranks}: cannot be read: {error.strerror or error}"
    if digest != TIKTOKEN_RANKS_SHA256:
        return f"{ranks}: not the ranks of {ENCODING}: its SHA-256 is {digest}"
    return None


def _encodable(text: str) -> str:
    """Lone surrogates, which UTF-8 cannot hold, as U+FFFD, and halves of a pair joined: as tiktoken does."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text

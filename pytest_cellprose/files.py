"""Files written whole or not at all, and SHA-256 of JSON values and of files, by which requests and inputs differ."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any


def digest(value: Any) -> str:
    """SHA-256, hex, of the value as canonical JSON: sorted keys, no spaces, UTF-8."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def sha256_of(path: Path) -> str:
    """SHA-256, hex, of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def replace_bytes(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: a reader never sees half of it. On disk when this returns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def replace_text(path: Path, text: str) -> None:
    """The same for text, in UTF-8."""
    replace_bytes(path, text.encode("utf-8"))


def append_line(path: Path, line: bytes) -> None:
    """Add a line to a file, on disk when this returns. Raises OSError, and the file is then what it was before."""
    with path.open("ab+", buffering=0) as stream:
        end = stream.seek(0, os.SEEK_END)
        if end:
            stream.seek(end - 1)
            if stream.read(1) != b"\n":  # a process died while writing: keep its rest from spoiling this line
                line = b"\n" + line
        try:
            while line:
                line = line[stream.write(line) :]
            os.fsync(stream.fileno())
        except BaseException:
            stream.truncate(end)
            raise
    if not end:
        _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make a new file's name durable too, where a folder can be opened; its line is, and needs no second place."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

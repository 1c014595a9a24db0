"""Texts that are slow to make, kept between runs and shared by workers: encoded workbooks and facts about them.

An entry is a file named by the digest of its key that repeats the key and carries the digest of its text, so a
stale, foreign or half-written entry is never used: it is made again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pytest_cellprose.files import digest, replace_text


@dataclass(frozen=True)
class TextCache:
    """Texts under keys of strings; without a folder it remembers nothing."""

    folder: Path | None

    def get(self, *key: str) -> str | None:
        if self.folder is None:
            return None
        try:
            content = self._path(key).read_bytes().decode("utf-8")
            head, _, text = content.partition("\n")
            entry = json.loads(head)
        except (OSError, ValueError):
            return None
        if not isinstance(entry, dict) or entry.get("key") != list(key) or entry.get("sha256") != _sha256(text):
            return None
        return text

    def put(self, text: str, *key: str) -> None:
        """Keep a text; a folder that cannot be written to is no error, only slower."""
        if self.folder is None:
            return
        head = json.dumps({"key": list(key), "sha256": _sha256(text)})
        try:
            replace_text(self._path(key), f"{head}\n{text}")
        except (OSError, UnicodeEncodeError):
            return

    def get_or_make(self, make: Callable[[], str], *key: str) -> str:
        text = self.get(*key)
        if text is None:
            text = make()
            self.put(text, *key)
        return text

    def _path(self, key: tuple[str, ...]) -> Path:
        assert self.folder is not None
        return self.folder / digest(list(key))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

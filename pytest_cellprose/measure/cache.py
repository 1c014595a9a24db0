"""Texts that are slow to make, kept between runs and shared by workers: encoded workbooks and facts about them.

An entry is a file named by the digest of its key that repeats the key and carries the digest of its text, so a
stale, foreign or half-written entry is never used: it is made again.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from pytest_cellprose.encodings.base import Encoding
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


def encoding_key(encoding: Encoding, workbook_sha256: str) -> tuple[str, ...]:
    """An encoding's text of a workbook. The code's digest is in it, so that an author who edits his encoding
    without raising its version does not measure yesterday's text."""
    return ("text", workbook_sha256, encoding.name, encoding.version, code_digest(encoding))


@lru_cache(maxsize=64)
def code_digest(encoding: Encoding) -> str:
    """SHA-256 over the Python files that lie beside the encoding's function and over our own workbook reader."""
    package = Path(__file__).parent.parent
    folders = {package / "workbook", package / "encodings"}
    try:
        source = inspect.getsourcefile(inspect.unwrap(encoding.encode))
    except TypeError:  # a callable object has no source file of its own
        source = inspect.getsourcefile(type(encoding.encode))
    if source is not None:
        folders.add(Path(source).parent)
    return digest(sorted(_folder_digest(folder) for folder in folders))


def reader_digest() -> str:
    """SHA-256 over our own workbook reader."""
    return package_digest("workbook")


def package_digest(*folders: str) -> str:
    """SHA-256 over the Python files of these folders of the package."""
    package = Path(__file__).parent.parent
    return digest([_folder_digest(package / folder) for folder in folders])


@cache
def _folder_digest(folder: Path) -> str:
    files = sorted(folder.glob("*.py"))
    return digest([[file.name, hashlib.sha256(file.read_bytes()).hexdigest()] for file in files])


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

"""What tells one text of a workbook from another: digests of the code that a text comes from."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from pathlib import Path

from pytest_cellprose.encodings.base import Encoding
from pytest_cellprose.files import digest


def encoding_key(encoding: Encoding, workbook_sha256: str) -> tuple[str, ...]:
    """An encoding's text of a workbook. The code's digest is in it, so that an author who edits his encoding
    without raising its version does not measure yesterday's text."""
    return ("text", workbook_sha256, encoding.name, encoding.version, code_digest(encoding))


@lru_cache(maxsize=64)
def code_digest(encoding: Encoding) -> str:
    """SHA-256 over the Python files that lie beside the encoding's function and over our own workbook reader."""
    package = Path(__file__).parent.parent
    return functions_digest(encoding.encode, beside=(package / "workbook", package / "encodings"))


def functions_digest(*functions: Callable[..., object], beside: Iterable[Path] = ()) -> str:
    """SHA-256 over the Python files that lie beside functions, and in the folders `beside` them."""
    folders = set(beside)
    for function in functions:
        try:
            source = inspect.getsourcefile(inspect.unwrap(function))
        except TypeError:  # a callable object has no source file of its own
            source = inspect.getsourcefile(type(function))
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

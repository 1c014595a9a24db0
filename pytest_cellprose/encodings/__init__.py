"""The encodings under test, in the order in which reports and plans list them."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike

from pytest_cellprose.encodings.address_list import ADDRESS_LIST
from pytest_cellprose.encodings.base import Encoding
from pytest_cellprose.encodings.cellprose import CELLPROSE_LEAN_GFM, CELLPROSE_VALUES
from pytest_cellprose.encodings.csv import CSV
from pytest_cellprose.encodings.markdown import MARKDOWN
from pytest_cellprose.encodings.markitdown import MARKITDOWN
from pytest_cellprose.encodings.none import NONE
from pytest_cellprose.encodings.toon import TOON
from pytest_cellprose.workbook.model import Workbook

BUILTIN: tuple[Encoding, ...] = (
    CELLPROSE_LEAN_GFM,
    MARKITDOWN,
    CSV,
    MARKDOWN,
    TOON,
    NONE,
    CELLPROSE_VALUES,
    ADDRESS_LIST,
)


def builtin_encodings() -> tuple[Encoding, ...]:
    """The encodings that this package brings."""
    return BUILTIN


def find_encoding(name: str, known: Iterable[Encoding] = BUILTIN) -> Encoding:
    """The encoding of that name among `known`; raises `LookupError` listing the names there are."""
    encodings = tuple(known)
    for encoding in encodings:
        if encoding.name == name:
            return encoding
    raise LookupError(f"no encoding is named {name!r}: known are {', '.join(each.name for each in encodings)}")


def encode(source: str | PathLike[str] | Workbook, encoding: str = "cellprose_lean_gfm") -> str:
    """A workbook as text: the file at a path, or a `Workbook` that was read already.

    Raises `WorkbookError` for a file that cannot be read and `LookupError` for an encoding that is not built in.
    """
    chosen = find_encoding(encoding)
    workbook = source if isinstance(source, Workbook) else Workbook.read(source)
    return chosen.encode(workbook)

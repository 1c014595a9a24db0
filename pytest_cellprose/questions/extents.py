"""How far a workbook's worksheets reach: what addresses are clipped to."""

from __future__ import annotations

import json
from pathlib import Path

from pytest_cellprose.cache import TextCache
from pytest_cellprose.encodings.keys import reader_digest
from pytest_cellprose.workbook.model import Workbook
from pytest_cellprose.workbook.refs import Range


def workbook_extents(path: Path, sha256: str, cache: TextCache) -> dict[str, Range | None]:
    """Every worksheet's used extent, by name; None for an empty one. Raises `WorkbookError`."""

    def make() -> str:
        sheets = Workbook.read(path).worksheets
        return json.dumps([[sheet.name, sheet.extent] for sheet in sheets])

    text = cache.get_or_make(make, "extents", sha256, reader_digest())
    return {name: None if extent is None else Range(*extent) for name, extent in json.loads(text)}

"""The digests of what a run can send: question files, workbooks, encoded texts, split files (protocol 5.5).

A run that may cost money or be published has them all before its first call: its texts are made for the price
anyway. A development run is not kept waiting for them: at its end it puts down those that it made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pytest_cellprose.record.outcomes import ENCODING, OPENING
from pytest_cellprose.record.record import Record
from pytest_cellprose.store.manifest import EncodedTexts, Manifest
from pytest_cellprose.store.shards import own_cells
from pytest_cellprose.suites.base import OpeningFault

if TYPE_CHECKING:
    from pytest_cellprose.measure.engine import Engine

NO_TEXT = "gave no text: the run's records say why"


def sent_pairs(manifest: Manifest) -> list[tuple[str, str]]:
    """Workbook and encoding of every text that the run can send, in the plan's order."""
    cells = own_cells(manifest)
    return list(dict.fromkeys((cell.workbook, cell.encoding) for cell in cells if cell.encoding != "none"))


def text_sha256(text: str | bytes) -> str:
    """SHA-256 of a file's bytes, or of a text in UTF-8."""
    content = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return hashlib.sha256(content).hexdigest()


def made_now(engine: Engine) -> EncodedTexts:
    """Every text that the run can send, made if it must be."""
    texts = EncodedTexts()
    for workbook, encoding in sent_pairs(engine.spec.manifest):
        try:
            _note(texts, workbook, encoding, engine.text(workbook, encoding))
        except OpeningFault as fault:
            _note(texts, workbook, encoding, None, fault.told)
    return texts


def made_so_far(engine: Engine, records: Iterable[Record]) -> EncodedTexts:
    """The texts that are at hand, and those that the records say could not be made."""
    found = {pair: engine.known_text(*pair) for pair in sent_pairs(engine.spec.manifest)}
    faulted: set[tuple[str, str]] = set()
    if None in found.values():
        faults = (record.cell for record in records if record.outcome.policy in (ENCODING, OPENING))
        faulted = {(cell.workbook, cell.encoding) for cell in faults}
    texts = EncodedTexts()
    for pair, text in found.items():
        if text is not None or pair in faulted:
            _note(texts, *pair, text, NO_TEXT)
    return texts


def _note(texts: EncodedTexts, workbook: str, encoding: str, text: str | bytes | None, reason: str = "") -> None:
    texts.sha256.setdefault(workbook, {})[encoding] = None if text is None else text_sha256(text)
    if text is None:
        texts.reasons.setdefault(workbook, {})[encoding] = reason

"""Defined names as text: which of them a reader needs, and one of them written and read."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pytest_cellprose.workbook.displayed import display
from pytest_cellprose.workbook.formulas import tokens
from pytest_cellprose.workbook.model import DefinedName
from pytest_cellprose.workbook.refs import quote_sheet, split_sheet

_NAME = re.compile(r"((?:'(?:[^']|'')*'!)?[^'=]*)=(.*)", re.DOTALL)


def names_in_use(names: Iterable[DefinedName], formulas: Iterable[str]) -> list[DefinedName]:
    """The names that formulas use, and the names that those use in turn, in the order of the workbook.

    Never those that Excel keeps for itself (``_xlnm.…``, ECMA-376 part 1, 18.2.5), nor broken ones. A name that is
    scoped to a worksheet comes with its namesakes, because which of them is meant depends on the formula's place.
    """
    known: dict[str, list[DefinedName]] = {}
    for name in names:
        if not name.name.startswith("_xlnm.") and "#REF!" not in name.text:
            known.setdefault(name.name.casefold(), []).append(name)
    if not known:
        return []
    waiting = list(formulas)
    used: set[str] = set()
    while waiting:
        for token in tokens(waiting.pop()):
            word = token.text.casefold()
            if token.kind in ("name", "function") and word in known and word not in used:
                used.add(word)
                waiting += [name.text for name in known[word]]
    return [name for key, namesakes in known.items() if key in used for name in namesakes]


def name_text(name: DefinedName) -> str:
    """``TaxRate=Inputs!$B$2``, ``'My sheet'!Rate=…`` for a name of one worksheet."""
    scope = "" if name.sheet is None else f"{quote_sheet(name.sheet)}!"
    return f"{scope}{name.name}={display(name.text, own_table='')}"


def read_name(text: str) -> DefinedName | None:
    """The name that `name_text` wrote; None for any other text."""
    match = _NAME.fullmatch(text)
    if match is None:
        return None
    sheet, name = split_sheet(match[1])
    return DefinedName(name, match[2], sheet)

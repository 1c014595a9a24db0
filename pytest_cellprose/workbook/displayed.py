"""A formula's text as a reader sees it: without the prefixes and escapes that only files have."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pytest_cellprose.workbook.formulas import BRACKETED, FUTURE_PREFIX, Token, structured_reference, tokens

_LINE_BREAKS = re.compile(r"(?:[\r\n]|_x000[aAdD]_)+")
_PLAIN_COLUMN = re.compile(r"[^\W_]\w*")


def display(text: str, own_table: str | None = None) -> str:
    """The formula as Excel shows it rather than as the file stores it, on one line.

    The marks of later functions and of LET and LAMBDA parameters go (``_xlfn.``, ``_xlws.``, ``_xlpm.``,
    ``_xleta.``), ``_xlfn.ANCHORARRAY(A1)`` becomes ``A1#``, ``_xlfn.SINGLE(A1:A3)`` becomes ``@A1:A3``,
    ``T[[#This Row],[x]]`` becomes ``[@x]``. `own_table` is the table in which the formula stands: another table's
    name stays (``T[@x]``); None drops every name.
    """
    if "_xl" not in text and "[" not in text:
        return _LINE_BREAKS.sub(" ", text)
    found = list(tokens(text))
    shown = [_shown(token, own_table) for token in found]
    closing = _parentheses(found)
    for position, token in enumerate(found):
        function, opening = shown[position], position + 1
        if function not in _OPERATORS or token.kind != "function" or function == token.text or opening not in closing:
            continue
        bare = _is_bare(found, opening, closing)
        if bare:
            shown[opening] = ""
            shown[closing[opening]] = "#" if function == "ANCHORARRAY" else ""
        if bare or function == "SINGLE":
            shown[position] = "@" if function == "SINGLE" else ""
    return _LINE_BREAKS.sub(" ", "".join(shown))


_OPERATORS = ("ANCHORARRAY", "SINGLE")
"""Functions in files that are the operators ``#`` and ``@`` to the user ([MS-XLSX] §2.2.2)."""


def _shown(token: Token, own_table: str | None) -> str:
    if token.kind in ("function", "name"):
        return token.sheet + FUTURE_PREFIX.sub("", token.text)
    if token.kind == "structured":
        return token.sheet + _this_row_short(token.text, own_table)
    return token.sheet + token.text


def _parentheses(found: Sequence[Token]) -> dict[int, int]:
    """Where each parenthesis that is opened is closed."""
    pairs: dict[int, int] = {}
    waiting: list[int] = []
    for position, token in enumerate(found):
        if token.text == "(":
            waiting.append(position)
        elif token.text == ")" and waiting:
            pairs[waiting.pop()] = position
    return pairs


def _is_bare(found: Sequence[Token], opening: int, closing: dict[int, int]) -> bool:
    """Whether one reference, name or call stands in these parentheses, which are not needed then."""
    first, last = opening + 1, closing[opening] - 1
    if found[first].kind == "function":
        return closing.get(first + 1) == last
    return first == last and found[first].kind in ("reference", "name", "structured")


def _this_row_short(text: str, own_table: str | None) -> str:
    part = structured_reference(text)
    if "#this row" not in part.items or len(part.items) > 1 or "[@" in text:
        return text
    table = part.table if own_table is not None and part.table.casefold() != own_table.casefold() else ""
    _, _, inner = text.partition("[")
    columns = BRACKETED.findall(inner)[1:] if inner.startswith("[") else []
    if not columns:
        return f"{table}[@]"
    if len(columns) == 1 and _PLAIN_COLUMN.fullmatch(columns[0]):
        return f"{table}[@{columns[0]}]"
    return f"{table}[@" + ":".join(f"[{column}]" for column in columns) + "]"

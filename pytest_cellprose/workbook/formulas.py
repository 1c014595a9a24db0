"""Formula text: one scanner, and what is built on it.

Texts are as a file stores them in ``<f>``: A1 notation, English function names, without the leading ``=``.
The lexical rules are those of ECMA-376 part 1, §18.17.2, and for what came later ([MS-XLSX] §2.2.2) of Excel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from pytest_cellprose.workbook.refs import MAX_COLUMN, MAX_ROW, Range, column_letters, column_number

# What may follow the first character of a name. Everything beyond ASCII counts: Excel allows it in names, and
# taking part of a name for a cell would be worse than taking a stray character for part of a name.
_WORD = r"[\w.\\?\x80-\U0010ffff]"
_COLUMN = r"\$?(?:[A-Wa-w][A-Za-z]{2}|[Xx](?:[A-Ea-e][A-Za-z]|[Ff][A-Da-d])|[A-Za-z]{1,2})"  # up to XFD
_ROW = (  # up to 1048576
    r"\$?(?:10485(?:7[0-6]|[0-6][0-9])|1048[0-4][0-9]{2}|104[0-7][0-9]{3}|10[0-3][0-9]{4}|[1-9][0-9]{0,5})(?![0-9])"
)
_END = rf"(?!{_WORD}|[(!])"
_CELL = rf"{_COLUMN}{_ROW}"
_REFERENCE = rf"(?:{_CELL}(?::{_CELL})?+|{_COLUMN}:{_COLUMN}|{_ROW}:{_ROW}){_END}|{_CELL}{_END}"
_ERROR = (
    r"\#(?:NULL!|DIV/0!|VALUE!|REF!|NAME\?|NUM!|N/A|GETTING_DATA|SPILL!|CALC!|CONNECT!|BLOCKED!|UNKNOWN!|FIELD!"
    r"|BUSY!|PYTHON!|EXTERNAL!|TIMEOUT!)"
)
_BOOK = r"\[[^\[\]]*\]"
# A worksheet's name before `!`: quoted, bare, a 3-D span, of another workbook, or of a deleted worksheet.
_SHEET = rf"(?:'(?:[^']++|'')*+'|(?:{_BOOK})?(?!{_CELL}:){_WORD}++(?::{_WORD}++)?|{_BOOK}|\#REF)!"
_BRACKETS = r"\[(?:[^\[\]']++|'.|\[(?:[^\[\]']++|'.)*+\])*+\]"
_NAME = rf"(?:[^\W\d]|[\\\x80-\U0010ffff]){_WORD}*+"

_TOKEN = re.compile(
    rf"""(?P<string>"(?:[^"]++|"")*+"?)
    |(?P<sheet>{_SHEET})?(?:
        (?P<reference>{_REFERENCE})
       |(?P<structured>(?:{_NAME})?{_BRACKETS})
       |(?P<error>{_ERROR})
       |(?P<function>{_NAME}(?=\())
       |(?P<name>{_NAME})
     )
    |(?P<number>(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[Ee][+-]?[0-9]++)?)
    |(?P<space>\s++)
    |(?P<operator><>|<=|>=|.)""",
    re.VERBOSE | re.DOTALL,
)

TokenKind: TypeAlias = Literal[
    "string", "reference", "structured", "error", "function", "name", "number", "space", "operator"
]


class Token(NamedTuple):
    """A piece of a formula; joining ``sheet + text`` of all tokens gives the formula back."""

    kind: TokenKind
    text: str
    """Without the worksheet: ``A1:B2``, ``SUM`` (the parenthesis is an operator of its own), ``"text"``."""
    sheet: str = ""
    """The worksheet before it as written, with the ``!``: ``'My sheet'!``."""


def tokens(text: str) -> Iterator[Token]:
    """Split a formula; never fails, what is no formula comes out as names and operators."""
    for match in _TOKEN.finditer(text):
        kind: TokenKind = match.lastgroup  # type: ignore[assignment]
        yield Token(kind, match[kind], match["sheet"] or "")


class _Corner(NamedTuple):
    """One end of a reference; a whole column has no row, a whole row no column."""

    column: int | None
    column_fixed: bool
    row: int | None
    row_fixed: bool


_CORNER = re.compile(r"(?:(\$?)([A-Za-z]{1,3}))?(?:(\$?)([0-9]+))?")


def _corner(text: str) -> _Corner:
    match = _CORNER.fullmatch(text)
    assert match is not None, text
    column_mark, letters, row_mark, digits = match.groups()
    return _Corner(
        column_number(letters) if letters else None,
        column_mark == "$",
        int(digits) if digits else None,
        row_mark == "$",
    )


@lru_cache(maxsize=4096)
def _pieces(text: str) -> tuple[str | tuple[_Corner, ...], ...]:
    """The formula cut at its references: opaque text and the corners of each reference in turn."""
    pieces: list[str | tuple[_Corner, ...]] = []
    start = 0
    for match in _TOKEN.finditer(text):
        if match.lastgroup == "reference":
            first, last = match.span("reference")
            pieces.append(text[start:first])
            pieces.append(tuple(_corner(part) for part in text[first:last].split(":")))
            start = last
    pieces.append(text[start:])
    return tuple(pieces)


def translate(text: str, rows: int, columns: int, *, wrap: bool = False) -> str:
    """The formula as filling it `rows` down and `columns` to the right makes it (either may be negative).

    Relative parts move, ``$`` parts stay; a reference that would leave the worksheet becomes ``#REF!``, or
    comes back in on the other side with `wrap`, as in defined names. Corners keep their order, as in R1C1
    notation.
    """
    if not rows and not columns:
        return text
    return "".join(piece if isinstance(piece, str) else _moved(piece, rows, columns, wrap) for piece in _pieces(text))


def _moved(corners: tuple[_Corner, ...], rows: int, columns: int, wrap: bool) -> str:
    texts = []
    for column, column_fixed, row, row_fixed in corners:
        text = ""
        if column is not None:
            to = column if column_fixed else column + columns
            if wrap:
                to = (to - 1) % MAX_COLUMN + 1
            elif not 1 <= to <= MAX_COLUMN:
                return "#REF!"
            text = ("$" if column_fixed else "") + column_letters(to)
        if row is not None:
            to = row if row_fixed else row + rows
            if wrap:
                to = (to - 1) % MAX_ROW + 1
            elif not 1 <= to <= MAX_ROW:
                return "#REF!"
            text += f"${to}" if row_fixed else str(to)
        texts.append(text)
    return ":".join(texts)


class Room(NamedTuple):
    """How far a formula can be filled before one of its references leaves the worksheet; both ends included."""

    up: int = 1 - MAX_ROW
    """Zero or negative."""
    down: int = MAX_ROW - 1
    left: int = 1 - MAX_COLUMN
    right: int = MAX_COLUMN - 1

    def holds(self, rows: int, columns: int) -> bool:
        return self.up <= rows <= self.down and self.left <= columns <= self.right


def room(text: str) -> Room:
    """How far `translate` moves the formula without a ``#REF!``."""
    corners = [corner for piece in _pieces(text) if not isinstance(piece, str) for corner in piece]
    rows = [corner.row for corner in corners if corner.row is not None and not corner.row_fixed]
    columns = [corner.column for corner in corners if corner.column is not None and not corner.column_fixed]
    whole = Room()
    return Room(
        1 - min(rows) if rows else whole.up,
        MAX_ROW - max(rows) if rows else whole.down,
        1 - min(columns) if columns else whole.left,
        MAX_COLUMN - max(columns) if columns else whole.right,
    )


def pattern(text: str, row: int, column: int) -> str:
    """A key that two formulas share iff filling the one to the other's cell gives the other.

    `row` and `column` are where the formula stands. Every relative part of a reference counts as its offset
    from there (R1C1 equivalence); everything else counts as written.
    """
    # NUL cannot occur in XML, so no formula text can look like a reference's key.
    return "".join(
        piece if isinstance(piece, str) else "\0" + ":".join(_offsets(corner, row, column) for corner in piece)
        for piece in _pieces(text)
    )


def _offsets(corner: _Corner, row: int, column: int) -> str:
    key = ""
    if corner.row is not None:
        key = f"R{corner.row}" if corner.row_fixed else f"R[{corner.row - row}]"
    if corner.column is not None:
        key += f"C{corner.column}" if corner.column_fixed else f"C[{corner.column - column}]"
    return key


BRACKETED = re.compile(r"\[((?:[^\[\]']++|'.)*+)\]", re.DOTALL)


FUTURE_PREFIX = re.compile(r"(?:_xl(?:fn|ws|pm|eta)\.)+", re.IGNORECASE)


class StructuredReference(NamedTuple):
    """``Table[[#Headers],[a]:[b]]``, taken apart (ECMA-376 part 1, §18.5.1; [MS-XLSX] §2.2.2.1)."""

    table: str
    """Empty: the table in which the formula stands."""
    items: frozenset[str]
    """Of ``#all #data #headers #totals #this row``; empty means ``#data``."""
    columns: tuple[str, ...]
    """None, one, or the first and last column; escapes undone."""


def structured_reference(text: str) -> StructuredReference:
    """Take a structured reference apart: ``[@x]``, ``T[x]``, ``T[[#All],[a b]:[c]]``, ``T[]``, …"""
    table, _, inner = text.partition("[")
    inner = inner.removesuffix("]")
    items: set[str] = set()
    if inner.startswith("@"):
        items.add("#this row")
        inner = inner[1:]
    parts = BRACKETED.findall(inner) if inner.startswith("[") else [inner.strip()] if inner.strip() else []
    columns = []
    for part in parts:
        if part.startswith("#"):
            items.add(part.casefold())
        else:
            columns.append(re.sub(r"'(.)", r"\1", part, flags=re.DOTALL))
    return StructuredReference(table, frozenset(items), tuple(columns[:1] + columns[1:][-1:]))


class Reference(NamedTuple):
    """Something a formula refers to, as far as its text tells; `graph.py` resolves it."""

    kind: Literal["range", "name", "structured", "intersection"]
    text: str
    """As written, without worksheet."""
    range: Range | None = None
    """For a range; not clipped."""
    sheet: str | None = None
    """The worksheet named before it, unquoted; None: where the formula stands."""
    last_sheet: str | None = None
    """The other end of a 3-D reference."""
    book: str | None = None
    """The external workbook, ``1`` for ``[1]Sheet!A1``; None: this one."""
    spill: bool = False
    """``A1#``: all cells that the array formula of A1 fills."""
    parts: tuple[Reference, ...] = ()
    """What an intersection intersects."""


_DYNAMIC = frozenset({"OFFSET", "INDIRECT"})
_NOT_NAMES = frozenset({"TRUE", "FALSE"})


def references(text: str) -> list[Reference]:
    """What the formula refers to, in the order of the text; a union is its members.

    A range whose end is computed (``A1:INDEX(…)``) gives its constant end, and `is_dynamic` says so.
    """
    return list(_analysed(text)[0])


def is_dynamic(text: str) -> bool:
    """Whether what the formula refers to is known only by calculating it.

    So it is with ``OFFSET``, ``INDIRECT`` and the range operator beside anything but a constant reference.
    ``INDEX`` alone is not: all that it can give is in its first argument.
    """
    return _analysed(text)[1]


@lru_cache(maxsize=4096)
def _analysed(text: str) -> tuple[tuple[Reference, ...], bool]:
    found: list[Reference] = []
    dynamic = False
    after_reference = after_space = after_colon = anchored = False
    for token in tokens(text):
        if token.kind == "space":
            after_space = True
            continue
        reference = _reference(token)
        if reference is not None:
            if anchored:
                reference = reference._replace(spill=True)
            if after_colon:
                joined = _spanned(found[-1], reference) if after_reference else None
                if joined is None:
                    dynamic = True
                    found.append(reference)
                else:
                    found[-1] = joined
            elif after_reference and after_space:
                parts = found[-1].parts if found[-1].kind == "intersection" else (found[-1],)
                found[-1] = Reference("intersection", f"{found[-1].text} {token.text}", parts=(*parts, reference))
            else:
                found.append(reference)
            after_reference, after_colon = True, False
        elif token.kind == "operator" and token.text == ":":
            after_colon = True
        elif token.kind == "operator" and token.text == "#" and after_reference and not after_colon:
            found[-1] = found[-1]._replace(spill=True)
        else:
            dynamic = dynamic or after_colon
            after_reference = after_colon = False
            if token.kind == "function":
                function = FUTURE_PREFIX.sub("", token.text).upper()
                dynamic = dynamic or function in _DYNAMIC
                anchored = function == "ANCHORARRAY"
                after_space = False
                continue
        if token.text != "(":
            anchored = False
        after_space = False
    return tuple(found), dynamic


def _reference(token: Token) -> Reference | None:
    if token.kind == "name":
        if token.text.upper() in _NOT_NAMES or FUTURE_PREFIX.match(token.text):
            return None
        kind: Literal["range", "name", "structured"] = "name"
    elif token.kind == "structured":
        kind = "structured"
    elif token.kind == "reference" and token.sheet != "#REF!":
        kind = "range"
    else:
        return None
    book, sheet, last_sheet = _sheet_parts(token.sheet)
    return Reference(kind, token.text, Range.parse(token.text) if kind == "range" else None, sheet, last_sheet, book)


def _sheet_parts(prefix: str) -> tuple[str | None, str | None, str | None]:
    """External book, worksheet, last worksheet of a 3-D reference, from ``'[1]My sheet:Other'!``."""
    if not prefix:
        return None, None, None
    name = prefix.removesuffix("!")
    if name.startswith("'"):
        name = name[1:-1].replace("''", "'")
    book: str | None = None
    if "]" in name:
        path, _, name = name.rpartition("]")
        book = path.rpartition("[")[2]
        if book == "0":  # how a file names the workbook itself
            book = None
    first, colon, last = name.partition(":")
    return book, first or None, last if colon else None


def _spanned(left: Reference, right: Reference) -> Reference | None:
    """``Sheet1!A1:Sheet1!B2`` and ``A1:B2:C3``: the rectangle around both."""
    if left.range is None or right.range is None or left.spill or right.spill:
        return None
    if right.sheet is not None and (right.sheet, right.book) != (left.sheet, left.book):
        return None
    a, b = left.range, right.range
    area = Range(min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3]))
    return left._replace(range=area, text=f"{left.text}:{right.text}")

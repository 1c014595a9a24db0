"""What is attached to a worksheet in parts of its own: tables and comments (ECMA-376 part 1, §18.5 and §18.7)."""

from __future__ import annotations

from collections.abc import Iterable
from xml.parsers import expat

from pytest_cellprose.workbook.model import Comment, Table
from pytest_cellprose.workbook.package import Attributes, Package, integer, main_names, unescape
from pytest_cellprose.workbook.refs import AddressError, Range

_TABLE = main_names("table", "tableColumn")
_COMMENT = main_names("comment", "t", "rPh")
_THREADED = "http://schemas.microsoft.com/office/spreadsheetml/2018/threadedcomments"  # [MS-XLSX] §2.6.207


def read_table(package: Package, part: str) -> Table | None:
    """One table; None if it says of no cells that they are its own."""
    found: Attributes = {}
    columns: list[str] = []

    def start(name: str, attributes: Attributes) -> None:
        kind = _TABLE.get(name)
        if kind == "table":
            found.update(attributes)
        elif kind == "tableColumn":
            columns.append(unescape(attributes.get("name", "")))

    def attach(parser: expat.XMLParserType) -> None:
        parser.StartElementHandler = start

    package.parse(part, attach)
    try:
        area = Range.parse(found.get("ref", ""))
    except AddressError:
        return None
    return Table(
        name=unescape(found.get("displayName") or found.get("name", "")),
        ref=area,
        columns=tuple(columns),
        header_rows=integer(found, "headerRowCount", 1),
        totals_rows=integer(found, "totalsRowCount", 0),
    )


def read_comments(package: Package, notes: Iterable[str], threads: Iterable[str]) -> tuple[Comment, ...]:
    """The comments of a worksheet, row-major, from its parts of notes and of threaded comments.

    A threaded comment is stored twice, once as a note that begins with an explanation for older programs: the
    thread's own texts, one a line, are what counts.
    """
    texts: dict[tuple[int, int], str] = {}
    for part in notes:
        for place, text in _notes(package, part):
            texts.setdefault(place, _without_explanation(text))
    conversations: dict[tuple[int, int], list[str]] = {}
    for part in threads:
        for place, text in _threaded(package, part):
            conversations.setdefault(place, []).append(text)
    texts.update({place: "\n".join(lines) for place, lines in conversations.items()})
    return tuple(Comment(row, column, texts[row, column]) for row, column in sorted(texts))


def _notes(package: Package, part: str) -> list[tuple[tuple[int, int], str]]:
    found: list[tuple[tuple[int, int], str]] = []
    place: tuple[int, int] | None = None
    runs: list[str] = []
    pieces: list[str] = []
    in_phonetic = False

    def start(name: str, attributes: Attributes) -> None:
        nonlocal place, in_phonetic
        kind = _COMMENT.get(name)
        if kind == "comment":
            place = _place(attributes)
            runs.clear()
        elif kind == "t":
            pieces.clear()
        elif kind == "rPh":
            in_phonetic = True

    def end(name: str) -> None:
        nonlocal in_phonetic
        kind = _COMMENT.get(name)
        if kind == "t":
            if not in_phonetic:
                runs.append("".join(pieces))
        elif kind == "rPh":
            in_phonetic = False
        elif kind == "comment" and place is not None:
            found.append((place, unescape("".join(runs))))

    def attach(parser: expat.XMLParserType) -> None:
        parser.StartElementHandler = start
        parser.EndElementHandler = end
        parser.CharacterDataHandler = pieces.append

    package.parse(part, attach)
    return found


def _threaded(package: Package, part: str) -> list[tuple[tuple[int, int], str]]:
    """Comments and replies in the order of their times."""
    found: list[tuple[str, tuple[int, int], str]] = []
    current: Attributes = {}
    pieces: list[str] = []

    def start(name: str, attributes: Attributes) -> None:
        nonlocal current
        if name == f"{_THREADED} threadedComment":
            current = attributes
        elif name == f"{_THREADED} text":
            pieces.clear()

    def end(name: str) -> None:
        if name == f"{_THREADED} text":
            place = _place(current)
            if place is not None:
                found.append((current.get("dT", ""), place, "".join(pieces)))

    def attach(parser: expat.XMLParserType) -> None:
        parser.StartElementHandler = start
        parser.EndElementHandler = end
        parser.CharacterDataHandler = pieces.append

    package.parse(part, attach)
    return [(place, text) for _, place, text in sorted(found, key=lambda each: each[0])]


def _place(attributes: Attributes) -> tuple[int, int] | None:
    try:
        return Range.parse(attributes.get("ref", ""))[:2]
    except AddressError:
        return None


def _without_explanation(text: str) -> str:
    """The comment in a note made for programs that know no threads, when the thread itself is not there."""
    if text.startswith("[Threaded comment]"):
        _, found, comment = text.partition("Comment:")
        return comment.strip() if found else text
    return text

"""An ``.xlsx`` file into a `Workbook`, in one pass over its parts: values and formulas together.

On `zipfile` and `expat`, because that is several times faster than any library that gives formulas as well,
and forgives what Excel forgives. Section numbers are those of ECMA-376 part 1.
"""

from __future__ import annotations

import gc
import hashlib
import posixpath
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple, cast
from urllib.parse import unquote
from xml.parsers import expat

from pytest_cellprose.workbook.annotations import read_comments, read_table
from pytest_cellprose.workbook.model import DefinedName, SheetKind, Workbook, WorkbookError, Worksheet
from pytest_cellprose.workbook.package import (
    MAX_INFLATED,
    Attributes,
    Package,
    PackageError,
    Relationship,
    boolean,
    integer,
    main_names,
    relationship_id,
    unescape,
)
from pytest_cellprose.workbook.rich_values import RichValues
from pytest_cellprose.workbook.sheet_xml import CellTypes, read_sheet
from pytest_cellprose.workbook.styles import read_number_formats

SHEET_KINDS: Mapping[str, SheetKind] = {
    "worksheet": "worksheet",
    "chartsheet": "chartsheet",
    "dialogsheet": "dialogsheet",
    "xlMacrosheet": "macrosheet",
    "xlIntlMacrosheet": "macrosheet",
}
"""By kind of relationship."""


def read_workbook(source: str | PathLike[str] | bytes | BinaryIO) -> Workbook:
    """Read an ``.xlsx`` or ``.xlsm`` from a path, its bytes or an open binary file.

    Raises `WorkbookError`, whose one line names the file, the reason and what to do, for whatever is no
    readable workbook: missing, empty, encrypted, ``.xls`` or ``.xlsb``, no zip, broken XML, a zip bomb, a
    document type declaration.
    """
    name, data = _load(source)
    kept = Path(source) if isinstance(source, (str, PathLike)) else data
    with _no_garbage_collection():
        try:
            workbook = _read(Package(data))
        except PackageError as problem:
            raise WorkbookError(str(problem), name) from None
    workbook.source = kept
    workbook.sha256 = hashlib.sha256(data).hexdigest()
    return workbook


def _load(source: str | PathLike[str] | bytes | BinaryIO) -> tuple[str, bytes]:
    """The file's name for messages, and its bytes."""
    if isinstance(source, (str, PathLike)):
        path = Path(source)
        name = path.name or str(path)
        try:
            if path.stat().st_size > MAX_INFLATED:
                raise WorkbookError(f"larger than {MAX_INFLATED // 2**20} MiB; split it", name)
            data = path.read_bytes()
        except FileNotFoundError:
            raise WorkbookError(f"no such file; check the path {path}", name) from None
        except IsADirectoryError:
            raise WorkbookError("a folder; name the workbooks in it", name) from None
        except (OSError, ValueError) as problem:
            reason = getattr(problem, "strerror", None) or problem
            raise WorkbookError(f"cannot be read ({reason}); check its permissions", name) from None
    elif isinstance(source, bytes):
        name, data = "workbook", source
    else:
        name, data = posixpath.basename(str(getattr(source, "name", "workbook"))), source.read()
    if not data:
        raise WorkbookError("empty, 0 bytes; get the file again", name)
    return name, data


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """A pause of the cycle collector: no cell is part of a cycle, and looking for them costs a third of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Sheet(NamedTuple):
    name: str
    state: Literal["visible", "hidden", "veryHidden"]
    relationship: str


class _Outline(NamedTuple):
    """What the workbook part says."""

    sheets: list[_Sheet]
    names: list[tuple[Attributes, str]]
    external: list[str]
    date1904: bool


def _read(package: Package) -> Workbook:
    part = workbook_part(package)
    related = package.relationships(part)
    by_kind = {relationship.kind: relationship.target for relationship in related.values()}
    outline = _read_outline(package, part)
    if not outline.sheets:
        raise PackageError("its workbook part lists no worksheets")
    if not any(_has_part(package, related.get(sheet.relationship)) for sheet in outline.sheets):
        names = ", ".join(repr(sheet.name) for sheet in outline.sheets)
        raise PackageError(f"none of its worksheets has a part in the file: {names}")
    strings, styles = by_kind.get("sharedStrings", ""), by_kind.get("styles", "")
    types = CellTypes(
        _read_shared_strings(package, strings) if strings in package else [],
        read_number_formats(package, styles) if styles in package else [],
        outline.date1904,
        RichValues(package, by_kind).value,
    )
    sheet_names = [sheet.name for sheet in outline.sheets]
    return Workbook(
        worksheets=tuple(
            _read_worksheet(package, sheet, related.get(sheet.relationship), types) for sheet in outline.sheets
        ),
        defined_names=tuple(_defined_name(attributes, text, sheet_names) for attributes, text in outline.names),
        external_links=tuple(_external_book(package, related.get(key)) for key in outline.external),
        date1904=outline.date1904,
    )


def _has_part(package: Package, relationship: Relationship | None) -> bool:
    return relationship is not None and not relationship.external and relationship.target in package


def workbook_part(package: Package) -> str:
    """The part that the package calls its document (§12.2); the usual place when it does not say."""
    part = "xl/workbook.xml"
    for relationship in package.relationships("").values():
        if relationship.kind == "officeDocument" and not relationship.external:
            part = relationship.target
            break
    if part not in package or not part.endswith(".xml") or part in ("word/document.xml", "ppt/presentation.xml"):
        raise package.no_workbook()
    return part


_OUTLINE = main_names("workbookPr", "sheet", "definedName", "externalReference")


def _read_outline(package: Package, part: str) -> _Outline:
    """``xl/workbook.xml`` (§18.2)."""
    sheets: list[_Sheet] = []
    names: list[tuple[Attributes, str]] = []
    external: list[str] = []
    date1904 = False
    pieces: list[str] = []

    def start(name: str, attributes: Attributes) -> None:
        nonlocal date1904
        kind = _OUTLINE.get(name)
        if kind == "sheet":
            state = attributes.get("state", "visible")
            sheets.append(
                _Sheet(
                    unescape(attributes.get("name", "")),
                    cast(Literal["hidden", "veryHidden"], state) if state in ("hidden", "veryHidden") else "visible",
                    relationship_id(attributes) or "",
                )
            )
        elif kind == "definedName":
            names.append((attributes, ""))
            pieces.clear()
        elif kind == "externalReference":
            external.append(relationship_id(attributes) or "")
        elif kind == "workbookPr":
            date1904 = boolean(attributes, "date1904")

    def end(name: str) -> None:
        if _OUTLINE.get(name) == "definedName":
            names[-1] = (names[-1][0], "".join(pieces))

    def attach(parser: expat.XMLParserType) -> None:
        parser.StartElementHandler = start
        parser.EndElementHandler = end
        parser.CharacterDataHandler = pieces.append

    package.parse(part, attach)
    return _Outline(sheets, names, external, date1904)


def _defined_name(attributes: Attributes, text: str, sheet_names: list[str]) -> DefinedName:
    """§18.2.5; a scope that is no worksheet is taken for the whole workbook."""
    index = integer(attributes, "localSheetId", -1)
    return DefinedName(
        name=attributes.get("name", ""),
        text=text.strip().removeprefix("="),
        sheet=sheet_names[index] if 0 <= index < len(sheet_names) else None,
        hidden=boolean(attributes, "hidden"),
    )


def _external_book(package: Package, relationship: Relationship | None) -> str:
    """The file name of an external link (§18.14); empty for a link to something else, which keeps its number."""
    if relationship is None:
        return ""
    for book in package.relationships(relationship.target).values():
        if book.external and book.kind.startswith("externalLink"):
            return unquote(book.target).replace("\\", "/").rpartition("/")[2]
    return ""


_STRINGS = main_names("si", "t", "rPh")


def _read_shared_strings(package: Package, part: str) -> list[str]:
    """``xl/sharedStrings.xml`` (§18.4): rich text without its formats, phonetic runs left out."""
    strings: list[str] = []
    runs: list[str] = []
    pieces: list[str] = []
    clear = pieces.clear
    in_phonetic = False

    def start(name: str, attributes: Attributes) -> None:
        nonlocal in_phonetic
        kind = _STRINGS.get(name)
        if kind == "t":
            clear()
        elif kind == "si":
            runs.clear()
        elif kind == "rPh":
            in_phonetic = True

    def end(name: str) -> None:
        nonlocal in_phonetic
        kind = _STRINGS.get(name)
        if kind == "t":
            if not in_phonetic:
                runs.append("".join(pieces))
        elif kind == "si":
            strings.append(unescape("".join(runs)))
        elif kind == "rPh":
            in_phonetic = False

    def attach(parser: expat.XMLParserType) -> None:
        parser.StartElementHandler = start
        parser.EndElementHandler = end
        parser.CharacterDataHandler = pieces.append

    package.parse(part, attach)
    return strings


def _read_worksheet(package: Package, sheet: _Sheet, relationship: Relationship | None, types: CellTypes) -> Worksheet:
    worksheet = Worksheet(sheet.name, sheet.state)
    if relationship is None or not _has_part(package, relationship):
        worksheet.kind = "missing" if sheet.relationship else "module"
        return worksheet
    worksheet.kind = SHEET_KINDS.get(relationship.kind, "worksheet")
    if worksheet.kind in ("chartsheet", "dialogsheet"):
        return worksheet
    content = read_sheet(package, relationship.target, types)
    related = package.relationships(relationship.target).values()
    worksheet.rows = content.rows
    worksheet.merged = tuple(content.merged)
    worksheet.hidden_rows = tuple(content.hidden_rows)
    worksheet.hidden_columns = tuple(content.hidden_columns)
    worksheet.data_validations = tuple(content.data_validations)
    worksheet.pictures = tuple(content.pictures)

    def targets(kind: str) -> list[str]:
        return [each.target for each in related if each.kind == kind and each.target in package]

    worksheet.comments = read_comments(package, targets("comments"), targets("threadedComment"))
    tables = [read_table(package, part) for part in targets("table")]
    worksheet.tables = tuple(table for table in tables if table is not None)
    return worksheet

"""The parts of an Office Open XML package: a zip of XML files that refer to each other (ECMA-376 part 2).

Lenient where Excel is (part names in any case and with backslashes), strict where safety asks for it: what a
package may inflate to is bounded, and document type declarations, and with them entities, are refused.
"""

from __future__ import annotations

import contextlib
import io
import posixpath
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import unquote
from xml.parsers import expat

from pytest_cellprose.workbook import foreign

MAX_INFLATED = 512 * 2**20
"""Bytes of XML that one workbook may inflate to. A million cells take about 50 MB."""
MAX_RATIO = 250
"""How many times its compressed size a part may inflate to; repetitive worksheets of real files reach 120."""
SMALL_PART = 8 * 2**20
"""Up to here no ratio is looked at: an empty worksheet compresses beyond any bound, and harms nobody."""
_CHUNK = 2**16
_LOCAL_HEADER = 30
"""Bytes before the name in an entry's own header (APPNOTE 4.3.7)."""
_UTF8_NAME = 0x800

_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,  # encrypted entries
    ValueError,  # damaged offsets, names and sizes
    LookupError,  # an encoding of XML that nobody knows
    MemoryError,  # a size that is none
)
"""What `zipfile` and `expat` raise on damaged files."""

MAIN = (
    "http://schemas.openxmlformats.org/spreadsheetml/2006/main",
    "http://purl.oclc.org/ooxml/spreadsheetml/main",
    "",
)
"""The namespaces of a workbook's own elements: transitional, strict, and none at all."""
_RELATIONSHIP_ID = (
    "http://schemas.openxmlformats.org/officeDocument/2006/relationships id",
    "http://purl.oclc.org/ooxml/officeDocument/relationships id",
)

Attributes = dict[str, str]


class PackageError(Exception):
    """Why a file is no workbook, and what its owner can do; `read_workbook` adds the file's name."""

    def __init__(self, reason: str, advice: str = "open it in a spreadsheet program and save it again as .xlsx"):
        super().__init__(f"{reason}; {advice}")


class Relationship(NamedTuple):
    kind: str
    """The last step of the relationship's type: ``worksheet``, ``comments``, …"""
    target: str
    """The part's name in the package, or an external address as written."""
    external: bool


def main_names(*names: str) -> dict[str, str]:
    """Expat's names of these elements of the main namespaces -> the local name; other namespaces are absent.

    An extension's element of the same local name (``x15:workbookPr``) is thus never taken for the real one.
    """
    return {f"{uri} {name}".lstrip(): name for uri in MAIN for name in names}


def relationship_id(attributes: Attributes) -> str | None:
    """The value of ``r:id``."""
    for name in _RELATIONSHIP_ID:
        if name in attributes:
            return attributes[name]
    return None


def integer(attributes: Attributes, name: str, default: int = 0) -> int:
    """A whole number among the attributes of an element."""
    text = attributes.get(name)
    if text is None:
        return default
    try:
        return int(text)
    except ValueError:
        raise PackageError(f"{name}={text!r} where a number belongs") from None


def boolean(attributes: Attributes, name: str) -> bool:
    """``xsd:boolean``; absent is false."""
    return attributes.get(name, "0").strip().lower() in ("1", "true", "on")


class Package:
    """An opened package. Part names are absolute without the first slash, ``xl/workbook.xml``."""

    def __init__(self, data: bytes) -> None:
        if data.startswith(foreign.OLE2):  # before the zip: it may embed one
            raise PackageError(*(foreign.unzipped(data) or foreign.OTHER_ZIP))
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except _UNREADABLE as problem:
            raise PackageError(
                *(
                    foreign.unzipped(data)
                    or (f"not a workbook: {_lower_first(problem)}", "check that the file is a complete .xlsx")
                )
            ) from None
        self._data = data
        self._parts = {_normal(info.filename): info for info in self._zip.infolist()}
        self._inflated = 0

    def __contains__(self, part: str) -> bool:
        return part.lower() in self._parts

    def no_workbook(self) -> PackageError:
        """Why a package without a workbook part is refused: what it is instead."""
        mimetype = ""
        if "mimetype" in self:
            with contextlib.suppress(*_UNREADABLE), self._zip.open(self._admitted("mimetype")) as stream:
                mimetype = stream.read(_CHUNK).decode("ascii", "replace").strip()
        return PackageError(*foreign.zipped(frozenset(self._parts), mimetype))

    def relationships(self, part: str) -> Mapping[str, Relationship]:
        """The part's relationships by id; ``""`` is the package itself. None are recorded: empty."""
        folder, name = posixpath.split(part)
        record = posixpath.join(folder, "_rels", f"{name}.rels")
        found: dict[str, Relationship] = {}
        if record not in self:
            return found

        def start(name: str, attributes: Attributes) -> None:
            if name.rpartition(" ")[2] == "Relationship":
                external = attributes.get("TargetMode", "").lower() == "external"
                target = attributes.get("Target", "")
                if not external:
                    target = _normal(posixpath.join("/", folder, unquote(target).replace("\\", "/")))
                kind = attributes.get("Type", "").rpartition("/")[2]
                found[attributes.get("Id", "")] = Relationship(kind, target, external)

        def attach(parser: expat.XMLParserType) -> None:
            parser.StartElementHandler = start

        self.parse(record, attach)
        return found

    def parse(self, part: str, attach: Callable[[expat.XMLParserType], None]) -> None:
        """Run an expat parser over a part; `attach` sets its handlers.

        Names are ``namespace local``. Character data between two tags may come in several pieces.
        """
        parser = _parser(attach)
        info = self._admitted(part)
        try:
            with self._zip.open(info) as stream:
                rest = b""
                while chunk := stream.read(_CHUNK):
                    cut = chunk.rfind(b">") + 1
                    parser.Parse(rest + chunk[:cut] if rest else chunk[:cut], False)
                    rest = chunk[cut:] if cut else rest + chunk
                    if len(rest) > _CHUNK:
                        parser.Parse(rest, False)
                        rest = b""
                parser.Parse(rest, True)
        except expat.ExpatError as problem:
            raise _broken(info.filename, problem) from None
        except _UNREADABLE as problem:
            raise PackageError(f"{info.filename} cannot be unpacked: {_lower_first(problem)}") from None

    def content(self, part: str) -> bytes:
        """A part, unpacked."""
        info = self._admitted(part)
        try:
            return self._zip.read(info)
        except _UNREADABLE as problem:
            raise PackageError(f"{info.filename} cannot be unpacked: {_lower_first(problem)}") from None

    def _admitted(self, part: str) -> zipfile.ZipInfo:
        """The part's entry, after a look at what it would inflate to; `zipfile` reads no byte more than that."""
        info = self._parts.get(part.lower())
        if info is None:
            raise PackageError(f"its part {part} is missing")
        self._inflated += info.file_size
        if self._inflated > MAX_INFLATED:
            raise PackageError(
                f"it inflates to more than {MAX_INFLATED // 2**20} MiB of XML", "split it, or remove unused worksheets"
            )
        if info.file_size > SMALL_PART and info.file_size > MAX_RATIO * max(info.compress_size, 1):
            raise PackageError(
                f"{info.filename} inflates to {info.file_size // max(info.compress_size, 1)} times its size,"
                " as a zip bomb does",
                "save it again with a spreadsheet program if you trust it",
            )
        self._forgive_spelling(info)
        return info

    def _forgive_spelling(self, info: zipfile.ZipInfo) -> None:
        """Where the name before the data is the directory's in other letters, let `zipfile` expect that one.

        It refuses such entries; programs that only ask the directory, as Excel does, read them.
        """
        header = self._data[info.header_offset : info.header_offset + _LOCAL_HEADER]
        if len(header) < _LOCAL_HEADER:
            return
        flags, length = struct.unpack_from("<H", header, 6)[0], struct.unpack_from("<H", header, 26)[0]
        start = info.header_offset + _LOCAL_HEADER
        name = self._data[start : start + length].decode("utf-8" if flags & _UTF8_NAME else "cp437", "replace")
        if name != info.orig_filename and _normal(name) == _normal(info.orig_filename):
            info.orig_filename = name


def parse_bytes(xml: bytes, attach: Callable[[expat.XMLParserType], None], part: str) -> None:
    """`Package.parse` of a part that is unpacked already; `part` is its name in messages."""
    try:
        _parser(attach).Parse(xml, True)
    except expat.ExpatError as problem:
        raise _broken(part, problem) from None
    except _UNREADABLE as problem:
        raise PackageError(f"{part} cannot be read: {_lower_first(problem)}") from None


def _parser(attach: Callable[[expat.XMLParserType], None]) -> expat.XMLParserType:
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.buffer_size = 2**16
    parser.StartDoctypeDeclHandler = _refuse_doctype
    attach(parser)
    return parser


def _broken(part: str, problem: expat.ExpatError) -> PackageError:
    return PackageError(f"broken XML in {part}, line {problem.lineno}: {expat.ErrorString(problem.code)}")


def _normal(name: str) -> str:
    return posixpath.normpath(name.replace("\\", "/")).lstrip("/").lower()


def _lower_first(problem: BaseException) -> str:
    text = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
    return text[:1].lower() + text[1:]


def _refuse_doctype(*_: object) -> None:
    raise PackageError(
        "its XML has a document type declaration, which no spreadsheet program writes", "do not trust the file"
    )


_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")


def unescape(text: str) -> str:
    """Undo ``_x000D_``, the escapes of ST_Xstring (ECMA-376 part 1, §22.9.2.19)."""
    if "_x" not in text:
        return text
    text = _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)
    if any("\ud800" <= character <= "\udfff" for character in text):
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text

"""What a file is that is no ``.xlsx``, for the message that refuses it. Told from its bytes, never from its name."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

OLE2 = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_SAVE_AS = "open it in a spreadsheet program and save it as .xlsx"


class Foreign(NamedTuple):
    """What a file is, as the words of a message, and what its owner can do."""

    kind: str
    advice: str = _SAVE_AS


# In this order: what a document embeds may have a stream of the names below its own.
_STREAMS = (
    ("EncryptedPackage", Foreign("encrypted with a password", "save it without a password in a spreadsheet program")),
    ("WordDocument", Foreign("a Word document (.doc)", "name a spreadsheet")),
    ("PowerPoint Document", Foreign("a presentation (.ppt)", "name a spreadsheet")),
    ("Workbook", Foreign("a legacy .xls")),
    ("Book", Foreign("a legacy .xls")),
)
_OTHER_OLE2 = Foreign("an OLE2 file without a workbook in it, or a damaged .xls")

_MIMETYPES = {
    "application/vnd.oasis.opendocument.spreadsheet": Foreign("an OpenDocument spreadsheet (.ods)"),
    "application/vnd.oasis.opendocument.text": Foreign("an OpenDocument text (.odt)", "name a spreadsheet"),
}
_PARTS = (
    ("word/document.xml", Foreign("a Word document (.docx)", "name a spreadsheet")),
    ("ppt/presentation.xml", Foreign("a presentation (.pptx)", "name a spreadsheet")),
    ("xl/workbook.bin", Foreign("a binary workbook (.xlsb)")),
    ("index/document.iwa", Foreign("an Apple Numbers or iWork document")),
)
OTHER_ZIP = Foreign("a zip file without a workbook in it", "check that it is an .xlsx")

_BEGINNINGS = (
    (b"%PDF", Foreign("a PDF", "name the spreadsheet that it was made from")),
    (b"\x1f\x8b", Foreign("compressed with gzip", "unpack it first")),
    (b"\x09\x00\x04\x00", Foreign("a legacy .xls")),  # BIFF 2 to 5 without a container
    (b"\x09\x02\x06\x00", Foreign("a legacy .xls")),
    (b"\x09\x04\x06\x00", Foreign("a legacy .xls")),
    (b"\x09\x08\x08\x00", Foreign("a legacy .xls")),
    (b"\xff\xfe", Foreign("a text file, such as .csv")),
    (b"\xfe\xff", Foreign("a text file, such as .csv")),
)
_MARKUP = (
    (re.compile(rb"urn:schemas-microsoft-com:office:spreadsheet"), Foreign("an XML spreadsheet of Excel 2003")),
    (re.compile(rb"<office:document\b"), Foreign("an OpenDocument spreadsheet in one XML file (.fods)")),
    (re.compile(rb"<(?:!doctype\s+html|html|table|meta)\b", re.IGNORECASE), Foreign("an HTML page")),
    (re.compile(rb"\A(?:\xef\xbb\xbf)?\s*<\?xml"), Foreign("an XML file")),
)
_TEXT = Foreign("a text file, such as .csv")
_NO_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_SAMPLE = 4096


def unzipped(data: bytes) -> Foreign | None:
    """What a file is that is no zip; None if nothing is known of it."""
    if data.startswith(OLE2):
        streams = set(_ole2_names(data))
        return next((foreign for name, foreign in _STREAMS if name in streams), _OTHER_OLE2)
    for beginning, foreign in _BEGINNINGS:
        if data.startswith(beginning):
            return foreign
    sample = data[:_SAMPLE]
    if _NO_TEXT.search(sample):
        return None
    return next((foreign for sign, foreign in _MARKUP if sign.search(sample)), _TEXT)


def zipped(parts: frozenset[str], mimetype: str) -> Foreign:
    """What a zip is that is no ``.xlsx``: `parts` in lower case, `mimetype` the text of the part of that name."""
    if mimetype in _MIMETYPES:
        return _MIMETYPES[mimetype]
    if mimetype.startswith("application/vnd.oasis.opendocument."):
        return Foreign("an OpenDocument file", "name a spreadsheet")
    return next((foreign for part, foreign in _PARTS if part in parts), OTHER_ZIP)


_HEADER_ENTRIES = 109
_LAST_SECTOR = 0xFFFFFFFA
"""Sector numbers from here on are marks, of an end or of nothing ([MS-CFB] §2.1)."""
_ENTRY = 128


def _ole2_names(data: bytes) -> Iterator[str]:
    """The names in the directory of a compound file ([MS-CFB] §2.6); as many as a damaged one lets be found."""
    try:
        size = 1 << struct.unpack_from("<H", data, 30)[0]
        if size not in (512, 4096):
            return
        for sector in _chain(data, size, struct.unpack_from("<I", data, 48)[0]):
            for start in range((sector + 1) * size, (sector + 2) * size, _ENTRY):
                length, kind = struct.unpack_from("<HB", data, start + 64)
                if kind and 2 <= length <= 64:
                    yield data[start : start + length - 2].decode("utf-16-le", "replace")
    except struct.error:  # the file ends before what it announces
        return


def _chain(data: bytes, size: int, sector: int) -> Iterator[int]:
    """The sectors of a stream from its first on, by the file allocation table ([MS-CFB] §2.3)."""
    tables = _tables(data, size)
    seen: set[int] = set()
    while sector < _LAST_SECTOR and sector not in seen:
        seen.add(sector)
        yield sector
        table, entry = divmod(sector, size // 4)
        if table >= len(tables):
            return
        sector = struct.unpack_from("<I", data, (tables[table] + 1) * size + 4 * entry)[0]


def _tables(data: bytes, size: int) -> list[int]:
    """The sectors of the allocation table: the first in the header, the others in a chain of their own."""
    tables = list(struct.unpack_from(f"<{_HEADER_ENTRIES}I", data, 76))
    following: int = struct.unpack_from("<I", data, 68)[0]
    seen: set[int] = set()
    while following < _LAST_SECTOR and following not in seen:
        seen.add(following)
        *more, following = struct.unpack_from(f"<{size // 4}I", data, (following + 1) * size)
        tables += more
    return [sector for sector in tables if sector < _LAST_SECTOR]

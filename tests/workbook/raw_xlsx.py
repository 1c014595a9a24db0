"""Workbooks written part by part, for what no library writes."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Mapping

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONSHIPS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'


def relationships(*targets: tuple[str, str, str] | tuple[str, str, str, str]) -> str:
    """A ``.rels`` part of ``(id, kind, target[, mode])``."""
    rows = "".join(
        f'<Relationship Id="{each[0]}" Type="{RELATIONSHIPS}/{each[1]}" Target="{each[2]}"'
        + (f' TargetMode="{each[3]}"' if len(each) > 3 else "")
        + "/>"
        for each in targets
    )
    return f'{HEAD}<Relationships xmlns="{PACKAGE}">{rows}</Relationships>'


def worksheet(rows: str, *, before: str = "", after: str = "") -> str:
    content = f"{before}<sheetData>{rows}</sheetData>{after}"
    return f'{HEAD}<worksheet xmlns="{MAIN}" xmlns:r="{RELATIONSHIPS}">{content}</worksheet>'


def archive(parts: Mapping[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as package:
        for name, content in parts.items():
            package.writestr(name, content)
    return buffer.getvalue()


def workbook(
    sheet: str,
    *,
    workbook_part: str | None = None,
    workbook_inner: str = "",
    workbook_before: str = "",
    styles: str | None = None,
    strings: str | None = None,
    parts: Mapping[str, str | bytes] = {},
    extra_relationships: tuple[tuple[str, str, str], ...] = (),
) -> bytes:
    """A workbook of one worksheet ``S`` from the XML of its parts."""
    related = [("rId1", "worksheet", "worksheets/sheet1.xml"), *extra_relationships]
    content: dict[str, str | bytes] = {
        "_rels/.rels": relationships(("rId1", "officeDocument", "xl/workbook.xml")),
        "xl/workbook.xml": workbook_part
        or f'{HEAD}<workbook xmlns="{MAIN}" xmlns:r="{RELATIONSHIPS}">{workbook_before}'
        f'<sheets><sheet name="S" sheetId="1" r:id="rId1"/></sheets>{workbook_inner}</workbook>',
        "xl/worksheets/sheet1.xml": sheet,
    }
    if styles is not None:
        content["xl/styles.xml"] = f'{HEAD}<styleSheet xmlns="{MAIN}">{styles}</styleSheet>'
        related.append(("rId90", "styles", "styles.xml"))
    if strings is not None:
        content["xl/sharedStrings.xml"] = f'{HEAD}<sst xmlns="{MAIN}">{strings}</sst>'
        related.append(("rId91", "sharedStrings", "sharedStrings.xml"))
    content["xl/_rels/workbook.xml.rels"] = relationships(*related)
    content.update(parts)
    return archive(content)


def dot() -> bytes:
    """A picture: a PNG of one pixel."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        body = kind + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0\0")) + chunk(b"IEND", b"")


def compound(*streams: str, size: int = 512) -> bytes:
    """An OLE2 file whose directory has these names ([MS-CFB] §2.2, §2.3, §2.6), in sectors of `size` bytes."""
    entries = b"".join(
        name.encode("utf-16-le").ljust(64, b"\0")
        + struct.pack("<HB", 2 * len(name) + 2, 5 if n == 0 else 2)
        + bytes(61)
        for n, name in enumerate(("Root Entry", *streams))
    )
    sectors = [entries[start : start + size].ljust(size, b"\0") for start in range(0, len(entries), size)]
    # The table of sectors comes first, then the directory's sectors, the last of them first in the file.
    chain = [0xFFFFFFFD, 0xFFFFFFFE, *range(1, len(sectors))]
    table = struct.pack(f"<{len(chain)}I", *chain).ljust(size, b"\xff")
    header = (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH", 62, 3, 0xFFFE, size.bit_length() - 1, 6)
    )
    header += bytes(10) + struct.pack("<IIIIIIII", 1, len(sectors), 0, 4096, 0xFFFFFFFE, 0, 0xFFFFFFFE, 0)
    header += struct.pack("<109I", 0, *[0xFFFFFFFF] * 108)
    return header.ljust(size, b"\0") + table + b"".join(reversed(sectors))

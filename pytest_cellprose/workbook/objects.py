"""What a workbook file holds beside its cells: counted from parts, relationships and elements, when somebody asks.

Nothing here is part of a `Workbook`, and reading one does not come by. A worksheet's cells are skipped, so that
counting costs little more than unpacking. Section numbers are those of ECMA-376 part 1.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Literal, TypeAlias, get_args
from xml.parsers import expat

from pytest_cellprose.workbook.package import Attributes, Package, main_names, parse_bytes
from pytest_cellprose.workbook.read import SHEET_KINDS, workbook_part

ObjectKind: TypeAlias = Literal[
    "link",
    "text box",
    "shape",
    "picture",
    "chart",
    "diagram",
    "embedded object",
    "form control",
    "sparkline",
    "pivot table",
    "slicer",
    "data validation",
    "conditional format",
    "page header",
    "page footer",
    "data connection",
    "macro project",
]
OBJECT_KINDS: tuple[ObjectKind, ...] = get_args(ObjectKind)

_EXTENSION = "http://schemas.microsoft.com/office/spreadsheetml/2009/9/main"
_COMPATIBILITY = "http://schemas.openxmlformats.org/markup-compatibility/2006"
_COUNTED: dict[str, ObjectKind] = {
    "hyperlink": "link",  # §18.3.1.47
    "dataValidation": "data validation",  # §18.3.1.32
    "cfRule": "conditional format",  # §18.3.1.10
    "picture": "picture",  # behind the cells, §18.3.1.67
    "oleObject": "embedded object",  # §18.3.1.60
    "control": "form control",  # §18.3.1.19
}
_PAGE: dict[str, ObjectKind] = {  # §18.3.1.46
    **dict.fromkeys(("oddHeader", "evenHeader", "firstHeader"), "page header"),
    **dict.fromkeys(("oddFooter", "evenFooter", "firstFooter"), "page footer"),
}
_MAIN = main_names(*_COUNTED, *_PAGE)
_RELATED: dict[str, ObjectKind] = {
    "pivotTable": "pivot table",
    "connections": "data connection",
    "vbaProject": "macro project",
}


def count_objects(source: Path | bytes) -> Counter[ObjectKind]:
    """How many there are of each kind in the file that a workbook was read from.

    Page headers and footers are counted by worksheet. Raises `PackageError` for what `read_workbook` refuses too.
    """
    package = Package(source if isinstance(source, bytes) else source.read_bytes())
    found: Counter[ObjectKind] = Counter()
    for relationship in package.relationships(workbook_part(package)).values():
        if relationship.kind in _RELATED:
            found[_RELATED[relationship.kind]] += 1
        elif relationship.kind in SHEET_KINDS and not relationship.external and relationship.target in package:
            found += _on_sheet(package, relationship.target)
    return found


def _on_sheet(package: Package, part: str) -> Counter[ObjectKind]:
    found = _in_sheet_part(_without_cells(package.content(part)), part)
    for relationship in package.relationships(part).values():
        if relationship.kind in _RELATED:
            found[_RELATED[relationship.kind]] += 1
        elif relationship.kind == "drawing" and relationship.target in package:
            found += _in_drawing(package, relationship.target)
    return found


_SHEET_DATA = re.compile(rb"<((?:[\w.-]+:)?sheetData)(?:\s[^>]*)?(?<!/)>")


def _without_cells(xml: bytes) -> bytes:
    """A worksheet part with nothing in its ``sheetData``; as it is if it is in an encoding that shows no such tag."""
    opening = _SHEET_DATA.search(xml)
    closing = -1 if opening is None else xml.rfind(b"</" + opening[1])
    return xml if opening is None or closing < opening.end() else xml[: opening.end()] + xml[closing:]


def _in_sheet_part(xml: bytes, part: str) -> Counter[ObjectKind]:
    found: Counter[ObjectKind] = Counter()
    pages: set[ObjectKind] = set()
    linked: set[str] = set()
    extended: list[str] = []
    pieces: list[str] = []
    fallbacks = 0

    def start(name: str, attributes: Attributes) -> None:
        nonlocal fallbacks
        pieces.clear()
        namespace, _, local = name.rpartition(" ")
        if name == f"{_COMPATIBILITY} Fallback":
            fallbacks += 1
        elif fallbacks:
            return
        elif _MAIN.get(name) in _COUNTED:
            found[_COUNTED[local]] += 1
        elif namespace == _EXTENSION and local == "cfRule":
            extended.append(attributes.get("id", ""))
        elif namespace == _EXTENSION and local == "dataValidation":
            found["data validation"] += 1
        elif namespace == _EXTENSION and local == "sparkline":
            found["sparkline"] += 1

    def end(name: str) -> None:
        nonlocal fallbacks
        if name == f"{_COMPATIBILITY} Fallback":
            fallbacks -= 1
        elif name == f"{_EXTENSION} id":  # a rule of the worksheet itself goes on in the extension of this id
            linked.add("".join(pieces).strip())
        elif _MAIN.get(name) in _PAGE and "".join(pieces).strip():
            pages.add(_PAGE[_MAIN[name]])
        pieces.clear()

    def attach(parser: expat.XMLParserType) -> None:
        parser.StartElementHandler = start
        parser.EndElementHandler = end
        parser.CharacterDataHandler = pieces.append

    parse_bytes(xml, attach, part)
    found["conditional format"] += sum(each not in linked for each in extended)
    found.update(pages)
    return +found


_FRAMES: dict[str, ObjectKind] = {
    "chart": "chart",
    "chartex": "chart",
    "diagram": "diagram",
    "slicer": "slicer",
    "timeslicer": "slicer",
}
"""The last step of ``graphicData``'s ``uri`` (§20.1.2.2.17)."""


def _in_drawing(package: Package, part: str) -> Counter[ObjectKind]:
    """What floats over a worksheet (§20.5); a text box is any shape with a text in it."""
    found: Counter[ObjectKind] = Counter()
    pieces: list[str] = []
    has_text = is_control = False
    fallbacks = 0

    def start(name: str, attributes: Attributes) -> None:
        nonlocal fallbacks, has_text, is_control
        local = name.rpartition(" ")[2]
        if name == f"{_COMPATIBILITY} Fallback":
            fallbacks += 1
        elif fallbacks:
            return
        elif local == "pic":
            found["picture"] += 1
        elif local == "sp":
            has_text = is_control = False
        elif local == "cxnSp":
            found["shape"] += 1
        elif local == "hlinkClick":
            found["link"] += 1
        elif local == "compatExt":  # the drawing of a form control, which the worksheet counts
            is_control = True
        elif local == "graphicData":
            frame = _FRAMES.get(re.split("[/:]", attributes.get("uri", ""))[-1])
            if frame is not None:
                found[frame] += 1
        elif local == "t":
            pieces.clear()

    def end(name: str) -> None:
        nonlocal fallbacks, has_text
        local = name.rpartition(" ")[2]
        if name == f"{_COMPATIBILITY} Fallback":
            fallbacks -= 1
        elif fallbacks:
            return
        elif local == "t":
            has_text = has_text or bool("".join(pieces).strip())
        elif local == "sp" and not is_control:
            found["text box" if has_text else "shape"] += 1

    def attach(parser: expat.XMLParserType) -> None:
        parser.StartElementHandler = start
        parser.EndElementHandler = end
        parser.CharacterDataHandler = pieces.append

    package.parse(part, attach)
    return found

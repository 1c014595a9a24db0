"""Pictures in cells, linked data and newer errors: what stands behind a cell that is stored as ``#VALUE!``.

For programs that know none of these, files give such a cell the type error, the text ``#VALUE!`` and, as ``vm``, an
index into the workbook's value metadata (ECMA-376 part 1, §18.9), which leads to a *rich value*
([MS-XLSX] §2.3.4 and §2.6.228).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import NamedTuple
from xml.parsers import expat

from pytest_cellprose.workbook.model import ErrorValue
from pytest_cellprose.workbook.package import Attributes, Package, integer, main_names

FALLBACK = "#VALUE!"

_ERRORS = (
    "#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A", "#GETTING_DATA",
    "#SPILL!", "#CONNECT!", "#BLOCKED!", "#UNKNOWN!", "#FIELD!", "#CALC!",
)  # fmt: skip
"""By ``errorType``: one less than what Excel's ERROR.TYPE gives."""

_RICH_NAMESPACE = "http://schemas.microsoft.com/office/spreadsheetml/2017/richdata"
_METADATA = main_names("metadataType", "futureMetadata", "valueMetadata", "bk", "rc")
_RICH_TYPE = "XLRICHVALUE"
_DISPLAY = "_DisplayString"


class _Structure(NamedTuple):
    kind: str
    """``_error``, ``_localImage``, ``_linkedentity2``, …"""
    keys: list[str]


class _RichValue(NamedTuple):
    structure: int
    values: list[str]


class RichValues:
    """The rich values of a workbook. Their parts are read when the first cell asks."""

    def __init__(self, package: Package, parts: Mapping[str, str]) -> None:
        """`parts`: the workbook part's relationships, kind -> part."""
        self._package = package
        self._parts = parts

    def value(self, index: str) -> ErrorValue | str | None:
        """What a cell with this ``vm`` holds: its error, the text of linked data, None for a picture or the like.

        Without metadata, or with an index that leads nowhere, it is None: a plain ``#VALUE!`` has no index.
        """
        try:
            kind, number = self._metadata[int(index) - 1] if int(index) > 0 else (_RICH_TYPE, -1)
        except (ValueError, IndexError):
            return None
        if kind != _RICH_TYPE:  # metadata of another kind, such as of a cube function, beside an error
            return ErrorValue(FALLBACK)
        if not 0 <= number < len(self._values):
            return None
        value = self._values[number]
        if not 0 <= value.structure < len(self._structures):
            return None
        structure = self._structures[value.structure]
        fields = dict(zip(structure.keys, value.values, strict=False))
        if structure.kind == "_error":
            code = fields.get("errorType", "")
            known = code.isdecimal() and int(code) < len(_ERRORS)
            return ErrorValue(_ERRORS[int(code)] if known else FALLBACK)
        return fields.get(_DISPLAY) or None

    @cached_property
    def _metadata(self) -> list[tuple[str, int]]:
        """By ``vm - 1``: the kind of metadata, and for a rich value its number."""
        types: list[str] = []
        rich: list[int] = []
        records: list[tuple[int, int] | None] = []
        around: str | None = None

        def start(name: str, attributes: Attributes) -> None:
            nonlocal around
            kind = _METADATA.get(name)
            if kind == "metadataType":
                types.append(attributes.get("name", ""))
            elif kind == "futureMetadata":
                around = attributes.get("name")
            elif kind == "valueMetadata":
                around = kind
            elif kind == "bk" and around == _RICH_TYPE:
                rich.append(-1)
            elif kind == "bk" and around == "valueMetadata":
                records.append(None)
            elif kind == "rc" and around == "valueMetadata" and records:
                records[-1] = records[-1] or (integer(attributes, "t"), integer(attributes, "v"))
            elif name == f"{_RICH_NAMESPACE} rvb" and around == _RICH_TYPE and rich:
                rich[-1] = integer(attributes, "i")

        def end(name: str) -> None:
            nonlocal around
            if _METADATA.get(name) in ("futureMetadata", "valueMetadata"):
                around = None

        self._read("sheetMetadata", start, end)
        found: list[tuple[str, int]] = []
        for record in records:
            kind, number = record or (0, -1)
            name = types[kind - 1] if 0 < kind <= len(types) else _RICH_TYPE
            found.append((name, rich[number] if name == _RICH_TYPE and 0 <= number < len(rich) else -1))
        return found

    @cached_property
    def _structures(self) -> list[_Structure]:
        found: list[_Structure] = []

        def start(name: str, attributes: Attributes) -> None:
            kind = name.rpartition(" ")[2]
            if kind == "s":
                found.append(_Structure(attributes.get("t", ""), []))
            elif kind == "k" and found:
                found[-1].keys.append(attributes.get("n", ""))

        self._read("rdRichValueStructure", start)
        return found

    @cached_property
    def _values(self) -> list[_RichValue]:
        found: list[_RichValue] = []
        pieces: list[str] = []

        def start(name: str, attributes: Attributes) -> None:
            kind = name.rpartition(" ")[2]
            if kind == "rv":
                found.append(_RichValue(integer(attributes, "s"), []))
            elif kind == "v":
                pieces.clear()

        def end(name: str) -> None:
            if name.rpartition(" ")[2] == "v" and found:
                found[-1].values.append("".join(pieces))

        self._read("rdRichValue", start, end, pieces)
        return found

    def _read(
        self,
        kind: str,
        start: Callable[[str, Attributes], None],
        end: Callable[[str], None] | None = None,
        pieces: list[str] | None = None,
    ) -> None:
        """Run the handlers over the part of this kind of relationship, if the workbook has it."""

        def attach(parser: expat.XMLParserType) -> None:
            parser.StartElementHandler = start
            parser.EndElementHandler = end
            if pieces is not None:
                parser.CharacterDataHandler = pieces.append

        part = self._parts.get(kind, "")
        if part in self._package:
            self._package.parse(part, attach)

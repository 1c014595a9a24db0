"""`markitdown`: the output of Microsoft's MarkItDown itself, on the workbook's own file.

The version names MarkItDown and the two libraries that decide what it prints: pandas (types, ``NaN``,
decimals) and openpyxl (cells).
"""

from __future__ import annotations

import re
import threading
import warnings
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from pathlib import Path

from pytest_cellprose.encodings.base import Encoding, Told
from pytest_cellprose.encodings.gfm import one_line
from pytest_cellprose.encodings.values import put, read_value
from pytest_cellprose.workbook.model import Cell, ErrorValue, Workbook, WorkbookError, Worksheet

_ran = threading.Event()
"""Set once MarkItDown has run in this process: its inference runtime then has threads, and hangs in a forked child."""

_ESCAPED = re.compile(r"\\([*_])")
_UNNAMED = re.compile(r"Unnamed: [0-9]+")
_REPEATED = re.compile(r"(.+)\.[0-9]+")


def _library_versions() -> str:
    def of(package: str) -> str:
        try:
            return version(package)
        except PackageNotFoundError:
            return "absent"

    return "+".join([of("markitdown"), f"pandas{of('pandas')}", f"openpyxl{of('openpyxl')}"])


def can_fork() -> bool:
    """Whether a child of this process can still run MarkItDown."""
    return not _ran.is_set()


def encode(workbook: Workbook) -> str:
    """What ``MarkItDown(enable_plugins=False).convert`` gives for the file, byte for byte.

    Raises `WorkbookError`, naming the file, if the workbook has none or MarkItDown cannot convert it.
    """
    source = workbook.source
    if source is None:
        raise WorkbookError("the encoding 'markitdown' reads a file, and this workbook was not read from one")
    from markitdown import MarkItDown, StreamInfo

    _ran.set()
    name = source.name if isinstance(source, Path) else "workbook given as bytes"
    try:
        data = source if isinstance(source, bytes) else source.read_bytes()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # The extension is given because an .xlsm is converted like an .xlsx, and bytes have no name.
            result = MarkItDown(enable_plugins=False).convert(BytesIO(data), stream_info=StreamInfo(extension=".xlsx"))
    except Exception as error:  # whatever a library of four may raise on a damaged file
        reason = (str(error).strip() or type(error).__name__).splitlines()[-1].strip(" -")
        raise WorkbookError(f"{name}: MarkItDown cannot convert it: {reason}") from error
    text = str(result.text_content)
    if text and not text.startswith("## "):
        # Another of its converters took over: that lists the package's parts as if they were text.
        raise WorkbookError(f"{name}: MarkItDown does not take it for a spreadsheet")
    return text


def decode(text: str) -> Workbook:
    """Read the cells back as well as the text allows.

    pandas makes row 1 the header, and keeps leading blank rows and columns, so lines and cells count from
    A1. ``Unnamed: n`` and ``NaN`` are blanks, a repeated heading has lost its ``.1``, ``18000.0`` is a
    whole number and midnight is a date. What is gone stays gone: errors and texts such as ``NA`` (printed
    as ``NaN``), decimals after the sixth, and the ends of cells that hold " | ", which MarkItDown does not
    escape.
    """
    sheets: list[Worksheet] = []
    row = 0
    for line in text.split("\n"):
        if line.startswith("## "):
            sheets.append(Worksheet(line[3:]))
            row = 0
        elif sheets and line.startswith("|") and line != "|":
            row += 1
            if row == 2:
                continue
            fields = line.removeprefix("| ").removesuffix(" |").split(" | ")
            fields = _headings(fields) if row == 1 else fields
            for column, field in enumerate(fields, 1):
                cell = _cell(field.strip())
                if cell is not None:
                    put(sheets[-1], max(1, row - 1), column, cell)
    return Workbook(tuple(sheets))


def _headings(fields: list[str]) -> list[str]:
    """Row 1 before pandas told its repeated and empty headings apart."""
    seen: set[str] = set()
    headings = []
    for field in fields:
        repeated = _REPEATED.fullmatch(field)
        heading = repeated[1] if repeated and _hashed(repeated[1]) in seen else field
        seen.add(_hashed(heading))
        headings.append("" if _UNNAMED.fullmatch(heading) else heading)
    return headings


def _hashed(heading: str) -> str:
    """pandas takes headings for repeated that are equal in Python, as 0 and False are."""
    return {"True": "1", "False": "0"}.get(heading, heading)


def _cell(field: str) -> Cell | None:
    if field in ("", "NaN", "NaT"):
        return None
    if field in ("True", "False"):
        return Cell(field == "True")
    cell = read_value(one_line(_ESCAPED.sub(r"\1", field)).removesuffix(" 00:00:00"))
    if isinstance(cell.value, float) and cell.value.is_integer() and cell.number_format == "General":
        return Cell(int(cell.value))
    return cell


_DECIMALS = 6


def told(workbook: Workbook) -> Told:
    """What pandas makes of values: errors are printed as ``NaN``, and no number has more than six decimals."""
    values = [cell.value for sheet in workbook.worksheets for *_, cell in sheet.cells()]
    errors = sum(isinstance(value, ErrorValue) for value in values)
    rounded = sum(isinstance(value, float) and round(value, _DECIMALS) != value for value in values)
    return Told(rounded=rounded, lost={"error value": errors})


MARKITDOWN = Encoding(
    "markitdown",
    _library_versions(),
    "Markdown, converted by MarkItDown",
    encode,
    decode,
    keeps=frozenset({"values", "addresses"}),
    tells=told,
)

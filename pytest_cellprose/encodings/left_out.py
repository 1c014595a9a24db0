"""What a workbook has that its text in an encoding does not hold: for the line that ``encode`` writes beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from pytest_cellprose.encodings.base import Encoding, Told
from pytest_cellprose.encodings.names import names_in_use
from pytest_cellprose.workbook.model import Workbook
from pytest_cellprose.workbook.objects import OBJECT_KINDS, ObjectKind, count_objects
from pytest_cellprose.workbook.refs import cell_name, quote_sheet


class Omission(NamedTuple):
    """One kind of thing that is not in the text."""

    noun: str
    """In the singular; its plural ends in s."""
    number: int
    places: tuple[str, ...] = ()
    """Where, as far as that is known: addresses, with their worksheet if there are several."""


class LeftOut(NamedTuple):
    """All that a text does not hold of its workbook, but for looks: `docs/FORMAT.md`, section 8."""

    omissions: tuple[Omission, ...]
    hidden: tuple[Omission, ...]
    """Rows, columns and worksheets that are in the text without a word that they are hidden."""
    rounded: int
    """Numbers that are in the text, with fewer digits than the file stores."""


def left_out(workbook: Workbook, encoding: Encoding) -> LeftOut:
    """Compare a workbook, and the file that it was read from, with what the encoding says it keeps.

    Raises `PackageError` if the file cannot be read any more.
    """
    told = Told() if encoding.tells is None else encoding.tells(workbook)
    objects = Counter[ObjectKind]() if workbook.source is None else count_objects(workbook.source)
    objects["picture"] += sum(len(sheet.pictures) for sheet in workbook.worksheets)
    found = [
        *_comments(workbook, told),
        *_of_the_cells(workbook, encoding, told),
        *(Omission(kind, objects[kind]) for kind in OBJECT_KINDS),
        *(Omission(noun, count) for noun, count in told.lost.items()),
        Omission("worksheet that the file only names", sum(sheet.kind == "missing" for sheet in workbook.worksheets)),
    ]
    hidden = () if "hidden" in encoding.keeps else _hidden(workbook)
    return LeftOut(
        tuple(omission for omission in found if omission.number),
        tuple(omission for omission in hidden if omission.number),
        told.rounded,
    )


def _comments(workbook: Workbook, told: Told) -> Iterator[Omission]:
    several = len(workbook.worksheets) > 1
    places = tuple(
        (f"{quote_sheet(sheet.name)}!" if several else "") + cell_name(comment.row, comment.column)
        for number, sheet in enumerate(workbook.worksheets)
        for comment in sheet.comments
        if (number, comment.row, comment.column) not in told.comments
    )
    yield Omission("comment", len(places), places)


def _of_the_cells(workbook: Workbook, encoding: Encoding, told: Told) -> Iterator[Omission]:
    sheets = workbook.worksheets
    formulas = [cell.formula.text for sheet in sheets for *_, cell in sheet.cells() if cell.formula is not None]
    if "formulas" not in encoding.keeps:
        yield Omission("formula", len(formulas))
    names = [name for name in workbook.defined_names if not name.name.startswith("_xlnm.") and not name.hidden]
    kept = names_in_use(names, formulas) if names and "names" in encoding.keeps else []
    yield Omission("defined name", len(names) - len(kept))
    if not told.tables:
        yield Omission("table", sum(len(sheet.tables) for sheet in sheets))
    if "merged" not in encoding.keeps:
        yield Omission("merged range", sum(len(sheet.merged) for sheet in sheets))


def _hidden(workbook: Workbook) -> tuple[Omission, ...]:
    """As far as the cells of each worksheet reach: files hide a million rows below them."""
    rows = columns = 0
    for sheet in workbook.worksheets:
        extent = sheet.extent
        if extent is not None:
            rows += sum(max(0, min(last, extent.last_row) - first + 1) for first, last in sheet.hidden_rows)
            columns += sum(max(0, min(last, extent.last_column) - first + 1) for first, last in sheet.hidden_columns)
    return (
        Omission("row", rows),
        Omission("column", columns),
        Omission("worksheet", sum(sheet.state != "visible" for sheet in workbook.worksheets)),
    )

"""A table of your own questions -> a case pack: question files, and ``certification.json`` about every row.

A pack is a cells folder: ``pytest --cellprose-cells PACK`` measures it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from pytest_cellprose.files import sha256_of
from pytest_cellprose.questions.kind import QuestionKind
from pytest_cellprose.questions.kinds import BUILTIN_KINDS, VALUE
from pytest_cellprose.sets.casetable import WORKBOOKS, Table
from pytest_cellprose.sets.certify import REASONS, Case, Certificate, Reason, certify
from pytest_cellprose.workbook.refs import split_sheet

CERTIFICATION = "certification.json"
CERTIFICATION_SCHEMA = 1

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "case", "case id", "no", "nr", "number", "#"),
    "workbook": ("workbook", "file", "filename", "file name", "spreadsheet"),
    "question": ("question", "text", "prompt"),
    "expected": ("expected", "answer", "truth", "expected answer"),
    "kind": ("kind",),
    "sheet": ("sheet", "worksheet", "tab"),
    "about": ("about", "cell", "address"),
    "row": ("row", "row label"),
    "column": ("column", "column label"),
    "reach": ("reach",),
    "type": ("type",),
    "unit": ("unit",),
    "note": ("note", "notes", "comment"),
}
"""What a row says -> the column names it is looked for under, compared without case."""
REQUIRED = ("id", "workbook", "question", "expected")


class PackError(ValueError):
    """A pack that cannot be made or written; the message is one line and says what to do."""


class Pack(NamedTuple):
    """A pack before it is written."""

    files: Mapping[str, str]
    """File name -> text, `CERTIFICATION` among them."""
    certificates: tuple[Certificate, ...]
    """One for each row, in the table's order."""

    @property
    def certified(self) -> int:
        return sum(certificate.certified for certificate in self.certificates)


def columns_of(table: Table, named: Mapping[str, str]) -> dict[str, str]:
    """What a row says -> its column: as `named`, else by `COLUMNS`; raises `PackError` naming what is missing."""
    there = {column.casefold(): column for column in table.columns}
    have = f"the table has {', '.join(map(repr, table.columns))}"
    found = {}
    for field, names in COLUMNS.items():
        if field in named:
            column = there.get(named[field].strip().casefold())
            if column is None:
                raise PackError(f"--{field}: no column {named[field]!r}: {have}")
            found[field] = column
        else:
            default = next((there[name] for name in names if name in there), None)
            if default is not None and default not in named.values():
                found[field] = default
    missing = [field for field in REQUIRED if field not in found]
    if missing:
        options = " ".join(f"--{field} COL" for field in missing)
        raise PackError(f"no column for {', '.join(missing)}: {have}; say which is which with {options}")
    return found


def make_pack(table: Table, columns: Mapping[str, str], workbooks: Path, out: Path, source: str) -> Pack:
    """Certify every row and write up those that nothing speaks against.

    Rows are numbered ``q1``, ``q2``, … in the table's order, whether certified or not, so that a number means the
    same row before and after a correction; the row's own id is its question's `case`. Raises `PackError` for a
    folder of workbooks that is none, and when no row is certified.
    """
    shelf = _Shelf(workbooks)
    rows = [{field: row[column] for field, column in columns.items()} for row in table.rows]
    cases = [_case(number, row, shelf, typed=table.typed) for number, row in enumerate(rows, start=1)]
    certificates = certify(cases)
    by_workbook: dict[Path, list[Certificate]] = defaultdict(list)
    for certificate in certificates:
        if certificate.certified and certificate.case.workbook is not None:
            by_workbook[certificate.case.workbook].append(certificate)
    names = {path: shelf.name(path) for path in by_workbook}
    files = {
        f"{names[path]}.json": _json(
            {
                "schema": 1,
                "workbook": _reference(path, out),
                "sha256": sha256_of(path),
                "source": f"{source}, by pack",
                "questions": [{**each.case.fields, "case": each.case.own_id} for each in of_workbook],
            }
        )
        for path, of_workbook in sorted(by_workbook.items())
    }
    files[CERTIFICATION] = _json(_certification(certificates, files, shelf, source))
    return Pack(files, tuple(certificates))


class _Shelf:
    """The workbooks of a folder and its subfolders, by what a table calls them."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise PackError(f"--workbooks: {folder} is not a folder")
        self._folder = folder.resolve()
        self._files = [
            path
            for path in sorted(self._folder.rglob("*"))
            if path.suffix.lower() in WORKBOOKS and not path.name.startswith("~$") and path.is_file()
        ]
        self._stems = Counter(path.stem.casefold() for path in self._files)
        self._digests: dict[Path, str] = {}

    def find(self, name: str) -> tuple[Path | None, str]:
        """The workbook, or why there is none: a path within the folder, or a file name with or without ending."""
        wanted = PurePosixPath(name.replace("\\", "/"))
        if wanted.is_absolute() or ".." in wanted.parts or re.match("[A-Za-z]:", name):
            return None, f"{name!r} leads out of the folder of workbooks"
        exact = [path for path in self._files if path.relative_to(self._folder).as_posix() == wanted.as_posix()]
        named = exact or [path for path in self._files if name in (path.name, path.stem)]
        if not named:
            return None, f"no {name!r} in {self._folder.name}"
        if len(named) > 1:
            places = ", ".join(path.relative_to(self._folder).as_posix() for path in named)
            return None, f"{name!r} may be any of {places}: give the path"
        return named[0], ""

    def digest(self, path: Path) -> str:
        if path not in self._digests:
            self._digests[path] = sha256_of(path)
        return self._digests[path]

    def name(self, path: Path) -> str:
        """Of the question file: the workbook's, with its folder's where two have the same."""
        if self._stems[path.stem.casefold()] == 1:
            return path.stem
        return "_".join((*path.relative_to(self._folder).parts[:-1], path.name.replace(".", "_")))


def _case(number: int, row: Mapping[str, Any], shelf: _Shelf, *, typed: bool) -> Case:
    def text(field: str) -> str:
        return str(row.get(field, "")).strip()

    name = text("kind").lower() or VALUE.name
    kind = BUILTIN_KINDS.get(name)
    about = _about(row, kind)
    fields: dict[str, Any] = {
        "id": f"q{number}",
        "kind": name,
        "text": str(row.get("question", "")),
        "about": about,
        "answer": _expected(row.get("expected", ""), kind, typed=typed),
    }
    fields["sheet"] = text("sheet") or _sheet_of(about) or _sheet_of(fields["answer"])
    fields |= {field: text(field).lower() for field in ("reach", "type", "unit") if text(field)}
    if text("note"):
        fields["note"] = text("note")
    if (
        kind is not None
        and "type" in kind.takes
        and isinstance(fields["answer"], str)
        and _DATE.fullmatch(fields["answer"])
    ):
        fields.setdefault("type", "date")
    book = text("workbook")
    path, missing = shelf.find(book) if book else (None, "the row names none")
    if path is not None and not fields["sheet"]:
        fields["sheet"] = _only_sheet(path)
    return Case(
        pack="",
        number=number,
        fields={name: value for name, value in fields.items() if value is not None},
        workbook=path,
        identity=shelf.digest(path) if path is not None else book.casefold(),
        missing=missing,
        own_id=text("id"),
    )


_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*|[1-9]\d{0,2}(?:,\d{3})+)(?:\.\d+)?(?:[eE][+-]?\d+)?%?", re.ASCII)
_LONGEST_NUMBER = 300
_MEMBER = re.compile(r"(?:'(?:[^']|'')*'|[^',;|\n])+")
_NO_CELLS = ("none", "no cell", "no cells", "-", "[]")


def _expected(value: Any, kind: QuestionKind | None, *, typed: bool) -> Any:
    """The truth that a field states.

    Of delimited text, ``1,234.5`` is a number, ``12%`` is 0.12, ``TRUE`` a boolean and ``007`` a text; a list is
    addresses set apart by commas, semicolons, bars or line breaks, and ``none`` the empty one.
    """
    if kind is not None and kind.lists_cells:
        if not isinstance(value, str):
            return value
        if value.strip().casefold() in _NO_CELLS:
            return []
        return [member.strip() for member in _MEMBER.findall(value.strip("[] \t")) if member.strip()] or None
    if typed or not isinstance(value, str):
        return value
    text = value.strip()
    if text.casefold() in ("true", "false"):
        return text.casefold() == "true"
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        return text
    plain = text.rstrip("%").replace(",", "")
    number: int | float = float(plain) if re.search("[.eE]", plain) else int(plain)
    return number / 100 if text.endswith("%") else number


def _about(row: Mapping[str, Any], kind: QuestionKind | None) -> Any:
    """An address, or of an address question labels: as JSON, or in columns of their own, steps set apart by ``>``."""
    value = row.get("about", "")
    if isinstance(value, str) and value.strip().startswith("{"):
        try:
            value = json.loads(value)
        except ValueError:
            return value
    if isinstance(value, str):
        value = value.strip()
    if value in ("", None) and kind is not None and kind.about == "labels" and (row.get("row") or row.get("column")):
        return {side: _steps(row.get(side, "")) for side in ("row", "column")}
    return None if value == "" else value


def _steps(label: Any) -> list[Any]:
    if isinstance(label, list):
        return label
    return [part.strip() for part in label.split(">") if part.strip()] if isinstance(label, str) else [label]


def _sheet_of(address: Any) -> str:
    """The worksheet that an address, or the first of some, names."""
    first = address[0] if isinstance(address, list) and address else address
    return (split_sheet(first)[0] or "") if isinstance(first, str) and "!" in first else ""


def _only_sheet(path: Path) -> str:
    from pytest_cellprose.workbook.model import Workbook, WorkbookError

    try:
        sheets = Workbook.read(path).worksheets
    except WorkbookError:
        return ""
    return sheets[0].name if len(sheets) == 1 else ""


def _certification(
    certificates: Sequence[Certificate], files: Mapping[str, str], shelf: _Shelf, source: str
) -> dict[str, Any]:
    counts = Counter(reason for certificate in certificates for reason in certificate.reasons)
    return {
        "schema": CERTIFICATION_SCHEMA,
        "table": source,
        "files": sorted(files),
        "certified": sum(certificate.certified for certificate in certificates),
        "rows": len(certificates),
        "reasons": {reason: counts[reason] for reason in REASONS if counts[reason]},
        "cases": [
            {
                "id": f"q{certificate.case.number}",
                "case": certificate.case.own_id,
                "file": None if certificate.case.workbook is None else f"{shelf.name(certificate.case.workbook)}.json",
                "certified": certificate.certified,
                "reasons": [doubt._asdict() for doubt in certificate.doubts],
            }
            for certificate in certificates
        ],
    }


def _reference(workbook: Path, out: Path) -> str:
    """The workbook as a path relative to the pack; its bare name where there is none (another drive)."""
    try:
        return Path(os.path.relpath(workbook, out.resolve())).as_posix()
    except ValueError:
        return workbook.name


def write_pack(pack: Pack, out: Path) -> None:
    """Write the pack as a whole or not at all, over an earlier pack but over nothing else; raises `PackError`."""
    refuse_foreign(out)
    if not pack.certified:
        raise PackError("no row is certified: no pack was written")
    target = out.resolve()
    fresh = target.with_name(f".{target.name}.{os.getpid()}.new")
    old = target.with_name(f".{target.name}.{os.getpid()}.old")
    try:
        fresh.mkdir(parents=True)
        for name, text in pack.files.items():
            (fresh / name).write_text(text, encoding="utf-8", newline="\n")
        if target.exists():
            target.rename(old)
        try:
            fresh.rename(target)
        except OSError:
            if old.exists():
                old.rename(target)
            raise
    except OSError as error:
        raise PackError(f"{out}: could not be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def left_out_by_pack(question_file: Path) -> dict[str, list[Reason]]:
    """Of the pack that a question file belongs to: the rows about its workbook that were not certified, and why.

    Empty for a file of no pack. Rows whose workbook was missing belong to no file.
    """
    try:
        content = json.loads((question_file.parent / CERTIFICATION).read_bytes())
        of_file = [case for case in content["cases"] if case["file"] == question_file.name and not case["certified"]]
        said = {str(case["id"]): {doubt["reason"] for doubt in case["reasons"]} for case in of_file}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return {name: [reason for reason in REASONS if reason in reasons] for name, reasons in said.items()}


def refuse_foreign(out: Path) -> None:
    """Raises `PackError` unless `out` is absent, empty, or a pack and nothing else."""
    if not out.exists():
        return
    if not out.is_dir():
        raise PackError(f"--out: {out} is a file: name a folder")
    there = {path.name for path in out.iterdir()}
    if not there:
        return
    try:
        before = json.loads((out / CERTIFICATION).read_text(encoding="utf-8"))
        files = {CERTIFICATION, *before["files"]} if before["schema"] == CERTIFICATION_SCHEMA else set()
    except (OSError, ValueError, KeyError, TypeError):
        files = set()
    if foreign := sorted(there - files):
        raise PackError(f"--out: {out} has {foreign[0]!r}, which no pack wrote: name an empty or a new folder")


def _json(content: object) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"

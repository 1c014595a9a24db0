"""``encode FILE…``: a workbook as text, the way the benchmark sends it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_cellprose.commands.heldout import add_flag, is_held_out_workbook, refusal
from pytest_cellprose.encodings import BUILTIN, find_encoding
from pytest_cellprose.encodings.left_out import LeftOut, left_out
from pytest_cellprose.record.plain import visible
from pytest_cellprose.suites.encode import LIMIT_SECONDS, EncodingFault, encode_text
from pytest_cellprose.wording import counted, some
from pytest_cellprose.workbook.model import Workbook, WorkbookError
from pytest_cellprose.workbook.package import PackageError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from pytest_cellprose.encodings.base import Encoding

DEFAULT = "cellprose_lean_gfm"
BASELINE = "markitdown"
STATS = tuple(encoding for encoding in BUILTIN if encoding.name != "none")
MOST_PLACES = 8
PLANNED = tuple(encoding for encoding in STATS if encoding.name not in ("cellprose_values", "address_list"))
"""What a run compares: as many columns as a terminal has room for."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    names = ", ".join(encoding.name for encoding in STATS)
    parser = commands.add_parser(
        "encode",
        help="print a workbook as text",
        description="Print each workbook as the text that a model would be sent. With several files, each text is "
        "headed by a line with the file's name. A file that cannot be read is reported on stderr and the others go on "
        "(exit code 1). A line on stderr says what a workbook has that its text does not hold; fonts, colours, widths "
        "and the like are never in it (docs/FORMAT.md, section 8).",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="an .xlsx or .xlsm file; - for standard input")
    parser.add_argument("--encoding", default=DEFAULT, metavar="NAME", help=f"one of {names} (default: %(default)s)")
    parser.add_argument("--quiet", action="store_true", help="do not say on stderr what a text leaves out")
    parser.add_argument(
        "--stats",
        action="store_true",
        help="print a table instead: o200k_base tokens in every encoding (in one, with --encoding)",
    )
    add_flag(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from rich.console import Console

    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    try:
        chosen = find_encoding(options.encoding, STATS)
    except LookupError as error:
        errors.print(visible(str(error)), markup=False)
        return 2
    if options.stats:
        compared = STATS if len(options.files) == 1 else PLANNED
        encodings = compared if options.encoding == DEFAULT else (chosen,)
        return _print_stats(options.files, encodings, errors, held_out=options.held_out)
    return _print_texts(options.files, chosen, errors, held_out=options.held_out, quiet=options.quiet)


def _print_texts(files: Sequence[str], encoding: Encoding, errors: Console, *, held_out: bool, quiet: bool) -> int:
    failed = refused = 0
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    shown = _visible_lines if sys.stdout.isatty() else str
    for file in files:
        try:
            workbook = _read(file, held_out=held_out)
            text = encode_text(encoding, workbook, limit=None)
        except _HeldOutError as error:
            errors.print(visible(str(error)), markup=False)
            refused += 1
            continue
        except (WorkbookError, EncodingFault) as error:
            _complain(errors, file, error)
            failed += 1
            continue
        if len(files) > 1:
            print(shown(f"==> {file} <=="))
        sys.stdout.write(shown(text if text.endswith("\n") else f"{text}\n"))
        if not quiet:
            _say_left_out(errors, file, workbook, encoding)
    return _exit_code(failed, refused)


def _visible_lines(text: str) -> str:
    return "\n".join(map(visible, text.split("\n")))


def _say_left_out(errors: Console, file: str, workbook: Workbook, encoding: Encoding) -> None:
    """One line, if there is anything to say. What cannot be counted is said too, and the text is whole all the same."""
    try:
        said = _left_out_text(left_out(workbook, encoding))
    except (PackageError, OSError) as error:
        said = f"what else is in the file could not be counted: {error}"
    if said:
        errors.print(visible(f"{file}: {said}"), markup=False)


def _left_out_text(missing: LeftOut) -> str:
    """``not in the text: 2 comments (B3, D2), 1 link, that 1 row is hidden; 3 numbers rounded``."""
    things = [
        counted(each.number, each.noun) + (f" ({some(each.places, MOST_PLACES)})" if each.places else "")
        for each in missing.omissions
    ]
    if missing.hidden:
        *others, last = [counted(each.number, each.noun) for each in missing.hidden]
        verb = "is" if sum(each.number for each in missing.hidden) == 1 else "are"
        things.append(f"that {', '.join(others)}{' and ' if others else ''}{last} {verb} hidden")
    parts = [f"not in the text: {', '.join(things)}"] if things else []
    if missing.rounded:
        parts.append(f"{counted(missing.rounded, 'number')} rounded")
    return "; ".join(parts)


def _exit_code(failed: int, refused: int) -> int:
    """A held-out file without the flag for it is wrong usage."""
    return 2 if refused else 1 if failed else 0


def _print_stats(files: Sequence[str], encodings: Sequence[Encoding], errors: Console, *, held_out: bool) -> int:
    """One file: a line per encoding. Several: a line per file, and the total."""
    from rich.console import Console
    from rich.progress import track

    failed = refused = 0
    counted: list[_Counted] = []
    for file in track(files, "encoding", console=errors, transient=True, disable=len(files) == 1):
        try:
            workbook = _read(file, held_out=held_out)
        except _HeldOutError as error:
            errors.print(visible(str(error)), markup=False)
            refused += 1
            continue
        except WorkbookError as error:
            _complain(errors, file, error)
            failed += 1
            continue
        tokens: dict[str, int | None] = {}
        for encoding in encodings:
            tokens[encoding.name], problem = _tokens(workbook, encoding)
            if problem is not None:
                errors.print(visible(f"{file}: {problem}"), markup=False)
                failed += 1
        cells = sum(len(row) for sheet in workbook.worksheets for row in sheet.rows.values())
        counted.append(_Counted(file, cells, tokens))
    if counted:
        table = _table_of_one(counted[0]) if len(files) == 1 else _table_of_many(counted)
        Console(highlight=False).print(table)
    return _exit_code(failed, refused)


class _Counted(NamedTuple):
    file: str
    cells: int
    tokens: dict[str, int | None]


def _table_of_one(counted: _Counted) -> Table:
    from rich import box
    from rich.table import Table

    title = f"{counted.file}: {counted.cells:,} cells"
    table = Table("encoding", title=title, title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("o200k_base tokens", justify="right")
    table.add_column(f"over {BASELINE}", justify="right")
    base = counted.tokens.get(BASELINE)
    for name, tokens in counted.tokens.items():
        table.add_row(name, _number(tokens), _ratio(tokens, base))
    return table


def _table_of_many(counted: Sequence[_Counted]) -> Table:
    from rich.table import Table

    names = list(counted[0].tokens)
    folder = os.path.commonpath([Path(each.file).absolute().parent for each in counted])
    totals = {name: _total([each.tokens[name] for each in counted]) for name in names}
    table = Table(title="o200k_base tokens", title_justify="left", box=None, show_footer=True, pad_edge=False)
    table.add_column("file", footer=f"all\nover {BASELINE}" if BASELINE in names else "all", overflow="fold")
    table.add_column("cells", justify="right", footer=f"{sum(each.cells for each in counted):,}", no_wrap=True)
    for name in names:
        footer = "\n".join([_number(totals[name]), _ratio(totals[name], totals.get(BASELINE))])
        table.add_column(name.replace("_", "\n", 1), justify="right", footer=footer, no_wrap=True)
    for each in counted:
        table.add_row(
            os.path.relpath(each.file, folder),
            f"{each.cells:,}",
            *(_number(each.tokens[name]) for name in names),
        )
    return table


def _total(counts: Sequence[int | None]) -> int | None:
    """None as soon as one is unknown: a total of fewer files would compare with nothing."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _number(tokens: int | None) -> str:
    return "–" if tokens is None else f"{tokens:,}"


def _ratio(tokens: int | None, base: int | None) -> str:
    return "" if tokens is None or not base else f"{tokens / base:.2f}×"


def _tokens(workbook: Workbook, encoding: Encoding) -> tuple[int | None, str | None]:
    from pytest_cellprose.models.tokens import count

    try:
        return count(encode_text(encoding, workbook, LIMIT_SECONDS)), None
    except EncodingFault as fault:
        return None, str(fault)


class _HeldOutError(Exception):
    """A held-out file, and the flag that says so was not given."""


def _read(file: str, *, held_out: bool) -> Workbook:
    path = None if file == "-" else Path(file)
    workbook = Workbook.read(sys.stdin.buffer.read() if path is None else path)
    if not held_out and is_held_out_workbook(workbook, path):
        raise _HeldOutError(refusal(file))
    return workbook


def _complain(errors: Console, file: str, error: Exception) -> None:
    """One line: the path as it was typed, and the reason."""
    reason = error.reason if isinstance(error, WorkbookError) else str(error)
    errors.print(visible(f"{file}: {reason}"), markup=False)

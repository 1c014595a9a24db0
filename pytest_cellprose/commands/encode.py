"""``encode FILE…``: a workbook as text, the way the benchmark sends it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_cellprose.encodings import BUILTIN, find_encoding
from pytest_cellprose.run.encode import LIMIT_SECONDS, EncodingFault, encode_text
from pytest_cellprose.workbook.model import Workbook, WorkbookError

if TYPE_CHECKING:
    from rich.console import Console

    from pytest_cellprose.encodings.base import Encoding

DEFAULT = "cellprose_lean_gfm"
BASELINE = "markitdown"
STATS = tuple(encoding for encoding in BUILTIN if encoding.name != "none")


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    names = ", ".join(encoding.name for encoding in STATS)
    parser = commands.add_parser(
        "encode",
        help="print a workbook as text",
        description="Print each workbook as the text that a model would be sent. With several files, each text is "
        "headed by a line with the file's name. A file that cannot be read is reported on stderr and the others go on "
        "(exit code 1).",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="an .xlsx or .xlsm file; - for standard input")
    parser.add_argument("--encoding", default=DEFAULT, metavar="NAME", help=f"one of {names} (default: %(default)s)")
    parser.add_argument(
        "--stats",
        action="store_true",
        help="print a table instead: o200k_base tokens of every encoding (of one, with --encoding)",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from rich.console import Console

    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    try:
        chosen = find_encoding(options.encoding, STATS)
    except LookupError as error:
        errors.print(str(error), markup=False)
        return 2
    if options.stats:
        encodings = STATS if options.encoding == DEFAULT else (chosen,)
        return _print_stats(options.files, encodings, errors)
    return _print_texts(options.files, chosen, errors)


def _print_texts(files: Sequence[str], encoding: Encoding, errors: Console) -> int:
    failed = 0
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    for file in files:
        try:
            text = encode_text(encoding, _read(file), limit=None)
        except (WorkbookError, EncodingFault) as error:
            errors.print(_named(file, error), markup=False)
            failed += 1
            continue
        if len(files) > 1:
            print(f"==> {file} <==")
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
    return 1 if failed else 0


def _print_stats(files: Sequence[str], encodings: Sequence[Encoding], errors: Console) -> int:
    from rich.console import Console
    from rich.progress import track
    from rich.table import Table

    failed = 0
    table = Table(title="o200k_base tokens", title_justify="left")
    table.add_column("file", overflow="fold")
    table.add_column("cells", justify="right")
    for encoding in encodings:
        table.add_column(encoding.name, justify="right", overflow="fold")
    shown = track(files, "encoding", console=errors, transient=True, disable=len(files) == 1)
    for file in shown:
        try:
            workbook = _read(file)
        except WorkbookError as error:
            errors.print(_named(file, error), markup=False)
            failed += 1
            continue
        counts = []
        for encoding in encodings:
            count, problem = _tokens(workbook, encoding)
            if problem is not None:
                errors.print(f"{file}: {problem}", markup=False)
                failed += 1
            counts.append(count)
        cells = sum(len(row) for sheet in workbook.worksheets for row in sheet.rows.values())
        table.add_row(file, f"{cells:,}", *_shown(counts, encodings))
    if table.row_count:
        Console(highlight=False).print(table)
    return 1 if failed else 0


def _tokens(workbook: Workbook, encoding: Encoding) -> tuple[int | None, str | None]:
    from pytest_cellprose.models.tokens import count

    try:
        return count(encode_text(encoding, workbook, LIMIT_SECONDS)), None
    except EncodingFault as fault:
        return None, str(fault)


def _shown(counts: Sequence[int | None], encodings: Sequence[Encoding]) -> list[str]:
    """Token counts, each with its ratio to MarkItDown's."""
    names = [encoding.name for encoding in encodings]
    base = counts[names.index(BASELINE)] if BASELINE in names else None
    return [
        "–" if n is None else f"{n:,}" if not base or name == BASELINE else f"{n:,} ({n / base:.2f}×)"
        for n, name in zip(counts, names, strict=True)
    ]


def _read(file: str) -> Workbook:
    if file == "-":
        return Workbook.read(sys.stdin.buffer.read())
    return Workbook.read(Path(file))


def _named(file: str, error: Exception) -> str:
    """A reader's error names the file itself; an encoding's does not."""
    text = str(error)
    return text if Path(file).name in text else f"{file}: {text}"

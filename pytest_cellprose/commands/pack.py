"""``pack TABLE``: a table of questions becomes question files, with a certification of every row."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from pytest_cellprose.record.plain import visible
from pytest_cellprose.sets.casepack import COLUMNS, PackError, columns_of, make_pack, refuse_foreign, write_pack
from pytest_cellprose.sets.casetable import DELIMITERS, TableError, read_table
from pytest_cellprose.sets.certify import REASONS


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "pack",
        help="turn a table of questions into question files",
        description="Write a question file for every workbook that the table asks about, and certification.json with "
        "every row and all that speaks against it. Only certified rows become questions. Exit code 1 if any row is "
        "left out.",
    )
    parser.add_argument("table", type=Path, metavar="TABLE", help="CSV, TSV, JSON lines or .xlsx, a question a row")
    parser.add_argument("--workbooks", type=Path, required=True, metavar="DIR", help="where the workbooks are")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the pack: a new folder, or a pack")
    parser.add_argument(
        "--delimiter",
        metavar="CHAR",
        help=f"of a text table: a character, or {', '.join(DELIMITERS)} (default: the most frequent in the first line)",
    )
    group = parser.add_argument_group("columns", "which column says what")
    for field, names in COLUMNS.items():
        group.add_argument(f"--{field}", metavar="COL", help=f"(default: {' or '.join(names)})")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    named = {field: value for field in COLUMNS if (value := getattr(options, field)) is not None}
    try:
        refuse_foreign(options.out)
        table = read_table(options.table, options.delimiter)
        columns = columns_of(table, named)
        pack = make_pack(table, columns, options.workbooks, options.out, options.table.name)
        for certificate in pack.certificates:
            for reason, detail in certificate.doubts:
                said = f"row {certificate.case.number} ({certificate.id}): {reason}: {detail}"
                print(visible(said), file=sys.stderr)
        counts = Counter(reason for certificate in pack.certificates for reason in certificate.reasons)
        reasons = "; ".join(f"{reason}: {counts[reason]}" for reason in REASONS if counts[reason])
        print(f"{pack.certified} of {len(pack.certificates)} rows certified" + (f" ({reasons})" if reasons else ""))
        write_pack(pack, options.out)
    except (TableError, PackError) as error:
        print(error, file=sys.stderr)
        return 1
    print(
        f"{options.out}: {len(pack.files) - 1} question files; `pytest --cellprose-cells {options.out}` measures them"
    )
    return 0 if pack.certified == len(pack.certificates) else 1

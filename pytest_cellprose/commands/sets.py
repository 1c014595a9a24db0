"""``sets build SET``: make the workbooks and question files of a test set."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("sets", help="build the benchmark's test sets")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    build = actions.add_parser("build", help="write a set's workbooks and question files")
    names = build.add_subparsers(title="sets", metavar="SET", required=True)
    development = names.add_parser(
        "development",
        help="the generated development workbooks",
        description="Write the generated workbooks, their question files and split.json. The bytes are the same on "
        "every machine, so building into a checkout changes nothing.",
    )
    development.add_argument(
        "folder", nargs="?", type=Path, default=Path("cells"), metavar="DIR", help="where to (default: %(default)s)"
    )
    development.set_defaults(run=build_development)


def build_development(options: argparse.Namespace) -> int:
    from pytest_cellprose.sets.split import SplitError
    from pytest_cellprose.sets.synthetic.development import build_development as build

    try:
        written = build(options.folder)
    except (SplitError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    for built in written:
        print(f"{built.sha256}  {built.name}.xlsx  {len(built.xlsx):,} bytes")
    return 0

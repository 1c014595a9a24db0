"""``--out``: where runs are stored. It means what the plugin's ``--cellprose-out`` means, with the same default."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def add_out(parser: argparse.ArgumentParser, what: str = "where runs are stored") -> None:
    parser.add_argument("--out", metavar="DIR", help=f"{what} (default: as pytest has it here, see --cellprose-out)")


def out_folder(options: argparse.Namespace) -> Path:
    """The folder, relative to the working folder if it is below. Ends the command where pytest would not start."""
    import pytest

    from pytest_cellprose.plan.settings import out_folder_of_command

    if options.out is not None:
        return Path(options.out)
    try:
        found = out_folder_of_command()
    except (pytest.UsageError, ValueError, argparse.ArgumentError) as error:
        print(f"pytest's settings here cannot be read: {error}; name the folder with --out", file=sys.stderr)
        raise SystemExit(2) from None
    here = Path.cwd().resolve()
    return found.relative_to(here) if found.is_relative_to(here) else found

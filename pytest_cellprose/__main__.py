"""``python -m pytest_cellprose COMMAND``."""

from __future__ import annotations

import argparse
import os
import sys

from pytest_cellprose.commands import doctor, encode, pack, report, score, sets


def main(arguments: list[str] | None = None) -> int:
    """Run a command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m pytest_cellprose", description="What is not a test run.")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (encode, score, report, sets, pack, doctor):
        command.add_to(commands)
    options = parser.parse_args(arguments)
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output has seen enough (`… | head`)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())

"""``python -m pytest_cellprose.sets.synthetic DIR``: write the generated development set into a folder."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pytest_cellprose.sets.split import SplitError
from pytest_cellprose.sets.synthetic.development import build_development


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m pytest_cellprose.sets.synthetic",
        description="Write the generated development workbooks, their questions and split.json.",
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="the cells folder to write to")
    try:
        built = build_development(parser.parse_args().folder)
    except (SplitError, OSError) as error:
        sys.exit(str(error))
    for workbook in built:
        print(f"{workbook.sha256}  {workbook.name}.xlsx  {len(workbook.xlsx):,} bytes")


if __name__ == "__main__":
    main()

"""The public development workbooks: in the folder that CELLPROSE_SHARED_DATA names, else beside the checkout."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def development_files() -> list[Path]:
    """The ``.xlsx`` files of ``dev_real``; ends the program with advice if there are none."""
    named = os.environ.get("CELLPROSE_SHARED_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"
    found = sorted((folder / "dev_real").glob("*.xlsx"))
    if not found:
        sys.exit(f"no workbooks in {folder / 'dev_real'}: set CELLPROSE_SHARED_DATA to the folder of public files")
    return found

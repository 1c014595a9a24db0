"""A project of many small generated workbooks, for plans as large as the protocol's.

python benchmarks/generated_project.py FOLDER WORKBOOKS
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.integration.conftest import TEST_CELLS, questions_about, sha256, write_workbook


def write_project(root: Path, workbooks: int) -> Path:
    """A folder with ``cells/wb000.xlsx`` and so on, five questions each, all development workbooks."""
    cells = root / "cells"
    cells.mkdir(parents=True)
    (root / "pyproject.toml").write_text('[tool.pytest]\ntestpaths = ["cells"]\n', encoding="utf-8")
    (cells / "test_cells.py").write_text(TEST_CELLS, encoding="utf-8")
    listed = {}
    for number in range(workbooks):
        workbook = write_workbook(cells / f"wb{number:03}.xlsx", scale=number + 1)
        workbook.with_suffix(".json").write_text(json.dumps(questions_about(workbook, number + 1)), encoding="utf-8")
        listed[workbook.stem] = sha256(workbook)
    split = {"schema": 1, "seed": 7, "development": listed, "heldout": {}}
    (cells / "split.json").write_text(json.dumps(split), encoding="utf-8")
    return root


if __name__ == "__main__":
    write_project(Path(sys.argv[1]), int(sys.argv[2]))

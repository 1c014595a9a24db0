"""The published JSON Schemas of what a run leaves behind.

``python -m pytest_cellprose.report.schema docs/schema`` writes them; a test checks that they are current.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pytest_cellprose.record.record import Record
from pytest_cellprose.report.model import Report
from pytest_cellprose.store.manifest import Manifest

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schemas() -> dict[str, dict[str, Any]]:
    """File name -> JSON Schema of what is written (not of what would be accepted)."""
    return {
        f"{name}.schema.json": {"$schema": DIALECT, **model.model_json_schema(mode="serialization")}
        for name, model in (("manifest", Manifest), ("record", Record), ("report", Report))
    }


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, schema in schemas().items():
        text = json.dumps(schema, ensure_ascii=False, indent=2) + "\n"
        (folder / name).write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]))

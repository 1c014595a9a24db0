"""What lies where under an out folder: the name of every file that a run writes, and who may meet it.

::

    .gitignore                       leaves runs' folders out of git, and nothing else
    runs/RUN.json                    the manifest, to be committed
    RUN/records-development.jsonl    a line for each call, replies included
    RUN/records-heldout.jsonl        never committed
    RUN/ledger.json                  what calls cost; ledger-N.json: of a process elsewhere
    RUN/report.json, verdicts.json, report.md
    RUN/.run.lock, .run.holder       who runs it (`pytest_cellprose.store.lock`)
    RUN/.store.lock, .cell-….lock    one writer at a time; one caller of a cell that several tests take
    RUN/.home                        where the folder was written: tells a copy from a moved one
    RUN/.shared-by                   read by a process elsewhere: it shares the folder then
    RUN/.process-died                a process of the run died: its records may be in no report of a test
    RUN/.interrupted                 Ctrl-C: episodes end with the turn that is under way
    RUN/.sandboxes/                  a lock for each command that may run at a time in an agent's sandbox
    RUN/.probe                       written and removed before the first call: there is room

Under the system's temporary folder, only where the store did not take a record: ``cellprose-RUN-rescued-SET.jsonl``
and ``cellprose-RUN-manifest.json``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from pytest_cellprose.record.record import SetName

RUN_ID_GLOB = "[0-9]" * 8 + "T" + "[0-9]" * 9 + "Z-" + "[0-9a-f]" * 6
"""What `pytest_cellprose.store.identity.new_run_id` gives, as git and shells match it."""

MANIFESTS = "runs"
MANIFEST_GLOB = f"{MANIFESTS}/{RUN_ID_GLOB}.json"
GITIGNORE = ".gitignore"
IGNORED = f"/{GITIGNORE}\n/{RUN_ID_GLOB}/\n"
"""Runs' folders, and nothing else: the out folder may hold files that are to be committed. Manifests are."""

LEDGER = "ledger.json"
REPORT_JSON, VERDICTS_JSON, REPORT_MD = "report.json", "verdicts.json", "report.md"

LOCK_FILE, HOLDER_FILE = ".run.lock", ".run.holder"
HOME_FILE = ".home"
TOKEN_FILE = ".shared-by"
DEATH_MARK = ".process-died"
INTERRUPTION_MARK = ".interrupted"
SANDBOX_SLOTS = ".sandboxes"
PROBE = ".probe"


class StoreError(ValueError):
    """A run that cannot be read or written; the message names the file and what is wrong."""


def manifest_file(out: Path, run: str) -> Path:
    return out / MANIFESTS / f"{run}.json"


def manifest_files(out: Path) -> list[Path]:
    """Of all runs under an out folder, the oldest first: a run's id begins with its time."""
    return sorted((out / MANIFESTS).glob("*.json"))


def records_file(folder: Path, set_name: SetName) -> Path:
    return folder / f"records-{set_name}.jsonl"


def record_files(folder: Path) -> list[Path]:
    """Those of a run's folder that are there, development first."""
    return [path for path in (records_file(folder, name) for name in get_args(SetName)) if path.is_file()]


def ledger_name(place: int) -> str:
    """Of a process that has caps of its own; `place`: among the workers."""
    return f"ledger-{place}.json"


def ledger_files(folder: Path) -> Sequence[Path]:
    """The run's own, and those of processes that had one of their own."""
    return sorted(folder.glob("ledger*.json"))


def lock_file(folder: Path, name: str) -> Path:
    return folder / f".{name}.lock"


def rescued_records(run: str, set_name: SetName) -> Path:
    return Path(tempfile.gettempdir()) / f"cellprose-{run}-rescued-{set_name}.jsonl"


def rescued_manifest(run: str) -> Path:
    return Path(tempfile.gettempdir()) / f"cellprose-{run}-manifest.json"

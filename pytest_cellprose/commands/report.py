"""``report RUN…``: render a stored run again, from its records alone."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator

from pytest_cellprose.commands.out import add_out, out_folder
from pytest_cellprose.record.plain import visible
from pytest_cellprose.report.terminal import lines
from pytest_cellprose.report.transcript import transcript
from pytest_cellprose.report.write import write_reports
from pytest_cellprose.store.layout import REPORT_MD, StoreError
from pytest_cellprose.store.lock import holder_of
from pytest_cellprose.store.manifest import Manifest
from pytest_cellprose.store.merge import MergeError, merge
from pytest_cellprose.store.records import Store, open_run


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "report",
        help="write and print the report of stored runs",
        description="Write report.json, verdicts.json and report.md of each run from its records, and print the "
        "summary. Works for a run that was killed, and for one that still runs.",
    )
    parser.add_argument("runs", nargs="+", metavar="RUN", help="a run id, a run's folder or its manifest")
    add_out(parser)
    parser.add_argument(
        "--merge",
        action="store_true",
        help="put the runs together as a new one and report that: the shards of a CI matrix, or a run and the store of "
        "a machine that took part in it",
    )
    parser.add_argument(
        "--transcript",
        metavar="CELL",
        help="print what one cell's model said, called and was told, turn by turn, and write nothing: the id in "
        "brackets of its test, such as haiku55-agent_xlsx-budget-rep1",
    )
    parser.add_argument(
        "--with-answers",
        action="store_true",
        help="let --transcript show a held-out cell",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    if options.transcript is not None:
        return _transcripts(options)
    if options.merge:
        return _merge(options)
    failed, out = False, out_folder(options)
    for name in options.runs:
        try:
            store = open_run(out, name)
            manifest = store.manifest()
            if not store.folder.is_dir():
                print("\n".join(map(visible, _planned(manifest))))
            store.require_folder()
            damaged: list[str] = []
            report = write_reports(store.folder, manifest, store.records(damaged.append))
        except StoreError as error:
            print(error, file=sys.stderr)
            failed = True
            continue
        except OSError as error:
            print(f"{out}: the report of {name} could not be written: {error}", file=sys.stderr)
            failed = True
            continue
        for where in damaged:
            print(f"{where}: cut short by a crash, left out", file=sys.stderr)
        for line in _absent(store, manifest):
            print(visible(line), file=sys.stderr)
        for line in lines(report, shutil.get_terminal_size().columns, sys.stdout.isatty()):
            print(line)
        holder = holder_of(store.folder)
        if holder is not None:
            print(f"{store.run} is still running ({holder}): this is what it has measured so far")
        print(f"report: {store.folder / REPORT_MD}")
    return 1 if failed else 0


def _transcripts(options: argparse.Namespace) -> int:
    failed, out = False, out_folder(options)
    for name in options.runs:
        try:
            store = open_run(out, name)
            store.require_folder()
            found = [record for record in store.records() if str(record.cell) == options.transcript]
        except StoreError as error:
            print(error, file=sys.stderr)
            failed = True
            continue
        if not found:
            print(visible(f"{store.folder}: no record of a cell {options.transcript!r}"), file=sys.stderr)
            failed = True
        elif found[-1].set == "heldout" and not options.with_answers:
            print(
                visible(f"{options.transcript} is held out, and what was said tells answers: --with-answers shows it"),
                file=sys.stderr,
            )
            failed = True
        else:
            if len(found) > 1:
                print(f"{store.run} called the cell {len(found)} times: this is the last", file=sys.stderr)
            for line in transcript(found[-1], width=shutil.get_terminal_size().columns):
                print(line)
    return 1 if failed else 0


def _merge(options: argparse.Namespace) -> int:
    if len(options.runs) < 2:
        print("report --merge: name at least two runs", file=sys.stderr)
        return 2
    out = out_folder(options)
    try:
        stores = [open_run(out, name) for name in options.runs]
        merged = merge(stores, out)
    except (MergeError, StoreError) as error:
        print(f"report --merge: {error}", file=sys.stderr)
        return 1
    for store in stores:
        for where in store.damaged_lines():
            print(f"{where}: cut short by a crash, left out", file=sys.stderr)
    return run(argparse.Namespace(**{**vars(options), "merge": False, "runs": [merged.run]}))


def _planned(manifest: Manifest) -> Iterator[str]:
    """All that a manifest says by itself."""
    cells = sum(1 for _ in manifest.matrix.cells())
    state = f"finished {manifest.finished}" if manifest.finished else "not finished"
    yield f"{manifest.run}: {manifest.mode} run of {cells:,} cells, started {manifest.started}, {state}"
    yield f"  models: {', '.join(manifest.matrix.models)}"
    yield f"  encodings: {', '.join(manifest.matrix.encodings)}"
    yield f"  workbooks: {', '.join(workbook.name for workbook in manifest.matrix.workbooks)}"


def _absent(store: Store, manifest: Manifest) -> Iterator[str]:
    """The held-out records are never committed, so that a clone may have the others only."""
    if not store.has_records:
        return
    for name in dict.fromkeys(workbook.set for workbook in manifest.matrix.workbooks):
        path = store.records_path(name)
        if not path.is_file():
            yield f"{path} is not here: the {name} cells count as not run"

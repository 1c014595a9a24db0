"""``sets build SET`` makes a test set's files; ``sets check`` certifies every question of the sets that are here."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_cellprose.commands.out import add_out, out_folder

if TYPE_CHECKING:
    from rich.table import Table

    from pytest_cellprose.encodings.base import Encoding
    from pytest_cellprose.plan.models import Registered
    from pytest_cellprose.plan.verify import Compared
    from pytest_cellprose.sets.check import Checked

CELLS = Path("cells")


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("sets", help="build and check test sets")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    _add_build(actions)
    checking = actions.add_parser(
        "check",
        help="certify every question of the sets that are here, or hold a stored run against them",
        description="Hold every recorded truth against the scorer and the workbook, and print which questions are not "
        "certified, and why. Of held-out questions the reasons only, nothing of their content. Exit code 1 if any "
        "question is not certified. With --run: compare all that the run's manifest has a digest of with what is here, "
        "and print what agrees and what differs, by name. Exit code 1 if anything differs or is missing, 2 if there "
        "is no such run.",
    )
    checking.add_argument(
        "folders",
        nargs="*",
        type=Path,
        default=[CELLS],
        metavar="DIR",
        help=f"folders with workbooks and question files (default: {CELLS})",
    )
    checking.add_argument(
        "--split",
        choices=("file", "digest"),
        default="file",
        help="as --cellprose-split: how folders without a split.json are divided (default: %(default)s)",
    )
    checking.add_argument(
        "--run",
        dest="stored",
        metavar="RUN",
        help="check a stored run instead: a run id, a run's folder or its manifest",
    )
    add_out(checking, "where the run is stored, with --run")
    checking.set_defaults(run=check)


def _add_build(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    build = actions.add_parser("build", help="write a set's workbooks and question files")
    names = build.add_subparsers(title="sets", metavar="SET", required=True)
    development = names.add_parser(
        "development",
        help="the generated development workbooks",
        description="Write the generated workbooks, their question files and split.json. The bytes are the same on "
        "every machine, so building into a checkout changes nothing.",
    )
    _add_folder(development, CELLS)
    development.set_defaults(run=build_development)
    spreadsheetbench = names.add_parser(
        "spreadsheetbench",
        help="value questions from published SpreadsheetBench tasks (held out)",
        description="Restate the Cell-Level tasks of a published SpreadsheetBench archive as value questions, and say "
        "how many tasks were dropped under which rule.",
    )
    spreadsheetbench.add_argument(
        "--from", required=True, dest="source", type=Path, metavar="FILE|DIR", help="the archive, packed or unpacked"
    )
    _add_folder(spreadsheetbench, CELLS / "spreadsheetbench")
    spreadsheetbench.set_defaults(run=build_spreadsheetbench)
    realworld = names.add_parser(
        "realworld",
        help="the public workbooks that the real-world questions are about (held out)",
        description="Fetch the public workbooks that the real-world question files name, check each one's SHA-256 and "
        "say what was done.",
    )
    realworld.add_argument(
        "--from",
        dest="source",
        type=Path,
        metavar="DIR",
        help="take the workbooks from DIR (default: download the pinned public copies)",
    )
    _add_folder(realworld, CELLS / "realworld")
    realworld.set_defaults(run=build_realworld)


def _add_folder(parser: argparse.ArgumentParser, default: Path) -> None:
    parser.add_argument(
        "folder", nargs="?", type=Path, default=default, metavar="DIR", help="where to (default: %(default)s)"
    )


def build_development(options: argparse.Namespace) -> int:
    from pytest_cellprose.sets.synthetic.development import build_development as build

    return _print_built(lambda: [f"{b.sha256}  {b.name}.xlsx  {len(b.xlsx):,} bytes" for b in build(options.folder)])


def build_spreadsheetbench(options: argparse.Namespace) -> int:
    from pytest_cellprose.sets.spreadsheetbench import build_spreadsheetbench as build

    return _print_built(lambda: build(options.source, options.folder))


def build_realworld(options: argparse.Namespace) -> int:
    from pytest_cellprose.sets.realworld.build import build_realworld as build

    return _print_built(lambda: build(options.source, options.folder))


def _print_built(build: Callable[[], list[str]]) -> int:
    """Build a set and print what was done; a builder's refusal is the user's to read, not a traceback."""
    try:
        lines = build()
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(lines))
    return 0


def check(options: argparse.Namespace) -> int:
    if options.stored is not None:
        return check_run(options)
    if options.out is not None:
        print("--out goes with --run: only a stored run is looked for there", file=sys.stderr)
        return 2
    return check_sets(options)


def check_run(options: argparse.Namespace) -> int:
    """Hold a stored run against the folders, this package and the project's encodings."""
    from pytest_cellprose.plan.verify import verify
    from pytest_cellprose.record.plain import visible
    from pytest_cellprose.store.layout import StoreError
    from pytest_cellprose.store.records import open_run

    for folder in options.folders:
        if not folder.is_dir():
            print(f"{folder}: not a folder: name the folders with the run's question files", file=sys.stderr)
            return 2
    try:
        store = open_run(out_folder(options), options.stored)
        manifest = store.manifest()
    except StoreError as error:
        print(error, file=sys.stderr)
        return 2
    encodings = _encodings(manifest.encoding_versions, options.folders)
    if encodings is None:
        return 2
    compared = list(verify(manifest, store.out.resolve(), options.folders, encodings))
    print(f"run {store.run}, {manifest.mode}")
    for each in compared:
        print(visible(f"  {each.what:<21} {_verdict(each)}"))
    differing = sum(not each.agrees for each in compared)
    print("all agree" if not differing else f"{differing} of {len(compared)} do not agree")
    return 1 if differing else 0


def _verdict(compared: Compared) -> str:
    counts = [f"{compared.agree} agree" if compared.agree > 1 else "agrees"] if compared.agree else []
    groups = {"differs": compared.differ, "not here": compared.missing, "not on record": compared.not_on_record}
    named = [f"{word}: {', '.join(names)}".removesuffix(": ") for word, names in groups.items() if names]
    return "; ".join([*counts, *named]) or "none"


def _encodings(names: Iterable[str], folders: Iterable[Path]) -> dict[str, Encoding] | None:
    """The encodings of a run: our own, and where that is not enough, those that the project's ``conftest.py``
    registers. None if it cannot be read; pytest has said why."""
    from pytest_cellprose.encodings import BUILTIN
    from pytest_cellprose.method.roles import AGENTS

    found = {encoding.name: encoding for encoding in BUILTIN}
    if found.keys() >= set(names) - AGENTS:  # what agents are handed is the suite's own
        return found
    theirs = _registered(folders)
    return None if theirs is None else {**found, **theirs.encodings}


def _registered(folders: Iterable[Path]) -> Registered | None:
    """What the project's ``conftest.py`` and plugins register; None if they cannot be read, and pytest has said why."""
    import pytest

    from pytest_cellprose.session.registry import registered

    found: list[Registered] = []

    class Asking:
        @pytest.hookimpl(tryfirst=True)
        def pytest_cmdline_main(self, config: pytest.Config) -> int:
            found.append(registered(config))
            return 0

    code = pytest.main([*map(str, folders)], plugins=[Asking()])
    return found[0] if code == 0 and found else None


def check_sets(options: argparse.Namespace) -> int:
    from rich.console import Console

    from pytest_cellprose.record.plain import visible
    from pytest_cellprose.sets.check import check

    by_digest = options.split == "digest"
    found = check(options.folders, split_by_digest=by_digest)
    folders = [folder for folder in options.folders if folder.is_dir()]
    if found.unknown_kinds and (theirs := _registered(folders)) is not None:
        found = check(options.folders, split_by_digest=by_digest, kinds=theirs.kinds)
    checked, problems, lacking, _ = found
    Console().print(_table(checked))
    lines = list(map(visible, [*problems, *_objections(checked)]))
    print("\n".join(lines), end="\n" if lines else "", file=sys.stderr)
    certified, total = sum(each.certified for each in checked), sum(len(each.certificates) for each in checked)
    absent = sum(not each.here for each in checked)
    print(
        f"{certified:,} of {total:,} questions certified"
        + (f"; not here: {absent} of {len(checked)} workbooks" if absent else "")
    )
    if lacking:
        print(f"no question files for {len(lacking)} held-out workbooks of split.json: {', '.join(lacking)}")
    if not total:
        print("no question could be checked: name the folders of question files and workbooks", file=sys.stderr)
    return 0 if total and not problems and all(each.passes for each in checked) else 1


def _table(checked: Iterable[Checked]) -> Table:
    from rich.table import Table
    from rich.text import Text

    from pytest_cellprose.record.plain import visible
    from pytest_cellprose.sets.certify import REASONS

    table = Table("workbook", "set", "certified", "reasons")
    table.columns[2].justify = "right"
    for each in checked:
        counts = Counter(reason for certificate in each.certificates for reason in certificate.reasons)
        reasons = [f"{reason} ({counts[reason]})" for reason in REASONS if counts[reason]]
        reasons += ["wrong question file"] if each.problems else []
        reasons += ["changed"] if each.changed else []
        score = f"{each.certified} of {len(each.certificates)}" if each.here else "not here"
        table.add_row(Text(visible(each.name)), each.set.replace("heldout", "held out"), score, ", ".join(reasons))
    return table


def _objections(checked: Iterable[Checked]) -> Iterator[str]:
    """A line for every doubt; of what is held out the reason alone."""
    for each in checked:
        yield from (f"{each.name}: {text}" for text in each.problems)  # held out: without what was found
        yield from each.changed
        for certificate in each.certificates:
            if each.set == "heldout":
                number = certificate.case.number  # and not the id, which may be anything in a file that is wrong
                yield from (f"{each.name}, question number {number}: {reason}" for reason in certificate.reasons)
            else:
                yield from (f"{each.name}, {certificate.id}: {reason}: {text}" for reason, text in certificate.doubts)

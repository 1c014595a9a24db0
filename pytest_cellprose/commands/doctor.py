"""``doctor``: what is here of all that a run needs, in one table."""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from pytest_cellprose.commands.out import add_out, out_folder
from pytest_cellprose.models.registry import COMPATIBLE
from pytest_cellprose.providers.hosts import OWN_ADDRESSES

if TYPE_CHECKING:
    from pytest_cellprose.providers.wire import Account

VENDORS = (*OWN_ADDRESSES, COMPATIBLE)
_SAMPLE, _SAMPLE_TOKENS = "tiktoken is great!", 6
"""OpenAI's own example of counting tokens, in o200k_base."""


class Check(NamedTuple):
    area: str
    name: str
    state: Literal["ok", "absent", "look", "MISSING"]
    """``absent``: not here, and not needed. ``look``: no run fails for it, but someone should. ``MISSING``: needed."""
    detail: str


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "doctor",
        help="check what a run needs",
        description="Print what is here of all that a run needs: versions, keys (never their values), tokenizers, git, "
        "sandbox tools, caches, and whether our prices agree with an independent table. Exit code 1 if something is "
        "missing that the offline benchmark needs, or with --vendors a live run. Nothing is called.",
    )
    parser.add_argument(
        "--vendors",
        default="",
        metavar="NAMES",
        help=f"also require what live calls to these need, comma-separated, of {', '.join(VENDORS)} (default: none)",
    )
    add_out(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    vendors = [name.strip() for name in options.vendors.split(",") if name.strip()]
    unknown = [name for name in vendors if name not in VENDORS]
    if unknown:
        print(f"--vendors: unknown vendor {unknown[0]!r}: known are {', '.join(VENDORS)}", file=sys.stderr)
        return 2
    checks = list(examine(Path.cwd(), out_folder(options).absolute(), vendors))
    _print(checks)
    return 1 if any(check.state == "MISSING" for check in checks) else 0


def examine(root: Path, out: Path, vendors: Sequence[str] = ()) -> Iterator[Check]:
    """Everything that is checked, in the order of the table. `vendors`: those that must be ready for live calls."""
    yield from _versions()
    yield from _keys(vendors)
    yield from _tokenizers()
    yield _git(root, out)
    yield from _sandbox()
    yield from _folders(root, out)
    yield from _prices()


def _versions() -> Iterator[Check]:
    from packaging.requirements import Requirement

    yield Check("versions", "Python", "ok", platform.python_version())
    yield Check("versions", "pytest-cellprose", "ok", version("pytest-cellprose"))
    for text in requires("pytest-cellprose") or ():
        needed = Requirement(text)
        if needed.marker is not None and not needed.marker.evaluate({"extra": ""}):
            continue
        try:
            found = version(needed.name)
        except PackageNotFoundError:
            yield Check("versions", needed.name, "MISSING", f"not installed: pip install '{needed}'")
            continue
        if needed.specifier.contains(found, prereleases=True):
            yield Check("versions", needed.name, "ok", found)
        else:
            yield Check("versions", needed.name, "MISSING", f"{found} is not {needed.specifier}")


def _keys(vendors: Sequence[str]) -> Iterator[Check]:
    for vendor in VENDORS:
        account: Account = importlib.import_module(f"pytest_cellprose.providers.{vendor}").ACCOUNT
        problem = account.problem()
        needed = vendor in vendors
        set_ = [name for name in _variables(account) if os.environ.get(name)]
        said = ", ".join(f"{name} is set" for name in set_) or "no variable is set"
        if problem is None:
            yield Check("keys", vendor, "ok", said)
        else:
            yield Check("keys", vendor, "MISSING" if needed else "absent", problem)


def _variables(account: Account) -> list[str]:
    names = [account.key_variable, account.other_key_variable, account.url_variable]
    return [name for name in names if name is not None]


def _tokenizers() -> Iterator[Check]:
    from pytest_cellprose.models.tokens import RanksNotHere, count, count_tiktoken, counter_name

    try:
        counted = count(_SAMPLE)
    except Exception as error:  # a compiled module that does not load can raise anything
        yield Check("tokenizers", "toktok-rs", "MISSING", f"cannot count: {error}")
    else:
        right = counted == _SAMPLE_TOKENS
        detail = counter_name() if right else f"counts {counted} tokens where {_SAMPLE_TOKENS} are"
        yield Check("tokenizers", "toktok-rs", "ok" if right else "MISSING", detail)
    try:
        right = count_tiktoken(_SAMPLE) == _SAMPLE_TOKENS
    except RanksNotHere as why:
        yield Check("tokenizers", "tiktoken", "absent", f"{why}; toktok-rs counts in its place")
    else:
        yield Check("tokenizers", "tiktoken", "ok" if right else "look", "its ranks are at hand")


def _git(root: Path, out: Path) -> Check:
    from pytest_cellprose.store.identity import git_state

    git = git_state(root, out)
    if git.commit is None:
        return Check("git", "repository", "absent", "no commit here: a final run needs the benchmark under git")
    if git.dirty:
        return Check(
            "git", "repository", "look", f"{git.commit[:12]}, with uncommitted changes: a final run refuses them"
        )
    return Check("git", "repository", "ok", f"{git.commit[:12]}, clean")


def _sandbox() -> Iterator[Check]:
    """By a command that runs in it: agents' baselines need one, and nothing else does."""
    from pytest_cellprose.sandbox.choose import probe, sandboxes

    with tempfile.TemporaryDirectory(prefix="cellprose-") as folder:
        found = probe(sandboxes(None, 1, Path(folder)))
    if found.problem is not None:
        yield Check("sandbox", "bubblewrap", "absent", f"{found.problem}: only agent encodings use it; {found.remedy}")
    else:
        facts = found.facts
        yield Check("sandbox", "bubblewrap", "ok", f"Python {facts['python']}, openpyxl {facts['openpyxl']}")


def _folders(root: Path, out: Path) -> Iterator[Check]:
    cache = root / ".pytest_cache" / "d" / "cellprose"
    if cache.is_dir():
        sizes = [file.stat().st_size for file in cache.iterdir() if file.is_file()]
        yield Check("caches", "encoded texts", "ok", f"{len(sizes):,} entries, {sum(sizes) / 1e6:,.1f} MB in {cache}")
    else:
        yield Check("caches", "encoded texts", "absent", "none yet: the first run makes them")
    from pytest_cellprose.store.layout import manifest_files

    standing = next(folder for folder in (out, *out.parents) if folder.exists())
    if not (standing.is_dir() and os.access(standing, os.W_OK)):
        yield Check(
            "results", "store", "MISSING", f"{standing} cannot be written to: name another with --cellprose-out"
        )
        return
    runs = len(manifest_files(out))
    free = shutil.disk_usage(standing).free / 1e9
    yield Check("results", "store", "ok", f"{runs:,} runs in {out}, {free:,.0f} GB free")


def _prices() -> Iterator[Check]:
    from pytest_cellprose.models.agreement import price_agreement
    from pytest_cellprose.models.registry import builtin_models
    from pytest_cellprose.plan.scope import price_dates

    models = [model for model in builtin_models().values() if model.live]
    found = price_agreement(models)
    agreed = f"agrees with all {len(models)} models" if not found.differ and not found.unknown else found.line()
    yield Check("prices", found.table, "look" if found.differ or found.unknown else "ok", agreed)
    late = price_dates(models, datetime.now(UTC).date())
    detail = "; ".join(late) or "checked today"
    yield Check("prices", "price pages", "look" if late else "ok", detail)


def _print(checks: Sequence[Check]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    styles = {"MISSING": "bold red", "look": "yellow", "absent": "dim", "ok": "green"}
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    area = None
    for check in checks:
        shown = check.area if check.area != area else ""
        table.add_row(
            shown, check.name, f"[{styles[check.state]}]{check.state}[/]", escape(check.detail)
        )  # brackets are markup to rich
        area = check.area
    Console(highlight=False).print(table)

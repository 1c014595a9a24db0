"""What identifies a run and the software that made it (protocol 5.5, DESIGN section 7)."""

from __future__ import annotations

import platform
import secrets
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pytest_cellprose.record import Git

MEASURED_PACKAGES = (
    "pytest-cellprose",
    "pytest",
    "pytest-xdist",
    "markitdown",
    "pandas",
    "openpyxl",
    "markdownify",
    "numpy",
    "toktok-rs",
    "toon-format",
)
"""Their versions are part of a run: each has a hand in what was sent, counted or scored."""


def new_run_id() -> str:
    """Sorts by time, to the millisecond: ``20261129T214718042Z-3f9a2c``."""
    now = datetime.now(UTC)
    return f"{now:%Y%m%dT%H%M%S}{now.microsecond // 1000:03d}Z-{secrets.token_hex(3)}"


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in MEASURED_PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def git_state(root: Path, out: Path) -> Git:
    """The commit and whether the tree is dirty as git sees it, untracked files included, `out` excluded."""
    commit = _git(root, "rev-parse", "--verify", "HEAD")
    pathspecs = ["."]
    top = _git(root, "rev-parse", "--show-toplevel")
    if top and out.is_relative_to(Path(top).resolve()):
        pathspecs = [":/", f":(exclude,top){out.relative_to(Path(top).resolve()).as_posix()}"]
    status = _git(root, "status", "--porcelain", "--untracked-files=normal", "--", *pathspecs)
    if commit is None and status is None:
        return Git()
    return Git(commit=commit, dirty=status != "")


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()

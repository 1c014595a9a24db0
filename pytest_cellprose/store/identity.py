"""What identifies a run and the software that made it (protocol section 5.5)."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import secrets
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pytest_cellprose.files import digest, sha256_of
from pytest_cellprose.record.record import Git
from pytest_cellprose.store.layout import MANIFEST_GLOB, RUN_ID_GLOB
from pytest_cellprose.store.manifest import EncodedTexts, Manifest

PACKAGES = (
    "pytest-cellprose",
    "pytest",
    "pytest-xdist",
    "execnet",
    "anthropic",
    "openai",
    "httpx2",
    "markitdown",
    "pandas",
    "openpyxl",
    "markdownify",
    "numpy",
    "toktok-rs",
    "tiktoken",
    "toon-format",
    "jsonschema",
)
"""Their versions are part of a run: each has a hand in what was sent, answered, counted or scored."""

_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""What a repository without a commit is compared with; git knows it everywhere."""
_ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
"""Set inside a git hook: they would name another repository than the folder's."""
_PLAIN_DIFF = (
    "-c", "core.quotePath=true",
    "-c", "diff.algorithm=myers",
    "-c", "diff.context=3",
    "-c", "diff.indentHeuristic=true",
    "-c", "diff.interHunkContext=0",
    "-c", "diff.mnemonicPrefix=false",
    "-c", "diff.noprefix=false",
    "-c", "diff.relative=false",
    "-c", "diff.suppressBlankEmpty=false",
)  # fmt: skip
"""A user's taste in diffs does not change the digest."""


def new_run_id() -> str:
    """Sorts by time, to the millisecond: ``20261129T214718042Z-3f9a2c``."""
    now = datetime.now(UTC)
    return f"{now:%Y%m%dT%H%M%S}{now.microsecond // 1000:03d}Z-{secrets.token_hex(3)}"


def experiment_id(manifest: Manifest) -> str:
    """SHA-256 over all that decides what is measured (protocol section 5.5): equal for runs that measure the same.

    The order of lists counts, that of a mapping's keys does not. Outside it: the run's id, times, folder and
    command line, parallelism, calls in flight, caps, approval, retries, prices, what was resumed or excluded, and code
    that plans, stores or shows.
    """
    model = {"alias", "model_id", "vendor", "max_tokens", "settings"}
    parts = manifest.model_dump(
        mode="json",
        include={
            "mode": True,
            "challenger": True,
            "matrix": True,
            "models": {"__all__": model},
            "method": True,
            "versions": True,
            "measuring_sha256" if manifest.measuring_sha256 else "package_sha256": True,
            "encoding_versions": True,
            "encoding_code": True,
            "agents": True,
            "git": True,
        },
    )
    return digest(parts)


def versions() -> dict[str, str]:
    """Of Python and of the installed `PACKAGES`, from their metadata: none of them is imported."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def git_state(root: Path, out: Path) -> Git:
    """The repository that holds `root`: its commit, whether it is dirty as git sees it, untracked files included,
    and if it is, the digest of what differs. What runs wrote under `out` is excluded, and nothing else there."""
    top = _git(root, "rev-parse", "--show-toplevel")
    if top is None:
        return Git()
    paths = _all_but_runs(out, Path(top).resolve())
    commit = _git(root, "rev-parse", "--verify", "--quiet", "HEAD")
    status = _git(root, "status", "--porcelain", "--untracked-files=normal", "--", *paths)
    dirty = None if status is None else status != ""
    return Git(commit=commit, dirty=dirty, diff_sha256=_diff_sha256(Path(top), commit, paths) if dirty else None)


def has_commit(root: Path, commit: str) -> bool:
    """Whether `root` lies in a repository that has the commit."""
    return _git(root, "cat-file", "-e", f"{commit}^{{commit}}") is not None


def same_but_results(root: Path, out: Path, commit: str) -> bool:
    """Whether HEAD has the same files as `commit`, what runs wrote under `out` aside; False if there is no such
    commit."""
    top = _git(root, "rev-parse", "--show-toplevel")
    if top is None:
        return False
    paths = _all_but_runs(out, Path(top).resolve())
    return _git(root, "diff", "--quiet", "--no-ext-diff", commit, "HEAD", "--", *paths) == ""


def repository(root: Path) -> Path | None:
    """The top folder of the repository that holds `root`."""
    top = _git(root, "rev-parse", "--show-toplevel")
    return None if top is None else Path(top).resolve()


def tracked_files(root: Path, name: str) -> list[Path]:
    """Every file of that name that git tracks in the repository that holds `root`."""
    top = repository(root)
    listed = None if top is None else _git_bytes(top, "ls-files", "-z", "--", f":(top,glob)**/{name}")
    if top is None or listed is None:
        return []
    return [top / os.fsdecode(path) for path in listed.split(b"\0") if path]


def committed_manifests(root: Path) -> dict[str, bytes]:
    """Every version of every ``runs/RUN.json`` that the history of HEAD has, deleted ones too: name in git -> content.

    A shallow clone knows no more than it has.
    """
    spec = f":(top,glob)**/{MANIFEST_GLOB}"
    raw = ("--format=", "--raw", "-z", "--no-abbrev", "--no-renames", "--full-history", "-m", "--root")
    listed = _git_bytes(root, "log", *raw, "HEAD", "--", spec)
    fields = [] if listed is None else listed.split(b"\0")
    found: dict[str, bytes] = {}
    for change, path in zip(fields[::2], fields[1::2], strict=False):  # ":100644 100644 OLD NEW M", then the path
        blob = change.split()[3].decode()
        if set(blob) != {"0"}:
            content = _git_bytes(root, "cat-file", "blob", blob)
            if content is not None:
                found[f"{os.fsdecode(path)}@{blob[:12]}"] = content
    return found


def _all_but_runs(out: Path, top: Path) -> list[str]:
    """Pathspecs of a whole repository without what runs write under an out folder: their manifests and folders."""
    if not out.is_relative_to(top):
        return [":/"]
    under = "" if out == top else _literally(out.relative_to(top).as_posix() + "/")
    written = (MANIFEST_GLOB, f"{RUN_ID_GLOB}/**")
    return [":/", *(f":(exclude,top,glob){under}{files}" for files in written)]


def _literally(path: str) -> str:
    """A path in a pathspec with ``glob``."""
    return re.sub(r"([\\*?\[])", r"\\\1", path)


def _diff_sha256(top: Path, commit: str | None, paths: Sequence[str]) -> str | None:
    """SHA-256 of the diff to the commit, followed by a line for each untracked file: its name and its digest."""
    options = ("--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--binary", "--full-index")
    diff = _git_bytes(top, *_PLAIN_DIFF, "diff", *options, commit or _EMPTY_TREE, "--", *paths)
    untracked = _git_bytes(top, "ls-files", "--others", "--exclude-standard", "-z", "--", *paths)
    if diff is None or untracked is None:
        return None
    total = hashlib.sha256(diff)
    for name in sorted(filter(None, untracked.split(b"\0"))):
        total.update(b"\n" + name + b" " + _content(top / os.fsdecode(name)).encode())
    return total.hexdigest()


def _content(path: Path) -> str:
    """A file's digest; of a link where it leads, and of a repository inside this one nothing but its name."""
    if path.is_symlink():
        return f"-> {path.readlink()}"
    return sha256_of(path) if path.is_file() else ""


def _git(root: Path, *arguments: str) -> str | None:
    output = _git_bytes(root, *arguments)
    return None if output is None else os.fsdecode(output).strip()


def _git_bytes(root: Path, *arguments: str) -> bytes | None:
    """What git prints; None if it fails or is not there."""
    environment = {name: value for name, value in os.environ.items() if name not in _ELSEWHERE}
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, timeout=60, check=True, env=environment
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def with_encoded(manifest: Manifest, encoded: EncodedTexts) -> Manifest:
    """The manifest with these texts, and the digest over all inputs that goes with them."""
    more = manifest.model_copy(update={"encoded": encoded})
    return more.model_copy(update={"inputs_sha256": inputs_sha256(more)})


def inputs_sha256(manifest: Manifest) -> str:
    """SHA-256 over the digests of all inputs by name, as canonical JSON."""
    books = manifest.matrix.workbooks
    return digest(
        {
            "questions": {book.name: book.questions_sha256 for book in books},
            "workbooks": {book.name: book.workbook_sha256 for book in books},
            "encoded": manifest.encoded.sha256,
            "splits": manifest.split_sha256,
        }
    )

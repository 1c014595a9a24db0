"""Where a run's folder was written, so that a copy can be told from a folder that was moved.

In ``<run>/.home``, which git ignores: a machine's path is nothing to commit.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

HOME_FILE = ".home"


def note_home(folder: Path) -> None:
    """Say that the run lives in this folder now."""
    (folder / HOME_FILE).write_text(f"{folder.resolve()}\n", encoding="utf-8")


def note_moved(folder: Path) -> None:
    """The same for a folder that was found elsewhere, if it can be written: a later copy is then told from it."""
    if (folder / HOME_FILE).is_file() and _home(folder) != folder.resolve():
        with contextlib.suppress(OSError):
            note_home(folder)


def original_of(folder: Path) -> Path | None:
    """The folder that this one was copied from, if it is still there; None for a moved one, or where nothing says."""
    home = _home(folder)
    if home is None:
        return None
    try:
        return home if home.is_dir() and not home.samefile(folder) else None
    except OSError:
        return None


def _home(folder: Path) -> Path | None:
    try:
        text = (folder / HOME_FILE).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return Path(text) if text else None

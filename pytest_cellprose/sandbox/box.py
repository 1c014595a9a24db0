"""A sandbox's folder on this machine: the working directory with its files, and what is remembered beside it."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from pytest_cellprose.sandbox.base import Limits, SandboxError

_PREFIX = "cellprose-box-"
_NAME = re.compile(rf"{_PREFIX}(\d+)-")
_TIME = 1_600_000_000
"""Of every file that a model finds: seconds since the epoch. When a workbook was made is nobody's business."""


class Box:
    """Two folders in a private one: ``work``, with the files, and ``state``, with the last working directory.

    A third, ``packages``, has copies of Python packages: where they lie in a user's home or repository would be told by
    the list of mounts.
    """

    def __init__(
        self, files: Mapping[str, Path | bytes], limits: Limits, owner: int | None, packages: Iterable[Path] = ()
    ) -> None:
        """`owner`: the user id that commands run under; None: our own. Raises `SandboxError`."""
        self._files = dict(files)
        self._limits = limits
        self._owner = owner
        try:
            self.folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
            for package in packages:
                shutil.copytree(package, self.packages / package.name)
            self._fill()
        except (OSError, shutil.Error) as error:
            raise SandboxError(f"no folder for a sandbox could be made: {error}") from None

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def packages(self) -> Path:
        return self.folder / "packages"

    def over_quota(self) -> bool:
        """Whether there is more in the two folders than there may be, or something that cannot be counted."""
        count, size, left = 0, 0, [str(self.work), str(self.state)]
        while left:
            folder = left.pop()
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        count += 1
                        size += entry.stat(follow_symlinks=False).st_blocks * 512
                        if entry.is_dir(follow_symlinks=False):
                            left.append(entry.path)
                        if count > self._limits.files or size > self._limits.disk_bytes:
                            return True
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ENOTDIR):  # it went away meanwhile
                    return True
        return False

    def refill(self) -> None:
        """Empty the folders and put the files back. Raises `SandboxError`."""
        remove(self.work)
        remove(self.state)
        try:
            self._fill()
        except OSError as error:
            raise SandboxError(f"the folder of a sandbox could not be made anew: {error}") from None

    def close(self) -> None:
        remove(self.folder)

    def _fill(self) -> None:
        for folder in (self.work, self.state):
            folder.mkdir(mode=0o700)
        for name, content in self._files.items():
            path = self.work / name
            if isinstance(content, bytes):
                path.write_bytes(content)
            else:
                shutil.copyfile(content, path)
            path.chmod(0o644)
            self._give(path)
        for folder in (self.work, self.state):
            self._give(folder)

    def _give(self, path: Path) -> None:
        if self._owner is not None:
            os.chown(path, self._owner, self._owner)
        os.utime(path, (_TIME, _TIME))


def is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def remove(folder: Path) -> None:
    """Whatever it holds: folders that nobody may read, and deeper ones than Python can follow. Never raises."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        if not is_root():
            subprocess.run(["chmod", "-R", "u+rwX", "--", str(folder)], capture_output=True, check=False)
        subprocess.run(["rm", "-rf", "--", str(folder)], capture_output=True, check=False)


def remove_stale() -> None:
    """The folders of processes of ours that died before they could remove them."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        found = _NAME.match(folder.name)
        if found is None or folder.is_symlink() or _lives(int(found[1])):
            continue
        with contextlib.suppress(OSError):
            if folder.stat().st_uid == os.getuid():
                remove(folder)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

"""The sandbox of bubblewrap: namespaces of its own, a read-only system, a directory with the files, and no network.

A process that runs as root gives its commands a user id of their own first, for limits do nothing for root. Arguments
are handed over by a file descriptor, so that no command line tells of this machine's folders.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from pytest_cellprose.sandbox.base import Limits, SandboxError
from pytest_cellprose.sandbox.bounded import Program
from pytest_cellprose.sandbox.box import Box, is_root
from pytest_cellprose.sandbox.shell import launcher

PROGRAM = "bwrap"
WORK, STATE = "/work", "/run/state"
_PYTHON, _PACKAGES = "/opt/python", "/opt/packages"
PACKAGES = ("openpyxl", "et_xmlfile")
"""What Python has beyond its own library."""
_SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_CONFIGURATION = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives")
"""Of ``/etc``: what programs need to start."""
_OWN_USERS = 50_000
"""The first of the user ids that commands run under where we are root, one for each sandbox."""
_USERS = 10_000
_made = itertools.count(os.getpid())


_USER_NAMESPACE = ("--unshare-user", "--disable-userns", "--uid", "1000", "--gid", "1000")
"""In which nobody has rights, and no other can be made."""


def own_user() -> int | None:
    """A user id that no other sandbox has at the same time; None where we are no root and have one already."""
    return _OWN_USERS + next(_made) % _USERS if is_root() else None


def program(box: Box, user: int | None, limits: Limits) -> Program:
    """How a command is run in a box. Raises `SandboxError` if bubblewrap is not installed."""
    found = shutil.which(PROGRAM)
    if found is None:
        raise SandboxError("bubblewrap is not installed")
    arguments = [*_namespaces(user), *_system(), *_places(box, limits), *_environment()]
    inside = [*_as_user(user), *launcher(limits, WORK, STATE)]
    return Program(
        [found, "--args", "{fd}", "--", *inside], environment={}, arguments="\0".join(arguments).encode() + b"\0"
    )


def _namespaces(user: int | None) -> Iterator[str]:
    yield from ("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--unshare-cgroup-try")
    yield from ("--die-with-parent", "--new-session", "--hostname", "sandbox", "--clearenv", "--cap-drop", "ALL")
    if user is None:
        yield from _USER_NAMESPACE
    else:  # what `setpriv` needs, and gives away
        yield from ("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP")


def _as_user(user: int | None) -> list[str]:
    if user is None:
        return []
    drop = ["--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]
    return [
        *("/usr/bin/setpriv", f"--reuid={user}", f"--regid={user}", *drop, "--"),
        *("/usr/bin/bwrap", "--dev-bind", "/", "/", "--die-with-parent", *_USER_NAMESPACE, "--"),
    ]


def _system() -> Iterator[str]:
    """And Python at a neutral place: its own may be in a user's home."""
    for place in ("/etc", "/opt", "/run"):
        yield from ("--perms", "0755", "--dir", place)
    yield from ("--ro-bind", "/usr", "/usr")
    if _python() == _PYTHON:
        yield from ("--ro-bind", str(Path(sys.base_prefix).resolve()), _PYTHON)
    for name in _SYSTEM:
        path = Path("/", name)
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))
    for name in _CONFIGURATION:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")


def _python() -> str:
    """Where Python is found inside."""
    prefix = Path(sys.base_prefix).resolve()
    return str(prefix) if prefix.is_relative_to("/usr") else _PYTHON


def packages() -> list[Path]:
    """The folders of `PACKAGES`, as they are installed here."""
    specs = filter(None, map(importlib.util.find_spec, PACKAGES))
    return [Path(spec.submodule_search_locations[0]) for spec in specs if spec.submodule_search_locations]


def _places(box: Box, limits: Limits) -> Iterator[str]:
    """What can be written, each bounded: the box, and memory."""
    yield from ("--proc", "/proc", "--dev", "/dev")
    for place in ("/tmp", "/dev/shm"):
        yield from ("--perms", "1777", "--size", str(limits.disk_bytes), "--tmpfs", place)
    yield from ("--bind", str(box.work), WORK, "--bind", str(box.state), STATE)
    yield from ("--ro-bind-try", str(box.packages), _PACKAGES)
    for file, line in {"passwd": f"agent:x:1000:1000::{WORK}:/bin/bash\n", "group": "agent:x:1000:\n"}.items():
        path = box.folder / file
        path.write_text(line)
        path.chmod(0o644)
        yield from ("--ro-bind", str(path), f"/etc/{file}")
    yield from ("--remount-ro", "/dev", "--remount-ro", "/")


def _environment() -> Iterator[str]:
    told = {
        "PATH": f"{_python()}/bin:/usr/local/bin:/usr/bin:/bin",
        "HOME": WORK,
        "USER": "agent",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "PYTHONPATH": _PACKAGES,
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    if _python() == _PYTHON:  # for a Python that looks for its library where it was built
        told["LD_LIBRARY_PATH"] = f"{_PYTHON}/lib"
    for name, value in told.items():
        yield from ("--setenv", name, value)

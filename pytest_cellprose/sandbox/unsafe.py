"""No sandbox: this machine as it is, with limits and a folder of its own.

A command can read what the user can read, answers and keys in files among them, use the network, and leave processes
behind that made a session of their own. For a machine that is itself a sandbox; never for held-out workbooks.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pytest_cellprose.sandbox.base import Limits
from pytest_cellprose.sandbox.bounded import Program
from pytest_cellprose.sandbox.box import Box
from pytest_cellprose.sandbox.shell import launcher


def program(box: Box, limits: Limits) -> Program:
    """How a command is run in a box."""
    environment = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"]),
        "HOME": str(box.work),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return Program(launcher(limits, str(box.work), str(box.state)), environment, folder=box.work)

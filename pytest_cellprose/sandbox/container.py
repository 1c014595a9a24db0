"""The sandbox of an image that docker or podman runs: a container for each command, with the box as its only folder.

What the image holds is the user's: it needs bash, and python3 with openpyxl.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from pytest_cellprose.sandbox.base import Limits, SandboxError
from pytest_cellprose.sandbox.bounded import Program
from pytest_cellprose.sandbox.box import Box
from pytest_cellprose.sandbox.shell import launcher

ENGINES = ("docker", "podman")
_ENGINES_OWN = (
    *("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"),
    *("CONTAINER_HOST", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF"),
)
"""Variables that tell an engine where its service, its settings and its images are."""
WORK, STATE = "/work", "/run/state"
_STOP_SECONDS = 30.0
_numbers = itertools.count()


def program(box: Box, image: str, user: int | None, limits: Limits) -> Program:
    """How a command is run in a box, which `user` owns; None: whoever we are.

    Raises `SandboxError` if neither engine is installed.
    """
    engine = next((found for found in map(shutil.which, ENGINES) if found is not None), None)
    if engine is None:
        raise SandboxError("neither docker nor podman is installed")
    name = f"cellprose-{os.getpid()}-{next(_numbers)}"
    temporary = f"rw,nosuid,nodev,size={limits.disk_bytes}"
    owner = os.getuid() if user is None else user
    # podman takes who starts it for root, inside, where it is not root itself
    same = ["--userns", "keep-id"] if user is None and Path(engine).name == "podman" else []
    argv = [
        engine, "run", "--rm", "--interactive", "--name", name,
        "--network", "none", "--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
        "--user", f"{owner}:{owner}", *same, "--hostname", "sandbox",
        "--memory", str(limits.memory_bytes), "--memory-swap", str(limits.memory_bytes),
        "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096", "--ulimit", "core=0:0",
        "--pids-limit", str(limits.processes),
        "--tmpfs", f"/tmp:{temporary},mode=1777", "--shm-size", str(limits.disk_bytes),
        "--volume", f"{box.work}:{WORK}", "--volume", f"{box.state}:{STATE}", "--workdir", WORK,
        "--env", f"HOME={WORK}", "--env", "LANG=C.UTF-8", "--env", "PYTHONDONTWRITEBYTECODE=1",
        "--entrypoint", "", image, *launcher(limits, WORK, STATE),
    ]  # fmt: skip
    # the engine's own: where its service is, and its settings; nothing of it goes into the container
    kept = ("PATH", "HOME", *_ENGINES_OWN)
    environment = {variable: os.environ[variable] for variable in kept if variable in os.environ}

    def stop() -> None:
        with suppress(OSError, subprocess.SubprocessError):
            command = [engine, "rm", "--force", name]
            subprocess.run(command, capture_output=True, env=environment, timeout=_STOP_SECONDS, check=False)

    return Program(argv, environment, stop=stop)

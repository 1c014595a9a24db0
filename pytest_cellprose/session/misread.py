"""Option values that pytest takes for paths before it knows the plugin's options."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest
from _pytest.config.findpaths import determine_setup

from pytest_cellprose.options import OUT, VALUED


def refuse_misread(config: pytest.Config) -> None:
    """Raise `pytest.UsageError` if a value apart from its option cost the project its ini file.

    pytest looks for its ini file before it knows a plugin's options, and takes a value that happens to be a path
    for a path to collect: ``--cellprose-cells ../elsewhere`` has it look there.
    """
    arguments = [*shlex.split(os.environ.get("PYTEST_ADDOPTS", "")), *map(str, config.invocation_params.args)]
    apart = {place: name for place, name in enumerate(arguments[:-1], 1) if name in VALUED}
    meant = [argument for place, argument in enumerate(arguments) if place not in apart]
    as_meant = _ini_file(config, meant)
    misread = [
        (name, arguments[place])
        for place, name in apart.items()
        if _ini_file(config, [*meant, _read_as(name, arguments[place])]) != as_meant
    ]
    if misread:
        values = ", ".join(value for _, value in misread)
        file = as_meant[1] or f"none, in {as_meant[0]}"
        raise pytest.UsageError(
            f"cellprose: pytest takes {values} for a path to collect, and looks for the project's ini file there "
            f"(it should be {file}): write {' '.join(f'{name}={shlex.quote(value)}' for name, value in misread)}"
        )


def _read_as(name: str, value: str) -> str:
    """The path that pytest sees; a results folder that is not there yet will be, once a worker starts anew."""
    if name != OUT.flag:
        return value
    path = Path(value).absolute()
    return str(next(folder for folder in (path, *path.parents) if folder.exists()))


def _ini_file(config: pytest.Config, arguments: Sequence[str]) -> tuple[Path, Path | None]:
    """rootdir and ini file as pytest settles them from these arguments."""
    rootdir, file, *_ = determine_setup(
        inifile=config.option.inifilename,
        override_ini=None,
        args=arguments,
        rootdir_cmd_arg=config.option.rootdir or None,
        invocation_dir=config.invocation_params.dir,
    )
    return rootdir, file

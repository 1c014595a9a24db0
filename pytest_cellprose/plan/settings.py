"""What the user asked for, by options and the ini file, as one frozen `Settings`."""

from __future__ import annotations

import os
import shlex
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from _pytest.config.findpaths import determine_setup

from pytest_cellprose.method.roles import MAX_CALL_USD, MAX_TURNS
from pytest_cellprose.option_values import DEFAULT_IN_FLIGHT
from pytest_cellprose.options import (
    DEFAULT_CELLS,
    DEFAULT_CHALLENGER,
    DEFAULT_OUT,
    OPTIONS,
    OUT,
)


@dataclass(frozen=True)
class Settings:
    """What the user asked for; None where an option was not given and the mode decides."""

    cells: tuple[Path, ...]
    """The cells folders, absolute, in the order of search."""
    out: Path
    usual_out: Path
    """Where runs are stored if ``--cellprose-out`` does not say otherwise."""
    final: bool = False
    live: bool = False
    """Paid calls are allowed; `final` implies it."""
    models: tuple[str, ...] | None = None
    ini_models: tuple[str, ...] = ()
    openweight: tuple[str, ...] = ()
    """Aliases that ``--cellprose-openweight`` describes; planned beside the mode's models."""
    effort: str | None = None
    """The level asked of every live model."""
    encodings: tuple[str, ...] | None = None
    workbooks: tuple[str, ...] | None = None
    reps: int | None = None
    none_once: bool = False
    subset: int | None = None
    seed: int | None = None
    exclude: tuple[str, ...] = ()
    """Runs whose held-out workbooks are not to be drawn again."""
    shard: tuple[int, int] | None = None
    """K and N: run the K-th of N shares of the plan."""
    split_by_digest: bool = False
    challenger: str = DEFAULT_CHALLENGER
    baseline: str | None = None
    """The encoding whose pairs are shown first among the paired comparisons; None: the challenger."""
    allow_dirty: bool = False
    approve_usd: Decimal | None = None
    vendor_caps: Mapping[str, Decimal] = field(default_factory=dict)
    """Vendor -> dollars after which no call to it is started."""
    in_flight: Mapping[str, int] = field(default_factory=lambda: {"": DEFAULT_IN_FLIGHT})
    """Vendor -> live calls at a time in one process; under the empty name, for every other vendor."""
    resume: str | None = None
    """The run to take cells over from."""
    fault_retries: int | None = None
    """How many more passes there are over faulted cells at the end of the run; None: as the mode has it."""
    max_turns: int = MAX_TURNS
    """Requests that an agent may make for a cell."""
    max_call_usd: Decimal = MAX_CALL_USD
    """Their list price."""
    sandbox: str | None = None
    """``container:IMAGE`` or ``unsafe``; None: bubblewrap."""
    sandboxes: int | None = None
    """Commands of agents that may run at a time; None: as many as there are processors."""
    wall_clock: float | None = None
    """Seconds after which no live call is started."""


def cells_folders(config: pytest.Config) -> tuple[Path, ...]:
    """The cells folders that the ini file and the command line name; empty means the plugin stays silent."""
    named = [config.rootpath / line for line in config.getini("cellprose_cells")]
    if not named and (config.rootpath / DEFAULT_CELLS / "split.json").is_file():
        named = [config.rootpath / DEFAULT_CELLS]
    given = [config.invocation_params.dir / folder for folder in config.getoption("cellprose_cells")]
    return tuple(folder.resolve() for folder in named + given)


def read_settings(config: pytest.Config) -> Settings:
    """Raises `pytest.UsageError` that lists every option with a bad value."""
    problems: list[str] = []
    values = {option.setting: option.value(config, problems) for option in OPTIONS if option.setting is not None}
    given: dict[str, Any] = {name: value for name, value in values.items() if value is not None}
    settings = Settings(
        cells=cells_folders(config),
        out=out_folder(config),
        usual_out=usual_out_folder(config),
        ini_models=tuple(config.getini("cellprose_models")),
        openweight=tuple(text.partition("=")[0].strip() for text in config.getoption("cellprose_openweight")),
        **given | {"live": given["final"] or given["live"]},
    )
    problems += _misfits(settings)
    if problems:
        raise pytest.UsageError("\n".join(["cellprose:", *(f"  {problem}" for problem in problems)]))
    return settings


def _misfits(settings: Settings) -> Iterator[str]:
    """Options that do not go with the mode or with each other."""
    if settings.subset is not None and not settings.final:
        yield "--cellprose-subset draws held-out workbooks: it goes with --cellprose-final"
    elif settings.seed is not None and settings.subset is None:
        yield "--cellprose-seed is the seed of a draw: it goes with --cellprose-subset N"
    if settings.shard is not None and settings.final:
        yield "--cellprose-shard: a final run is one invocation (protocol section 5.2) and has no shards"
    if settings.exclude and not settings.final:
        yield "--cellprose-exclude leaves held-out workbooks out: it goes with --cellprose-final"
    if settings.fault_retries and settings.final:
        yield "--cellprose-fault-retries: in a final run a call is made once (protocol section 5.6)"


def out_folder(config: pytest.Config) -> Path:
    """Where runs are stored, absolute."""
    return _stored(config.getoption(OUT.dest), config.getini(OUT.dest), config.rootpath, config.invocation_params.dir)


def usual_out_folder(config: pytest.Config) -> Path:
    """The same, whatever ``--cellprose-out`` says."""
    return _stored(None, config.getini(OUT.dest), config.rootpath, config.invocation_params.dir)


def out_folder_of_command() -> Path:
    """Where a plain ``pytest`` in the working folder stores its runs: by option in ``addopts`` or ``PYTEST_ADDOPTS``,
    by the ini setting, or by default. Raises `pytest.UsageError` where pytest
    would not start, ValueError for open quotes, `argparse.ArgumentError` for an option without its value."""
    here = Path.cwd()
    rootdir, _, ini, *_ = determine_setup(
        inifile=None, override_ini=None, args=(), rootdir_cmd_arg=None, invocation_dir=here
    )
    told = {name: ini[name].value for name in ("addopts", OUT.dest) if name in ini}
    added = told.get("addopts", "")
    usual = [str(each) for each in added] if isinstance(added, list) else shlex.split(str(added))
    parser = ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument(OUT.flag)
    found, _rest = parser.parse_known_args([*usual, *shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))])
    return _stored(getattr(found, OUT.dest), str(told.get(OUT.dest, "")), rootdir, here)


def _stored(given: str | None, ini: str, root: Path, here: Path) -> Path:
    return (root / (ini or DEFAULT_OUT) if given is None else here / given).resolve()


def cache_folder(config: pytest.Config) -> Path | None:
    """Where encoded texts are kept between runs; None without pytest's cache."""
    cache = getattr(config, "cache", None)  # absent under -p no:cacheprovider
    if cache is None:
        return None
    try:
        return Path(cache.mkdir("cellprose"))
    except OSError:
        return None

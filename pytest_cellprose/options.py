"""Command-line and ini options, and their validation into one frozen `Settings`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TypeVar

import pytest
from _pytest.config.findpaths import determine_setup

DEFAULT_CELLS = "cells"
DEFAULT_OUT = "results"
DEFAULT_CHALLENGER = "cellprose_lean_gfm"

DEFAULT_IN_FLIGHT = 8

VALUED = (
    "--cellprose-cells",
    "--cellprose-models",
    "--cellprose-encodings",
    "--cellprose-workbooks",
    "--cellprose-reps",
    "--cellprose-subset",
    "--cellprose-seed",
    "--cellprose-exclude",
    "--cellprose-shard",
    "--cellprose-split",
    "--cellprose-challenger",
    "--cellprose-baseline",
    "--cellprose-effort",
    "--cellprose-openweight",
    "--cellprose-approve-usd",
    "--cellprose-vendor-cap-usd",
    "--cellprose-wall-clock",
    "--cellprose-inflight",
    "--cellprose-fault-retries",
    "--cellprose-resume",
    "--cellprose-out",
)
"""The options that take a value."""

T = TypeVar("T")


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
    wall_clock: float | None = None
    """Seconds after which no live call is started."""


def add_options(parser: pytest.Parser) -> None:
    """Declare every option and ini setting of the plugin."""
    _add_plan_options(parser)
    _add_gate_options(parser)


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
    if name != "--cellprose-out":
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


def _add_plan_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("cellprose", "cellprose: which way of handing a spreadsheet to a model pays")
    group.addoption(
        "--cellprose-cells",
        action="append",
        default=[],
        metavar="DIR",
        help="also take workbooks with question files from DIR and its subfolders; may be given several times "
        "(besides the ini setting cellprose_cells)",
    )
    group.addoption(
        "--cellprose-models",
        default=None,
        metavar="NAMES",
        help="plan these models only, comma-separated; alias@effort for another effort "
        "(default: ini cellprose_models, else reader and the proposed six; in a final run the six)",
    )
    group.addoption(
        "--cellprose-encodings",
        default=None,
        metavar="NAMES",
        help="plan these encodings only, comma-separated (default: all that the mode has)",
    )
    group.addoption(
        "--cellprose-workbooks",
        default=None,
        metavar="NAMES",
        help="plan these workbooks only, comma-separated (default: all of the mode's sets)",
    )
    group.addoption(
        "--cellprose-reps",
        default=None,
        metavar="N",
        help="repeats of every cell (default: 1; in a final run 3)",
    )
    group.addoption(
        "--cellprose-none-once",
        action="store_true",
        default=False,
        help="run the control encoding 'none' in the first repeat only (default: in every repeat)",
    )
    group.addoption(
        "--cellprose-subset",
        default=None,
        metavar="N",
        help="in a final run, draw N held-out workbooks at random instead of all; a smaller N is a prefix of a "
        "larger one",
    )
    group.addoption(
        "--cellprose-seed",
        default=None,
        metavar="S",
        help="seed of that draw (default: the seed in split.json)",
    )
    group.addoption(
        "--cellprose-exclude",
        action="append",
        default=[],
        metavar="RUN",
        help="in a final run, leave out the held-out workbooks that RUN already looked at (a run id, a run's folder or "
        "its manifest); comma-separated or given several times (default: none are left out)",
    )
    group.addoption(
        "--cellprose-shard",
        default=None,
        metavar="K/N",
        help="run the K-th of N shares of the plan, for a CI matrix; `python -m pytest_cellprose report --merge` puts "
        "the runs together; not in a final run (default: the whole plan)",
    )
    group.addoption(
        "--cellprose-split",
        default="file",
        choices=("file", "digest"),
        help="how folders without a split.json are divided: 'file' takes them as development, 'digest' makes a "
        "third development by SHA-256 of the name and the rest held out (default: %(default)s)",
    )
    group.addoption(
        "--cellprose-challenger",
        default=DEFAULT_CHALLENGER,
        metavar="NAME",
        help="the encoding whose cost per correct answer is compared with every other (default: %(default)s)",
    )
    group.addoption(
        "--cellprose-baseline",
        default=None,
        metavar="NAME",
        help="the encoding that the report's paired comparisons (exact McNemar tests) set every other against "
        "(default: the challenger)",
    )
    group.addoption(
        "--cellprose-effort",
        default=None,
        metavar="LEVEL",
        help="ask this effort of every live model, as alias@LEVEL does of one; refused for a model that does not "
        "declare it (default: each model's registered effort)",
    )
    group.addoption(
        "--cellprose-openweight",
        action="append",
        default=[],
        metavar="ALIAS=ID,IN,OUT",
        help="plan a model of any Chat Completions host (CELLPROSE_COMPAT_BASE_URL) at the host's price for input "
        "and output, dollars per million tokens; may be given several times",
    )
    parser.addini(
        "cellprose_cells",
        "folders with workbooks and question files, relative to rootdir "
        f"(default: {DEFAULT_CELLS!r} if it has a split.json)",
        type="linelist",
        default=[],
    )
    parser.addini(
        "cellprose_models",
        "models of the plan (default: reader and the proposed six; in a final run the six)",
        type="args",
        default=[],
    )
    parser.addini(
        "cellprose_registry",
        "TOML files with models of your own, relative to rootdir: a table per alias, as in the package's registry.toml",
        type="linelist",
        default=[],
    )


def _add_gate_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("cellprose")
    group.addoption(
        "--cellprose-live",
        action="store_true",
        default=False,
        help="call live models, which costs money (default: their cells are planned and skipped)",
    )
    group.addoption(
        "--cellprose-final",
        action="store_true",
        default=False,
        help="the publishable run under the protocol: held-out workbooks, three repeats, a clean working tree; "
        "calls live models (default: off)",
    )
    group.addoption(
        "--cellprose-allow-dirty",
        action="store_true",
        default=False,
        help="let a final run start from a working tree with uncommitted changes; recorded (default: refused)",
    )
    group.addoption(
        "--cellprose-approve-usd",
        default=None,
        metavar="N",
        help="approve an expected cost of up to N dollars; above $5 a run needs it "
        "(default: ini cellprose_approve_usd, else none)",
    )
    group.addoption(
        "--cellprose-vendor-cap-usd",
        default=None,
        metavar="VENDOR=N,...",
        help="start no call that a vendor's cap of N dollars has no room for; the run is then incomplete "
        "(default: ini cellprose_vendor_cap_usd, else no cap)",
    )
    group.addoption(
        "--cellprose-inflight",
        default=None,
        metavar="N",
        help="live calls that one process keeps running while tests report in order; vendor=N for one vendor, "
        f"comma-separated (default: {DEFAULT_IN_FLIGHT} for each)",
    )
    group.addoption(
        "--cellprose-fault-retries",
        default=None,
        metavar="N",
        help="at the end of the run, run cells that were not measured again, up to N times; not after a spend cap, and "
        "not in a final run (default: 1)",
    )
    group.addoption(
        "--cellprose-resume",
        default=None,
        metavar="RUN",
        help="take over every cell of RUN (a run id, a run's folder or its manifest) that was asked exactly what it "
        "would be asked now, and score it again; faults and other cells are run; not in a final run (default: none)",
    )
    group.addoption(
        "--cellprose-wall-clock",
        default=None,
        metavar="SECONDS",
        help="start no live call later than SECONDS after the plan was made; the run is then incomplete "
        "(default: no bound)",
    )
    group.addoption(
        "--cellprose-out",
        default=None,
        metavar="DIR",
        help=f"where runs are stored (default: ini cellprose_out, else {DEFAULT_OUT!r} under rootdir)",
    )
    parser.addini("cellprose_approve_usd", "see --cellprose-approve-usd", type="string", default="")
    parser.addini("cellprose_vendor_cap_usd", "see --cellprose-vendor-cap-usd", type="string", default="")
    parser.addini("cellprose_out", "see --cellprose-out", type="string", default="")


def cells_folders(config: pytest.Config) -> tuple[Path, ...]:
    """The cells folders that the ini file and the command line name; empty means the plugin stays silent."""
    named = [config.rootpath / line for line in config.getini("cellprose_cells")]
    if not named and (config.rootpath / DEFAULT_CELLS / "split.json").is_file():
        named = [config.rootpath / DEFAULT_CELLS]
    given = [config.invocation_params.dir / folder for folder in config.getoption("cellprose_cells")]
    return tuple(folder.resolve() for folder in named + given)


def read_settings(config: pytest.Config) -> Settings:
    """Raises `pytest.UsageError` that lists every option with a bad value."""
    option = config.getoption
    problems: list[str] = []

    def checked(flag: str, text: str | None, read: Callable[[str], T], wanted: str) -> T | None:
        if text is None or text == "":
            return None
        try:
            return read(text)
        except (ValueError, InvalidOperation):
            problems.append(f"{flag}: {text!r} is not {wanted}")
            return None

    approve = option("cellprose_approve_usd")
    approve_flag = "--cellprose-approve-usd" if approve is not None else "ini cellprose_approve_usd"
    caps = option("cellprose_vendor_cap_usd")
    caps_flag = "--cellprose-vendor-cap-usd" if caps is not None else "ini cellprose_vendor_cap_usd"
    final = bool(option("cellprose_final"))
    settings = Settings(
        cells=cells_folders(config),
        out=out_folder(config),
        usual_out=usual_out_folder(config),
        final=final,
        live=final or bool(option("cellprose_live")),
        models=checked("--cellprose-models", option("cellprose_models"), _names, "a list of models"),
        ini_models=tuple(config.getini("cellprose_models")),
        openweight=tuple(text.partition("=")[0].strip() for text in option("cellprose_openweight")),
        effort=option("cellprose_effort") or None,
        encodings=checked("--cellprose-encodings", option("cellprose_encodings"), _names, "a list of encodings"),
        workbooks=checked("--cellprose-workbooks", option("cellprose_workbooks"), _names, "a list of workbooks"),
        reps=checked("--cellprose-reps", option("cellprose_reps"), _positive, "a whole number from 1"),
        none_once=bool(option("cellprose_none_once")),
        subset=checked("--cellprose-subset", option("cellprose_subset"), _positive, "a whole number from 1"),
        seed=checked("--cellprose-seed", option("cellprose_seed"), int, "a whole number"),
        exclude=checked("--cellprose-exclude", ",".join(option("cellprose_exclude")), _names, "a list of runs") or (),
        shard=checked("--cellprose-shard", option("cellprose_shard"), _shard, "K/N with K from 1 to N"),
        split_by_digest=option("cellprose_split") == "digest",
        challenger=option("cellprose_challenger"),
        baseline=option("cellprose_baseline") or None,
        allow_dirty=bool(option("cellprose_allow_dirty")),
        approve_usd=checked(
            approve_flag,
            approve if approve is not None else config.getini("cellprose_approve_usd"),
            _amount,
            "an amount of dollars",
        ),
        in_flight=checked(
            "--cellprose-inflight", option("cellprose_inflight"), _in_flight, "a number of calls, or vendor=number"
        )
        or {"": DEFAULT_IN_FLIGHT},
        vendor_caps=checked(
            caps_flag,
            caps if caps is not None else config.getini("cellprose_vendor_cap_usd"),
            _amounts,
            "a list of vendor=dollars",
        )
        or {},
        resume=option("cellprose_resume"),
        fault_retries=checked(
            "--cellprose-fault-retries", option("cellprose_fault_retries"), _natural, "a whole number from 0"
        ),
        wall_clock=checked("--cellprose-wall-clock", option("cellprose_wall_clock"), _seconds, "a number of seconds"),
    )
    if settings.subset is not None and not final:
        problems.append("--cellprose-subset draws held-out workbooks: it goes with --cellprose-final")
    elif settings.seed is not None and settings.subset is None:
        problems.append("--cellprose-seed is the seed of a draw: it goes with --cellprose-subset N")
    if settings.shard is not None and final:
        problems.append("--cellprose-shard: a final run is one invocation (protocol section 5.2) and has no shards")
    if settings.exclude and not final:
        problems.append("--cellprose-exclude leaves held-out workbooks out: it goes with --cellprose-final")
    if settings.fault_retries and final:
        problems.append("--cellprose-fault-retries: in a final run a call is made once (protocol section 5.6)")
    if problems:
        raise pytest.UsageError("\n".join(["cellprose:", *(f"  {problem}" for problem in problems)]))
    return settings


def out_folder(config: pytest.Config) -> Path:
    """Where runs are stored, absolute."""
    given = config.getoption("cellprose_out")
    if given is not None:
        return Path(config.invocation_params.dir / given).resolve()
    return usual_out_folder(config)


def usual_out_folder(config: pytest.Config) -> Path:
    """The same, whatever ``--cellprose-out`` says."""
    return (config.rootpath / (config.getini("cellprose_out") or DEFAULT_OUT)).resolve()


def _names(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise ValueError
    return names


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _shard(text: str) -> tuple[int, int]:
    number, _, of = text.partition("/")
    shard = _positive(number), _positive(of)
    if shard[0] > shard[1]:
        raise ValueError
    return shard


def _natural(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError
    return number


def _amount(text: str) -> Decimal:
    amount = Decimal(text.removeprefix("$"))
    if not amount.is_finite() or amount < 0:
        raise ValueError
    return amount


def _amounts(text: str) -> dict[str, Decimal]:
    amounts: dict[str, Decimal] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        vendor, equals, amount = (part.strip() for part in pair.partition("="))
        if not vendor or not equals or vendor in amounts:
            raise ValueError
        amounts[vendor] = _amount(amount)
    if not amounts:
        raise ValueError
    return amounts


def _in_flight(text: str) -> dict[str, int]:
    """``8``, or ``anthropic=8,openai=32``, or both: a number alone is for the vendors that are not named."""
    numbers = {"": DEFAULT_IN_FLIGHT}
    for part in _names(text):
        vendor, equals, number = (piece.strip() for piece in part.rpartition("="))
        if bool(equals) != bool(vendor):
            raise ValueError
        numbers[vendor] = _positive(number)
    return numbers


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < float("inf"):
        raise ValueError
    return seconds


def cache_folder(config: pytest.Config) -> Path | None:
    """Where encoded texts are kept between runs; None without pytest's cache."""
    cache = getattr(config, "cache", None)  # absent under -p no:cacheprovider
    if cache is None:
        return None
    try:
        return Path(cache.mkdir("cellprose"))
    except OSError:
        return None

"""Every option and ini setting of the plugin, declared once: what is offered, read and documented is in `TABLE`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import InvalidOperation
from typing import Any, Literal

import pytest

from pytest_cellprose import option_values as values
from pytest_cellprose.option_values import DEFAULT_IN_FLIGHT

DEFAULT_CELLS = "cells"
DEFAULT_OUT = "results"
DEFAULT_CHALLENGER = "cellprose_lean_gfm"


@dataclass(frozen=True)
class Ini:
    """A setting of the ini file."""

    name: str
    help: str
    type: Literal["string", "linelist", "args"] = "string"
    """A string stands in for its option; a list is read beside it."""


@dataclass(frozen=True)
class Option:
    """An option of the command line, with its ini setting where it has one."""

    flag: str
    help: str
    setting: str | None = None
    """The field of `pytest_cellprose.plan.settings.Settings` that it gives; None: that takes more than this option."""
    metavar: str | None = None
    """What it takes; None: nothing, it is a switch, or one of `choices`."""
    read: Callable[[str], object] | None = None
    """Raises ValueError for what is not `wanted`; None: the text as it is. An empty text is not read, but not given."""
    wanted: str = ""
    """What a wrong value is not: "a whole number"."""
    several: bool = False
    """It may be given several times; its values are read as one, with commas."""
    default: str | None = None
    choices: tuple[str, ...] = ()
    ini: Ini | None = None

    @property
    def dest(self) -> str:
        return self.flag.removeprefix("--").replace("-", "_")

    @property
    def takes_value(self) -> bool:
        return self.metavar is not None or bool(self.choices)

    def declaration(self) -> dict[str, Any]:
        """The keywords of ``addoption``."""
        if not self.takes_value:
            return {"action": "store_true", "default": False, "help": self.help}
        if self.several:
            return {"action": "append", "default": [], "metavar": self.metavar, "help": self.help}
        shown = {"choices": self.choices} if self.choices else {"metavar": self.metavar}
        return {"default": self.default, "help": self.help, **shown}

    def given(self, config: pytest.Config) -> tuple[str, str | None]:
        """Where a value is from, for messages, and the value as text; None: it was not given."""
        value = config.getoption(self.dest)
        if self.several:
            value = ",".join(value)
        if value is None and self.ini is not None and self.ini.type == "string":
            return f"ini {self.ini.name}", config.getini(self.ini.name)
        return self.flag, value

    def value(self, config: pytest.Config, problems: list[str]) -> object:
        """What was asked for; None where nothing was, or where it is wrong, which goes into `problems`."""
        if not self.takes_value:
            return bool(config.getoption(self.dest))
        where, text = self.given(config)
        if text is None or self.read is None:
            return text
        try:
            return self.read(text) if text else None
        except (ValueError, InvalidOperation):
            problems.append(f"{where}: {text!r} is not {self.wanted}")
            return None


OUT = Option(
    "--cellprose-out",
    metavar="DIR",
    help=f"where runs are stored (default: ini cellprose_out, else {DEFAULT_OUT!r} under rootdir)",
    ini=Ini("cellprose_out", "see --cellprose-out"),
)

CELLS = Option(
    "--cellprose-cells",
    metavar="DIR",
    several=True,
    help="also take workbooks with question files from DIR and its subfolders; may be given several times "
    "(besides the ini setting cellprose_cells)",
    ini=Ini(
        "cellprose_cells",
        "folders with workbooks and question files, relative to rootdir "
        f"(default: {DEFAULT_CELLS!r} if it has a split.json)",
        type="linelist",
    ),
)

TABLE: tuple[Option | Ini, ...] = (
    CELLS,
    Option(
        "--cellprose-models",
        setting="models",
        metavar="NAMES",
        read=values.names,
        wanted="a list of models",
        help="plan these models only, comma-separated; alias@effort for another effort "
        "(default: ini cellprose_models, else reader and the proposed six; in a final run the six)",
        ini=Ini(
            "cellprose_models",
            "models of the plan (default: reader and the proposed six; in a final run the six)",
            type="args",
        ),
    ),
    Option(
        "--cellprose-encodings",
        setting="encodings",
        metavar="NAMES",
        read=values.names,
        wanted="a list of encodings",
        help="plan these encodings only, comma-separated (default: all that the mode has)",
    ),
    Option(
        "--cellprose-workbooks",
        setting="workbooks",
        metavar="NAMES",
        read=values.names,
        wanted="a list of workbooks",
        help="plan these workbooks only, comma-separated (default: all of the mode's sets)",
    ),
    Option(
        "--cellprose-reps",
        setting="reps",
        metavar="N",
        read=values.positive,
        wanted="a whole number from 1",
        help="repeats of every cell (default: 1; in a final run 3)",
    ),
    Option(
        "--cellprose-none-once",
        setting="none_once",
        help="run the control encoding 'none' in the first repeat only (default: in every repeat)",
    ),
    Option(
        "--cellprose-subset",
        setting="subset",
        metavar="N",
        read=values.positive,
        wanted="a whole number from 1",
        help="in a final run, draw N held-out workbooks at random instead of all; a smaller N is a prefix of a "
        "larger one",
    ),
    Option(
        "--cellprose-seed",
        setting="seed",
        metavar="S",
        read=int,
        wanted="a whole number",
        help="seed of that draw (default: the seed in split.json)",
    ),
    Option(
        "--cellprose-exclude",
        setting="exclude",
        metavar="RUN",
        several=True,
        read=values.names,
        wanted="a list of runs",
        help="in a final run, leave out the held-out workbooks that RUN already looked at (a run id, a run's folder or "
        "its manifest); comma-separated or given several times (default: none are left out)",
    ),
    Option(
        "--cellprose-shard",
        setting="shard",
        metavar="K/N",
        read=values.shard,
        wanted="K/N with K from 1 to N",
        help="run the K-th of N shares of the plan, for a CI matrix; `python -m pytest_cellprose report --merge` puts "
        "the runs together; not in a final run (default: the whole plan)",
    ),
    Option(
        "--cellprose-split",
        setting="split_by_digest",
        default="file",
        choices=("file", "digest"),
        read=lambda text: text == "digest",
        help="how folders without a split.json are divided: 'file' takes them as development, 'digest' makes a "
        "third development by SHA-256 of the name and the rest held out (default: %(default)s)",
    ),
    Option(
        "--cellprose-challenger",
        setting="challenger",
        metavar="NAME",
        default=DEFAULT_CHALLENGER,
        help="the encoding whose cost per correct answer is compared with every other (default: %(default)s)",
    ),
    Option(
        "--cellprose-baseline",
        setting="baseline",
        metavar="NAME",
        read=str,
        help="the encoding that the report's paired comparisons (exact McNemar tests) set every other against "
        "(default: the challenger)",
    ),
    Option(
        "--cellprose-effort",
        setting="effort",
        metavar="LEVEL",
        read=str,
        help="ask this effort of every live model, as alias@LEVEL does of one; refused for a model that does not "
        "declare it (default: each model's registered effort)",
    ),
    Option(
        "--cellprose-openweight",
        metavar="ALIAS=ID,IN,OUT",
        several=True,
        help="plan a model of any Chat Completions host (CELLPROSE_COMPAT_BASE_URL) at the host's price for input "
        "and output, dollars per million tokens; may be given several times",
    ),
    Ini(
        "cellprose_registry",
        "TOML files with models of your own, relative to rootdir: a table per alias, as in the package's registry.toml",
        type="linelist",
    ),
    Option(
        "--cellprose-live",
        setting="live",
        help="call live models, which costs money (default: their cells are planned and skipped)",
    ),
    Option(
        "--cellprose-final",
        setting="final",
        help="the publishable run under the protocol: held-out workbooks, three repeats, a clean working tree; "
        "calls live models (default: off)",
    ),
    Option(
        "--cellprose-allow-dirty",
        setting="allow_dirty",
        help="let a final run start from a working tree with uncommitted changes; recorded (default: refused)",
    ),
    Option(
        "--cellprose-approve-usd",
        setting="approve_usd",
        metavar="N",
        read=values.amount,
        wanted="an amount of dollars",
        help="approve an expected cost of up to N dollars; above $5 a run needs it "
        "(default: ini cellprose_approve_usd, else none)",
        ini=Ini("cellprose_approve_usd", "see --cellprose-approve-usd"),
    ),
    Option(
        "--cellprose-vendor-cap-usd",
        setting="vendor_caps",
        metavar="VENDOR=N,...",
        read=values.amounts,
        wanted="a list of vendor=dollars",
        help="start no call that a vendor's cap of N dollars has no room for; the run is then incomplete "
        "(default: ini cellprose_vendor_cap_usd, else no cap)",
        ini=Ini("cellprose_vendor_cap_usd", "see --cellprose-vendor-cap-usd"),
    ),
    Option(
        "--cellprose-max-turns",
        setting="max_turns",
        metavar="N",
        read=values.positive,
        wanted="a whole number from 1",
        help="requests that an agent may make for a cell; the one after is not made, and the cell has failed "
        "(turn_limit); any other number makes a final run not publishable (default: 40)",
    ),
    Option(
        "--cellprose-max-call-usd",
        setting="max_call_usd",
        metavar="N",
        read=values.amount,
        wanted="an amount of dollars",
        help="list price of all requests that an agent may make for a cell; one whose input would go beyond is not "
        "made, and the cell has failed (budget_exceeded); any other makes a final run not publishable (default: 1)",
    ),
    Option(
        "--cellprose-sandbox",
        setting="sandbox",
        metavar="KIND",
        read=values.sandbox,
        wanted="container:IMAGE or unsafe",
        help="where the commands of agents run instead of bubblewrap: container:IMAGE takes docker or podman; unsafe "
        "is this machine as it is, with no held-out workbooks and nothing to publish (default: bubblewrap)",
    ),
    Option(
        "--cellprose-sandboxes",
        setting="sandboxes",
        metavar="N",
        read=values.positive,
        wanted="a whole number from 1",
        help="commands of agents that may run at a time, in all processes together (default: as many as there are "
        "processors)",
    ),
    Option(
        "--cellprose-inflight",
        setting="in_flight",
        metavar="N",
        read=values.in_flight,
        wanted="a number of calls, or vendor=number",
        help="live calls that one process keeps running while tests report in order; vendor=N for one vendor, "
        f"comma-separated (default: {DEFAULT_IN_FLIGHT} for each)",
    ),
    Option(
        "--cellprose-fault-retries",
        setting="fault_retries",
        metavar="N",
        read=values.natural,
        wanted="a whole number from 0",
        help="at the end of the run, run cells that were not measured again, up to N times; not after a spend cap, and "
        "not in a final run (default: 1)",
    ),
    Option(
        "--cellprose-resume",
        setting="resume",
        metavar="RUN",
        help="take over every cell of RUN (a run id, a run's folder or its manifest) that was asked exactly what it "
        "would be asked now, and score it again; faults and other cells are run; not in a final run (default: none)",
    ),
    Option(
        "--cellprose-wall-clock",
        setting="wall_clock",
        metavar="SECONDS",
        read=values.seconds,
        wanted="a number of seconds",
        help="start no live call later than SECONDS after the plan was made; the run is then incomplete "
        "(default: no bound)",
    ),
    OUT,
)

OPTIONS = tuple(row for row in TABLE if isinstance(row, Option))
VALUED = tuple(option.flag for option in OPTIONS if option.takes_value)
"""The options that take a value."""


def add_options(parser: pytest.Parser) -> None:
    """Declare every option and ini setting of the plugin."""
    group = parser.getgroup("cellprose", "cellprose: which way of handing a spreadsheet to a model pays")
    for row in TABLE:
        if isinstance(row, Option):
            group.addoption(row.flag, **row.declaration())
        ini = row if isinstance(row, Ini) else row.ini
        if ini is not None:
            parser.addini(ini.name, ini.help, type=ini.type, default="" if ini.type == "string" else [])


def documentation() -> Iterator[str]:
    """The same as the lines of a Markdown table, for docs/options.md."""
    yield from ("| option | ini setting | what it does |", "|---|---|---|")
    for row in TABLE:
        option, ini = (row, row.ini) if isinstance(row, Option) else (None, row)
        taken = [option.flag, "|".join(option.choices) or option.metavar] if option else []
        form, said = "=".join(filter(None, taken)), row.help.replace("%(default)s", (option and option.default) or "")
        cells = (form and f"`{form}`", f"`{ini.name}`" if ini else "", said)
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"

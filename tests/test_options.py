"""One table of options: what pytest offers, what is read and what is documented are the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_cellprose.options import OPTIONS, TABLE, VALUED, Ini, documentation
from pytest_cellprose.plan.settings import Settings, read_settings

DOCS = Path(__file__).parent.parent / "docs" / "options.md"


def test_the_documented_table_is_the_declared_one() -> None:
    written = DOCS.read_text(encoding="utf-8").splitlines()
    assert [line for line in written if line.startswith("|")] == [*documentation()]


def test_help_has_every_option_and_setting_once(pytester: pytest.Pytester) -> None:
    shown = pytester.runpytest("--help").stdout.str()
    settings = [row if isinstance(row, Ini) else row.ini for row in TABLE]
    for flag in (option.flag for option in OPTIONS):
        assert len(re.findall(rf"^  {flag}(?=[ =\n])", shown, re.MULTILINE)) == 1, flag
    for name in (ini.name for ini in settings if ini is not None):
        assert len(re.findall(rf"^  {name} \(", shown, re.MULTILINE)) == 1, name


def test_the_options_with_a_value_are_those_that_pytest_wants_one_for(pytester: pytest.Pytester) -> None:
    for option in OPTIONS:
        if option.flag in VALUED:
            with pytest.raises(pytest.UsageError, match="expected one argument"):
                pytester.parseconfig(option.flag)
        else:
            assert pytester.parseconfig(option.flag).getoption(option.dest) is True


def test_every_setting_of_an_option_is_a_field(pytester: pytest.Pytester) -> None:
    named = [option.setting for option in OPTIONS if option.setting is not None]
    assert len(named) == len(set(named))
    assert set(named) < set(Settings.__dataclass_fields__)


GOOD = [
    ("--cellprose-models=a,b", "models", ("a", "b")),
    ("--cellprose-encodings=csv, csv,toon", "encodings", ("csv", "toon")),
    ("--cellprose-workbooks=loan", "workbooks", ("loan",)),
    ("--cellprose-reps=3", "reps", 3),
    ("--cellprose-none-once", "none_once", True),
    ("--cellprose-shard=2/5", "shard", (2, 5)),
    ("--cellprose-split=digest", "split_by_digest", True),
    ("--cellprose-split=file", "split_by_digest", False),
    ("--cellprose-challenger=mine", "challenger", "mine"),
    ("--cellprose-baseline=csv", "baseline", "csv"),
    ("--cellprose-baseline=", "baseline", None),
    ("--cellprose-effort=low", "effort", "low"),
    ("--cellprose-openweight=q=Qwen/Q,0.1,0.4", "openweight", ("q",)),
    ("--cellprose-live", "live", True),
    ("--cellprose-final", "live", True),
    ("--cellprose-allow-dirty", "allow_dirty", True),
    ("--cellprose-approve-usd=$12.50", "approve_usd", 12.5),
    ("--cellprose-vendor-cap-usd=openai=5,anthropic=$2", "vendor_caps", {"openai": 5, "anthropic": 2}),
    ("--cellprose-max-turns=12", "max_turns", 12),
    ("--cellprose-max-call-usd=$0.5", "max_call_usd", 0.5),
    ("--cellprose-sandbox=unsafe", "sandbox", "unsafe"),
    ("--cellprose-sandbox=container:python:3.12-slim", "sandbox", "container:python:3.12-slim"),
    ("--cellprose-sandboxes=3", "sandboxes", 3),
    ("--cellprose-inflight=4,openai=32", "in_flight", {"": 4, "openai": 32}),
    ("--cellprose-inflight=openai=32", "in_flight", {"": 8, "openai": 32}),
    ("--cellprose-fault-retries=0", "fault_retries", 0),
    ("--cellprose-resume=20261130T000000000Z-abcdef", "resume", "20261130T000000000Z-abcdef"),
    ("--cellprose-wall-clock=1.5", "wall_clock", 1.5),
]


@pytest.mark.parametrize(("argument", "name", "expected"), GOOD, ids=[each[0] for each in GOOD])
def test_an_option_gives_its_setting(pytester: pytest.Pytester, argument: str, name: str, expected: object) -> None:
    """And no other: the rest is as without options, but for what `--cellprose-final` implies."""
    plain = read_settings(pytester.parseconfig())
    settings = read_settings(pytester.parseconfig(argument))
    assert getattr(settings, name) == expected
    others = set(Settings.__dataclass_fields__) - {name, "final"}
    assert {field: getattr(settings, field) for field in others} == {field: getattr(plain, field) for field in others}


def test_options_of_a_draw(pytester: pytest.Pytester) -> None:
    arguments = ("--cellprose-final", "--cellprose-subset=9", "--cellprose-seed=-7", "--cellprose-exclude=a,b")
    settings = read_settings(pytester.parseconfig(*arguments, "--cellprose-exclude=c"))
    assert (settings.subset, settings.seed, settings.exclude) == (9, -7, ("a", "b", "c"))


BAD = {
    "--cellprose-models": ",",
    "--cellprose-encodings": " , ",
    "--cellprose-workbooks": ",",
    "--cellprose-reps": "0",
    "--cellprose-subset": "many",
    "--cellprose-seed": "1.5",
    "--cellprose-exclude": ",",
    "--cellprose-shard": "6/5",
    "--cellprose-approve-usd": "-1",
    "--cellprose-vendor-cap-usd": "openai",
    "--cellprose-max-turns": "0",
    "--cellprose-max-call-usd": "much",
    "--cellprose-sandbox": "container:",
    "--cellprose-sandboxes": "none",
    "--cellprose-inflight": "openai=0",
    "--cellprose-fault-retries": "-1",
    "--cellprose-wall-clock": "nan",
}


def test_every_option_that_is_wrong_is_named_at_once_with_what_it_should_be(pytester: pytest.Pytester) -> None:
    wrong = [f"{flag}={value}" for flag, value in BAD.items()]
    with pytest.raises(pytest.UsageError) as caught:
        read_settings(pytester.parseconfig("--cellprose-final", *wrong))
    told = str(caught.value).splitlines()[1:]
    wanted = {option.flag: option.wanted for option in OPTIONS if option.wanted}
    assert wanted.keys() == BAD.keys()
    assert told == [f"  {flag}: {BAD[flag]!r} is not {wanted[flag]}" for flag in wanted]


@pytest.mark.parametrize("name", ["cellprose_approve_usd", "cellprose_vendor_cap_usd"])
def test_a_setting_stands_in_for_its_option_and_is_named_if_wrong(pytester: pytest.Pytester, name: str) -> None:
    pytester.makeini(f"[pytest]\n{name} = much\n")
    with pytest.raises(pytest.UsageError, match=f"ini {name}: 'much' is not "):
        read_settings(pytester.parseconfig())
    flag = "--" + name.replace("_", "-")
    read_settings(pytester.parseconfig(f"{flag}={'1' if 'approve' in name else 'openai=1'}"))

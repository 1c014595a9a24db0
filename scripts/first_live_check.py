"""The first calls to live vendors: priced before, capped while they run, and looked at one by one afterwards.

    python scripts/first_live_check.py            # what it would cost, and the command; nothing is called
    python scripts/first_live_check.py --spend    # make the calls
    python scripts/first_live_check.py --agents   # the same with one agent's episode for each vendor; --spend makes it

It asks two cheap models about the smallest development workbook in two encodings: four calls, well under a cent. With
``--agents`` the first model of each vendor also explores the workbook's file with tools (`agent_xlsx`), in a run of its
own: some turns each, about half a cent, priced before anything is asked; no turn is begun that would go beyond the cap.
Then it compares what came back with what the providers, the prices and the estimate take for granted. Exit code 1 if
there is something to look at, 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from pytest_cellprose.measure.expected_episode import assumed_turns
from pytest_cellprose.measure.expected_output import TOKENS_PER_CALL, TOKENS_PER_QUESTION
from pytest_cellprose.models.registry import ModelError, builtin_models, resolve_model
from pytest_cellprose.record.record import Record, TurnUsage, Usage
from pytest_cellprose.store.records import Store
from pytest_cellprose.wording import dollars

COUNT_TOLERANCE = 0.02
"""A count by the vendor's own tokenizer differs from what is billed by a few tokens of framing."""


AGENT = "agent_xlsx"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    commands = pytest_commands(options)
    for command in commands:
        print("$", " ".join(["pytest", *command]), flush=True)
        plan = _pytest("--collect-only", *command, *options.pytest)
        if plan:
            print("The plan is refused.")
            return plan
    if not options.spend:
        print("Nothing was called: --spend makes the calls.")
        return 0
    before = _runs(options.out)
    for command in commands:
        _pytest(*command, *options.pytest)
    made = sorted(_runs(options.out) - before)
    if len(made) != len(commands):
        print(f"{len(made)} of {len(commands)} runs were stored under {options.out}: see above")
        return 1
    records = [record for run in made for record in Store(options.out, run).records()]
    for line in table(records):
        print(line)
    found = [finding for record in records for finding in findings(record)]
    print("\n".join(["", "To look at:", *(f"  {finding}" for finding in found)] if found else ["", "All as assumed."]))
    return 1 if found else 0


def _pytest(*arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], check=False).returncode


def pytest_commands(options: argparse.Namespace) -> list[list[str]]:
    """pytest's arguments, for each run: live, the chosen slice, and a cap for every vendor of it."""
    names = options.models.split(",")
    commands = [_command(options, names, options.encodings)]
    if options.agents:
        one = _command(options, one_of_each_vendor(names), AGENT)
        commands.append([*one, f"--cellprose-max-call-usd={options.cap_usd}"])
    return commands


def _command(options: argparse.Namespace, names: Sequence[str], encodings: str) -> list[str]:
    vendors = {_vendor(name) for name in names}
    if None in vendors:  # a model of the user's own: pytest knows it, and --pytest can cap it
        vendors = {model.vendor for model in builtin_models().values() if model.live}
    caps = ",".join(f"{vendor}={options.cap_usd}" for vendor in sorted(filter(None, vendors)) if vendor != "offline")
    return [
        "--cellprose-live",
        f"--cellprose-models={','.join(names)}",
        f"--cellprose-encodings={encodings}",
        f"--cellprose-workbooks={options.workbooks}",
        f"--cellprose-vendor-cap-usd={caps}",
        f"--cellprose-out={options.out}",
    ]


def one_of_each_vendor(names: Sequence[str]) -> list[str]:
    """The first model of each; and those that only pytest knows."""
    first: dict[str, str] = {}
    for name in names:
        first.setdefault(_vendor(name) or name, name)
    return list(first.values())


def _vendor(name: str) -> str | None:
    try:
        return resolve_model(name, builtin_models()).vendor
    except ModelError:
        return None


def table(records: Sequence[Record]) -> Iterator[str]:
    """One line for each call, for a reader, with one more for each turn."""
    yield ""
    for record in records:
        usage, counted = record.usage, record.counted_tokens
        yield (
            f"{record.cell}: {record.outcome.kind or record.outcome.status}, accuracy {record.accuracy}, "
            f"{usage.input} tokens in (counted {None if counted is None else counted.n}), {usage.output} out "
            f"({usage.reasoning} reasoning), {dollars(record.cost_nanousd or 0)}, {record.seconds:.1f} s, "
            f"{record.attempts} attempt(s), answered by {record.model.returned}"
        )
        if record.turns is None:
            yield f"    usage as reported: {usage.raw}"
        for number, turn in enumerate(record.turns or (), 1):
            tools = [step.name for step in record.tool_trace or () if step.turn == number]
            yield f"    turn {number}: {', '.join(tools) or 'no tool'}; usage as reported: {turn.raw}"


def findings(record: Record) -> Iterator[str]:
    """What of a call is not as this package assumes it to be."""
    cell, outcome = record.cell, record.outcome
    if outcome.status == "fault":
        yield f"{cell}: fault {outcome.kind}: {outcome.detail}"
        return
    if outcome.status == "failure":
        yield f"{cell}: failure {outcome.kind}: {outcome.detail}"
    if record.model.returned != record.model.requested:
        yield f"{cell}: {record.model.requested} was asked and {record.model.returned} answered"
    turns = record.turns
    if record.attempts != (1 if turns is None else len(turns)):
        yield f"{cell}: {record.attempts} attempts" + ("" if turns is None else f" at {len(turns)} turns")
    if turns is None:
        yield from _of_one_shot(record)
    else:
        yield from _of_episode(record, turns)


def _of_one_shot(record: Record) -> Iterator[str]:
    cell, usage, counted = record.cell, record.usage, record.counted_tokens
    yield from _of_usage(f"{cell}", usage)
    if usage.input is None or usage.output is None or not usage.raw:
        return
    if counted is None:
        yield f"{cell}: no count of the prompt's tokens"
    elif abs(counted.n - usage.input) > COUNT_TOLERANCE * usage.input:
        yield f"{cell}: {usage.input} tokens billed, {counted.n} counted by {counted.counter}"
    assumed = TOKENS_PER_CALL + TOKENS_PER_QUESTION * len(record.kinds)
    if usage.output > assumed:
        yield f"{cell}: {usage.output} tokens of output, where {assumed} are assumed: expected costs are too low"


def _of_usage(where: str, usage: Usage) -> Iterator[str]:
    """What one reply's own report says."""
    if usage.input is None or usage.output is None or not usage.raw:
        yield f"{where}: usage is not complete: {usage}"
        return
    if usage.cached:
        yield f"{where}: {usage.cached} tokens came from a cache that should be off"
    if usage.reasoning is None:
        yield f"{where}: reasoning tokens are not reported"
    elif usage.reasoning > usage.output:
        yield f"{where}: {usage.reasoning} reasoning tokens are more than all {usage.output} of the output"


def _of_episode(record: Record, turns: Sequence[TurnUsage]) -> Iterator[str]:
    cell = record.cell
    for number, turn in enumerate(turns, 1):
        yield from _of_usage(f"{cell}, turn {number}", turn)
    for number, (before, turn) in enumerate(pairwise(turns), 2):
        yield from _of_history(f"{cell}, turn {number}", before, turn)
    steps = record.tool_trace or ()
    if not steps:
        yield f"{cell}: no tool was called, so that nothing of an episode was checked"
    for step in steps:
        if step.problem is not None:
            yield f"{cell}, turn {step.turn}: a call of {step.name} was answered with an error: {step.problem}"
    assumed = assumed_turns(cell.encoding)
    if len(turns) > assumed.turns:
        yield f"{cell}: {len(turns)} turns, where {assumed.turns} are assumed: expected costs are too low"


def _of_history(where: str, before: TurnUsage, turn: TurnUsage) -> Iterator[str]:
    """Every turn is to send again all that was sent and said before it, its reasoning too.

    The limit of an episode's money counts on it, and a model that loses its reasoning is not the one to be measured.
    """
    if before.input is None or before.output is None or turn.input is None:
        return
    thought = before.reasoning or 0
    said = before.input + before.output - thought
    if turn.input < said:
        yield f"{where}: {turn.input} tokens in, after {said} that were sent and said: what came before was lost"
    elif turn.input < said + thought:
        yield (
            f"{where}: {turn.input} tokens in, after {said} that were sent and said and {thought} of reasoning: "
            "reasoning items were not taken back, or are not billed again"
        )


def _runs(out: Path) -> set[str]:
    return {path.stem for path in (out / "runs").glob("*.json")}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--models", default="haiku55,gpt6luna", help="default: %(default)s")
    parser.add_argument("--encodings", default="cellprose_lean_gfm,csv", help="default: %(default)s")
    parser.add_argument("--workbooks", default="unit_economics", help="default: %(default)s")
    parser.add_argument(
        "--agents", action="store_true", help="with an agent's episode (agent_xlsx) of one model of each vendor"
    )
    parser.add_argument("--cap-usd", default="0.25", metavar="N", help="for each vendor and run (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("results"), metavar="DIR", help="default: %(default)s")
    parser.add_argument(
        "--spend", action="store_true", help="make the calls, which cost money (default: show the plan)"
    )
    parser.add_argument("pytest", nargs="*", metavar="-- ARGUMENT", help="further arguments of pytest")
    return parser


if __name__ == "__main__":
    sys.exit(main())

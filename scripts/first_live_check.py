"""The first calls to live vendors: priced before, capped while they run, and looked at one by one afterwards.

    python scripts/first_live_check.py            # what it would cost, and the command; nothing is called
    python scripts/first_live_check.py --spend    # make the calls

It asks two cheap models about the smallest development workbook in two encodings: four calls, well under a cent. Then
it compares what came back with what the providers, the prices and the estimate take for granted. Exit code 1 if
there is something to look at, 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_cellprose.measure.expected_output import TOKENS_PER_CALL, TOKENS_PER_QUESTION
from pytest_cellprose.models.registry import ModelError, builtin_models, resolve_model
from pytest_cellprose.record.record import Record
from pytest_cellprose.store.records import Store
from pytest_cellprose.wording import dollars

COUNT_TOLERANCE = 0.02
"""A count by the vendor's own tokenizer differs from what is billed by a few tokens of framing."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    command = pytest_command(options)
    print("$", " ".join(["pytest", *command]))
    plan = subprocess.run([sys.executable, "-m", "pytest", "--collect-only", *command, *options.pytest], check=False)
    if plan.returncode or not options.spend:
        print("Nothing was called: --spend makes the calls." if not plan.returncode else "The plan is refused.")
        return plan.returncode
    before = _runs(options.out)
    subprocess.run([sys.executable, "-m", "pytest", *command, *options.pytest], check=False)
    made = sorted(_runs(options.out) - before)
    if len(made) != 1:
        print(f"no run was stored under {options.out}: see above")
        return 1
    records = list(Store(options.out, made[0]).records())
    for line in table(records):
        print(line)
    found = [finding for record in records for finding in findings(record)]
    print("\n".join(["", "To look at:", *(f"  {finding}" for finding in found)] if found else ["", "All as assumed."]))
    return 1 if found else 0


def pytest_command(options: argparse.Namespace) -> list[str]:
    """pytest's arguments: live, the chosen slice, and a cap for every vendor of it."""
    registry = builtin_models()
    try:
        vendors = {resolve_model(name, registry).vendor for name in options.models.split(",")}
    except ModelError:  # a model of the user's own: pytest knows it, and --pytest can cap it
        vendors = {model.vendor for model in registry.values() if model.live}
    caps = ",".join(f"{vendor}={options.cap_usd}" for vendor in sorted(vendors - {"offline"}))
    return [
        "--cellprose-live",
        f"--cellprose-models={options.models}",
        f"--cellprose-encodings={options.encodings}",
        f"--cellprose-workbooks={options.workbooks}",
        f"--cellprose-vendor-cap-usd={caps}",
        f"--cellprose-out={options.out}",
    ]


def table(records: Sequence[Record]) -> Iterator[str]:
    """One line for each call, for a reader."""
    yield ""
    for record in records:
        usage, counted = record.usage, record.counted_tokens
        yield (
            f"{record.cell}: {record.outcome.kind or record.outcome.status}, accuracy {record.accuracy}, "
            f"{usage.input} tokens in (counted {None if counted is None else counted.n}), {usage.output} out "
            f"({usage.reasoning} reasoning), {dollars(record.cost_nanousd or 0)}, {record.seconds:.1f} s, "
            f"{record.attempts} attempt(s), answered by {record.model.returned}"
        )
        yield f"    usage as reported: {usage.raw}"


def findings(record: Record) -> Iterator[str]:
    """What of a call is not as this package assumes it to be."""
    cell, usage, outcome = record.cell, record.usage, record.outcome
    if outcome.status == "fault":
        yield f"{cell}: fault {outcome.kind}: {outcome.detail}"
        return
    if outcome.status == "failure":
        yield f"{cell}: failure {outcome.kind}: {outcome.detail}"
    if record.model.returned != record.model.requested:
        yield f"{cell}: {record.model.requested} was asked and {record.model.returned} answered"
    if record.attempts != 1:
        yield f"{cell}: {record.attempts} attempts"
    if usage.input is None or usage.output is None or not usage.raw:
        yield f"{cell}: usage is not complete: {usage}"
        return
    if usage.cached:
        yield f"{cell}: {usage.cached} tokens came from a cache that should be off"
    if usage.reasoning is None:
        yield f"{cell}: reasoning tokens are not reported"
    elif usage.reasoning > usage.output:
        yield f"{cell}: {usage.reasoning} reasoning tokens are more than all {usage.output} of the output"
    counted = record.counted_tokens
    if counted is None:
        yield f"{cell}: no count of the prompt's tokens"
    elif abs(counted.n - usage.input) > COUNT_TOLERANCE * usage.input:
        yield f"{cell}: {usage.input} tokens billed, {counted.n} counted by {counted.counter}"
    assumed = TOKENS_PER_CALL + TOKENS_PER_QUESTION * len(record.kinds)
    if usage.output > assumed:
        yield f"{cell}: {usage.output} tokens of output, where {assumed} are assumed: expected costs are too low"


def _runs(out: Path) -> set[str]:
    return {path.stem for path in (out / "runs").glob("*.json")}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--models", default="haiku55,gpt6luna", help="default: %(default)s")
    parser.add_argument("--encodings", default="cellprose_lean_gfm,csv", help="default: %(default)s")
    parser.add_argument("--workbooks", default="unit_economics", help="default: %(default)s")
    parser.add_argument("--cap-usd", default="0.25", metavar="N", help="for each vendor (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("results"), metavar="DIR", help="default: %(default)s")
    parser.add_argument(
        "--spend", action="store_true", help="make the calls, which cost money (default: show the plan)"
    )
    parser.add_argument("pytest", nargs="*", metavar="-- ARGUMENT", help="further arguments of pytest")
    return parser


if __name__ == "__main__":
    sys.exit(main())

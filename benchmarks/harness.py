"""What the plugin adds to a run: waiting, processor time, memory, collection, start-up. Prints Markdown.

    python benchmarks/harness.py latency [--inspect PYTHON]   400 calls of one second, 40 at a time, beside others
    python benchmarks/harness.py throughput                   2,000 calls that are answered at once
    python benchmarks/harness.py memory                       what one more cell takes in memory
    python benchmarks/harness.py collect                      collecting 8,496 cells, here and in xdist's workers
    python benchmarks/harness.py startup                      ``pytest --help`` with and without the plugin

Calls go to a local server (delay_server.py) in a process of its own, whose time is not counted. Everything is a process
of its own: CPU is user + system of it and of the workers that it waited for, memory the largest resident set of one.
Contenders take turns; figures are medians of the rounds. Other pytest plugins that happen to be installed are switched
off. PYTHON has ``inspect_ai`` and ``openai`` installed; without it that row is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
PEERS = HERE / "peers"
OTHERS = ("randomly", "hypothesispytest", "anyio", "flaky", "pytest-retry")
PYTEST = (sys.executable, "-m", "pytest", *(part for name in OTHERS for part in ("-p", f"no:{name}")))
BARE_PYTEST = (*PYTEST, "-p", "no:cellprose", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(PEERS))
LIVE = ("--cellprose-live", "--cellprose-openweight=mine=m,0.2,0.6", "--cellprose-models=mine")
SIX = "haiku55,sonnet55,opus55,gpt6luna,gpt61sol,gpt6astra"
EIGHT = "cellprose_lean_gfm,markitdown,csv,markdown,toon,none,cellprose_values,address_list"


@dataclass(frozen=True)
class Cost:
    """What a process and those it waited for took."""

    wall: float
    cpu: float
    rss: int
    """Bytes: the largest resident set of one process."""
    ended: float
    """Seconds since the epoch."""
    output: str


def run(command: Sequence[str], folder: Path, **environment: str) -> Cost:
    """Raises `SystemExit` with the output of a command that failed."""
    # without the last, every process would compile every module again
    left_out = ("_API_KEY", "_BASE_URL", "DONTWRITEBYTECODE")
    inherited = {name: value for name, value in os.environ.items() if not name.endswith(left_out)}
    paths = [str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {**inherited, "PYTHONPATH": os.pathsep.join(paths), **environment}
    start = time.time()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        ended = time.time()
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    if process.returncode not in (0, 5):  # 5: pytest collected nothing, which is meant where everything is deselected
        raise SystemExit(f"{' '.join(command)}\n{text[-4000:]}\nended with {process.returncode}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Cost(ended - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit, ended, text)


def project(folder: str, workbooks: int) -> Path:
    """Made by another process: a child begins with its parent's size, which would hide how small it is."""
    root = Path(folder) / "project"
    run((sys.executable, str(HERE / "generated_project.py"), str(root), str(workbooks)), Path(folder))
    return root


@dataclass(frozen=True)
class Server:
    address: str

    def seen(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.address}/seen") as answer:
            told: dict[str, Any] = json.load(answer)
            return told

    @property
    def environment(self) -> dict[str, str]:
        url = f"{self.address}/v1"
        names = ("CELLPROSE_COMPAT", "OPENAI", "BENCH")
        return {f"{name}_BASE_URL": url for name in names} | {f"{name}_API_KEY": "k" for name in names}


DELAYING = HERE / "delay_server.py"


@contextmanager
def serving(*program: object) -> Iterator[Server]:
    """A server that says its port in its first line; `program`: a file of ours and its arguments."""
    process = subprocess.Popen([sys.executable, *map(str, program)], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield Server(f"http://127.0.0.1:{int(process.stdout.readline())}")
    finally:
        process.kill()
        process.wait()


@dataclass(frozen=True)
class Calls:
    """A contender's run, as it and the server saw it."""

    cost: Cost
    start: float
    """Seconds from the start of the process to its first call."""
    span: float
    """From the first call to the last answer."""
    after: float
    """From the first call to the end of the process: what the goal for waiting is about."""
    peak: int


def called(server: Server, calls: int, command: Sequence[str], folder: Path, **environment: str) -> Calls:
    """Raises `SystemExit` if the server did not see that many calls."""
    server.seen()
    cost = run(command, folder, **server.environment, **environment)
    seen = server.seen()
    if seen["calls"] != calls:
        raise SystemExit(f"{' '.join(command)}\n{cost.output[-4000:]}\n{seen['calls']} calls instead of {calls}")
    first = cost.ended - seen["first"]
    return Calls(cost, cost.wall - first, seen["last"] - seen["first"], first, seen["peak"])


def ours(repeats: int, in_flight: int) -> tuple[str, ...]:
    return (*PYTEST, "-q", *LIVE, f"--cellprose-reps={repeats}", f"--cellprose-inflight={in_flight}")


def prompts_file(server: Server, folder: Path, calls: int, command: Sequence[str]) -> Path:
    """Run ours once, which also fills its cache, and keep what it asked for the others to ask."""
    server.seen()
    run(command, folder, **server.environment)
    prompts = server.seen()["prompts"]
    assert len(prompts) == calls
    path = folder / "prompts.json"
    path.write_text(json.dumps(prompts), encoding="utf-8")
    path.with_name("one.json").write_text(json.dumps(prompts[:1]), encoding="utf-8")
    return path


def rounds(number: int, contenders: Mapping[str, Callable[[], Calls]]) -> dict[str, list[Calls]]:
    """Each contender `number` times, taking turns."""
    found: dict[str, list[Calls]] = {name: [] for name in contenders}
    for turn in range(number):
        for name, contender in contenders.items():
            print(f"round {turn + 1} of {number}: {name}", file=sys.stderr)
            found[name].append(contender())
    return found


def middle(runs: Sequence[Calls], what: Callable[[Calls], float]) -> float:
    return median(map(what, runs))


def latency(arguments: argparse.Namespace) -> None:
    calls, in_flight, workbooks, delay = 400, 40, 20, 1.0
    repeats = calls // (workbooks * 5)
    five = "--cellprose-encodings=cellprose_lean_gfm,markitdown,csv,markdown,toon"
    one = (*ours(1, in_flight), "--cellprose-workbooks=wb000", "--cellprose-encodings=csv")
    with tempfile.TemporaryDirectory() as name, serving(DELAYING, delay) as server:
        folder = project(name, workbooks)
        command = (*ours(repeats, in_flight), five)
        asked = prompts_file(server, folder, calls, command)
        single, bare = asked.with_name("one.json"), (sys.executable, str(PEERS / "bare_loop.py"))
        plain = (*BARE_PYTEST, "-q", str(PEERS / "xdist_calls.py"), "-n", "8")
        contenders: dict[str, Callable[[], Calls]] = {
            "bare asyncio loop, AsyncOpenAI": lambda: called(
                server, calls, (*bare, str(asked), str(in_flight)), folder
            ),
            "**pytest-cellprose**": lambda: called(server, calls, command, folder),
            "one call by the bare loop": lambda: called(server, 1, (*bare, str(single), "1"), folder),
            "one call by pytest-cellprose": lambda: called(server, 1, one, folder),
            "pytest-xdist -n 8, a test a call": lambda: called(server, calls, plain, folder, PROMPTS=str(asked)),
        }
        if arguments.inspect:
            task = [arguments.inspect, "-m", "inspect_ai", "eval", "inspect_task.py"]
            task += ["--model", "openai-api/bench/m", "--max-connections", str(in_flight), "--max-samples", "40"]
            task += ["--display", "none", "--log-dir", str(folder / "logs")]
            contenders["inspect_ai"] = lambda: called(server, calls, task, PEERS, PROMPTS=str(asked))
        else:
            print("inspect_ai is left out: --inspect PYTHON names a Python that has it", file=sys.stderr)
        found = rounds(arguments.rounds, contenders)
    print(f"{calls} calls of {delay:g} s, {in_flight} at a time (xdist: 8), {arguments.rounds} rounds.\n")
    head = ("", "first call, s", "span, s", "first call to end, s", "over the ideal", "CPU, s", "CPU per call, ms")
    print(f"| {' | '.join(head)} | peak RSS, MB |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name, runs in found.items():
        number = 1 if name.startswith("one call") else calls
        ideal = delay if number == 1 else calls / (8 if "xdist" in name else in_flight) * delay
        cpu, after = middle(runs, lambda r: r.cost.cpu), middle(runs, lambda r: r.after)
        print(
            f"| {name} | {middle(runs, lambda r: r.start):.1f} | {middle(runs, lambda r: r.span):.1f} | {after:.1f} "
            f"| {after / ideal:.2f}× | {cpu:.2f} | {cpu / number * 1000:.1f} "
            f"| {middle(runs, lambda r: r.cost.rss) / 1e6:.0f} |"
        )
    names = list(found)
    total = [middle(found[name], lambda r: r.cost.cpu) for name in names[:4]]
    more = [(total[place] - total[place + 2]) / (calls - 1) * 1000 for place in (0, 1)]
    print(f"\nCPU, ours / bare loop: {total[1] / total[0]:.2f}× in all (wanted: at most 2.5×).")
    print(f"Each further call: bare loop {more[0]:.1f} ms, ours {more[1]:.1f} ms: {more[1] / more[0]:.2f}×.")


def throughput(arguments: argparse.Namespace) -> None:
    calls, in_flight, workbooks = 2000, 40, 50
    with tempfile.TemporaryDirectory() as name, serving(DELAYING, 0) as server:
        folder = project(name, workbooks)
        five = "--cellprose-encodings=cellprose_lean_gfm,markitdown,csv,markdown,toon"
        command = (*ours(calls // (workbooks * 5), in_flight), five)
        asked = prompts_file(server, folder, calls, command)
        bare = (sys.executable, str(PEERS / "bare_loop.py"), str(asked), str(in_flight))
        found = rounds(
            arguments.rounds,
            {
                "bare asyncio loop, AsyncOpenAI": lambda: called(server, calls, bare, folder),
                "**pytest-cellprose**": lambda: called(server, calls, command, folder),
            },
        )
    print(f"{calls} calls answered at once, {in_flight} at a time, {arguments.rounds} rounds.\n")
    print("| | span, s | calls/s in span | CPU, s | CPU per call, ms | peak RSS, MB |\n|---|---:|---:|---:|---:|---:|")
    for name, runs in found.items():
        cpu, span = middle(runs, lambda r: r.cost.cpu), middle(runs, lambda r: r.span)
        print(
            f"| {name} | {span:.1f} | {calls / span:.0f} | {cpu:.2f} | {cpu / calls * 1000:.2f} "
            f"| {middle(runs, lambda r: r.cost.rss) / 1e6:.0f} |"
        )
    bare_cpu, our_cpu = (middle(runs, lambda r: r.cost.cpu) for runs in found.values())
    print(f"\nOurs less the bare loop: {(our_cpu - bare_cpu) / calls * 1000:.2f} ms a cell (wanted: under 10).")


def memory(arguments: argparse.Namespace) -> None:
    """Cells and empty items are compared at the same two numbers, so that what does not grow drops out."""
    few, many, workbooks = 400, 2000, 20
    sizes: dict[str, dict[int, list[int]]] = {"cells": {few: [], many: []}, "empty items": {few: [], many: []}}
    with tempfile.TemporaryDirectory() as name, serving(DELAYING, 0) as server:
        folder = project(name, workbooks)
        five = "--cellprose-encodings=cellprose_lean_gfm,markitdown,csv,markdown,toon"
        run((*PYTEST, "--collect-only", five), folder)  # with costs, so that every text is in the cache
        for _ in range(arguments.rounds):
            for number in (few, many):
                command = (*ours(number // (workbooks * 5), 40), five)
                sizes["cells"][number].append(called(server, number, command, folder).cost.rss)
                empty = (*BARE_PYTEST, "-q", str(PEERS / "empty_items.py"))
                sizes["empty items"][number].append(run(empty, folder, ITEMS=str(number)).rss)
    print(f"| | {few}, MB | {many:,}, MB | one more, kB |\n|---|---:|---:|---:|")
    grown = []
    for what, of in sizes.items():
        low, high = (median(of[number]) for number in (few, many))
        grown.append((high - low) / (many - few) / 1000)
        print(f"| {what} | {low / 1e6:.1f} | {high / 1e6:.1f} | {grown[-1]:.2f} |")
    print(f"\nA cell takes {grown[0] - grown[1]:.2f} kB more than an empty item (wanted: under 5).")


def collect(arguments: argparse.Namespace) -> None:
    workbooks, repeats = 59, 3
    number = 6 * 8 * workbooks * repeats
    plan = ("--cellprose-live", f"--cellprose-models={SIX}", f"--cellprose-encodings={EIGHT}", "--cellprose-reps=3")
    approved = "--cellprose-approve-usd=1000"
    keys = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}
    plain = (*BARE_PYTEST, str(PEERS / "empty_items.py"))
    none = ("-q", "-k", "zzz")
    commands = {
        "--collect-only -q": ((*PYTEST, *plan, "--collect-only", "-q"), (*plain, "--collect-only", "-q")),
        "--collect-only, with costs": ((*PYTEST, *plan, "--collect-only"), (*plain, "--collect-only")),
        "collected and all deselected": ((*PYTEST, *plan, approved, *none), (*plain, *none)),
        "the same in two workers": ((*PYTEST, *plan, approved, *none, "-n", "2"), (*plain, *none, "-n", "2")),
    }
    with tempfile.TemporaryDirectory() as name:
        folder = project(name, workbooks)
        run((*PYTEST, "--collect-only", *plan), folder)  # with costs, so that every text is in the cache
        costs: dict[str, list[tuple[float, float]]] = {what: [] for what in commands}
        for turn in range(arguments.rounds):
            for what, (cells, empty) in commands.items():
                print(f"round {turn + 1} of {arguments.rounds}: {what}", file=sys.stderr)
                theirs = run(empty, folder, ITEMS=str(number)).cpu
                costs[what].append((run(cells, folder, **keys).cpu, theirs))
    print(f"{number:,} items, CPU seconds, {arguments.rounds} rounds.\n")
    print("| | cells | empty items | ratio |\n|---|---:|---:|---:|")
    middles = {what: tuple(map(median, zip(*of, strict=True))) for what, of in costs.items()}
    for what, (cells_cpu, empty_cpu) in middles.items():
        print(f"| {what} | {cells_cpu:.2f} | {empty_cpu:.2f} | {cells_cpu / empty_cpu:.2f}× |")
    *_, here, spread = middles.values()
    each = [(two - one) / 2 for one, two in zip(here, spread, strict=True)]
    print(f"| one worker more (half the difference) | {each[0]:.2f} | {each[1]:.2f} | {each[0] / each[1]:.2f}× |")


def startup(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        commands = {"with": (*PYTEST, "--help"), "without": (*PYTEST, "-p", "no:cellprose", "--help")}
        costs: dict[str, list[float]] = {what: [] for what in commands}
        for _ in range(max(arguments.rounds, 15)):
            for what, command in commands.items():
                costs[what].append(run(command, folder).cpu * 1000)
    there, absent = (median(costs[what]) for what in commands)
    print(f"| `pytest --help` | CPU, ms |\n|---|---:|\n| with the plugin | {there:.0f} |\n| without | {absent:.0f} |")
    print(f"\nThe plugin adds {there - absent:.0f} ms (wanted: under 60).")


COMMANDS = {f.__name__: f for f in (latency, throughput, memory, collect, startup)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=COMMANDS)
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="times that each is run (default: 3)")
    parser.add_argument("--inspect", metavar="PYTHON", help="a Python that has inspect_ai and openai")
    arguments = parser.parse_args()
    COMMANDS[arguments.what](arguments)


if __name__ == "__main__":
    main()

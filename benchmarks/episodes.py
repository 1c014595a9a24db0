"""What the plugin adds to episodes whose turns wait: 40 at a time, beside a bare loop of the vendor's SDK.

    python benchmarks/episodes.py [--rounds N]

Each episode has four turns that call a tool and one that answers; a turn takes a second at a local server in a process
of its own, whose time is not counted, and the tool answers at once, so that no sandbox is measured. The bare loop is
`peers/bare_episodes.py`, a thread an episode. Ours is a whole run: pytest with a suite of as many tasks, records,
ledger, prices and report. CPU is user + system of the process, start-up included; what one episode alone takes is
nearly all start-up. The two take turns; medians. Prints Markdown.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.delay_server import Connection, chunked
from benchmarks.delay_server import main as serve
from benchmarks.harness import PEERS, PYTEST, Calls, Server, called, middle, rounds, serving

EPISODES, TURNS, DELAY = 40, 5, 1.0
MODELS = {"messages": "haiku55", "responses": "gpt6luna"}
NAMES = {"messages": "Messages", "responses": "Responses"}

CONFTEST = f"""
import os, sys
sys.path.insert(0, {str(PEERS)!r})
from bare_episodes import FOUND, PROMPT, SCHEMA, SYSTEM, TOOL
from pytest_cellprose import Check, Opening, Suite, Task, Tool, Variant

class Box:
    digest = "box 1"
    def __enter__(self):
        return self
    def __exit__(self, *why):
        pass
    def call(self, name, arguments):
        return FOUND

class Boxes(Suite):
    name, axes = "boxes", ("label", "box")
    def tasks(self, folder):
        return [Task(f"box{{number:02}}", "1", {{"gold": "state"}}) for number in range(int(os.environ["EPISODES"]))]
    def variants(self):
        return [Variant("plain", "1")]
    def opening(self, task, variant):
        return Opening(SYSTEM, PROMPT, [Tool(parameters=SCHEMA, **TOOL)])
    def world(self, task, variant):
        return Box()
    def check(self, task, episode, world):
        return Check({{"gold": 1.0}}, {{"gold": 1}})

def pytest_cellprose_suites():
    return [Boxes()]
"""


class Turns(Connection):
    """Calls a tool until a request brings the results of all turns but the last."""

    def answer_to(self, head: bytes, body: bytes) -> bytes:
        path = head.split(b" ", 2)[1]
        results = body.count(b'"tool_use_id"') + body.count(b'"function_call_output"')
        return _answers()[path, results >= TURNS - 1]


@cache
def _answers() -> dict[tuple[bytes, bool], bytes]:
    """Path and whether it is the last turn -> a whole response."""
    from tests.providers.vendor_server import MESSAGES, RESPONSES, Answer, frames

    call = ("call_1", "look", '{"where": "Sheet1"}')
    turns = {True: Answer(text="There is gold."), False: Answer("I look there first.", thinking="hm", tools=[call])}
    return {
        (path.encode(), last): chunked(frames(path, {"model": "m"}, turn))
        for path in (MESSAGES, RESPONSES)
        for last, turn in turns.items()
    }


def project(root: Path) -> Path:
    cells = root / "cells"
    cells.mkdir()
    (root / "pyproject.toml").write_text('[tool.pytest]\ntestpaths = ["cells"]\n', encoding="utf-8")
    (root / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (cells / "test_cells.py").write_text("def test_cell(cell):\n    cell.run()\n", encoding="utf-8")
    (cells / "split.json").write_text('{"schema": 1, "suite": "boxes"}', encoding="utf-8")
    return root


def contenders(server: Server, folder: Path, protocol: str) -> dict[str, Callable[[], Calls]]:
    environment = {"ANTHROPIC_BASE_URL": server.address, "ANTHROPIC_API_KEY": "k"}

    def bare(episodes: int) -> Calls:
        command = (sys.executable, str(PEERS / "bare_episodes.py"), protocol, str(episodes))
        return called(server, episodes * TURNS, command, folder, **environment)

    def ours(episodes: int) -> Calls:
        live = ("--cellprose-live", f"--cellprose-models={MODELS[protocol]}", f"--cellprose-inflight={EPISODES}")
        told = {**environment, "EPISODES": str(episodes)}
        return called(server, episodes * TURNS, (*PYTEST, "-q", *live), folder, **told)

    return {
        "bare": lambda: bare(EPISODES),
        "ours": lambda: ours(EPISODES),
        "bare, one": lambda: bare(1),
        "ours, one": lambda: ours(1),
    }


def row(protocol: str, name: str, runs: Sequence[Calls], one: Sequence[Calls]) -> float:
    """Print a contender's; its CPU per turn, in ms."""
    cpu, least = (middle(each, lambda r: r.cost.cpu) for each in (runs, one))
    a_turn = cpu / (EPISODES * TURNS) * 1000
    print(
        f"| {NAMES[protocol]}: {name} | {middle(runs, lambda r: r.span):.1f} | {cpu:.2f} | {least:.2f} "
        f"| {a_turn:.1f} | {middle(runs, lambda r: r.cost.rss) / 1e6:.0f} |"
    )
    return a_turn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="times that each is run (default: 3)")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        asyncio.run(serve(DELAY, Turns))
    found = {}
    with tempfile.TemporaryDirectory() as name, serving(__file__, "--serve") as server:
        folder = project(Path(name))
        for protocol in MODELS:
            found[protocol] = rounds(arguments.rounds, contenders(server, folder, protocol))
    load = os.getloadavg()[0]
    print(f"{EPISODES} episodes of {TURNS} turns of {DELAY:g} s, {arguments.rounds} rounds; load {load:.1f}.\n")
    print("| | span, s | CPU, s | one episode alone, CPU s | CPU per turn, ms | peak RSS, MB |")
    print("|---|---:|---:|---:|---:|---:|")
    ratios = []
    for protocol, runs in found.items():
        bare = row(protocol, "bare loop, 40 threads", runs["bare"], runs["bare, one"])
        ours = row(protocol, "**pytest-cellprose**", runs["ours"], runs["ours, one"])
        ratios.append(f"{NAMES[protocol]} {ours / bare:.2f}×")
    print(f"\nCPU per turn, ours / bare loop: {', '.join(ratios)}. Wanted: under 2.5×.")


if __name__ == "__main__":
    main()

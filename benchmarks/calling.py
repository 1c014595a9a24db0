"""What a provider adds to the bare SDK call: processor time per cell. ``python benchmarks/calling.py``.

The same request goes to the same local server (in a process of its own) by the SDK alone, reading its stream to the
end, and by our provider with usage normalised and priced. Wanted: under 2 ms more per cell.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from pytest_cellprose.models.pricing import cost_as_billed_nanousd, usage_cost_nanousd
from pytest_cellprose.models.registry import builtin_models
from pytest_cellprose.providers import anthropic, compat, openai
from pytest_cellprose.providers.base import Request

CALLS = 40
ROUNDS = 7
ANSWER = '{"q1": 1234.5, "q2": ["Model!B5"], ' + ", ".join(f'"q{n}": "text {n}"' for n in range(3, 40)) + "}"


def serve(address: Any) -> None:
    from tests.providers.vendor_server import Answer, serving

    with serving() as server:
        server.default = Answer(text=ANSWER)
        address.send(server.address)
        address.recv()


def drain(stream: Any) -> None:
    with stream as events:
        for _ in events:
            pass


def contenders(request: Request) -> dict[str, tuple[Callable[[], object], Callable[[], object]]]:
    """Vendor -> the bare call, and ours with usage and price."""
    prices = builtin_models()["haiku55"].prices

    def ours(provider: Any) -> Callable[[], object]:
        def call() -> object:
            usage = provider.call(request).usage
            return usage_cost_nanousd(prices, usage), cost_as_billed_nanousd(prices, usage)

        return call

    messages, responses, chat = anthropic.Anthropic(), openai.OpenAI(), compat.Compat()
    bare_messages, bare_openai = messages._client.messages, responses._client
    return {
        "Messages": (lambda: drain(bare_messages.stream(**anthropic.body(request))), ours(messages)),
        "Responses": (
            lambda: drain(bare_openai.responses.create(**openai.body(request), stream=True)),
            ours(responses),
        ),
        "Chat Completions": (
            lambda: drain(bare_openai.chat.completions.create(**compat.body(request), stream=True)),
            ours(chat),
        ),
    }


def milliseconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    for _ in range(CALLS):
        call()
    return (time.process_time() - start) / CALLS * 1000


def main() -> None:
    here, there = multiprocessing.get_context("spawn").Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(there,), daemon=True)
    server.start()
    address = here.recv()
    os.environ |= {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k", "ANTHROPIC_BASE_URL": address}
    os.environ |= {"OPENAI_BASE_URL": address + "/v1", "CELLPROSE_COMPAT_BASE_URL": address + "/v1"}
    request = Request("model-1", "system " * 300, "cell " * 20_000, 16_000, {"effort": "medium"})
    print("| protocol | bare SDK, ms CPU | ours, ms CPU | more, ms | ratio |\n|---|---|---|---|---|")
    for name, (bare, ours) in contenders(request).items():
        milliseconds(bare), milliseconds(ours)  # warm
        pairs = [(milliseconds(bare), milliseconds(ours)) for _ in range(ROUNDS)]  # in turn: the machine is shared
        one, two = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(f"| {name} | {one:.2f} | {two:.2f} | {two - one:+.2f} | {two / one:.2f}× |")
    here.send("done")
    server.join(5)


if __name__ == "__main__":
    main()

"""A Chat Completions server that answers everything with the same text after a fixed delay, as cheaply as Python can.

    python benchmarks/delay_server.py SECONDS

Prints its port. Answers are made beforehand, streamed and not, and go out in one write. ``GET /seen`` tells of the
calls since it was last asked, as JSON: ``calls``, ``first`` and ``last`` (epoch seconds of the first request and of
the last answer), ``peak`` (most at once), and ``prompts``, the messages of every request.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

ANSWER = '{"q1": 15875, "q2": "Model!B5", "q3": ["Model!B4:G4"], "q4": ["Model!C4", "Model!B5"], "q5": ["Model!E4"]}'
CHUNKS = 12
"""Pieces of a streamed answer: fewer than a vendor sends, so that little of what is compared is the SDK's parsing."""
USAGE = {"prompt_tokens": 1200, "completion_tokens": 60, "total_tokens": 1260}


@dataclass
class Seen:
    calls: int = 0
    first: float = 0.0
    last: float = 0.0
    running: int = 0
    peak: int = 0
    bodies: list[bytes] = field(default_factory=list)

    def told(self) -> bytes:
        prompts = [json.loads(body).get("messages") for body in self.bodies]
        return json.dumps(
            {"calls": self.calls, "first": self.first, "last": self.last, "peak": self.peak, "prompts": prompts}
        ).encode()


def chunk(**fields: Any) -> bytes:
    event = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", **fields}
    return f"data: {json.dumps(event)}\n\n".encode()


def streamed() -> bytes:
    size = -(-len(ANSWER) // CHUNKS)
    pieces = [ANSWER[start : start + size] for start in range(0, len(ANSWER), size)]
    events = [chunk(choices=[{"index": 0, "delta": {"content": piece}, "finish_reason": None}]) for piece in pieces]
    events.append(chunk(choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}]))
    events += [chunk(choices=[], usage=USAGE), b"data: [DONE]\n\n"]
    return chunked(events)


def whole(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


def completion() -> bytes:
    message = {"role": "assistant", "content": ANSWER}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps(
        {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": USAGE}
    ).encode()


def chunked(events: Iterable[bytes]) -> bytes:
    """A response that streams these events, and goes out in one write all the same."""
    framed = b"".join(b"%x\r\n%s\r\n" % (len(event), event) for event in events)
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + framed + b"0\r\n\r\n"


STREAMED, WHOLE = streamed(), whole(completion())


class Connection(asyncio.Protocol):
    def __init__(self, seen: list[Seen], delay: float) -> None:
        self.seen, self.delay, self.pending = seen, delay, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self.pending += data
        head, blank, rest = self.pending.partition(b"\r\n\r\n")
        if not blank:
            return
        _, found, length = head.lower().partition(b"content-length:")
        size = int(length.split(b"\r\n")[0]) if found else 0
        if len(rest) < size:
            return
        self.pending = rest[size:]
        if head.startswith(b"GET /seen"):
            self.transport.write(whole(self.seen[0].told()))
            self.seen[0] = Seen()
            return
        seen = self.seen[0]
        seen.first = seen.first or time.time()
        seen.calls += 1
        seen.running += 1
        seen.peak = max(seen.peak, seen.running)
        body = rest[:size]
        seen.bodies.append(body)
        asyncio.get_running_loop().call_later(self.delay, self.answer, seen, self.answer_to(head, body))

    def answer_to(self, head: bytes, body: bytes) -> bytes:
        """A whole response."""
        wants_stream = b'"stream":true' in body.replace(b'"stream": true', b'"stream":true')
        return STREAMED if wants_stream else WHOLE

    def answer(self, seen: Seen, answer: bytes) -> None:
        seen.running -= 1
        seen.last = time.time()
        self.transport.write(answer)


async def main(delay: float, connection: type[Connection] = Connection) -> None:
    seen = [Seen()]
    server = await asyncio.get_running_loop().create_server(lambda: connection(seen, delay), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1])))

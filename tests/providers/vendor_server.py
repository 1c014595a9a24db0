"""A local server that speaks Messages, Responses and Chat Completions, and breaks them in every way asked for.

Written from the vendors' published streams, not from our providers; the real SDKs talk to it over real HTTP.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MESSAGES, COUNT, RESPONSES, CHAT = (
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/v1/responses",
    "/v1/chat/completions",
)


@dataclass
class Answer:
    """A reply as a vendor streams it; `usage` is the vendor's own object."""

    text: str = '{"q1": 42}'
    usage: Mapping[str, Any] | None = None
    model: str | None = None
    """Returned model id; None: the requested one."""
    stop: str | None = None
    """stop_reason, ``status/reason`` or finish_reason; None: the ordinary one."""
    refusal: str | None = None
    """Responses and Chat: text of a refusal item instead of an answer."""
    thinking: str | None = None
    """Messages: a thinking block before the text."""
    tool: tuple[str, str, dict[str, Any]] | None = None
    """Id, name and arguments of a tool call at the end."""
    tools: Sequence[tuple[str, str, str]] = ()
    """Several of them at once; arguments as they are written, JSON or not."""

    @property
    def calls(self) -> list[tuple[str, str, str]]:
        one = [] if self.tool is None else [(self.tool[0], self.tool[1], json.dumps(self.tool[2]))]
        return [*one, *self.tools]


@dataclass
class Seen:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    port: int
    """The client's: which connection it was."""


Play = Callable[["_Handler", dict[str, Any]], None]
"""What is done with one request."""


@dataclass
class VendorServer:
    address: str = ""
    journal: list[Seen] = field(default_factory=list)
    script: list[Play | Answer] = field(default_factory=list)
    """Taken one by one by requests that are not for counting; afterwards `default`."""
    default: Play | Answer = field(default_factory=Answer)
    count: Play | int = 17
    """How count_tokens answers."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """Of every request that asked for an answer."""
        return [seen.body for seen in self.journal if seen.path != COUNT]

    def next_play(self) -> Play | Answer:
        with self.lock:
            return self.script.pop(0) if self.script else self.default


@contextmanager
def serving() -> Iterator[VendorServer]:
    told = VendorServer()

    class Handler(_Handler):
        server_state = told

    server = _Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    told.address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield told
    finally:
        server.shutdown()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is part of the game."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_state: VendorServer

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        state = self.server_state
        state.journal.append(
            Seen(self.path, {k.lower(): v for k, v in self.headers.items()}, body, self.client_address[1])
        )
        with suppress(BrokenPipeError, ConnectionResetError):
            if self.path == COUNT:
                count = state.count
                count(self, body) if callable(count) else self.json(200, {"input_tokens": count})
                return
            play = state.next_play()
            play = stream(play) if isinstance(play, Answer) else play
            play(self, body)

    def json(self, status: int, body: object, headers: Mapping[str, str] | None = None) -> None:
        self.raw(status, json.dumps(body).encode(), {"content-type": "application/json", **(headers or {})})

    def raw(self, status: int, content: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "content-length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def drop(self) -> None:
        """Close the connection in the middle of a chunked body."""
        self.wfile.flush()
        self.close_connection = True


# --- what a vendor streams -------------------------------------------------------------------------------------------


def frames(path: str, body: dict[str, Any], answer: Answer) -> list[bytes]:
    if path == MESSAGES:
        return [_named(event["type"], event) for event in message_events(body, answer)]
    if path == RESPONSES:
        return [_named(event["type"], event) for event in response_events(body, answer)]
    return [_data(chunk) for chunk in chat_chunks(body, answer)] + [b"data: [DONE]\n\n"]


def _named(name: str, event: object) -> bytes:
    return f"event: {name}\n".encode() + _data(event)


def _data(event: object) -> bytes:
    return f"data: {json.dumps(event)}\n\n".encode()


def _halves(text: str) -> list[str]:
    middle = len(text) // 2
    return [part for part in (text[:middle], text[middle:]) if part]


def message_events(body: dict[str, Any], answer: Answer) -> list[dict[str, Any]]:
    """Input is told at the start, output and its details at the end."""
    usage = dict(answer.usage or {"input_tokens": 100, "output_tokens": 20})
    late = {key: usage.pop(key) for key in ("output_tokens", "output_tokens_details") if key in usage}
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": answer.model or body["model"],
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**usage, "output_tokens": 1},
    }
    events: list[dict[str, Any]] = [{"type": "message_start", "message": message}, {"type": "ping"}]
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    if answer.thinking is not None:
        deltas = [
            {"type": "thinking_delta", "thinking": answer.thinking},
            {"type": "signature_delta", "signature": "s1"},
        ]
        blocks.append(({"type": "thinking", "thinking": "", "signature": ""}, deltas))
    if answer.text:
        text_deltas = [{"type": "text_delta", "text": part} for part in _halves(answer.text)]
        blocks.append(({"type": "text", "text": ""}, text_deltas))
    for tool_id, name, arguments in answer.calls:
        deltas = [{"type": "input_json_delta", "partial_json": part} for part in _halves(arguments)]
        blocks.append(({"type": "tool_use", "id": tool_id, "name": name, "input": {}}, deltas))
    for index, (block, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    delta: dict[str, Any] = {"stop_reason": answer.stop or ("tool_use" if answer.calls else "end_turn")}
    delta["stop_sequence"] = None
    if answer.stop == "refusal":
        delta["stop_details"] = {"type": "refusal", "category": "cyber", "explanation": "no"}
    return [*events, {"type": "message_delta", "delta": delta, "usage": late}, {"type": "message_stop"}]


def response_events(body: dict[str, Any], answer: Answer) -> list[dict[str, Any]]:
    """Everything is told again, with usage, by the last event. `Answer.stop`: ``incomplete/max_output_tokens``."""
    status, _, reason = (answer.stop or "completed").partition("/")
    usage = answer.usage or {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 8},
        "total_tokens": 120,
    }
    response = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": answer.model or body["model"],
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "status": "in_progress",
        "usage": None,
        "error": None,
        "incomplete_details": None,
    }
    if answer.refusal is not None:
        part: dict[str, Any] = {"type": "refusal", "refusal": answer.refusal}
    else:
        part = {"type": "output_text", "text": answer.text, "annotations": []}
    message = {"id": "m1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    output: list[dict[str, Any]] = [message] if answer.text or answer.refusal else []
    if answer.calls or answer.thinking is not None:
        output.insert(0, {"id": "r1", "type": "reasoning", "summary": [], "encrypted_content": "sealed"})
    for number, (tool_id, name, arguments) in enumerate(answer.calls, 1):
        call = {"id": f"f{number}", "type": "function_call", "call_id": tool_id, "name": name, "status": "completed"}
        output.append({**call, "arguments": arguments})
    where = {"item_id": "m1", "output_index": 0, "content_index": 0}
    events = [{"type": "response.created", "response": response}]
    if answer.refusal is None:
        events += [{"type": "response.output_text.delta", **where, "delta": part} for part in _halves(answer.text)]
    last = {**response, "status": status, "output": output, "usage": usage}
    if status == "incomplete":
        last["incomplete_details"] = {"reason": reason}
    if status == "failed":
        last |= {"error": {"code": reason, "message": "it broke"}, "output": []}
    events.append({"type": f"response.{status}", "response": last})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def chat_chunks(body: dict[str, Any], answer: Answer) -> list[dict[str, Any]]:
    """Usage comes in a last chunk without choices, if it was asked for."""
    base = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": answer.model or body["model"]}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    chunks = [chunk({"role": "assistant", "content": ""})]
    if answer.refusal is not None:
        chunks.append(chunk({"refusal": answer.refusal}))
    else:
        chunks += [chunk({"content": part}) for part in _halves(answer.text)]
    if answer.thinking is not None:
        chunks.insert(1, chunk({"reasoning_content": answer.thinking}))
    # calls that are made at once are told by turns
    for number, (tool_id, name, _) in enumerate(answer.calls):
        begun = {"index": number, "id": tool_id, "type": "function", "function": {"name": name, "arguments": ""}}
        chunks.append(chunk({"tool_calls": [begun]}))
    for part in range(2):
        for number, (_, _, arguments) in enumerate(answer.calls):
            middle = len(arguments) // 2
            told = arguments[middle:] if part else arguments[:middle]
            chunks.append(chunk({"tool_calls": [{"index": number, "function": {"arguments": told}}]}))
    chunks.append(chunk({}, answer.stop or ("tool_calls" if answer.calls else "stop")))
    if body.get("stream_options", {}).get("include_usage"):
        usage = answer.usage or {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
        chunks.append({**base, "choices": [], "usage": usage})
    return chunks


# --- plays -----------------------------------------------------------------------------------------------------------


def stream(answer: Answer | None = None, *, ends_before: int = 0, dropped_before: int = 0) -> Play:
    """The whole stream; or one that ends cleanly, or is dropped, before its last so many events."""

    def play(handler: _Handler, body: dict[str, Any]) -> None:
        all_frames = frames(handler.path, body, answer or Answer())
        missing = ends_before or dropped_before
        handler.begin_stream()
        for frame in all_frames[: len(all_frames) - missing]:
            handler.chunk(frame)
        if dropped_before:
            handler.drop()
        else:
            handler.chunk(b"")

    return play


def interrupted(by: bytes, *, after: int = 2, answer: Answer | None = None) -> Play:
    """A stream whose first events are followed by `by`, and then ends."""

    def play(handler: _Handler, body: dict[str, Any]) -> None:
        handler.begin_stream()
        for frame in [*frames(handler.path, body, answer or Answer())[:after], by]:
            handler.chunk(frame)
        handler.chunk(b"")

    return play


def status(code: int, body: object = None, headers: Mapping[str, str] | None = None) -> Play:
    """An error as both vendors write it; `body` if it is given."""
    told = {"type": "error", "error": {"type": f"kind_{code}", "message": "something", "code": None}}
    return lambda handler, _: handler.json(code, told if body is None else body, headers)


def error(http_status: int, **fields: object) -> Play:
    """An error with these fields in its ``error`` object."""
    return status(http_status, {"type": "error", "error": {"message": "something", **fields}})


def html(code: int = 200) -> Play:
    page = b"<!DOCTYPE html>\n<html><body>data: welcome to the hotel's network</body></html>\n"
    return lambda handler, _: handler.raw(code, page, {"content-type": "text/html"})


def plain_json() -> Play:
    """200 with JSON that is no stream."""
    return lambda handler, _: handler.json(200, {"id": "x", "object": "chat.completion", "choices": []})


def silence(seconds: float, *, after: int = 0) -> Play:
    """Nothing for a while: before the headers, or after so many events."""

    def play(handler: _Handler, body: dict[str, Any]) -> None:
        if after:
            handler.begin_stream()
            for frame in frames(handler.path, body, Answer())[:after]:
                handler.chunk(frame)
        time.sleep(seconds)

    return play


def trickle(seconds: float) -> Play:
    """Comments that keep the connection alive and say nothing."""

    def play(handler: _Handler, body: dict[str, Any]) -> None:
        handler.begin_stream()
        handler.chunk(frames(handler.path, body, Answer())[0])
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            handler.chunk(b": still here\n\n")
            time.sleep(0.05)

    return play


def echo_key(code: int) -> Play:
    """An error that repeats the request's key, in every field."""

    def play(handler: _Handler, body: dict[str, Any]) -> None:
        key = handler.headers["authorization"].removeprefix("Bearer ")
        told = {"type": "error", "error": {"type": f"bad {key}", "code": key, "message": f"no such key: {key}"}}
        handler.json(code, told)

    return play

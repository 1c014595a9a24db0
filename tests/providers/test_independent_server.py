"""The real SDKs and our providers before a server that nobody of this project wrote: llmock 0.2.2 (MIT, from PyPI).

Opt-in: install it into an environment of its own (it would autoload a pytest plugin in ours) and name its command,
``CELLPROSE_LLMOCK=/path/to/bin/llmock pytest tests/providers/test_independent_server.py``.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.request import Request as HttpRequest
from urllib.request import urlopen

import pytest

from pytest_cellprose.providers.base import ModelFailure, PathFault, Provider, Reply

from .conftest import PROVIDERS, QUICK, REQUEST

COMMAND = os.environ.get("CELLPROSE_LLMOCK", "")
pytestmark = pytest.mark.skipif(
    not shutil.which(COMMAND), reason="no independent server: name llmock's command in CELLPROSE_LLMOCK"
)


@dataclass
class LlMock:
    address: str

    def post(self, path: str, body: object = None) -> None:
        content = b"" if body is None else json.dumps(body).encode()
        urlopen(HttpRequest(self.address + path, content, {"content-type": "application/json"})).read()

    def behave(self, *behaviors: dict[str, Any]) -> None:
        self.post("/_llmock/reset")
        self.post("/_llmock/scenario", {"behaviors": list(behaviors)})

    def requests(self) -> list[dict[str, Any]]:
        found = json.loads(urlopen(self.address + "/_llmock/requests").read())
        requests: list[dict[str, Any]] = found if isinstance(found, list) else found["requests"]
        return requests


@pytest.fixture(scope="module")
def llmock() -> Iterator[LlMock]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [COMMAND, "serve", "--host", "127.0.0.1", "--port", str(port), "--log-level", "error"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with socket.socket() as knock:
                if knock.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield LlMock(f"http://127.0.0.1:{port}")
    finally:
        server.terminate()
        server.wait(10)


@pytest.fixture(params=list(PROVIDERS))
def provider(request: pytest.FixtureRequest, llmock: LlMock, environment: pytest.MonkeyPatch) -> Provider:
    environment.setenv("ANTHROPIC_BASE_URL", llmock.address + "/anthropic")
    environment.setenv("OPENAI_BASE_URL", llmock.address + "/v1")
    environment.setenv("CELLPROSE_COMPAT_BASE_URL", llmock.address + "/v1")
    llmock.post("/_llmock/reset")
    made: Provider = PROVIDERS[request.param](QUICK)
    return made


def call(provider: Provider) -> Reply:
    return provider.call(replace(REQUEST, model_id="gpt-4o", settings={"effort": "medium"}))


def test_an_ordinary_reply(provider: Provider) -> None:
    reply = call(provider)
    assert reply.text
    assert (reply.returned_model, reply.attempts) == ("gpt-4o", 1)
    assert reply.usage.input
    assert reply.usage.output


@pytest.mark.parametrize("status", [429, 500, 529])
def test_retries_end_in_one_reply(provider: Provider, llmock: LlMock, status: int) -> None:
    llmock.behave({"type": "fail", "status": status, "times": 2})
    assert call(provider).attempts == 3
    assert len(llmock.requests()) == 3


def test_a_refused_key(provider: Provider, llmock: LlMock) -> None:
    llmock.behave({"type": "fail", "status": 401, "times": 1})
    with pytest.raises(PathFault) as caught:
        call(provider)
    assert (caught.value.kind, caught.value.attempts) == ("authentication", 1)


def test_a_truncated_reply(provider: Provider, llmock: LlMock) -> None:
    llmock.behave({"type": "reply", "text": '{"q1": 1', "finish_reason": "length", "times": 1})
    with pytest.raises(ModelFailure) as caught:
        call(provider)
    assert caught.value.kind == "truncated"
    assert caught.value.reply is not None
    assert caught.value.reply.usage.input


@pytest.mark.parametrize(
    ("kind", "faults"),
    [
        ("disconnect", {"transport"}),
        ("truncate", {"cut_stream"}),
        ("malformed", {"malformed_stream"}),
        ("stall", {"time_out"}),
    ],
)
def test_broken_streams(provider: Provider, llmock: LlMock, kind: str, faults: set[str]) -> None:
    llmock.behave({"type": "stream_fault", "kind": kind, "times": 1})
    with pytest.raises(PathFault) as caught:
        call(provider)
    assert caught.value.kind in faults

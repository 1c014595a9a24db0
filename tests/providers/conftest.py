"""The three providers before a local server that speaks their protocols."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pytest

from pytest_cellprose.providers.anthropic import Anthropic
from pytest_cellprose.providers.base import ModelFailure, PathFault, Provider, Reply, Request
from pytest_cellprose.providers.compat import Compat
from pytest_cellprose.providers.http import Patience
from pytest_cellprose.providers.openai import OpenAI
from tests.providers.vendor_server import Answer, Play, VendorServer, serving

KEYS = {
    "ANTHROPIC_API_KEY": "sk-ant-test-0123456789",
    "OPENAI_API_KEY": "sk-oai-test-0123456789",
    "CELLPROSE_COMPAT_API_KEY": "sk-open-test-0123456789",
}
PROVIDERS: dict[str, Any] = {"anthropic": Anthropic, "openai": OpenAI, "compat": Compat}
URL_VARIABLES = {
    "anthropic": "ANTHROPIC_BASE_URL",
    "openai": "OPENAI_BASE_URL",
    "compat": "CELLPROSE_COMPAT_BASE_URL",
}
AT_ONCE = {"retry-after-ms": "1"}
"""A header that spares the tests the SDKs' back-off."""
QUICK = Patience(connect=5, read=2, wall=20)


@pytest.fixture
def server() -> Iterator[VendorServer]:
    with serving() as running:
        yield running


@pytest.fixture
def environment(server: VendorServer, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Keys and addresses that lead to the local server, and nothing else of the machine's."""
    for name in ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)
    for vendor, name in URL_VARIABLES.items():
        monkeypatch.setenv(name, server.address + ("" if vendor == "anthropic" else "/v1"))
    return monkeypatch


@dataclass
class Vendor:
    """One provider and the server that it talks to."""

    name: str
    server: VendorServer
    patience: Patience = QUICK

    @cached_property
    def provider(self) -> Provider:
        made: Provider = PROVIDERS[self.name](self.patience)
        return made

    def call(self, *script: Play | Answer) -> Reply:
        self.server.script = list(script)
        return self.provider.call(REQUEST)

    def fault(self, *script: Play | Answer) -> PathFault:
        with pytest.raises(PathFault) as caught:
            self.call(*script)
        return caught.value

    def failure(self, *script: Play | Answer) -> ModelFailure:
        with pytest.raises(ModelFailure) as caught:
            self.call(*script)
        return caught.value


REQUEST = Request("model-1", "the system prompt", "the prompt", 4000)


@pytest.fixture(params=list(PROVIDERS))
def vendor(request: pytest.FixtureRequest, server: VendorServer, environment: pytest.MonkeyPatch) -> Vendor:
    return Vendor(request.param, server)


@pytest.fixture
def anthropic(server: VendorServer, environment: pytest.MonkeyPatch) -> Vendor:
    return Vendor("anthropic", server)


@pytest.fixture
def openai(server: VendorServer, environment: pytest.MonkeyPatch) -> Vendor:
    return Vendor("openai", server)


@pytest.fixture
def compat(server: VendorServer, environment: pytest.MonkeyPatch) -> Vendor:
    return Vendor("compat", server)

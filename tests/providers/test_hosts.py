"""Where calls go, and whether that is the vendor's own host."""

from __future__ import annotations

import pytest

from pytest_cellprose.providers.hosts import elsewhere, host_of, hosts_called, is_own
from pytest_cellprose.record.record import Host
from tests.providers.conftest import PROVIDERS, URL_VARIABLES

ANTHROPIC = Host(scheme="https", host="api.anthropic.com", port=443)
OPENAI = Host(scheme="https", host="api.openai.com", port=443)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://api.anthropic.com", "https://api.anthropic.com"),
        ("https://API.Anthropic.com:443/secret/path?key=secret#x", "https://api.anthropic.com"),
        ("https://me:secret@host.example/v1", "https://host.example"),
        ("http://localhost:8080/v1", "http://localhost:8080"),
        ("http://127.0.0.1", "http://127.0.0.1"),
        ("http://[::1]:8080/v1", "http://[::1]:8080"),
        ("https://api.anthropic.com\\@evil.example/", "https://evil.example"),
    ],
)
def test_of_an_address_scheme_host_and_port_are_left(address: str, shown: str) -> None:
    assert str(host_of(address)) == shown


@pytest.mark.parametrize("address", ["", "localhost:8080", "http://", "/v1", "ftp://host"])
def test_what_names_no_host_has_none(address: str) -> None:
    assert host_of(address) is None


@pytest.mark.parametrize(
    "address",
    [
        "http://api.anthropic.com",
        "https://api.anthropic.com:8443",
        "https://api.anthropic.com.evil.example",
        "https://evil.example/api.anthropic.com",
        "https://api.anthropic.com@evil.example",
        "https://api.openai.com",
    ],
)
def test_only_scheme_host_and_port_together_are_the_vendor_s_own(address: str) -> None:
    assert is_own("anthropic", ANTHROPIC)
    assert is_own("openai", OPENAI)
    host = host_of(address)
    assert host is not None
    assert not is_own("anthropic", host)
    assert elsewhere([("anthropic", host)] * 2) == [f"calls went to {host}, which is not anthropic's own"]


def test_a_host_that_nobody_tells_is_not_taken_for_the_vendor_s_own() -> None:
    assert not is_own("openai", None)
    assert elsewhere([("openai", None), ("compat", None)]) == [
        "calls went to an address that is not known, which is not openai's own"
    ]


def test_any_host_is_right_for_open_weights() -> None:
    assert is_own("compat", host_of("http://localhost:8080"))


def test_without_a_variable_calls_go_to_the_vendor_s_own_host(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in URL_VARIABLES.values():
        monkeypatch.delenv(variable, raising=False)
    assert hosts_called(PROVIDERS, PROVIDERS) == {"anthropic": ANTHROPIC, "compat": None, "openai": OPENAI}
    monkeypatch.setenv("OPENAI_BASE_URL", "http://me:secret@localhost:8080/secret")
    assert str(hosts_called(["openai"], PROVIDERS)["openai"]) == "http://localhost:8080"


@pytest.mark.parametrize("name", ["anthropic", "openai"])
def test_the_sdk_is_told_the_address_that_is_recorded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(URL_VARIABLES[name], raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test-0123456789")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-oai-test-0123456789")
    client = PROVIDERS[name]()._client
    assert host_of(str(client.base_url)) == host_of(PROVIDERS[name].address())

"""Where calls go: the host of an address, and which hosts are a vendor's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pytest_cellprose.providers.base import Provider, called_address
from pytest_cellprose.record.record import PORTS, Host

OWN_ADDRESSES: dict[str, str] = {"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com/v1"}
"""Vendor -> the address of its own service, called where no other is named. Open-weight models have no such host."""


def host_of(address: str) -> Host | None:
    """Scheme, host and port of an address, read as the SDKs' HTTP client reads it; None if it names no host."""
    import httpx2

    try:
        url = httpx2.URL(address)
    except (httpx2.InvalidURL, ValueError):
        return None
    port = url.port or PORTS.get(url.scheme)
    return Host(scheme=url.scheme, host=url.host, port=port) if url.host and port else None


def is_own(vendor: str, host: Host | None) -> bool:
    """Whether a host is the vendor's own. Every host is for a vendor that has none, such as open-weight models'."""
    own = OWN_ADDRESSES.get(vendor)
    return own is None or (host is not None and host == host_of(own))


def elsewhere(calls: Iterable[tuple[str, Host | None]]) -> list[str]:
    """For vendors and the hosts that their calls go to: a sentence for each host that is not the vendor's own."""
    return [
        f"calls went to {host or 'an address that is not known'}, which is not {vendor}'s own"
        for vendor, host in dict.fromkeys(calls)
        if not is_own(vendor, host)
    ]


def hosts_called(vendors: Iterable[str], providers: Mapping[str, type[Provider]]) -> dict[str, Host | None]:
    """Vendor -> the host that its calls would go to from this machine now; None where its provider does not tell."""
    found = {vendor: called_address(providers[vendor]) for vendor in sorted(set(vendors)) if vendor in providers}
    return {vendor: None if address is None else host_of(address) for vendor, address in found.items()}

"""The models: pinned aliases with exact ids, list prices and settings (protocol section 4)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import date
from importlib.resources import files
from typing import Literal, TypeAlias

from pytest_cellprose.record import Frozen, Prices

Status: TypeAlias = Literal["proposed", "parked", "apart", "offline", "other"]


class ModelError(ValueError):
    """A model that is unknown or asked for in a way it cannot be used; the message says what is known."""


class ModelSpec(Frozen):
    """One model as it is called: ``haiku55``, or ``haiku55@low`` with an effort of its own."""

    alias: str
    model_id: str
    """The exact id that is sent."""
    vendor: str
    """Which provider calls it; ``offline`` models need no network and run in every mode."""
    prices: Prices
    max_tokens: int
    """Of output, reasoning included."""
    tier: Literal["cheap", "mid", "top"] | None = None
    status: Status = "other"
    effort: str | None = None
    """The explicit thinking or effort setting; None if the model takes none."""
    efforts: tuple[str, ...] = ()
    """Declared levels, for ``alias@level``."""
    context: int | None = None
    """Greatest input, in tokens."""
    checked: date | None = None
    """When the prices were last compared with the vendor's price page."""
    note: str | None = None
    """Said wherever the model's numbers are shown."""

    @property
    def live(self) -> bool:
        """Whether a call leaves this machine (and costs money)."""
        return self.vendor != "offline"


def builtin_models() -> dict[str, ModelSpec]:
    """The registry that ships with the package, by alias."""
    text = (files("pytest_cellprose.models") / "registry.toml").read_text(encoding="utf-8")
    return {alias: _spec(alias, entry) for alias, entry in tomllib.loads(text).items()}


def _spec(alias: str, entry: Mapping[str, object]) -> ModelSpec:
    fields = set(Prices.model_fields)
    return ModelSpec.model_validate(
        {
            "alias": alias,
            "prices": {key: value for key, value in entry.items() if key in fields},
            **{key: value for key, value in entry.items() if key not in fields},
        }
    )


def proposed_models(registry: Mapping[str, ModelSpec]) -> list[str]:
    """The aliases of the protocol's proposed set, in registry order."""
    return [alias for alias, spec in registry.items() if spec.status == "proposed"]


def resolve_model(name: str, registry: Mapping[str, ModelSpec]) -> ModelSpec:
    """The model that `name` means; ``alias@level`` is a model of its own.

    Raises `ModelError` for an unknown alias, a level that the model does not declare, and for the level that
    the bare alias already has (it would be the same model under two names).
    """
    alias, at, level = name.rpartition("@")
    if not at:
        alias, level = name, ""
    spec = registry.get(alias)
    if spec is None:
        raise ModelError(f"unknown model {name!r}: known are {', '.join(sorted(registry))}")
    if not at:
        return spec
    if not spec.efforts:
        raise ModelError(f"model {alias!r} declares no effort levels: {name!r} cannot be used")
    if level not in spec.efforts:
        raise ModelError(f"model {alias!r} has no effort level {level!r}: declared are {', '.join(spec.efforts)}")
    if level == spec.effort:
        raise ModelError(f"{name!r} is the same model as {alias!r}, whose effort is {level!r}: use the bare alias")
    return spec.model_copy(update={"alias": name, "effort": level})

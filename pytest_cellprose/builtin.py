"""The package's own encodings, models and providers, registered through the hooks that anyone can use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import pytest

if TYPE_CHECKING:
    from pytest_cellprose.encodings.base import Encoding
    from pytest_cellprose.lineup import Registered
    from pytest_cellprose.models.registry import ModelSpec
    from pytest_cellprose.providers.base import Provider
    from pytest_cellprose.run.budget import PendingCall, Refusal


T = TypeVar("T")


@pytest.hookimpl
def pytest_cellprose_encodings() -> Sequence[Encoding]:
    from pytest_cellprose.encodings import builtin_encodings

    return builtin_encodings()


@pytest.hookimpl
def pytest_cellprose_models() -> Sequence[ModelSpec]:
    from pytest_cellprose.models.registry import builtin_models

    return list(builtin_models().values())


@pytest.hookimpl
def pytest_cellprose_providers() -> Mapping[str, type[Provider]]:
    from pytest_cellprose.providers.anthropic import Anthropic
    from pytest_cellprose.providers.compat import Compat
    from pytest_cellprose.providers.openai import OpenAI
    from pytest_cellprose.providers.reader import Reader

    return {"offline": Reader, "anthropic": Anthropic, "openai": OpenAI, "compat": Compat}


@pytest.hookimpl(trylast=True)
def pytest_cellprose_admit(config: pytest.Config, call: PendingCall) -> Refusal | None:
    """The bound of ``--cellprose-wall-clock``."""
    from pytest_cellprose.run.budget import wall_clock_refusal

    bound = config.getoption("cellprose_wall_clock")
    return wall_clock_refusal(call, None if bound is None else float(bound))


def registered(config: pytest.Config) -> Registered:
    """Everything that hooks bring, ours first.

    Raises `pytest.UsageError` naming every entry that is no encoding, model or provider, or whose name is taken.
    """
    from pytest_cellprose.encodings.base import Encoding
    from pytest_cellprose.lineup import Registered
    from pytest_cellprose.models.registry import ModelSpec, spec_problem

    problems: list[str] = []
    hook = config.hook
    encodings = _by_name(_flat(hook.pytest_cellprose_encodings(config=config)), Encoding, "name", "encoding", problems)
    models = _by_name(_flat(hook.pytest_cellprose_models(config=config)), ModelSpec, "alias", "model", problems)
    problems += [f"hook pytest_cellprose_models: {text}" for text in map(spec_problem, models.values()) if text]
    _add_configured(config, models, problems)
    providers: dict[str, type[Provider]] = {}
    for offered in reversed(hook.pytest_cellprose_providers(config=config)):
        for vendor, provider in offered.items():
            if vendor in providers:
                problems.append(f"hook pytest_cellprose_providers: vendor {vendor!r} has a provider already")
            elif not callable(getattr(provider, "call", None)):
                problems.append(f"hook pytest_cellprose_providers: {provider!r} for {vendor!r} has no method call()")
            else:
                providers[vendor] = provider
    if problems:
        raise pytest.UsageError("\n".join(["cellprose:", *(f"  {problem}" for problem in problems)]))
    return Registered(models=models, encodings=encodings, providers=providers)


def _add_configured(config: pytest.Config, models: dict[str, ModelSpec], problems: list[str]) -> None:
    """Models of the user's registry file and of ``--cellprose-openweight``, after those of hooks."""
    from pytest_cellprose.models.registry import ModelError, openweight_model, read_registry

    found: list[tuple[str, ModelSpec]] = []
    for name in config.getini("cellprose_registry"):
        try:
            found += [(f"ini cellprose_registry: {name}", spec) for spec in read_registry(config.rootpath / name)]
        except ModelError as error:
            problems += [f"ini cellprose_registry: {line}" for line in str(error).splitlines()]
    for text in config.getoption("cellprose_openweight"):
        try:
            found.append(("--cellprose-openweight", openweight_model(text)))
        except ModelError as error:
            problems.append(f"--cellprose-openweight: {error}")
    for where, spec in found:
        if spec.alias in models:
            problems.append(f"{where}: the name {spec.alias!r} is taken: use another")
        else:
            models[spec.alias] = spec


def _flat(results: Iterable[Iterable[object]]) -> list[object]:
    """Hooks answer last registered first; the plan lists what was registered first, first."""
    return [entry for result in reversed(list(results)) for entry in result]


def _by_name(entries: Iterable[object], kind: type[T], key: str, noun: str, problems: list[str]) -> dict[str, T]:
    found: dict[str, T] = {}
    for entry in entries:
        if not isinstance(entry, kind):
            problems.append(f"hook pytest_cellprose_{noun}s: {entry!r} is not of type {kind.__name__}")
        elif (name := getattr(entry, key)) in found:
            problems.append(f"hook pytest_cellprose_{noun}s: the name {name!r} is taken: use another")
        else:
            found[name] = entry
    return found

"""The package's own encodings, models, providers and kinds of question, registered by hooks that anyone can use."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

import pytest

if TYPE_CHECKING:
    from pytest_cellprose.encodings.base import Encoding
    from pytest_cellprose.measure.engine import Engine
    from pytest_cellprose.measure.spec import RunSpec
    from pytest_cellprose.models.registry import ModelSpec
    from pytest_cellprose.plan.models import Registered
    from pytest_cellprose.providers.base import Provider
    from pytest_cellprose.questions.kind import QuestionKind
    from pytest_cellprose.store.ledger import PendingCall, Refusal
    from pytest_cellprose.store.records import Store
    from pytest_cellprose.suites.base import Suite


T = TypeVar("T")


@pytest.hookimpl
def pytest_cellprose_encodings() -> Sequence[Encoding]:
    from pytest_cellprose.encodings import builtin_encodings

    return builtin_encodings()


@pytest.hookimpl
def pytest_cellprose_suites() -> Sequence[Suite]:
    from pytest_cellprose.suites.spreadsheets import Spreadsheets

    return [Spreadsheets()]


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


@pytest.hookimpl
def pytest_cellprose_questions() -> Sequence[QuestionKind]:
    from pytest_cellprose.questions.kinds import BUILTIN_KINDS

    return list(BUILTIN_KINDS.values())


@pytest.hookimpl(trylast=True)
def pytest_cellprose_admit(config: pytest.Config, call: PendingCall) -> Refusal | None:
    """The bound of ``--cellprose-wall-clock``."""
    from pytest_cellprose.measure.admission import wall_clock_refusal

    bound = config.getoption("cellprose_wall_clock")
    return wall_clock_refusal(call, None if bound is None else float(bound))


def registered(config: pytest.Config) -> Registered:
    """Everything that hooks bring, ours first.

    Raises `pytest.UsageError` naming every entry that is no encoding, model, provider or kind, whose name is taken, or
    whose name is the protocol's and which is not ours.
    """
    from pytest_cellprose.encodings.base import Encoding
    from pytest_cellprose.method.roles import RESERVED_ENCODINGS
    from pytest_cellprose.models.registry import ModelSpec, builtin_models, spec_problem
    from pytest_cellprose.plan.models import Registered
    from pytest_cellprose.questions.kind import QuestionKind
    from pytest_cellprose.questions.kinds import BUILTIN_KINDS
    from pytest_cellprose.store.manifest import SPREADSHEETS
    from pytest_cellprose.suites.base import Suite

    problems: list[str] = []
    kinds = _by_name(_offered(config, "question"), QuestionKind, "name", BUILTIN_KINDS, problems)
    encodings = _by_name(_offered(config, "encoding"), Encoding, "name", RESERVED_ENCODINGS, problems)
    suites = _by_name(_offered(config, "suite"), Suite, "name", {SPREADSHEETS}, problems)  # type: ignore[type-abstract]
    models = _by_name(_offered(config, "model"), ModelSpec, "alias", builtin_models(), problems)
    problems += [f"hook pytest_cellprose_models: {text}" for text in map(spec_problem, models.values()) if text]
    _add_configured(config, models, problems)
    providers: dict[str, type[Provider]] = {}
    reserved_vendors = pytest_cellprose_providers()
    for offer in _offered(config, "provider"):
        vendor, provider = cast("tuple[str, type[Provider]]", offer.entry)
        if vendor in reserved_vendors and not offer.ours:
            problems.append(f"{offer.where}: the vendor {vendor!r} is the protocol's: use another name")
        elif vendor in providers:
            problems.append(f"{offer.where}: vendor {vendor!r} has a provider already")
        elif not callable(getattr(provider, "call", None)):
            problems.append(f"{offer.where}: {provider!r} for {vendor!r} has no method call()")
        else:
            providers[vendor] = provider
    if problems:
        raise pytest.UsageError("\n".join(["cellprose:", *(f"  {problem}" for problem in problems)]))
    return Registered(models=models, encodings=encodings, providers=providers, suites=suites, kinds=kinds)


def engine_of(spec: RunSpec, offered: Registered, config: pytest.Config, store: Store | None = None) -> Engine:
    """What measures a run's cells in this process. `store`: of this machine, if not the run's own."""
    from pytest_cellprose.cache import TextCache
    from pytest_cellprose.measure.engine import Engine
    from pytest_cellprose.sandbox.choose import sandboxes
    from pytest_cellprose.store.layout import SANDBOX_SLOTS
    from pytest_cellprose.store.records import Store

    manifest, agents = spec.manifest, spec.manifest.agents
    store = store or Store(spec.out, manifest.run)
    suite = offered.suite(
        manifest.suite,
        TextCache(spec.cache),
        final=manifest.mode == "final",
        sandboxes=sandboxes(spec.sandbox.name, spec.sandbox.slots, store.folder / SANDBOX_SLOTS),
        sandbox_facts=agents.sandbox if agents and agents.sandbox else None,
    )

    def ask(call: PendingCall) -> object:
        return config.hook.pytest_cellprose_admit(config=config, call=call)

    return Engine(spec, suite, offered.providers, ask, store)


class _Offer(NamedTuple):
    """An entry that a plugin answered to a hook with."""

    entry: object
    hook: str
    plugin: str
    file: str
    ours: bool

    @property
    def where(self) -> str:
        return f"hook {self.hook}: {self.plugin} ({self.file})"


def _offered(config: pytest.Config, noun: str) -> Iterator[_Offer]:
    """What each plugin answers, first registered first."""
    hook = f"pytest_cellprose_{noun}s"
    implementations = getattr(config.hook, hook).get_hookimpls()
    plugins = list(dict.fromkeys(each.plugin for each in implementations))
    for each in implementations:
        if each.wrapper or each.hookwrapper:
            continue
        ours = each.plugin is sys.modules[__name__]
        file = inspect.getsourcefile(inspect.unwrap(each.function)) or "no file"
        caller = config.pluginmanager.subset_hook_caller(hook, [other for other in plugins if other is not each.plugin])
        for answer in caller(config=config):
            for entry in answer.items() if isinstance(answer, Mapping) else answer:
                yield _Offer(entry, hook, each.plugin_name, file, ours)


def _add_configured(config: pytest.Config, models: dict[str, ModelSpec], problems: list[str]) -> None:
    """Models of the user's registry file and of ``--cellprose-openweight``, after those of hooks."""
    from pytest_cellprose.models.registry import ModelError, builtin_models, openweight_model, read_registry

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
        if spec.alias in builtin_models():
            problems.append(f"{where}: the name {spec.alias!r} is the protocol's: use another")
        elif spec.alias in models:
            problems.append(f"{where}: the name {spec.alias!r} is taken: use another")
        else:
            models[spec.alias] = spec


def _by_name(
    offers: Iterable[_Offer], kind: type[T], key: str, reserved: Container[str], problems: list[str]
) -> dict[str, T]:
    """`reserved`: names that no entry but ours may have, whoever is first."""
    found: dict[str, T] = {}
    for offer in offers:
        entry = offer.entry
        if not isinstance(entry, kind):
            problems.append(f"{offer.where}: {entry!r} is not of type {kind.__name__}")
            continue
        name = getattr(entry, key)
        if name in reserved and not offer.ours:
            problems.append(f"{offer.where}: the name {name!r} is the protocol's: use another")
        elif name in found:
            problems.append(f"{offer.where}: the name {name!r} is taken: use another")
        else:
            found[name] = entry
    return found

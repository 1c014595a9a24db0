"""Which models and encodings a plan has, and which of their pairs cannot be (docs/ARCHITECTURE.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_cellprose.cache import TextCache
from pytest_cellprose.encodings.base import Encoding
from pytest_cellprose.method.roles import AGENTS, FINAL, ONE_SHOT, RESERVED_ENCODINGS, may_take
from pytest_cellprose.models.registry import (
    ModelError,
    ModelSpec,
    proposed_models,
    resolve_model,
    same_models,
    with_effort,
)
from pytest_cellprose.plan.problems import Draft
from pytest_cellprose.plan.settings import Settings
from pytest_cellprose.providers.base import Provider
from pytest_cellprose.questions.kind import Kinds
from pytest_cellprose.questions.kinds import BUILTIN_KINDS
from pytest_cellprose.questions.problem import Problem
from pytest_cellprose.sandbox.base import Sandboxes
from pytest_cellprose.store.manifest import PlannedOut
from pytest_cellprose.suites.base import Suite, Variant, Workplace


@dataclass(frozen=True)
class Registered:
    """Everything that hooks brought."""

    models: Mapping[str, ModelSpec]
    encodings: Mapping[str, Encoding]
    providers: Mapping[str, type[Provider]]
    """By vendor."""
    suites: Mapping[str, Suite]
    kinds: Kinds = field(default_factory=lambda: BUILTIN_KINDS)
    """Of questions."""

    def suite(
        self,
        name: str,
        cache: TextCache,
        *,
        final: bool,
        sandboxes: Sandboxes | None = None,
        sandbox_facts: Mapping[str, Any] | None = None,
    ) -> Suite:
        """A suite with what this process has for it to work with."""
        place = Workplace(cache, self.encodings, self.kinds, final, sandboxes, sandbox_facts)
        return self.suites[name].within(place)


def planned_encodings(settings: Settings, suite: Suite, models: Mapping[str, ModelSpec], draft: Draft) -> list[Variant]:
    """Those that were named, or the mode's own and every one of somebody else's; what is wrong goes into `draft`.

    `models`: the registry. Agents' are planned unnamed in a final run, and for a model that was named and explores.
    """
    known = {variant.name: variant for variant in suite.variants()}
    names = _mode_s_own(settings, known, models) if settings.encodings is None else list(settings.encodings)
    for name in names:
        if name not in known:
            draft.refuse(f"--cellprose-encodings: unknown encoding {name!r}: known are {', '.join(known)}")
    if settings.challenger not in known:
        draft.refuse(f"--cellprose-challenger: unknown encoding {settings.challenger!r}: known are {', '.join(known)}")
    elif settings.challenger == "none":
        draft.refuse("--cellprose-challenger: 'none' is the control and is never compared")
    elif settings.challenger not in names:
        draft.notes.append(f"the challenger {settings.challenger} is not in the plan: no verdicts")
    if settings.baseline == "none":
        draft.refuse("--cellprose-baseline: 'none' is the control and is never compared")
    elif settings.baseline is not None and settings.baseline not in names:
        draft.refuse(
            f"--cellprose-baseline: encoding {settings.baseline!r} is not in the plan, which has {', '.join(names)}"
        )
    return [known[name] for name in names if name in known]


def _mode_s_own(settings: Settings, known: Iterable[str], models: Mapping[str, ModelSpec]) -> list[str]:
    third_party = [name for name in known if name not in RESERVED_ENCODINGS]
    if settings.final:
        return [*(name for name in FINAL if name in known), *third_party]
    exploring = {name in models and models[name].explores for name in settings.models or ()}
    in_prompts = [*(name for name in ONE_SHOT if name in known), *third_party]
    as_files = [name for name in FINAL if name in AGENTS and name in known]
    return ([] if exploring == {True} else in_prompts) + (as_files if True in exploring else [])


def planned_models(settings: Settings, registered: Registered, draft: Draft, *, reader: bool = True) -> list[ModelSpec]:
    """Those that were named, by option or ini, or the mode's own; what is wrong goes into `draft`.

    `reader`: whether the offline reader can read what is asked.
    """
    registry = registered.models
    where = "--cellprose-models"
    if settings.models is not None:
        names = list(settings.models)
    elif settings.ini_models and not settings.final:
        names, where = list(dict.fromkeys(settings.ini_models)), "ini cellprose_models"
    else:
        names = proposed_models(registry)
        if reader and not settings.final:
            names = [alias for alias, spec in registry.items() if spec.status == "offline"] + names
    if settings.models is None:
        names = list(dict.fromkeys([*names, *(alias for alias in settings.openweight if alias in registry)]))
    models: list[ModelSpec] = []
    for name in names:
        try:
            meant = name if settings.effort is None else with_effort(name, settings.effort, registry)
            models.append(resolve_model(meant, registry))
        except ModelError as error:
            draft.refuse(f"{where}: {error}")
    for one, other in same_models(models):
        said = f"given twice: {one!r}" if one == other else f"one call under two names: {one!r} and {other!r}"
        draft.refuse(f"{where}: {said}")
    if settings.live:
        lost = [model for model in models if model.vendor not in registered.providers]
        if lost:
            vendors = ", ".join(sorted({model.vendor for model in lost}))
            draft.gate.append(
                Problem(
                    f"no provider for {vendors} in this version: {', '.join(m.alias for m in lost)} cannot be "
                    "called; name other models with --cellprose-models"
                )
            )
    return models


def planned_out(models: Iterable[ModelSpec], suite: Suite, variants: Iterable[Variant]) -> list[PlannedOut]:
    """Pairs that cannot be: a text that the reader cannot decode, an agent that the protocol keeps from a model."""
    planned = list(variants)
    unreadable = {
        explores: {variant.name: suite.unreadable(variant, explores=explores) for variant in planned}
        for explores in (False, True)
    }
    found = []
    for model in models:
        for name, why in unreadable[model.explores].items():
            if model.live and not may_take(model.vendor, name):
                reason = f"open-weight models are asked in one shot only (protocol section 4): not {model.alias}"
                found.append(PlannedOut(model=model.alias, encoding=name, reason=reason))
            elif not model.live and why is not None:
                found.append(
                    PlannedOut(model=model.alias, encoding=name, reason=f"{why}: {model.alias} cannot read it")
                )
    return found

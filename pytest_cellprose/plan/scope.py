"""The protocol's scope of a final run (sections 1, 4 and 9): which cuts are allowed and named, and which forbidden.

A run may be made smaller before it starts, by four levers only: fewer models, secondary encodings dropped, the
control run once, a drawn subset of held-out workbooks. Each lever used is a named deviation; any other cut makes the
run not publishable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from pytest_cellprose.method.roles import (
    CONTROL,
    KEPT_TIERS,
    LEAST_REPEATS,
    NAMED_PLAN,
    NEVER_DROPPED,
    REFERENCE,
    REPEATS,
    REPORTED,
    SECONDARY,
    VENDORS,
)
from pytest_cellprose.models.registry import ModelSpec, proposed_models


@dataclass
class Judgement:
    deviations: list[str] = field(default_factory=list)
    """To be named in the write-up."""
    unpublishable: list[str] = field(default_factory=list)
    """What rules a publication out."""


def judge_scope(
    models: Sequence[ModelSpec],
    encodings: Iterable[str],
    registry: Mapping[str, ModelSpec],
    protocol: Mapping[str, ModelSpec],
    *,
    repeats: int,
    none_once: bool,
) -> Judgement:
    """What a final run of these models and encodings, and of so many repeats, cuts from the protocol's scope.

    `registry` has all models that there are, `protocol` those of this package alone.
    """
    judgement = Judgement()
    _judge_models(models, registry, protocol, judgement)
    _judge_encodings(set(encodings), judgement)
    if repeats < LEAST_REPEATS:
        judgement.unpublishable.append("one repeat: the protocol's lower bound is two")
    elif repeats < REPEATS:
        judgement.deviations.append(f"scope cut: {repeats} repeats instead of {REPEATS}")
    if none_once:
        judgement.deviations.append("scope cut: the control none runs once")
    return judgement


def _judge_models(
    models: Sequence[ModelSpec],
    registry: Mapping[str, ModelSpec],
    protocol: Mapping[str, ModelSpec],
    judgement: Judgement,
) -> None:
    if not any(model.live for model in models):
        judgement.unpublishable.append("no language model in the plan")
        return
    proposed = {protocol[alias].model_id: alias for alias in proposed_models(protocol)}
    present = {proposed[model.model_id]: model for model in models if model.model_id in proposed}
    dropped = [alias for alias in proposed.values() if alias not in present]
    if dropped and set(present) == set(NAMED_PLAN):
        judgement.deviations.append(f"scope cut: the plan of {', '.join(NAMED_PLAN)} (without {', '.join(dropped)})")
    else:
        if dropped:
            judgement.deviations.append(f"scope cut: without the models {', '.join(dropped)}")
        for vendor, name in VENDORS.items():
            tiers = {protocol[alias].tier for alias in present if protocol[alias].vendor == vendor}
            absent = [tier for tier in KEPT_TIERS if tier not in tiers]
            if absent:
                judgement.unpublishable.append(
                    f"{name} without a {' and a '.join(absent)} model: only the plan of {', '.join(NAMED_PLAN)} may be"
                )
    judgement.unpublishable += [said for model in models for said in _replaced(model, protocol)]
    for model in models:
        base = registry.get(model.alias.rpartition("@")[0])
        if base is not None:
            judgement.deviations.append(f"{model.alias}: effort {model.effort}, not the registered {base.effort}")
        if model.status == "parked":
            judgement.deviations.append(f"{model.alias} is run: the protocol has it parked")


AS_CALLED = ("vendor", "max_tokens", "effort", "thinking", "prompt_cache", "prices")
"""What makes two calls of one model id different, or differently priced."""


def _replaced(model: ModelSpec, protocol: Mapping[str, ModelSpec]) -> Iterator[str]:
    """A registered model that asks for a protocol model's id in another way, or at another price.

    ``haiku55@low`` is the protocol's model with an effort that was asked for: no replacement.
    """
    if model.alias.partition("@")[0] in protocol:
        return
    for meant in protocol.values():
        if model.model_id == meant.model_id:
            other = [name for name in AS_CALLED if getattr(model, name) != getattr(meant, name)]
            if other:
                how = ", ".join(f"{name} {_shown(model, name)} and not {_shown(meant, name)}" for name in other)
                yield f"{model.alias} asks for {meant.alias}'s {meant.model_id} in another way: {how}"


def _shown(model: ModelSpec, name: str) -> str:
    if name == "prices":
        return " ".join(f"{key}={value}" for key, value in model.prices if value not in (None, False))
    return str(getattr(model, name))


def _judge_encodings(names: set[str], judgement: Judgement) -> None:
    judgement.unpublishable += [f"{name} absent" for name in NEVER_DROPPED if name not in names]
    kept = [name for name in SECONDARY if name in names]
    judgement.deviations += [f"scope cut: {name} dropped" for name in SECONDARY if name not in names]
    if REFERENCE not in names and kept:
        judgement.unpublishable.append(f"csv dropped before {' and '.join(kept)}: the reference is dropped last")
    elif REFERENCE not in names:
        judgement.deviations.append("scope cut: csv dropped, so that no win can be claimed")
    if REPORTED not in names:
        judgement.deviations.append(f"{REPORTED} absent: the protocol has it reported, not tested")
    if CONTROL not in names:
        judgement.unpublishable.append("the control none absent: it may run once, not be dropped")


def price_dates(models: Iterable[ModelSpec], today: date) -> list[str]:
    """Deviations of live models whose prices were not checked on the day of the run (section 4)."""
    by_date: dict[date | None, list[str]] = {}
    for model in models:
        if model.live and model.checked != today:
            by_date.setdefault(model.checked, []).append(model.alias)
    return [
        f"prices of {', '.join(aliases)} "
        + (f"checked on {checked}, not on the day of the run" if checked else "with no date of a check")
        + f" ({today})"
        for checked, aliases in by_date.items()
    ]

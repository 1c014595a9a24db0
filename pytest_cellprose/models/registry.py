"""The models: pinned aliases with exact ids, list prices and settings (protocol section 4)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal, InvalidOperation
from importlib.resources import files
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import ValidationError

from pytest_cellprose.record.record import Frozen, Prices

Status: TypeAlias = Literal["proposed", "parked", "apart", "offline", "other"]

MAX_TOKENS = 16_000
"""Of every model that says nothing else: answers are short, and the rest is room to think."""
COMPATIBLE = "compat"
"""The vendor of open-weight models on any host that speaks Chat Completions."""

_ALIAS = re.compile(r"\w[\w.-]*")


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
    thinking: Literal["adaptive", "disabled"] | None = None
    """Anthropic's thinking, said in every request; None: not said."""
    prompt_cache: Literal["explicit"] | None = None
    """``explicit``: OpenAI's ``prompt_cache_options.mode``, which without breakpoints switches caching off."""
    context: int | None = None
    """Greatest input, in tokens."""
    checked: date | None = None
    """When the prices were last compared with the vendor's price page."""
    price_source: str | None = None
    """Where the prices are from."""
    explores: bool = False
    """Of an offline model: it works with tools, and reads no prompt."""
    note: str | None = None
    """Said wherever the model's numbers are shown."""

    @property
    def settings(self) -> dict[str, str]:
        """What is sent explicitly beside max_tokens, by name of the field above."""
        named = {"effort": self.effort, "thinking": self.thinking, "prompt_cache": self.prompt_cache}
        return {name: value for name, value in named.items() if value is not None}

    @property
    def live(self) -> bool:
        """Whether a call leaves this machine (and costs money)."""
        return self.vendor != "offline"


def builtin_models() -> dict[str, ModelSpec]:
    """The registry that ships with the package, by alias."""
    text = (files("pytest_cellprose.models") / "registry.toml").read_text(encoding="utf-8")
    return {alias: _spec(alias, entry) for alias, entry in tomllib.loads(text).items()}


def read_registry(path: Path) -> list[ModelSpec]:
    """Models of a user's own file, written as ``registry.toml`` is: a table per alias.

    Raises `ModelError` with a line for every entry that is wrong; each names file, alias and field.
    """
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # TOML's errors and Unicode's
        raise ModelError(f"{path}: not TOML: {error}") from None
    models, problems = [], []
    for alias, entry in entries.items():
        try:
            models.append(_read_spec(alias, entry))
        except ModelError as error:
            problems.append(f"{path}: {error}")
    if problems:
        raise ModelError("\n".join(problems))
    return models


def _read_spec(alias: str, entry: object) -> ModelSpec:
    if not isinstance(entry, Mapping):
        raise ModelError(f"{alias}: not a table: write [{alias}] and its fields below")
    missing = [price for price in ("input", "output") if price not in entry]
    if missing:
        raise ModelError(
            f"model {alias!r} has no price ({' and '.join(missing)} missing, dollars per million tokens): a model "
            "without a price is never taken for free"
        )
    prices = {key: str(value) if _is_amount(value) else value for key, value in entry.items() if key in _RATES}
    try:
        spec = _spec(alias, {"max_tokens": MAX_TOKENS, **entry, **prices})
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"] if part != "prices")
        raise ModelError(f"model {alias!r}: {field}: {first['msg']}") from None
    problem = spec_problem(spec)
    if problem is not None:
        raise ModelError(problem)
    return spec


def openweight_model(text: str) -> ModelSpec:
    """The model that ``alias=model_id,price_in,price_out`` describes; prices in dollars per million tokens.

    Raises `ModelError` that repeats the text and says what is wrong with it.
    """
    alias, equals, rest = (part.strip() for part in text.partition("="))
    model_id, *prices = (part.strip() for part in rest.rsplit(",", 2))
    if not (alias and equals and model_id and len(prices) == 2):
        raise ModelError(f"{text!r} is not alias=model_id,price_in,price_out")
    spec = ModelSpec(
        alias=alias,
        model_id=model_id,
        vendor=COMPATIBLE,
        prices=Prices(input=prices[0].removeprefix("$"), output=prices[1].removeprefix("$")),
        max_tokens=MAX_TOKENS,
        price_source="the command line",
        note=f"{alias}: prices as given on the command line",
    )
    problem = spec_problem(spec)
    if problem is not None:
        raise ModelError(f"{text!r}: {problem}")
    return spec


_RATES = ("input", "output", "cache_read", "input_above", "output_above")


def spec_problem(spec: ModelSpec) -> str | None:
    """Why a model, wherever it comes from, cannot be planned; None if it can."""
    prices = spec.prices
    if not _ALIAS.fullmatch(spec.alias):
        return f"model {spec.alias!r}: an alias is made of letters, digits, '_', '.' and '-' ('@' sets off an effort)"
    for field in _RATES:
        rate = getattr(prices, field)
        if rate is not None and not _is_rate(rate):
            return f"model {spec.alias!r}: {field}: {rate!r} is no price in dollars per million tokens"
    if spec.live and not (Decimal(prices.input) or Decimal(prices.output)):
        return f"model {spec.alias!r} has no price: give what its host charges, a model is never taken for free"
    tier = (prices.above, prices.input_above, prices.output_above)
    if any(part is None for part in tier) and any(part is not None for part in tier):
        return f"model {spec.alias!r}: above, input_above and output_above belong together"
    if spec.max_tokens < 1:
        return f"model {spec.alias!r}: max_tokens: {spec.max_tokens} is no number of tokens"
    if spec.effort is not None and spec.effort not in spec.efforts:
        declared = ", ".join(spec.efforts) or "none"
        return f"model {spec.alias!r}: effort {spec.effort!r} is not among its declared levels ({declared})"
    return None


def _is_amount(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_rate(text: str) -> bool:
    try:
        rate = Decimal(text)
    except InvalidOperation:
        return False
    return rate.is_finite() and rate >= 0


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


def with_effort(name: str, level: str, registry: Mapping[str, ModelSpec]) -> str:
    """The name of the model that `name` means when `level` is asked of every model.

    An offline model takes no effort and is left as it is. Raises `ModelError` where the level contradicts the
    name's own, or is none that the model declares.
    """
    alias, at, own = name.rpartition("@")
    if at and own != level:
        raise ModelError(f"{name!r} asks for effort {own!r}, and --cellprose-effort for {level!r}: give one of them")
    spec = resolve_model(alias or name, registry)
    if not spec.live or spec.effort == level:
        return spec.alias
    return resolve_model(f"{spec.alias}@{level}", registry).alias


def same_models(models: Sequence[ModelSpec]) -> list[tuple[str, str]]:
    """Pairs of aliases that mean one and the same call: vendor, model id, effort and max_tokens are equal."""
    first: dict[tuple[object, ...], str] = {}
    pairs = []
    for model in models:
        call = (model.vendor, model.model_id, model.effort, model.max_tokens)
        if call in first:
            pairs.append((first[call], model.alias))
        else:
            first[call] = model.alias
    return pairs

"""Our registry's prices against an independent table, the package genai-prices."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from importlib.metadata import version
from typing import TYPE_CHECKING

from pytest_cellprose.models.pricing import cost_nanousd
from pytest_cellprose.models.registry import ModelSpec
from pytest_cellprose.record.record import Frozen
from pytest_cellprose.wording import NANOUSD, dollars

if TYPE_CHECKING:
    from datetime import datetime

_PROBE = (10_000, 1_000)
"""Input and output tokens of a request well below any tier."""


class Agreement(Frozen):
    """Which prices agree. Plain types: a part of the manifest."""

    table: str
    """Who was asked, with its version."""
    agree: list[str]
    """Aliases."""
    differ: dict[str, str]
    """Alias -> where and by how much."""
    unknown: list[str]
    """Aliases that the table does not have."""

    def line(self) -> str:
        """For a reader."""
        said = [f"{self.table} agrees with the prices of {', '.join(self.agree)}"] if self.agree else []
        said += [f"{self.table} differs for {alias}: {how}" for alias, how in self.differ.items()]
        if self.unknown:
            said.append(f"{self.table} does not know {', '.join(self.unknown)}")
        return "; ".join(said) or f"{self.table} was asked about no model"


def price_agreement(models: Iterable[ModelSpec], at: datetime | None = None) -> Agreement:
    """Price the same requests by both: below a tier, at its edge, one token above it, and a cached one.

    `at`: the moment whose prices are asked for; None: now. No network: the table comes with the package.
    """
    agree, differ, unknown = [], {}, []
    for model in models:
        if not model.live:
            continue
        try:
            difference = _difference(model, at)
        except LookupError:
            unknown.append(model.alias)
            continue
        if difference is None:
            agree.append(model.alias)
        else:
            differ[model.alias] = difference
    return Agreement(table=f"genai-prices {version('genai-prices')}", agree=agree, differ=differ, unknown=unknown)


def _difference(model: ModelSpec, at: datetime | None) -> str | None:
    """Raises LookupError for a model that the table does not have under its exact id."""
    prompt, output = _PROBE
    sizes = [prompt] if model.prices.above is None else [prompt, model.prices.above, model.prices.above + 1]
    for size in sizes:
        ours, theirs = cost_nanousd(model.prices, size, output), _table_cost(model, size, output, 0, at)
        if ours != theirs:
            return f"{size:,} tokens in and {output:,} out cost {dollars(ours)} here and {dollars(theirs)} there"
    if model.prices.cache_read is not None:
        ours = int(prompt * Decimal(model.prices.cache_read) * 1000)
        theirs = _table_cost(model, prompt, 0, prompt, at)
        if ours != theirs:
            return f"{prompt:,} cached tokens cost {dollars(ours)} here and {dollars(theirs)} there"
    return None


def _table_cost(model: ModelSpec, prompt: int, output: int, cached: int, at: datetime | None) -> int:
    from genai_prices import Usage, calc_price

    usage = Usage(input_tokens=prompt, output_tokens=output, cache_read_tokens=cached)
    found = calc_price(usage, model.model_id, provider_id=model.vendor, genai_request_timestamp=at)
    if found.model.id != model.model_id:  # the table also matches by the beginning of an id
        raise LookupError(model.model_id)
    return int(found.total_price * NANOUSD)

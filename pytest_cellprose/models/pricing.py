"""What a call costs at list price (protocol sections 2 and 8).

A price in dollars per million tokens is a thousand nano-dollars a token, so costs are exact until the one
rounding to integer nano-dollars at the end of a request.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal
from typing import NamedTuple

from pytest_cellprose.record.record import Prices, Usage

_NANOUSD_PER_TOKEN = 1000  # of a price of $1 per million tokens


class CallPrice(NamedTuple):
    """What a call may cost, in nano-dollars."""

    expected: int
    worst: int
    """Every token of max_tokens is used."""


def rates(prices: Prices, prompt_tokens: int) -> tuple[Decimal, Decimal]:
    """Input and output price, in dollars per million tokens, at the tier that the prompt's own size selects."""
    long_prompt = prices.above is not None and prompt_tokens > prices.above
    if long_prompt and prices.input_above is not None and prices.output_above is not None:
        return Decimal(prices.input_above), Decimal(prices.output_above)
    return Decimal(prices.input), Decimal(prices.output)


def cost_nanousd(prices: Prices, input_tokens: int, output_tokens: int) -> int:
    """One request's cost in nano-dollars; every input token is priced as uncached (protocol section 5.4)."""
    input_price, output_price = rates(prices, input_tokens)
    return _rounded(input_tokens * input_price + output_tokens * output_price)


def cost_as_billed_nanousd(prices: Prices, usage: Usage) -> int | None:
    """The same request with cached input at the cache rate; never enters a verdict. None without usage."""
    if usage.input is None or usage.output is None:
        return None
    cached = usage.cached or 0
    if not cached or prices.cache_read is None:
        return cost_nanousd(prices, usage.input, usage.output)
    input_price, output_price = rates(prices, usage.input)
    uncached = usage.input - cached
    return _rounded(uncached * input_price + cached * Decimal(prices.cache_read) + usage.output * output_price)


def usage_cost_nanousd(prices: Prices, usage: Usage) -> int | None:
    """`cost_nanousd` of what was reported; None without usage, and without one side of it."""
    if usage.input is None or usage.output is None:
        return None
    return cost_nanousd(prices, usage.input, usage.output)


def _rounded(dollars_per_million: Decimal) -> int:
    return int((dollars_per_million * _NANOUSD_PER_TOKEN).to_integral_value(rounding=ROUND_HALF_EVEN))

"""Our prices are those of an independent public table; a difference is found wherever it hides."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pytest_cellprose.models.agreement import price_agreement
from pytest_cellprose.models.registry import ModelSpec, builtin_models, openweight_model

HAIKU = builtin_models()["haiku55"]
CHECKED = datetime(2026, 11, 29, tzinfo=UTC)


def repriced(**prices: str) -> ModelSpec:
    return HAIKU.model_copy(update={"prices": HAIKU.prices.model_copy(update=prices)})


def test_every_price_of_the_registry_is_that_of_genai_prices() -> None:
    live = [spec for spec in builtin_models().values() if spec.live]
    agreement = price_agreement(live, CHECKED)
    assert agreement.differ == {}
    assert agreement.unknown == []
    assert agreement.agree == [spec.alias for spec in live]
    assert len(live) == 8
    assert agreement.table.startswith("genai-prices ")


@pytest.mark.parametrize(
    ("prices", "told"),
    [
        ({"input": "0.11"}, "10,000 tokens in"),
        ({"output": "0.49"}, "10,000 tokens in"),
        ({"input_above": "0.4"}, "100,001 tokens in"),
        ({"output_above": "2.4"}, "100,001 tokens in"),
        ({"cache_read": "0.02"}, "10,000 cached tokens"),
    ],
)
def test_a_difference_is_named(prices: dict[str, str], told: str) -> None:
    agreement = price_agreement([repriced(**prices)], CHECKED)
    assert agreement.agree == []
    assert agreement.differ["haiku55"].startswith(told)
    assert "differs for haiku55" in agreement.line()


def test_another_edge_of_the_tier_is_a_difference() -> None:
    moved = HAIKU.model_copy(update={"prices": HAIKU.prices.model_copy(update={"above": 99_999})})
    assert "100,000 tokens in" in price_agreement([moved], CHECKED).differ["haiku55"]


def test_models_that_the_table_does_not_have_are_unknown_and_offline_ones_not_asked_about() -> None:
    longer = HAIKU.model_copy(update={"alias": "longer", "model_id": "claude-haiku-5-5-something"})
    agreement = price_agreement([builtin_models()["reader"], openweight_model("q=q-8b,1,2"), longer], CHECKED)
    assert (agreement.agree, agreement.differ, agreement.unknown) == ([], {}, ["q", "longer"])
    assert "does not know q, longer" in agreement.line()

"""The protocol's section 9: the levers by which a final run may be made smaller, and what is forbidden."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from fnmatch import fnmatchcase
from typing import Any

import pytest

from pytest_cellprose.models.registry import builtin_models, openweight_model, proposed_models, resolve_model
from pytest_cellprose.plan.scope import Judgement, judge_scope, price_dates

REGISTRY = builtin_models()
SIX = proposed_models(REGISTRY)
FULL = ("cellprose_lean_gfm", "markitdown", "agent_xlsx", "csv", "markdown", "toon", "agent_cellprose", "none")


def judged(
    models: Iterable[str] = SIX, without: Iterable[str] = (), repeats: int = 3, none_once: bool = False
) -> Judgement:
    specs = [resolve_model(name, REGISTRY) for name in models]
    encodings = [name for name in FULL if name not in without]
    return judge_scope(specs, encodings, REGISTRY, REGISTRY, repeats=repeats, none_once=none_once)


def test_the_whole_protocol_has_nothing_to_name() -> None:
    assert judged() == Judgement()


@pytest.mark.parametrize(
    ("models", "named"),
    [
        (["haiku55", "opus55", "gpt6luna", "gpt6astra"], "scope cut: without the models sonnet55, gpt61sol"),
        (["haiku55", "sonnet55", "gpt6luna", "gpt61sol"], "scope cut: the plan of haiku55, sonnet55, gpt6luna"),
        ([*SIX, "fable51"], "fable51 is run: the protocol has it parked"),
        ([alias for alias in SIX if alias != "gpt61sol"], "scope cut: without the models gpt61sol"),
        (["haiku55@low", *SIX[1:]], "haiku55@low: effort low, not the registered medium"),
    ],
)
def test_allowed_choices_of_models_are_named(models: list[str], named: str) -> None:
    judgement = judged(models)
    assert judgement.unpublishable == []
    assert any(deviation.startswith(named) for deviation in judgement.deviations)


@pytest.mark.parametrize(
    ("models", "told"),
    [
        (["sonnet55", "opus55", "gpt6luna", "gpt6astra"], ["Anthropic without a cheap model"]),
        (["haiku55", "opus55", "gpt6luna", "gpt61sol"], ["OpenAI without a top model"]),
        (["haiku55", "sonnet55", "opus55"], ["OpenAI without a cheap and a top model"]),
        (["haiku55"], ["Anthropic without a top model", "OpenAI without a cheap and a top model"]),
        (["haiku55", "sonnet55", "gpt6luna"], ["Anthropic without a top model", "OpenAI without a top model"]),
        # neither the parked nor the separately reported model stands in for one of the set
        (["haiku55", "fable51", "gpt6luna", "gpt6astra"], ["Anthropic without a top model"]),
        (["haiku45", "opus55", "gpt6luna", "gpt6astra"], ["Anthropic without a cheap model"]),
        (["reader"], ["no language model in the plan"]),
    ],
)
def test_forbidden_choices_of_models_rule_a_publication_out(models: list[str], told: list[str]) -> None:
    found = judged(models).unpublishable
    assert [text.partition(":")[0] for text in found] == told


def test_models_beside_the_set_are_no_cut() -> None:
    specs = [*(REGISTRY[alias] for alias in SIX), REGISTRY["haiku45"], openweight_model("q=q-8b,0.1,0.2")]
    assert judge_scope(specs, FULL, REGISTRY, REGISTRY, repeats=3, none_once=False) == Judgement()


HAIKU = REGISTRY["haiku55"].model_copy(update={"alias": "hx", "status": "other"})
OTHER_PRICES = REGISTRY["haiku55"].prices.model_copy(update={"input_above": "0.10", "output_above": "0.50"})


@pytest.mark.parametrize(
    ("change", "how"),
    [
        ({"max_tokens": 50}, "max_tokens 50 and not 16000"),
        ({"effort": None}, "effort None and not medium"),
        ({"effort": "low", "max_tokens": 50}, "max_tokens 50 and not 16000, effort low and not medium"),
        ({"thinking": "disabled"}, "thinking disabled and not adaptive"),
        ({"thinking": None}, "thinking None and not adaptive"),
        ({"prompt_cache": "explicit"}, "prompt_cache explicit and not None"),
        ({"vendor": "compat"}, "vendor compat and not anthropic"),
        ({"prices": OTHER_PRICES}, "prices input=0.10 *"),
    ],
)
@pytest.mark.parametrize("beside", [True, False], ids=["beside-it", "instead-of-it"])
def test_a_protocol_models_id_asked_in_another_way_rules_a_publication_out(
    change: dict[str, Any], how: str, beside: bool
) -> None:
    replaced = HAIKU.model_copy(update=change)
    others = [REGISTRY[alias] for alias in SIX if beside or alias != "haiku55"]
    registry = {**REGISTRY, "hx": replaced}
    found = judge_scope([replaced, *others], FULL, registry, REGISTRY, repeats=3, none_once=False)
    (said,) = found.unpublishable
    assert fnmatchcase(said, f"hx asks for haiku55's claude-haiku-5-5 in another way: {how}")


def test_the_same_call_under_another_alias_is_the_protocols_model() -> None:
    specs = [HAIKU, *(REGISTRY[alias] for alias in SIX[1:])]
    assert judge_scope(specs, FULL, {**REGISTRY, "hx": HAIKU}, REGISTRY, repeats=3, none_once=False) == Judgement()


def test_a_registered_model_that_calls_itself_proposed_stands_in_for_none() -> None:
    fake = openweight_model("fake=tiny-1,0.1,0.2").model_copy(
        update={"status": "proposed", "tier": "top", "vendor": "anthropic"}
    )
    specs = [fake, *(REGISTRY[alias] for alias in ("haiku55", "gpt6luna", "gpt6astra"))]
    found = judge_scope(specs, FULL, {**REGISTRY, "fake": fake}, REGISTRY, repeats=3, none_once=False)
    assert [text.partition(":")[0] for text in found.unpublishable] == ["Anthropic without a top model"]


@pytest.mark.parametrize(
    ("without", "deviations", "unpublishable"),
    [
        (["toon"], ["scope cut: toon dropped"], []),
        (["markdown", "toon"], ["scope cut: markdown dropped", "scope cut: toon dropped"], []),
        (["csv"], [], ["csv dropped before markdown and toon"]),
        (["csv", "toon"], ["scope cut: toon dropped"], ["csv dropped before markdown"]),
        (["csv", "markdown", "toon"], ["scope cut: markdown dropped", "scope cut: toon dropped", "scope cut: csv"], []),
        (["markitdown"], [], ["markitdown absent"]),
        (["agent_xlsx"], [], ["agent_xlsx absent"]),
        (["cellprose_lean_gfm"], [], ["cellprose_lean_gfm absent"]),
        (["agent_cellprose"], ["agent_cellprose absent"], []),
        (["none"], [], ["the control none absent"]),
    ],
)
def test_encodings_may_be_dropped_in_the_protocols_order_only(
    without: list[str], deviations: list[str], unpublishable: list[str]
) -> None:
    judgement = judged(without=without)
    for found, told in ((judgement.deviations, deviations), (judgement.unpublishable, unpublishable)):
        assert len(found) == len(told)
        assert all(text.startswith(beginning) for text, beginning in zip(found, told, strict=True))


def test_repeats_and_the_control() -> None:
    assert judged(repeats=2).deviations == ["scope cut: 2 repeats instead of 3"]
    assert judged(repeats=2).unpublishable == []
    assert judged(repeats=1).unpublishable == ["one repeat: the protocol's lower bound is two"]
    assert judged(none_once=True).deviations == ["scope cut: the control none runs once"]


def test_prices_checked_on_another_day_are_named() -> None:
    specs = [REGISTRY["reader"], REGISTRY["haiku55"], openweight_model("q=q-8b,0.1,0.2")]
    assert price_dates(specs, date(2026, 10, 11)) == ["prices of q with no date of a check (2026-10-11)"]
    assert price_dates(specs[:2], date(2026, 12, 1)) == [
        "prices of haiku55 checked on 2026-10-11, not on the day of the run (2026-12-01)"
    ]

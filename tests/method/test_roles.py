"""Who may take which encoding (protocol sections 1 and 4)."""

from __future__ import annotations

import pytest

from pytest_cellprose.method.roles import AGENTS, FINAL, ONE_SHOT, may_take
from pytest_cellprose.models.registry import builtin_models, openweight_model


@pytest.mark.parametrize("encoding", FINAL)
def test_open_weight_models_take_every_encoding_but_an_agent_s(encoding: str) -> None:
    vendor = openweight_model("qwen=qwen-3,0.1,0.4").vendor
    assert may_take(vendor, encoding) == (encoding not in ("agent_xlsx", "agent_cellprose"))


@pytest.mark.parametrize("encoding", FINAL)
def test_every_registered_model_and_a_plugin_s_vendor_take_them_all(encoding: str) -> None:
    assert all(may_take(model.vendor, encoding) for model in builtin_models().values())
    assert may_take("a plugin's", encoding)


def test_an_encoding_is_an_agent_s_or_one_shot() -> None:
    assert {*FINAL} == AGENTS | {*ONE_SHOT}
    assert AGENTS.isdisjoint(ONE_SHOT)

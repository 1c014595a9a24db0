"""Models from the package, a user's file and the command line: what is read, and what is refused in which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_cellprose.models.registry import (
    ModelError,
    ModelSpec,
    builtin_models,
    openweight_model,
    read_registry,
    resolve_model,
    same_models,
    spec_problem,
    with_effort,
)
from pytest_cellprose.record.record import Prices

EFFORTS = ("low", "medium", "high", "xhigh", "max")

# docs/PROTOCOL.md section 4: alias -> model id, tier, declared levels
PROTOCOL = {
    "haiku55": ("claude-haiku-5-5", "cheap", EFFORTS),
    "sonnet55": ("claude-sonnet-5-5", "mid", EFFORTS),
    "opus55": ("claude-opus-5-5", "top", EFFORTS),
    "gpt6luna": ("gpt-6-luna", "cheap", ("none", *EFFORTS)),
    "gpt61sol": ("gpt-6.1-sol", "mid", EFFORTS),
    "gpt6astra": ("gpt-6-astra", "top", EFFORTS),
}


def test_the_package_knows_the_protocols_models() -> None:
    models = builtin_models()
    proposed = {alias: spec for alias, spec in models.items() if spec.status == "proposed"}
    assert {alias: (spec.model_id, spec.tier, spec.efforts) for alias, spec in proposed.items()} == PROTOCOL
    assert {spec.effort for spec in proposed.values()} == {"medium"}
    assert {spec.max_tokens for spec in models.values()} == {16_000}
    assert models["fable51"].status == "parked"
    assert (models["haiku45"].status, models["haiku45"].efforts) == ("apart", ())
    for spec in models.values():
        assert spec_problem(spec) is None
        assert not spec.live or (spec.checked is not None and spec.price_source)


def test_an_open_weight_model_from_the_command_line() -> None:
    spec = openweight_model("qwen-8b=Qwen/Qwen3-8B,0.05,0.4")
    assert (spec.alias, spec.model_id, spec.vendor) == ("qwen-8b", "Qwen/Qwen3-8B", "compat")
    assert (spec.prices.input, spec.prices.output) == ("0.05", "0.4")
    assert spec.efforts == ()
    assert spec.note is not None


def test_the_id_of_an_open_weight_model_may_hold_commas_and_equals_signs() -> None:
    assert openweight_model("a=x=y,z,$1,$2").model_id == "x=y,z"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("qwen", "alias=model_id,price_in,price_out"),
        ("qwen=Qwen/Qwen3-8B", "alias=model_id,price_in,price_out"),
        ("qwen=Qwen/Qwen3-8B,0.05", "alias=model_id,price_in,price_out"),
        ("=Qwen/Qwen3-8B,0.05,0.4", "alias=model_id,price_in,price_out"),
        ("qwen=Qwen/Qwen3-8B,cheap,0.4", "input: 'cheap' is no price"),
        ("qwen=Qwen/Qwen3-8B,0.05,-1", "output: '-1' is no price"),
        ("qwen=Qwen/Qwen3-8B,0.05,NaN", "output: 'NaN' is no price"),
        ("qwen=Qwen/Qwen3-8B,,", "input: '' is no price"),
        ("qwen=Qwen/Qwen3-8B,0,0", "no price"),
        ("qwen@low=Qwen/Qwen3-8B,1,2", "'@' sets off an effort"),
    ],
)
def test_a_bad_open_weight_model_is_refused_in_one_line(text: str, told: str) -> None:
    with pytest.raises(ModelError) as refusal:
        openweight_model(text)
    assert text in str(refusal.value)
    assert told in str(refusal.value)
    assert "\n" not in str(refusal.value)


HOUSE = '[house]\nmodel_id = "house-8b"\nvendor = "house"\ninput = "0.2"\noutput = 0.8\n'


def test_a_file_of_models_is_written_as_the_packages_own(tmp_path: Path) -> None:
    path = tmp_path / "models.toml"
    path.write_text(HOUSE + 'effort = "low"\nefforts = ["low", "high"]\nchecked = 2026-11-01\n')
    (spec,) = read_registry(path)
    assert (spec.alias, spec.vendor, spec.max_tokens, spec.effort) == ("house", "house", 16_000, "low")
    assert (spec.prices.input, spec.prices.output) == ("0.2", "0.8")
    assert resolve_model("house@high", {"house": spec}).effort == "high"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (HOUSE.replace("output = 0.8\n", ""), "model 'house' has no price (output missing"),
        (HOUSE.replace('"0.2"', "0").replace("0.8", "0"), "model 'house' has no price"),
        (HOUSE.replace('"0.2"', '"free"'), "input: 'free' is no price"),
        (HOUSE.replace('"0.2"', "true"), "input"),
        (HOUSE + "above = 1000\n", "above, input_above and output_above belong together"),
        (HOUSE + 'effort = "turbo"\nefforts = ["low"]\n', "effort 'turbo' is not among its declared levels (low)"),
        (HOUSE + "colour = 3\n", "model 'house': colour"),
        (HOUSE.replace('vendor = "house"\n', ""), "model 'house': vendor"),
        (HOUSE + "max_tokens = 0\n", "max_tokens"),
        ("house = 3\n", "house: not a table"),
        ("[house\n", "not TOML"),
    ],
)
def test_a_wrong_entry_of_a_file_is_named(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "models.toml"
    path.write_text(text)
    with pytest.raises(ModelError) as refusal:
        read_registry(path)
    assert str(path) in str(refusal.value)
    assert told in str(refusal.value)


def test_every_wrong_entry_of_a_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "models.toml"
    path.write_text('[a]\nmodel_id = "a"\nvendor = "x"\n\n[b]\nmodel_id = "b"\nvendor = "x"\n')
    with pytest.raises(ModelError) as refusal:
        read_registry(path)
    assert [line.partition("model ")[2][:3] for line in str(refusal.value).splitlines()] == ["'a'", "'b'"]


def test_a_file_of_models_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"none\.toml: cannot be read"):
        read_registry(tmp_path / "none.toml")


def test_one_effort_for_all_models() -> None:
    models = builtin_models()
    assert with_effort("haiku55", "low", models) == "haiku55@low"
    assert with_effort("haiku55@low", "low", models) == "haiku55@low"
    assert with_effort("haiku55", "medium", models) == "haiku55"
    assert with_effort("reader", "low", models) == "reader"
    with pytest.raises(ModelError, match="'haiku55@high' asks for effort 'high', and --cellprose-effort for 'low'"):
        with_effort("haiku55@high", "low", models)
    with pytest.raises(ModelError, match="'haiku45' declares no effort levels"):
        with_effort("haiku45", "low", models)
    with pytest.raises(ModelError, match="no effort level 'none'"):
        with_effort("gpt61sol", "none", models)


def test_one_call_under_two_names_is_found() -> None:
    own = ModelSpec(
        alias="mine",
        model_id="claude-haiku-5-5",
        vendor="anthropic",
        prices=Prices(input="1", output="2"),
        max_tokens=16_000,
        effort="medium",
        efforts=("medium",),
    )
    models = builtin_models()
    assert same_models([models["haiku55"], own, models["opus55"]]) == [("haiku55", "mine")]
    assert same_models([models["haiku55"], resolve_model("haiku55@low", models)]) == []

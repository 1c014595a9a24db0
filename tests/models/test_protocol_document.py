"""What docs/PROTOCOL.md says in numbers is what the package does."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_cellprose.measure.expected_output import LEAST_CALLS, TOKENS_PER_CALL, TOKENS_PER_QUESTION
from pytest_cellprose.method.roles import NAMED_PLAN
from pytest_cellprose.models.registry import builtin_models
from pytest_cellprose.plan.cost import APPROVAL_ABOVE_USD

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "PROTOCOL.md").read_text(encoding="utf-8")
FLOWING = " ".join(TEXT.split())


def test_the_table_of_models_is_the_registry() -> None:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in TEXT.splitlines() if " | claude-" in line]
    rows += [[cell.strip() for cell in line.strip("|").split("|")] for line in TEXT.splitlines() if " | gpt-" in line]
    written = {
        re.sub(r" \(.*\)", "", alias): (model_id, vendor, tier, effort, *prices)
        for alias, model_id, vendor, tier, effort, *prices in rows
    }
    registered = {
        alias: (
            spec.model_id,
            spec.vendor,
            spec.tier,
            spec.effort or "",
            spec.prices.input,
            spec.prices.output,
            "" if spec.prices.above is None else f"{spec.prices.above:,}",
            spec.prices.input_above or "",
            spec.prices.output_above or "",
        )
        for alias, spec in builtin_models().items()
        if spec.live
    }
    assert written == registered


def test_dates_of_the_price_check_are_the_registrys() -> None:
    assert {str(spec.checked) for spec in builtin_models().values() if spec.live} == {"2026-10-11"}
    assert "price pages on 2026-10-11" in FLOWING


def test_the_numbers_of_the_estimate_and_the_gate() -> None:
    assert f"assumed: {TOKENS_PER_CALL} tokens a call and {TOKENS_PER_QUESTION} a question" in FLOWING
    assert LEAST_CALLS == 5
    assert "at least five calls" in FLOWING
    assert f"Above ${APPROVAL_ABOVE_USD} expected" in FLOWING
    assert f"exactly the plan of {', '.join(NAMED_PLAN[:3])} and {NAMED_PLAN[3]}" in FLOWING


def test_every_option_that_is_named_exists() -> None:
    from pytest_cellprose.options import VALUED

    switches = {"--cellprose-final", "--cellprose-allow-dirty", "--cellprose-none-once", "--cellprose-live"}
    assert set(re.findall(r"--cellprose-[a-z-]+", TEXT)) <= {*VALUED, *switches}

"""Which encodings and models a plan has, from the settings and what is registered."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_cellprose.encodings import BUILTIN
from pytest_cellprose.encodings.base import Encoding
from pytest_cellprose.models.registry import builtin_models
from pytest_cellprose.plan.models import Registered, planned_encodings, planned_models
from pytest_cellprose.plan.problems import Draft
from pytest_cellprose.plan.settings import Settings
from pytest_cellprose.suites.spreadsheets import Spreadsheets

MINE = Encoding("mine", version="1", label="mine", encode=lambda workbook: "")
OFFERED = Registered(builtin_models(), {each.name: each for each in (*BUILTIN, MINE)}, {}, {})
SUITE = Spreadsheets(OFFERED.encodings)
PLAIN = Settings(cells=(), out=Path("results"), usual_out=Path("results"))
SIX = ["haiku55", "sonnet55", "opus55", "gpt6luna", "gpt61sol", "gpt6astra"]
"""The protocol's (section 4)."""
COMMON = ["cellprose_lean_gfm", "markitdown", "csv", "markdown", "toon", "none"]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [*COMMON, "mine"]),
        (
            {"final": True},
            [
                "cellprose_lean_gfm",
                "markitdown",
                "agent_xlsx",
                "csv",
                "markdown",
                "toon",
                "agent_cellprose",
                "none",
                "mine",
            ],
        ),
        ({"models": ("reader_agent",)}, ["agent_xlsx", "agent_cellprose"]),
        ({"models": ("reader", "reader_agent")}, [*COMMON, "mine", "agent_xlsx", "agent_cellprose"]),
        ({"models": ("reader_agent",), "encodings": ("agent_xlsx",)}, ["agent_xlsx"]),
        ({"models": ("nobody",)}, [*COMMON, "mine"]),
        ({"encodings": ("toon", "mine")}, ["toon", "mine"]),
        ({"encodings": ("address_list",)}, ["address_list"]),
    ],
)
def test_encodings_of_a_plan(settings: dict[str, Any], expected: list[str]) -> None:
    draft = Draft()
    assert [
        each.name for each in planned_encodings(replace(PLAIN, **settings), SUITE, OFFERED.models, draft)
    ] == expected
    assert draft.problems == []


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"encodings": ("csv", "xml")}, "unknown encoding 'xml'"),
        ({"challenger": "xml"}, "unknown encoding 'xml'"),
        ({"challenger": "none"}, "never compared"),
        ({"baseline": "none"}, "never compared"),
        ({"baseline": "toon", "encodings": ("csv",)}, "'toon' is not in the plan"),
    ],
)
def test_encodings_that_are_refused(settings: dict[str, Any], told: str) -> None:
    draft = Draft()
    planned_encodings(replace(PLAIN, **settings), SUITE, OFFERED.models, draft)
    (problem,) = draft.problems
    assert told in str(problem)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ["reader", *SIX]),
        ({"final": True}, SIX),
        ({"ini_models": ("reader", "haiku55")}, ["reader", "haiku55"]),
        ({"ini_models": ("reader", "haiku55"), "final": True}, SIX),
        ({"ini_models": ("reader",), "models": ("gpt6luna",)}, ["gpt6luna"]),
        ({"models": ("haiku55@low",)}, ["haiku55@low"]),
    ],
)
def test_models_of_a_plan(settings: dict[str, Any], expected: list[str]) -> None:
    draft = Draft()
    assert [each.alias for each in planned_models(replace(PLAIN, **settings), OFFERED, draft)] == expected
    assert draft.problems == []


@pytest.mark.parametrize("models", [("haiku99",), ("haiku55", "haiku55"), ("reader@low",)])
def test_models_that_are_refused(models: tuple[str, ...]) -> None:
    draft = Draft()
    planned_models(replace(PLAIN, models=models), OFFERED, draft)
    (problem,) = draft.problems
    assert "--cellprose-models" in str(problem)

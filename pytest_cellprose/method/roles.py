"""Which encodings and models the protocol names, what each is there for, and what a final run may leave out."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Literal, TypeAlias

from pytest_cellprose.encodings import BUILTIN
from pytest_cellprose.models.registry import COMPATIBLE

CHALLENGER = "cellprose_lean_gfm"
PRIMARY = ("markitdown", "agent_xlsx")
REFERENCE = "csv"
SECONDARY = ("markdown", "toon")
REPORTED = "agent_cellprose"
CONTROL = "none"
NEVER_DROPPED = (CHALLENGER, *PRIMARY)
AGENTS = frozenset({"agent_xlsx", "agent_cellprose"})
"""Encodings that are files, which a model explores with tools."""
ONE_SHOT_VENDORS = frozenset({COMPATIBLE})
"""Open-weight models are asked in one shot only (section 4): a rule of the comparison, no want of their hosts."""

MAX_TURNS = 40
"""Of an agent's episode (protocol section 5)."""
MAX_CALL_USD = Decimal(1)
"""List price of an agent's episode."""

REPEATS = 3
LEAST_REPEATS = 2

VENDORS = {"anthropic": "Anthropic", "openai": "OpenAI"}
KEPT_TIERS = ("cheap", "top")
"""Of every vendor (section 9)."""
NAMED_PLAN = ("haiku55", "sonnet55", "gpt6luna", "gpt61sol")
"""The smaller plan that section 4 names and section 9 allows, although it has no top model."""

ONE_SHOT = ("cellprose_lean_gfm", "markitdown", "csv", "markdown", "toon", "none")
"""What a development plan has; in the order of tables."""
FINAL = ("cellprose_lean_gfm", *PRIMARY, "csv", "markdown", "toon", "agent_cellprose", "none")
"""What the protocol's run has (its section 1)."""


RESERVED_ENCODINGS = frozenset({*FINAL, *(encoding.name for encoding in BUILTIN)})
"""Names that only this package gives an encoding, also those that it does not have yet: the protocol's results are
reported under them."""

Role: TypeAlias = Literal["challenger", "primary", "reference", "secondary", "reported", "control", "other"]

ROLES: Mapping[str, Role] = {
    "markitdown": "primary",
    "agent_xlsx": "primary",
    "csv": "reference",
    "markdown": "secondary",
    "toon": "secondary",
    "agent_cellprose": "reported",
    "none": "control",
}
"""Protocol section 1; everything else is ``other``, and compared."""


def may_take(vendor: str, encoding: str) -> bool:
    """Whether the protocol lets a vendor's models have an encoding: agents are not for open-weight models."""
    return not (vendor in ONE_SHOT_VENDORS and encoding in AGENTS)

"""The prompt: what it tells, what it must not tell, and that the workbook's text survives it."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_cellprose.questions.asked import Asked
from pytest_cellprose.questions.prompts import (
    AGENT_SYSTEM,
    PROMPT_VERSION,
    SYSTEM,
    agent_prompt,
    prompt,
    workbook_block,
)

ASKED = [
    Asked(id="q1", kind="value", text="What is\n the total?", sheet="Model", about="Model!D41"),
    Asked(id="q2", kind="trace", text="What feeds E7?", sheet="Q1\nplan", about="'Secret'!E7", reach="direct"),
]

EXAMPLE = """\
The workbook, as CSV:
```
## Model
a,b
```

Questions:
q1 [Model] What is the total?
q2 [Q1 plan] What feeds E7?
"""


AGENT_EXAMPLE = """\
The workbook is the file workbook.xlsx in your working directory, an Excel workbook.

Questions:
q1 [Model] What is the total?
q2 [Q1 plan] What feeds E7?
"""


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_the_bytes_of_this_version() -> None:
    """Whoever changes a prompt changes this test and the version: results are not comparable across versions."""
    assert PROMPT_VERSION == "1"
    assert sha256(SYSTEM) == "7c5f2d8b771fdaaaad3ab2489e7dab8e4abed579ea45e6db69d15593d316892f"
    assert sha256(AGENT_SYSTEM) == "bc76f7810f354238d154198e8dc376a460dcfef910131cfc1e50bed4b544ec64"
    assert sha256(prompt("CSV", "## Model\na,b", ASKED)) == sha256(EXAMPLE)
    assert sha256(agent_prompt("an Excel workbook", "workbook.xlsx", ASKED)) == sha256(AGENT_EXAMPLE)


def test_the_system_prompt_is_short_and_of_plain_characters() -> None:
    assert SYSTEM.isascii()
    assert len(SYSTEM.split()) < 260
    assert AGENT_SYSTEM.isascii()
    assert len(AGENT_SYSTEM.split()) < 300


def test_agents_are_told_the_same_rules_and_questions() -> None:
    rules = SYSTEM.partition("\n\n")[2]
    assert rules
    assert AGENT_SYSTEM.partition("\n\n")[2] == rules
    assert agent_prompt("x", "f", ASKED).partition("\n\n")[2] == prompt("", None, ASKED)


def test_an_example_reads_like_this() -> None:
    assert prompt("CSV", "## Model\na,b", ASKED) == EXAMPLE


def test_without_a_workbook_only_the_questions_are_left() -> None:
    text = prompt("", None, ASKED)
    assert text == EXAMPLE[EXAMPLE.index("Questions:") :]
    assert workbook_block(text) is None


def test_what_a_question_is_about_is_not_told() -> None:
    assert "Secret" not in prompt("CSV", "a", ASKED)
    assert "D41" not in prompt("CSV", "a", ASKED)
    assert "Secret" not in agent_prompt("CSV", "f", ASKED)
    assert "D41" not in agent_prompt("CSV", "f", ASKED)


@pytest.mark.parametrize(
    "block", ["", "\n", "a", "a\n", "a\r\n", "```", "\n```\n", "`````\nx````", "Questions:\nq1", "\x00\u2028é"]
)
def test_the_block_comes_back_exactly(block: str) -> None:
    assert workbook_block(prompt("any", block, ASKED)) == block


@given(st.text(st.sampled_from("`\n\r aé:")) | st.text(), st.text(max_size=5), st.text(max_size=9))
def test_any_block_comes_back_exactly(block: str, label: str, question: str) -> None:
    asked = [Asked(id="q1", kind="value", text=question, sheet="```")]
    assert workbook_block(prompt(label, block, asked)) == block
    assert workbook_block(prompt(label, None, asked)) is None


@given(st.text(st.sampled_from("`\nx"), max_size=40))
def test_no_run_of_backticks_in_the_block_can_close_the_fence(block: str) -> None:
    fence = prompt("any", block, ASKED).split("\n")[1]
    assert set(fence) == {"`"}
    assert len(fence) >= 3
    assert fence not in block

"""The prompt: one system prompt for every encoding, and a user prompt that differs in the workbook block only; for
agents one of each, with the same rules and questions.

Protocol section 5.1: all questions about a workbook go in one call, and the answer is one JSON object.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pytest_cellprose.questions.asked import Asked

PROMPT_VERSION = "1"
"""Changes whenever any prompt's text could change; a test pins the bytes."""

_RULES = """\
The form of an answer:
- What a cell shows: a number as a JSON number, as precise as the workbook gives it, without thousands separators, \
currency or unit; a percentage as a fraction (0.12 for 12%) unless the question asks for percent; a date as \
"YYYY-MM-DD"; a boolean as true or false; text and error values such as "#N/A" as strings.
- Where something is, or which cells: a list of A1 addresses with their worksheets, such as \
["Model!D41", "'Q1 plan'!B2:B9"]. A range stands for each of its cells, blank ones included. [] means none.

Which cells are meant:
- A formula refers directly to every cell of every range in it, names and table references resolved. All that it \
depends on is these cells, those that their formulas refer to, and so on.
- A cell is used directly by every formula that refers to it, alone or as part of a range. All that change with it are \
the cells of these formulas, those of the formulas that refer to them, and so on.
- A hard-coded cell holds a number typed over a formula: before and after it, in its row or its column, the cells hold \
one and the same filled formula.

Each question is given as id, [worksheet], text. Answer every question; where you cannot tell, guess. End your reply \
with one JSON object that maps question ids to answers, such as {"q1": 1234.5, "q2": ["Model!D41"]}, and write nothing \
after it."""
"""How every variant is to be answered, whatever it is sent."""

SYSTEM = f"""\
You answer questions about a spreadsheet workbook.

{_RULES}"""

AGENT_SYSTEM = f"""\
You answer questions about a spreadsheet workbook, which is a file in your working directory. Look into it with the \
tools as often as you need; the prompt names the file. Then reply without calling a tool: that reply ends your work.

{_RULES}"""
"""What a model with tools is told: the same rules, with the workbook named as a file (protocol section 5.1)."""

CORRECTION = "Your last message was empty. Give your final answer now, in the form that you were asked for."
"""What a model with tools is told, once in an episode, after a reply without words and without tool calls."""

_BACKTICKS = re.compile("`+")
_BLOCK = re.compile("[^\n]*\n(`{3,})\n")


def prompt(label: str, block: str | None, asked: Sequence[Asked]) -> str:
    """The user prompt: the encoded workbook under its format's label, fenced, then the questions.

    `block` is None if no workbook is sent. What a question is `about` is not told, and its answer is not known
    here.
    """
    questions = _questions(asked)
    if block is None:
        return questions
    # A fence that is longer than any run of backticks in the text cannot be closed by it.
    fence = "`" * max(3, 1 + max((len(run) for run in _BACKTICKS.findall(block)), default=0))
    return f"The workbook, as {_one_line(label)}:\n{fence}\n{block}\n{fence}\n\n{questions}"


def agent_prompt(label: str, file: str, asked: Sequence[Asked]) -> str:
    """The user prompt of an agent: where the workbook is, then the questions as `prompt` has them."""
    return f"The workbook is the file {file} in your working directory, {_one_line(label)}.\n\n{_questions(asked)}"


def workbook_block(prompt_text: str) -> str | None:
    """The `block` that `prompt` was given, character for character; None if no workbook was sent."""
    opening = _BLOCK.match(prompt_text)
    if opening is None:
        return None
    start = opening.end()
    return prompt_text[start : prompt_text.index(f"\n{opening[1]}\n", start)]


def _questions(asked: Sequence[Asked]) -> str:
    lines = "\n".join(f"{each.id} [{_one_line(each.sheet)}] {_one_line(each.text)}" for each in asked)
    return f"Questions:\n{lines}\n"


def _one_line(text: str) -> str:
    return " ".join(text.split())

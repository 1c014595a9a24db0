"""Tables, lists and sentences in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_cellprose.report import figures
from pytest_cellprose.report.escape import text


def counts(kinds: dict[str, int]) -> str:
    return text(figures.kinds(kinds))


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> str:
    """`right`: the headings of columns to align right, or ``rest`` for all but the first."""
    rule = ["---:" if head in right or ("rest" in right and i) else "---" for i, head in enumerate(heads)]
    return "\n".join(f"| {' | '.join(map(cell_text, row))} |" for row in (heads, rule, *rows))


def cell_text(shown: str) -> str:
    return shown.replace("|", "\\|").replace("\n", " ")


def bullets(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def sentence(words: str) -> str:
    return words[0].upper() + words[1:]

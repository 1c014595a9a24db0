"""Text from outside in a Markdown page: a server's message, a name in a file or workbook is shown and never acts."""

from __future__ import annotations

import html
import re

from pytest_cellprose.record.plain import visible

_MARKS = re.compile(r"[\\`*\[\]~]|(?<![^\W_])_|_(?![^\W_])")
"""What Markdown would take for emphasis, code, a link or an escape; underscores within words it leaves alone."""
_START = re.compile(r"^(\d*)([.)]|#+|[+=-]+)(?=\s|$)")
"""What would begin a heading, a list or a rule."""


def text(value: str) -> str:
    r"""As plain text on the page; no tag, no entity, no markup.

    >>> text("<script>*x*")
    '&lt;script&gt;\\*x\\*'
    """
    marked = _MARKS.sub(lambda found: f"\\{found.group()}", visible(value))
    return html.escape(_START.sub(r"\1\\\2", marked), quote=False)


def code(value: str) -> str:
    """As a code span; as plain text, if it holds a sign that could end one or would read as a tag."""
    return text(value) if re.search(r"[`<>&]|^\s|\s$", value) or not value else f"`{visible(value)}`"

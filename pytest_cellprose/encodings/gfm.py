"""Cells of a GitHub-flavoured Markdown table: text on one line, and pipes that belong to the text.

A run of backslashes before a pipe or at the end of a cell is doubled and the pipe gets one more, so that a
pipe ends a cell iff an even number of backslashes stands before it. Other backslashes stay single. A
conforming GFM parser reads the same cells.
"""

from __future__ import annotations

import re

_PIPES = re.compile(r"(\\*)\|")
_LAST = re.compile(r"\\+\Z")
_BOUNDARY = re.compile(r"(\\*)(\||\Z)")


def one_line(text: str) -> str:
    """Every run of white space, line ends included, as one space; none at the ends."""
    return " ".join(text.split())


def escape_pipes(text: str) -> str:
    """Escape the pipes of a text that is written with blanks around it."""
    return _PIPES.sub(r"\1\1\\|", text) if "|" in text else text


def escape_cell(text: str) -> str:
    """Escape a text that stands between bare pipes: its last backslash would reach the next one."""
    text = escape_pipes(text)
    return _LAST.sub(lambda match: match[0] * 2, text) if text.endswith("\\") else text


def split_cells(line: str) -> list[str]:
    """The cells between the pipes of a table row, unescaped; blanks around them stay."""
    if "\\" not in line:
        return line.split("|")
    cells: list[str] = []
    parts: list[str] = []
    start = 0
    for match in _BOUNDARY.finditer(line):
        backslashes = len(match[1])
        parts.append(line[start : match.start()] + "\\" * (backslashes // 2))
        start = match.end()
        if match[2] and backslashes % 2:
            parts.append("|")
        else:
            cells.append("".join(parts))
            parts = []
            if not match[2]:
                break
    return cells

"""A key, and how it is kept out of what is stored and shown.

A key is taken out of texts only after they were used: what is scored is the reply as it came.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LONG = 16
"""Characters from which on a key is told from ordinary text wherever it stands. No vendor's key is shorter; a host of
one's own may take ``k``, and that is in every second word."""


@dataclass(frozen=True)
class Secret:
    name: str
    """Shown in its place, in brackets: the environment variable that holds it."""
    value: str
    """Empty: there is none."""

    @property
    def shown(self) -> str:
        return f"[{self.name}]"

    def out_of_error(self, text: str) -> str:
        """A server's error message without the key; a short one goes only where it stands as a word of its own."""
        if not self.value:
            return text
        if len(self.value) >= LONG:
            return text.replace(self.value, self.shown)
        return re.sub(rf"(?<![\w-]){re.escape(self.value)}(?![\w-])", lambda _: self.shown, text)

    def out_of_reply(self, value: Any) -> Any:
        """Plain JSON that a model or its host said, without a long key; a short one cannot be told from the answer."""
        return self._out_of(value) if len(self.value) >= LONG else value

    def _out_of(self, value: Any) -> Any:
        if isinstance(value, str):
            return value.replace(self.value, self.shown)
        if isinstance(value, Mapping):
            return {self._out_of(key): self._out_of(inner) for key, inner in value.items()}
        return [self._out_of(inner) for inner in value] if isinstance(value, list | tuple) else value

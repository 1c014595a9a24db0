"""TODO"""

from __future__ import annotations


class StoreError(ValueError):
    """A run that cannot be read or written; the message names the file and what is wrong."""

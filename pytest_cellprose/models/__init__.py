"""The models that are registered: ids, prices, tokens."""

from __future__ import annotations

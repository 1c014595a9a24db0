"""From a run's records to what people and programs read of them."""

from __future__ import annotations

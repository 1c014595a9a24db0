"""The question sets: found, divided, generated, packed, frozen and certified."""

from __future__ import annotations

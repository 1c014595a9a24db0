"""What calls a model: one vendor a file, and the offline reader."""

from __future__ import annotations

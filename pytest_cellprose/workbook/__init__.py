"""From an `.xlsx` to a `Workbook`: its cells, formulas, styles and objects."""

from __future__ import annotations

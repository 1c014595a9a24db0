"""What is asked about a workbook, how it is asked, and what an answer is worth."""

from __future__ import annotations

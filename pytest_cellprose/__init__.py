"""Which way of handing a spreadsheet to a language model gets the right answers for the least money?

A pytest plugin that answers with evidence. The public API, loaded on first use so that pytest starts fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_cellprose.cell import Cell, CellFault
    from pytest_cellprose.encodings import encode
    from pytest_cellprose.encodings.base import Encoding
    from pytest_cellprose.models.registry import ModelSpec
    from pytest_cellprose.providers.base import ModelFailure, PathFault, Provider, Reply, Request, Tool, ToolCall
    from pytest_cellprose.questions.kind import QuestionKind
    from pytest_cellprose.questions.schema import Question, QuestionFile
    from pytest_cellprose.record.record import CellId, Prices, Record, Usage
    from pytest_cellprose.store.ledger import PendingCall, Refusal
    from pytest_cellprose.suites.base import (
        Check,
        Episode,
        Opening,
        Suite,
        SuiteError,
        Task,
        Variant,
        World,
    )
    from pytest_cellprose.workbook.model import Workbook, WorkbookError

_HOME = {
    "Cell": "cell",
    "CellFault": "cell",
    "CellId": "record.record",
    "Encoding": "encodings.base",
    "ModelFailure": "providers.base",
    "ModelSpec": "models.registry",
    "PathFault": "providers.base",
    "PendingCall": "store.ledger",
    "Prices": "record.record",
    "Provider": "providers.base",
    "Question": "questions.schema",
    "QuestionFile": "questions.schema",
    "QuestionKind": "questions.kind",
    "Record": "record.record",
    "Refusal": "store.ledger",
    "Reply": "providers.base",
    "Request": "providers.base",
    "Tool": "providers.base",
    "ToolCall": "providers.base",
    "Usage": "record.record",
    **dict.fromkeys(("Check", "Episode", "Opening", "Suite", "SuiteError", "Task", "Variant", "World"), "suites.base"),
    "Workbook": "workbook.model",
    "WorkbookError": "workbook.model",
    "encode": "encodings",
}

__all__ = [
    "Cell",
    "CellFault",
    "CellId",
    "Check",
    "Encoding",
    "Episode",
    "ModelFailure",
    "ModelSpec",
    "Opening",
    "PathFault",
    "PendingCall",
    "Prices",
    "Provider",
    "Question",
    "QuestionFile",
    "QuestionKind",
    "Record",
    "Refusal",
    "Reply",
    "Request",
    "Suite",
    "SuiteError",
    "Task",
    "Tool",
    "ToolCall",
    "Usage",
    "Variant",
    "Workbook",
    "WorkbookError",
    "World",
    "encode",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

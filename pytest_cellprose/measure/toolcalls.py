"""A tool call against its tool's schema: what a model wrote is judged here, and never raises."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_cellprose.providers.base import Tool, ToolCall
from pytest_cellprose.record.record import CallProblem

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

_TOLD_CHARACTERS = 500
"""Of what is wrong with a call, as its model is told: it may quote the arguments whole."""


@dataclass(frozen=True)
class Misfit:
    """Why no tool runs."""

    problem: CallProblem
    text: str
    """What the model is told."""


class Tools:
    """The tools of a request, by name, and what their arguments are to fit."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        """Raises `ValueError` that names a tool whose parameters are no JSON Schema."""
        self._schemas = {tool.name: _validator(tool) for tool in tools}

    def arguments(self, call: ToolCall) -> Mapping[str, Any] | Misfit:
        """The arguments of a call that a tool can be called with."""
        schema = self._schemas.get(call.name)
        if schema is None:
            known = ", ".join(self._schemas)
            return _misfit("unknown_tool", f"there is no tool {call.name[:_TOLD_CHARACTERS]!r}: there is {known}")
        try:
            arguments = _json_object(call.arguments)
        except ValueError as error:
            return _misfit("no_object", f"the arguments of {call.name} are no JSON object: {error}")
        wrong = _wrong(schema, arguments)
        if wrong is not None:
            return _misfit("misfit", f"the arguments of {call.name} do not fit its schema: {wrong}")
        return arguments


def _misfit(problem: CallProblem, told: str) -> Misfit:
    cut = told if len(told) <= _TOLD_CHARACTERS else told[:_TOLD_CHARACTERS] + "…"
    return Misfit(problem, f"Error: {cut}")


def _validator(tool: Tool) -> Validator:
    from jsonschema import Draft202012Validator, SchemaError
    from jsonschema.validators import validator_for

    schema = dict(tool.parameters)
    made = validator_for(schema, default=Draft202012Validator)
    try:
        made.check_schema(schema)
    except SchemaError as error:
        raise ValueError(f"the parameters of the tool {tool.name!r} are no JSON Schema: {error.message}") from None
    return made(schema)


def _wrong(schema: Validator, arguments: Mapping[str, Any]) -> str | None:
    from jsonschema.exceptions import best_match

    try:
        error = best_match(schema.iter_errors(arguments))
    except RecursionError:
        return "they are nested too deeply"
    return None if error is None else str(error.message)


def _json_object(text: str) -> Mapping[str, Any]:
    """Raises `ValueError` for anything else: Python's ``NaN``, and text that no encoding has, are no JSON."""
    try:
        value = json.loads(text, parse_constant=_no_json)
        json.dumps(value, ensure_ascii=False).encode("utf-8")  # a lone surrogate would break what it is handed to
    except RecursionError:
        raise ValueError("they are nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError(f"they are {_JSON_NAMES[type(value)]}")
    return value


def _no_json(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


_JSON_NAMES = {
    list: "an array",
    str: "a string",
    int: "a number",
    float: "a number",
    bool: "a boolean",
    type(None): "null",
}

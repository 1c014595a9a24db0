"""Which rows stand in one table: a model's encodings; or, where the plan has one encoding, that encoding's models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pytest_cellprose.report.model import EncodingReport, ModelReport, SetReport


class Group(NamedTuple):
    """The rows of a table, with the models that they are of."""

    title: str
    head: str
    """What a row is: ``model``, or what the suite calls its variants."""
    by_model: bool
    """Whether the rows are one model's variants; else they are models."""
    rows: Mapping[str, EncodingReport]
    models: Mapping[str, ModelReport]

    @property
    def complete(self) -> bool:
        return all(model.complete for model in self.models.values())

    @property
    def nominal(self) -> bool:
        return any(model.nominal for model in self.models.values())

    @property
    def notes(self) -> list[str]:
        """To be said wherever the numbers are shown."""
        return [model.note for model in self.models.values() if model.note]

    @property
    def apart(self) -> bool:
        """Whether the table is of a model that is reported apart."""
        return any(model.status == "apart" for model in self.models.values())


def groups(of_set: SetReport, variant: str) -> list[Group]:
    """In plan order; models with a note of their own, or reported apart, share no table. `variant`: as suites say."""
    alone = {
        alias: next(iter(model.encodings))
        for alias, model in of_set.models.items()
        if len(model.encodings) == 1 and not model.note and model.status != "apart"
    }
    shared = [encoding for encoding in dict.fromkeys(alone.values()) if list(alone.values()).count(encoding) > 1]
    found = [
        Group(alias, variant, True, model.encodings, {alias: model})
        for alias, model in of_set.models.items()
        if alone.get(alias) not in shared
    ]
    for encoding in shared:
        models = {alias: of_set.models[alias] for alias, only in alone.items() if only == encoding}
        rows = {alias: model.encodings[encoding] for alias, model in models.items()}
        found.append(Group(encoding, "model", False, rows, models))
    return found

"""Hooks that a plugin or a ``conftest.py`` may implement.

Each example is complete: put it into ``conftest.py`` beside your tests. The package's own encodings, models,
providers and kinds of question are registered by the same hooks (in `pytest_cellprose.session.registry`), so whatever
they can do, yours can.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_cellprose.encodings.base import Encoding
    from pytest_cellprose.models.registry import ModelSpec
    from pytest_cellprose.providers.base import Provider
    from pytest_cellprose.questions.kind import QuestionKind
    from pytest_cellprose.store.ledger import PendingCall, Refusal
    from pytest_cellprose.suites.base import Suite


@pytest.hookspec
def pytest_cellprose_encodings(config: pytest.Config) -> Sequence[Encoding]:  # type: ignore[empty-body]
    """Return encodings that enter the plan beside the built-in ones.

    ::

        from pytest_cellprose import Encoding, Workbook

        def write(workbook: Workbook) -> str:
            return "\\n".join(
                f"{sheet.name}!R{row}C{column}: {cell.value}"
                for sheet in workbook.worksheets
                for row, column, cell in sheet.cells()
            )

        def pytest_cellprose_encodings():
            return [Encoding("mine", version="1", label="one cell per line", encode=write)]
    """


@pytest.hookspec
def pytest_cellprose_suites(config: pytest.Config) -> Sequence[Suite]:  # type: ignore[empty-body]
    """Return suites: other tasks than questions about spreadsheets, planned, paid, stored and reported alike.

    A cells folder belongs to the suite that its ``split.json`` names, ``{"schema": 1, "suite": "sums"}``. ::

        import hashlib
        from pytest_cellprose import Check, Opening, Suite, Task, Variant

        class Sums(Suite):
            name, axes = "sums", ("wording", "sum")

            def tasks(self, folder):
                for line in (folder / "sums.txt").read_text().splitlines():
                    name, left, right = line.split()
                    digest = hashlib.sha256(line.encode()).hexdigest()
                    yield Task(name, digest, {"sum": "addition"}, strata={"left": left, "right": right})

            def variants(self):
                return [Variant("digits", "1"), Variant("words", "1")]

            def opening(self, task, variant):
                sign = "+" if variant.name == "digits" else "plus"
                asked = f"{task.strata['left']} {sign} {task.strata['right']}"
                return Opening("Answer with a number.", f"What is {asked}?")

            def check(self, task, episode, world):
                right = int(task.strata["left"]) + int(task.strata["right"])
                return Check({"sum": float(episode.reply.strip() == str(right))}, {"sum": episode.reply})

        def pytest_cellprose_suites():
            return [Sums()]
    """


@pytest.hookspec
def pytest_cellprose_models(config: pytest.Config) -> Sequence[ModelSpec]:  # type: ignore[empty-body]
    """Return models that options may name; add them to ini ``cellprose_models`` to plan them by default.

    ::

        from pytest_cellprose import ModelSpec, Prices

        def pytest_cellprose_models():
            prices = Prices(input="0.20", output="0.80")
            return [ModelSpec(alias="house", model_id="house-8b", vendor="house", prices=prices, max_tokens=4000)]
    """


@pytest.hookspec
def pytest_cellprose_providers(config: pytest.Config) -> Mapping[str, type[Provider]]:  # type: ignore[empty-body]
    """Return providers by vendor: a class that is made once per process and whose ``call`` answers a request.

    ::

        from pytest_cellprose import Reply, Request, Usage

        class House:
            def call(self, request: Request) -> Reply:
                return Reply(text='{"q1": 42}', returned_model="house-8b", usage=Usage(input=900, output=12))

        def pytest_cellprose_providers():
            return {"house": House}
    """


@pytest.hookspec
def pytest_cellprose_questions(config: pytest.Config) -> Sequence[QuestionKind]:  # type: ignore[empty-body]
    """Return kinds of question that question files may name, beside ``value``, ``address``, ``trace``, ``impact`` and
    ``hardcode``.

    Their questions are certified, asked, scored and reported like any other. ``find`` answers them from a workbook: for
    the offline reader, and to hold recorded truths against the file. ::

        from pytest_cellprose import QuestionKind

        def truth(value, fields):
            if not (isinstance(value, str) and value.startswith("=")):
                raise ValueError("expected a formula, such as =A1+B1")
            return value

        def plain(formula):
            return str(formula).replace(" ", "").replace("$", "").removeprefix("=").casefold()

        def score(question, answer):
            return float(plain(answer) == plain(question.answer))

        def find(asked, book):
            cell = book.workbook.cell(asked.cell)
            return None if cell is None or cell.formula is None else cell.formula.text

        def pytest_cellprose_questions():
            return [QuestionKind("formula", truth=truth, score=score, needs="formulas", find=find)]
    """


@pytest.hookspec(firstresult=True)
def pytest_cellprose_admit(config: pytest.Config, call: PendingCall) -> Refusal | None:
    """Say whether a live call may start: None lets it, a `Refusal` keeps its cell from being called in this run.

    Asked before each live call, in the process that makes it, and never about the offline reader; a call that
    runs is never interrupted. The first refusal counts. Caps of vendors are looked at after all plugins have let
    the call pass. What a refusal tells of its limit, and when there is room again (``resets=``), stands in the report
    beside the calls that were not let start. ::

        from pytest_cellprose import Refusal

        def used_share(vendor):
            return 40  # per cent of a subscription's usage window; in floats 0.50 - 0.40 is less than 0.10

        def pytest_cellprose_admit(call):
            used = used_share(call.model.vendor)
            if used >= 80:
                detail = f"{used} % of the window of {call.model.vendor} is used"
                return Refusal("window_full", detail, limit=80, used=used, unit="%", by="the window's keeper")
    """

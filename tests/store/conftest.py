"""A small plan and one of its records, for tests of what is stored."""

from __future__ import annotations

import pytest

from pytest_cellprose.record.record import Record
from pytest_cellprose.store.manifest import Manifest
from tests.report.report_factories import manifest as make_manifest
from tests.report.report_factories import record as make_record


@pytest.fixture
def plan() -> Manifest:
    return make_manifest(["reader"])


@pytest.fixture
def some(plan: Manifest) -> Record:
    return make_record(next(plan.matrix.cells()))

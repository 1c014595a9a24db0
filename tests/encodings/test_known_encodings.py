"""The list of encodings, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pytest_cellprose.encodings import BUILTIN, builtin_encodings, find_encoding
from tests.encodings.workbook_strategies import everything


def test_order_and_names() -> None:
    assert [encoding.name for encoding in builtin_encodings()] == [
        "cellprose_lean_gfm",
        "markitdown",
        "csv",
        "markdown",
        "toon",
        "none",
        "cellprose_values",
        "address_list",
    ]
    assert find_encoding("csv").name == "csv"


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(LookupError, match=r"'csw': known are cellprose_lean_gfm, markitdown, csv, .*address_list"):
        find_encoding("csw")


def test_none_sends_nothing_and_has_no_label() -> None:
    none = find_encoding("none")
    assert none.encode(everything()) == none.label == ""
    assert none.decode is not None
    assert none.decode("").worksheets == ()


def test_versions_of_library_encodings_name_the_libraries() -> None:
    assert find_encoding("markitdown").version.startswith("0.1.7+pandas")
    assert "toon-format" in find_encoding("toon").version


def test_importing_the_encodings_imports_no_library_of_theirs() -> None:
    code = (
        "import sys; import pytest_cellprose.encodings;"
        "print(sorted({'pandas', 'markitdown', 'numpy', 'openpyxl', 'toon_format'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("seed", ["1", "2"])
def test_no_text_depends_on_hash_order_or_time_zone(seed: str) -> None:
    code = (
        "import sys, hashlib; sys.path[:0] = sys.argv[1:]\n"
        "from tests.encodings.workbook_strategies import everything\n"
        "from pytest_cellprose.encodings import BUILTIN\n"
        "print([hashlib.sha256(e.encode(everything()).encode()).hexdigest()\n"
        "       for e in BUILTIN if e.name != 'markitdown'])"
    )
    environment = {"PYTHONHASHSEED": seed, "TZ": f"Etc/GMT+{seed}", "LC_ALL": "C", "PYTHONPATH": ":".join(sys.path)}
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    import hashlib

    here = [hashlib.sha256(e.encode(everything()).encode()).hexdigest() for e in BUILTIN if e.name != "markitdown"]
    assert found.stdout.strip() == str(here)

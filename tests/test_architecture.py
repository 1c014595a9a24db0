"""The map of the house names rooms and modules that are there, all rooms, and its citations lead somewhere."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "pytest_cellprose"
PAGE = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")


def test_every_module_that_is_named_is_there() -> None:
    named = set(re.findall(r"`((?:\w+/)*\w+\.(?:py|toml))`", PAGE)) - {"pyproject.toml"}
    assert len(named) > 30
    assert {name for name in named if name != "providers/NAME.py" and not (PACKAGE / name).is_file()} == set()


def test_every_room_is_on_the_map_in_the_order_of_its_floors() -> None:
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    floors = [name.strip() for floor in contract["contracts"][0]["layers"] for name in floor.split(":")]
    table = PAGE.partition("| room |")[2].partition("\n\n")[0]
    rooms = [cell for line in table.splitlines()[2:] for cell in re.findall(r"`(\w+)(?:/|\.py)`", line.split("|")[1])]
    assert sorted(rooms) == sorted(floors)
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert packages <= set(rooms)


def test_pages_that_the_code_cites_are_there() -> None:
    cited = {
        page
        for path in [*PACKAGE.rglob("*.py"), *(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
        for page in re.findall(r"\bdocs/[\w.-]+\.md\b|\b[A-Z]{6,}\.md\b", path.read_text(encoding="utf-8"))
    }
    folders = (ROOT, ROOT / "docs", PACKAGE)
    assert {page for page in cited if not any((folder / page).is_file() for folder in folders)} == set()
    assert not [path for path in PACKAGE.rglob("*.py") if "DESIGN section" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_module_says_what_it_is_for(path: Path) -> None:
    first = path.read_text(encoding="utf-8").partition("\n")[0]
    assert first.startswith(('"""', 'r"""')), path
    assert len(first) > 20, path

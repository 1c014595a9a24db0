"""Live cells that the mode skips show no letter; what a project skips itself does."""

from __future__ import annotations

import pytest

from tests.integration.conftest import HOUSE, Bench, bench  # noqa: F401

OURS = "def test_cell(cell):\n    cell.run()\n"
THEIRS = f"import pytest\n\n@pytest.mark.skip(reason='not today')\n{OURS}"
THEIR_REASON_IS_OURS = THEIRS.replace("not today", "house is a live model: --cellprose-live runs it")


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["one-process", "a-worker"])
@pytest.mark.parametrize(("test", "letters"), [(OURS, 0), (THEIRS, 2), (THEIR_REASON_IS_OURS, 2)])
def test_only_what_the_mode_skips_shows_no_letter(
    bench: Bench,  # noqa: F811
    workers: tuple[str, ...],
    test: str,
    letters: int,
) -> None:
    bench.pytester.makeconftest(HOUSE)
    (bench.cells / "test_cells.py").write_text(test, encoding="utf-8")
    result = bench.run("--cellprose-models=house", "--cellprose-encodings=csv", "-rN", *workers)
    result.assert_outcomes(skipped=2)
    shown = [line for line in result.outlines if set(line.partition(" ")[0]) == {"s"} or " ss" in line]
    assert len(shown) == (letters > 0)
    assert any("2 live cells skipped" in line for line in result.outlines)

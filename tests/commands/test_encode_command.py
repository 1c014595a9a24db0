"""``python -m pytest_cellprose encode``: how most people will first meet the package."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest
import xlsxwriter

from pytest_cellprose import Workbook, encode
from pytest_cellprose.__main__ import main
from pytest_cellprose.models.tokens import count_tiktoken


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Two workbooks and, between them, one that is none."""
    paths = [tmp_path / "one.xlsx", tmp_path / "broken.xlsx", tmp_path / "two.xlsx"]
    for number, path in enumerate(paths):
        with xlsxwriter.Workbook(str(path)) as book:
            sheet = book.add_worksheet("Umsätze")
            sheet.write_row("A1", ["Jahr", 2024 + number])
            sheet.write_formula("B2", "=B1*2", None, 2 * (2024 + number))
    paths[1].write_bytes(b"PK\x03\x04 broken")
    return [str(path) for path in paths]


def test_one_file_is_printed_as_it_is(files: list[str], capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["encode", files[0]]) == 0
    assert capfdbinary.readouterr().out.decode("utf-8") == encode(files[0])
    assert main(["encode", "--encoding", "csv", files[0]]) == 0
    assert capfdbinary.readouterr().out.decode("utf-8") == "## Umsätze\nJahr,2024\n,4048\n"


def test_the_function_takes_a_path_or_a_workbook(files: list[str]) -> None:
    assert encode(files[0], "csv") == encode(Workbook.read(files[0]), "csv") == encode(Path(files[0]), encoding="csv")
    with pytest.raises(LookupError, match="cellprose_lean_gfm"):
        encode(files[0], "yaml")


def test_a_file_that_cannot_be_read_is_named_and_the_others_go_on(
    files: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["encode", "--encoding", "csv", *files]) == 1
    shown = capfd.readouterr()
    assert shown.out.splitlines()[0] == f"==> {files[0]} <=="
    assert f"==> {files[2]} <==" in shown.out
    assert "Jahr,2026" in shown.out
    (line,) = shown.err.splitlines()
    assert line.startswith(f"{files[1]}: ")


@pytest.mark.parametrize("name", ["missing.xlsx", "folder"])
def test_what_is_no_file_is_named(tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "folder").mkdir()
    assert main(["encode", str(tmp_path / name)]) == 1
    shown = capfd.readouterr()
    assert name in shown.err
    assert "Traceback" not in shown.err
    assert shown.out == ""


def test_an_unknown_encoding_is_wrong_usage(files: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["encode", "--encoding", "yaml", files[0]]) == 2
    assert "known are cellprose_lean_gfm, markitdown" in capfd.readouterr().err


def test_no_command_and_no_file_are_wrong_usage() -> None:
    for arguments in ([], ["encode"], ["unheard-of"]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2


def test_standard_input_and_a_reader_that_has_seen_enough(files: list[str]) -> None:
    command = [sys.executable, "-m", "pytest_cellprose", "encode", "--encoding", "csv", "-"]
    done = subprocess.run(command, input=Path(files[0]).read_bytes(), capture_output=True, check=True)
    assert done.stdout.decode("utf-8") == "## Umsätze\nJahr,2024\n,4048\n"
    assert done.stderr == b""
    empty = subprocess.run(command, input=b"", capture_output=True, check=False)
    assert empty.returncode == 1
    assert empty.stderr.decode().count("\n") == 1


def table_rows(text: str) -> dict[str, list[str]]:
    return {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.strip()}


def test_stats_of_one_file_count_every_encoding(
    files: list[str], capfd: pytest.CaptureFixture[str], shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(shared_data / "tiktoken"))
    assert main(["encode", "--stats", files[0]]) == 0
    rows = table_rows(capfd.readouterr().out)
    for name in ("cellprose_lean_gfm", "markitdown", "csv", "markdown", "toon", "cellprose_values", "address_list"):
        assert int(rows[name][0].replace(",", "")) == count_tiktoken(encode(files[0], name))
        assert rows[name][1].endswith("×")
    assert rows["markitdown"][1] == "1.00×"


def test_stats_of_several_files_have_a_line_each_and_a_total(
    files: list[str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["encode", "--stats", *files]) == 1
    shown = capfd.readouterr()
    rows = table_rows(shown.out)
    assert [name for name in rows if name.endswith(".xlsx")] == ["one.xlsx", "two.xlsx"]
    numbers = [[int(cell.replace(",", "")) for cell in rows[name]] for name in ("one.xlsx", "two.xlsx", "all")]
    assert [a + b for a, b in zip(numbers[0], numbers[1], strict=True)] == numbers[2]
    assert max(map(len, shown.out.splitlines())) <= 80
    assert files[1] in shown.err


def test_bytes_and_streams_are_read_too(files: list[str]) -> None:
    data = Path(files[0]).read_bytes()
    assert Workbook.read(data).sha256 == Workbook.read(io.BytesIO(data)).sha256 == Workbook.read(files[0]).sha256

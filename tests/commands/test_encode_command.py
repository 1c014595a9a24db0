"""``python -m pytest_cellprose encode``: how most people will first meet the package."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import xlsxwriter

from pytest_cellprose import Workbook, encode
from pytest_cellprose.__main__ import main
from pytest_cellprose.models.tokens import count_tiktoken
from pytest_cellprose.sets import split
from pytest_cellprose.sets.pinned import Pinned, PinnedFile, content_sha256


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
    first, broken, last = shown.err.splitlines()
    assert broken.startswith(f"{files[1]}: not a workbook: ")
    assert (first, last) == tuple(f"{file}: not in the text: 1 formula" for file in (files[0], files[2]))


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
    assert done.stderr == b"-: not in the text: 1 formula\n"
    for data, reason in ((b"", "empty, 0 bytes"), (b"PK\x03\x04 broken", "not a workbook"), (b"a,b\n", "a text file")):
        refused = subprocess.run(command, input=data, capture_output=True, check=False)
        assert refused.returncode == 1
        (line,) = refused.stderr.decode().splitlines()
        assert line.startswith(f"-: {reason}")
        assert "workbook: not a workbook" not in line


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


# What a text leaves out


@pytest.fixture
def rich(tmp_path: Path) -> str:
    path = tmp_path / "rich.xlsx"
    with xlsxwriter.Workbook(str(path)) as book:
        sheet = book.add_worksheet("S")
        sheet.write_column("A1", [1, 2, 3])
        sheet.write_formula("B1", "=A1/3", None, 1 / 3)
        for row in range(12):
            sheet.write_comment(row, 0, "note")
        sheet.write_url("C1", "https://example.org")
        sheet.insert_textbox("E1", "IMPORTANT")
        sheet.set_row(1, None, None, {"hidden": True})
    return str(path)


def test_one_line_says_what_the_text_does_not_hold(rich: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["encode", rich]) == 0
    shown = capfd.readouterr()
    places = ", ".join(f"A{row}" for row in range(1, 9))
    assert shown.err == (
        f"{rich}: not in the text: 12 comments ({places}, and 4 more), 1 link, 1 text box; 1 number rounded\n"
    )
    assert main(["encode", "--encoding", "csv", rich]) == 0
    assert capfd.readouterr().err == (
        f"{rich}: not in the text: 12 comments ({places}, and 4 more), 1 formula, 1 link, 1 text box,"
        " that 1 row is hidden\n"
    )


def test_quiet_silences_it_and_changes_nothing_else(
    rich: str, files: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    main(["encode", rich, files[1]])
    told = capfd.readouterr()
    assert main(["encode", "--quiet", rich, files[1]]) == 1
    quiet = capfd.readouterr()
    assert quiet.out == told.out
    assert quiet.err.splitlines() == told.err.splitlines()[1:]


def test_nothing_is_said_where_nothing_is_left_out(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plain.xlsx"
    with xlsxwriter.Workbook(str(path)) as book:
        book.add_worksheet().write("A1", 1)
    for encoding in ("cellprose_lean_gfm", "csv", "address_list"):
        assert main(["encode", "--encoding", encoding, str(path)]) == 0
        assert capfd.readouterr().err == ""


def test_b48_what_is_left_out_is_said(shared_data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = str(shared_data / "bugs/b48_what_is_left_out_is_not_said/input.xlsx")
    assert main(["encode", path]) == 0
    (line,) = capfd.readouterr().err.splitlines()
    for thing in ("2 comments (Data!D2, Data!B3)", "1 link", "1 text box", "2 charts", "1 data validation"):
        assert thing in line
    assert "1 conditional format" in line


def test_a_part_that_cannot_be_counted_does_not_cost_the_text(rich: str, capfd: pytest.CaptureFixture[str]) -> None:
    data = Path(rich).read_bytes()
    damaged = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as before, zipfile.ZipFile(damaged, "w") as after:
        for name in before.namelist():
            after.writestr(name, b"<broken" if name == "xl/drawings/drawing1.xml" else before.read(name))
    Path(rich).write_bytes(damaged.getvalue())
    assert main(["encode", rich]) == 0
    shown = capfd.readouterr()
    assert "## S" in shown.out
    (line,) = shown.err.splitlines()
    assert "could not be counted: broken XML in xl/drawings/drawing1.xml" in line


# Control characters


HOSTILE = "a\x1b]0;title\x07\x1b[2Jb\u202ec\x9bd"


@pytest.fixture
def hostile(tmp_path: Path) -> str:
    escaped = "".join(f"_x{ord(each):04X}_" if each < " " else each for each in HOSTILE)
    row = f'<row r="1"><c r="A1" t="inlineStr"><is><t>{escaped}</t></is></c></row>'
    path = tmp_path / "hostile.xlsx"
    main_namespace = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006/relationships"
    with zipfile.ZipFile(path, "w") as book:
        for part, kind, target in (
            ("_rels/.rels", "officeDocument", "xl/workbook.xml"),
            ("xl/_rels/workbook.xml.rels", "worksheet", "sheet1.xml"),
        ):
            relation = f'<Relationship Id="r" Type="{relations}/{kind}" Target="{target}"/>'
            book.writestr(part, f'<Relationships xmlns="{package}">{relation}</Relationships>')
        sheets = '<sheets><sheet name="S" r:id="r"/></sheets>'
        book.writestr(
            "xl/workbook.xml", f'<workbook xmlns="{main_namespace}" xmlns:r="{relations}">{sheets}</workbook>'
        )
        sheet = f'<worksheet xmlns="{main_namespace}"><sheetData>{row}</sheetData></worksheet>'
        book.writestr("xl/sheet1.xml", sheet)
    return str(path)


@pytest.mark.parametrize("encoding", ["cellprose_lean_gfm", "csv", "markdown", "toon", "address_list"])
def test_pipes_and_files_get_the_exact_text(hostile: str, encoding: str) -> None:
    command = [sys.executable, "-m", "pytest_cellprose", "encode", "--encoding", encoding, hostile]
    done = subprocess.run(command, capture_output=True, check=True)
    assert done.stdout.decode("utf-8").rstrip("\n") == encode(hostile, encoding).rstrip("\n")
    assert b"\x1b[2J" in done.stdout or encoding == "toon"


@pytest.mark.parametrize("encoding", ["cellprose_lean_gfm", "csv", "markdown", "toon", "address_list"])
def test_a_terminal_gets_control_characters_as_escapes(hostile: str, encoding: str) -> None:
    shown = _on_a_terminal(["encode", "--encoding", encoding, hostile])
    assert not set(shown) & {"\x1b", "\x07", "\x9b", "\u202e"}
    assert ("\\u001b" if encoding == "toon" else "\\x1b") in shown, "TOON escapes some of them itself"
    assert "\\u202e" in shown
    assert "\nS" in shown or "## S" in shown or "S[" in shown, "line ends stay"


def test_a_message_about_a_file_shows_its_name_escaped(tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[2J.xlsx"
    path.write_bytes(b"a,b\n")
    command = [sys.executable, "-m", "pytest_cellprose", "encode", str(path)]
    done = subprocess.run(command, capture_output=True, check=False)
    assert b"\x1b" not in done.stderr
    assert b"a\\x1b[2J.xlsx: a text file" in done.stderr


def _on_a_terminal(arguments: list[str]) -> str:
    """What a command writes to a terminal that is its standard output and error."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "dumb", "NO_COLOR": "1", "COLUMNS": "400"}
    command = [sys.executable, "-m", "pytest_cellprose", *arguments]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        pieces = []
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # Linux: the other end is closed
                break
            if not piece:
                break
            pieces.append(piece)
        assert process.wait(60) == 0
    os.close(ours)
    return b"".join(pieces).decode("utf-8").replace("\r\n", "\n")


HELD_OUT = "held out: only a final run may use it; --held-out"


@pytest.fixture
def held_out(files: list[str], monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """The same workbook held out by its name, by a split, by what is pinned: its bytes, and what it holds."""
    folder = Path(files[0]).parent / "more"
    folder.mkdir()
    places = {name: folder / f"{name}.xlsx" for name in ("rw_one", "listed", "bytes", "packed_anew")}
    for number, path in enumerate(places.values()):
        with xlsxwriter.Workbook(str(path)) as book:
            book.add_worksheet("Geheim").write_row("A1", ["Wombat", 31337 + number])
    (folder / "split.json").write_text(json.dumps({"heldout": {"listed": "0" * 64}}))
    workbooks = [Workbook.read(places[name]) for name in ("bytes", "packed_anew")]
    with zipfile.ZipFile(places["packed_anew"], "a") as archive:
        archive.comment = b"x"
    pins = {f"pin{n}": PinnedFile(sha256=each.sha256, content=content_sha256(each)) for n, each in enumerate(workbooks)}
    monkeypatch.setattr(split, "pinned", lambda: Pinned(workbooks=pins))
    return places


@pytest.mark.parametrize("name", ["rw_one", "listed", "bytes", "packed_anew"])
@pytest.mark.parametrize("more", [(), ("--stats",), ("--encoding", "csv")], ids=["text", "stats", "csv"])
def test_a_held_out_workbook_is_shown_only_when_that_is_meant(
    held_out: dict[str, Path], files: list[str], name: str, more: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    path = str(held_out[name])
    assert main(["encode", path, *more]) == 2
    shown = capfd.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"{path}: {HELD_OUT}")
    assert main(["encode", path, files[0], *more]) == 2  # the other one goes on
    shown = capfd.readouterr()
    assert "Wombat" not in shown.out + shown.err
    assert Path(files[0]).name in shown.out
    assert main(["encode", path, "--held-out", *more]) == 0
    shown = capfd.readouterr()
    assert shown.err == ""
    assert ("Wombat" in shown.out) == ("--stats" not in more)


def test_the_help_says_what_held_out_means(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("encode", "score"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        text = " ".join(capsys.readouterr().out.split())
        assert "--held-out go on although a file belongs to a held-out set" in text
        assert "makes later results on that set exploratory" in text

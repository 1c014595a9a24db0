"""Fetching the real-world workbooks: copied or downloaded, and only if they are the pinned ones."""

from __future__ import annotations

import hashlib
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pytest_cellprose.sets.realworld.build import IncompleteError, Pinned, build_realworld, pinned_workbooks

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def pinned(file: str, content: bytes, path: str | None = None, note: str | None = None) -> Pinned:
    return Pinned(
        file=file,
        bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        source_repo="owner/data",
        commit=COMMIT,
        path=path or f"tables of 2024/{file}",
        publisher="An office",
        publisher_page="https://example.org",
        licence="CC BY 4.0",
        note=note,
    )


FIRST, SECOND = b"first workbook" * 500, b"second workbook"
TWO = (pinned("first.xlsx", FIRST), pinned("second.xlsx", SECOND))
SERVED = {
    f"/owner/data/{COMMIT}/tables%20of%202024/first.xlsx": FIRST,
    f"/owner/data/{COMMIT}/tables%20of%202024/second.xlsx": SECOND,
    f"/owner/data/{COMMIT}/old/second.xls": b"an .xls",
}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        content = SERVED.get(self.path)
        if self.path.startswith("/broken"):
            self.send_response(200)
            self.send_header("Content-Length", str(len(FIRST)))
            self.end_headers()
            self.wfile.write(FIRST[:100])
        elif content is None:
            self.send_error(404)
        else:
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "first.xlsx").write_bytes(FIRST)
    (folder / "second.xlsx").write_bytes(SECOND)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cells" / "realworld"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_copies_from_a_folder_and_says_so_of_each(source: Path, folder: Path) -> None:
    lines = build_realworld(source, folder, workbooks=TWO)
    assert lines == [
        f"rw_first: copied {source / 'first.xlsx'}, 7,000 bytes, SHA-256 as pinned",
        f"rw_second: copied {source / 'second.xlsx'}, 15 bytes, SHA-256 as pinned",
        f"2 of 2 workbooks are in {folder}",
    ]
    assert names(folder) == ["first.xlsx", "second.xlsx"]
    assert (folder / "first.xlsx").read_bytes() == FIRST


def test_downloads_the_file_of_the_pinned_commit(folder: Path, base: str) -> None:
    lines = build_realworld(None, folder, base, TWO)
    assert lines[0].startswith(f"rw_first: downloaded {base}/owner/data/{COMMIT}/tables%20of%202024/first.xlsx, 7,000")
    assert (folder / "first.xlsx").read_bytes() == FIRST
    assert (folder / "second.xlsx").read_bytes() == SECOND


def test_leaves_alone_what_is_there(source: Path, folder: Path) -> None:
    build_realworld(source, folder, workbooks=TWO)
    before = (folder / "first.xlsx").stat().st_mtime_ns
    lines = build_realworld(None, folder, "http://127.0.0.1:9", TWO)
    assert lines[0] == "rw_first: first.xlsx is there already, SHA-256 as pinned"
    assert (folder / "first.xlsx").stat().st_mtime_ns == before


def test_puts_right_a_file_that_is_another(source: Path, folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "first.xlsx").write_bytes(b"an older table")
    build_realworld(source, folder, workbooks=TWO)
    assert (folder / "first.xlsx").read_bytes() == FIRST


def test_another_version_is_named_and_not_kept_and_the_others_go_on(source: Path, folder: Path) -> None:
    (source / "first.xlsx").write_bytes(b"revised")
    with pytest.raises(IncompleteError) as caught:
        build_realworld(source, folder, workbooks=TWO)
    first, second, count = caught.value.lines
    assert first.startswith("rw_first: NOT THERE: copied ")
    assert hashlib.sha256(b"revised").hexdigest() in first
    assert TWO[0].sha256 in first
    assert second.startswith("rw_second: copied ")
    assert count == f"1 of 2 workbooks are in {folder}"
    assert str(caught.value).splitlines() == [first, second, count]
    assert names(folder) == ["second.xlsx"]


def test_a_failure_leaves_the_file_that_was_there(source: Path, folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "first.xlsx").write_bytes(b"an older table")
    (source / "first.xlsx").unlink()
    with pytest.raises(IncompleteError, match=r"rw_first: NOT THERE: .*first\.xlsx cannot be read: No such file"):
        build_realworld(source, folder, workbooks=TWO)
    assert (folder / "first.xlsx").read_bytes() == b"an older table"


def test_a_file_that_the_server_does_not_have(folder: Path, base: str) -> None:
    gone = pinned("gone.xlsx", b"gone")
    with pytest.raises(IncompleteError, match=r"(?m)^rw_gone: NOT THERE: .* HTTP Error 404.*--from DIR$"):
        build_realworld(None, folder, base, [gone, *TWO])
    assert names(folder) == ["first.xlsx", "second.xlsx"]


def test_a_download_that_breaks_off_is_not_kept(folder: Path, base: str) -> None:
    with pytest.raises(IncompleteError, match="0 of 2 workbooks"):
        build_realworld(None, folder, f"{base}/broken", TWO)
    assert names(folder) == []


def test_a_server_that_is_not_there(folder: Path) -> None:
    with socket.socket() as taken:  # bound and not listening: nobody else can answer there
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(IncompleteError, match=r"cannot be downloaded: .*refused"):
            build_realworld(None, folder, f"http://127.0.0.1:{taken.getsockname()[1]}", TWO)


def test_a_copy_of_another_format_is_not_downloaded(source: Path, folder: Path, base: str) -> None:
    converted = pinned("second.xlsx", SECOND, "old/second.xls", "converted from the .xls")
    with pytest.raises(IncompleteError, match=r"second\.xls is no \.xlsx \(converted from the \.xls\); .*--from DIR"):
        build_realworld(None, folder, base, [TWO[0], converted])
    assert names(folder) == ["first.xlsx"]
    assert build_realworld(source, folder, base, [TWO[0], converted])[-1] == f"2 of 2 workbooks are in {folder}"


def test_a_source_that_is_no_folder(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(NotADirectoryError, match="no-such-place: not a folder"):
        build_realworld(tmp_path / "no-such-place", folder, workbooks=TWO)
    assert not folder.exists()


def test_the_manifest_pins_seventeen_files() -> None:
    workbooks = pinned_workbooks()
    assert len({workbook.name for workbook in workbooks}) == len({workbook.sha256 for workbook in workbooks}) == 17
    for workbook in workbooks:
        assert len(workbook.commit) == 40
        assert workbook.path.endswith(".xlsx") == (workbook.note is None)


def test_the_published_files_are_the_pinned_ones(shared_data: Path, folder: Path) -> None:
    source = shared_data / "heldout_real"
    if not source.is_dir():
        pytest.skip("heldout_real is not here")
    lines = build_realworld(source, folder)
    assert lines[-1] == f"17 of 17 workbooks are in {folder}"
    assert len(lines) == 18

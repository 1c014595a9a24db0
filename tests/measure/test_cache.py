"""The cache of texts: what was made once is not made again, and nothing stale, foreign or half-written is used."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_cellprose import Encoding
from pytest_cellprose.cache import TextCache
from pytest_cellprose.encodings import find_encoding
from pytest_cellprose.encodings.keys import code_digest, encoding_key


@given(text=st.text(), key=st.lists(st.text(), min_size=1, max_size=3))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_a_text_comes_back_as_it_was(tmp_path: Path, text: str, key: list[str]) -> None:
    cache = TextCache(tmp_path)
    cache.put(text, *key)
    assert cache.get(*key) == text
    assert cache.get(*key, "more") is None


def test_what_is_cached_is_not_made_again(tmp_path: Path) -> None:
    made: list[int] = []

    def make() -> str:
        made.append(1)
        return "line\r\nend\n"

    assert [TextCache(tmp_path).get_or_make(make, "k") for _ in range(3)] == ["line\r\nend\n"] * 3
    assert len(made) == 1


def test_without_a_folder_everything_is_made(tmp_path: Path) -> None:
    cache = TextCache(None)
    cache.put("text", "k")
    assert cache.get("k") is None
    assert cache.get_or_make(lambda: "made", "k") == "made"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_to_only_costs_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert TextCache(tmp_path / "file").get_or_make(lambda: "made", "k") == "made"


@pytest.mark.parametrize("keep", [0, 1, 20, -1], ids=["empty", "one-byte", "cut-in-the-head", "cut-in-the-text"])
def test_a_half_written_entry_is_made_again(tmp_path: Path, keep: int) -> None:
    cache = TextCache(tmp_path)
    cache.put("a text of some length", "k")
    (entry,) = tmp_path.iterdir()
    entry.write_bytes(entry.read_bytes()[:keep])
    assert cache.get("k") is None
    assert cache.get_or_make(lambda: "again", "k") == "again"
    assert cache.get("k") == "again"


@pytest.mark.parametrize("content", [b"\xff\xfe", b"null\ntext", b"[]\ntext", b'{"key": ["k"]}\ntext'])
def test_a_foreign_entry_is_not_used(tmp_path: Path, content: bytes) -> None:
    cache = TextCache(tmp_path)
    cache.put("text", "k")
    (entry,) = tmp_path.iterdir()
    entry.write_bytes(content)
    assert cache.get("k") is None


def test_an_entry_under_another_key_is_not_used(tmp_path: Path) -> None:
    cache = TextCache(tmp_path)
    cache.put("one", "k1")
    (first,) = tmp_path.iterdir()
    cache.put("two", "k2")
    (second,) = set(tmp_path.iterdir()) - {first}
    second.write_bytes(first.read_bytes())
    assert cache.get("k2") is None


def test_an_altered_text_is_not_used(tmp_path: Path) -> None:
    cache = TextCache(tmp_path)
    cache.put("value 1", "k")
    (entry,) = tmp_path.iterdir()
    entry.write_bytes(entry.read_bytes().replace(b"value 1", b"value 2"))
    assert cache.get("k") is None
    assert json.loads(entry.read_bytes().partition(b"\n")[0])["key"] == ["k"]


def module(path: Path, body: str) -> Encoding:
    path.write_text(f"def write(workbook):\n    {body}\n", encoding="utf-8")
    spec = importlib.util.spec_from_file_location("somebodys_encoding", path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules["somebodys_encoding"] = loaded
    spec.loader.exec_module(loaded)
    return Encoding("mine", "1", "mine", loaded.write)


def test_the_key_changes_with_the_code_and_not_only_with_the_version(tmp_path: Path) -> None:
    folders = [tmp_path / "before", tmp_path / "after"]
    for folder in folders:
        folder.mkdir()
    before = encoding_key(module(folders[0] / "enc.py", "return 'a'"), "0" * 64)
    after = encoding_key(module(folders[1] / "enc.py", "return 'b'"), "0" * 64)
    assert before != after
    assert encoding_key(module(folders[1] / "enc.py", "return 'b'"), "0" * 64) == after


def test_the_key_tells_workbooks_and_encodings_apart() -> None:
    csv, markdown = find_encoding("csv"), find_encoding("markdown")
    keys = {encoding_key(csv, "1"), encoding_key(csv, "2"), encoding_key(markdown, "1")}
    assert len(keys) == 3
    assert len(code_digest(csv)) == 64


class Callable:
    def __call__(self, workbook: object) -> str:
        return "text"


def test_a_callable_object_has_code_too() -> None:
    assert len(code_digest(Encoding("object", "1", "x", Callable()))) == 64

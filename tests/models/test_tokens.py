"""Token counts: exact o200k_base, the same as tiktoken's, offline, whatever the text."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_cellprose.models.tokens import (
    TIKTOKEN_RANKS_FILE,
    RanksNotHere,
    count,
    count_tiktoken,
    counter_name,
)

assigned = st.text(st.characters(codec="utf-8", exclude_categories=("Cn", "Co", "Cs")))


@pytest.fixture(scope="module")
def ranks(shared_data: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(shared_data / "tiktoken"))
        try:
            count_tiktoken("")
        except RanksNotHere as missing:
            pytest.skip(str(missing))
        yield


@pytest.mark.parametrize(
    ("text", "tokens"),
    # Published examples: OpenAI's cookbook, "How to count tokens with tiktoken", o200k_base.
    [("", 0), ("antidisestablishmentarianism", 6), ("2 + 2 = 4", 7), ("お誕生日おめでとう", 8)],
)
def test_published_counts(text: str, tokens: int) -> None:
    assert count(text) == tokens


def test_the_counter_is_named_with_its_version() -> None:
    assert counter_name().startswith("toktok-rs 0.")
    assert counter_name().endswith(" o200k_base")


@given(text=assigned)
def test_tiktoken_counts_the_same(ranks: None, text: str) -> None:
    assert count(text) == count_tiktoken(text)


@pytest.mark.parametrize(
    "text",
    [
        "C3:BI3 =B3*(1+Assumptions!$B$4) except S3,AI3 hard-coded\n|A|B\n-|-|-\n3|Units|1200|.0625\n",
        "<|endoftext|>",
        "\ud800 lone, \ud83d\ude00 paired",
        "\x00\r\n\u3000\u200d👩‍👩‍👧‍👦",
        "a" * 5_000,
        " " * 5_000,
    ],
    ids=["sheet", "special", "surrogates", "odd", "letters", "spaces"],
)
def test_tiktoken_counts_odd_texts_the_same(ranks: None, text: str) -> None:
    assert count(text) == count_tiktoken(text)


def test_ten_megabytes_are_counted_in_a_moment() -> None:
    started = time.process_time()
    assert count("ab1," * 2_500_000) == 7_500_000
    assert time.process_time() - started < 5  # 0.1 s on an idle machine


def test_tiktoken_is_never_made_to_download(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    with pytest.raises(RanksNotHere, match="TIKTOKEN_CACHE_DIR is not set"):
        count_tiktoken("a")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    with pytest.raises(RanksNotHere, match="cannot be read"):
        count_tiktoken("a")


def test_damaged_ranks_are_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    damaged = tmp_path / TIKTOKEN_RANKS_FILE
    damaged.write_bytes(b"IQ== 0\n")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    with pytest.raises(RanksNotHere, match="not the ranks"):
        count_tiktoken("a")
    assert damaged.read_bytes() == b"IQ== 0\n"

"""What one writes without the plugin: a parametrised test that makes one SDK call. PROMPTS is in the environment."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path

import pytest
from openai import OpenAI

PROMPTS = json.loads(Path(os.environ["PROMPTS"]).read_text())


@cache
def client() -> OpenAI:
    return OpenAI(max_retries=0)


@pytest.mark.parametrize("number", range(len(PROMPTS)))
def test_call(number: int) -> None:
    stream = client().chat.completions.create(
        model="m", messages=PROMPTS[number], max_tokens=4000, stream=True, stream_options={"include_usage": True}
    )
    assert "".join(choice.delta.content or "" for chunk in stream for choice in chunk.choices)

"""The least that N calls through an SDK cost: ``python bare_loop.py PROMPTS IN_FLIGHT``; address and key as for OpenAI.

PROMPTS is a JSON file: a list of message lists, one for each call.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from openai import AsyncOpenAI, DefaultAsyncHttpxClient


async def main(prompts: list[list[dict[str, str]]], in_flight: int) -> None:
    client = AsyncOpenAI(http_client=DefaultAsyncHttpxClient(), max_retries=0)
    free = asyncio.Semaphore(in_flight)

    async def call(messages: list[dict[str, str]]) -> int:
        async with free:
            stream = await client.chat.completions.create(
                model="m", messages=messages, max_tokens=4000, stream=True, stream_options={"include_usage": True}
            )
            texts = []
            async for chunk in stream:
                texts += [choice.delta.content or "" for choice in chunk.choices]
            return len("".join(texts))

    lengths = await asyncio.gather(*map(call, prompts))
    assert all(lengths)


if __name__ == "__main__":
    asyncio.run(main(json.loads(Path(sys.argv[1]).read_text()), int(sys.argv[2])))

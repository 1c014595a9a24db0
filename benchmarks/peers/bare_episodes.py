"""The least that episodes with a tool cost through a vendor's SDK, a thread each; address and key as for the vendor.

    python bare_episodes.py messages|responses EPISODES

The tool answers at once. Every turn sends again all that came before it.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

SYSTEM = "You look into a box with the tool that you have, and say then what is in it. " * 25
PROMPT = "Look into the box as often as you need. " * 25
TOOL = {"name": "look", "description": "Looks into the box, and tells what is in it."}
SCHEMA = {"type": "object", "properties": {"where": {"type": "string"}}, "required": ["where"]}
FOUND = "Sheet1!A1:F20, numbers and headers; " * 30


def messages(client: Any) -> int:
    """Turns of an episode; as Anthropic's documentation writes the loop."""
    history: list[Any] = [{"role": "user", "content": PROMPT}]
    turns = 0
    while True:
        tools: Any = [{**TOOL, "input_schema": SCHEMA}]
        with client.messages.stream(
            model="claude-haiku-5-5", max_tokens=16000, system=SYSTEM, messages=history, tools=tools
        ) as stream:
            said = stream.get_final_message()
        turns += 1
        calls = [block for block in said.content if block.type == "tool_use"]
        if not calls:
            return turns
        results = [{"type": "tool_result", "tool_use_id": call.id, "content": FOUND} for call in calls]
        history += [{"role": "assistant", "content": said.content}, {"role": "user", "content": results}]


def responses(client: Any) -> int:
    """Turns of an episode; as OpenAI's documentation writes the loop where nothing is stored."""
    items: list[Any] = [{"role": "user", "content": PROMPT}]
    turns = 0
    while True:
        stream = client.responses.create(
            model="gpt-6-luna",
            max_output_tokens=16000,
            instructions=SYSTEM,
            input=items,
            tools=[{"type": "function", **TOOL, "parameters": SCHEMA, "strict": False}],
            store=False,
            include=["reasoning.encrypted_content"],
            stream=True,
        )
        said = [event.response for event in stream if event.type == "response.completed"][-1]
        turns += 1
        calls = [item for item in said.output if item.type == "function_call"]
        if not calls:
            return turns
        items += said.output
        items += [{"type": "function_call_output", "call_id": call.call_id, "output": FOUND} for call in calls]


def main(protocol: str, episodes: int) -> None:
    if protocol == "messages":
        import anthropic

        client, play = anthropic.Anthropic(max_retries=0), messages
    else:
        import openai

        client, play = openai.OpenAI(max_retries=0), responses
    with ThreadPoolExecutor(episodes) as pool:
        assert all(pool.map(play, [client] * episodes))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

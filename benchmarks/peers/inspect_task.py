"""The same calls as an inspect_ai task without a scorer: run by ``inspect eval``. PROMPTS is in the environment."""

from __future__ import annotations

import json
import os
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageSystem, ChatMessageUser
from inspect_ai.solver import generate

PROMPTS = json.loads(Path(os.environ["PROMPTS"]).read_text())


@task
def calls() -> Task:
    samples = [
        Sample(input=[ChatMessageSystem(content=system["content"]), ChatMessageUser(content=user["content"])])
        for system, user in PROMPTS
    ]
    return Task(dataset=samples, solver=generate(max_tokens=4000))

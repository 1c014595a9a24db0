"""How a plan's agents are run: their limits, and a sandbox that works, or the sentence that says why there is none."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_cellprose.method.roles import MAX_CALL_USD, MAX_TURNS
from pytest_cellprose.models.registry import ModelSpec
from pytest_cellprose.plan.problems import Draft
from pytest_cellprose.plan.settings import Settings
from pytest_cellprose.plan.tasks import PlannedTasks
from pytest_cellprose.questions.problem import Problem
from pytest_cellprose.store.manifest import AgentPlan, PlannedOut
from pytest_cellprose.suites.base import Suite

UNSAFE = "unsafe"


def planned_agents(
    settings: Settings,
    suite: Suite,
    tasks: PlannedTasks,
    models: Sequence[ModelSpec],
    left_out: Sequence[PlannedOut],
    draft: Draft,
) -> AgentPlan | None:
    """None if no variant of the plan has tools. What is wrong goes into `draft`."""
    kinds = {variant.name: suite.tools(variant) for variant in tasks.variants}
    with_tools = [name for name, kind in kinds.items() if kind != "none"]
    if not with_tools:
        return None
    impossible = {(out.model, out.encoding) for out in left_out}
    runs = [model.alias for model in models if not model.live or settings.live]
    sandboxed = [
        (alias, name)
        for alias in runs
        for name in with_tools
        if kinds[name] == "sandbox" and (alias, name) not in impossible
    ]
    if sandboxed:
        _judge(settings, tasks, draft)
    return AgentPlan(
        encodings=with_tools,
        max_turns=settings.max_turns,
        max_call_usd=str(settings.max_call_usd),
        sandbox=dict(_probed(settings, draft)) if sandboxed else {},
    )


def slots_of(settings: Settings) -> int:
    """Commands of agents that may run at a time."""
    return settings.sandboxes or os.cpu_count() or 1


def _judge(settings: Settings, tasks: PlannedTasks, draft: Draft) -> None:
    if settings.max_turns != MAX_TURNS:
        draft.unpublishable.append(f"--cellprose-max-turns: {settings.max_turns}, not the protocol's {MAX_TURNS}")
    if settings.max_call_usd != MAX_CALL_USD:
        draft.unpublishable.append(
            f"--cellprose-max-call-usd: {settings.max_call_usd}, not the protocol's {MAX_CALL_USD}"
        )
    if settings.sandbox != UNSAFE:
        return
    draft.unpublishable.append("--cellprose-sandbox=unsafe: agents' commands are not kept from the rest of the machine")
    draft.notes.append(
        "--cellprose-sandbox=unsafe: what a model writes runs as you, with your files and your network within its reach"
    )
    if any(entry.set == "heldout" for entry in tasks.entries):
        draft.refuse(
            "--cellprose-sandbox=unsafe: an agent could read the answers to held-out workbooks; leave it out, or take "
            "container:IMAGE"
        )


def _probed(settings: Settings, draft: Draft) -> Mapping[str, str | int | float]:
    """What the sandbox says of itself, by a command that ran in it."""
    from pytest_cellprose.sandbox.choose import probe, sandboxes

    with tempfile.TemporaryDirectory(prefix="cellprose-") as folder:
        found = probe(sandboxes(settings.sandbox, 1, Path(folder)))
    if found.problem is not None:
        said = f"agents need a sandbox, and {found.problem}: {found.remedy}, or leave agent encodings out"
        draft.gate.append(Problem(said))
        return {}
    return found.facts

"""What a call is expected to use: from earlier runs' records where there are any, else assumed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_cellprose.measure.expected_episode import RecordedEpisodes
from pytest_cellprose.measure.expected_output import Outputs, Recorded
from pytest_cellprose.models.pricing import cost_nanousd
from pytest_cellprose.models.registry import ModelSpec
from pytest_cellprose.store.layout import manifest_files
from pytest_cellprose.store.records import Store

MOST_RUNS = 20
"""The latest ones, so that planning stays fast however many runs are stored."""


def recorded_outputs(out: Path, models: Sequence[ModelSpec]) -> Outputs:
    """What the runs under `out` recorded of these models: same model id, same settings, development records only.

    Runs and lines that this version cannot read are passed by: an estimate needs none of them.
    """
    live = [model for model in models if model.live]
    if not live:
        return Outputs()
    recorded: dict[str, dict[str, Recorded]] = {}
    episodes: dict[str, dict[str, RecordedEpisodes]] = {}
    runs: list[str] = []
    for store in _stores(out, {model.model_id for model in live}):
        found = False
        for fields in _records(store):
            for model in live:
                encoding = _encoding(fields, model)
                if encoding is None:
                    continue
                call = _call(fields)
                if call is not None:
                    of_model = recorded.setdefault(model.alias, {})
                    of_model[encoding] = of_model[encoding] + call if encoding in of_model else call
                episode = _episode(fields, model)
                if episode is not None:
                    played = episodes.setdefault(model.alias, {})
                    played[encoding] = played[encoding] + episode if encoding in played else episode
                found = found or call is not None or episode is not None
        if found:
            runs.append(store.run)
        if len(runs) == MOST_RUNS:
            break
    return Outputs(recorded=recorded, episodes=episodes, runs=runs)


def _stores(out: Path, model_ids: set[str]) -> Iterator[Store]:
    """Runs that called one of the models, latest first."""
    for path in reversed(manifest_files(out)):
        try:
            manifest = json.loads(path.read_bytes())
            skipped = manifest["matrix"]["skipped_models"]
            called = {model["model_id"] for model in manifest["models"] if model["alias"] not in skipped}
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if called & model_ids:
            yield Store(out, path.stem)


def _records(store: Store) -> Iterator[Mapping[str, Any]]:
    try:
        with store.records_path("development").open("rb") as stream:
            for line in stream:
                try:
                    fields = json.loads(line)
                except ValueError:
                    continue
                if isinstance(fields, dict):
                    yield fields
    except OSError:
        return


def _encoding(fields: Mapping[str, Any], model: ModelSpec) -> str | None:
    """A record's encoding, if it is a measured call of `model` as it would be called now."""
    try:
        used = fields["model"]
        same = used["requested"] == model.model_id
        same = same and used["settings"] == {"max_tokens": model.max_tokens, **model.settings}
        return str(fields["cell"]["encoding"]) if same and fields["outcome"]["status"] != "fault" else None
    except (KeyError, TypeError):
        return None


def _call(fields: Mapping[str, Any]) -> Recorded | None:
    """The output of a call in one shot; None if it is not known, or if it was an episode with tools."""
    try:
        tokens, questions = fields["usage"]["output"], len(fields["kinds"])
    except (KeyError, TypeError):
        return None
    if fields.get("turns") is not None or not isinstance(tokens, int) or not questions:
        return None
    return Recorded(calls=1, questions=questions, tokens=tokens)


def _episode(fields: Mapping[str, Any], model: ModelSpec) -> RecordedEpisodes | None:
    """What an episode with tools would cost at today's price; None if a turn told no tokens."""
    try:
        spent = [cost_nanousd(model.prices, turn["input"], turn["output"]) for turn in fields["turns"]]
    except (KeyError, TypeError):
        return None
    return RecordedEpisodes(calls=1, nanousd=sum(spent)) if spent else None

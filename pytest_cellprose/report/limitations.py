"""The limitations, in the words printed next to the headline (protocol section 10): their one home."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_cellprose.record.record import SetName
from pytest_cellprose.store.manifest import Manifest, ModelEntry, WorkbookEntry
from pytest_cellprose.wording import counted

SET_LABELS: dict[SetName, str] = {"heldout": "held-out", "development": "development"}
"""The headline's set first."""

SHORT = (
    "Limitations: a test set of limited size, partly synthetic; prices of the day they were checked; a "
    "one-shot call and an agent loop spend tokens differently; savings may differ by tokenizer."
)
"""For pages that state the result in passing."""

AGENTS = (
    "A one-shot call and an agent loop spend tokens differently: the loop reads a growing context again "
    "every turn. The comparison is on cost per correct answer, which is what a user pays; being ahead of "
    "agent_xlsx says nothing about which of the two reads a workbook better at equal cost."
)
TOKENIZERS = (
    "Savings may differ by tokenizer: each model is billed by its vendor's own. The counts beside the billed "
    "tokens show by how much."
)
DATES = "Models without a dated id may change behind their name, so runs of different days are not compared."


def limitations(manifest: Manifest) -> list[str]:
    """One sentence or two each, in the order of the protocol."""
    workbooks = manifest.matrix.workbooks
    live = [model for model in manifest.models if model.vendor != "offline"]
    found = [_size(workbooks), *_synthetic(workbooks)]
    if live:
        found += _prices(live)
    if any(encoding.startswith("agent_") for encoding in manifest.matrix.encodings):
        found.append(AGENTS)
    if live:
        found += [_open_weight(live), TOKENIZERS, DATES]
    return found


def _size(workbooks: Sequence[WorkbookEntry]) -> str:
    sizes = []
    for name, label in SET_LABELS.items():
        of_set = [workbook for workbook in workbooks if workbook.set == name]
        if of_set:
            questions = sum(workbook.questions for workbook in of_set)
            sizes.append(f"{counted(len(of_set), f'{label} workbook')} ({questions} questions)")
    size = " and ".join(sizes) or "no workbook"
    return f"The test set is {size}; the intervals speak for workbooks like these only."


def _synthetic(workbooks: Sequence[WorkbookEntry]) -> list[str]:
    known = [workbook for workbook in workbooks if _is_synthetic(workbook) is not None]
    if not known:
        return []
    made = sum(bool(_is_synthetic(workbook)) for workbook in known)
    rest = len(workbooks) - len(known)
    unknown = f"; of {counted(rest, 'workbook')} it is not recorded" if rest else ""
    return [f"{made} of {len(workbooks)} workbooks are synthetic{unknown}."]


def _is_synthetic(workbook: WorkbookEntry) -> bool | None:
    if workbook.synthetic is None and workbook.name.startswith(("sb_", "rw_")):
        return False
    return workbook.synthetic


def _prices(models: Sequence[ModelEntry]) -> list[str]:
    dates = sorted({model.prices_checked for model in models if model.prices_checked})
    unchecked = [model.alias for model in models if not model.prices_checked]
    said = [f"Prices were checked on {' and '.join(dates)}."] if dates else []
    if unchecked:
        said.append(f"The prices of {', '.join(unchecked)} were never checked against a price page.")
    return [" ".join(said)]


def _open_weight(models: Sequence[ModelEntry]) -> str:
    hosted = [model for model in models if model.vendor not in ("anthropic", "openai")]
    if not hosted:
        return "No open-weight model was run."
    names = ", ".join(f"{model.alias} ({model.model_id})" for model in hosted)
    return f"Hosted by others: {names}; price, caching and quantisation are the host's."

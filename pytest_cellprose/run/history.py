"""What earlier runs say about a final run: a held-out workbook that was run before under another method is a deviation
that rules publication out (protocol section 3). Results that a change followed are exploratory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_cellprose.draft import counted, some
from pytest_cellprose.run.manifest import Manifest, WorkbookEntry
from pytest_cellprose.run.store import Store, StoreError


@dataclass(frozen=True)
class EarlierRuns:
    """The manifests under an out folder, oldest first. Each means that something ran."""

    manifests: Sequence[Manifest] = ()
    unreadable: Sequence[str] = ()
    """File names of those that this version cannot read."""


@dataclass(frozen=True)
class History:
    """What a final run has to say of the runs before it."""

    deviations: tuple[str, ...] = ()
    """Each rules publication out."""
    notes: tuple[str, ...] = ()


def earlier_runs(out: Path) -> EarlierRuns:
    """Every manifest that was written under `out`."""
    manifests, unreadable = [], []
    for path in sorted((out / "runs").glob("*.json")):
        try:
            manifests.append(Store(out, path.stem).manifest())
        except StoreError:
            unreadable.append(path.name)
    return EarlierRuns(manifests, unreadable)


def history(now: Manifest, earlier: EarlierRuns) -> History:
    """How `now` differs from what its held-out workbooks were run under before."""
    deviations: list[str] = []
    notes: list[str] = []
    again: dict[str, list[str]] = {}
    for before in earlier.manifests:
        under: dict[str, list[str]] = {}
        for workbook in _heldout(now):
            for known in before.matrix.workbooks:
                if _is_same(workbook, known):
                    under.setdefault(_how(workbook, known, now, before), []).append(workbook.name)
                    break
        for how, names in under.items():
            if how:
                one, were = ("workbook", "was") if len(names) == 1 else ("workbooks", "were")
                deviations.append(f"held-out {one} {', '.join(names)} {were} run in {before.run} {how}")
                notes.append(f"not publishable: held-out {one} {some(names)} {were} run in {before.run} {how}")
            else:
                again[before.run] = names
    if again:
        books = {name for names in again.values() for name in names}
        notes.append(
            f"{counted(len(books), 'held-out workbook')} run before under the same method, in {some(list(again))}"
        )
    if earlier.unreadable:
        notes.append(
            f"{counted(len(earlier.unreadable), 'manifest')} that this version cannot read, so that what they ran is "
            f"not known: {some(list(earlier.unreadable))}"
        )
    return History(tuple(deviations), tuple(notes))


def _heldout(manifest: Manifest) -> Iterable[WorkbookEntry]:
    return (book for book in manifest.matrix.workbooks if book.set == "heldout")


def _is_same(one: WorkbookEntry, other: WorkbookEntry) -> bool:
    """By content: under another name a workbook, or a set of questions, is no other."""
    return one.workbook_sha256 == other.workbook_sha256 or one.questions_sha256 == other.questions_sha256


def _how(workbook: WorkbookEntry, known: WorkbookEntry, now: Manifest, before: Manifest) -> str:
    """Under what else the workbook was run before; empty if the method was this one."""
    if known.set == "development":
        return "as development data"
    others = [f"another {name}" for name in before.encoding_versions if _is_another(name, workbook, known, now, before)]
    if before.method is None:
        others.append("a method that is not on record")
    elif now.method is not None:
        others += ["other prompts"] if before.method.prompts != now.method.prompts else []
        others += ["another scorer"] if before.method.scorer != now.method.scorer else []
    return f"under {_and(others)}" if others else ""


def _is_another(name: str, workbook: WorkbookEntry, known: WorkbookEntry, now: Manifest, before: Manifest) -> bool:
    """Whether an encoding is not what it was: by its version, by its text of this workbook, and where one of the
    texts is not on record, by its code."""
    if name not in now.encoding_versions:
        return False
    if now.encoding_versions[name] != before.encoding_versions[name]:
        return True
    texts = (
        now.encoded.sha256.get(workbook.name, {}).get(name),
        before.encoded.sha256.get(known.name, {}).get(name),
    )
    if workbook.workbook_sha256 == known.workbook_sha256 and None not in texts:
        return texts[0] != texts[1]
    return now.encoding_code.get(name) != before.encoding_code.get(name)


def _and(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))

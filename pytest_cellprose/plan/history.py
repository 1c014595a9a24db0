"""What earlier runs say about a final run: a held-out workbook that was run before under another method, or with other
questions, is a deviation that rules publication out (protocol section 3). Results that a change followed are
exploratory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_cellprose.store.identity import committed_manifests
from pytest_cellprose.store.layout import StoreError, manifest_files
from pytest_cellprose.store.manifest import Manifest, WorkbookEntry
from pytest_cellprose.store.records import Store, read_manifest
from pytest_cellprose.wording import counted, some


@dataclass(frozen=True)
class EarlierRuns:
    """Their manifests, oldest first. Each means that something ran."""

    manifests: Sequence[Manifest] = ()
    unreadable: Sequence[str] = ()
    """Names of those that this version cannot read."""


@dataclass(frozen=True)
class History:
    """What a final run has to say of the runs before it."""

    deviations: tuple[str, ...] = ()
    """Each rules publication out."""
    notes: tuple[str, ...] = ()


def earlier_runs(outs: Iterable[Path], root: Path) -> EarlierRuns:
    """Every manifest that was written under one of `outs`, and every one that the repository of `root` ever had."""
    found: dict[str, list[Manifest]] = {}
    unreadable: list[str] = []
    for out in dict.fromkeys(outs):
        for path in manifest_files(out):
            try:
                _note(Store(out, path.stem).manifest(), found)
            except StoreError:
                unreadable.append(path.name)
    for name, content in committed_manifests(root).items():
        try:
            _note(read_manifest(content, name), found)
        except StoreError:
            unreadable.append(name)
    return EarlierRuns([each for run in sorted(found) for each in found[run]], unreadable)


def _note(manifest: Manifest, found: dict[str, list[Manifest]]) -> None:
    """Once for each run, unless two of its manifests tell of other workbooks or another method."""
    known = found.setdefault(manifest.run, [])
    same = {"matrix", "method", "encoding_versions", "encoded", "encoding_code"}
    if all(manifest.model_dump(include=same) != other.model_dump(include=same) for other in known):
        known.append(manifest)


def history(now: Manifest, earlier: EarlierRuns) -> History:
    """How `now` differs from what its held-out workbooks were run under before."""
    deviations: list[str] = []
    notes: list[str] = []
    again: dict[str, list[str]] = {}
    for before in earlier.manifests:
        under: dict[str, list[str]] = {}
        for workbook in _heldout(now):
            known = _known(workbook, before)
            if known is not None:
                under.setdefault(_how(workbook, known, now, before), []).append(workbook.name)
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


def _known(workbook: WorkbookEntry, before: Manifest) -> WorkbookEntry | None:
    """What an earlier run had of it, by content: under another name a workbook, or a set of questions, is no other."""

    def in_common(other: WorkbookEntry) -> int:
        same_questions = workbook.questions_sha256 == other.questions_sha256
        return same_questions + (workbook.workbook_sha256 == other.workbook_sha256)

    best = max(before.matrix.workbooks, key=in_common, default=None)
    return best if best is not None and in_common(best) else None


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
    ways = [f"under {_and(others)}"] if others else []
    if workbook.workbook_sha256 != known.workbook_sha256:
        ways.insert(0, "with another workbook, so as another test set")
    elif workbook.questions_sha256 != known.questions_sha256:
        ways.insert(0, "with other questions, so as another test set")
    return ", and ".join(ways)


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

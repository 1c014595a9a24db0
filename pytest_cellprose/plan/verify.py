"""A stored run held against what is here: which inputs, code and commit are still those of its manifest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_cellprose.encodings import BUILTIN
from pytest_cellprose.encodings.base import Encoding
from pytest_cellprose.files import sha256_of
from pytest_cellprose.measure.inputs import sent_pairs, text_sha256
from pytest_cellprose.method.digests import measuring_sha256, method, package_sha256
from pytest_cellprose.record.record import Git
from pytest_cellprose.sets.discover import Discovery, Found, discover, question_files
from pytest_cellprose.sets.frozen import committed_splits
from pytest_cellprose.store.identity import (
    experiment_id,
    git_state,
    has_commit,
    repository,
    same_but_results,
    versions,
    with_encoded,
)
from pytest_cellprose.store.manifest import EncodedTexts, Manifest, Matrix
from pytest_cellprose.suites.base import Variant
from pytest_cellprose.suites.encode import EncodingFault
from pytest_cellprose.suites.spreadsheets import Spreadsheets
from pytest_cellprose.workbook.model import WorkbookError

UNUSABLE = "not usable"
"""In place of the digest of a workbook that is not the one its questions are about."""

Facts = Mapping[str, str | None]
"""Name -> digest or version; None: not here, or not on record."""


@dataclass(frozen=True)
class Compared:
    """One kind of thing that a manifest has on record."""

    what: str
    agree: int
    differ: Sequence[str] = ()
    """By name; of their content nothing is said."""
    missing: Sequence[str] = ()
    not_on_record: Sequence[str] = ()

    @property
    def agrees(self) -> bool:
        return not (self.differ or self.missing or self.not_on_record)


def verify(then: Manifest, out: Path, folders: Sequence[Path], encodings: Mapping[str, Encoding]) -> Iterator[Compared]:
    """Everything that a run's manifest has a digest of, against `folders`, `encodings` and this installation.

    `out` is where the run is stored, which git is not asked about.
    """
    now = _as_it_would_be(then, out, folders, encodings)
    books = [_books(manifest) for manifest in (then, now)]
    yield _compared("question files", *({name: digests[0] for name, digests in each.items()} for each in books))
    yield _compared("workbooks", *({name: digests[1] for name, digests in each.items()} for each in books))
    yield _compared("encoded texts", _texts(then), _texts(now))
    yield _compared("split files", then.split_sha256, now.split_sha256)
    yield _compared("method", _method(then), _method(now))
    yield _compared("code", _code(then), _code(now))
    yield _compared("versions", _versions(then), _versions(now))
    yield _compared("repository", _repository(then.git), _repository(now.git))
    yield _compared("digest of all inputs", {"": then.inputs_sha256}, {"": now.inputs_sha256})
    yield _compared("experiment id", {"": then.experiment}, {"": experiment_id(now)})


def _compared(what: str, then: Facts, now: Facts) -> Compared:
    """What is on record decides what is looked for; an empty digest is none."""
    named = {name: (then.get(name), now.get(name)) for name in (*then, *(name for name in now if name not in then))}
    return Compared(
        what,
        agree=sum(bool(old) and old == new for old, new in named.values()),
        differ=[name for name, (old, new) in named.items() if old and new and old != new],
        missing=[name for name, (old, new) in named.items() if old and not new],
        not_on_record=[name for name, (old, _) in named.items() if not old],
    )


def _books(manifest: Manifest) -> dict[str, tuple[str, str]]:
    return {book.name: (book.questions_sha256, book.workbook_sha256) for book in manifest.matrix.workbooks}


def _wanted(manifest: Manifest) -> list[tuple[str, str]]:
    """Workbook and encoding of each text that is or should be on record: of a development run those that it made, of
    any other all that it can send."""
    recorded = [(book, encoding) for book, texts in manifest.encoded.sha256.items() for encoding in texts]
    expected = [] if manifest.mode == "development" else sent_pairs(manifest)
    return list(dict.fromkeys([*recorded, *expected]))


def _texts(manifest: Manifest) -> Facts:
    found = {}
    for book, encoding in _wanted(manifest):
        digest = manifest.encoded.sha256.get(book, {}).get(encoding)
        none = "no text" if encoding in manifest.encoded.reasons.get(book, {}) else None
        found[f"{book} in {encoding}"] = digest or none
    return found


def _method(manifest: Manifest) -> Facts:
    if manifest.method is None:
        return dict.fromkeys(("protocol", "prompts", "scorer"))
    return manifest.method.model_dump()


def _code(manifest: Manifest) -> Facts:
    code = manifest.encoding_code
    return {"this package": manifest.package_sha256} | {name: code.get(name) for name in manifest.encoding_versions}


def _versions(manifest: Manifest) -> Facts:
    return {**manifest.versions, **{f"encoding {name}": text for name, text in manifest.encoding_versions.items()}}


def _repository(git: Git) -> Facts:
    if git.dirty is None:
        return {"commit": "no repository", "uncommitted changes": "no repository"}
    changes = git.diff_sha256 if git.dirty else "none"
    return {"commit": git.commit or "no commit", "uncommitted changes": changes}


def _as_it_would_be(then: Manifest, out: Path, folders: Sequence[Path], encodings: Mapping[str, Encoding]) -> Manifest:
    """The manifest that the same plan would have here; an empty digest for what is not here."""
    by_digest = bool(then.settings.get("split_by_digest"))
    top = repository(folders[0]) or folders[0]
    discovery = discover(folders, split_by_digest=by_digest, elsewhere=committed_splits(top))
    found = {each.name: each for each in discovery.found}
    suite = Spreadsheets(encodings, unlimited=BUILTIN)
    known = {variant.name: variant for variant in suite.variants() if variant.name in then.encoding_versions}
    now = then.model_copy(
        update={
            "matrix": _matrix(then.matrix, found, discovery, folders),
            "split_sha256": _splits(then, discovery),
            "method": method(),
            "package_sha256": package_sha256(),
            "measuring_sha256": measuring_sha256() if then.measuring_sha256 else "",
            "versions": versions(),
            "encoding_versions": {
                name: known[name].version if name in known else "" for name in then.encoding_versions
            },
            "encoding_code": {name: suite.code_sha256(variant) for name, variant in known.items()},
            "git": _git(then.git, out, folders),
        }
    )
    return with_encoded(now, _encoded(then, found, suite, known))


def _matrix(then: Matrix, found: Mapping[str, Found], discovery: Discovery, folders: Sequence[Path]) -> Matrix:
    files = {path.stem: path for folder in folders for path in question_files(folder.resolve())}
    unusable = {each.name: each for each in discovery.unusable}
    books = []
    for book in then.workbooks:
        side, workbook = book.set, ""
        if book.name in found:
            side, workbook = found[book.name].set, found[book.name].workbook_sha256
        elif book.name in unusable:
            path = unusable[book.name].workbook_path
            workbook = UNUSABLE if path is None else sha256_of(path)
        file = files.get(book.name)
        questions = "" if file is None else sha256_of(file)
        update = {"set": side, "workbook_sha256": workbook, "questions_sha256": questions}
        books.append(book.model_copy(update=update))
    return then.model_copy(update={"workbooks": books})


def _splits(then: Manifest, discovery: Discovery) -> dict[str, str]:
    """By the names on record, which are relative to where the run was made. One that is not on record is named too."""
    here = {path.as_posix(): digest for path, digest in discovery.splits.items()}
    splits = {}
    for name, digest in then.split_sha256.items():
        same = next((path for path, other in here.items() if other == digest), None)
        path = same or next((path for path in here if path.endswith(f"/{name.lstrip('/')}")), None)
        splits[name] = "" if path is None else here.pop(path)
    return splits | here


def _git(then: Git, out: Path, folders: Sequence[Path]) -> Git:
    """The repository that has the run's commit: that of the cells or, where these lie outside, of the working
    directory. A later commit counts as the same if only results came with it: a manifest is committed after its run."""
    places = [*folders, Path.cwd()]
    if then.commit is None:
        return git_state(places[0], out)
    place = next((place for place in places if has_commit(place, then.commit)), places[0])
    here = git_state(place, out)
    if here.commit != then.commit and same_but_results(place, out, then.commit):
        return here.model_copy(update={"commit": then.commit})
    return here


def _encoded(
    then: Manifest, found: Mapping[str, Found], suite: Spreadsheets, variants: Mapping[str, Variant]
) -> EncodedTexts:
    """The texts, made again and not taken from a cache."""
    wanted: dict[str, list[str]] = {}
    for book, encoding in _wanted(then):
        wanted.setdefault(book, []).append(encoding)
    texts = EncodedTexts()
    for book, names in wanted.items():
        digests = texts.sha256.setdefault(book, {})
        for name in names:
            digests[name] = None
            if name not in variants or book not in found:
                continue
            try:
                made = suite.handed_over(found[book].workbook_path, found[book].workbook_sha256, variants[name])
                digests[name] = None if made is None else text_sha256(made)
            except EncodingFault as fault:
                texts.reasons.setdefault(book, {})[name] = fault.told
            except WorkbookError:
                continue
    return texts

"""The frozen method as three digests: the protocol, the prompts, the scorer (protocol sections 5, 6 and 10).

Each is over files as they lie here, so that ``sha256sum`` finds the same. A changed comment counts as a change: what
is frozen is not touched.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pytest_cellprose.files import digest, sha256_of
from pytest_cellprose.record.record import Frozen

PACKAGE = Path(__file__).parent.parent

PROTOCOL = (PACKAGE / "PROTOCOL.md", PACKAGE.parent / "docs" / "PROTOCOL.md")
"""Where the protocol may lie: in an installed package, in a checkout."""
PROMPTS = PACKAGE / "questions" / "prompts.py"
SCORER = tuple(
    PACKAGE / file
    for file in (
        "questions/about.py",
        "questions/asked.py",
        "questions/cell_answers.py",
        "questions/cellset.py",
        "questions/kind.py",
        "questions/kinds.py",
        "questions/problem.py",
        "questions/schema.py",
        "questions/scoring.py",
        "questions/spreadsheetbench.py",
        "questions/values.py",
        "workbook/refs.py",
    )
)
"""The scorer and what of ours it scores with: kinds, truths as they are loaded, sets of cells,
addresses, dates."""


class Method(Frozen):
    """What must not change between a look at held-out results and a claim about them."""

    protocol: str | None
    """SHA-256 of ``PROTOCOL.md``; None if the installation has none."""
    prompts: str
    """SHA-256 of the module that holds every fixed part of a prompt, ``questions/prompts.py``."""
    scorer: str
    """SHA-256 over the names and digests of the `SCORER` files."""


def method() -> Method:
    """The method of this installation."""
    protocol = next((path for path in PROTOCOL if path.is_file()), None)
    return Method(
        protocol=None if protocol is None else sha256_of(protocol),
        prompts=sha256_of(PROMPTS),
        scorer=files_digest(PACKAGE, SCORER),
    )


def package_sha256() -> str:
    """SHA-256 over the package's own Python files: an edit in a checkout leaves the version as it was."""
    return files_digest(PACKAGE, PACKAGE.rglob("*.py"))


MEASURING = (
    "workbook",
    "encodings",
    "record",
    "questions",
    "models",
    "method",
    "providers",
    "sandbox",
    "suites",
    "measure",
)
"""The rooms whose code decides what a model is asked and what its answer is worth."""

NOT_IN_WORKERS = ("commands", "report", "stats")
"""The rooms whose code runs only where a run is planned, shown or checked."""


def measuring_sha256() -> str:
    """SHA-256 over the code that can change a measurement: two runs with the same measured in the same way."""
    return files_digest(PACKAGE, (path for room in MEASURING for path in (PACKAGE / room).rglob("*.py")))


def working_sha256() -> str:
    """SHA-256 over the code that runs in a worker: it must be the same on every machine of a run."""
    code = (path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] not in NOT_IN_WORKERS)
    return files_digest(PACKAGE, code)


def files_digest(root: Path, files: Iterable[Path]) -> str:
    """SHA-256 of the files' digests by name, as canonical JSON; names are relative to `root`, with slashes."""
    return digest({path.relative_to(root).as_posix(): sha256_of(path) for path in files})

from __future__ import annotations

import re
from unicodedata import category

import pytest
from markdown_it import MarkdownIt

from pytest_cellprose.record.record import ModelUsed, Outcome, Usage
from pytest_cellprose.report.analysis import analyse
from pytest_cellprose.report.markdown import render
from pytest_cellprose.store.manifest import PlannedOut
from tests.report.report_factories import (
    SIX,
    all_records,
    failure,
    fault,
    manifest,
    model_entry,
    record,
    refusal,
    workbook_entry,
)

BOOKS = [workbook_entry(f"sb_{i}", "heldout") for i in range(12)] + [workbook_entry("a", synthetic=True)]


def sections(page: str) -> list[str]:
    return re.findall(r"^## (.*)$", page, flags=re.MULTILINE)


def test_verdicts_and_limitations_come_first() -> None:
    plan = manifest(["haiku55", "gpt6luna", "haiku45"], SIX, BOOKS)
    page = render(analyse(plan, all_records(plan)))
    assert sections(page)[:3] == ["Verdicts", "Held-out: the numbers", "Development: the numbers"]
    verdicts = page.split("## Held-out: the numbers")[0]
    assert verdicts.index("### Held-out\n") < verdicts.index("### Development\n") < verdicts.index("### Limitations")
    assert "**Publishable**" in verdicts
    assert verdicts.count("| haiku55 | `markitdown` | primary |") == 2
    assert "1 of 13 workbooks are synthetic" in verdicts
    compared = verdicts.split("### Held-out\n")[1].split("### Held-out, haiku45")[0]
    assert "haiku45" not in compared


def test_an_incomplete_run_has_no_headline() -> None:
    plan = manifest(["haiku55"], SIX, BOOKS)
    page = render(analyse(plan, all_records(plan)[:-1]))
    verdicts = page.split("## Held-out: the numbers")[0]
    assert "no headline" in verdicts
    assert "**win**" not in verdicts
    assert "**Not publishable**" in verdicts
    assert "1 of 78 planned cells were not run" in page.split("## Deviations")[1]


def test_every_table_of_a_model_carries_its_note() -> None:
    plan = manifest(["haiku55", "reader"], SIX, ["a", "b", "c"])
    page = render(analyse(plan, all_records(plan)))
    _, _, section = page.partition("### reader (development)")
    section = section.split("\n## ")[0]
    tables = len(re.findall(r"^\| ---", section, flags=re.MULTILINE))
    assert tables >= 7
    assert section.count("*reader: a program; ceiling accuracy, nominal prices*") == tables


def test_tables_have_the_same_number_of_cells_in_every_row() -> None:
    plan = manifest(["haiku55", "reader"], SIX, ["a", "b|c"])
    records = all_records(plan)
    records[0] = failure(records[0].cell)
    records[1] = fault(records[1].cell)
    page = render(analyse(plan, records))
    for table in re.findall(r"(?:^\|.*\|\n?)+", page, flags=re.MULTILINE):
        widths = {len(re.split(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(widths) == 1


def test_failures_deviations_and_what_was_left_out_are_named() -> None:
    out = PlannedOut(model="haiku55", encoding="agent_xlsx", reason="not in this version")
    plan = manifest(
        ["haiku55"], SIX, ["a", "b"], matrix={"planned_out": [out]}, deviations=["dirty tree"], not_here=["c.json"]
    )
    records = all_records(plan)
    records[0] = failure(records[0].cell, "refused")
    records[1] = fault(records[1].cell)
    page = render(analyse(plan, records))
    assert "1 refused" in page
    assert f"- `{records[1].cell}`: timeout (no bytes for 60 s)" in page
    assert "- dirty tree" in page
    assert "haiku55 with `agent_xlsx` is not in the plan: not in this version" in page
    assert "Workbooks not here: c.json" in page


def test_how_to_reproduce_names_command_commit_and_versions() -> None:
    plan = manifest(invocation=["--cellprose-final", "-k", "a or b"])
    page = render(analyse(plan, all_records(plan)))
    end = page.split("## How to reproduce")[1]
    assert "`pytest --cellprose-final -k 'a or b'`" in end
    assert "0" * 40 in end
    assert "python 3.12.0" in end


def test_how_to_reproduce_names_the_experiment_and_the_frozen_method() -> None:
    frozen = {"protocol": "a" * 64, "prompts": "b" * 64, "scorer": "c" * 64}
    plan = manifest(experiment="e" * 64, method=frozen)
    end = render(analyse(plan, all_records(plan))).split("## How to reproduce")[1]
    assert f"Experiment: `{'e' * 64}`" in end
    for name, digest in frozen.items():
        assert f"SHA-256 of the {name}: `{digest}`" in end
    assert f"sets check --run {plan.run}" in end
    older = manifest()
    assert "SHA-256" not in render(analyse(older, all_records(older)))


def test_the_paired_section_never_speaks_of_wins_or_losses() -> None:
    plan = manifest(["haiku55"], SIX, [f"w{i}" for i in range(30)])
    page = render(analyse(plan, all_records(plan)))
    paired = page.split("**Paired comparisons**")[1].split("## ")[0].lower()
    assert "win" not in paired
    assert "loss" not in paired
    assert "not workbooks" in page.split("**Frontier**")[1].split("**Resources**")[0]


VERDICT = re.compile(r"\b(win|loss|no difference)\b", re.IGNORECASE)


@pytest.mark.parametrize("mode", ["live", "final"])
def test_a_page_of_an_incomplete_set_has_no_word_of_a_verdict(mode: str) -> None:
    plan = manifest(["haiku55", "reader"], SIX, [f"book{i}" for i in range(12)], mode=mode)
    left = [found for found in all_records(plan) if found.cell.workbook not in ("book3", "book7")]
    page = render(analyse(plan, left))
    assert not VERDICT.search(page)
    assert "over the 10 of 12 workbooks that every measured encoding completed: all but book3, book7." in page
    assert page.count("incomplete: 10 of 12 workbooks") == 8
    assert "better" not in page
    whole = render(analyse(plan, all_records(plan)))
    assert VERDICT.search(whole)  # the words that are looked for


def test_a_comparison_with_nothing_on_one_side_has_no_row() -> None:
    plan = manifest(["haiku55"], SIX, ["a", "b"], mode="live")
    only = [found for found in all_records(plan) if found.cell.encoding in ("cellprose_lean_gfm", "csv")]
    page = render(analyse(plan, only))
    compared = page.split("over each baseline**")[1].split("\n\n")[1]
    assert compared.count("\n") == 2
    assert "| `csv` | reference |" in compared


def test_a_run_without_a_comparison_says_so() -> None:
    plan = manifest(["haiku55", "sonnet55", "own"], ["csv"], ["a", "b"])
    page = render(analyse(plan, all_records(plan)))
    verdicts = page.split("## Verdicts")[1].split("### Limitations")[0]
    assert "Nothing was compared" in verdicts
    numbers = page.split("## Development: the numbers")[1].split("\n## ")[0]
    assert numbers.count("**Accuracy, tokens and cost, mean per call**") == 1
    for alias in ("haiku55", "sonnet55", "own"):
        assert f"| `{alias}` | " in numbers


def test_a_table_says_what_hangs_on_one_workbook() -> None:
    plan = manifest(["haiku55"], ["cellprose_lean_gfm", "csv"], [*"abcdefghijk", "ledger"])
    records = [
        record(cell, cost=200_000_000 if (cell.encoding, cell.workbook) == ("csv", "ledger") else 2_000_000)
        for cell in plan.matrix.cells()
    ]
    page = render(analyse(plan, records))
    table = page.split("**What hangs on one workbook**")[1].split("\n\n")[1].splitlines()
    assert table[2] == "| `csv` | 0.11× | 0.10× | 1.00× | `ledger` | 1.00× | 0 | 0 |"


def test_tokens_have_one_rounding_and_calls_and_accuracy_one_word() -> None:
    plan = manifest(["haiku55"], SIX, list("abc"))
    records = [
        found.model_copy(update={"usage": Usage(input=1000 + (2 if found.cell.workbook == "a" else 0), output=17)})
        for found in all_records(plan)
    ]
    page = render(analyse(plan, records))
    assert "1,000 |" in page
    assert "1,001" not in page  # the mean is 1,000.67
    for word in ("attempt", "mean score", "wall clock"):
        assert word not in page.lower()


def test_nominal_costs_are_called_nominal_wherever_they_stand() -> None:
    plan = manifest(["haiku55", "reader"], SIX, ["a", "b"])
    page = render(analyse(plan, all_records(plan)))
    reader = page.split("### reader (development)")[1].split("\n## ")[0]
    heads = [line for line in reader.splitlines() if line.startswith("| encoding")]
    costs = [head for line in heads for head in line.split(" | ") if "cost" in head]
    assert len(costs) == 6
    assert all(head.startswith("nominal") for head in costs)
    haiku = page.split("### haiku55 (development)")[1].split("### reader")[0]
    assert "nominal" not in haiku.lower()
    assert "the costs of reader are nominal and were not spent" in page.split("## Verdicts")[0]


@pytest.mark.parametrize(
    ("invocation", "command"), [([], "pytest"), (["-k", "a or b"], "pytest -k 'a or b'"), (["x.py"], "pytest x.py")]
)
def test_the_command_to_reproduce_a_run_is_whole(invocation: list[str], command: str) -> None:
    plan = manifest(invocation=invocation)
    assert f"- Run `{command}`.\n" in render(analyse(plan, []))


def test_settings_that_were_not_made_are_not_listed() -> None:
    settings = {
        "subset": None,
        "seed": None,
        "excluded_runs": [],
        "split_by_digest": False,
        "vendor_cap_usd": {},
        "approved_usd": "7.50",
        "price_check": {"table": "genai-prices 1", "compared": ["haiku55"], "unknown": [], "differ": {}},
    }
    end = render(analyse(manifest(settings=settings), [])).split("## How to reproduce")[1]
    assert "- approved usd: 7.50\n" in end
    assert "- price check: table genai-prices 1, compared haiku55\n" in end
    for word in ("None", "{}", "[]", "False", "subset", "vendor", "unknown"):
        assert word not in end


def test_what_was_not_let_start_has_a_table() -> None:
    plan = manifest(["haiku55"], ["csv"], ["a", "b", "c"], mode="live")
    records = [
        refusal(cell, by="the keeper", limit=80, used=82, unit="%", resets="2026-12-01T15:00Z")
        for cell in plan.matrix.cells()
    ]
    page = render(analyse(plan, records))
    row = "| the keeper | `window_full` | anthropic | 3 | 82 of 80 % | 2026-12-01T15:00Z | the window is full |"
    assert row in page.split("### Refused")[1]
    assert "0 faulted, 3 not let start" in page


HOSTILE = "\x1b]0;owned\x07\x1b[2J\r\n# head\n<script>alert(1)</script>|`x` **bold** [a](http://b) _it_ &lt; \u202e"


def test_text_from_outside_is_shown_and_does_nothing() -> None:
    books = [workbook_entry(f"{HOSTILE}{i}", uncertified={HOSTILE: [HOSTILE]}) for i in range(3)]
    out = PlannedOut(model=HOSTILE, encoding=HOSTILE, reason=HOSTILE)
    entry = model_entry("haiku55", model_id=HOSTILE, note=HOSTILE, vendor=HOSTILE)
    plan = manifest(
        [entry],
        SIX,
        books,
        mode="live",
        matrix={"planned_out": [out]},
        deviations=[HOSTILE],
        not_here=[HOSTILE],
        invocation=[HOSTILE],
        settings={"resumed_from": HOSTILE},
        versions={HOSTILE: HOSTILE},
        encoding_versions={HOSTILE: HOSTILE},
    )
    records = [
        found.model_copy(update={"model": ModelUsed(requested=HOSTILE, returned=HOSTILE, settings={HOSTILE: HOSTILE})})
        for found in all_records(plan)
    ]
    outcome = Outcome(status="fault", kind=HOSTILE, detail=HOSTILE)
    records[0] = record(records[0].cell, outcome=outcome)
    records[1] = refusal(records[1].cell, by=HOSTILE, limit=HOSTILE, used=HOSTILE, unit=HOSTILE, resets=HOSTILE)
    records[2] = failure(records[2].cell, kind=HOSTILE)
    page = render(analyse(plan, records))
    assert not [sign for sign in page if category(sign) in ("Cc", "Cf") and sign != "\n"]
    rendered = MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(page)
    for tag in ("<script", "<a ", "<em>x", "<strong>bold", "<code>x</code>", "<h1>head"):
        assert tag not in rendered
    assert rendered.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 15
    assert rendered.count("<h1>") == 1
    for table in re.findall(r"<table>.*?</table>", rendered, flags=re.DOTALL):
        rows = [len(re.findall(r"<t[hd]", line)) for line in table.split("<tr>")[1:]]
        assert len(set(rows)) == 1

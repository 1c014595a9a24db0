from __future__ import annotations

import re

from report_factories import SIX, all_records, failure, fault, manifest, workbook_entry

from pytest_cellprose.report.analysis import analyse
from pytest_cellprose.report.markdown import render
from pytest_cellprose.run.manifest import PlannedOut

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
    plan = manifest(invocation=["pytest", "--cellprose-final", "-k", "a or b"])
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

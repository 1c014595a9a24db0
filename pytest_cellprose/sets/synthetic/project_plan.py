"""A project plan: phases and tasks with dates from predecessors, working days, owners, rates and costs."""

from __future__ import annotations

from datetime import date

from pytest_cellprose.sets.synthetic.ask import Questions
from pytest_cellprose.sets.synthetic.book import Book
from pytest_cellprose.sets.synthetic.functions import (
    countif,
    if_,
    max_,
    min_,
    networkdays,
    sum_,
    sumif,
    vlookup,
    workday,
)

PHASES: tuple[tuple[str, tuple[tuple[str, str, int, float, str], ...]], ...] = (
    ("Analysis", (
        ("Interview departments", "Mira", 8, 1, ""), ("Map current processes", "Jonas", 6, 1, "1.1"),
        ("Write requirements", "Mira", 10, 1, "1.2"), ("Requirements signed off", "Sanne", 2, 1, "1.3"),
    )),
    ("Selection", (
        ("Long list of vendors", "Jonas", 5, 1, "1.3"), ("Request for proposal", "Sanne", 9, 1, "2.1"),
        ("Vendor demos", "Mira", 7, 0.8, "2.2"), ("Contract negotiation", "Sanne", 12, 0.5, "2.3"),
    )),
    ("Build", (
        ("Set up environments", "Theo", 6, 0.5, "2.4"), ("Configure purchasing", "Theo", 15, 0.2, "3.1"),
        ("Configure warehouse", "Ada", 18, 0.1, "3.1"), ("Interfaces to payroll", "Ada", 11, 0, "3.2"),
        ("Data migration, trial", "Theo", 9, 0, "3.3"),
    )),
    ("Test", (
        ("Write test cases", "Jonas", 8, 0.25, "3.1"), ("System test", "Ada", 12, 0, "3.5"),
        ("User acceptance test", "Mira", 10, 0, "4.2"), ("Fix findings", "Theo", 8, 0, "4.3"),
    )),
    ("Roll-out", (
        ("Training of key users", "Mira", 6, 0, "4.3"), ("Data migration, final", "Theo", 3, 0, "4.4"),
        ("Go live", "Sanne", 1, 0, "5.2"), ("Hypercare", "Ada", 15, 0, "5.3"),
    )),
)  # fmt: skip
RATES = (("Mira", "Analyst", 640), ("Jonas", "Analyst", 590), ("Sanne", "Lead", 820), ("Theo", "Engineer", 710),
         ("Ada", "Engineer", 735))  # fmt: skip


def build() -> Questions:
    book = Book("ERP project plan")
    plan = book.sheet("Plan", overrides={"I13": 7500, "I19": 6100})
    team = book.sheet("Team")

    team.put_row("A1", ["Person", "Role", "Day rate", "Planned days", "Planned cost", "Tasks"], "head")
    for r, person in enumerate(RATES, 2):
        team.put_row(f"A{r}", person)
    rates = book.name("Rates", team, "$A$2:$C$6")

    plan.put("A1", "ERP introduction, plan of 2026-02-02", "title")
    plan.put("F1", "Project start")
    plan.put("G1", date(2026, 2, 9), "date")
    plan.put("I1", "Status on")
    plan.put("J1", date(2026, 6, 15), "date")
    heads = ["No", "Task", "Owner", "After", "Days", "Start", "End", "Done", "Cost", "Earned value", "Status"]
    plan.put_row("A3", heads, "head")
    today = book.named_cell("StatusDate", plan, "$J$1")
    where: dict[str, int] = {}
    phases: list[int] = []
    r = 4
    for p, (phase, tasks) in enumerate(PHASES, 1):
        header = r
        phases.append(header)
        for t, (task, owner, days, done, after) in enumerate(tasks, 1):
            r += 1
            where[f"{p}.{t}"] = r
            plan.put_row(f"A{r}", [f"{p}.{t}", task, owner, after or None, days])
            start = workday(plan[f"G{where[after]}"], 1) if after else plan["$G$1"]
            plan.put(f"F{r}", start, "date")
            plan.put(f"G{r}", workday(plan[f"F{r}"], plan[f"E{r}"] - 1), "date")
            plan.put(f"H{r}", done, "percent")
            plan.put(f"I{r}", plan[f"E{r}"] * vlookup(plan[f"C{r}"], rates, 3), "whole")
            plan.put(f"J{r}", plan[f"H{r}"] * plan[f"I{r}"], "whole")
            late = if_(plan[f"G{r}"] < today, "late", if_(plan[f"F{r}"] <= today, "running", "open"))
            plan.put(f"K{r}", if_(plan[f"H{r}"] >= 1, "done", late))
        first, last = header + 1, r
        plan.put_row(f"A{header}", [str(p), f"Phase {phase}"], "head")
        plan.put(f"E{header}", networkdays(min_(plan.area(f"F{first}:F{last}")), max_(plan.area(f"G{first}:G{last}"))))
        plan.put(f"F{header}", min_(plan.area(f"F{first}:F{last}")), "date")
        plan.put(f"G{header}", max_(plan.area(f"G{first}:G{last}")), "date")
        plan.put(f"I{header}", sum_(plan.area(f"I{first}:I{last}")), "total")
        plan.put(f"J{header}", sum_(plan.area(f"J{first}:J{last}")), "total")
        plan.put(f"H{header}", plan[f"J{header}"] / plan[f"I{header}"], "percent")
        r += 1
    total = r + 1
    plan.put(f"B{total}", "Whole project")
    for c in "IJ":
        amount = plan[f"{c}{phases[0]}"]
        for header in phases[1:]:
            amount = amount + plan[f"{c}{header}"]
        plan.put(f"{c}{total}", amount, "total")
    plan.put(f"G{total}", max_(plan.area(f"G4:G{r - 1}")), "date")
    plan.put(f"H{total}", plan[f"J{total}"] / plan[f"I{total}"], "percent")
    plan.comments["I13"] = "Fixed price agreed with the vendor"
    plan.widths = {"B": 26, "F": 12, "G": 12, "J": 13}

    for n in range(2, 7):
        owners = plan.area(f"$C$4:$C${r - 1}")
        team.put(f"D{n}", sumif(owners, team[f"$A{n}"], plan.area(f"E$4:E${r - 1}")))
        team.put(f"E{n}", sumif(owners, team[f"$A{n}"], plan.area(f"$I$4:$I${r - 1}")), "whole")
        team.put(f"F{n}", countif(owners, team[f"$A{n}"]))
    team.put("A7", "Team")
    for c in "DEF":
        team.put(f"{c}7", sum_(team.area(f"{c}2:{c}6")), "total")
    return ask(book)


def ask(book: Book) -> Questions:
    q = Questions(book)
    plan, team = book.sheets
    q.value(plan, "G12", "On which date does the task 'Vendor demos' end?", kind="date")
    q.value(plan, "F27", "When does 'Data migration, final' start?", kind="date")
    q.value(plan, "I16", "What does the task 'Configure purchasing' cost?")
    q.value(plan, "K13", "What is the status of 'Contract negotiation'?")
    q.value(plan, "I31", "What does the whole project cost?")
    q.value(team, "E5", "What is Theo's planned cost?")
    q.value(plan, "C26", "Who owns the task 'Training of key users'?")
    q.address(
        plan,
        "H15",
        "Which cell says how much of 'Set up environments' is done?",
        row=["Set up environments"],
        column=["Done"],
    )
    q.address(plan, "G29", "Which cell holds the end date of the hypercare?", row=["Hypercare"], column=["End"])
    q.address(team, "C4", "Which cell holds Sanne's day rate?", row=["Sanne"], column=["Day rate"])
    q.trace(plan, "F18", "Which cells does the start date in F18 refer to directly?")
    q.trace(plan, "G6", "Which cells does the end date in G6 depend on? List all, direct and indirect.", "all")
    q.trace(plan, "I31", "Which cells does the cost of the whole project (I31) refer to directly?")
    q.impact(plan, "G26", "Which cells refer directly to the end date in G26?")
    q.impact(
        plan,
        "E29",
        "If the days of the hypercare (E29) change, which cells change? List all, direct and indirect.",
        "all",
    )
    q.hardcode(plan, "I5:I29", "Which costs in I5:I29 are typed numbers where the tasks around have a formula?")
    return q

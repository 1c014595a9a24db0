"""A department's monthly budget: assumptions on one worksheet, twelve months on another, actuals to compare."""

from __future__ import annotations

from random import Random

from pytest_cellprose.sets.synthetic.ask import Questions
from pytest_cellprose.sets.synthetic.book import Book
from pytest_cellprose.sets.synthetic.functions import average, if_, round_, sum_
from pytest_cellprose.workbook.refs import column_letters

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def build(seed: int = 1) -> Questions:
    random = Random(seed)
    book = Book("Department budget 2026")
    inputs = book.sheet("Assumptions")
    plan = book.sheet("Budget", overrides={"G8": 2750, "J7": 21400, "K7": 21400})
    review = book.sheet("Review")

    inputs.put("A1", "Customer support, budget 2026", "title")
    inputs.put_row("A3", ["Assumption", "Value", "Unit"], "head")
    rows: list[tuple[str, float, str, str]] = [
        ("Opening headcount", 18, "people", "whole"),
        ("Hires per quarter", 2, "people", "whole"),
        ("Average yearly salary", 48600, "EUR", "whole"),
        ("Pay raise from April", 0.035, "", "percent"),
        ("Social charges", 0.215, "", "percent"),
        ("Software per head", 94.5, "EUR a month", "money"),
        ("Office rent in January", 20500, "EUR a month", "whole"),
        ("Rent indexation from July", 0.02, "", "percent"),
        ("Travel per head", 125, "EUR a month", "whole"),
        ("Training per hire", 1800, "EUR", "whole"),
    ]
    for row, (label, number, unit, style) in enumerate(rows, 4):
        inputs.put(f"A{row}", label)
        inputs.put(f"B{row}", number, style)
        if unit:
            inputs.put(f"C{row}", unit)
    inputs.widths = {"A": 28}
    inputs.comments["B7"] = "Agreed with the works council in November"
    charges = book.named_cell("SocialCharges", inputs, "$B$8")

    plan.put("A1", "Monthly budget (EUR)", "title")
    plan.put_row("A3", ["Line", *MONTHS, "FY2026"], "head")
    labels = ["Headcount", "Salaries", "Social cost", "Rent", "Travel", "Software", "Training"]
    plan.put_column("A4", [*labels, "Total costs", "Share of year"])
    plan.widths = {"A": 16}
    for n in range(12):
        c, before = column_letters(n + 2), column_letters(n + 1)
        if n == 0:
            plan.put("B4", inputs["$B$4"], "whole")
        elif n % 3 == 0:
            plan.put(f"{c}4", plan[f"{before}4"] + inputs["$B$5"], "whole")
        else:
            plan.put(f"{c}4", plan[f"{before}4"], "whole")
        salary = plan[f"{c}4"] * inputs["$B$6"] / 12
        plan.put(f"{c}5", salary * (1 + inputs["$B$7"]) if n >= 3 else salary, "money")
        plan.put(f"{c}6", plan[f"{c}5"] * charges, "money")
        plan.put(f"{c}7", inputs["$B$10"] * (1 + inputs["$B$11"]) if n >= 6 else inputs["$B$10"], "money")
        plan.put(f"{c}8", plan[f"{c}4"] * inputs["$B$12"], "money")
        plan.put(f"{c}9", plan[f"{c}4"] * inputs["$B$9"], "money")
        hires = plan[f"{c}4"] - plan[f"{before}4"]
        plan.put(f"{c}10", hires * inputs["$B$13"] if n else 0, "money")
        plan.put(f"{c}11", sum_(plan.area(f"{c}5:{c}10")), "total")
    plan.put("N4", average(plan.area("B4:M4")), "money")
    for row in range(5, 12):
        plan.put(f"N{row}", sum_(plan.area(f"B{row}:M{row}")), "total")
    for n in range(12):
        c = column_letters(n + 2)
        plan.put(f"{c}12", plan[f"{c}11"] / plan["$N$11"], "percent")

    review.put("A1", "First half: budget against actual (EUR)", "title")
    review.put_row("A3", ["Cost line", "Budget H1", "Actual H1", "Variance", "Variance %", "Status"], "head")
    for row, (label, source) in enumerate(zip(labels[1:], range(5, 11), strict=True), 4):
        review.put(f"A{row}", label)
        planned = review.put(f"B{row}", sum_(plan.area(f"B{source}:G{source}")), "money")
        assert isinstance(planned.value, int | float)
        review.put(f"C{row}", int(planned.value * random.randint(93, 109) / 100), "money")
        review.put(f"D{row}", review[f"C{row}"] - review[f"B{row}"], "money")
        review.put(f"E{row}", review[f"D{row}"] / review[f"B{row}"], "percent")
        late = if_(review[f"D{row}"] <= 0, "under", "slightly over")
        review.put(f"F{row}", if_(review[f"E{row}"] > 0.05, "over budget", late))
    review.put("A10", "All lines")
    for c in "BCD":
        review.put(f"{c}10", sum_(review.area(f"{c}4:{c}9")), "total")
    review.put("E10", review["D10"] / review["B10"], "percent")
    review.put("A12", "Forecast for the full year")
    review.put("B12", round_(review["C10"] + sum_(plan.area("H11:M11")), 0), "total")
    review.widths = {"A": 26}
    return ask(book)


def ask(book: Book) -> Questions:
    q = Questions(book)
    inputs, plan, review = book.sheets
    q.value(plan, "F11", "What are the total costs in May, in EUR?")
    q.value(plan, "N5", "What do salaries come to for FY2026 as a whole?")
    q.value(review, "C7", "What was actually spent on Travel in the first half?")
    q.value(inputs, "B12", "How much is assumed for travel per head and month?")
    q.value(review, "B12", "What is the forecast for the full year?")
    q.address(plan, "I9", "Which cell holds the software cost for August?", row=["Software"], column=["Aug"])
    q.address(
        inputs, "B8", "In which cell is the rate for social charges entered?", row=["Social charges"], column=["Value"]
    )
    q.trace(plan, "F6", "Which cells does the formula for May's social cost (F6) refer to directly?")
    q.trace(review, "B12", "Which cells does the formula of the full-year forecast in B12 refer to directly?")
    q.trace(
        plan, "C5", "List all cells that February's salaries (C5) depend on, directly or through other formulas.", "all"
    )
    q.impact(inputs, "B9", "If the software price per head in B9 changes, which cells' formulas use it directly?")
    q.impact(
        plan,
        "M10",
        "Which cells change if December's training (M10) is changed? List all of them, direct or indirect.",
        "all",
    )
    q.hardcode(
        plan,
        "B7:M7",
        "Rent is calculated every month. Which cells of B7:M7 hold a typed number instead of the formula?",
    )
    q.hardcode(
        plan, "B8:M9", "In the rows Travel and Software (B8:M9), where was a number typed over the row's formula?"
    )
    return q

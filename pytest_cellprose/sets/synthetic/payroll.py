"""A month's payroll: a table of employees with structured references, a hidden worksheet of rates, a summary."""

from __future__ import annotations

from datetime import date, timedelta
from functools import partial
from random import Random

from pytest_cellprose.sets.synthetic.ask import Questions
from pytest_cellprose.sets.synthetic.book import Book
from pytest_cellprose.sets.synthetic.functions import (
    averageif,
    countif,
    if_,
    max_,
    round_,
    sum_,
    sumif,
    vlookup,
)

EMPLOYEES = (
    "Adeyemi, Tola", "Bianchi, Marco", "Carver, June", "Dvorak, Petr", "Eriksen, Liv", "Fontaine, Luc", "Grau, Heike",
    "Hassan, Omar", "Ito, Kenji", "Jansen, Femke", "Kowalska, Ewa", "Lindqvist, Per", "Moreau, Alice", "Nowak, Jan",
    "Okafor, Chidi", "Petrov, Ilya", "Quinn, Maeve", "Rossi, Giulia", "Silva, Rui", "Takacs, Andras", "Urban, Eva",
    "Vega, Lucia",
)  # fmt: skip
DEPARTMENTS = ("Assembly", "Logistics", "Office", "Sales")


def build(seed: int = 3) -> Questions:
    random = Random(seed)
    book = Book("Payroll September 2026")
    summary = book.sheet("Summary")
    staff = book.sheet("Employees", overrides={"J12": 412.5, "L19": 655})
    rates = book.sheet("Rates", state="hidden")

    rates.put_row("A1", ["Grade", "Hourly rate", "Overtime factor"], "head")
    for r, (grade, hourly, factor) in enumerate(
        [("A", 18.4, 1.25), ("B", 22.75, 1.25), ("C", 29.1, 1.4), ("D", 38.6, 1)], 2
    ):
        rates.put_row(f"A{r}", [grade, hourly, factor])
    rates.put("A8", "Tax-free amount")
    rates.put("B8", 1230)
    rates.put("A9", "Tax rate")
    rates.put("B9", 0.242, "percent")
    rates.put("A10", "Insurance rate")
    rates.put("B10", 0.0935, "percent")
    table = book.name("RateTable", rates, "$A$2:$C$5")
    tax_rate = book.named_cell("TaxRate", rates, "$B$9")
    tax_free = book.named_cell("TaxFree", rates, "$B$8")

    staff.put("A1", "Payroll, September 2026", "title")
    heads = ["No", "Name", "Department", "Joined", "Grade", "Account", "Hours", "Overtime"]
    staff.put_row("A3", [*heads, "Base pay", "Overtime pay", "Gross", "Tax", "Insurance", "Net"], "head")
    last = 3 + len(EMPLOYEES)
    for r, name in enumerate(EMPLOYEES, 4):
        joined = date(2009, 1, 12) + timedelta(days=random.randrange(6000))
        account = f"00{random.randrange(10**7, 10**8)}"
        hours, overtime = random.choice((120, 152, 160, 168)), random.choice((0, 0, 4, 7.5, 12, 16))
        contents: list[int | float | str | date] = [
            1000 + r,
            name,
            random.choice(DEPARTMENTS),
            joined,
            random.choice("ABBCCD"),
            account,
            hours,
            overtime,
        ]
        for c, content in zip("ABCDEFGH", contents, strict=True):
            staff.put(f"{c}{r}", content, "date" if c == "D" else "")
    staff.table("Staff", f"A3:N{last}")
    for r in range(4, last + 1):
        this = partial(staff.this_row, "Staff", row=r)
        wage = vlookup(this("Grade"), table, 2)
        staff.put(f"I{r}", round_(this("Hours") * wage, 2), "money")
        premium = vlookup(this("Grade"), table, 3)
        staff.put(f"J{r}", round_(this("Overtime") * wage * premium, 2), "money")
        staff.put(f"K{r}", this("Base pay") + this("Overtime pay"), "money")
        staff.put(f"L{r}", round_(max_(0, staff[f"K{r}"] - tax_free) * tax_rate, 2), "money")
        staff.put(f"M{r}", round_(staff[f"K{r}"] * rates["$B$10"], 2), "money")
        staff.put(f"N{r}", staff[f"K{r}"] - staff[f"L{r}"] - staff[f"M{r}"], "money")
    staff.comments["J12"] = "Agreed by phone, see HR"
    staff.hidden_columns = ["F"]
    staff.widths = {"B": 18, "C": 12, "D": 12}

    summary.put("A1", "Payroll summary", "title")
    summary.put_row("A3", ["Department", "People", "Gross pay", "Net pay", "Average gross", "Share of gross"], "head")
    department, gross, net = (staff.table_column("Staff", head) for head in ("Department", "Gross", "Net"))
    for r, name in enumerate((*DEPARTMENTS, "Canteen"), 4):
        summary.put(f"A{r}", name)
        summary.put(f"B{r}", countif(department, summary[f"A{r}"]))
        summary.put(f"C{r}", sumif(department, summary[f"A{r}"], gross), "money")
        summary.put(f"D{r}", sumif(department, summary[f"A{r}"], net), "money")
        summary.put(f"E{r}", averageif(department, summary[f"A{r}"], gross), "money")
    summary.put("A9", "Company")
    for c in "BCD":
        summary.put(f"{c}9", sum_(summary.area(f"{c}4:{c}8")), "total")
    summary.put("E9", summary["C9"] / summary["B9"], "money")
    for r in range(4, 10):
        summary.put(f"F{r}", summary[f"C{r}"] / summary["$C$9"], "percent")
    summary.put("A11", "Employer insurance")
    summary.put("B11", sum_(staff.table_column("Staff", "Insurance")) * 1.1, "money")
    summary.put("A12", "Cash needed")
    summary.put("B12", summary["D9"] + summary["B11"] + sum_(staff.table_column("Staff", "Tax")), "total")
    summary.put("A13", "Cash limit")
    summary.put("B13", 75000, "money")
    summary.put("A14", "Within limit?")
    summary.put("B14", if_(summary["B12"] <= summary["B13"], "yes", "no"))
    summary.widths = {"A": 20}
    return ask(book)


def ask(book: Book) -> Questions:
    q = Questions(book)
    summary, staff, rates = book.sheets
    q.value(staff, "K10", "What is the gross pay of Grau, Heike?")
    q.value(staff, "D18", "When did Okafor, Chidi join?", kind="date")
    q.value(summary, "D5", "What is the net pay of the Logistics department?")
    q.value(summary, "B12", "How much cash is needed for this payroll?")
    q.value(staff, "F7", "What is the account number of Dvorak, Petr?")
    q.value(summary, "E8", "What does the cell for the Canteen's average gross show?")
    q.value(rates, "B8", "What is the tax-free amount?")
    q.address(staff, "N25", "Which cell holds the net pay of Vega, Lucia?", row=["Vega, Lucia"], column=["Net"])
    q.address(
        summary,
        "F6",
        "Which cell has the Office department's share of gross pay?",
        row=["Office"],
        column=["Share of gross"],
    )
    q.address(rates, "B4", "Which cell holds the hourly rate of grade C?", row=["C"], column=["Hourly rate"])
    q.trace(staff, "L9", "Which cells does the formula for tax in L9 refer to directly, on any worksheet?")
    q.trace(summary, "C7", "Which cells does the gross pay of Sales (C7) refer to directly?")
    q.impact(rates, "B9", "The tax rate (B9) is about to change: which cells' formulas use it directly?")
    q.impact(
        summary, "D7", "Which cells depend on the net pay of Sales in D7, directly or indirectly? List all.", "all"
    )
    q.hardcode(
        staff,
        "I4:N25",
        "In the calculated columns I4:N25, which cells hold a typed number instead of the column's formula?",
    )
    q.hardcode(staff, "J4:J25", "Which overtime pay amounts in J4:J25 are typed in rather than calculated?")
    q.hardcode(
        staff,
        "M4:N25",
        "Which cells of Insurance and Net (M4:N25) are typed over the formula? Answer with an empty list if none are.",
    )
    return q

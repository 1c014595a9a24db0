"""Hard: a five-year subscription forecast by month, with numbers typed over formulas deep inside the runs."""

from __future__ import annotations

from random import Random

from pytest_cellprose.sets.synthetic.ask import Questions
from pytest_cellprose.sets.synthetic.book import Book
from pytest_cellprose.sets.synthetic.functions import if_, max_, round_, sum_
from pytest_cellprose.workbook.refs import column_letters

OVERRIDES = {
    "S5": 152, "AI5": 260, "AJ5": 260, "AB6": 41, "L9": 71250, "AP11": 9900, "AQ11": 9900, "BB13": 36000, "H13": 15200,
    "AC16": 4821.7, "W18": -2600, "AX19": 31000,
}  # fmt: skip


def build(seed: int = 6) -> Questions:
    random = Random(seed)
    book = Book("Subscription forecast")
    drivers = book.sheet("Drivers")
    model = book.sheet("Forecast", overrides=OVERRIDES)
    years = book.sheet("By year")

    drivers.put("A1", "Drivers", "title")
    drivers.put_row("A3", ["Driver", *range(2026, 2031)], "head")
    lines: list[tuple[str, list[float], str]] = [
        ("New customers per month", [random.randrange(100, 160, 5) + 20 * n for n in range(5)], "whole"),
        ("Monthly churn", [0.022, 0.021, 0.0195, 0.019, 0.018], "percent"),
        ("Price per month", [49, 51.5, 54, 55.5, 58], "money"),
        ("Hosting per customer", [6.2, 6.05, 5.9, 5.8, 5.75], "money"),
        ("Support staff cost", [14500, 15800, 17250, 19000, 20600], "whole"),
        ("Marketing per new customer", [61, 64, 66, 69, 72], "money"),
    ]
    for r, (label, numbers, style) in enumerate(lines, 4):
        drivers.put(f"A{r}", label)
        drivers.put_row(f"B{r}", numbers, style)
    drivers.put("A11", "Opening customers")
    drivers.put("B11", 1180, "whole")
    drivers.put("A12", "Tax rate")
    drivers.put("B12", 0.24, "percent")
    drivers.put("A13", "Opening cash")
    drivers.put("B13", 85000, "whole")
    tax = book.named_cell("TaxRate", drivers, "$B$12")
    drivers.widths = {"A": 28}

    model.put("A1", "Monthly forecast, 2026 to 2030 (EUR)", "title")
    labels = ["New customers", "Lost customers", "Customers", "", "Revenue", "Hosting cost", "Support cost"]
    more = ["Marketing cost", "Total cost", "", "Operating profit", "Tax", "", "Net cash flow", "Closing cash"]
    model.put("A3", "Year")
    model.put("A4", "Month")
    for r, label in enumerate([*labels, *more], 5):
        if label:
            model.put(f"A{r}", label)
    for n in range(60):
        c, before = column_letters(n + 2), column_letters(n + 1)
        d = column_letters(n // 12 + 2)
        model.put(f"{c}3", 2026 + n // 12)
        model.put(f"{c}4", n + 1)
        opening = drivers["$B$11"] if n == 0 else model[f"{before}7"]
        model.put(f"{c}5", drivers[f"${d}$4"], "whole")
        model.put(f"{c}6", round_(opening * drivers[f"${d}$5"], 0), "whole")
        model.put(f"{c}7", opening + model[f"{c}5"] - model[f"{c}6"], "whole")
        model.put(f"{c}9", model[f"{c}7"] * drivers[f"${d}$6"], "money")
        model.put(f"{c}10", model[f"{c}7"] * drivers[f"${d}$7"], "money")
        model.put(f"{c}11", drivers[f"${d}$8"], "money")
        model.put(f"{c}12", model[f"{c}5"] * drivers[f"${d}$9"], "money")
        model.put(f"{c}13", sum_(model.area(f"{c}10:{c}12")), "total")
        model.put(f"{c}15", model[f"{c}9"] - model[f"{c}13"], "money")
        model.put(f"{c}16", max_(0, model[f"{c}15"]) * tax, "money")
        model.put(f"{c}18", model[f"{c}15"] - model[f"{c}16"], "money")
        cash = drivers["$B$13"] if n == 0 else model[f"{before}19"]
        model.put(f"{c}19", cash + model[f"{c}18"], "total")
    model.widths = {"A": 18}

    years.put("A1", "Forecast by year (EUR)", "title")
    years.put_row("A3", ["Result", *(f"FY{year}" for year in range(2026, 2031)), "Five years"], "head")
    for r, (label, source) in enumerate([("Revenue", 9), ("Total cost", 13), ("Tax", 16), ("Net cash flow", 18)], 4):
        years.put(f"A{r}", label)
        for n in range(5):
            first, final = column_letters(2 + 12 * n), column_letters(13 + 12 * n)
            years.put(f"{column_letters(n + 2)}{r}", sum_(model.area(f"{first}{source}:{final}{source}")), "money")
        years.put(f"G{r}", sum_(years.area(f"B{r}:F{r}")), "total")
    years.put("A8", "Cost share")
    years.put("A9", "Customers at year end")
    years.put("A10", "Cash warning")
    for n in range(5):
        c, final = column_letters(n + 2), column_letters(13 + 12 * n)
        years.put(f"{c}8", years[f"{c}5"] / years[f"{c}4"], "percent")
        years.put(f"{c}9", model[f"{final}7"], "whole")
        years.put(f"{c}10", if_(model[f"{final}19"] < 100000, "low", "fine"))
    years.widths = {"A": 24}
    return ask(book)


def ask(book: Book) -> Questions:
    q = Questions(book)
    drivers, model, years = book.sheets
    q.value(years, "D4", "What is the revenue of FY2028?")
    q.value(years, "G7", "What is the net cash flow over all five years?")
    q.value(model, "AK7", "How many customers are there in month 36?")
    q.value(model, "R19", "What is the closing cash of month 17?")
    q.value(drivers, "E8", "What is the support staff cost per month in 2029?")
    q.value(years, "F9", "How many customers are there at the year end of FY2030?")
    q.value(model, "AC16", "What number is in cell AC16?")
    q.address(years, "C6", "Which cell holds the tax for FY2027?", row=["Tax"], column=["FY2027"])
    q.address(
        drivers,
        "F9",
        "Which cell has the marketing per new customer for 2030?",
        row=["Marketing per new customer"],
        column=["2030"],
    )
    q.trace(model, "AA13", "Which cells does the formula in AA13 (total cost of month 26) refer to directly?")
    q.trace(
        model,
        "C6",
        "Which cells does the number of lost customers in C6 depend on? List all, direct and indirect.",
        "all",
    )
    q.trace(years, "E5", "Which cells does the total cost of FY2029 (E5) refer to directly?")
    q.impact(drivers, "D7", "Which cells' formulas refer directly to the hosting cost per customer of 2028 (D7)?")
    q.impact(
        model,
        "BI12",
        "Which cells change if the marketing cost of month 60 (BI12) changes? List all, direct and indirect.",
        "all",
    )
    q.hardcode(
        model,
        "B5:BI6",
        "Customer movements B5:BI6 should be formulas throughout. Which cells hold typed numbers instead?",
    )
    q.hardcode(model, "B9:BI13", "Which cells of B9:BI13 (revenue and costs) are numbers typed over the row's formula?")
    q.hardcode(model, "B15:BI19", "Where in B15:BI19 was a number typed over the formula?")
    return q

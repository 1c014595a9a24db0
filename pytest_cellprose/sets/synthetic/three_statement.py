"""Income statement, balance sheet and cash flow of a small maker, two years of actuals and five forecast."""

from __future__ import annotations

from pytest_cellprose.sets.synthetic.ask import Questions
from pytest_cellprose.sets.synthetic.book import Book, Sheet
from pytest_cellprose.sets.synthetic.functions import abs_, if_, max_, round_, sum_

YEARS = ("FY2024", "FY2025", "FY2026", "FY2027", "FY2028", "FY2029", "FY2030")
COLUMNS = "BCDEFGH"
FORECAST = "DEFGH"


def build() -> Questions:
    book = Book("Three-statement model")
    inputs = book.sheet("Inputs")
    income = book.sheet("Income", overrides={"F8": 2150})
    sheet = book.sheet("Balance", overrides={"E5": 2400})
    cash = book.sheet("Cash flow", overrides={"F8": -1900})
    _inputs(inputs)
    tax = book.named_cell("Tax_rate", inputs, "$B$13")

    labels = ["Revenue", "Materials", "Gross profit", "Staff", "Other costs", "EBITDA", "Depreciation", "EBIT"]
    income.put("A1", "Income statement (EUR thousand)", "title")
    income.put_row("A2", ["Line", *YEARS], "head")
    income.put_column("A3", [*labels[:4], None, *labels[4:], "Interest", "Profit before tax", "Tax", "Net income"])
    sheet.put("A1", "Balance sheet (EUR thousand)", "title")
    sheet.put_row("A2", ["Line", *YEARS], "head")
    sheet.put_column(
        "A3", ["Cash", "Receivables", "Inventory", "Fixed assets", "Total assets", None, "Payables", "Debt"]
    )
    sheet.put_column("A11", ["Share capital", "Retained earnings", "Total funding", None, "Check"])
    cash.put("A1", "Cash flow (EUR thousand)", "title")
    cash.put_row("A2", ["Line", *YEARS], "head")
    cash.put_column("A3", ["Net income", "Depreciation", "Working capital", "Operating cash flow", None])
    cash.put_column("A8", ["Capital expenditure", "Debt drawn", "Dividends", "Change in cash", "Opening cash"])
    cash.put_column("A13", ["Closing cash", "Cash conversion"])

    _actuals(income, sheet)
    for before, c in zip("CDEFG", FORECAST, strict=True):
        income.put(f"{c}3", income[f"{before}3"] * (1 + inputs[f"{c}4"]), "whole")
        income.put(f"{c}4", income[f"{c}3"] * inputs[f"{c}5"], "whole")
        income.put(f"{c}6", income[f"{before}6"] * (1 + inputs[f"{c}6"]), "whole")
        income.put(f"{c}8", income[f"{c}3"] * inputs[f"{c}7"], "whole")
        income.put(f"{c}10", sheet[f"{before}6"] * inputs["$B$14"], "whole")
        income.put(f"{c}12", sheet[f"{before}10"] * inputs["$B$15"], "whole")
        _subtotals(income, c)
        income.put(f"{c}14", max_(0, income[f"{c}13"]) * tax, "whole")
        income.put(f"{c}15", income[f"{c}13"] - income[f"{c}14"], "whole")
        sheet.put(f"{c}4", income[f"{c}3"] * inputs["$B$16"] / 365, "whole")
        sheet.put(f"{c}5", income[f"{c}4"] * inputs["$B$17"] / 365, "whole")
        sheet.put(f"{c}9", income[f"{c}4"] * inputs["$B$18"] / 365, "whole")
        cash.put(f"{c}3", income[f"{c}15"], "whole")
        cash.put(f"{c}4", income[f"{c}10"], "whole")
        assets = sum_(sheet.area(f"{before}4:{before}5")) - sum_(sheet.area(f"{c}4:{c}5"))
        cash.put(f"{c}5", assets + sheet[f"{c}9"] - sheet[f"{before}9"], "whole")
        cash.put(f"{c}6", sum_(cash.area(f"{c}3:{c}5")), "total")
        cash.put(f"{c}8", -inputs[f"{c}8"], "whole")
        cash.put(f"{c}9", inputs[f"{c}9"], "whole")
        cash.put(f"{c}10", -round_(income[f"{before}15"] * inputs["$B$19"], 0), "whole")
        cash.put(f"{c}11", cash[f"{c}6"] + sum_(cash.area(f"{c}8:{c}10")), "total")
        cash.put(f"{c}12", sheet[f"{before}3"], "whole")
        cash.put(f"{c}13", cash[f"{c}12"] + cash[f"{c}11"], "total")
        cash.put(f"{c}14", cash[f"{c}6"] / income[f"{c}9"], "percent")
        sheet.put(f"{c}3", cash[f"{c}13"], "whole")
        sheet.put(f"{c}6", sheet[f"{before}6"] - cash[f"{c}8"] - income[f"{c}10"], "whole")
        sheet.put(f"{c}10", sheet[f"{before}10"] + cash[f"{c}9"], "whole")
        sheet.put(f"{c}11", sheet[f"{before}11"], "whole")
        sheet.put(f"{c}12", sheet[f"{before}12"] + income[f"{c}15"] + cash[f"{c}10"], "whole")
    for c in COLUMNS:
        sheet.put(f"{c}7", sum_(sheet.area(f"{c}3:{c}6")), "total")
        sheet.put(f"{c}13", sum_(sheet.area(f"{c}9:{c}12")), "total")
        balanced = abs_(sheet[f"{c}7"] - sheet[f"{c}13"]) < 0.5
        sheet.put(f"{c}15", if_(balanced, "balanced", "off"))
    for each in (inputs, income, sheet, cash):
        each.widths = {"A": 26}
    return ask(book)


def _inputs(inputs: Sheet) -> None:
    inputs.put("A1", "Inputs", "title")
    inputs.put_row("A3", ["Driver", None, None, *YEARS[2:]], "head")
    yearly: list[tuple[str, tuple[float, ...], str]] = [
        ("Revenue growth", (0.065, 0.07, 0.06, 0.05, 0.045), "percent"),
        ("Materials, share of revenue", (0.412, 0.41, 0.405, 0.405, 0.4), "percent"),
        ("Staff cost growth", (0.04, 0.045, 0.04, 0.035, 0.035), "percent"),
        ("Other costs, share of revenue", (0.118, 0.117, 0.116, 0.115, 0.115), "percent"),
        ("Capital expenditure", (1450, 1600, 1250, 1300, 1350), "whole"),
        ("New debt", (500, 0, -400, -600, -600), "whole"),
    ]
    for r, (label, numbers, style) in enumerate(yearly, 4):
        inputs.put(f"A{r}", label)
        inputs.put_row(f"D{r}", numbers, style)
    inputs.put("A12", "The same in every year")
    constant: list[tuple[str, float, str]] = [
        ("Tax rate", 0.23, "percent"),
        ("Depreciation rate", 0.14, "percent"),
        ("Interest rate", 0.052, "percent"),
        ("Days of receivables", 48, "whole"),
        ("Days of inventory", 61, "whole"),
        ("Days of payables", 39, "whole"),
        ("Payout ratio", 0.35, "percent"),
    ]
    for r, (label, number, style) in enumerate(constant, 13):
        inputs.put(f"A{r}", label)
        inputs.put(f"B{r}", number, style)


def _actuals(income: Sheet, sheet: Sheet) -> None:
    """The two years that were booked; the balance sheets balance."""
    booked = {"B": (16820, 7010, 4630, 2005, 995, 268, 466), "C": (17945, 7420, 4815, 2120, 1040, 255, 528)}
    for c, numbers in booked.items():
        for row, number in zip((3, 4, 6, 8, 10, 12, 14), numbers, strict=True):
            income.put(f"{c}{row}", number, "whole")
        _subtotals(income, c)
        income.put(f"{c}15", income[f"{c}13"] - income[f"{c}14"], "whole")
    held = {"B": (1120, 2240, 1190, 7150, 760, 5100, 2000, 3840), "C": (1415, 2365, 1255, 7420, 800, 4900, 2000, 4755)}
    for c, amounts in held.items():
        for row, number in zip((3, 4, 5, 6, 9, 10, 11, 12), amounts, strict=True):
            sheet.put(f"{c}{row}", number, "whole")


def _subtotals(income: Sheet, c: str) -> None:
    income.put(f"{c}5", income[f"{c}3"] - income[f"{c}4"], "total")
    income.put(f"{c}9", income[f"{c}5"] - income[f"{c}6"] - income[f"{c}8"], "total")
    income.put(f"{c}11", income[f"{c}9"] - income[f"{c}10"], "total")
    income.put(f"{c}13", income[f"{c}11"] - income[f"{c}12"], "total")


def ask(book: Book) -> Questions:
    q = Questions(book)
    inputs, income, sheet, cash = book.sheets
    q.value(income, "E15", "What is the net income in FY2027 (EUR thousand)?")
    q.value(sheet, "G7", "What are the total assets in FY2029?")
    q.value(cash, "H13", "How much is the closing cash in FY2030?")
    q.value(income, "C9", "What was the EBITDA in FY2025?")
    q.value(inputs, "B16", "How many days of receivables are assumed?")
    q.value(sheet, "F15", "What does the check say for FY2028?")
    q.value(cash, "D14", "What is the cash conversion in FY2026, in percent?", unit="percent")
    q.address(income, "G11", "Which cell holds the EBIT of FY2029?", row=["EBIT"], column=["FY2029"])
    q.address(inputs, "E5", "Which cell holds the share of materials in revenue for FY2027?",
              row=["Materials, share of revenue"], column=["FY2027"])  # fmt: skip
    q.trace(income, "F10", "Which cells, on any worksheet, does the depreciation of FY2028 (F10) refer to directly?")
    q.trace(cash, "G5", "Which cells does the working capital flow of FY2029 (G5) refer to directly?")
    q.trace(income, "D5", "What does the gross profit of FY2026 (D5) depend on? List all cells, direct or not.", "all")
    q.impact(inputs, "B15", "Which cells refer directly to the interest rate in B15?")
    q.impact(
        sheet,
        "G12",
        "Which cells change if the retained earnings of FY2029 (G12) change? List all, direct or not.",
        "all",
    )
    q.impact(income, "G14", "Which formulas refer directly to the tax of FY2029 (G14)?")
    q.hardcode(income, "D3:H8", "Which forecast cells in D3:H8 are typed numbers instead of the row's formula?")
    q.hardcode(sheet, "D3:H13", "Where in D3:H13 was a number typed over the forecast's formula?")
    q.hardcode(cash, "D3:H14", "In the forecast D3:H14, which cells hold a typed number instead of a formula?")
    return q

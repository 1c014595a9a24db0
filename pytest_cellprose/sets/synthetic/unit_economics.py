"""Unit economics of four price plans on one small worksheet: the smallest of the set."""

from __future__ import annotations

from pytest_cellprose.sets.synthetic.ask import Questions
from pytest_cellprose.sets.synthetic.book import Book
from pytest_cellprose.sets.synthetic.functions import max_, round_


def build() -> Questions:
    book = Book("Unit economics")
    sheet = book.sheet("Plans", overrides={"D8": 14.2, "C12": 31})
    sheet.put("A1", "Unit economics by plan (USD per customer and month)", "title")
    sheet.put_row("A3", ["Line", "Basic", "Team", "Business", "Enterprise"], "head")
    sheet.put_column("A4", ["Price", "Discount", "Hosting", "Support", "Payment fees", "Margin", "Margin share"])
    sheet.put_column(
        "A11", ["Churn per month", "Lifetime (months)", "Lifetime value", "Acquisition cost", "LTV to CAC"]
    )
    sheet.put_row("B4", [19, 49, 129, 420], "money")
    sheet.put_row("B5", [0, 0.05, 0.08, 0.15], "percent")
    sheet.put_row("B6", [2.4, 5.1, 11.75, 38], "money")
    sheet.put_row("B7", [3.5, 6.25, 14, 61.5], "money")
    sheet.put_row("B11", [0.055, 0.034, 0.021, 0.011], "percent")
    sheet.put_row("B14", [85, 240, 710, 3900], "whole")
    sheet.put("A17", "Fee rate")
    sheet.put("B17", 0.029, "percent")
    sheet.put("A18", "Fixed fee")
    sheet.put("B18", 0.3, "money")
    sheet.put("A19", "Best ratio")
    for c in "BCDE":
        net = sheet[f"{c}4"] * (1 - sheet[f"{c}5"])
        sheet.put(f"{c}8", round_(net * sheet["$B$17"] + sheet["$B$18"], 2), "money")
        sheet.put(f"{c}9", net - sheet[f"{c}6"] - sheet[f"{c}7"] - sheet[f"{c}8"], "total")
        sheet.put(f"{c}10", sheet[f"{c}9"] / sheet[f"{c}4"], "percent")
        sheet.put(f"{c}12", 1 / sheet[f"{c}11"], "money")
        sheet.put(f"{c}13", sheet[f"{c}9"] * sheet[f"{c}12"], "money")
        sheet.put(f"{c}15", sheet[f"{c}13"] / sheet[f"{c}14"], "money")
    sheet.put("B19", max_(sheet.area("B15:E15")), "money")
    sheet.widths = {"A": 18}
    return ask(book)


def ask(book: Book) -> Questions:
    q = Questions(book)
    (sheet,) = book.sheets
    q.value(sheet, "C13", "What is the lifetime value of a Team customer?")
    q.value(sheet, "E9", "What margin does the Enterprise plan make per customer and month?")
    q.value(sheet, "B15", "What is the LTV to CAC ratio of the Basic plan?")
    q.value(sheet, "D14", "How much does it cost to acquire a Business customer?")
    q.address(
        sheet,
        "E11",
        "Which cell holds the monthly churn of Enterprise?",
        row=["Churn per month"],
        column=["Enterprise"],
    )
    q.address(sheet, "D6", "Which cell holds the hosting cost of 11.75?")
    q.trace(sheet, "E8", "Which cells does the formula for Enterprise's payment fees (E8) refer to directly?")
    q.trace(sheet, "B13", "What does the lifetime value in B13 depend on? List all cells, direct and indirect.", "all")
    q.impact(sheet, "E7", "Which cells change if the support cost in E7 changes? List all, direct and indirect.", "all")
    q.impact(sheet, "B17", "Which cells refer directly to the fee rate in B17?")
    q.hardcode(sheet, "B8:E8", "Which payment fees in B8:E8 are a typed number instead of the formula?")
    q.hardcode(sheet, "B9:E15", "Where in B9:E15 does a typed number stand among the row's formulas?")
    return q

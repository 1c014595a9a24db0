"""A staff survey: a table of answers with gaps, an index per respondent, and counts, shares and weights."""

from __future__ import annotations

from random import Random

from pytest_cellprose.sets.synthetic.ask import Questions
from pytest_cellprose.sets.synthetic.book import Book
from pytest_cellprose.sets.synthetic.expression import Area, Expression
from pytest_cellprose.sets.synthetic.functions import (
    average,
    averageif,
    count,
    countif,
    countifs,
    if_,
    iferror,
    large,
    median,
    round_,
    sum_,
    sumproduct,
)

ITEMS = ("Workload", "Tools", "Leadership", "Pay", "Growth")
SITES = ("Bergen", "Leeds", "Porto")
REMARKS = ("Too many meetings", "Great colleagues", "Parking!", "More training please", "n/a", "Canteen is too small")
RESPONDENTS = 120


def build(seed: int = 9) -> Questions:
    random = Random(seed)
    book = Book("Staff survey 2026")
    results = book.sheet("Results")
    answers = book.sheet("Answers", overrides={"J34": 3.4, "J88": 4.1, "J89": 4.1})

    answers.put_row("A1", ["ID", "Site", "Years", "Remote", *ITEMS, "Index", "Group", "Remark"], "head")
    last = RESPONDENTS + 1
    for r in range(2, last + 1):
        answers.put(f"A{r}", f"R{r + 400}")
        answers.put(f"B{r}", random.choice(SITES))
        answers.put(f"C{r}", random.randrange(0, 31))
        answers.put(f"D{r}", random.random() < 0.4)
        scores = [random.choice((1, 2, 3, 3, 4, 4, 5, 5, None)) for _ in ITEMS]
        answers.put_row(f"E{r}", scores)
        answers.put(f"J{r}", average(answers.area(f"E{r}:I{r}")), "money")
        high = if_(answers[f"J{r}"] >= 4, "content", "neutral")
        answers.put(f"K{r}", if_(answers[f"J{r}"] < 2.5, "critical", high))
        if random.random() < 0.3:
            answers.put(f"L{r}", random.choice(REMARKS))
    answers.table("Answers", f"A1:L{last}")
    answers.hidden_columns = ["D"]
    answers.widths = {"L": 26}
    site, years, index = (answers.table_column("Answers", head) for head in ("Site", "Years", "Index"))

    results.put("A1", "Staff survey 2026, results", "title")
    results.put_row("A3", ["Item", "Answers", "Mean", "Median", "Share of 4 and 5", "Weight", "Weighted mean"], "head")
    for r, (item, weight) in enumerate(zip(ITEMS, (3, 2, 3, 2.5, 1.5), strict=True), 4):
        column = answers.table_column("Answers", item)
        results.put(f"A{r}", item)
        results.put(f"B{r}", count(column))
        results.put(f"C{r}", average(column), "money")
        results.put(f"D{r}", median(column))
        results.put(f"E{r}", countif(column, ">=4") / results[f"B{r}"], "percent")
        results.put(f"F{r}", weight)
    for r in range(4, 9):
        results.put(f"G{r}", results[f"C{r}"] * results[f"F{r}"] / sum_(results.area("$F$4:$F$8")), "money")
    results.put("A9", "All items")
    results.put("B9", sum_(results.area("B4:B8")), "whole")
    results.put("C9", average(results.area("C4:C8")), "money")
    results.put("F9", sum_(results.area("F4:F8")))
    results.put("G9", sum_(results.area("G4:G8")), "money")
    results.put("A10", "Weighted answers")
    products = _sum_of_products(results.area("B4:B8"), results.area("F4:F8"))
    results.put_array("B10", products, "money")

    results.put_row("A13", ["Site", "People", "Mean index", "Critical", "Content", "Share content"], "head")
    group = answers.table_column("Answers", "Group")
    for r, name in enumerate((*SITES, "Gdansk"), 14):
        results.put(f"A{r}", name)
        results.put(f"B{r}", countif(site, results[f"A{r}"]))
        results.put(f"C{r}", averageif(site, results[f"A{r}"], index), "money")
        for c, label in (("D", "critical"), ("E", "content")):
            results.put(f"{c}{r}", countifs(site, results[f"$A{r}"], group, label))
        results.put(f"F{r}", iferror(results[f"E{r}"] / results[f"B{r}"], "no answers"), "percent")
    results.put("A18", "Respondents")
    for c in "BDE":
        results.put(f"{c}18", sum_(results.area(f"{c}14:{c}17")), "total")
    results.put("F18", results["E18"] / results["B18"], "percent")

    results.put("A21", "Longest service (years)")
    results.put("B21", large(years, 1))
    results.put("A22", "Mean service (years)")
    results.put("B22", round_(average(years), 1))
    results.put("A24", "People asked")
    results.put("B24", 171)
    results.put("A23", "Response rate")
    results.put("B23", results["B18"] / results["B24"], "percent")
    results.put("A25", "Service times index")
    results.put("B25", sumproduct(years, index), "money")
    results.comments["A17"] = "Site opened in May; nobody was asked yet"
    results.widths = {"A": 24, "E": 16, "G": 14}
    return ask(book)


def _sum_of_products(left: Area, right: Area) -> Expression:
    """``SUM(a*b)``, which only an array formula works out cell by cell."""
    return Expression(sumproduct(left, right).value, ("SUM(", left, "*", right, ")"))


def ask(book: Book) -> Questions:
    q = Questions(book)
    results, answers = book.sheets
    q.value(results, "B14", "How many people from Bergen answered?")
    q.value(results, "C5", "What is the mean score of Tools?")
    q.value(results, "D18", "How many respondents are critical in total?")
    q.value(results, "E6", "What share of the answers to Leadership is a 4 or a 5, in percent?", unit="percent")
    q.value(results, "C17", "What does the cell for Gdansk's mean index show?")
    q.value(answers, "K60", "In which group is respondent R460?")
    q.value(answers, "C101", "How many years has respondent R501 been here?")
    q.value(answers, "D60", "Is the Remote cell of respondent R460 TRUE or FALSE?")
    q.value(results, "B10", "What is the number of weighted answers?")
    q.address(
        results,
        "F16",
        "Which cell holds the share of content people in Porto?",
        row=["Porto"],
        column=["Share content"],
    )
    q.address(answers, "H75", "Which cell holds the score that R475 gave to Pay?", row=["R475"], column=["Pay"])
    q.address(results, "B24", "Which cell holds the number of people asked, 171?")
    q.trace(results, "G6", "Which cells does the weighted mean of Leadership (G6) refer to directly?")
    q.trace(results, "F15", "Which cells does the share of content people in Leeds (F15) refer to directly?")
    q.trace(answers, "K12", "What does the group in K12 depend on? List all cells, direct or not.", "all")
    q.impact(results, "F8", "If the weight of Growth (F8) changes, which cells refer to it directly?")
    q.impact(
        results,
        "B24",
        "Which cells change if the number of people asked (B24) changes? List all, direct or not.",
        "all",
    )
    q.hardcode(answers, "J2:J121", "Which values of the column Index (J2:J121) are typed in instead of averaged?")
    q.hardcode(answers, "J80:K121", "Only looking at J80:K121: which cells hold a number typed over the formula?")
    return q

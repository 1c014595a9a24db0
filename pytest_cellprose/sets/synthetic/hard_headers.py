"""Hard: merged two-row headers above and merged labels beside, so that hardly any label is unique alone."""

from __future__ import annotations

from random import Random

from pytest_cellprose.sets.synthetic.ask import Questions
from pytest_cellprose.sets.synthetic.book import Book, Sheet
from pytest_cellprose.sets.synthetic.functions import if_, iferror, sum_
from pytest_cellprose.workbook.refs import column_letters

REGIONS = ("Nordics", "Benelux", "Iberia")
CHANNELS = ("Retail", "Wholesale", "Online", "Export")
QUARTERS = (("Q1", "CDEF"), ("Q2", "GHIJ"), ("Q3", "KLMN"), ("Q4", "OPQR"))
"""Each quarter's columns: budget, actual, last year, variance."""
FIGURES = "CDEFGHIJKLMNOPQRST"


def build(seed: int = 12) -> Questions:
    random = Random(seed)
    book = Book("Regional results")
    revenue = book.sheet("Revenue", overrides={"F12": 12.5, "H8": 2900, "S7": 3310})
    staff = book.sheet("Staff", overrides={"G6": 129})
    notes = book.sheet("Notes")

    revenue.merge("A1:U1", "Revenue by region and channel, 2026 (EUR thousand)")
    revenue.merge("A2:B2", "Where")
    revenue.put_row("A3", ["Region", "Channel"], "head")
    for quarter, columns in QUARTERS:
        revenue.merge(f"{columns[0]}2:{columns[3]}2", quarter)
        revenue.put_row(f"{columns[0]}3", ["Budget", "Actual", "Last year", "Variance"], "head")
    revenue.merge("S2:T2", "Full year")
    revenue.put_row("S3", ["Budget", "Actual", "Met"], "head")

    for top, region in zip((4, 9, 14), REGIONS, strict=True):
        revenue.merge(f"A{top}:A{top + 3}", region)
        for r, channel in enumerate(CHANNELS, top):
            _line(revenue, r, channel, random)
        revenue.put(f"B{top + 4}", f"Total {region}", "head")
        for c in FIGURES:
            revenue.put(f"{c}{top + 4}", sum_(revenue.area(f"{c}{top}:{c}{top + 3}")), "total")
    revenue.put("B20", "All regions", "head")
    for c in FIGURES:
        revenue.put(f"{c}20", revenue[f"{c}8"] + revenue[f"{c}13"] + revenue[f"{c}18"], "total")
    revenue.comments["F12"] = "Includes a late credit note"
    revenue.hidden_rows = [7]
    revenue.hidden_columns = ["M"]
    revenue.widths = {"B": 16}

    staff.merge("B1:E1", "Head office")
    staff.merge("F1:I1", "Shops")
    staff.put_row("A2", ["Region", *("Jan", "Apr", "Jul", "Oct") * 2], "head")
    for r, region in enumerate(REGIONS, 3):
        staff.put(f"A{r}", region)
        for first, people in (("B", random.randrange(6, 14)), ("F", random.randrange(22, 60))):
            staff.put_row(f"{first}{r}", [people + step for step in (0, 1, random.randrange(2, 5), 6)], "whole")
    staff.put("A6", "Sum")
    for n in range(2, 10):
        c = column_letters(n)
        staff.put(f"{c}6", sum_(staff.area(f"{c}3:{c}5")), "total")

    notes.put("A1", "How to read the figures", "title")
    notes.put("A3", "Revenue per head, full year (EUR thousand)")
    for r, (region, row) in enumerate(zip(REGIONS, (8, 13, 18), strict=True), 4):
        notes.put(f"A{r}", region)
        heads = staff[f"E{r - 1}"] + staff[f"I{r - 1}"]
        notes.put(f"B{r}", iferror(revenue[f"T{row}"] / heads, 0), "money")
        notes.put(f"C{r}", if_(notes[f"B{r}"] > 250, "above target", "below target"))
    notes.widths = {"A": 40, "C": 14}
    return ask(book)


def _line(revenue: Sheet, r: int, channel: str, random: Random) -> None:
    revenue.put(f"B{r}", channel)
    for _, columns in QUARTERS:
        budget, actual, last_year, variance = tuple(columns)
        planned = random.randrange(200, 1800, 5)
        revenue.put(f"{budget}{r}", planned, "whole")
        revenue.put(f"{actual}{r}", planned * random.randrange(85, 118) / 100, "money")
        revenue.put(f"{last_year}{r}", planned - random.randrange(-60, 90), "whole")
        revenue.put(f"{variance}{r}", revenue[f"{actual}{r}"] - revenue[f"{budget}{r}"], "money")
    for c, quarters in (("S", "CGKO"), ("T", "DHLP")):
        first, *others = (revenue[f"{quarter}{r}"] for quarter in quarters)
        revenue.put(f"{c}{r}", sum(others, start=first), "total")
    revenue.put(f"U{r}", if_(revenue[f"T{r}"] >= revenue[f"S{r}"], "yes", "no"))


def ask(book: Book) -> Questions:
    q = Questions(book)
    revenue, staff, notes = book.sheets
    q.value(revenue, "H10", "What was the actual revenue of Benelux, Wholesale, in Q2?")
    q.value(revenue, "C16", "What is the Q1 budget for Online in Iberia?")
    q.value(revenue, "P8", "What is the actual Q4 revenue in total for the Nordics?")
    q.value(revenue, "T20", "What is the full-year actual revenue of all regions?")
    q.value(revenue, "N5", "What is the Q3 variance of Wholesale in the Nordics?")
    q.value(staff, "H4", "How many people work in the shops of Benelux in July?")
    q.value(notes, "B6", "What is the revenue per head of Iberia?")
    q.address(
        revenue,
        "K11",
        "Which cell holds the Q3 budget of Benelux, Online?",
        row=["Benelux", "Online"],
        column=["Q3", "Budget"],
    )
    q.address(
        revenue,
        "P17",
        "Which cell holds the Q4 actual of Iberia, Export?",
        row=["Iberia", "Export"],
        column=["Q4", "Actual"],
    )
    q.address(
        revenue,
        "T13",
        "Which cell holds the full-year actual of Benelux as a whole?",
        row=["Total Benelux"],
        column=["Full year", "Actual"],
    )
    q.address(
        staff,
        "D5",
        "Which cell holds Iberia's head office staff in July?",
        row=["Iberia"],
        column=["Head office", "Jul"],
    )
    q.trace(revenue, "T6", "Which cells does the full-year actual in T6 refer to directly?")
    q.trace(notes, "B5", "Which cells, on any worksheet, does the revenue per head of Benelux (B5) refer to directly?")
    q.trace(
        revenue,
        "J13",
        "Which cells does the total in J13 depend on? List all, direct and through other formulas.",
        "all",
    )
    q.impact(
        revenue,
        "O15",
        "If the Q4 budget of Iberia, Wholesale (O15) changes, which cells change? List all, direct or not.",
        "all",
    )
    q.impact(staff, "I5", "Which cells, on any worksheet, refer directly to I5?")
    q.hardcode(revenue, "C4:T18", "Which cells of C4:T18 hold a number typed over the formula of the cells around?")
    q.hardcode(staff, "B6:I6", "Which totals in B6:I6 are typed in instead of summed?")
    return q

"""Orders of a year in a table, and a summary laid out like a pivot table: region by quarter, then products."""

from __future__ import annotations

from datetime import date, timedelta
from random import Random

from pytest_cellprose.sets.synthetic.ask import Questions
from pytest_cellprose.sets.synthetic.book import Book
from pytest_cellprose.sets.synthetic.expression import lift
from pytest_cellprose.sets.synthetic.functions import (
    average,
    counta,
    countifs,
    month,
    rank,
    roundup,
    sum_,
    sumif,
    sumifs,
)

REGIONS = ("North", "South", "East", "West")
PRODUCTS = (
    ("Desk lamp", 39.9),
    ("Office chair", 189),
    ("Whiteboard", 74.5),
    ("Monitor arm", 112.25),
    ("Footrest", 27.8),
)
SELLERS = ("Brandt", "Castellano", "Dufour", "Eklund", "Farrow")
ORDERS = 260


def build(seed: int = 5) -> Questions:
    random = Random(seed)
    book = Book("Orders 2025")
    pivot = book.sheet("Summary", overrides={"D6": 18250})
    orders = book.sheet("Orders", overrides={"I57": 1320, "I143": 995.5, "I144": 412})
    products = book.sheet("Price list")

    products.put_row("A1", ["Product", "List price", "Orders", "Revenue", "Rank"], "head")
    for r, (product, price) in enumerate(PRODUCTS, 2):
        products.put_row(f"A{r}", [product, price])

    days = sorted(random.randrange(365) for _ in range(ORDERS))
    heads = ["Order", "Date", "Quarter", "Region", "Seller", "Product", "Units", "Price", "Amount"]
    orders.put_row("A1", heads, "head")
    last = ORDERS + 1
    for r, day in enumerate(days, 2):
        product, price = random.choice(PRODUCTS)
        orders.put(f"A{r}", 25000 + r)
        orders.put(f"B{r}", date(2025, 1, 1) + timedelta(days=day), "date")
        orders.put(f"D{r}", random.choice(REGIONS))
        orders.put(f"E{r}", random.choice(SELLERS))
        orders.put(f"F{r}", product)
        orders.put(f"G{r}", random.randrange(1, 25))
        orders.put(f"H{r}", round(price * random.choice((1, 1, 0.95, 0.9)), 2), "money")
    orders.table("Orders", f"A1:I{last}")
    for r in range(2, last + 1):
        orders.put(f"C{r}", lift("Q") & roundup(month(orders[f"B{r}"]) / 3, 0))
        orders.put(f"I{r}", orders[f"G{r}"] * orders[f"H{r}"], "money")
    orders.widths = {"B": 12, "F": 14}

    quarter, region, sold, amount = (
        orders.table_column("Orders", head) for head in ("Quarter", "Region", "Product", "Amount")
    )
    pivot.put("A1", "Revenue 2025 by region and quarter (EUR)", "title")
    pivot.put_row("A3", ["Region", "Q1", "Q2", "Q3", "Q4", "Year 2025", "Orders"], "head")
    for r, name in enumerate(REGIONS, 4):
        pivot.put(f"A{r}", name)
        for c in "BCDE":
            pivot.put(f"{c}{r}", sumifs(amount, region, pivot[f"$A{r}"], quarter, pivot[f"{c}$3"]), "money")
        pivot.put(f"F{r}", sum_(pivot.area(f"B{r}:E{r}")), "total")
        pivot.put(f"G{r}", countifs(region, pivot[f"$A{r}"]), "whole")
    pivot.put("A8", "Grand total")
    for c in "BCDEFG":
        pivot.put(f"{c}8", sum_(pivot.area(f"{c}4:{c}7")), "total")
    pivot.put("A9", "Growth on quarter before")
    for c, before in (("C", "B"), ("D", "C"), ("E", "D")):
        pivot.put(f"{c}9", pivot[f"{c}8"] / pivot[f"{before}8"] - 1, "percent")
    pivot.comments["D6"] = "Late orders of September added by hand"

    pivot.put_row("A12", ["Seller", "Revenue", "Bonus rate", "Bonus"], "head")
    for r, seller in enumerate(SELLERS, 13):
        pivot.put(f"A{r}", seller)
        revenue = sumif(orders.area("$E:$E"), pivot[f"A{r}"], orders.area("$I:$I"))
        pivot.put(f"B{r}", revenue, "money")
        pivot.put(f"C{r}", random.choice((0.01, 0.0125, 0.015)), "percent")
        pivot.put(f"D{r}", pivot[f"B{r}"] * pivot[f"C{r}"], "money")
    pivot.put("A18", "Average seller")
    pivot.put("B18", average(pivot.area("B13:B17")), "total")
    pivot.put("D18", average(pivot.area("D13:D17")), "total")
    pivot.put("A20", "Orders in the table")
    pivot.put("B20", counta(orders.table_column("Orders", "Order")))
    pivot.widths = {"A": 26}

    for r in range(2, 2 + len(PRODUCTS)):
        products.put(f"C{r}", countifs(sold, products[f"A{r}"]))
        products.put(f"D{r}", sumif(sold, products[f"A{r}"], amount), "money")
    for r in range(2, 2 + len(PRODUCTS)):
        products.put(f"E{r}", rank(products[f"D{r}"], products.area("$D$2:$D$6")))
    return ask(book)


def ask(book: Book) -> Questions:
    q = Questions(book)
    pivot, orders, products = book.sheets
    q.value(pivot, "C5", "What is the revenue of the South region in Q2?")
    q.value(pivot, "F8", "What is the grand total of revenue for the year 2025?")
    q.value(pivot, "D15", "What bonus does Dufour get?")
    q.value(orders, "I101", "What is the amount of order 25101?")
    q.value(orders, "B200", "On which date was order 25200 placed?", kind="date")
    q.value(orders, "E77", "Who sold order 25077?")
    q.value(products, "D3", "How much revenue did the Office chair bring?")
    q.address(pivot, "E7", "Which cell holds the West region's revenue in Q4?", row=["West"], column=["Q4"])
    q.address(orders, "G188", "Which cell holds the units of order 25188?", row=["25188"], column=["Units"])
    q.trace(pivot, "E8", "Which cells does the grand total of Q4 (E8) refer to directly?")
    q.trace(pivot, "D16", "Which cells does Eklund's bonus in D16 refer to directly?")
    q.trace(orders, "C50", "Which cells does the quarter in C50 refer to directly?")
    q.impact(orders, "B180", "If the order date in B180 is corrected, which cells refer to it directly?")
    q.impact(
        pivot, "C7", "Which cells change, directly or indirectly, if West's Q2 revenue in C7 changes? List all.", "all"
    )
    q.hardcode(orders, "I2:I261", "Which amounts in I2:I261 are typed numbers instead of units times price?")
    q.hardcode(pivot, "B4:E7", "In the region by quarter block B4:E7, which cells are typed in rather than calculated?")
    return q

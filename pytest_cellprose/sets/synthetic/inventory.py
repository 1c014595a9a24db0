"""A stock list with look-ups to suppliers, reorder flags, and the errors that gaps in the data cause."""

from __future__ import annotations

from random import Random

from pytest_cellprose.sets.synthetic.ask import Questions
from pytest_cellprose.sets.synthetic.book import Book
from pytest_cellprose.sets.synthetic.functions import (
    countif,
    if_,
    iferror,
    index,
    match,
    max_,
    sum_,
    sumif,
    sumproduct,
    vlookup,
)

ITEMS = (
    "Hex bolt M6", "Hex bolt M8", "Hex bolt M10", "Lock nut M6", "Lock nut M8", "Washer 6 mm", "Washer 8 mm",
    "Bearing 6202", "Bearing 6204", "Drive belt A42", "Drive belt B55", "Chain 1/2 in", "Sprocket 14T", "Grease 400 g",
    "Hydraulic oil 5 l", "Filter HF35", "Seal kit S2", "Hose 3/8 in", "Coupling C10", "Relay 24 V", "Fuse 10 A",
    "Cable 3x1.5", "Limit switch", "Proximity sensor", "Control lamp", "Push button", "Terminal block", "DIN rail 1 m",
    "Cable duct", "Motor 0.75 kW", "Motor 1.5 kW", "Gearbox i20", "Pneumatic valve", "Cylinder 32x50", "Air hose 8 mm",
    "Pressure gauge",
)  # fmt: skip
SUPPLIERS = (
    ("S01", "Norbolt AB", 7), ("S02", "Kugel und Söhne", 12), ("S03", "Fluidtech", 9), ("S04", "Elektra 24", 4),
    ("S05", "Antriebe Maier", 21), ("S06", "Airpart", 6),
)  # fmt: skip


def build(seed: int = 4) -> Questions:
    random = Random(seed)
    book = Book("Spare parts stock")
    stock = book.sheet("Stock", overrides={"I12": 250, "H23": 1265.4, "I30": 24, "I31": 24})
    suppliers = book.sheet("Suppliers")
    overview = book.sheet("Overview")

    suppliers.put_row("A1", ["Code", "Supplier", "Lead time (days)", "Contact", "Value on order"], "head")
    for r, (code, name, days) in enumerate(SUPPLIERS, 2):
        suppliers.put_row(f"A{r}", [code, name, days, f"orders@{name.split()[0].lower()}.example"])
    directory = book.name("Directory", suppliers, "$A$2:$C$7")

    stock.put("A1", "Spare parts, counted 2026-06-30", "title")
    stock.put("J1", "Safety days")
    stock.put("K1", 5)
    heads = ["Part no", "Description", "Supplier", "Supplier name", "On hand", "Daily use", "Unit cost", "Stock value"]
    stock.put_row("A3", [*heads, "Reorder point", "Days of stock", "Order now"], "head")
    for r, item in enumerate(ITEMS, 4):
        stock.put(f"A{r}", f"P-{r * 37 + 1000}")
        stock.put(f"B{r}", item)
        code = "S09" if item == "Control lamp" else random.choice(SUPPLIERS)[0]
        stock.put(f"C{r}", code)
        stock.put(f"D{r}", vlookup(stock[f"C{r}"], directory, 2))
        stock.put(f"E{r}", random.randrange(4, 900), "whole")
        stock.put(f"F{r}", 0 if item in ("Gearbox i20", "Seal kit S2") else random.choice((0.5, 1, 2, 3.5, 8, 20)))
        stock.put(f"G{r}", random.randrange(15, 25000) / 100, "money")
        stock.put(f"H{r}", stock[f"E{r}"] * stock[f"G{r}"], "money")
        lead = index(suppliers.area("$C$2:$C$7"), match(stock[f"C{r}"], suppliers.area("$A$2:$A$7")))
        stock.put(f"I{r}", iferror(stock[f"F{r}"] * (lead + stock["$K$1"]), 0), "whole")
        stock.put(f"J{r}", stock[f"E{r}"] / stock[f"F{r}"], "money")
        stock.put(f"K{r}", if_(stock[f"E{r}"] < stock[f"I{r}"], "yes", "no"))
    last = 3 + len(ITEMS)
    stock.put(f"A{last + 2}", "Total")
    stock.put(f"H{last + 2}", sum_(stock.area(f"H4:H{last}")), "total")
    stock.comments["H23"] = "Valued at the old price"
    stock.hidden_rows = [33, 34]
    stock.widths = {"B": 20, "D": 18}

    for r in range(2, 8):
        flagged = sumif(stock.area(f"$C$4:$C${last}"), suppliers[f"A{r}"], stock.area(f"$I$4:$I${last}"))
        suppliers.put(f"E{r}", flagged, "money")

    overview.put("A1", "Stock overview", "title")
    overview.put("A3", "Parts listed")
    overview.put("B3", countif(stock.area(f"E4:E{last}"), ">=0"))
    overview.put("A4", "Parts to order")
    overview.put("B4", countif(stock.area(f"K4:K{last}"), "yes"))
    overview.put("A5", "Stock value")
    overview.put("B5", stock[f"H{last + 2}"], "money")
    overview.put("A6", "Value of a day's use")
    overview.put("B6", sumproduct(stock.area(f"F4:F{last}"), stock.area(f"G4:G{last}")), "money")
    overview.put("A7", "Longest lead time")
    overview.put("B7", max_(suppliers.area("C2:C7")))
    overview.put("A8", "Cover of the whole stock (days)")
    overview.put("B8", overview["B5"] / overview["B6"], "money")
    overview.put("A9", "Cover without a count")
    overview.put("B9", overview["B5"] / overview["B10"], "money")
    overview.widths = {"A": 30}
    return ask(book)


def ask(book: Book) -> Questions:
    q = Questions(book)
    stock, suppliers, overview = book.sheets
    q.value(stock, "E14", "How many pieces of Drive belt B55 are on hand?")
    q.value(stock, "H19", "What is the stock value of Filter HF35?")
    q.value(stock, "D28", "The Control lamp has a supplier code nobody knows. What does its Supplier name cell show?")
    q.value(overview, "B6", "What is the value of a day's use?")
    q.value(suppliers, "C6", "How many days of lead time does Antriebe Maier need?")
    q.value(stock, "D11", "What is the name of the supplier of Bearing 6202?")
    q.address(
        stock, "G33", "Which cell holds the unit cost of Motor 0.75 kW?", row=["Motor 0.75 kW"], column=["Unit cost"]
    )
    q.address(
        suppliers, "C4", "Which cell holds Fluidtech's lead time?", row=["Fluidtech"], column=["Lead time (days)"]
    )
    q.address(suppliers, "D3", "Which cell holds the contact orders@kugel.example?")
    q.trace(stock, "I10", "Which cells does the reorder point in I10 refer to directly, on any worksheet?")
    q.trace(overview, "B8", "Which cells does the cover of the whole stock (B8) refer to directly?")
    q.trace(
        stock,
        "K20",
        "What does the order flag in K20 depend on? List all cells, direct or through other formulas.",
        "all",
    )
    q.impact(suppliers, "C7", "Which cells' formulas refer directly to Airpart's lead time in C7?")
    q.impact(stock, "G39", "If the unit cost in G39 changes, which cells change? List all, direct and indirect.", "all")
    q.hardcode(stock, "I4:I39", "Which reorder points in I4:I39 are typed numbers instead of the formula?")
    q.hardcode(stock, "H4:H39", "Which stock values in H4:H39 were typed in over the formula?")
    return q

"""Hard: ragged blocks side by side and below each other, hidden rows and columns, labels that every block has."""

from __future__ import annotations

from random import Random

from pytest_cellprose.sets.synthetic.ask import Questions
from pytest_cellprose.sets.synthetic.book import Book, Sheet
from pytest_cellprose.sets.synthetic.functions import average, if_, sum_, sumif
from pytest_cellprose.workbook.refs import column_letters, column_number

GOODS = ("Apples", "Pears", "Plums", "Cherries", "Quinces", "Figs", "Grapes", "Melons", "Lemons")
DEPOTS = (("North", "A", 4, 9, 2.15), ("South", "H", 4, 7, 2.05), ("East", "A", 21, 8, 1.9), ("West", "H", 26, 9, 2.35))
"""Name, first column, first row, how many goods, price per kilogram."""


def build(seed: int = 14) -> Questions:
    random = Random(seed)
    book = Book("Depot counts")
    depots = book.sheet("Depots", overrides={"E10": 1840, "L9": 655.5, "E27": 90, "L31": 1208, "L32": 77})
    trips = book.sheet("Trips", overrides={"H8": 111.4})
    totals = book.sheet("Totals")

    depots.put("A1", "Counts by depot, week 23", "title")
    sums = {name: _depot(depots, name, column, top, size, price, random) for name, column, top, size, price in DEPOTS}
    depots.put("P30", "Counted by")
    depots.put("Q30", "Ortiz")
    depots.put("P31", "Scale offset (kg)")
    depots.put("Q31", 0.35)
    depots.comments["L31"] = "Scale broken, estimated"
    depots.hidden_rows = [8, 24, 25]
    depots.hidden_columns = ["K"]
    depots.widths = {"A": 14, "H": 14, "P": 18}
    _trips(trips, random)

    totals.put("A1", "All depots", "title")
    totals.put_row("A3", ["Goods", "Kilograms", "Value"], "head")
    for r, goods in enumerate(GOODS, 4):
        totals.put(f"A{r}", goods)
        for c, left, right in (("B", "D", "K"), ("C", "E", "L")):
            first = sumif(depots.area("$A$1:$A$40"), totals[f"$A{r}"], depots.area(f"${left}$1:${left}$40"))
            second = sumif(depots.area("$H$1:$H$40"), totals[f"$A{r}"], depots.area(f"${right}$1:${right}$40"))
            totals.put(f"{c}{r}", first + second, "money")
    totals.put("A14", "Value by depot", "head")
    for r, (name, cell) in enumerate(sums.items(), 15):
        totals.put(f"A{r}", f"Depot {name}")
        totals.put(f"C{r}", depots[cell], "money")
    totals.put("A20", "Average depot")
    totals.put("C20", average(totals.area("C15:C18")), "total")
    totals.put("A21", "Transport per kilogram")
    totals.put("C21", trips["H13"] / sum_(totals.area("B4:B12")), "rate")
    totals.put("A22", "Transport per depot visit")
    totals.put("C22", trips["H13"] / totals["C24"], "money")
    totals.widths = {"A": 22}
    return ask(book)


def _depot(sheet: Sheet, name: str, column: str, top: int, size: int, price: float, random: Random) -> str:
    """One depot's block from its first cell on; the address of its total value."""
    a, b, c, d, e = (column_letters(column_number(column) + n) for n in range(5))
    sheet.put(f"{a}{top}", f"Depot {name}", "head")
    sheet.put(f"{d}{top}", "Price per kg")
    sheet.put(f"{e}{top}", price, "money")
    sheet.put_row(f"{a}{top + 1}", ["Goods", "Crates", "Kg per crate", "Kilograms", "Value"], "head")
    first, last = top + 2, top + 1 + size
    for r, goods in enumerate(GOODS[:size], first):
        sheet.put_row(f"{a}{r}", [goods, random.randrange(3, 90), random.randrange(80, 190) / 10])
        sheet.put(f"{d}{r}", sheet[f"{b}{r}"] * sheet[f"{c}{r}"], "money")
        sheet.put(f"{e}{r}", sheet[f"{d}{r}"] * sheet[f"${e}${top}"], "money")
    sheet.put(f"{a}{last + 1}", "Total")
    for letters in (b, d, e):
        sheet.put(f"{letters}{last + 1}", sum_(sheet.area(f"{letters}{first}:{letters}{last}")), "total")
    if size < len(GOODS):
        sheet.put(f"{a}{last + 2}", "Spoiled")
        sheet.put(f"{b}{last + 2}", random.randrange(1, 9))
        sheet.put(f"{d}{last + 2}", sheet[f"{b}{last + 2}"] * average(sheet.area(f"{c}{first}:{c}{last}")), "money")
    return f"{e}{last + 1}"


def _trips(trips: Sheet, random: Random) -> None:
    trips.put_row("K4", ["Rate", "Value"], "head")
    for r, (label, number) in enumerate(
        (("Price per litre", 1.72), ("Bonus from 25 trips", 45), ("Pay per trip", 12.5)), 5
    ):
        trips.put_row(f"K{r}", [label, number])
    trips.put("B2", "Trips by van", "title")
    trips.put_row("B4", ["Van", "Km start", "Km end", "Km", "Litres", "Km per litre", "Cost"], "head")
    for r in range(5, 13):
        start = random.randrange(20000, 90000)
        trips.put_row(f"B{r}", [f"V-{r + 6}", start, start + random.randrange(210, 980)])
        trips.put(f"E{r}", trips[f"D{r}"] - trips[f"C{r}"], "whole")
        trips.put(f"F{r}", random.randrange(180, 900) / 10)
        trips.put(f"G{r}", trips[f"E{r}"] / trips[f"F{r}"], "money")
        trips.put(f"H{r}", trips[f"F{r}"] * trips["$L$5"], "money")
    trips.put("B13", "Total")
    for c in "EFH":
        trips.put(f"{c}13", sum_(trips.area(f"{c}5:{c}12")), "total")
    trips.put("B16", "Trips by driver", "title")
    trips.put_row("D18", ["Driver", "Trips", "Bonus", "Total"], "head")
    for r, driver in enumerate(("Abt", "Bello", "Cruz", "Diaz"), 19):
        trips.put_row(f"D{r}", [driver, random.randrange(11, 40)])
        trips.put(f"F{r}", if_(trips[f"E{r}"] >= 25, trips["$L$6"], 0), "money")
        trips.put(f"G{r}", trips[f"E{r}"] * trips["$L$7"] + trips[f"F{r}"], "money")
    trips.put("D24", "Total")
    trips.put("G24", sum_(trips.area("G19:G23")), "total")
    trips.hidden_rows = [10, 23]
    trips.widths = {"K": 20}


def ask(book: Book) -> Questions:
    q = Questions(book)
    depots, trips, totals = book.sheets
    q.value(depots, "D9", "In the block Depot North, how many kilograms of Cherries are there?")
    q.value(depots, "L28", "In the block Depot West, what is the value of the Apples?")
    q.value(depots, "B31", "In the block Depot East, how many crates are there in total?")
    q.value(depots, "K14", "In the block Depot South, how many kilograms are spoiled?")
    q.value(totals, "C9", "What is the value of the Figs in all depots together?")
    q.value(totals, "C22", "What does the cell for transport per depot visit show?")
    q.value(trips, "G24", "In the block Trips by driver, what is the overall total?")
    q.value(trips, "E12", "How many km did van V-18 drive?")
    q.address(depots, "Q31", "Which cell holds the scale offset of 0.35 kg?")
    q.address(trips, "G9", "Which cell holds the km per litre of van V-15?", row=["V-15"], column=["Km per litre"])
    q.address(totals, "B10", "Which cell holds the kilograms of Grapes?", row=["Grapes"], column=["Kilograms"])
    q.address(trips, "F21", "Which cell holds the bonus of the driver Cruz?", row=["Cruz"], column=["Bonus"])
    q.trace(depots, "E29", "Which cells does the value in E29 refer to directly?")
    q.trace(
        trips,
        "G21",
        "What does Cruz's total (G21) depend on? List all cells, direct and through other formulas.",
        "all",
    )
    q.trace(totals, "B6", "Which cells, on any worksheet, does the weight of the Plums (B6) refer to directly?")
    q.impact(depots, "L26", "Which cells refer directly to Depot West's price per kg (L26)?")
    q.impact(
        trips,
        "L5",
        "Which cells, on any worksheet, change if the price per litre (L5) changes? List all, direct or not.",
        "all",
    )
    q.impact(depots, "J12", "Which cells refer directly to J12?")
    q.hardcode(depots, "D6:E14", "In Depot North (D6:E14), which cells are typed numbers instead of the formula?")
    q.hardcode(
        depots,
        "K6:L37",
        "In the blocks of Depot South and Depot West (K6:L37), where is a number typed over a formula?",
    )
    q.hardcode(
        depots, "A21:E32", "In the block Depot East (A21:E32), which cells are typed over the formulas around them?"
    )
    q.hardcode(
        trips, "E5:H12", "In the block Trips by van (E5:H12), where was a number typed over the column's formula?"
    )
    return q

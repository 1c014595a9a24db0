"""Hard: eleven worksheets with awkward names whose formulas lead back and forth between them."""

from __future__ import annotations

from random import Random

from pytest_cellprose.sets.synthetic.ask import Questions
from pytest_cellprose.sets.synthetic.book import Book, Sheet
from pytest_cellprose.sets.synthetic.expression import Area
from pytest_cellprose.sets.synthetic.functions import index, match, round_, sum_, sumproduct, vlookup

CENTRES = ("Lisbon", "Kraków", "Austin", "Pune", "Osaka", "Lagos")
CURRENCIES = ("EUR", "PLN", "USD", "INR", "JPY", "NGN")
OVERRIDES: dict[str, dict[str, int | float]] = {
    "Q2 2026": {"E6": 14250.5},
    "Q3 2026": {"D8": 1.2},
    "Q4 2026": {"F5": 41800},
}
QUARTERS = ("Q1 2026", "Q2 2026", "Q3 2026", "Q4 2026")


def build(seed: int = 13) -> Questions:
    random = Random(seed)
    book = Book("Group consolidation")
    group = book.sheet("Group")
    quarters = [book.sheet(name, overrides=OVERRIDES.get(name)) for name in QUARTERS]
    fx = book.sheet("FX rates")
    centres = book.sheet("Cost centres")
    adjustments = book.sheet("John's adjustments")
    old = book.sheet("R&D (old)", state="hidden")
    keys = book.sheet("Keys", overrides={"D6": 0.14})
    check = book.sheet("Checks")

    _rates(fx, random)
    table = book.name("FxTable", fx, "$A$2:$E$7")
    fx.put("A10", "Budget rate uplift")
    fx.put("B10", 1.015, "rate")
    uplift = book.named_cell("Uplift", fx, "$B$10")

    old.put_row("A1", ["Project", "Yearly cost"], "head")
    for r, project in enumerate(("Kestrel", "Osprey", "Merlin"), 2):
        old.put_row(f"A{r}", [project, random.randrange(20, 90) * 1000])
    old.put("B6", sum_(old.area("B2:B4")), "total")

    centres.put_row("A1", ["Centre", "Currency", "Heads", "Share of R&D", "R&D charge (EUR)"], "head")
    for r, (centre, currency) in enumerate(zip(CENTRES, CURRENCIES, strict=True), 2):
        centres.put_row(f"A{r}", [centre, currency, random.randrange(12, 140)])
    for r in range(2, 8):
        centres.put(f"D{r}", centres[f"C{r}"] / sum_(centres.area("$C$2:$C$7")), "percent")
        centres.put(f"E{r}", centres[f"D{r}"] * old["$B$6"], "money")

    adjustments.put_row("A1", ["Centre", *QUARTERS, "Reason"], "head")
    for r, centre in enumerate(CENTRES, 2):
        adjustments.put(f"A{r}", centre)
        adjustments.put_row(f"B{r}", [random.choice((0, 0, 1500, -2200, 4800, -950)) for _ in QUARTERS])
    adjustments.put("F4", "Audit finding 17")
    adjustments.put("F6", "See the mail of 3 March")

    for n, sheet in enumerate(quarters):
        _quarter(sheet, n, random, fx, table, centres, adjustments, quarters[n - 1] if n else None)
    _keys(keys, centres, quarters)

    group.put("A1", "Group, 2026 (EUR)", "title")
    group.put_row("A3", ["Centre", *QUARTERS, "Year", "At budget rates"], "head")
    for r, centre in enumerate(CENTRES, 4):
        group.put(f"A{r}", centre)
        for c, sheet in zip("BCDE", quarters, strict=True):
            group.put(
                f"{c}{r}", index(sheet.area("$F$4:$F$9"), match(group[f"$A{r}"], sheet.area("$A$4:$A$9"))), "money"
            )
        group.put(f"F{r}", sum_(group.area(f"B{r}:E{r}")), "total")
        group.put(f"G{r}", group[f"F{r}"] * uplift * (1 + keys[f"D{r - 1}"]), "money")
    group.put("A10", "Group total")
    for c in "BCDEFG":
        group.put(f"{c}10", sum_(group.area(f"{c}4:{c}9")), "total")
    group.widths = {"A": 16}

    check.put("A1", "Checks", "title")
    check.put("A3", "Sum of quarters")
    check.put("B3", quarters[0]["F11"] + quarters[1]["F11"] + quarters[2]["F11"] + quarters[3]["F11"], "money")
    check.put("A4", "Group total")
    check.put("B4", group["F10"], "money")
    check.put("A5", "Difference")
    check.put("B5", round_(check["B4"] - check["B3"], 2), "money")
    check.put("A6", "R&D charged")
    check.put("B6", sum_(centres.area("E2:E7")), "money")
    check.put("A7", "R&D weighted by heads")
    check.put("B7", sumproduct(centres.area("C2:C7"), centres.area("E2:E7")), "money")
    return ask(book)


def _rates(fx: Sheet, random: Random) -> None:
    fx.put_row("A1", ["Currency", *QUARTERS], "head")
    for r, (currency, rate) in enumerate(zip(CURRENCIES, (1, 0.234, 0.92, 0.0111, 0.0061, 0.00058), strict=True), 2):
        fx.put(f"A{r}", currency)
        for c in "BCDE":
            drift = 1 if currency == "EUR" else random.randrange(960, 1040) / 1000
            fx.put(f"{c}{r}", float(format(rate * drift, ".5g")), "rate")


def _quarter(
    sheet: Sheet,
    n: int,
    random: Random,
    fx: Sheet,
    table: Area,
    centres: Sheet,
    adjustments: Sheet,
    before: Sheet | None,
) -> None:
    sheet.put("A1", f"Costs of {QUARTERS[n]}", "title")
    sheet.put_row(
        "A3", ["Centre", "Local cost", "Currency", "Rate", "Cost (EUR)", "With charges (EUR)", "Change"], "head"
    )
    scales = {"EUR": 1, "PLN": 4, "USD": 1, "INR": 80, "JPY": 160, "NGN": 1700}
    for r, (centre, currency) in enumerate(zip(CENTRES, CURRENCIES, strict=True), 4):
        sheet.put(f"A{r}", centre)
        sheet.put(f"B{r}", random.randrange(9000, 60000) * scales[currency], "whole")
        sheet.put(f"C{r}", vlookup(sheet[f"A{r}"], centres.area("$A$2:$B$7"), 2))
        sheet.put(f"D{r}", vlookup(sheet[f"C{r}"], table, n + 2), "rate")
        sheet.put(f"E{r}", sheet[f"B{r}"] * sheet[f"D{r}"], "money")
        charge = centres[f"E{r - 2}"] / 4
        adjusted = sheet[f"E{r}"] + charge + adjustments[f"{'BCDE'[n]}{r - 2}"]
        sheet.put(f"F{r}", adjusted, "money")
        if before is not None:
            sheet.put(f"G{r}", sheet[f"F{r}"] / before[f"F{r}"] - 1, "percent")
    sheet.put("A11", "Quarter")
    for c in "EF":
        sheet.put(f"{c}11", sum_(sheet.area(f"{c}4:{c}9")), "total")
    sheet.put("A12", "EUR per USD")
    sheet.put("B12", fx[f"{'BCDE'[n]}4"], "rate")


def _keys(keys: Sheet, centres: Sheet, quarters: list[Sheet]) -> None:
    keys.put("A1", "Allocation keys", "title")
    keys.put_row("A2", ["Centre", "Heads", "First half (EUR)", "Key"], "head")
    for r in range(3, 9):
        keys.put(f"A{r}", centres[f"A{r - 1}"])
        keys.put(f"B{r}", centres[f"C{r - 1}"])
        keys.put(f"C{r}", quarters[0][f"F{r + 1}"] + quarters[1][f"F{r + 1}"], "money")
    for r in range(3, 9):
        keys.put(f"D{r}", keys[f"C{r}"] / sum_(keys.area("$C$3:$C$8")), "percent")


def ask(book: Book) -> Questions:
    q = Questions(book)
    group, first, second, third, fourth, fx, centres, adjustments, old, keys, checks = book.sheets
    q.value(group, "F7", "What does Pune cost in the year?")
    q.value(second, "F11", "What is the quarter's cost with charges, over all centres?")
    q.value(third, "B8", "What is Osaka's local cost?")
    q.value(centres, "E4", "What is Austin's R&D charge?")
    q.value(checks, "B7", "What is the R&D weighted by heads?")
    q.value(old, "B6", "What is the yearly cost of the three old projects together?")
    q.value(third, "E7", "What number is in cell E7?")
    q.value(group, "G10", "What is the group total at budget rates?")
    q.address(
        adjustments, "D6", "Which cell holds the adjustment of Osaka for Q3 2026?", row=["Osaka"], column=["Q3 2026"]
    )
    q.address(
        fourth,
        "G9",
        "Which cell holds the change of Lagos against the quarter before?",
        row=["Lagos"],
        column=["Change"],
    )
    q.trace(second, "F7", "Which cells, on any worksheet, does F7 refer to directly?")
    q.trace(group, "D8", "Which cells, on any worksheet, does Osaka's Q3 figure (D8) refer to directly?")
    q.trace(
        first,
        "E9",
        "What does Lagos's cost in EUR (E9) depend on, on any worksheet? List all cells, direct or not.",
        "all",
    )
    q.trace(third, "G5", "Which cells does the change of Kraków (G5) refer to directly?")
    q.impact(old, "B3", "If the cost in B3 changes, which cells refer to it directly?")
    q.impact(fx, "D4", "Which cells, on any worksheet, refer directly to the rate in D4?")
    q.impact(
        adjustments, "E7", "Which cells change if Lagos's adjustment in E7 changes? List all, direct or not.", "all"
    )
    q.impact(keys, "C8", "Which cells refer directly to C8?")
    q.hardcode(second, "D4:F9", "Which cells of D4:F9 are typed numbers instead of the column's formula?")
    q.hardcode(third, "D4:G9", "Which cells of D4:G9 are typed numbers instead of the column's formula?")
    q.hardcode(fourth, "D4:G9", "Which cells of D4:G9 are typed numbers instead of the column's formula?")
    q.hardcode(keys, "B3:D8", "Which keys or other cells in B3:D8 were typed over the formula?")
    return q

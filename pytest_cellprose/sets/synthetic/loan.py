"""A five-year loan with a level payment, one extra repayment a year, and payments by hand after a holiday."""

from __future__ import annotations

from datetime import date
from random import Random

from pytest_cellprose.sets.synthetic.ask import Questions
from pytest_cellprose.sets.synthetic.book import Book
from pytest_cellprose.sets.synthetic.functions import edate, max_, pmt, round_, sum_, sumif, year


def build(seed: int = 2) -> Questions:
    random = Random(seed)
    book = Book("Machine loan")
    terms = book.sheet("Terms")
    schedule = book.sheet("Schedule", overrides={"D27": 4100, "D28": 4100, "E41": 575.25, "D52": 4450})

    terms.put("A1", "Loan for the laser cutter", "title")
    terms.put("A3", "Amount")
    terms.put("B3", 240000, "money")
    terms.put("A4", "Yearly rate")
    terms.put("B4", 0.0465, "percent")
    terms.put("A5", "Months")
    terms.put("B5", 60)
    terms.put("A6", "First payment")
    terms.put("B6", date(2025, 3, 15), "date")
    terms.put("A7", "Arrangement fee")
    terms.put("B7", 1950, "money")
    amount = book.named_cell("LoanAmount", terms, "$B$3")
    terms.put("A8", "Monthly rate")
    terms.put("B8", terms["B4"] / 12, "rate")
    rate = book.named_cell("MonthlyRate", terms, "$B$8")
    terms.put("A9", "Level payment")
    terms.put("B9", round_(-pmt(rate, terms["B5"], amount), 2), "money")
    payment = book.named_cell("Payment", terms, "$B$9")
    terms.comments["B4"] = "Fixed for the whole term"
    terms.widths = {"A": 18, "B": 14}

    schedule.put("A1", "Repayment schedule", "title")
    heads = ["No.", "Due", "Opening balance", "Payment made", "Interest", "Principal", "Extra", "Closing balance"]
    schedule.put_row("A3", heads, "head")
    for n in range(1, 61):
        r = n + 3
        schedule.put(f"A{r}", n)
        if n == 1:
            schedule.put("B4", terms["B6"], "date")
            schedule.put("C4", amount, "money")
        else:
            schedule.put(f"B{r}", edate(schedule[f"B{r - 1}"], 1), "date")
            schedule.put(f"C{r}", schedule[f"H{r - 1}"], "money")
        schedule.put(f"D{r}", payment, "money")
        schedule.put(f"E{r}", round_(schedule[f"C{r}"] * rate, 2), "money")
        schedule.put(f"F{r}", schedule[f"D{r}"] - schedule[f"E{r}"], "money")
        schedule.put(f"G{r}", random.randrange(500, 2500, 50) if n % 12 == 0 else 0, "money")
        schedule.put(f"H{r}", max_(0, schedule[f"C{r}"] - schedule[f"F{r}"] - schedule[f"G{r}"]), "money")
        schedule.put(f"I{r}", year(schedule[f"B{r}"]))
    schedule.put("I3", "Year", "head")
    schedule.hidden_columns = ["I"]
    schedule.put("A65", "Total")
    for c in "DEFG":
        schedule.put(f"{c}65", sum_(schedule.area(f"{c}4:{c}63")), "total")
    schedule.widths = {"B": 12, "C": 16, "D": 14, "H": 16}

    terms.put_row("A12", ["Calendar year", "Interest paid", "Principal repaid"], "head")
    for r, y in enumerate(range(2025, 2031), 13):
        terms.put(f"A{r}", y)
        for c, source in (("B", "E"), ("C", "F")):
            found = sumif(schedule.area("$I$4:$I$63"), terms[f"$A{r}"], schedule.area(f"{source}$4:{source}$63"))
            terms.put(f"{c}{r}", found, "money")
    terms.put("A19", "Total cost of the loan")
    terms.put("B19", sum_(terms.area("B13:B18")) + terms["B7"], "total")
    return ask(book)


def ask(book: Book) -> Questions:
    q = Questions(book)
    terms, schedule = book.sheets
    q.value(terms, "B9", "What is the level payment per month?")
    q.value(terms, "B15", "How much interest is paid in the calendar year 2027?")
    q.value(schedule, "H27", "What is the closing balance after payment no. 24?")
    q.value(schedule, "B40", "On which date is payment no. 37 due?", kind="date")
    q.value(terms, "B4", "What is the yearly rate of the loan, in percent?", unit="percent")
    q.value(schedule, "F65", "How much principal is repaid in total over the schedule?")
    q.value(schedule, "C50", "What number is in cell C50?")
    q.address(terms, "C16", "Which cell holds the principal repaid in 2028?", row=["2028"], column=["Principal repaid"])
    q.address(
        schedule, "E65", "Which cell holds the total interest of the schedule?", row=["Total"], column=["Interest"]
    )
    q.address(terms, "B7", "Which cell holds the fee of 1,950?")
    q.trace(schedule, "H20", "Which cells does the formula in H20 refer to directly?")
    q.trace(
        terms,
        "B9",
        "Which cells does the level payment in B9 depend on? List all, also those behind other formulas.",
        "all",
    )
    q.trace(terms, "B15", "Which cells does the formula in B15 (interest paid in 2027) refer to directly?")
    q.impact(schedule, "E63", "Which cells' formulas refer directly to the interest of the last payment (E63)?")
    q.impact(
        schedule,
        "G63",
        "If the extra repayment in G63 changes, which cells change, directly or indirectly? List all.",
        "all",
    )
    q.hardcode(
        schedule, "D4:D63", "Which payments made (D4:D63) are typed numbers where the other rows have a formula?"
    )
    q.hardcode(
        schedule, "E4:F63", "In the columns Interest and Principal (E4:F63), which cells are typed over the formula?"
    )
    q.hardcode(
        schedule,
        "H4:H63",
        "Which closing balances in H4:H63 are typed over the formula? Answer with an empty list if there are none.",
    )
    return q

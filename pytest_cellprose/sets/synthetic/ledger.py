"""A year's journal of some 2,200 entries, with a chart of accounts and a trial balance: the large one."""

from __future__ import annotations

from datetime import date, timedelta
from random import Random

from pytest_cellprose.sets.synthetic.ask import Questions
from pytest_cellprose.sets.synthetic.book import Book
from pytest_cellprose.sets.synthetic.functions import count, index, match, month, round_, sum_, sumif, sumifs, vlookup

ACCOUNTS = (
    (1000, "Bank", "asset"), (1200, "Receivables", "asset"), (1400, "Prepaid expenses", "asset"),
    (1600, "Machinery", "asset"), (2000, "Payables", "liability"), (2200, "Accruals", "liability"),
    (2500, "Bank loan", "liability"), (3000, "Share capital", "equity"), (4000, "Product sales", "income"),
    (4100, "Service income", "income"), (4200, "Licence income", "income"), (5000, "Materials", "cost"),
    (5100, "Freight", "cost"), (5200, "Subcontractors", "cost"), (6000, "Wages", "cost"), (6100, "Rent", "cost"),
    (6200, "Electricity", "cost"), (6300, "Insurance", "cost"), (6400, "Travel", "cost"), (6500, "Telephone", "cost"),
    (6600, "Legal advice", "cost"), (6700, "Repairs", "cost"), (6800, "Advertising", "cost"),
    (6900, "Bank fees", "cost"),
)  # fmt: skip
TEXTS = (
    "Invoice {}", "Credit note {}", "Direct debit {}", "Transfer {}", "Card payment {}", "Standing order {}",
    "Correction of entry {}",
)  # fmt: skip
ENTRIES = 2190
OVERRIDES = {"G118": 41.3, "G119": 41.3, "G640": 0, "G1207": 312.55, "G1950": 18.75, "H877": 1045.9, "I1500": 250000}


def build(seed: int = 7) -> Questions:
    random = Random(seed)
    book = Book("General ledger 2025")
    accounts = book.sheet("Accounts")
    journal = book.sheet("Journal", overrides=OVERRIDES)
    balance = book.sheet("Trial balance")

    accounts.put_row("A1", ["Account", "Account name", "Class", "VAT rate"], "head")
    for r, (number, name, kind) in enumerate(ACCOUNTS, 2):
        rate = 0.2 if kind in ("income", "cost") and name not in ("Wages", "Insurance", "Bank fees") else 0
        accounts.put_row(f"A{r}", [number, name, kind])
        accounts.put(f"D{r}", rate, "percent")
    chart = book.name("Chart", accounts, "$A$2:$D$25")
    accounts.widths = {"B": 20}

    heads = ["Entry", "Date", "Account", "Account name", "Text", "Net", "VAT", "Gross", "Running total"]
    journal.put_row("A1", heads, "head")
    days = sorted(random.randrange(365) for _ in range(ENTRIES))
    for r, day in enumerate(days, 2):
        journal.put(f"A{r}", 100000 + r)
        journal.put(f"B{r}", date(2025, 1, 1) + timedelta(days=day), "date")
        journal.put(f"C{r}", random.choice(ACCOUNTS)[0])
        journal.put(f"D{r}", vlookup(journal[f"C{r}"], chart, 2))
        journal.put(f"E{r}", random.choice(TEXTS).format(random.randrange(10000, 99999)))
        journal.put(f"F{r}", random.randrange(-60000, 250000) / 100, "money")
        journal.put(f"G{r}", round_(journal[f"F{r}"] * vlookup(journal[f"C{r}"], chart, 4), 2), "money")
        journal.put(f"H{r}", journal[f"F{r}"] + journal[f"G{r}"], "money")
        running = journal[f"H{r}"] if r == 2 else journal[f"I{r - 1}"] + journal[f"H{r}"]
        journal.put(f"I{r}", running, "money")
    last = ENTRIES + 1
    journal.widths = {"B": 12, "D": 18, "E": 24, "I": 14}
    journal.comments["I1500"] = "Balance as confirmed by the bank"

    balance.put("A1", "Trial balance 2025", "title")
    balance.put_row("A3", ["Account", "Account name", "Net total", "VAT total", "First half", "Second half"], "head")
    column = {c: journal.area(f"${c}$2:${c}${last}") for c in "BCFG"}
    for r, (number, _, _) in enumerate(ACCOUNTS, 4):
        balance.put(f"A{r}", number)
        balance.put(f"B{r}", index(accounts.area("$B$2:$B$25"), match(balance[f"A{r}"], accounts.area("$A$2:$A$25"))))
        balance.put(f"C{r}", sumif(column["C"], balance[f"$A{r}"], column["F"]), "money")
        balance.put(f"D{r}", sumif(column["C"], balance[f"$A{r}"], column["G"]), "money")
        early = sumifs(column["F"], column["C"], balance[f"$A{r}"], column["B"], "<45839")
        balance.put(f"E{r}", early, "money")
        balance.put(f"F{r}", balance[f"C{r}"] - balance[f"E{r}"], "money")
    end = 3 + len(ACCOUNTS)
    balance.put(f"A{end + 1}", "All accounts")
    for c in "CDEF":
        balance.put(f"{c}{end + 1}", sum_(balance.area(f"{c}4:{c}{end}")), "total")
    balance.put(f"A{end + 3}", "Entries counted")
    balance.put(f"C{end + 3}", count(journal.area("A:A")), "whole")
    balance.put(f"A{end + 4}", "Month of last entry")
    balance.put(f"C{end + 4}", month(journal[f"B{last}"]))
    balance.put(f"A{end + 5}", "Difference to journal")
    balance.put(f"C{end + 5}", round_(balance[f"C{end + 1}"] - sum_(journal.area("F:F")), 2), "money")
    balance.widths = {"A": 22, "B": 20, "C": 14, "D": 14, "E": 14, "F": 14}
    return ask(book)


def ask(book: Book) -> Questions:
    q = Questions(book)
    _, journal, balance = book.sheets
    q.value(balance, "C15", "What is the net total of account 5000 (Materials)?")
    q.value(balance, "C30", "How many entries are counted?")
    q.value(balance, "D28", "What is the VAT total over all accounts?")
    q.value(journal, "H1234", "What is the gross amount of entry 101234?")
    q.value(journal, "D77", "Under which account name was entry 100077 posted?")
    q.value(journal, "B2026", "What is the date of entry 102026?", kind="date")
    q.value(journal, "I2191", "What is the running total after the last entry, 102191?")
    q.value(journal, "E1000", "What text is in cell E1000?")
    q.address(journal, "F512", "Which cell holds the net amount of entry 100512?", row=["100512"], column=["Net"])
    q.address(balance, "E19", "Which cell holds the first half of Rent?", row=["Rent"], column=["First half"])
    q.address(journal, "A1801", "Which cell holds the entry number 101801?")
    q.trace(journal, "I1001", "Which cells does the running total in I1001 refer to directly?")
    q.trace(journal, "G300", "Which cells, on any worksheet, does the VAT in G300 refer to directly?")
    q.trace(balance, "F20", "Which cells does the second half of Electricity (F20) refer to directly?")
    q.impact(journal, "C1500", "If the account in C1500 is changed, which cells of any worksheet refer to it directly?")
    q.impact(
        journal, "I2185", "Which cells depend on the running total in I2185, directly or indirectly? List all.", "all"
    )
    q.hardcode(journal, "G2:G2191", "Which VAT amounts in G2:G2191 are typed numbers instead of the formula?")
    q.hardcode(journal, "H2:I2191", "Which cells in the columns Gross and Running total (H2:I2191) are typed in?")
    return q

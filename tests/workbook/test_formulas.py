"""The scanner and what is built on it, against openpyxl and against what Excel documents."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl.formula.translate import Translator, TranslatorError

from pytest_cellprose.workbook.displayed import display
from pytest_cellprose.workbook.formulas import (
    Reference,
    Room,
    is_dynamic,
    pattern,
    references,
    room,
    structured_reference,
    tokens,
    translate,
)
from pytest_cellprose.workbook.refs import MAX_COLUMN, MAX_ROW, Range, cell_name, column_letters

rows = st.integers(1, MAX_ROW)
columns = st.integers(1, MAX_COLUMN)
mark = st.sampled_from(["", "$"])
cells = st.builds(lambda a, c, b, r: f"{a}{column_letters(c)}{b}{r}", mark, columns, mark, rows)
areas = st.one_of(
    cells,
    st.builds("{}:{}".format, cells, cells),
    st.builds(lambda a, c, b, d: f"{a}{column_letters(c)}:{b}{column_letters(d)}", mark, columns, mark, columns),
    st.builds(lambda a, r, b, s: f"{a}{r}:{b}{s}", mark, rows, mark, rows),
)
sheets = st.sampled_from(["", "Sheet1!", "'Q1 2024'!", "'it''s A1'!", "[1]Data!", "'[2]My A1'!", "First:Last!"])
operands = st.one_of(
    st.builds(str.__add__, sheets, areas),
    st.sampled_from(
        [
            '"A1 ""B2"""',
            "12.5",
            "1E5",
            "LOG10(A5)",
            "XFE1",
            "R1C1",
            "Rate_2024.x",
            "T[[#This Row],[A1]]",
            "TRUE",
            "#N/A",
        ]
    ),
)
formulas = st.lists(operands, min_size=1, max_size=5).flatmap(
    lambda parts: st.sampled_from(["+", ",", "&", "<=", " - ", "*("]).map(lambda mark: mark.join(parts))
)


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])) | formulas)
def test_tokens_give_the_text_back(text: str) -> None:
    assert "".join(token.sheet + token.text for token in tokens(text)) == text


@given(formulas, st.integers(-5, 400), st.integers(-5, 60))
def test_translate_agrees_with_openpyxl(text: str, down: int, right: int) -> None:
    text = text.replace("XFE1", "Name")  # openpyxl takes columns beyond XFD for columns
    ours = translate(text, down, right)
    origin, target = (10, 10), (10 + down, 10 + right)
    try:
        theirs = Translator(f"={text}", cell_name(*origin)).translate_formula(cell_name(*target))
    except (TranslatorError, ValueError):  # raised where a reference leaves the worksheet at the top or left
        assert "#REF!" in ours
        return
    if "#REF!" not in ours:  # it writes XFE1 and A1048577 where Excel writes #REF!
        assert ours == theirs[1:]


@given(formulas, st.integers(0, 400), st.integers(0, 60))
def test_translate_there_and_back(text: str, down: int, right: int) -> None:
    there = translate(text, down, right)
    if there.count("#REF!") == text.count("#REF!"):
        assert translate(there, -down, -right) == text


@given(formulas, st.integers(-9, 400), st.integers(-9, 60))
def test_pattern_is_what_filling_keeps(text: str, down: int, right: int) -> None:
    filled = translate(text, down, right)
    if filled.count("#REF!") == text.count("#REF!"):
        assert pattern(filled, 10 + down, 10 + right) == pattern(text, 10, 10)


@given(formulas, formulas)
def test_equal_patterns_mean_equal_formulas(one: str, other: str) -> None:
    assert (pattern(one, 7, 7) == pattern(other, 7, 7)) == (one == other)


@pytest.mark.parametrize(
    ("text", "down", "right", "expected"),
    [
        ("B3*(1+Inputs!$B$4)", 0, 1, "C3*(1+Inputs!$B$4)"),
        ("SUM(A$1:A1)", 2, 1, "SUM(B$1:B3)"),
        ("SUM(A:A)+SUM($1:1)", 1, 1, "SUM(B:B)+SUM($1:2)"),
        ("A1", -1, 0, "#REF!"),
        ("Sheet1!A1:B2", 0, -1, "Sheet1!#REF!"),
        ("XFD1", 0, 1, "#REF!"),
        ("$XFD1", 0, 1, "$XFD1"),
        ("A1048576", 1, 0, "#REF!"),
        ("LOG10(A1)", 1, 0, "LOG10(A2)"),
        ("LOG10+A1", 1, 0, "LOG11+A2"),  # without a parenthesis LOG10 is a cell
        ("XFE1+ZZZ2024+R1C1+RC", 1, 1, "XFE1+ZZZ2024+R1C1+RC"),
        ("A0+A1048577", 1, 1, "A0+A1048577"),
        ('"A1"&A1', 1, 0, '"A1"&A2'),
        ("'A1 B2'!A1", 1, 0, "'A1 B2'!A2"),
        ("[1]A1x!A1", 1, 0, "[1]A1x!A2"),
        ("T[A1]+T[[#This Row],[B2]:[C3]]", 1, 1, "T[A1]+T[[#This Row],[B2]:[C3]]"),
        ("T['[A1'] B2]+A1", 1, 1, "T['[A1'] B2]+B2"),
        ("A1#+_xlfn.ANCHORARRAY(A1)", 1, 0, "A2#+_xlfn.ANCHORARRAY(A2)"),
        ("Überschuss1+ÅB2+A1", 1, 0, "Überschuss1+ÅB2+A2"),
        ("Rate.A1+A1_B2+A1.x", 1, 0, "Rate.A1+A1_B2+A1.x"),
        ("1E5+.5E1", 3, 3, "1E5+.5E1"),
        ("A1:INDEX(B:B,3)", 1, 1, "B2:INDEX(C:C,3)"),
        ("A1:LOG10(B1)", 1, 0, "A2:LOG10(B2)"),
        ("#REF!A1+#REF!", 1, 0, "#REF!A2+#REF!"),
        ("a1", 1, 0, "A2"),
    ],
)
def test_translate_moves_relative_parts_only(text: str, down: int, right: int, expected: str) -> None:
    assert translate(text, down, right) == expected


@pytest.mark.parametrize(
    ("one", "at", "other", "where", "same"),
    [
        ("B3*2", (3, 3), "C3*2", (3, 4), True),
        ("$B3*2", (3, 3), "$B4*2", (4, 9), True),
        ("$B3*2", (3, 3), "$C3*2", (3, 4), False),
        ("SUM(A:A)", (1, 2), "SUM(B:B)", (9, 3), True),
        ("SUM(1:1)", (2, 1), "SUM(4:4)", (5, 7), True),
        ('"B3"', (3, 3), '"C3"', (3, 4), False),
        ("'B3'!A1", (1, 1), "'C3'!B1", (1, 2), False),
        ("T[B3]", (3, 3), "T[C3]", (3, 4), False),
        ("A1", (1, 2), "A:A", (1, 2), False),
    ],
)
def test_pattern_examples(one: str, at: tuple[int, int], other: str, where: tuple[int, int], same: bool) -> None:
    assert (pattern(one, *at) == pattern(other, *where)) is same


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("_xlfn.STDEV.S(A1:A3)", "STDEV.S(A1:A3)"),
        ("_xlfn._xlws.SORT(A1:A3)", "SORT(A1:A3)"),
        ("_xlfn.LET(_xlpm.x,A1,_xlpm.x+1)", "LET(x,A1,x+1)"),
        ("_xlfn.BYROW(A1:B2,_xleta.SUM)", "BYROW(A1:B2,SUM)"),
        ("SUM(_xlfn.ANCHORARRAY(D2))", "SUM(D2#)"),
        ("SUM(_xlfn.ANCHORARRAY('My sheet'!D2))", "SUM('My sheet'!D2#)"),
        ("_xlfn.SINGLE(A1:A3)*2", "@A1:A3*2"),
        ("_xlfn.SINGLE('My sheet'!A:A)", "@'My sheet'!A:A"),
        ("_xlfn.SINGLE(Rate)+_xlfn.SINGLE(T[Qty])", "@Rate+@T[Qty]"),
        ("_xlfn.SINGLE(INDEX(A1:A3,(2)))", "@INDEX(A1:A3,(2))"),
        ("_xlfn.SINGLE(A1:A3+(1))", "@(A1:A3+(1))"),
        ("_xlfn.SINGLE(_xlfn.ANCHORARRAY(A1))", "@A1#"),
        ("_xlfn.SINGLE(_xlfn.SINGLE(A1:A3))", "@@A1:A3"),
        ("SINGLE(A1)+_xlfn.X(1)", "SINGLE(A1)+X(1)"),
        ("_xlfn.SINGLE(A1", "SINGLE(A1"),
        ("_xlfn.ANCHORARRAY(A1+1)", "ANCHORARRAY(A1+1)"),
        ('"_xlfn.x"&A1', '"_xlfn.x"&A1'),
        ("T[[#This Row],[Qty]]*2", "[@Qty]*2"),
        ("T[[#This Row],[Unit price]]", "[@[Unit price]]"),
        ("SUM(T[[#This Row],[a]:[b]])", "SUM([@[a]:[b]])"),
        ("T[#This Row]", "[@]"),
        ("T[[#All],[a]]", "T[[#All],[a]]"),
        ("A1+\r\n B1", "A1+  B1"),
        ('"a\nb"', '"a b"'),
        ("A1+\n\nB1", "A1+ B1"),
    ],
)
def test_display(text: str, shown: str) -> None:
    assert display(text) == shown


def test_display_keeps_the_name_of_another_table() -> None:
    assert display("Sales[[#This Row],[Qty]]", own_table="Costs") == "Sales[@Qty]"
    assert display("Sales[[#This Row],[Qty]]", own_table="sales") == "[@Qty]"


def _ranges(text: str) -> list[tuple[str | None, str]]:
    return [(found.sheet, str(found.range)) for found in references(text)]


def test_references_of_every_kind() -> None:
    assert _ranges("SUM(A1:B2,$C$3)+'Q1 2024'!D4+(E5,F6)") == [
        (None, "A1:B2"),
        (None, "C3"),
        ("Q1 2024", "D4"),
        (None, "E5"),
        (None, "F6"),
    ]
    assert _ranges("Sheet1!A1:Sheet1!B3+A1:B2:C3") == [("Sheet1", "A1:B3"), (None, "A1:C3")]
    assert _ranges("B3:A1+A:B+2:3") == [(None, "A1:B3"), (None, "A:B"), (None, "2:3")]
    assert references("Jan:Dec!A1")[0][3:5] == ("Jan", "Dec")
    assert references("'Jan 1:Dec 1'!A1")[0][3:5] == ("Jan 1", "Dec 1")
    assert [(found.book, found.sheet) for found in references("[1]Data!A1+'C:\\x\\[b.xlsx]My'!A1+[2]!Rate")] == [
        ("1", "Data"),
        ("b.xlsx", "My"),
        ("2", None),
    ]
    assert references("[0]!Rate") == [Reference("name", "Rate")]
    assert [(found.kind, found.text) for found in references("Rate*T[x]+[@y]")] == [
        ("name", "Rate"),
        ("structured", "T[x]"),
        ("structured", "[@y]"),
    ]
    assert [found.spill for found in references("A1#+B1+_xlfn.ANCHORARRAY(C1)+D1")] == [
        True,
        False,
        True,
        False,
    ]


def test_an_intersection_keeps_its_parts() -> None:
    (found,) = references("SUM(A1:C3 B2:D4)")
    assert found.kind == "intersection"
    assert [part.range for part in found.parts] == [Range.parse("A1:C3"), Range.parse("B2:D4")]
    assert [found.kind for found in references("A1 + B2")] == ["range", "range"]


def test_what_is_no_reference() -> None:
    assert references('"A1"&12.5&TRUE&#REF!&Sheet1!#REF!&#REF!A1&{1,2;3,4}&PI()') == []
    assert references("_xlfn.LET(_xlpm.x,1,_xlpm.x)") == []


@pytest.mark.parametrize(
    ("text", "dynamic"),
    [
        ("OFFSET(A1,1,1)", True),
        ("sum(indirect(A1))", True),
        ("A1:INDEX(B:B,3)", True),
        ("INDEX(B:B,3):A1", True),
        ("INDEX(B:B,3)", False),
        ('"OFFSET("&A1', False),
        ("OFFSET_1+A1:B2", False),
        ("Sheet1!A1:Sheet1!B3", False),
    ],
)
def test_dynamic(text: str, dynamic: bool) -> None:
    assert is_dynamic(text) is dynamic


@pytest.mark.parametrize(
    ("text", "table", "items", "columns"),
    [
        ("T[]", "T", set(), ()),
        ("T[Qty]", "T", set(), ("Qty",)),
        ("[@Qty]", "", {"#this row"}, ("Qty",)),
        ("[@[Unit price]]", "", {"#this row"}, ("Unit price",)),
        ("T[@]", "T", {"#this row"}, ()),
        ("T[[#Headers],[#Data],[a]:[c]]", "T", {"#headers", "#data"}, ("a", "c")),
        ("T[[#This Row],[x'[y'] '#1]]", "T", {"#this row"}, ("x[y] #1",)),
        ("T['#1]", "T", set(), ("#1",)),
        ("T[[a]:[c]]", "T", set(), ("a", "c")),
        ("T[#Totals]", "T", {"#totals"}, ()),
    ],
)
def test_structured_reference(text: str, table: str, items: set[str], columns: tuple[str, ...]) -> None:
    assert structured_reference(text) == (table, items, columns)


@pytest.mark.parametrize("text", ["A1+1", "$A$1+B3", "B:C", "2:4", "XFD1048576", "SUM(B2:$D$9)*2", "1+1", "A$1+$B2"])
def test_a_formula_can_be_filled_as_far_as_its_room(text: str) -> None:
    """`room` against `translate`: one step further and a reference is gone."""
    limits = room(text)
    for limit, most, step, moved in (
        (limits.up, Room().up, -1, lambda n: (n, 0)),
        (limits.down, Room().down, 1, lambda n: (n, 0)),
        (limits.left, Room().left, -1, lambda n: (0, n)),
        (limits.right, Room().right, 1, lambda n: (0, n)),
    ):
        assert limits.holds(*moved(limit))
        assert "#REF!" not in translate(text, *moved(limit))
        if limit != most:
            assert not limits.holds(*moved(limit + step))
            assert "#REF!" in translate(text, *moved(limit + step))


def test_what_single_refers_to_is_the_same_in_both_spellings() -> None:
    for stored in ("_xlfn.SINGLE(A1:A3)*2", "_xlfn.SINGLE(Rate)", "_xlfn.SINGLE(INDEX(A1:A3,2))"):
        shown = [(found.kind, found.text) for found in references(display(stored))]
        assert shown == [(found.kind, found.text) for found in references(stored)]
        assert shown

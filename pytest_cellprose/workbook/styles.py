"""Number formats of cell styles (ECMA-376 part 1, §18.8)."""

from __future__ import annotations

from collections.abc import Mapping
from xml.parsers import expat

from pytest_cellprose.workbook.package import Attributes, Package, integer, main_names

BUILT_IN: Mapping[int, str] = {
    0: "General",
    1: "0",
    2: "0.00",
    3: "#,##0",
    4: "#,##0.00",
    5: '"$"#,##0_);("$"#,##0)',
    6: '"$"#,##0_);[Red]("$"#,##0)',
    7: '"$"#,##0.00_);("$"#,##0.00)',
    8: '"$"#,##0.00_);[Red]("$"#,##0.00)',
    9: "0%",
    10: "0.00%",
    11: "0.00E+00",
    12: "# ?/?",
    13: "# ??/??",
    14: "mm-dd-yy",
    15: "d-mmm-yy",
    16: "d-mmm",
    17: "mmm-yy",
    18: "h:mm AM/PM",
    19: "h:mm:ss AM/PM",
    20: "h:mm",
    21: "h:mm:ss",
    22: "m/d/yy h:mm",
    27: "[$-404]e/m/d",
    28: '[$-404]e"年"m"月"d"日"',
    29: '[$-404]e"年"m"月"d"日"',
    30: "m/d/yy",
    31: 'yyyy"年"m"月"d"日"',
    32: 'hh"時"mm"分"',
    33: 'hh"時"mm"分"ss"秒"',
    34: 'yyyy"年"m"月"',
    35: 'm"月"d"日"',
    36: "[$-404]e/m/d",
    37: "#,##0_);(#,##0)",
    38: "#,##0_);[Red](#,##0)",
    39: "#,##0.00_);(#,##0.00)",
    40: "#,##0.00_);[Red](#,##0.00)",
    41: '_(* #,##0_);_(* \\(#,##0\\);_(* "-"_);_(@_)',
    42: '_("$"* #,##0_);_("$"* \\(#,##0\\);_("$"* "-"_);_(@_)',
    43: '_(* #,##0.00_);_(* \\(#,##0.00\\);_(* "-"??_);_(@_)',
    44: '_("$"* #,##0.00_)_("$"* \\(#,##0.00\\)_("$"* "-"??_)_(@_)',
    45: "mm:ss",
    46: "[h]:mm:ss",
    47: "mmss.0",
    48: "##0.0E+0",
    49: "@",
    50: "[$-404]e/m/d",
    51: '[$-404]e"年"m"月"d"日"',
    52: 'yyyy"年"m"月"',
    53: 'm"月"d"日"',
    54: '[$-404]e"年"m"月"d"日"',
    55: 'yyyy"年"m"月"',
    56: 'm"月"d"日"',
    57: "[$-404]e/m/d",
    58: '[$-404]e"年"m"月"d"日"',
}
"""§18.8.30: the formats that files name by id alone; in the United States' and Taiwan's form where the standard
gives one for each country. All that matters here of 27 to 36 and 50 to 58 is that they are dates and times."""

_NAMES = main_names("numFmts", "numFmt", "cellXfs", "xf")


def read_number_formats(package: Package, part: str) -> list[str]:
    """The number format code of each cell style, by the index that cells give as ``s``."""
    custom: dict[int, str] = {}
    ids: list[int] = []
    # Differential and named styles have <numFmt> and <xf> too: only these two parents' children count.
    parent: str | None = None

    def start(name: str, attributes: Attributes) -> None:
        nonlocal parent
        kind = _NAMES.get(name)
        if kind == "xf" and parent == "cellXfs":
            ids.append(integer(attributes, "numFmtId"))
        elif kind == "numFmt" and parent == "numFmts":
            custom[integer(attributes, "numFmtId")] = attributes.get("formatCode", "General")
        elif kind in ("numFmts", "cellXfs"):
            parent = kind

    def end(name: str) -> None:
        nonlocal parent
        if _NAMES.get(name) == parent:
            parent = None

    def attach(parser: expat.XMLParserType) -> None:
        parser.StartElementHandler = start
        parser.EndElementHandler = end

    package.parse(part, attach)
    return [custom.get(each) or BUILT_IN.get(each, "General") for each in ids]

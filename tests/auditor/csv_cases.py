"""CSV files and what publisher and auditor must both read in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Columns = dict[str, list[str | None]]


@dataclass(frozen=True)
class Case:
    """A file, the keys of its ``[source]``, and its columns; None is a missing value."""

    data: str
    columns: Columns
    source: dict[str, Any] = field(default_factory=dict)


CSV_CASES = {
    "a space after each comma": Case("a, b\n1, x\n2, y\n", {"a": ["1", "2"], "b": ["x", "y"]}),
    "blanks kept": Case("a,b\n 1, x \n", {"a": [" 1"], "b": [" x "]}, {"trim": False}),
    "names keep their blanks too": Case("a, b\n1,x\n", {"a": ["1"], " b": ["x"]}, {"trim": False}),
    "inner blanks stay": Case("a\n  New  York \n", {"a": ["New  York"]}),
    "quoted values are trimmed": Case('a,b\n" x ","  "\n', {"a": ["x"], "b": [None]}),
    "a quote after a blank is a character": Case('a,b\n1, "x"\n', {"a": ["1"], "b": ['"x"']}),
    "nothing but blanks is missing": Case("a,b\n ,\t\n1,2\n", {"a": [None, "1"], "b": [None, "2"]}),
    "blanks are a value where they count": Case("a,b\n ,2\n", {"a": [" "], "b": ["2"]}, {"trim": False}),
    "words for a missing value": Case("a,b\n ?,? \n?,x\n", {"a": [None, None], "b": [None, "x"]}, {"nulls": ["?"]}),
    "such words where blanks count": Case("a,b\n ?, x\n", {"a": [None], "b": [" x"]}, {"nulls": ["?"], "trim": False}),
    "tabs and Unicode blanks": Case("a,b\n\tx\t,\u00a0y\u3000\n", {"a": ["x"], "b": ["y"]}),
    "a zero-width space is no blank": Case("a\n\u200bx\n", {"a": ["\u200bx"]}),
    "no header line": Case("1, x\n2, y\n", {"a": ["1", "2"], "b": ["x", "y"]}, {"header": ["a", "b"]}),
    "names given are taken as given": Case("1, x\n", {" a": ["1"], "b": ["x"]}, {"header": [" a", "b"]}),
    "semicolons": Case("a ; b\n1 ; x,y \n", {"a": ["1"], "b": ["x,y"]}, {"delimiter": ";"}),
    "tabs between fields": Case("a\tb\n 1\t\n", {"a": ["1"], "b": [None]}, {"delimiter": "\t"}),
}

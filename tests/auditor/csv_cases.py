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
    "an empty name, as pandas writes it": Case(
        ",name,age\n0,ann,3\n1,bob,4\n", {"column1": ["0", "1"], "name": ["ann", "bob"], "age": ["3", "4"]}
    ),
    "empty, repeated and numeric names": Case(
        '2019,a, "",a,a_2,\n1,2,3,4,5,6\n',
        {"2019": ["1"], "a": ["2"], '""': ["3"], "a_3": ["4"], "a_2": ["5"], "column6": ["6"]},
    ),
    "names that are the same without blanks": Case("a, a\n1,2\n", {"a": ["1"], "a_2": ["2"]}),
    "names that differ in blanks": Case("a, a\n1,2\n", {"a": ["1"], " a": ["2"]}, {"trim": False}),
    "a name that belongs to another column": Case("column2,\n1,2\n", {"column2": ["1"], "column2_2": ["2"]}),
    "a header line without the first name": Case(
        '\ufeff"age","age"\n"1",40,41\n"2",50,51\n',
        {"column1": ["1", "2"], "age": ["40", "50"], "age_2": ["41", "51"]},
        {"header": "short"},
    ),
    "quoted names": Case('"","a,b","a,b"\n1,2,3\n', {"column1": ["1"], "a,b": ["2"], "a,b_2": ["3"]}),
    "a name with a line end": Case('\n\n"a\nb",,"a\nb"\n1,2,3\n', {"a\nb": ["1"], "column2": ["2"], "a\nb_2": ["3"]}),
    "semicolons": Case("a ; b\n1 ; x,y \n", {"a": ["1"], "b": ["x,y"]}, {"delimiter": ";"}),
    "tabs between fields": Case("a\tb\n 1\t\n", {"a": ["1"], "b": [None]}, {"delimiter": "\t"}),
}

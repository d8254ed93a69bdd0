"""Wrong and odd calls of `shoal.anonymize`, and the sentence that each gets: what is wrong, where, and what to do."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import shoal
from shoal.errors import ShoalError
from tests.frames.frames import LIBRARIES, PEOPLE, TABLE, in_library, people, with_series

pytestmark = pytest.mark.compiled

GOOD: dict[str, Any] = {"k": 3, "person": "id", "quasi": ["age"]}
KNOWN = "'id', 'age', 'sex', 'ill'"

ARGUMENTS = [
    ({"k": 0}, "k: is 0; give at least 2, such as k=5, or leave it out"),
    ({"k": -1}, "k: is -1; give at least 2, such as k=5, or leave it out"),
    ({"k": 1}, "k: is 1; give at least 2, such as k=5, or leave it out"),
    ({"k": "5"}, "k: is text; give a whole number of at least 2, such as k=5"),
    ({"k": 1.5}, "k: is 1.5; give a whole number of at least 2, such as k=5"),
    ({"k": True}, "k: is True; give a whole number of at least 2, such as k=5"),
    ({"k": math.nan}, "k: is nan; give a whole number of at least 2, such as k=5"),
    ({"k": [5]}, "k: is of type list; give a whole number of at least 2, such as k=5"),
    ({"k": 61}, "k: is 61, but the frame has 60 rows, so nothing could be published; choose a k of at most 60, or give "
                "more rows"),
    ({"z": 0}, "z: is 0; give at least 1, such as z=5, or leave it out"),
    ({"m": 1.5}, "m: is 1.5; give a whole number of at least 1, such as m=2"),
    ({"quasi": []}, "quasi: names no column; name at least one, or leave it out"),
    ({"quasi": [0]}, f"quasi: no column is named 0; columns are named, not counted: {KNOWN}"),
    ({"quasi": {"age": 10}}, "quasi: is a dict; give names of columns only, and rules for each in a policy (policy=)"),
    ({"quasi": 0.5}, "quasi: is 0.5; give a list of names of columns"),
    ({"quasi": [["age"]]}, "quasi: has a name that is of type list; give names of columns"),
    ({"quasi": ["aeg"]}, "quasi: column 'aeg' does not exist; did you mean 'age'?"),
    ({"quasi": ["ids"]}, "quasi: column 'ids' does not exist; did you mean 'id'?"),
    ({"quasi": ["income"]}, f"quasi: column 'income' does not exist; known are {KNOWN}"),
    ({"quasi": ["age", "age"]}, "quasi: names 'age' twice; name it once"),
    ({"sensitive": "il"}, "sensitive: column 'il' does not exist; did you mean 'ill'?"),
    ({"carry": "id"}, "column 'id': is given two roles; give one"),
    ({"person": "ID"}, "person: column 'ID' does not exist; did you mean 'id'?"),
    ({"person": ["id"]}, "person: is of type list; give the name of one column"),
    ({"persn": "id"}, "persn: unknown argument; did you mean 'person'?"),
    ({"K": 3}, "K: unknown argument; did you mean 'k'?"),
    ({"xyz": "red"}, "xyz: unknown argument; known are person, time, attribute, items, quasi, sensitive, carry, k, "
                        "z, m, window, method, policy, intervals, key and the method's settings"),
    ({"deadline": 0}, "deadline: must be at least 1 arrival"),
    ({"l": 5, "sensitive": "ill"}, "l: is 5, but column 'ill' has 3 different values, so nothing could be published; "
                                   "choose a smaller l, or leave it out"),
    ({"window": 5}, 'window: is 5; give a duration as text, such as "1h"'),
    ({"window": "1h"}, "window: least-loss has none; leave it out, or give z for events"),
    ({"items": "ill", "quasi": None, "carry": "sex"}, "carry: k^m does not use column 'sex'; leave it out"),
    ({"method": "fad"}, 'method: must be one of "z-anonymity", "least-loss", "fads", "fads-varied", "fast", "k-varp", '
                        '"iot-anonymization", "castle", "k^m", "k^m-apriori", "flexible-k"; did you mean "fads"?'),
    ({"intervals": "txt"}, 'intervals: must be one of "text", "columns", "middle", "interval", "struct"; did you mean '
                           '"text"?'),
    ({"policy": 5}, "policy: is 5; give the path of a policy, or its content as a dict"),
    ({"policy": "none.toml"}, "person, quasi, k: the policy states it; give the policy alone"),
    ({"k": "5", "quasi": [], "persn": "id"}, "k: is text; give a whole number of at least 2, such as k=5\n"
                                             "quasi: names no column; name at least one, or leave it out\n"
                                             "persn: unknown argument; did you mean 'person'?"),
]  # fmt: skip


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(("keywords", "sentence"), ARGUMENTS, ids=[str(keywords) for keywords, _ in ARGUMENTS])
def test_arguments(library: str, keywords: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ShoalError) as caught:
        shoal.anonymize(people(library), **{**GOOD, **keywords})
    assert str(caught.value) == sentence


FRAME = "give a data frame of pandas, polars or Arrow"
NOT_FRAMES: dict[str, tuple[Callable[[], Any], str]] = {
    "nothing": (lambda: None, f"frame: is of type NoneType; {FRAME}"),
    "a list": (lambda: TABLE.to_pylist(), f"frame: is of type list; {FRAME}, such as pandas.DataFrame(rows)"),
    "a dict": (lambda: TABLE.to_pydict(), f"frame: is of type dict; {FRAME}, such as pandas.DataFrame(columns)"),
    "an array": (lambda: np.zeros((9, 2)), f"frame: is of type ndarray; {FRAME}, such as pandas.DataFrame(array, "
                                           'columns=["age", …])'),
    "a path": (lambda: "people.csv", f"frame: is of type str; {FRAME}, such as pandas.read_csv(path), or let `shoal "
                                     "init` write a policy for the file"),
    "a Series": (lambda: pd.Series([1, 2]), f"frame: is of type Series; {FRAME}, such as series.to_frame()"),
    "a polars Series": (lambda: pl.Series([1]), f"frame: is of type Series; {FRAME}, such as series.to_frame()"),
    "an Arrow column": (lambda: TABLE.column("age"), f"frame: is of type ChunkedArray; {FRAME}, such as pyarrow.table("
                                                     '{"name": column})'),
    "groups": (lambda: TABLE.to_pandas().groupby("sex"), f"frame: is of type DataFrameGroupBy; {FRAME}"),
}  # fmt: skip


@pytest.mark.parametrize(("make", "sentence"), NOT_FRAMES.values(), ids=NOT_FRAMES)
def test_what_is_not_a_frame(make: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(ShoalError) as caught:
        shoal.anonymize(make(), k=3)
    assert str(caught.value) == sentence


NO_ROWS = "frame: has no rows, so there is nobody to anonymize; check how it was read or filtered"
ONE_ROW = "frame: has 1 row, and one person cannot be hidden among others; give more rows"
FEW = ("k: is 5 (chosen by shoal), but the frame has 4 people, so nothing could be published; choose a k of at most 4, "
       "or give more people")  # fmt: skip
NAMED = {"person": "id", "quasi": ["age"]}
FEW_ROWS = FEW.replace("people", "rows")


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    ("rows", "keywords", "sentence"),
    [
        (0, {}, NO_ROWS), (0, NAMED, NO_ROWS), (1, {}, ONE_ROW), (1, NAMED, ONE_ROW),
        (4, {}, FEW_ROWS), (4, NAMED, FEW),
    ],
    ids=["none", "none, named", "one", "one, named", "four", "four, named"],
)  # fmt: skip
def test_too_few_rows(library: str, rows: int, keywords: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ShoalError) as caught:
        shoal.anonymize(people(library)[:rows] if library != "pyarrow" else TABLE.slice(0, rows), **keywords)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("library", LIBRARIES)
def test_several_rows_of_few_people(library: str) -> None:
    frame = people(library, id=[row % 4 for row in range(PEOPLE)])
    for given in ({"k": 5}, {"policy": shoal.anonymize(people(library), **{**GOOD, "k": 5}).policy}):
        with pytest.raises(ShoalError, match="k: is 5, but the frame has 4 people, so nothing could be published"):
            shoal.anonymize(frame, **({**GOOD, **given} if "k" in given else given))


NUMBERS = [20.0 + row % 30 for row in range(PEOPLE - 1)]
INFINITE = ("column 'c': 1 value is infinite, which no range can cover; put a number or a missing value there, or "
            "remove the column")  # fmt: skip
EQUAL = ("column 'c': all its values are equal, so nothing can be generalized; leave it out, or publish it unchanged "
         "(carry)")  # fmt: skip
COLUMNS: dict[str, tuple[Any, str]] = {
    "infinity": (pa.array([math.inf, *NUMBERS]), INFINITE),
    "minus infinity": (pa.array([-math.inf, *NUMBERS]), INFINITE),
    "infinities": (
        pa.array([math.inf, *NUMBERS[1:], -math.inf]),
        "column 'c': 2 values are infinite, which no range can cover; put a number or a missing value there, or remove "
        "the column",
    ),
    "one number": (pa.array([1] * PEOPLE), EQUAL),
    "one truth": (pa.array([True] * PEOPLE), EQUAL),
    "gaps only": (pa.array([None] * PEOPLE, pa.float64()), "column 'c': has no values; leave it out"),
    "durations": (
        pa.array(range(PEOPLE), pa.duration("us")), "column 'c': has durations; convert them to numbers, such as hours"
    ),
    "times of day": (
        pa.array([dt.time(row % 24) for row in range(PEOPLE)]),
        "column 'c': has times of day; convert them to numbers, such as hours, or to text",
    ),
    "bytes": (pa.array([b"x", b"y"] * 30), "column 'c': has bytes; decode them to text"),
}  # fmt: skip


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(("column", "sentence"), COLUMNS.values(), ids=COLUMNS)
def test_columns_that_cannot_be_generalized(library: str, column: Any, sentence: str) -> None:
    with pytest.raises(ShoalError) as caught:
        shoal.anonymize(people(library, c=column), **{**GOOD, "quasi": ["c"]})
    assert str(caught.value) == sentence


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
@pytest.mark.parametrize("column", [[[1, 2]] * PEOPLE, [{"a": 1, "b": 2}] * PEOPLE], ids=["lists", "fields"])
def test_nested_columns_cannot_be_generalized(library: str, column: Any) -> None:
    with pytest.raises(ShoalError) as caught:
        shoal.anonymize(people(library, c=pa.array(column)), **{**GOOD, "quasi": ["c"]})
    assert str(caught.value) == ("column 'c': has several values in each row; give each a column, or publish lists on "
                                 "their own (items=)")  # fmt: skip


@pytest.mark.parametrize("library", LIBRARIES)
def test_an_infinite_number_is_told_without_arguments_too(library: str) -> None:
    with pytest.raises(ShoalError) as caught:
        shoal.anonymize(people(library, c=pa.array([math.inf, *NUMBERS])))
    assert str(caught.value) == INFINITE


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_smaller_k_is_no_advice_where_a_flag_is_named_as_the_person(library: str) -> None:
    frame = people(library, id=[row % 2 for row in range(PEOPLE)])
    with pytest.raises(ShoalError) as caught:
        shoal.anonymize(frame, person="id", quasi=["age"])
    assert str(caught.value) == (
        "k: is 5 (chosen by shoal), but the frame has 2 people, so nothing could be published; if column 'id' does not "
        "say whose row it is, name another, or give more people"
    )


@pytest.mark.parametrize("library", LIBRARIES)
def test_nobody_is_named(library: str) -> None:
    with pytest.raises(ShoalError, match="column 'id': has no values, so it cannot say whose row it is; name another"):
        shoal.anonymize(people(library, id=pa.array([None] * PEOPLE, pa.int64())), **GOOD)


@pytest.mark.parametrize("library", LIBRARIES)
def test_if_no_column_can_serve_every_column_has_a_reason(library: str) -> None:
    table = pa.table({
        "id": range(PEOPLE), "name": [f"Jane {row}" for row in range(PEOPLE)], "note": ["a"] * PEOPLE,
        "diagnosis": ["flu", "gout"] * 30, "stay": pa.array(range(PEOPLE), pa.duration("us")),
        "remark": pa.array([None] * PEOPLE, pa.string()),
    })  # fmt: skip
    with pytest.raises(ShoalError) as caught:
        shoal.anonymize(in_library(library, table), person="id", k=3)
    assert str(caught.value).splitlines() == [
        "quasi: no column can serve as a quasi-identifier; name one of these, or change it so that it can:",
        "column 'id': taken for person: as given",
        "column 'name': it names people directly",
        "column 'note': all its values are equal",
        "column 'diagnosis': taken for sensitive: its name or its values; published unchanged, so only if nobody can "
        "know it beforehand",
        "column 'stay': its values are neither numbers, moments nor text; convert them",
        "column 'remark': it has no values",
    ]


ONLY_PANDAS: dict[str, tuple[Callable[[], pd.DataFrame], str]] = {
    "several types": (lambda: with_series(c=pd.Series([1, "Jane"] * 30, dtype=object)),
                      "column 'c': has values of several types (int, str); convert it to one"),
    "long numbers": (lambda: with_series(c=[2**70 + row for row in range(PEOPLE)]),
                     "column 'c': has whole numbers of more than 64 bits; convert it to text, such as with "
                     ".astype(str)"),
    "complex": (lambda: with_series(c=[1j] * PEOPLE),
                "column 'c': has values of type complex; convert it to numbers, moments or text, or leave it out"),
    "intervals": (lambda: with_series(c=pd.interval_range(0, PEOPLE)).rename(columns={"age": "c", "c": "age"}),
                  "column 'age': has values of an unusual type; convert them to text"),
    "levels of names": (lambda: pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")])),
                        "columns: have names of several levels; give each one name, such as with frame.columns = "
                        '["_".join(map(str, names)) for names in frame.columns]'),
    "one name twice": (lambda: pd.DataFrame([[1, 2]], columns=["x", "x"]),
                       "columns 'x': occur more than once; rename them"),
    "one name, two types": (lambda: pd.DataFrame([[1, 2]], columns=pd.Index([1, "1"], dtype=object)),
                            "columns '1': occur more than once; rename them"),
    "no columns": (lambda: pd.DataFrame(index=range(5)),
                   "frame: has no columns; give a frame with a column for each thing that is known of a person"),
}  # fmt: skip


@pytest.mark.parametrize(("make", "sentence"), ONLY_PANDAS.values(), ids=ONLY_PANDAS)
def test_odd_frames_of_pandas(make: Callable[[], pd.DataFrame], sentence: str) -> None:
    with pytest.raises(ShoalError) as caught:
        shoal.anonymize(make(), **GOOD)
    assert str(caught.value) == sentence
    assert "Jane" not in str(caught.value)


def test_a_sentence_shows_names_of_columns_that_control_no_terminal() -> None:
    with pytest.raises(ShoalError) as caught:
        shoal.anonymize(TABLE.rename_columns(["id", "age\x1b[31m", "sex", "ill"]), person="id", quasi=["aeg"])
    assert "\x1b" not in str(caught.value)

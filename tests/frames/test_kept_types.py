"""What a frame keeps: order and names of columns, categories and their order, nullable types, dates without a zone."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import shoal
from tests.frames.frames import LIBRARIES, PEOPLE, TABLE, in_library, people, with_series

pytestmark = pytest.mark.compiled

ROLES: dict[str, Any] = {"k": 3, "person": "id", "quasi": ["age"]}
LEVELS = ["low", "mid", "high"]
DAYS = [dt.datetime(2024, 1, 1 + row % 5) for row in range(PEOPLE)]
THREE = [[1, 2, 3][row % 3] for row in range(PEOPLE)]

PANDAS_TYPES: dict[str, Any] = {
    "Int64": pd.array([1, None, 3] * 20, dtype="Int64"),
    "Float64": pd.array([1.5, None, 3] * 20, dtype="Float64"),
    "boolean": pd.array([True, None, False] * 20, dtype="boolean"),
    "bool": np.array([True, False] * 30),
    "int8": np.array(THREE, "int8"),
    "string": pd.array(["a", None, "b"] * 20, dtype="string"),
    "object": pd.Series(["a", None, "b"] * 20, dtype=object),
    "datetime64[ns]": pd.Series(DAYS, dtype="datetime64[ns]"),
    "datetime64[us, Europe/Zurich]": pd.Series(DAYS, dtype="datetime64[us]").dt.tz_localize("Europe/Zurich"),
    "timedelta64[us]": pd.Series([dt.timedelta(hours=one) for one in THREE], dtype="timedelta64[us]"),
    "period[D]": pd.Series(pd.PeriodIndex(DAYS, freq="D")),
    "Sparse[int64, 0]": pd.arrays.SparseArray([0, 1, 2] * 20),
    "int32[pyarrow]": pd.array(THREE, dtype=pd.ArrowDtype(pa.int32())),
}


@pytest.mark.parametrize("role", ["carry", "sensitive"])
@pytest.mark.parametrize("dtype", PANDAS_TYPES)
def test_columns_published_unchanged_keep_their_type_in_pandas(dtype: str, role: str) -> None:
    given = with_series(c=PANDAS_TYPES[dtype])
    found = shoal.anonymize(given, **ROLES, **{role: ["c"]}).frame["c"]
    assert str(found.dtype) == str(given["c"].dtype) == dtype
    assert found.value_counts(dropna=False).to_dict() == given["c"].value_counts(dropna=False).to_dict()


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_sensitive_column_that_is_published_generalized_becomes_text(library: str) -> None:
    """Its type of numbers is not kept: no number of it is published."""
    quasi = {"wage": {"kind": "numeric", "low": 0, "high": 100, "grid": 20}}
    policy = {
        "stream": {"person": "id"},
        "anonymize": {"method": "least-loss", "k": 3, "deadline": 60, "sensitive": ["wage"], "l": 2, "quasi": quasi},
    }  # fmt: skip
    table = pa.table({"id": list(range(PEOPLE)), "wage": [row + 0.5 for row in range(PEOPLE)]})
    shown = shoal.anonymize(in_library(library, table), policy=policy).frame["wage"]
    assert {str(one) for one in (shown.to_pylist() if library == "pyarrow" else list(shown))} == {
        "[0, 20]", "[20, 40]", "[40, 60]"
    }  # fmt: skip


@pytest.mark.parametrize("role", ["carry", "sensitive"])
@pytest.mark.parametrize("is_ordered", [True, False])
def test_categories_keep_their_order_in_pandas(role: str, is_ordered: bool) -> None:
    values = pd.Categorical(["mid", "low", "high"] * 20, categories=[*LEVELS, "nobody"], ordered=is_ordered)
    found = shoal.anonymize(with_series(c=values), **ROLES, **{role: ["c"]}).frame["c"].dtype
    assert found.ordered == is_ordered
    assert found.categories.tolist() == (LEVELS if is_ordered else sorted(LEVELS))
    numbers = shoal.anonymize(with_series(c=pd.Categorical(THREE)), **ROLES, **{role: ["c"]}).frame["c"]
    assert numbers.cat.categories.tolist() == [1, 2, 3]


def test_categories_keep_their_order_in_polars() -> None:
    for kind in (pl.Enum([*LEVELS, "nobody"]), pl.Categorical()):
        frame = people("polars").with_columns(pl.Series("c", ["mid", "low", "high"] * 20, dtype=kind))
        found = shoal.anonymize(frame, **ROLES, sensitive=["c"]).frame["c"]
        assert found.dtype == (pl.Enum(LEVELS) if isinstance(kind, pl.Enum) else pl.Categorical)
        assert sorted(set(found.to_list())) == sorted(LEVELS)


def test_dictionaries_of_arrow_keep_their_order_and_lose_what_nobody_has() -> None:
    codes = pa.DictionaryArray.from_arrays(pa.array([1, 0, 2] * 20, pa.int8()), [*LEVELS, "nobody"], ordered=True)
    table = TABLE.append_column("c", pa.chunked_array([codes.slice(0, 7), codes.slice(7)]))
    found = shoal.anonymize(table, **ROLES, carry=["c"]).frame.column("c")
    assert found.type == pa.dictionary(pa.int8(), pa.string(), ordered=True)
    assert found.chunk(0).dictionary.to_pylist() == LEVELS
    assert found.value_counts().field("counts").to_pylist() == [20, 20, 20]


@pytest.mark.parametrize("library", LIBRARIES)
def test_categories_without_an_order_do_not_tell_whose_value_came_first(library: str) -> None:
    column = pa.array([*["z", "m", "a"] * 20]).dictionary_encode()
    frame = shoal.anonymize(people(library, c=column), **ROLES, sensitive=["c"]).frame
    if library == "pandas":
        assert frame["c"].cat.categories.tolist() == ["a", "m", "z"]
        return
    found = pa.table(frame).column("c").chunk(0).dictionary.to_pylist()
    released = list(dict.fromkeys(frame["c"].to_list() if library == "polars" else []))
    assert found in (["a", "m", "z"], released)


@pytest.mark.parametrize("library", LIBRARIES)
def test_generalized_categories_are_labels(library: str) -> None:
    column = pa.array(["mid", "low", "high"] * 20).dictionary_encode()
    result = shoal.anonymize(people(library, c=column), **{**ROLES, "quasi": ["c"]})
    assert set(result.rows.column("c").to_pylist()) <= {*LEVELS, "*"}
    kinds = {"pandas": lambda one: one["c"].dtype != "category", "polars": lambda one: one["c"].dtype == pl.String,
             "pyarrow": lambda one: pa.types.is_string(one.schema.field("c").type)}  # fmt: skip
    assert kinds[library](result.frame)


@pytest.mark.parametrize("library", LIBRARIES)
def test_sensitive_columns_published_generalized_are_ranges_and_labels(library: str) -> None:
    codes = pa.array([f"X{row % 20:02}" for row in range(PEOPLE)]).dictionary_encode()
    result = shoal.anonymize(people(library, wage=[2000 + 10 * row for row in range(PEOPLE)], diagnosis=codes), k=5)
    assert result.audit().ok
    for name in ("wage", "diagnosis"):
        assert next(one for one in result.roles if one.column == name).is_generalized
        published = result.frame[name].to_pylist() if library == "pyarrow" else list(result.frame[name])
        assert len(published) == result.counts["released"] == PEOPLE
        assert all(isinstance(one, str) and one not in codes.dictionary.to_pylist() for one in published)
        assert name != "wage" or all(one.startswith("[") for one in published)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("gap", [None, True], ids=["with gaps", "without"])
def test_booleans_are_categories(library: str, gap: bool | None) -> None:
    frame = people(library, flag=pa.array([True, False, gap] * 20))
    result = shoal.anonymize(frame, **{**ROLES, "quasi": ["flag"]})
    assert result.counts["released"] == PEOPLE
    published = set(result.rows.column("flag").to_pylist())
    assert {"true", "false"} <= published <= {"true", "false", "*", None}
    assert (None in published) == (gap is None)
    assert result.audit().ok
    assert ("flag", "quasi") in [(one.column, one.role) for one in shoal.anonymize(frame).roles]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("first", [2**53 + 1, -(2**62), 2**60, 2**63], ids=["2^53 + 1", "-2^62", "2^60", "2^63"])
def test_whole_numbers_that_are_not_exact_as_floats_are_codes(library: str, first: int) -> None:
    kind = pa.uint64() if first == 2**63 else pa.int64()
    frame = people(library, code=pa.array([first + row % 3 for row in range(PEOPLE)], kind))
    assert shoal.anonymize(frame).audit().ok
    result = shoal.anonymize(frame, **{**ROLES, "quasi": ["code"]})
    assert set(result.rows.column("code").to_pylist()) <= {str(first + row) for row in range(3)} | {"*"}
    assert result.counts["released"] == PEOPLE
    assert result.audit().ok


@pytest.mark.parametrize("library", LIBRARIES)
def test_nanoseconds_since_1970_are_moments(library: str) -> None:
    start = 1_772_000_000_000_000_001
    frame = people(library, ts=pa.array([start + row * 3_600 * 10**9 for row in range(PEOPLE)]))
    result = shoal.anonymize(frame, **{**ROLES, "quasi": ["ts"]})
    assert pa.types.is_timestamp(result.rows.schema.field("ts").type.field("lo").type)
    assert result.counts["released"] == PEOPLE
    assert result.audit().ok


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    ("column", "zone"),
    [
        (pa.array(DAYS, pa.timestamp("us")), None),
        (pa.array(DAYS, pa.timestamp("ns")), None),
        (pa.array(DAYS, pa.timestamp("us", "Europe/Zurich")), "Europe/Zurich"),
        (pa.array(DAYS, pa.timestamp("us")).cast(pa.date32()), None),
        (pa.array([f"{day:%Y-%m-%d}" for day in DAYS]), None),
        (pa.array([f"{day:%Y-%m-%dT%H:%M:%S}" for day in DAYS]), None),
        (pa.array([f"{day:%Y-%m-%dT%H:%M:%SZ}" for day in DAYS]), "UTC"),
        (pa.array([1_704_067_200 + row % 5 * 86_400 for row in range(PEOPLE)]), "UTC"),
    ],
    ids=["naive", "naive ns", "zone", "dates", "text dates", "text", "text with Z", "seconds since 1970"],
)
def test_ranges_of_moments_have_the_zone_of_the_input(library: str, column: Any, zone: str | None) -> None:
    name = "when" if pa.types.is_integer(column.type) else "day"
    given = people(library, **{name: column})
    roles = {**ROLES, "quasi": None} if name == "when" else {**ROLES, "quasi": [name]}
    for form in ("columns", "middle", "text", "struct"):
        result = shoal.anonymize(given, **roles, intervals=form)
        assert result.audit().ok
        frame = result.frame
        table = (
            pa.Table.from_pandas(frame) if library == "pandas" else frame if library == "pyarrow" else frame.to_arrow()
        )
        if form == "text":
            low = table.column(name).to_pylist()[0].strip("[]").split(", ")[0]
            assert low.endswith("Z") == (zone is not None)
        elif form != "struct":
            kind = table.schema.field(f"{name}_low" if form == "columns" else name).type
            assert kind.tz == zone


@pytest.mark.parametrize("form", ["columns", "middle"])
def test_ranges_of_nullable_numbers_are_nullable(form: str) -> None:
    frame = with_series(c=pd.array([None, 1, None, 3, None, 5] * 10, dtype="Int64"))
    found = shoal.anonymize(frame, **{**ROLES, "quasi": ["c"]}, intervals=form).frame
    kinds = {"columns": {"c_low": "Int64", "c_high": "Int64"}, "middle": {"c": "Float64"}}[form]
    assert found.dtypes.astype(str).to_dict() == kinds
    assert 20 < found.iloc[:, 0].isna().sum() < PEOPLE


@pytest.mark.parametrize("library", LIBRARIES)
def test_columns_keep_their_order(library: str) -> None:
    frame = in_library(library, TABLE.select(["ill", "sex", "age", "id"]))
    result = shoal.anonymize(frame, k=3, person="id", quasi=["age", "sex"], sensitive=["ill"], intervals="columns")
    found = result.frame.column_names if library == "pyarrow" else list(result.frame.columns)
    assert found == ["ill", "sex", "age_low", "age_high"]


def test_numbers_as_names_of_columns_stay_numbers() -> None:
    frame = TABLE.to_pandas().set_axis([0, 1, 2, "ill"], axis=1)
    found = shoal.anonymize(frame, k=3, person=0, quasi=[1, np.int64(2)], sensitive="ill").frame
    assert found.columns.tolist() == [1, 2, "ill"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_column_whose_name_is_empty_is_named_by_its_position(library: str) -> None:
    """polars reads the header that pandas and R write, `,id,age`, so."""
    frame = in_library(library, TABLE.select(["age", "id", "sex"]).rename_columns(["", "id", "sex"]))
    if library == "polars":  # names such a column of Arrow itself
        frame.columns = ["", "id", "sex"]
    found = shoal.anonymize(frame, k=3, person="id", quasi=["column1", "sex"])
    assert {role.column: role.role for role in found.roles} == {"column1": "quasi", "id": "person", "sex": "quasi"}
    names = found.frame.column_names if library == "pyarrow" else list(found.frame.columns)
    assert names == ["" if library == "pandas" else "column1", "sex"]
    assert found.audit().ok
    assert len(shoal.anonymize(frame, k=3, person="id")) > 0


@pytest.mark.parametrize("names", [("age", "sex"), {"sex", "age"}, pd.Index(["age", "sex"]), np.array(["age", "sex"])])
def test_names_in_any_collection(names: Any) -> None:
    result = shoal.anonymize(TABLE, k=np.int64(3), person="id", quasi=names)
    assert result.frame.column_names == ["age", "sex"]


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        (["sex"], "not published: 'sex', which"),
        (["sex", "ill"], "not published: 'sex', 'ill', which"),
        (["id"], None),
        (["id", "sex"], "not published: 'sex', which"),
    ],
)
def test_an_index_is_the_person_or_is_dropped_and_that_is_said(levels: list[str], words: str | None) -> None:
    result = shoal.anonymize(TABLE.to_pandas().set_index(levels), **ROLES)
    assert result.frame.index.equals(pd.RangeIndex(PEOPLE))
    assert list(result.frame.columns) == ["age"]
    assert result.proposal is not None
    assert result.proposal.stream["person"] == "id"
    for text in (repr(result), result._repr_html_().replace("&#x27;", "'"), result.report()):
        assert ("rows are in the order of release" in text) == (words is not None)
        assert words is None or words in text


def test_an_index_without_a_name_is_dropped_and_that_is_said() -> None:
    frame = TABLE.to_pandas().set_axis([f"Person {row}" for row in range(PEOPLE)])
    result = shoal.anonymize(frame, **ROLES)
    assert "index      not published: row labels, which" in repr(result)
    assert "Person 7" not in repr(result) + result._repr_html_()
    assert result.frame.index.equals(pd.RangeIndex(PEOPLE))


def test_whole_numbers_with_a_gap_may_be_the_person() -> None:
    frame = with_series(id=[math.nan, *range(1, PEOPLE)])
    result = shoal.anonymize(frame, **ROLES)
    assert result.counts["released"] == PEOPLE - 1
    assert result.refused["null-person"].startswith("1: column 'id'")
    assert result.audit().ok

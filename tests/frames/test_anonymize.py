"""`shoal.anonymize`: any kind of frame in, the same kind out, nothing lost silently, audited."""

from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import shoal
from shoal.errors import PolicyError
from tests.inspection.stories import METHODS, PERSONS, STORIES, admissions, baskets, visits

pytestmark = pytest.mark.compiled

PEOPLE = pa.table({
    "id": list(range(80)), "age": [20 + row % 40 for row in range(80)], "sex": ["f", "m"] * 40,
    "born": pa.array([row * 40_000_000 for row in range(80)]).cast(pa.timestamp("s")),
})  # fmt: skip


def frame(library: str, table: pa.Table = PEOPLE) -> Any:
    return {"pandas": table.to_pandas, "polars": lambda: pl.from_arrow(table), "pyarrow": lambda: table}[library]()


@pytest.mark.parametrize("story", STORIES)
def test_five_kinds_of_data_with_no_parameter_but_a_doubtful_person(story: str) -> None:
    result = shoal.anonymize(STORIES[story](), person=PERSONS.get(story))
    counts = result.counts
    assert result.proposal.method == METHODS[story]
    given = counts.get("sets", counts["rows"])
    assert given == counts["released"] + counts["suppressed"] + counts["refused"] + counts["pending"]
    assert counts["released"] > 0.3 * given
    assert result.audit().ok, result.audit().text()
    assert len(result) == result.frame.num_rows == counts["released"]


@pytest.mark.parametrize(
    ("library", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame), ("pyarrow", pa.Table)]
)
def test_a_frame_of_the_same_library(library: str, kind: type) -> None:
    result = shoal.anonymize(frame(library), k=4, person="id", quasi=["age", "sex"], intervals="columns")
    assert isinstance(result.frame, kind)
    assert list(getattr(result.frame, "columns" if library != "pyarrow" else "column_names")) == [
        "age_low", "age_high", "sex",
    ]  # fmt: skip
    assert result.audit().ok


def test_a_lazy_frame_a_batch_and_a_pandas_index() -> None:
    wanted = {"k": 4, "person": "id", "quasi": ["age"]}
    assert isinstance(shoal.anonymize(frame("polars").lazy(), **wanted).frame, pl.DataFrame)
    assert isinstance(shoal.anonymize(PEOPLE.to_batches()[0], **wanted).frame, pa.Table)
    odd = frame("pandas").set_index("sex")
    assert list(shoal.anonymize(odd, **wanted).frame.columns) == ["age"]


VISITS = pd.DataFrame({
    "patient": [100 + row // 4 for row in range(80)], "age": [30 + row // 4 % 20 for row in range(80)],
    "ward": [row * 3 % 7 for row in range(80)],
})  # fmt: skip


@pytest.mark.parametrize("index", ["patient", ["patient", "ward"], None])
def test_a_person_in_the_index_is_found_and_nothing_of_the_index_is_published(index: Any) -> None:
    given = VISITS if index is None else VISITS.set_index(index)
    found = shoal.anonymize(given, k=5)
    assert found.policy["stream"]["person"] == "patient"
    assert "rows, not people" not in found.statement
    assert set(found.frame.columns) == {"age", "ward"} - ({"ward"} if isinstance(index, list) else set())
    assert found.audit().ok


def test_an_index_without_a_name() -> None:
    """Repeated values may be people, so somebody must say; different ones are no more than the numbers of rows."""
    given = VISITS.drop(columns="patient")
    found = shoal.anonymize(given[::2], k=5)
    assert found.policy["stream"]["person"] == "row"
    assert "index" not in found.truth.column_names
    again = given.set_axis(VISITS["patient"].rename(None))
    with pytest.raises(shoal.ShoalError, match="not certain whose row it is") as doubt:
        shoal.anonymize(again, k=5)
    assert "'index' may be the person" in str(doubt.value)
    assert "person=shoal.ROWS" in str(doubt.value)
    assert shoal.anonymize(again, k=5, person="index").audit().to_dict()["about"] == "people"
    counted = shoal.anonymize(again, k=5, person=shoal.ROWS)
    assert counted.audit().to_dict()["about"] == "rows, not people"
    assert not any("index" in name for name in counted.frame.columns)


def test_a_column_goes_before_a_level_of_its_name() -> None:
    given = VISITS.set_axis(pd.Index(range(80), name="patient"))
    assert shoal.anonymize(given, k=5).truth.column("patient").to_pylist() == VISITS["patient"].tolist()


def test_a_level_of_the_index_can_be_named() -> None:
    found = shoal.anonymize(VISITS.set_index(["patient", "ward"]), k=5, quasi=["age", "ward"])
    assert set(found.frame.columns) == {"age", "ward"}


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_forms_of_intervals_agree(library: str) -> None:
    wanted = {"k": 4, "person": "id", "quasi": ["age", "born"]}
    forms = {form: shoal.anonymize(frame(library), **wanted, intervals=form).frame
             for form in ("text", "columns", "middle", "struct")}  # fmt: skip
    tables = {form: pa.table(found) if library != "pandas" else pa.Table.from_pandas(found)
              for form, found in forms.items()}  # fmt: skip
    ends = tables["struct"].column("age").to_pylist()
    assert tables["text"].column("age").to_pylist() == [f"[{end['lo']}, {end['hi']}]" for end in ends]
    assert tables["columns"].column("age_low").to_pylist() == [end["lo"] for end in ends]
    assert tables["middle"].column("age").to_pylist() == [(end["lo"] + end["hi"]) / 2 for end in ends]
    assert pa.types.is_timestamp(tables["middle"].schema.field("born").type)


def test_intervals_of_pandas() -> None:
    found = shoal.anonymize(frame("pandas"), k=4, person="id", quasi=["age", "born"], intervals="interval").frame
    assert found["age"].iloc[0].left <= found["age"].iloc[0].mid <= found["age"].iloc[0].right
    assert isinstance(found["born"].iloc[0].left, pd.Timestamp)
    with pytest.raises(PolicyError, match="is for pandas"):
        shoal.anonymize(PEOPLE, k=4, intervals="interval")
    with pytest.raises(PolicyError, match="must be one of"):
        shoal.anonymize(PEOPLE, k=4, intervals="none")


def test_missing_values_stay_missing() -> None:
    table = PEOPLE.set_column(1, "age", pa.array([None if row % 2 else 30 + row % 3 for row in range(80)], pa.int64()))
    gaps = set()
    for form in ("text", "columns", "middle", "interval"):
        found = shoal.anonymize(frame("pandas", table), k=4, person="id", quasi=["age"], intervals=form)
        gaps.add(int(found.frame.iloc[:, 0].isna().sum()))
        assert found.audit().ok
    assert len(gaps) == 1
    assert gaps.pop() == found.rows.column("age").null_count > 30


def test_what_is_refused_is_counted_with_its_reason() -> None:
    table = PEOPLE.set_column(0, "id", pa.array([None, *range(79)], pa.int64()))
    result = shoal.anonymize(table, k=4, person="id", quasi=["age"])
    assert result.counts["refused"] == 1
    assert result.refused["null-person"].startswith("1: column 'id'")
    assert "1 refused" in repr(result)


def test_rows_of_one_frame_may_come_in_any_order() -> None:
    table = visits(800)
    backwards = table.take(list(range(table.num_rows))[::-1])
    key = b"sixteen bytes at least"
    one, other = (shoal.anonymize(rows, z=3, key=key) for rows in (table, backwards))
    assert one.counts == other.counts
    assert one.counts["refused"] == 0


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("story", ["visits", "baskets"])
def test_events_and_sets_of_every_library(library: str, story: str) -> None:
    table, wanted = (visits(800), {"z": 3}) if story == "visits" else (baskets(300), {"m": 2, "k": 5})
    key = b"sixteen bytes at least"
    result = shoal.anonymize(frame(library, table), **wanted, key=key)
    assert result.counts == shoal.anonymize(table, **wanted, key=key).counts
    assert result.audit().ok


def test_text_times_are_read() -> None:
    table = visits(800)
    moments = table.column("ts").cast(pa.timestamp("s")).cast(pa.string()).to_pylist()
    result = shoal.anonymize(table.set_column(0, "ts", [moments]), z=3)
    assert result.counts == shoal.anonymize(table, z=3).counts
    assert result.audit().ok


def test_the_method_and_its_settings_can_be_named() -> None:
    result = shoal.anonymize(admissions(), method="fads", k=4, quasi=["age", "sex"], person="patient", deadline=300)
    assert result.policy["anonymize"]["deadline"] == 300
    assert result.audit().method == "fads"
    with pytest.raises(PolicyError, match="colour"):
        shoal.anonymize(admissions(), k=4, colour="red")


def test_a_policy_in_place_of_parameters(tmp_path) -> None:
    policy = shoal.anonymize(PEOPLE, k=4, person="id", quasi=["age"]).policy
    result = shoal.anonymize(PEOPLE, policy=policy)
    assert result.audit().ok
    assert result.roles == []
    (tmp_path / "sexes.csv").write_text("f;*\nm;*\n")
    (tmp_path / "policy.toml").write_text(
        '[stream]\nperson = "id"\n[source]\nkind = "csv"\npath = "x.csv"\n[sink]\nkind = "csv"\npath = "y.csv"\n'
        '[anonymize]\nmethod = "least-loss"\nk = 4\ndeadline = 40\nreuse = 5\n[anonymize.quasi.sex]\n'
        'kind = "categorical"\nhierarchy = {kind = "csv", path = "sexes.csv"}\n'
    )
    result = shoal.anonymize(PEOPLE, policy=tmp_path / "policy.toml")
    assert result.counts["released"] == 80
    assert result.audit().ok
    with pytest.raises(PolicyError, match="k: the policy states it"):
        shoal.anonymize(PEOPLE, policy=policy, k=3)
    with pytest.raises(PolicyError, match="does not exist"):
        shoal.anonymize(PEOPLE, policy=tmp_path / "none.toml")


def test_a_carried_column_that_singles_people_out_is_refused() -> None:
    with pytest.raises(PolicyError, match="singles people out"):
        shoal.anonymize(PEOPLE, k=2, person="id", quasi=["age"], carry=["born"])


def test_sets_by_rows_and_by_lists_agree() -> None:
    lists = baskets(400)
    pairs = [(who, item) for who, items in zip(*lists.to_pydict().values(), strict=True) for item in items]
    rows = pa.table({"customer": [who for who, _ in pairs], "item": [item for _, item in pairs]})
    one = shoal.anonymize(lists, m=2, k=5)
    other = shoal.anonymize(rows, m=2, k=5, items="item")
    assert one.counts["sets"] == other.counts["sets"] == 400
    assert one.audit().ok
    assert other.audit().ok
    assert one.metrics == other.metrics
    assert "generalized" in repr(one)

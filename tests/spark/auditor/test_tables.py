"""The audit of a plain table in parts says what the audit on one machine says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.errors import InputError, PolicyError
from shoal.spark.auditor.dispatch import audit_on
from shoal.spark.auditor.engine import LocalEngine
from tests.spark.auditor.test_tuples import same_report


def write_table(folder: Path, *, kind: str = "parquet", files: int = 3) -> str:
    """People of some ages and towns; a class of two people has its rows in different files."""
    rows: list[dict[str, Any]] = [
        {"age": number % 4 * 10, "town": "abc"[number % 3], "ill": number * 7 % 5, "who": f"p{number % 90}"}
        for number in range(240)
    ]
    for number, who in ((3, "p3"), (100, "p3"), (200, "p50")):
        rows[number] |= {"age": 90, "town": "z", "who": who}
    rows[17] = {"age": None, "town": "*", "ill": 1, "who": "p400"}
    folder.mkdir()
    for number in range(files):
        part = pa.Table.from_pylist(rows[number * 80 : number * 80 + 80])
        if kind == "parquet":
            pq.write_table(part, folder / f"part-{number}.parquet")
        else:
            pyarrow.csv.write_csv(part, folder / f"part-{number}.csv")
    return str(folder)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize(
    "promised",
    [{}, {"person": "who", "k": 4, "l": 3, "t": 0.2}, {"k": 3, "entropy_l": 2.0, "alpha": 0.4, "beta": 0.5},
     {"suppressed": "*", "k": 3, "recursive_l": [2.0, 2], "t": 0.1, "t_distance": "equal", "person": "who"}],
    ids=["nothing", "people", "rows", "suppressed"],
)  # fmt: skip
def test_a_table(tmp_path: Path, kind: str, promised: dict[str, Any]) -> None:
    place = write_table(tmp_path / "table", kind=kind)
    policy = {"table": {"quasi": ["age", "town"], "sensitive": ["ill"], **promised}}
    here, there = shoal.audit(place, policy=policy), audit_on(LocalEngine(), place, policy=policy)
    same_report(here, there)
    assert there.ok == (not promised)
    assert there.metrics["smallest_k"] == 1 if "suppressed" not in promised else 2
    assert there.not_checked == here.not_checked


def test_a_population(tmp_path: Path) -> None:
    place, everyone = write_table(tmp_path / "table"), write_table(tmp_path / "all")
    policy = {"table": {"quasi": ["age", "town"], "population": everyone, "presence": [0.0, 0.5]}}
    here, there = shoal.audit(place, policy=policy), audit_on(LocalEngine(), place, policy=policy)
    same_report(here, there)
    assert [found.code for found in there.violations] == ["outside-presence"]


def test_what_is_not_counted_is_listed(tmp_path: Path) -> None:
    place = write_table(tmp_path / "table")
    there = audit_on(LocalEngine(), place, policy={"table": {"quasi": ["age", "town"], "k": 2, "m": 1}})
    assert there.not_checked == ("Whether k holds for anyone who knows 1 values was not counted: not on Spark yet.",)


def test_what_cannot_be_audited_in_parts() -> None:
    other = {"stream": {"person": "who"}, "anonymize": {"method": "another"}}
    with pytest.raises(PolicyError, match="not audited on Spark"):
        audit_on(LocalEngine(), "x", policy=other)
    with pytest.raises(InputError, match="give paths that every machine has"):
        audit_on(LocalEngine(), pa.table({"age": [1]}), policy={"table": {"quasi": "age"}})

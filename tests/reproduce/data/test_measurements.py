"""Measurements from a file: the same rows from every format, and errors that name file, row and column."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from shoal.errors import InputError
from shoal.reproduce.data.campaign import make_campaign
from shoal.reproduce.data.measurements import COLUMNS, read_measurements, synthetic_measurements

HEADER = "maid,device,place,network,time,mbps_down\n"
ROW = "a,LG G2,north,4G,2026-03-02T10:00:00Z,5\n"


def test_files_have_the_rows_of_the_campaign(tmp_path: Path) -> None:
    table = make_campaign(50, 300, seed=2)
    csv.write_csv(table, tmp_path / "all.csv")
    parquet.write_table(table.take(pa.array(range(299, -1, -1))), tmp_path / "backwards.parquet")
    expected = synthetic_measurements(50, 300, seed=2)
    for name in ("all.csv", "backwards.parquet"):
        found = read_measurements(tmp_path / name)
        assert found.table.sort_by([("time", "ascending")]).equals(expected.table)
        assert (found.start, found.hours) == (expected.start, expected.hours) == (1_772_409_600, 168)
        assert found.people == expected.people
        assert found.places.path(found.table["place"][0].as_py())[1:] == ("any place",)


def test_columns_that_are_not_needed_may_be_missing(tmp_path: Path) -> None:
    table = make_campaign(5, 20, seed=2).select(COLUMNS)
    csv.write_csv(table, tmp_path / "few.csv")
    found = read_measurements(tmp_path / "few.csv")
    assert not found.has_speeds
    assert found.schema(device=None).columns == ("maid", "place", "network", "time")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (HEADER.replace("place", "where") + ROW, "all.csv: has no column place"),
        (HEADER + ROW + ROW.replace("LG G2", ""), "all.csv, row 2, column device: missing or not usable"),
        (HEADER + ROW.replace("2026-03-02T10:00:00Z", "soon"), "all.csv, row 1, column time: missing or not usable"),
        (HEADER + ROW + ROW.replace(",5\n", ",inf\n"), "all.csv, row 2, column mbps_down: missing or not usable"),
        (HEADER, "all.csv: has no rows"),
        (HEADER + ROW + "a,b\n", "all.csv: cannot be read as CSV or Parquet"),
        (HEADER + ROW.replace("north", "secret street"), "the place of 1 rows is not in"),
    ],
)
def test_errors_name_row_and_column_and_no_value(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "all.csv").write_text(text)
    (tmp_path / "places.csv").write_text("north;city\nsouth;city\n")
    with pytest.raises(InputError) as error:
        read_measurements(tmp_path / "all.csv", places=tmp_path / "places.csv")
    assert says in str(error.value)
    assert "secret" not in str(error.value)


def test_files_that_do_not_exist(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file; give a CSV or Parquet file with the columns maid, device"):
        read_measurements(tmp_path / "nowhere.csv")
    (tmp_path / "all.csv").write_text(HEADER + ROW)
    with pytest.raises(InputError, match=r"places\.csv: no such file"):
        read_measurements(tmp_path / "all.csv", places=tmp_path / "places.csv")

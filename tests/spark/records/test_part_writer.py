"""Parts are written only into a folder of the driver, and the driver looks at all of them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from shoal.encode.csv import CsvEncoder
from shoal.encode.parquet import ParquetEncoder
from shoal.errors import OutputError
from shoal.spark.outcome import SealTrace
from shoal.spark.recipe import Recipe
from shoal.spark.records.part_writer import PartWriter, require_files
from tests.spark.scene import KEY

ROWS = pa.record_batch({"site": ["a", "b", "c"]})


def writer(folder: Path) -> PartWriter:
    return PartWriter(folder, ParquetEncoder(), ROWS.schema)


def test_an_executor_without_the_folder_writes_nothing(tmp_path: Path) -> None:
    """It would otherwise make the folder on its own disk, and its rows would be missing from the release."""
    with pytest.raises(OutputError, match=r"out: an executor does not see this folder, which the driver has made"):
        writer(tmp_path / "out").write(0, [ROWS])
    assert not list(tmp_path.iterdir())


def test_parts_that_are_missing_or_shorter_are_noticed(tmp_path: Path) -> None:
    parts = writer(tmp_path / "out")
    parts.prepare()
    sizes = {number: parts.write(number, [ROWS]).bytes for number in range(3)}
    sizes[3] = parts.write(3, []).bytes  # without rows there is no file
    parts.require(sizes)
    last = tmp_path / "out" / "part-00002.parquet"
    content = last.read_bytes()
    last.write_bytes(content[:-1])
    with pytest.raises(OutputError, match=r"part-00002.parquet: is not what an executor wrote there"):
        parts.require(sizes)
    last.unlink()
    with pytest.raises(OutputError, match=r"part-00002.parquet: is not what an executor wrote there"):
        parts.require(sizes)


def test_the_first_part_has_a_file_even_without_rows(tmp_path: Path) -> None:
    parts = PartWriter(tmp_path, CsvEncoder(), ROWS.schema)
    assert parts.write(0, []).bytes > 0
    assert parts.write(1, []) == (0, 0)
    assert [path.name for path in tmp_path.iterdir()] == ["part-00000.csv"]


class Entries:
    """A trace of two entries; while it is written, a second attempt writes it as well."""

    schema = pa.schema([("row", pa.int64())])

    def __init__(self, other: SealTrace | None = None) -> None:
        self._other = other

    def batches(self, batches: object) -> object:
        yield pa.record_batch({"row": pa.array([0], pa.int64())})
        if self._other is not None:
            list(self._other([]))
        yield pa.record_batch({"row": pa.array([1], pa.int64())})


def test_two_attempts_may_write_a_trace_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one working file, the second would remove that of the first, which would then publish half a trace."""
    key = tmp_path / "key"
    key.write_bytes(KEY)
    key.chmod(0o600)
    monkeypatch.setenv("SHOAL_KEY_FILE", str(key))
    from shoal.encode.sealed import read_trace
    from shoal.spark.sets.run import set_recipe

    recipe: Recipe = set_recipe("k^m")
    path = tmp_path / "traces" / "trace.parquet"
    path.parent.mkdir()
    (found,) = SealTrace(path, recipe, Entries(SealTrace(path, recipe, Entries())))([])  # type: ignore[arg-type]
    require_files(path.parent, {path.name: found.column("bytes")[0].as_py()})
    assert read_trace(path)["row"].to_pylist() == [0, 1]
    assert [one.name for one in path.parent.iterdir()] == ["trace.parquet"]

"""How much a micro-batch reads at most, and the names of files that were read, through crashes between steps."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import feather

from shoal.errors import CheckpointError
from shoal.methods.settings import Duration
from shoal.policy import load_policy
from shoal.spark.streams import bounds
from shoal.spark.streams.bounds import MOST_RECORDS, first_files, most_records, shares
from shoal.spark.streams.file_journal import JOURNAL, FileJournal, read_count
from shoal.spark.streams.growing_files import GrowingFiles
from shoal.spark.streams.state import Commit
from tests.spark.scene import EVENTS, Stage, events


def test_a_number_of_records_bounds_a_micro_batch_and_a_duration_does_not() -> None:
    assert most_records(500) == 500
    assert most_records(Duration("1min")) == MOST_RECORDS


@given(st.lists(st.integers(0, 10_000), max_size=12), st.integers(1, 5_000))
def test_shares_are_within_the_bound_and_none_is_left_out(available: list[int], most: int) -> None:
    found = shares(available, most)
    assert all(bool(share) == bool(count) and share <= count for share, count in zip(found, available, strict=True))
    assert sum(found) <= max(most, sum(map(bool, available)))
    if sum(available) <= most:
        assert found == available
    for one in range(len(found)):
        for other in range(len(found)):
            assert available[one] < available[other] or found[one] >= found[other]


# ---- files


def parquet(path: Path, rows: int) -> None:
    pq.write_table(pa.table({"a": range(rows)}), path)


def arrow(path: Path, rows: int) -> None:
    feather.write_feather(pa.table({"a": range(rows)}), path)


def arrow_stream(path: Path, rows: int) -> None:
    path.write_bytes(b"x" * 100 * rows)


def text(path: Path, rows: int) -> None:
    path.write_bytes(b"x" * 100 * rows)


def compressed(path: Path, rows: int) -> None:
    packed = gzip.compress(b"", mtime=0)
    path.write_bytes(packed + b"\0" * (20 * rows - len(packed)))


@pytest.mark.parametrize(
    ("kind", "write"),
    [("parquet", parquet), ("arrow", arrow), ("arrow", arrow_stream), ("csv", text), ("jsonl", compressed)],
    ids=["parquet", "arrow", "arrow without a footer", "text", "compressed"],
)
def test_a_micro_batch_has_whole_files_up_to_the_bound(
    tmp_path: Path, kind: str, write: Callable[[Path, int], None]
) -> None:
    names = [str(tmp_path / name) for name in "abcd"]
    for name, rows in zip(names, (30, 40, 50, 10), strict=True):
        write(Path(name), rows)
    assert list(first_files(names, kind, 70)) == names[:2]
    assert list(first_files(names, kind, 69)) == names[:1]
    assert list(first_files(names, kind, 1)) == names[:1], "at least one"
    assert list(first_files(names, kind, 130)) == names


def test_a_micro_batch_of_many_small_files_is_bounded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MOST_FILES", 3)
    names = [str(tmp_path / name) for name in "abcd"]
    for name in names:
        Path(name).touch()
    assert list(first_files(names, "csv", 100)) == names[:3]


class Growing:
    """The files of a stream, micro-batch by micro-batch, as the driver plans and commits them."""

    def __init__(self, stage: Stage, *, most: int) -> None:
        stage.write(events(60), files=1)
        (stage.folder / "in" / "part-0.csv").unlink()
        path = stage.policy(EVENTS, "there", time=True)
        path.write_text(path.read_text() + '\n[checkpoint]\npath = "state"\n')
        self.policy, self._most, self.input = load_policy(path), most, stage.folder / "in"
        self.journal = stage.folder / "state" / JOURNAL
        self.commits: list[Commit] = []
        self.restart()

    @property
    def last(self) -> Commit | None:
        return self.commits[-1] if self.commits else None

    def restart(self) -> None:
        """Go on with another process."""
        nothing: Any = None
        self.source = GrowingFiles(self.policy, nothing, (), most=self._most)

    def add(self, *names: str) -> None:
        for name in names:
            (self.input / name).write_bytes(b"x" * 1_000)

    def plan(self) -> tuple[list[str], bool] | None:
        """The names of planned files, and whether there are more."""
        nothing: Any = None
        found = self.source.plan(nothing, self.last)
        return found and ([Path(name).name for name in found["files"]], found["is_cut"])

    def append(self, *names: str) -> Commit:
        """Append the names of files to the journal; returns the commit that would follow."""
        more, new = (self.last.more if self.last else {}), [str(self.input / name) for name in names]
        journal = self.source._journal
        kept = json.loads(json.dumps(journal.written(more, new)))
        journal.append(more, new)
        return Commit(len(self.commits), "a", 0, {}, {**more, **kept})

    def commit(self, *names: str) -> None:
        self.commits.append(self.append(*names))


def test_files_are_planned_by_name_and_none_twice(stage: Stage) -> None:
    growing = Growing(stage, most=25)
    assert growing.plan() is None
    growing.add("c", "b", "a")
    assert growing.plan() == (["a", "b"], True)
    growing.commit("a", "b")
    assert growing.plan() == (["c"], False)
    growing.restart()
    assert growing.plan() == (["c"], False)
    growing.commit("c")
    assert growing.plan() is None
    assert growing.last is not None
    assert read_count(growing.last.more) == 3


def test_a_commit_is_as_large_after_many_files_as_after_one(stage: Stage) -> None:
    growing = Growing(stage, most=25)
    growing.commit("a")
    size = len(json.dumps(growing.commits[-1].more))
    for number in range(50):
        before = growing.journal.stat().st_size
        growing.commit(f"a-long-name-{number:04d}")
        assert growing.journal.stat().st_size - before < 200, "only what is new"
    assert len(json.dumps(growing.commits[-1].more)) < size + 10


def test_names_of_a_micro_batch_that_was_not_committed_do_not_count(stage: Stage) -> None:
    growing = Growing(stage, most=25)
    growing.add("a", "b", "c")
    growing.commit("a")
    lost = growing.append("b", "c")  # killed before the commit
    growing.restart()
    assert growing.plan() == (["b", "c"], False)
    growing.commit("b")
    growing.restart()
    assert growing.plan() == (["c"], False)
    growing.commits.append(lost)  # as if the journal had been restored from another time than the commits
    growing.restart()
    with pytest.raises(CheckpointError, match="names of files that the last commit knows"):
        growing.plan()


def test_a_process_whose_commit_failed_goes_on_from_the_commit_before(stage: Stage) -> None:
    growing = Growing(stage, most=25)
    growing.add("a", "b")
    growing.append("a")
    assert growing.plan() == (["a", "b"], False)
    growing.commit("a", "b")
    assert growing.journal.read_bytes().count(b"\n") == 2


@pytest.mark.parametrize("harm", ["short", "changed", "gone"])
def test_a_journal_that_lost_names_is_refused(stage: Stage, harm: str) -> None:
    growing = Growing(stage, most=25)
    growing.commit("a", "b")
    data = growing.journal.read_bytes()
    growing.journal.write_bytes(data[:-3] if harm == "short" else data.replace(b"/a", b"/x"))
    if harm == "gone":
        growing.journal.unlink()
    growing.restart()
    with pytest.raises(CheckpointError, match=r"names of files that the last commit knows.*backup"):
        growing.plan()


def test_a_state_with_names_in_its_commits_is_refused(stage: Stage) -> None:
    growing = Growing(stage, most=25)
    growing.commits.append(Commit(0, "a", 0, {}, {"files": ["a"]}))
    with pytest.raises(CheckpointError, match="older version of shoal"):
        growing.plan()


def test_names_with_unusual_characters_are_read_back(tmp_path: Path) -> None:
    names = ['a\n"b', "c d", "ü\u2028é"]
    journal = FileJournal(tmp_path)
    more = journal.written({}, names)
    journal.append({}, names)
    assert FileJournal(tmp_path).names(more) == set(names)

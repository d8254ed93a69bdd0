"""Streaming DataFrames: every micro-batch is published once, as one machine publishes it, through crashes."""

from __future__ import annotations

import ast
import inspect
import json
import os
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import shoal.spark
from shoal import ZAnonymity
from shoal.crypto.keys import as_secret
from shoal.encode.sealed import read_sealed_trace
from shoal.errors import CheckpointError, InputError, OutputError, PolicyError
from shoal.spark.recipe import Recipe
from shoal.spark.streams.batch_folders import BatchFolders
from shoal.spark.streams.dataframe_sink import QueryOwner, check_stream
from shoal.spark.streams.state import Commit, ShardStates, StateFolder
from tests.docs.pages import blocks
from tests.spark.scene import KEY, Stage, events

FILES = 3


COMBINE = {"combine": "k", "k": 3, "rotation": "5min"}


def method(**more: Any) -> ZAnonymity:
    return ZAnonymity(z=3, window="10min", person="id", time="ts", attribute="site", lateness="40s", **more)


def published(folder: Path) -> list[list[dict[str, Any]]]:
    """What was published, by micro-batch."""
    return [
        [row for part in sorted(batch.glob("part-*")) for row in pq.read_table(part).to_pylist()]
        for batch in sorted(folder.glob("batch=*"))
    ]


class Crash(Exception):
    """A driver that stops here."""


@pytest.mark.parametrize("option", [{}, COMBINE], ids=["z", "combine"])
def test_micro_batches_are_published_once_through_crashes(
    session: Any, stage: Stage, monkeypatch: pytest.MonkeyPatch, option: dict[str, Any]
) -> None:
    stage.write(events(2000), files=FILES, kind="parquet")
    files = sorted((stage.folder / "in").iterdir())
    here, expected, traced = method(key=KEY, **option), [], []
    for number, path in enumerate(files):
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
        release = here.push_batch(pq.read_table(path))
        expected.append(release.rows.to_pylist())
        traced.append(release.trace.to_pylist())
    out, places = stage.folder / "out", {name: stage.folder / name for name in ("state", "trace", "dead_letters")}
    crashes = {0: "before the commit", 1: "after the commit", 2: "another query starts"}
    write, show = StateFolder.write, BatchFolders.show

    def crashing_write(self: StateFolder, commit: Commit) -> None:
        if crashes.get(commit.batch) == "before the commit":
            del crashes[commit.batch]
            assert not [path for place in (out, *places.values()) for path in place.glob("batch=*")]
            raise Crash
        if crashes.get(commit.batch) == "another query starts":
            del crashes[commit.batch]
            QueryOwner(places["state"]).take("another")
        write(self, commit)

    def crashing_show(self: BatchFolders, commit: Commit) -> None:
        if crashes.get(commit.batch) == "after the commit":
            del crashes[commit.batch]
            raise Crash
        show(self, commit)

    monkeypatch.setattr(StateFolder, "write", crashing_write)
    monkeypatch.setattr(BatchFolders, "show", crashing_show)
    schema = session.read.parquet(str(stage.folder / "in")).schema
    stream = session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(stage.folder / "in"))
    for must_crash in (True, True, True, False):
        writer = shoal.spark.anonymize(stream, method(**option), out=out, shards=3, **places)
        query = writer.trigger(availableNow=True).start()
        with pytest.raises(Exception, match=r"Crash|has taken over these checkpoints") if must_crash else nullcontext():
            query.awaitTermination()
    rows = published(out)
    assert rows == expected
    traces = sorted(places["trace"].iterdir())
    assert [read_sealed_trace(path, as_secret(KEY)).to_pylist() for path in traces] == traced
    assert not [path for place in (out, *places.values()) for path in place.glob(".attempt-*")]
    assert sum(map(len, rows)) > 100
    texts = [path.read_text() for path in sorted(places["dead_letters"].iterdir())]
    letters = [[json.loads(line)["row"] for line in text.splitlines()] for text in texts]
    assert letters == [sorted(row["row"] + 1 for row in batch if row["verdict"] == "dead") for batch in traced]
    assert sum(map(len, letters)) > 0
    with pytest.raises(CheckpointError, match="is of another method, other settings"):
        shoal.spark.anonymize(stream, method(max_gap="2h", **option), out=out, shards=3, **places)


def test_micro_batches_of_another_stream_are_refused(session: Any, stage: Stage) -> None:
    stage.write(events(300), files=2, kind="parquet")
    folder = str(stage.folder / "in")
    stream = session.readStream.schema(session.read.parquet(folder).schema).parquet(folder)
    places = {name: stage.folder / name for name in ("out", "trace", "dead_letters")}
    shoal.spark.anonymize(stream, method(), state=stage.folder / "one", **places).trigger(
        availableNow=True
    ).start().awaitTermination()
    before = published(places["out"])
    for reused in places:
        others = {name: place if name == reused else stage.folder / f"new-{name}" for name, place in places.items()}
        with pytest.raises(OutputError, match=r"batch=000000000.*: was not written by this stream"):
            shoal.spark.anonymize(stream, method(), state=stage.folder / "two", **others)
    late = {name: stage.folder / f"late-{name}" for name in places}
    query = shoal.spark.anonymize(stream, method(), state=stage.folder / "three", **late).trigger(availableNow=True)
    (late["out"] / "batch=000000000").mkdir()
    with pytest.raises(Exception, match=r"batch=000000000: was not written by this stream"):
        query.start().awaitTermination()
    assert StateFolder(stage.folder / "three").last() is None
    assert published(places["out"]) == before


def test_the_query_that_started_last_has_the_state(tmp_path: Path) -> None:
    first, second = QueryOwner(tmp_path), QueryOwner(tmp_path)
    first.take("one")
    first.require()
    second.take("two")
    second.require()
    first.take("one")
    with pytest.raises(CheckpointError, match="has taken over"):
        first.require()
    first.take("three")  # started again
    first.require()
    with pytest.raises(CheckpointError, match="has taken over"):
        second.require()


def test_frames_that_do_not_fit_are_refused_before_a_query_starts(session: Any, stage: Stage) -> None:
    frame = session.range(3).withColumnRenamed("id", "user")
    stream = session.readStream.format("rate").load()
    places = {"out": stage.folder / "out", "state": stage.folder / "state"}
    with pytest.raises(InputError, match="the DataFrame has no column 'ts', 'id', 'site'"):
        shoal.spark.anonymize(stream, method(), **places)
    with pytest.raises(PolicyError, match="are for streams; write the DataFrame that is returned"):
        shoal.spark.anonymize(frame, method(), **places)
    assert not places["out"].exists()


def test_a_shard_is_rebuilt_from_a_snapshot_and_logs_and_snapshots_stay_rare(tmp_path: Path) -> None:
    class Counter:
        """Remembers what it was given."""

        def __init__(self, state: bytes = b"") -> None:
            self.seen = state

        def dump(self) -> bytes:
            return self.seen

    def replay(shard: Counter, log: bytes) -> None:
        shard.seen += log

    chains: dict[str, list[str]] = {}
    previous, kinds = None, []
    for batch in range(34):
        states = ShardStates(tmp_path, f"a{batch}", previous, chains)
        if batch % 3 == 0:  # another worker: nothing is in memory
            states = ShardStates(tmp_path, f"a{batch}", previous if previous is None else "other", chains)
        shard = states.open(0, Counter, replay)
        assert shard.seen == bytes(range(batch)), batch
        shard.seen += bytes([batch])
        chain = states.keep(0, shard, lambda batch=batch: bytes([batch]))
        chains, previous = {"0": chain}, f"a{batch}"
        kinds.append(chain[-1].rpartition(".")[2])
    snapshots = [batch for batch, kind in enumerate(kinds) if kind == "snapshot"]
    assert snapshots == [0, 2, 6, 14, 23, 32]  # of 1, 3, 7 and 15 bytes; then after eight logs, however small
    commits = StateFolder(tmp_path)
    commits.write(Commit(33, "a33", 34, chains, {}))
    assert {path.name for path in tmp_path.glob("shard-*")} == set(chains["0"])
    assert commits.last_before(34) == commits.read(33)
    assert commits.last_before(33) is None


def test_what_a_stream_needs_is_named(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOAL_KEY_FILE", str(stage.key))
    with pytest.raises(OutputError, match="needs out and state"):
        check_stream(Recipe.of(method()), "out", None)
    with pytest.raises(PolicyError, match=r"k\^m does not decide streams on Spark"):
        check_stream(Recipe("k^m", {}, ""), "out", "state")


def test_the_call_of_the_page_has_only_known_options() -> None:
    scripts = [block for block in blocks("python") if block.page == "docs/howto/spark.md"]
    (script,) = (block for block in scripts if "readStream" in block.text)
    calls = [node for node in ast.walk(ast.parse(script.text)) if isinstance(node, ast.Call)]
    (call,) = (one for one in calls if ast.unparse(one.func) == "shoal.spark.anonymize")
    known = inspect.signature(shoal.spark.anonymize).parameters
    assert {str(word.arg) for word in call.keywords} <= set(known)
    assert {"out", "state"} <= {str(word.arg) for word in call.keywords}

"""The loop of a run: any source, time that passes without a record, and a replay that decides the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from shoal.decode.base import Decoded, Refused
from shoal.errors import InputError
from shoal.observe.counts import Commit
from shoal.observe.observer import Observer
from shoal.pipeline import wiring
from shoal.pipeline.checkpoints import CheckpointFolder
from shoal.pipeline.doctor.doctor import examine
from shoal.pipeline.run import StreamRun
from shoal.policy import Policy, parse_policy
from shoal.policy.live import systems
from shoal.policy.tables import SinkSection, SourceSection
from shoal.sinks.base import PlainSink
from shoal.sources.base import Idle, Mark
from shoal.testing.scripted import ScriptedSource

SECOND = 10**9
SCHEMA = pa.schema([("ts", pa.int64()), ("user", pa.string()), ("site", pa.string())])


def policy(folder: Path, **sections: dict[str, Any]) -> Policy:
    table: dict[str, Any] = {
        "stream": {"person": "user", "time": "ts"},
        "source": {"kind": "csv", "path": "unused.csv"},
        "anonymize": {
            "method": "least-loss", "k": 2, "deadline": "10s", "reuse": "10s",
            "quasi": {"site": {"kind": "categorical", "hierarchy": {"kind": "flat", "values": ["a", "b"]}}},
        },
        "sink": {"kind": "jsonl", "path": "out.jsonl"},
    }  # fmt: skip
    return parse_policy(table | sections, folder=folder)


def batch(*rows: tuple[int, str | None, str]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def run(of: Policy, *script: Any) -> Any:
    return StreamRun(of, Observer(), ScriptedSource(script, schema=SCHEMA)).execute()


def released(folder: Path) -> list[Any]:
    return [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]


FIRST = batch((1, "ann", "a"), (1, "bob", "a"), (2, "cid", "b"))
LATER = batch((4, "dan", "b"))


def test_records_of_any_source(tmp_path: Path) -> None:
    summary = run(policy(tmp_path), FIRST, LATER)
    assert (summary.rows_in, summary.released, summary.files) == (4, 4, 1)


def test_observers_hear_of_every_turn_and_commit(tmp_path: Path) -> None:
    commits, turns = [], []

    class Watching(Observer):
        def turn(self) -> None:
            turns.append(1)

        def committed(self, commit: Callable[[], Commit]) -> None:
            commits.append(commit())

    of = policy(tmp_path, checkpoint={"path": "state", "every": 1})
    script = (FIRST, Idle(None), LATER)
    summary = StreamRun(of, Watching(), ScriptedSource(script, schema=SCHEMA)).execute()
    assert len(turns) == len(script)
    first, middle, later, last = commits
    assert [one.summary.rows_in for one in commits] == [0, 3, 4, 4]
    assert (first.event_time_ns, middle.event_time_ns, later.event_time_ns) == (None, 2 * SECOND, 4 * SECOND)
    assert (middle.pending, last.pending) == (3 - middle.summary.released, 0)
    assert (last.summary.released, last.summary.guarantee) == (summary.released, summary.guarantee)
    assert last.promised_delay == 10
    assert later.checkpoint_bytes > 0


def test_idle_time_reaches_the_method(tmp_path: Path) -> None:
    """After half a minute of silence the three are due without dan, who joins cid otherwise."""
    with_dan = run(policy(tmp_path), FIRST, LATER)
    alone = run(policy(tmp_path), FIRST, Idle(30 * SECOND), LATER)
    assert with_dan.suppressed == 0
    assert alone.suppressed > 0
    assert len(released(tmp_path)) == alone.released < 4


class Killed(Exception):
    """What no run catches."""


def test_a_replay_repeats_idle_time(tmp_path: Path) -> None:
    expected = run(policy(tmp_path), FIRST, Idle(30 * SECOND), LATER)
    rows = released(tmp_path)
    of = policy(tmp_path, checkpoint={"path": "state", "every": 1})
    with pytest.raises(Killed):
        run(of, FIRST, Idle(30 * SECOND), Killed())
    # The source that is read again is not silent a second time: LATER is there at once.
    again = run(of, FIRST, LATER)
    assert (again.released, again.suppressed) == (expected.released, expected.suppressed)
    assert again.resumed
    assert released(tmp_path) == rows


def test_idle_time_is_recorded_before_the_method_gets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of = policy(tmp_path, checkpoint={"path": "state", "every": 1})

    def die(self: object, now: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr("shoal.methods.base.StreamMethod.advance", die)
        with pytest.raises(Killed):
            run(of, FIRST, Idle(30 * SECOND), LATER)
    folder = CheckpointFolder(tmp_path / "state", warn=print)
    found = folder.latest()
    folder.release()
    assert found is not None
    assert found.progress.advance_to == 30 * SECOND
    assert run(of, FIRST, LATER).suppressed > 0


def test_idle_without_a_time_changes_nothing(tmp_path: Path) -> None:
    expected = run(policy(tmp_path), FIRST, LATER)
    assert run(policy(tmp_path), Idle(None), FIRST, Idle(None), LATER).released == expected.released


def test_a_decision_of_the_source_is_recorded_before_it_is_polled_again(tmp_path: Path) -> None:
    of = policy(tmp_path, checkpoint={"path": "state", "every": 1000})
    with pytest.raises(Killed):
        run(of, FIRST, Mark(), Killed())
    folder = CheckpointFolder(tmp_path / "state", warn=print)
    found = folder.latest()
    folder.release()
    assert found is not None
    assert found.progress.position == {"step": 2}


def test_an_error_of_the_source_ends_the_run_after_what_was_read(tmp_path: Path) -> None:
    summary = run(policy(tmp_path), FIRST, InputError("broke off"), LATER)
    assert summary.failure == "broke off"
    assert summary.rows_in == 3


def test_a_refused_record_is_a_dead_letter_and_no_row(tmp_path: Path) -> None:
    refused = Refused(1, "ts", "not a number")
    decoded = Decoded(batch((1, "ann", "a"), (1, None, "a")), (refused,), {"step": 1})
    summary = run(policy(tmp_path), decoded)
    assert summary.rows_in == 3
    assert summary.dead_by_reason == {"unreadable": 1, "null-person": 1}
    letters = [json.loads(line) for line in (tmp_path / "out.jsonl.dead.jsonl").read_text().splitlines()]
    assert [(one["row"], one["column"]) for one in letters] == [(2, "ts"), (3, "user")]
    assert letters[0]["reason"] == "not a number"


class Topic(SourceSection, SinkSection):
    """A table of [source] and [sink] for a system without files, such as a broker."""

    topic: str

    @property
    def name(self) -> str:
        return f"topic {self.topic}"


class MemorySink(PlainSink):
    """Keeps rows in memory."""

    def __init__(self) -> None:
        self.rows: list[Any] = []

    def open(self, schema: pa.Schema) -> None:
        self.rows.clear()

    def write(self, rows: pa.RecordBatch) -> None:
        self.rows += rows.to_pylist()

    def commit(self, epoch: int) -> dict[str, Any]:
        return {"rows": len(self.rows)}

    def finish(self) -> dict[str, Any]:
        return {"rows": len(self.rows)}

    def clean(self) -> None:
        pass

    def close(self) -> None:
        pass


def test_a_system_without_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker needs its table, one line in SOURCES or SINKS, and one line in the wiring."""
    sink = MemorySink()
    monkeypatch.setitem(systems.SOURCES, "topic", Topic)
    monkeypatch.setitem(systems.SINKS, "topic", Topic)
    monkeypatch.setitem(wiring.SOURCES, Topic, lambda of: ScriptedSource([FIRST, LATER], schema=SCHEMA))
    monkeypatch.setitem(wiring.SINKS, Topic, lambda of, *, resumable: sink)
    monkeypatch.chdir(tmp_path)  # dead letters go to the current folder
    topic = {"kind": "topic", "topic": "visits"}
    of = policy(tmp_path, source=topic, sink=topic)
    summary = StreamRun(of, Observer()).execute()
    assert summary.released_to == "topic visits"
    assert summary.released == len(sink.rows) == 4
    assert Path(summary.dead_letters or "") == tmp_path / "shoal.dead.jsonl"
    found = [remark.sentence for remark in examine(of) if remark.level == "wrong"]
    assert found == ["[source] kind: this command or method reads files only; name files"]


def test_progress_is_cheap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The full summary, hierarchies and metrics included, is built once."""
    built = []
    real = StreamRun.execute.__globals__["RunReport"].summary

    def summary(self: Any, *args: Any, **options: Any) -> Any:
        built.append(1)
        return real(self, *args, **options)

    monkeypatch.setattr("shoal.pipeline.summary.RunReport.summary", summary)
    run(policy(tmp_path), FIRST, LATER, LATER)
    assert len(built) == 1

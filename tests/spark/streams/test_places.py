"""The doctor says of a stream on Spark what its run will do: begin, continue, change nothing, or refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shoal.errors import InputError
from shoal.observe.observer import Observer
from shoal.pipeline.doctor.doctor import examine
from shoal.pipeline.doctor.remarks import Remark
from shoal.pipeline.wiring import make_anonymizer
from shoal.policy import Policy, load_policy
from shoal.spark.cluster.doctor import is_stream, spark_remarks
from shoal.spark.families import SHARDS
from shoal.spark.recipe import Recipe, shared_secret
from shoal.spark.streams.doctor import stream_remarks
from shoal.spark.streams.growing_files import GrowingFiles
from shoal.spark.streams.micro_batches import identity_of
from shoal.spark.streams.plans import Plans
from shoal.spark.streams.run import SparkStream
from shoal.spark.streams.state import Commit, StateFolder
from tests.spark.scene import EVENTS, Stage, events


class Published:
    """A stream on Spark as its runs leave it, without a run."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.out, self.state = stage, stage.folder / "there", stage.folder / "state"
        stage.write(events(200), files=1)
        self.path = stage.policy(EVENTS, "there", time=True)
        self.path.write_text(self.path.read_text() + '\n[checkpoint]\npath = "state"\n')
        for folder in (self.out, self.state):
            folder.mkdir()

    @property
    def policy(self) -> Policy:
        return load_policy(self.path)

    @property
    def recipe(self) -> Recipe:
        return Recipe.of(make_anonymizer(self.policy, shared_secret()))

    def commit(self, batch: int, *, ended: bool = False, trace: tuple[int, int] = (0, 7)) -> None:
        """Commit a micro-batch, and write what it publishes."""
        ends = {"trace": trace, "letters.jsonl": (0, 0)}
        more = {"identity": identity_of(self.recipe, SHARDS), "ended": ended, "ends": ends}
        StateFolder(self.state).write(Commit(batch, f"{batch:09d}-ab", 1200, {}, more))
        (self.out / f"part-{batch:09d}-00000.parquet").touch()
        self.trace.write_bytes(b"x" * trace[1])

    @property
    def trace(self) -> Path:
        return self.stage.folder / "there.trace.parquet"

    def remarks(self) -> list[Remark]:
        """What the doctor says about the places of the stream."""
        return [*stream_remarks(self.policy, self.recipe, shared_secret(), SHARDS)]

    def wrong(self) -> tuple[str, str]:
        """The topic and the sentence of the only thing that is wrong."""
        ((topic, sentence),) = [(one.topic, one.sentence) for one in self.remarks() if one.level == "wrong"]
        return topic, sentence


@pytest.fixture
def published(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Published:
    monkeypatch.setenv("SHOAL_KEY_FILE", str(stage.key))
    return Published(stage)


def test_a_stream_that_begins(published: Published) -> None:
    published.out.rmdir()
    published.state.rmdir()
    assert published.remarks() == [
        Remark("good", "checkpoint", "state: no micro-batch is decided yet; the run begins the stream")
    ]
    assert not published.out.exists()
    assert not published.state.exists()


def test_a_trace_of_another_stream_is_replaced(published: Published) -> None:
    published.trace.write_bytes(b"another")
    assert published.remarks()[1:] == [Remark("look", "trace", f"{published.trace}: exists and will be replaced")]


def test_a_stream_that_continues(published: Published) -> None:
    published.commit(6)
    published.commit(7)
    assert published.remarks() == [
        Remark("good", "checkpoint", "state: the run continues after micro-batch 7, which ended with record 1,200")
    ]


def test_a_stream_that_was_finished_before(published: Published) -> None:
    published.commit(7, ended=True)
    published.trace.unlink()  # moved away; a run would not miss it
    (remark,) = published.remarks()
    assert remark.level == "look"
    assert "this stream was finished before, with micro-batch 7; a run changes nothing" in remark.sentence


@pytest.mark.parametrize("name", ["part-000000008-00000.parquet", "part-00000.parquet", "theirs.parquet"])
def test_files_of_others(published: Published, name: str) -> None:
    published.commit(7)
    (published.out / name).touch()
    topic, sentence = published.wrong()
    assert topic == "sink"
    assert f"{name}: is in the folder of the output but was not written by this stream" in sentence


def test_parts_without_the_state_that_they_belong_to(published: Published) -> None:
    published.commit(0, trace=(0, 0))
    (published.state / "batch-000000000.json").unlink()
    assert "was not written by this stream" in published.wrong()[1]


def test_state_of_another_policy_and_state_that_is_damaged(published: Published) -> None:
    published.commit(7)
    text = published.path.read_text()
    published.path.write_text(text.replace('"z" = 3', '"z" = 4'))
    topic, sentence = published.wrong()
    assert topic == "checkpoint"
    assert "is of another method, other settings" in sentence
    published.path.write_text(text)
    (published.state / "batch-000000007.json").write_text("{")
    assert "is damaged" in published.wrong()[1]


def test_a_trace_that_has_become_shorter(published: Published) -> None:
    published.commit(7, trace=(4, 7))
    published.trace.write_bytes(b"x" * 5)
    topic, sentence = published.wrong()
    assert topic == "trace"
    assert "has 5 bytes, the state knows 7" in sentence
    attempt = published.out / ".attempt-000000007-ab"  # killed after the commit: the run appends these bytes again
    attempt.mkdir()
    (attempt / "trace").write_bytes(b"xxx")
    assert {remark.level for remark in published.remarks()} == {"good"}


def test_a_planned_file_that_was_deleted(published: Published) -> None:
    """Also on the driver of a run, before Spark reads anything."""
    published.commit(7)
    names = [str(published.stage.folder / "in" / name) for name in ("gone.csv", "part-0.csv", "gone too.csv")]
    Plans(published.state).write(8, {"files": names})
    topic, sentence = published.wrong()
    assert topic == "source"
    assert sentence.startswith(f"{names[0]} (and 1 more): no longer exists, but micro-batch 8 was planned with it")
    assert f"delete {published.state / 'plan-000000008.json'}" in sentence
    nothing: Any = None
    with pytest.raises(InputError) as caught:
        GrowingFiles(published.policy, nothing, (), most=10).take(
            nothing, {"files": names}, StateFolder(published.state).last()
        )
    assert str(caught.value) == sentence
    Plans(published.state).path(8).unlink()
    assert {remark.level for remark in published.remarks()} == {"good"}


def test_other_remarks_leave_the_places_of_a_stream_alone(published: Published) -> None:
    published.commit(7)
    assert is_stream(published.policy)
    topics = ("sink", "trace", "checkpoint", "dead letters")
    assert not [remark for remark in examine(published.policy, places=False) if remark.topic in topics]
    assert {"sink", "trace"} <= {remark.topic for remark in examine(published.policy)}, "what one machine would do"


def test_the_doctor_and_the_run_agree(session: Any, published: Published) -> None:
    def said() -> str:
        found = [*spark_remarks(published.policy, master="local[2]")]
        assert not [remark for remark in found if remark.level == "wrong"]
        return next(remark.sentence for remark in found if remark.topic == "checkpoint")

    def run(**options: Any) -> Any:
        return SparkStream(published.policy, Observer(), master="local[2]", **options).execute()

    Plans(published.state).write(0, {"files": [str(published.stage.folder / "in" / "gone.csv")]})
    with pytest.raises(InputError, match="no longer exists, but micro-batch 0 was planned with it"):
        run(once=True)
    Plans(published.state).path(0).unlink()
    assert "begins the stream" in said()
    assert run(once=True).rows_in == 200
    assert "continues after micro-batch 0, which ended with record 200" in said()
    assert run().resumed
    assert "finished before" in said()
    assert run().finished_before

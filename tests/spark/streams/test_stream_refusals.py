"""What a stream on Spark cannot do is refused with one sentence, before Spark is started."""

from __future__ import annotations

import pytest

from shoal.errors import CheckpointError, PolicyError, ShoalError, VaultError
from shoal.observe.observer import Observer
from shoal.pipeline.ownership import Ownership
from shoal.policy import load_policy
from shoal.spark.streams.run import SparkStream
from tests.spark.scene import EVENTS, Stage, events

pytestmark = pytest.mark.spark
REDIS = 'kind = "redis"\nurl = "redis://127.0.0.1:1"\nstreams = ["in"]\n'
KAFKA = 'kind = "kafka"\nbrokers = "127.0.0.1:1"\ntopics = ["in"]\nuntil = "end"\n'


def refused(stage: Stage, old: str, new: str, *, checkpoint: bool = True) -> ShoalError:
    """How a run of a changed policy is refused."""
    stage.write(events(20), files=1)
    path = stage.policy(EVENTS, "there", time=True)
    text = path.read_text().replace(old, new)
    path.write_text(text + ('\n[checkpoint]\npath = "state"\n' if checkpoint else ""))
    with pytest.raises(ShoalError) as caught:
        SparkStream(load_policy(path), Observer(), master="nowhere").execute()
    return caught.value


def test_no_key(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHOAL_KEY_FILE", raising=False)
    error = refused(stage, "", "")
    assert isinstance(error, VaultError)
    assert "every executor needs the same key" in str(error)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"kind" = "csv"\n"path" = "in/"\n', REDIS, "[source] kind: on Spark only files and Kafka"),
        ('"kind" = "csv"\n"path" = "in/"\n', KAFKA + 'start = "group"\n', "[source] start: on Spark"),
        ('"there/"', '"there.parquet"', "must be a folder"),
        (
            '"z" = 3',
            '"target" = {k = 5, p = 0.95, learn = "in/part-0.csv"}',
            "an earlier stream is read on one machine only",
        ),
    ],
    ids=["another system", "start of a group", "one file", "an earlier stream"],
)
def test_what_a_policy_names(stage: Stage, monkeypatch: pytest.MonkeyPatch, old: str, new: str, words: str) -> None:
    monkeypatch.setenv("SHOAL_KEY_FILE", str(stage.key))
    error = refused(stage, old, new)
    assert isinstance(error, PolicyError)
    assert words in str(error)


def test_a_stream_without_a_folder_for_its_state(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOAL_KEY_FILE", str(stage.key))
    assert "[checkpoint]: is missing" in str(refused(stage, "", "", checkpoint=False))


def test_a_folder_that_another_driver_uses(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOAL_KEY_FILE", str(stage.key))
    (stage.folder / "state").mkdir()
    other = Ownership(stage.folder / "state")
    error = refused(stage, "", "")
    other.release()
    assert isinstance(error, CheckpointError)
    assert "another run is using this checkpoint folder" in str(error)

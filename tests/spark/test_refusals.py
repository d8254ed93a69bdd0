"""What does not run on Spark, or cannot run on these executors, is refused with one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from shoal import LeastLoss
from shoal.errors import InputError, PolicyError, RunError, ShoalError
from shoal.observe.observer import Observer
from shoal.policy import load_policy
from shoal.schema import Numeric, Schema
from shoal.spark.dataframe import anonymize
from shoal.spark.doctor import spark_remarks
from shoal.spark.recipe import Recipe
from shoal.spark.run import SparkRun
from shoal.spark.session import translated
from shoal.spark.shared_paths import ReadToken
from tests.spark.scene import EVENTS, KEY, TUPLES, Stage, events

SETS = """
[stream]
person = "user"
[source]
kind = "csv"
path = "visits.csv"
[anonymize]
method = "k^m"
item = "site"
k = 2
m = 2
generalize = {balanced = 2}
[sink]
kind = "jsonl"
path = "released.jsonl"
"""
SCHEMA = Schema(person="id", quasi=[Numeric("age", low=0, high=100)])


@pytest.fixture
def with_key(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("SHOAL_KEY_FILE", str(stage.key))
    stage.write(events(20), files=1)
    return stage


def refused(stage: Stage, old: str, new: str) -> ShoalError:
    """How a run of a changed policy is refused, before Spark is started."""
    path = stage.policy(EVENTS, "there", time=True)
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(ShoalError) as caught:
        SparkRun(load_policy(path), Observer(), master="nowhere").execute()
    return caught.value


@pytest.mark.spark
def test_an_output_that_is_one_file(with_key: Stage) -> None:
    assert "must be a folder" in str(refused(with_key, '"there/"', '"there.parquet"'))


@pytest.mark.spark
def test_a_checkpoint(with_key: Stage) -> None:
    error = refused(with_key, '["trace"]', '["checkpoint"]\n"path" = "state"\n["trace"]')
    assert isinstance(error, PolicyError)
    assert str(error).startswith("[checkpoint]: on Spark a run reads all files as one batch")


def test_a_folder_that_executors_do_not_see(with_key: Stage) -> None:
    recipe = Recipe.of(LeastLoss(SCHEMA))
    token = with_key.folder / "token"
    token.write_text("abc")
    asked = [pa.record_batch({"id": [0]})]
    assert [batch.column("problem")[0].as_py() for batch in ReadToken(token, "abc", recipe)(asked)] == [None]
    for path, word in ((token, "other"), (with_key.folder / "missing", "abc")):
        (found,) = ReadToken(path, word, recipe)(asked)
        assert "is not shared" in found.column("problem")[0].as_py()


def test_an_executor_with_another_key(with_key: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe, token = Recipe.of(LeastLoss(SCHEMA)), with_key.folder / "token"
    token.write_text("abc")
    other = with_key.folder / "other"
    other.write_bytes(KEY[::-1])
    monkeypatch.setenv("SHOAL_KEY_FILE", str(other))
    (found,) = ReadToken(token, "abc", recipe)([pa.record_batch({"id": [0]})])
    assert "is not the driver's" in found.column("problem")[0].as_py()


@pytest.mark.spark
def test_the_doctor_reports_a_missing_key(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHOAL_KEY_FILE", raising=False)
    stage.write(events(20), files=1)
    remarks = list(spark_remarks(load_policy(stage.policy(EVENTS, "there", time=True)), master="nowhere"))
    assert [remark.level for remark in remarks] == ["wrong"]
    assert "every executor needs the same key" in remarks[0].sentence


def test_errors_of_executors_are_ours_and_others_lose_their_stack_trace() -> None:
    text = (
        "Traceback (most recent call last):\n  File \"x\"\nshoal.errors.InputError: a.csv: there is no column 'x'\n\n"
    )
    ours = translated(text)
    assert isinstance(ours, InputError)
    assert str(ours) == "a.csv: there is no column 'x'"
    other = translated("org.apache.SparkException: Job aborted\n  at a.b.c(D.scala:1)\n  at e.f(G.scala:2)")
    assert type(other) is RunError
    assert "scala" not in str(other)


@pytest.mark.parametrize(
    "text",
    [
        '[CAST_INVALID_INPUT] The value \'O\'Hara\' of the type "STRING" cannot be cast to "INT"',
        "pyarrow.lib.ArrowInvalid: Failed to parse string: 'O'Hara' as a scalar of type int64\nan Exception",
        "Job aborted: PythonException: ValueError: could not convert string to float: 'O'Hara'",
    ],
)
def test_errors_of_others_do_not_show_values(text: str) -> None:
    assert "Hara" not in str(translated(text))


def test_a_file_that_cannot_be_read_is_one_sentence_and_publishes_nothing(session: Any, stage: Stage) -> None:
    stage.write(events(200), files=2)
    (stage.folder / "in" / "part-1.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"part-1.csv: there are no columns"):
        SparkRun(load_policy(stage.policy(EVENTS, "there", time=True)), Observer(), master="local[2]").execute()
    assert not list(Path(stage.folder / "there").glob("*"))


def test_the_doctor_looks_at_executors(session: Any, stage: Stage) -> None:
    stage.write(events(20), files=1)
    found = list(spark_remarks(load_policy(stage.policy(TUPLES, "there")), master="local[2]"))
    assert {remark.level for remark in found} == {"good"}
    assert found[-1].sentence.startswith("2 tasks at a time on 1 machine: all have the key")


def test_the_path_of_a_policy_of_sets_for_a_frame(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(SETS)
    frame: Any = None  # refused before a row is looked at
    with pytest.raises(PolicyError, match="sets of a DataFrame need a method"):
        anonymize(frame, path)

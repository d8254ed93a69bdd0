"""What does not run on Spark, or cannot run on these executors, is refused with one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from shoal import LeastLoss
from shoal.errors import InputError, OutputError, PolicyError, RunError, ShoalError, VaultError
from shoal.observe.observer import Observer
from shoal.policy import load_policy
from shoal.schema import Numeric, Schema
from shoal.spark.cluster import executor_check
from shoal.spark.cluster.doctor import spark_remarks
from shoal.spark.cluster.executor_check import CheckExecutor
from shoal.spark.cluster.session import start_session, translated
from shoal.spark.dataframe import anonymize
from shoal.spark.recipe import Recipe
from shoal.spark.run import SparkRun
from shoal.spark.sets.people import SparkPeople
from shoal.spark.sets.run import set_recipe
from tests.spark.flexible.test_shards import method, promise, records
from tests.spark.scene import EVENTS, KEY, TUPLES, Stage, events
from tests.spark.sets.test_set_runs import COUNTED, visits
from tests.spark.sets.test_set_runs import policy as set_policy

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


@pytest.mark.parametrize("family", ["tuples", "flexible", "sets"])
def test_a_folder_that_executors_do_not_see(with_key: Stage, family: str) -> None:
    recipe = set_recipe("k^m") if family == "sets" else Recipe.of(LeastLoss(SCHEMA) if family == "tuples" else method())
    token, missing = with_key.folder / "token", with_key.folder / "missing"
    token.write_text("abc")
    assert problems(CheckExecutor(recipe, ((token, "abc"),), (token,))) == [(None, None)]
    for path, word in ((token, "other"), (missing, "abc")):
        ((kind, sentence),) = problems(CheckExecutor(recipe, ((token, "abc"), (path, word))))
        assert kind == "folder"
        assert "is not shared" in sentence
    ((kind, sentence),) = problems(CheckExecutor(recipe, inputs=(token, missing)))
    assert kind == "input"
    assert sentence.startswith(f"{missing}: an executor does not see this file")


def problems(check: CheckExecutor) -> list[tuple[Any, Any]]:
    """What an executor reports."""
    (found,) = check([pa.record_batch({"id": [0]})])
    return list(zip(found.column("kind").to_pylist(), found.column("problem").to_pylist(), strict=True))


def test_an_executor_with_another_key(with_key: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    recipes = [Recipe.of(LeastLoss(SCHEMA)), Recipe.of(method()), set_recipe("k^m")]
    other = with_key.folder / "other"
    other.write_bytes(KEY[::-1])
    monkeypatch.setenv("SHOAL_KEY_FILE", str(other))
    for recipe in recipes:
        ((kind, sentence),) = problems(CheckExecutor(recipe))
        assert kind == "key"
        assert "is not the driver's" in sentence


def family_policy(stage: Stage, family: str) -> Path:
    """Write the input of a family; return its policy."""
    stage.write(visits(20) if family == "sets" else records(), files=1)
    return set_policy(stage, COUNTED, "there") if family == "sets" else stage.policy(promise(stage.folder), "there")


@pytest.mark.spark
@pytest.mark.parametrize("family", ["flexible", "sets"])
def test_no_key(stage: Stage, monkeypatch: pytest.MonkeyPatch, family: str) -> None:
    monkeypatch.delenv("SHOAL_KEY_FILE", raising=False)
    with pytest.raises(VaultError, match="every executor needs the same key"):
        SparkRun(load_policy(family_policy(stage, family)), Observer(), master="nowhere").execute()


def test_local_recoding_of_sets_is_refused_before_anything_else(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also without a key, without PySpark and with other things that do not run on Spark."""
    monkeypatch.delenv("SHOAL_KEY_FILE", raising=False)
    stage.write(visits(20), files=1)
    policy = load_policy(set_policy(stage, {**COUNTED, "recoding": "local", "drop_rare": 2}, "there"))
    with pytest.raises(PolicyError, match='recoding: "local" does not run on Spark'):
        SparkRun(policy, Observer(), master="nowhere").execute()
    (remark,) = spark_remarks(policy, master="nowhere")
    assert remark.level == "wrong"
    assert 'recoding: "local" does not run on Spark' in remark.sentence


def test_folders_that_are_not_shared_publish_nothing(
    session: Any, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver's token does not reach executors; the release of sets is written by the driver, their input is not."""
    monkeypatch.setattr(executor_check, "write_file", lambda path, text: None)
    with pytest.raises(OutputError, match="is not shared: an executor does not see"):
        SparkRun(load_policy(family_policy(stage, "flexible")), Observer(), master="local[2]").execute()
    monkeypatch.setattr(SparkPeople, "read", without_input(SparkPeople.read))
    policy = load_policy(family_policy(stage, "sets"))
    with pytest.raises(InputError, match=r"part-0.csv: "):
        SparkRun(policy, Observer(), master="local[2]").execute()
    assert not [path for path in stage.folder.glob("there*") if path.suffix != ".toml"]


def without_input(read: Any) -> Any:
    """Read files that only the driver has seen."""

    def read_on_executors(people: SparkPeople, files: Any, *more: Any, **options: Any) -> Any:
        for file in files:
            file.path.unlink()
        return read(people, files, *more, **options)

    return read_on_executors


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
    gone = translated("An error occurred.\n: java.lang.IllegalStateException: Cannot call on a stopped SparkContext.")
    assert "check --master" in str(gone)
    assert "Spark: java.lang.X" in str(translated("called o1\n: java.lang.XException: no\n"))
    other_python = translated("PythonException: Traceback\nModuleNotFoundError: No module named 'numpy'\n SQLSTATE")
    assert str(other_python).startswith("Spark: the Python of an executor has no module numpy; before the session")


def test_a_frame_of_another_library() -> None:
    with pytest.raises(InputError, match=r"not a DataFrame of Spark; .* use shoal.anonymize"):
        anonymize(pa.table({"id": [1]}), LeastLoss(SCHEMA))  # type: ignore[arg-type]


@pytest.mark.spark
@pytest.mark.parametrize("master", ["foo://host:1", "locale[2]", "local[two]", "spark:host:7077", ""])
def test_an_unknown_master_is_refused_before_java_is_started(master: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.spark.cluster.session._find_java", lambda: pytest.fail("looked for Java"))
    with pytest.raises(PolicyError, match="is not a cluster of Spark"):
        start_session(master)


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

"""Anonymize a DataFrame, in a notebook or a job."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.errors import InputError, PolicyError
from shoal.pipeline.wiring import make_anonymizer
from shoal.policy import load_policy
from shoal.spark.batch_evidence import evidence_file, write_evidence
from shoal.spark.cluster.session import limit_batches, readable_errors
from shoal.spark.families import SHARDS, check_settings, decide, head_columns
from shoal.spark.recipe import Recipe, shared_secret
from shoal.spark.records.frames import with_times
from shoal.spark.records.numbering import number_rows
from shoal.spark.sets.run import anonymize_sets, is_of_sets
from shoal.spark.streams.batch_folders import BatchFolders
from shoal.spark.streams.dataframe_sink import check_stream, stream_writer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter


def anonymize(
    frame: DataFrame,
    policy_or_method: Any,
    *,
    order: str | Sequence[str] | None = None,
    shards: int = SHARDS,
    out: str | PathLike[str] | None = None,
    state: str | PathLike[str] | None = None,
    trace: str | PathLike[str] | None = None,
    dead_letters: str | PathLike[str] | None = None,
) -> Any:
    """Anonymize all rows of a DataFrame; return the rows that may be published, in release order.

    The guarantee of the method holds for the whole DataFrame. z-anonymity and methods on sets publish the same rows as
    on one machine; methods on rows divide similar rows into shards, each decided by the method itself. Sets are a
    column of lists, or one of people and one of items; :func:`shoal.spark.anonymize_sets` returns their certificate.

    Of a streaming DataFrame, return a writer: ``.start()`` starts the query, ``.trigger(…)`` says how often rows are
    taken. Each micro-batch is published once, through crashes of executors and of the driver, as Parquet files in
    ``out/batch=N``. What z-anonymity publishes is what one machine publishes of the same micro-batches.

    Parameters
    ----------
    frame
        A DataFrame with the columns that the method reads.
    policy_or_method
        A method such as ``shoal.LeastLoss(schema, k=50)``, or the path of a policy file, of which ``[stream]`` and
        ``[anonymize]`` count. Its key is that of SHOAL_KEY_FILE, which every executor must have.
    order
        Columns that give the order in which records arrived; for a stream, within each micro-batch. By default records
        come by the name of their file, then by their place in it. That needs one read of files with at most columns
        and rows chosen since; give ``order`` if the rows come out of a union, a join or a shuffle, or not from files.
    shards
        Into how many parts rows are divided at most. What is published depends on it, not on the number of machines.
    out, state
        For a stream: folders for the rows and for the state, which every machine has mounted under the same path.
        Started again with the same folders, the stream continues.
    trace, dead_letters
        Of a batch: files for the sealed trace, on a path that every machine has, and for the reasons of refused
        records. They are written by this call: it makes all decisions, and executors keep them for the DataFrame that
        is returned. Written as files, its rows are in the order of the trace, as an audit needs them. Of a stream:
        folders, which get a file for each micro-batch. Not for sets, which are audited without a trace.
    """
    given, places = _given(policy_or_method), (out, state, trace, dead_letters)
    if not hasattr(frame, "isStreaming"):
        raise InputError("not a DataFrame of Spark; for frames of pandas, polars and Arrow use shoal.anonymize")
    if is_of_sets(given):
        if frame.isStreaming or any(place is not None for place in places):
            raise PolicyError(
                "sets are decided as one batch, and audited without a trace; read them with spark.read, and give none "
                "of out, state, trace and dead_letters"
            )
        return anonymize_sets(frame, given).rows
    recipe = Recipe.of(given)
    check_settings(recipe)
    with readable_errors():
        limit_batches(frame.sparkSession)
        decide_frame = _stream if frame.isStreaming else _batch
        return decide_frame(frame, given, recipe, order, shards, *places)


def _stream(
    frame: DataFrame, method: Any, recipe: Recipe, order: Any, shards: int, out: Any, state: Any, trace: Any,
    dead_letters: Any,
) -> DataStreamWriter:  # fmt: skip
    check_stream(recipe, out, state)
    traces, letters = (None if path is None else Path(path).absolute() for path in (trace, dead_letters))
    output = BatchFolders(Path(out).absolute(), traces, letters, _shows_suppressed(method))
    place = Path(state).absolute()
    return stream_writer(frame, method, recipe, state=place, shards=shards, output=output, order=order)


def _batch(
    frame: DataFrame, method: Any, recipe: Recipe, order: Any, shards: int, out: Any, state: Any, trace: Any,
    dead_letters: Any,
) -> DataFrame:  # fmt: skip
    if out is not None or state is not None:
        raise PolicyError("out, state: are for streams; write the DataFrame that is returned")
    place, letters = evidence_file(trace, "trace"), evidence_file(dead_letters, "dead_letters")
    rows = number_rows(frame, method.columns, head_columns(recipe, method.columns), order=order)
    decided = decide(rows, recipe, shards=shards)
    if place is not None or letters is not None:
        method.bind(rows.types)
        write_evidence(frame.sparkSession, decided, method, recipe, place, letters)
    return with_times(decided.shown(suppressed=_shows_suppressed(method)), decided.published)


def _shows_suppressed(method: Any) -> bool:
    return getattr(method.settings, "suppressed", "drop") == "root"


def _given(policy_or_method: Any) -> Any:
    """A method, or a policy of sets."""
    if not isinstance(policy_or_method, str | PathLike):
        return policy_or_method
    policy = load_policy(policy_or_method)
    return policy if is_of_sets(policy) else make_anonymizer(policy, shared_secret())

"""Anonymize a DataFrame, in a notebook or a job."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.errors import InputError, PolicyError
from shoal.methods.registry import METHODS
from shoal.spark.cluster.session import limit_batches, readable_errors
from shoal.spark.families import SHARDS, check_settings, decide, head_columns
from shoal.spark.recipe import Recipe
from shoal.spark.records.numbering import number_rows
from shoal.spark.sets.run import anonymize_sets, is_of_sets
from shoal.spark.streams.dataframe_sink import BatchFolders, check_stream, stream_writer
from shoal.spark.streams.micro_batches import MicroBatches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
        ``[anonymize]`` count; for sets, a method only. Its key is that of SHOAL_KEY_FILE, which every executor must
        have.
    order
        Columns that give the order in which records arrived; for a stream, within each micro-batch. By default the
        order of the DataFrame, which is that of its files; give it if the rows come out of a join or a shuffle.
    shards
        Into how many parts rows are divided at most. What is published depends on it, not on the number of machines.
    out, state
        For a stream: folders for the rows and for the state, which every machine has mounted under the same path.
        Started again with the same folders, the stream continues.
    trace, dead_letters
        For a stream: folders for the sealed trace and for the reasons of refused records, a file for each micro-batch.
    """
    if is_of_sets(policy_or_method):
        return anonymize_sets(frame, policy_or_method).rows
    method = _method(policy_or_method)
    if not hasattr(frame, "isStreaming"):
        raise InputError("not a DataFrame of Spark; for frames of pandas, polars and Arrow use shoal.anonymize")
    recipe = Recipe.of(method)
    check_settings(recipe)
    shows_suppressed = getattr(method.settings, "suppressed", "drop") == "root"
    with readable_errors():
        limit_batches(frame.sparkSession)
        if frame.isStreaming:
            check_stream(recipe, out, state)
            traces, letters = (None if path is None else Path(path).absolute() for path in (trace, dead_letters))
            output = BatchFolders(Path(str(out)).absolute(), traces, letters, shows_suppressed)
            micro_batches = MicroBatches(method, recipe, Path(str(state)).absolute(), shards, output)
            return stream_writer(frame, micro_batches, order)
        if any(place is not None for place in (out, state, trace, dead_letters)):
            raise PolicyError("out, state, trace, dead_letters: are for streams; write the DataFrame that is returned")
        rows = number_rows(frame, method.columns, head_columns(recipe, method.columns), order=order)
        decisions = decide(rows, recipe, shards=shards)
        return decisions.shown(suppressed=shows_suppressed)


def _method(given: Any) -> Any:
    if not isinstance(given, str | PathLike):
        return given
    from shoal.pipeline.wiring import make_anonymizer
    from shoal.policy import load_policy
    from shoal.spark.recipe import shared_secret

    policy = load_policy(given)
    if METHODS[policy.anonymize.METHOD].family == "sets":
        raise PolicyError(
            "sets of a DataFrame need a method, such as shoal.KmAnonymity(k=5, m=2), instead of the path of a policy; "
            "shoal run --engine spark runs the policy itself"
        )
    return make_anonymizer(policy, shared_secret())

"""Anonymize a DataFrame, in a notebook or a job."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from shoal.errors import PolicyError
from shoal.spark.deciding import SHARDS, check_settings, decide
from shoal.spark.recipe import Recipe
from shoal.spark.rows import number_rows
from shoal.spark.session import readable_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def anonymize(
    frame: DataFrame, policy_or_method: Any, *, order: str | Sequence[str] | None = None, shards: int = SHARDS
) -> DataFrame:
    """Anonymize all rows of a DataFrame; return the rows that may be published, in release order.

    The guarantee of the method holds for the whole DataFrame. z-anonymity publishes the same rows as on one machine;
    methods on rows divide similar rows into shards, each decided by the method itself.

    Parameters
    ----------
    frame
        A batch DataFrame with the columns that the method reads.
    policy_or_method
        A method such as ``shoal.LeastLoss(schema, k=50)``, or the path of a policy file, of which ``[stream]`` and
        ``[anonymize]`` count. Its key is that of SHOAL_KEY_FILE, which every executor must have.
    order
        Columns that give the order in which records arrived. By default the order of the DataFrame, which is that of
        its files; give it if the rows come out of a join or a shuffle.
    shards
        Into how many parts rows are divided at most. What is published depends on it, not on the number of machines.
    """
    method = _method(policy_or_method)
    if frame.isStreaming:
        raise PolicyError("a streaming DataFrame cannot be anonymized; read it as a batch")
    recipe = Recipe.of(method)
    check_settings(recipe)
    with readable_errors():
        rows = number_rows(frame, method.columns, order=order)
        decisions = decide(rows, recipe, shards=shards)
        return decisions.shown(suppressed=getattr(method.settings, "suppressed", "drop") == "root")


def _method(given: Any) -> Any:
    if not isinstance(given, str | PathLike):
        return given
    from shoal.pipeline.wiring import make_anonymizer
    from shoal.policy import load_policy
    from shoal.spark.recipe import shared_secret

    return make_anonymizer(load_policy(given), shared_secret())

"""Dispatch to the family of a method; refuse settings that cannot be decided in shards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from shoal.errors import PolicyError
from shoal.spark.flexible.decide import decide_flexible
from shoal.spark.outcome import Decided
from shoal.spark.recipe import Recipe
from shoal.spark.records.numbering import NumberedRows
from shoal.spark.tuples.decide import decide_tuples
from shoal.spark.tuples.shard import shard_recipe
from shoal.spark.z.admit import admission_columns
from shoal.spark.z.decide import decide_z

SHARDS: Final = 16


def decide(rows: NumberedRows, recipe: Recipe, *, shards: int) -> Decided:
    """Decide all rows of a finite stream."""
    check_settings(recipe)
    decide_family: Any = {"flexible": decide_flexible, "tuples": decide_tuples, "z": decide_z}[recipe.family]
    decided: Decided = decide_family(rows, recipe, shards=shards)
    return decided


def head_columns(recipe: Recipe, columns: Sequence[str]) -> tuple[str, ...]:
    """Columns that are needed before records go to shards, so that they are stored apart from the others."""
    return admission_columns(recipe.settings()) if recipe.family == "z" else tuple(columns)


def check_settings(recipe: Recipe) -> None:
    """Refuse methods and settings that cannot be decided in shards, with what to do."""
    if recipe.family == "tuples":
        shard_recipe(recipe)
    elif recipe.family == "z":
        target = recipe.settings().target
        if target is not None and target.learn:
            raise PolicyError(
                "[anonymize.target] learn: an earlier stream is read on one machine only; leave it out, or run on one "
                "machine"
            )
    elif recipe.family != "flexible":
        raise PolicyError(f"[anonymize] method: {recipe.method} does not run on Spark; run it on one machine")

"""The trace and the dead letters of a DataFrame that is decided as one batch."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.crypto.private_files import replace_private
from shoal.errors import OutputError
from shoal.sinks.durable import output_error
from shoal.spark.cluster.executor_check import Needs, require_executors
from shoal.spark.dead_letters import letters_by_number, text_of
from shoal.spark.outcome import Decided, WriteTrace
from shoal.spark.recipe import Recipe

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def evidence_file(path: str | PathLike[str] | None, name: str) -> Path | None:
    """The file that an option names; refuse a folder."""
    if path is None:
        return None
    place = Path(path).absolute()
    if place.is_dir() or str(path).endswith("/"):
        raise OutputError(f"{name}: {path} is a folder; of a batch give a file, such as {name}.parquet")
    return place


def write_evidence(
    session: SparkSession, decided: Decided, method: Any, recipe: Recipe, trace: Path | None, letters: Path | None
) -> None:
    """Decide now, and write the trace, sealed, and the dead letters."""
    if trace is not None:
        require_executors(session, Needs(recipe, (trace.parent,)))  # an executor writes it
    outcome = decided.evidence(None if trace is None else WriteTrace(trace, recipe))
    if letters is not None:
        with output_error(letters):
            replace_private(letters, text_of(letters_by_number(outcome, method)[0]))

"""Checks that every executor sees the driver's files, has its key and can import this shoal.

A folder that looks the same on every machine but is not shared would silently lose rows: each executor would write to
its own.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from shoal.crypto.safe_open import write_file
from shoal.errors import OutputError, RunError, ShoalError
from shoal.sinks.durable import make_folder, output_error
from shoal.spark.recipe import Recipe
from shoal.spark.records.frames import mapped

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TASKS_OF_AN_EXECUTOR: Final = 2
_FOUND: Final = pa.schema([("host", pa.string()), ("version", pa.string()), ("problem", pa.string())])


@dataclass(frozen=True, slots=True)
class Executors:
    """What the executors reported."""

    hosts: int
    tasks: int
    """Tasks that run at the same time."""
    problems: tuple[str, ...]


def look_at_executors(session: SparkSession, folder: Path, recipe: Recipe) -> Executors:
    """Write a token into a folder, and let executors read it, and say whether they have the key."""
    token = secrets.token_hex(16)
    path = folder.with_name(f".{folder.name}.token-{secrets.token_hex(4)}")
    tasks = session.sparkContext.defaultParallelism
    with output_error(path):
        make_folder(path.parent)
        write_file(path, token)
    try:
        asked = session.range(0, tasks * _TASKS_OF_AN_EXECUTOR, 1, tasks * _TASKS_OF_AN_EXECUTOR)
        found = mapped(asked, ReadToken(path, token, recipe), _FOUND).collect()
    finally:
        path.unlink(missing_ok=True)
    problems = {row["problem"] for row in found if row["problem"]}
    ours = version("shoal")
    others = {row["version"] for row in found} - {ours}
    problems |= {f"executors have shoal {other}, the driver {ours}; install the same" for other in others}
    return Executors(len({row["host"] for row in found}), tasks, tuple(sorted(problems)))


def require_shared(session: SparkSession, folder: Path, recipe: Recipe) -> Executors:
    """Refuse to start where executors lack the key or do not see the folder."""
    found = look_at_executors(session, folder, recipe)
    for problem in found.problems:
        raise (OutputError if "not shared" in problem else RunError)(problem)
    return found


@dataclass(frozen=True, slots=True)
class ReadToken:
    """Reads the token on an executor."""

    path: Path
    token: str
    recipe: Recipe

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from socket import gethostname

        for _ in batches:
            pass
        found = {"host": gethostname(), "version": version("shoal"), "problem": self._problem()}
        yield pa.RecordBatch.from_pylist([found], schema=_FOUND)

    def _problem(self) -> str | None:
        try:
            self.recipe.secret()
        except ShoalError as error:
            return str(error)
        try:
            seen = self.path.read_text()
        except OSError:
            seen = ""
        if seen == self.token:
            return None
        return (
            f"{self.path.parent}: is not shared: an executor does not see what the driver writes there; name a folder "
            "that every machine has mounted under the same path"
        )

"""Checks that executors see the folders and the input of the driver, have its key and its version of shoal.

It reaches the executors that Spark gives tasks to at this moment. One that joins later is covered by other means: no
executor makes a folder, and the driver looks at every file that was written before anything is published.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa

from shoal.crypto.safe_open import write_file
from shoal.errors import InputError, OutputError, RunError, ShoalError
from shoal.sinks.durable import make_folder, output_error
from shoal.spark.recipe import Recipe
from shoal.spark.records.frames import mapped

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TASKS_OF_AN_EXECUTOR: Final = 2
_SAME_VERSIONS: Final = ("shoal", "pyarrow", "numpy", "numba")
_FOUND: Final = pa.schema(
    [("host", pa.string()), ("versions", pa.list_(pa.string())), ("kind", pa.string()), ("problem", pa.string())]
)
Kind = Literal["key", "folder", "input", "version"]
_ERRORS: Final[dict[str, type[ShoalError]]] = {"folder": OutputError, "input": InputError}


@dataclass(frozen=True, slots=True)
class Needs:
    """What executors must have."""

    recipe: Recipe
    """Of the method; its key."""
    folders: tuple[Path, ...] = ()
    """In which the driver and executors see the same files."""
    inputs: tuple[Path, ...] = ()
    """Files to read."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What an executor lacks, as a sentence."""

    kind: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Executors:
    """What the executors reported."""

    hosts: int
    tasks: int
    """Tasks that run at the same time."""
    problems: tuple[Problem, ...]


def check_executors(session: SparkSession, needs: Needs) -> Executors:
    """Ask executors for what they need. Folders that do not exist are removed again."""
    tasks = session.sparkContext.defaultParallelism
    with ExitStack() as stack:
        tokens = tuple(stack.enter_context(_token(folder)) for folder in dict.fromkeys(needs.folders))
        asked = session.range(0, tasks * _TASKS_OF_AN_EXECUTOR, 1, tasks * _TASKS_OF_AN_EXECUTOR)
        found = mapped(asked, CheckExecutor(needs.recipe, tokens, needs.inputs), _FOUND).collect()
    problems = {Problem(row["kind"], row["problem"]) for row in found if row["problem"]}
    ours = _versions()
    for row in found:
        for mine, theirs in zip(ours, row["versions"], strict=True):
            if mine != theirs:
                sentence = f"executors have {theirs}, the driver {mine}; install the same on every machine"
                problems.add(Problem("version", sentence))
    hosts = len({row["host"] for row in found})
    return Executors(hosts, tasks, tuple(sorted(problems, key=lambda problem: problem.sentence)))


def require_executors(session: SparkSession, needs: Needs) -> Executors:
    """Refuse to start where executors lack something."""
    found = check_executors(session, needs)
    for problem in found.problems:
        raise _ERRORS.get(problem.kind, RunError)(problem.sentence)
    return found


def first_and_last(paths: Sequence[Any]) -> tuple[Path, ...]:
    """Two files that stand for all of a source; none of standard input."""
    files = [Path(path).absolute() for path in paths]
    return tuple(dict.fromkeys((*files[:1], *files[-1:])))


@contextmanager
def _token(folder: Path) -> Iterator[tuple[Path, str]]:
    """A file with a secret in a folder; afterwards everything is as it was."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    path, token = folder / f".token-{secrets.token_hex(8)}", secrets.token_hex(16)
    with output_error(folder):
        make_folder(folder)
        write_file(path, token)
    try:
        yield path, token
    finally:
        path.unlink(missing_ok=True)
        for place in missing:
            with suppress(OSError):  # someone else uses it by now
                place.rmdir()


def _versions() -> list[str]:
    return [f"{name} {version(name)}" for name in _SAME_VERSIONS]


@dataclass(frozen=True, slots=True)
class CheckExecutor:
    """Looks for key, folders and input on an executor."""

    recipe: Recipe
    tokens: tuple[tuple[Path, str], ...] = ()
    inputs: tuple[Path, ...] = ()

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from socket import gethostname

        for _ in batches:
            pass
        about = {"host": gethostname(), "versions": _versions()}
        found = [{**about, "kind": kind, "problem": problem} for kind, problem in self._problems()]
        yield pa.RecordBatch.from_pylist(found or [about], schema=_FOUND)

    def _problems(self) -> list[tuple[Kind, str]]:
        found: list[tuple[Kind, str]] = []
        try:
            self.recipe.secret()
        except ShoalError as error:
            found.append(("key", str(error)))
        for path, token in self.tokens:
            if _text(path) != token:
                found.append((
                    "folder",
                    f"{path.parent}: is not shared: an executor does not see what the driver writes there; mount it "
                    "under the same path on every machine",
                ))  # fmt: skip
        for path in self.inputs:
            if not path.exists():
                found.append(
                    ("input", f"{path}: an executor does not see this file; mount its folder on every machine")
                )
        return found


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""

"""Files as a stream: what a micro-batch reads are the files that have come since the one before."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from shoal.errors import InputError
from shoal.methods.base import StreamMethod
from shoal.pipeline.wiring import make_files
from shoal.policy import Policy
from shoal.sources.input_file import InputFile
from shoal.spark.cluster.session import readable_errors
from shoal.spark.dead_letters import Letter, dead_letters
from shoal.spark.outcome import Outcome
from shoal.spark.records.files import FileRows, read_files
from shoal.spark.streams.bounds import first_files
from shoal.spark.streams.file_journal import FileJournal
from shoal.spark.streams.micro_batches import Taken
from shoal.spark.streams.plans import Plans
from shoal.spark.streams.state import Commit, next_batch, schema_of, schema_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class GrowingFiles:
    """The files of a policy, in the order of their names; those that come later are later in the stream.

    Parameters
    ----------
    most
        Records of a micro-batch, about: it has whole files.
    """

    is_held = False

    def __init__(self, policy: Policy, method: StreamMethod, head: tuple[str, ...], *, most: int) -> None:
        assert policy.checkpoint is not None
        self._policy, self._method, self._head, self._most = policy, method, head, most
        self._journal = FileJournal(policy.checkpoint.path.path.absolute())

    def plan(self, session: SparkSession, before: Commit | None) -> dict[str, Any] | None:
        """The first files that are new; None if there are none."""
        known = self._journal.names(before.more if before else {})
        try:
            found = [str(file.path) for file in make_files(self._policy)]
        except InputError:
            places = [place.path for place in self._policy.file_source.path]
            if not any(place.is_dir() for place in places):
                raise
            found = []
        new = [name for name in found if name not in known]
        if not new:
            return None
        first = list(first_files(new, self._policy.file_source.kind, self._most))
        return {"files": first, "is_cut": len(first) < len(new)}

    def take(self, session: SparkSession, plan: Mapping[str, Any], before: Commit | None) -> Taken:
        """The records of the planned files; the first file of the stream determines the types."""
        compression = self._policy.file_source.compression
        files = [InputFile(Path(name), compression=compression) for name in plan["files"]]
        more = before.more if before else {}
        require_planned(self._policy, plan, before)
        try:
            with readable_errors():
                read = read_files(
                    session, self._policy, files, self._method.columns, self._head,
                    first=before.end if before else 0, types=_types(more),
                )  # fmt: skip
        except InputError:
            require_planned(self._policy, plan, before)  # one may have been deleted while it was read
            raise
        kept = {
            **self._journal.written(more, plan["files"]),
            "types": schema_text(pa.schema(list(read.types.items()))),
            "numbers_rows": read.numbers_rows,
        }
        return Taken(
            read.rows, lambda outcome: self._letters(outcome, read), kept,
            store=lambda: self._journal.append(more, plan["files"]),
        )  # fmt: skip

    def keep(self, commit: Commit) -> None:
        """Nothing to do: files stay where they are."""

    def close(self) -> None:
        """Nothing is open."""

    def _letters(self, outcome: Outcome, read: FileRows) -> tuple[list[Letter], int]:
        def place(row: int, line: int | None) -> dict[str, Any]:
            return read.place(row) if line is None else {**read.place(row), "line": line}

        return dead_letters(outcome, read.rows, self._method, place, keep_rows=self._policy.dead_letters.keep_rows)


def require_planned(policy: Policy, plan: Mapping[str, Any], before: Commit | None) -> None:
    """Raise InputError if a file does not exist with which a micro-batch was planned that is not decided yet."""
    missing = [name for name in plan.get("files", ()) if not Path(name).exists()]
    if not missing:
        return
    assert policy.checkpoint is not None
    others = f" (and {len(missing) - 1:,} more)" if len(missing) > 1 else ""
    batch = next_batch(before)
    written = Plans(policy.checkpoint.path.path.absolute()).path(batch)
    raise InputError(
        f"{missing[0]}{others}: no longer exists, but micro-batch {batch} was planned with it, and nothing of that is "
        f"published yet; put it back and start again, or give up its records: delete {written}, then micro-batch "
        f"{batch} is planned again with the files that exist"
    )


def _types(more: Mapping[str, Any]) -> dict[str, pa.DataType] | None:
    return {field.name: field.type for field in schema_of(more["types"])} if "types" in more else None

"""What the laws share: cut streams into batches, run methods here and in another process, copy buffers."""

from __future__ import annotations

import hashlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from shoal.methods.base import StreamMethod
from shoal.methods.release import Release

Make = Callable[[], StreamMethod]
OTHER_SEED: Final = "271828"
"""Hash seed of the other process, so that results that depend on set order differ there."""


class LawBroken(AssertionError):
    """A method breaks a law."""


def require(kept: bool, sentence: str) -> None:  # noqa: FBT001
    """Raise LawBroken unless the law is kept."""
    if not kept:
        raise LawBroken(sentence)


@dataclass(frozen=True)
class Output:
    """The complete output of a run, as Python lists."""

    rows: list[dict[str, Any]]
    trace: list[dict[str, Any]]
    state: bytes

    @classmethod
    def of(cls, releases: Iterable[Release], anonymizer: StreamMethod) -> Output:
        """Join the releases of a run."""
        kept = list(releases)
        rows = [row for release in kept for row in release.rows.to_pylist()]
        trace = [row for release in kept for row in release.trace.to_pylist()]
        return cls(rows, trace, anonymizer.snapshot())


def batches_of(stream: pa.Table, size: int) -> Iterator[pa.RecordBatch]:
    """Cut a stream into batches of `size` rows."""
    for start in range(0, stream.num_rows, size):
        yield one_batch(stream.slice(start, size))


def one_batch(stream: pa.Table) -> pa.RecordBatch:
    """Return a table as a single batch."""
    whole = stream.combine_chunks()
    empty = pa.RecordBatch.from_pylist([], schema=stream.schema)
    return whole.to_batches()[0] if whole.num_rows else empty


def run(anonymizer: StreamMethod, batches: Iterable[pa.RecordBatch]) -> Output:
    """Push batches, then flush."""
    releases = [anonymizer.push_batch(batch) for batch in batches]
    return Output.of([*releases, anonymizer.flush()], anonymizer)


def records_of(stream: pa.Table) -> list[dict[str, Any]]:
    """Return a stream as single records."""
    records: list[dict[str, Any]] = stream.to_pylist()
    return records


def refusals_of(stream: pa.Table, columns: Sequence[str]) -> list[Any]:
    """Return inputs every method must refuse: a column missing, duplicated or of a wrong type; not a batch at all."""
    refused: list[Any] = [object(), [1, 2]]
    for name in columns:
        at = stream.schema.get_field_index(name)
        refused.append(stream.drop_columns([name]))
        refused.append(stream.append_column(name, stream.column(at)))
    for name in columns[:2]:
        at = stream.schema.get_field_index(name)
        odd = pa.array([[1]] * stream.num_rows, pa.list_(pa.int64()))
        refused.append(stream.set_column(at, name, odd))
    return refused


def digest(make: Make, stream: pa.Table) -> str:
    """Return a digest of the output and final state of a method over a stream."""
    output = run(make(), batches_of(stream, 7))
    return hashlib.sha256(repr((output.rows, output.trace)).encode() + output.state).hexdigest()


def digests_elsewhere(cases: Sequence[tuple[Make, pa.Table]]) -> list[str]:
    """Return the digests computed in another process, one process for all cases."""
    written = pickle.dumps([(make, _as_bytes(stream)) for make, stream in cases])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": OTHER_SEED}
    script = "from shoal.testing.driving import answer_digests; answer_digests()"
    done = subprocess.run(
        [sys.executable, "-c", script], input=written, env=environment, capture_output=True, check=False
    )
    if done.returncode:
        raise ChildProcessError(f"the other process failed: {done.stderr.decode()[-2000:]}")
    return done.stdout.decode().split()


def answer_digests() -> None:
    """Entry point of the other process: read cases from standard input, write their digests."""
    cases = pickle.load(sys.stdin.buffer)  # written by the process that started this one
    found = [digest(make, pa.ipc.open_stream(stream).read_all()) for make, stream in cases]
    sys.stdout.write("\n".join(found))


def _as_bytes(stream: pa.Table) -> bytes:
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, stream.schema) as writer:
        writer.write_table(stream)
    written: bytes = out.getvalue().to_pybytes()
    return written


def on_own_buffers(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, list[bytearray]]:
    """Return a copy of a batch and its buffers, so that a test can overwrite them."""
    buffers: list[bytearray] = []
    columns = [_array_on(column, buffers) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema), buffers


def _array_on(column: pa.Array, buffers: list[bytearray]) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        parts = (_array_on(column.indices, buffers), _array_on(column.dictionary, buffers))
        return pa.DictionaryArray.from_arrays(*parts)
    plain = pa.concat_arrays([column])  # no offset
    own: list[pa.Buffer | None] = []
    for buffer in plain.buffers():
        if buffer is None:
            own.append(None)
        else:
            buffers.append(bytearray(buffer))
            own.append(pa.py_buffer(buffers[-1]))
    return pa.Array.from_buffers(plain.type, len(plain), own, plain.null_count, plain.offset)

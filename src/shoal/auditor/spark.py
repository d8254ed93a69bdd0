"""The place of an audit on Spark: tasks read files and look at parts of tables, the driver gets what they found.

A table is a data frame with the columns of a shape. Rows that are equal in some columns meet in a bucket, by a hash of
these columns; a task gets all rows of a bucket at once, and nothing but the columns of the shape, so that a value that
very many rows have still fits into a task.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.auditor.findings import CheckFailed, where_failed
from shoal.auditor.policy import Policy
from shoal.auditor.reading.columns import TEXT
from shoal.auditor.reading.memory import limited
from shoal.auditor.reading.outline import Outline
from shoal.auditor.reading.rows import Rows
from shoal.auditor.relation import Relation, Shape, has_shape, schema_of
from shoal.auditor.task_files import File, RowsOf
from shoal.errors import ShoalError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")
Batches = Iterable[pa.RecordBatch]
OnBatches = Callable[[Batches], Iterator[pa.RecordBatch]]
"""What a task does with the batches of a partition."""
ROWS_OF_A_BATCH: Final = 100_000
ROWS_OF_A_BUCKET: Final = 2_000_000
"""So many rows are looked at by one task; more only if more are equal in the columns that divide them."""
_KINDS: Final[dict[type, Any]] = {int: pa.int64(), float: pa.float64(), bool: pa.bool_(), str: pa.string()}
_FOUND: Final = "found"
_RESULTS: Final = pa.schema([(_FOUND, pa.binary())])
_RIGHT: Final = "is_right"
_FAILED: Final = re.compile(rf"{CheckFailed.__module__}\.{CheckFailed.__name__}: (.*)")


# ---- in tasks


@dataclass(frozen=True, slots=True)
class _Task:
    """Runs in a worker. Of an error that nobody raised on purpose only the place is reported: it may contain data."""

    work: OnBatches
    max_memory: int | None

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        try:
            with limited(self.max_memory):
                yield from self.work(batches)
        except (ShoalError, MemoryError):
            raise
        except Exception as error:
            raise CheckFailed(where_failed(error)) from None


@dataclass(frozen=True, slots=True)
class _OnFiles:
    """Works on files, of which Spark sends the numbers, one to each partition."""

    files: Sequence[File]
    work: Callable[[int, File], Any]
    shape: Shape | None = None

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from _sent(self.work(number, self.files[number]), self.shape)


@dataclass(frozen=True, slots=True)
class _OnRows:
    """Works on rows: on all of a bucket at once, or on those of a batch."""

    before: Shape
    work: Callable[[Relation], Any]
    shape: Shape | None
    at_once: bool = True

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for some in (batches,) if self.at_once else ([batch] for batch in batches):
            rows = _gathered(some, self.before)
            if len(rows):
                yield from _sent(self.work(rows), self.shape)


@dataclass(frozen=True, slots=True)
class _OnBoth:
    """Works on the rows of two tables that are equal in some columns; both are in one data frame, marked."""

    left: Shape
    right: Shape
    work: Callable[[Relation, Relation], Relation]
    shape: Shape

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        sides: tuple[list[pa.RecordBatch], list[pa.RecordBatch]] = [], []
        for batch in batches:
            mark = batch.column(_RIGHT)
            for side, own, shape in zip(sides, (pc.invert(mark), mark), (self.left, self.right), strict=True):
                side.append(_coded(batch.filter(own), shape, {name: _shared(name, shape) for name in shape}))
        one, other = _joined(sides[0], self.left), _joined(sides[1], self.right)
        del sides
        if len(one) or len(other):
            yield from _sent(self.work(one, other), self.shape)


def _packed(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Every batch as one value, which the driver gets without looking at its rows."""
    for batch in batches:
        if batch.num_rows:
            yield pa.RecordBatch.from_pydict({_FOUND: [batch.serialize().to_pybytes()]}, schema=_RESULTS)


def _unpacked(value: Any, shape: Shape) -> pa.RecordBatch:
    return pa.ipc.read_record_batch(pa.py_buffer(value), _schema(shape))


# ---- relations as batches


def _sent(found: Any, shape: Shape | None) -> Iterator[pa.RecordBatch]:
    """A relation in batches, its texts without their numbers; without a shape a result."""
    if shape is None:
        yield pa.RecordBatch.from_pydict({_FOUND: [pickle.dumps(found)]}, schema=_RESULTS)
        return
    if not has_shape(found, shape):
        raise TypeError(f"expected columns {list(shape)}, each of its kind, got {list(found)}")
    for start in range(0, len(found), ROWS_OF_A_BATCH):
        rows = found.take(np.arange(start, min(start + ROWS_OF_A_BATCH, len(found))))
        yield rows.to_batch(shape).cast(_schema(shape))


def _gathered(batches: Batches, shape: Shape) -> Relation:
    """The rows of batches as a relation; texts are coded as they come: repeated ones take little memory."""
    return _joined([_coded(batch, shape) for batch in batches], shape)


def _coded(batch: pa.RecordBatch, shape: Shape, sent_as: Mapping[str, str] | None = None) -> pa.RecordBatch:
    columns = [batch.column(name if sent_as is None else sent_as[name]) for name in shape]
    coded = [
        column.cast(TEXT).dictionary_encode() if kind is str else column
        for column, kind in zip(columns, shape.values(), strict=True)
    ]
    return pa.RecordBatch.from_arrays(coded, names=list(shape))


def _joined(batches: Sequence[pa.RecordBatch], shape: Shape) -> Relation:
    if not batches:
        return Relation.from_table(schema_of(shape).empty_table(), shape)
    return Relation.from_table(pa.Table.from_batches(batches), shape)


def _schema(shape: Shape) -> pa.Schema:
    return pa.schema([(name, _KINDS[kind]) for name, kind in shape.items()])


def _shared(name: str, shape: Shape) -> str:
    """The name of a column where two tables are in one data frame: columns of one name and kind are shared."""
    return f"{shape[name].__name__} {name}"


# ---- the driver


@dataclass(eq=False, slots=True)
class _Table:
    """A data frame with the columns of a shape."""

    frame: DataFrame
    shape: Shape
    is_cheap: bool = False
    """Whether it is cheap to compute from another table."""
    is_kept: bool = False


class OnSpark:
    """Runs an audit as tasks of a Spark session.

    Parameters
    ----------
    files
        What tasks read of the release, the truth and the trace; see `files_of`.
    errors
        Translates errors of Spark.
    in_worker
        Wraps what workers run.
    max_memory
        The memory that a task may take to read a file.
    buckets
        In how many parts rows are divided; by default by how many there are, at least one for each task that runs.
    """

    def __init__(
        self, session: SparkSession, policy: Policy, files: Sequence[File], *, max_memory: int | None = None,
        errors: Callable[[], AbstractContextManager[None]] = nullcontext,
        in_worker: Callable[[OnBatches], OnBatches] | None = None, buckets: int | None = None,
    ) -> None:  # fmt: skip
        self._session, self._policy, self._files = session, policy, tuple(files)
        self._max_memory, self._errors, self._in_worker, self._fixed = max_memory, errors, in_worker, buckets
        self._outlines: list[Outline] | None = None
        self._kept: list[DataFrame] = []

    def __enter__(self) -> OnSpark:
        return self

    def __exit__(self, *_: object) -> None:
        for frame in self._kept:
            with suppress(Exception):  # the session may have ended
                frame.unpersist()

    def has(self, role: str) -> bool:
        """Whether there is a release, a truth, a trace."""
        return any(file.role == role for file in self._files)

    def outline(self, role: str) -> Outline:
        """What the files of a role show before any row is looked at."""
        whole = sum(self._outlines_of(role), Outline())
        return whole.as_read(role, self._policy.section("stream")) if self.has(role) else whole

    def facts(self, role: str, work: Callable[[Rows], T]) -> list[T]:
        """What a function says of every file of a role."""
        if not self.has(role):
            return []
        rows_of = self._rows_of(role)
        return self._results(self._on_files(role, lambda number, file: work(rows_of(number, file))))

    def shape(self, table: _Table) -> Shape:
        """The columns of a table."""
        return table.shape

    def read(self, role: str, work: Callable[[Rows, int], Relation], shape: Shape) -> _Table:
        """Read the files of a role."""
        rows_of = self._rows_of(role)
        return self._on_files(role, lambda number, file: work(rows_of(number, file), rows_of.firsts[number]), shape)

    def each(self, table: _Table, work: Callable[[Relation], Relation], shape: Shape) -> _Table:
        """Change rows, each by itself."""
        changed = self._run(self._used(table), _OnRows(table.shape, work, shape, at_once=False), shape)
        changed.is_cheap = True
        return changed

    def both(
        self, left: _Table, right: _Table, by: tuple[str, ...], work: Callable[[Relation, Relation], Relation],
        shape: Shape,
    ) -> _Table:  # fmt: skip
        """Bring together the rows of two tables that are equal in some columns."""
        from pyspark.sql import functions as f

        marked = [
            self._used(table).select(
                f.lit(is_right).cast("boolean").alias(_RIGHT),
                *(f.col(f"`{name}`").alias(_shared(name, table.shape)) for name in table.shape),
            )
            for is_right, table in enumerate((left, right))
        ]
        frame = marked[0].unionByName(marked[1], allowMissingColumns=True)
        divided = self._divided(frame, tuple(_shared(name, left.shape) for name in by))
        return self._run(divided, _OnBoth(left.shape, right.shape, work, shape), shape)

    def divide(self, table: _Table, by: tuple[str, ...], work: Callable[[Relation], T]) -> list[T]:
        """What a function says of every part; rows that are equal in some columns are in one part."""
        return self._results(self._run(self._divided(self._used(table), by), _OnRows(table.shape, work, None)))

    def regroup(self, table: _Table, by: tuple[str, ...], work: Callable[[Relation], Relation], shape: Shape) -> _Table:
        """Change rows part by part; rows that are equal in some columns are in one part."""
        return self._run(self._divided(self._used(table), by), _OnRows(table.shape, work, shape), shape)

    def along(self, table: _Table, order: tuple[str, ...], work: Callable[[Iterator[Relation]], T]) -> T:
        """What a function says of all rows in the order of some columns, batch by batch; for small columns only."""
        table.is_cheap = False  # Spark looks at the rows twice to sort them
        frame = self._used(table).repartitionByRange(self._buckets, *order).sortWithinPartitions(*order)
        with self._translated():
            sent = self._run(frame, _packed).frame.toLocalIterator(prefetchPartitions=True)
            return work(_gathered([_unpacked(row[0], table.shape)], table.shape) for row in sent)

    def gather(self, table: _Table) -> Relation:
        """All rows in one place; for few rows only."""
        with self._translated():
            sent = self._run(self._used(table), _packed).frame.collect()
        return _gathered([_unpacked(row[0], table.shape) for row in sent], table.shape)

    def _outlines_of(self, role: str) -> list[Outline]:
        """The outlines of all files of a role; all roles are read at once."""
        if self._outlines is None:
            policy = self._policy
            self._outlines = self._results(self._on_files(None, lambda _, file: file.outline(policy)))
        return [one for one, file in zip(self._outlines, self._files, strict=True) if file.role == role]

    def _rows_of(self, role: str) -> RowsOf:
        counts = [one.rows for one in self._outlines_of(role)]
        firsts = [sum(counts[:at]) for at in range(len(counts))]
        return RowsOf(firsts, self.outline(role), dict(self._policy.section("stream")))

    def _on_files(self, role: str | None, work: Callable[[int, File], Any], shape: Shape | None = None) -> _Table:
        files = tuple(file for file in self._files if role in (None, file.role))
        numbers = self._session.range(0, len(files), 1, max(len(files), 1))
        return self._run(numbers, _OnFiles(files, work, shape), shape)

    @property
    def _buckets(self) -> int:
        rows = sum(outline.rows for outline in self._outlines or ())
        return self._fixed or max(int(self._session.sparkContext.defaultParallelism), -(-rows // ROWS_OF_A_BUCKET))

    def _used(self, table: _Table) -> DataFrame:
        """The frame of a table, which is computed once and kept; a cheap one is computed again for its second use."""
        if not table.is_cheap and not table.is_kept:
            self._kept.append(table.frame.persist())
            table.is_kept = True
        table.is_cheap = False
        return table.frame

    def _divided(self, frame: DataFrame, by: tuple[str, ...]) -> DataFrame:
        """Send rows to buckets, one for each partition; equal rows have equal hashes, missing texts too."""
        from pyspark.sql import functions as f

        key = f.xxhash64(*(f.col(f"`{name}`") for name in by)) if by else f.lit(0)
        return frame.repartitionById(self._buckets, f.pmod(key, f.lit(self._buckets)).cast("int"))

    def _run(self, frame: DataFrame, work: OnBatches, shape: Shape | None = None) -> _Table:
        from pyspark.sql.pandas.types import from_arrow_schema

        task: OnBatches = _Task(work, self._max_memory)
        schema = _RESULTS if shape is None else _schema(shape)
        made = frame.mapInArrow(task if self._in_worker is None else self._in_worker(task), from_arrow_schema(schema))
        return _Table(made, shape or {})

    def _results(self, table: _Table) -> list[Any]:
        with self._translated():
            return [pickle.loads(row[0]) for row in table.frame.collect()]

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Raise what a check raised in a task as what it is, other errors of Spark as `errors` translates them."""
        with self._errors():
            try:
                yield
            except Exception as error:
                failed = _FAILED.search(str(error))
                if failed is None:
                    raise
                raise CheckFailed(failed[1]) from None

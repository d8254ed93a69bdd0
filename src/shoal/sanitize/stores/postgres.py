"""PostgreSQL: rows go in and out by COPY, as CSV that Arrow writes and reads."""

from __future__ import annotations

import contextlib
import hashlib
import io
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv

from shoal.errors import StoreError, missing_extra
from shoal.sanitize.stores.base import ARROW, Layout, Store, quoted

_COPIED: Final = 100_000


class PostgresStore(Store):
    """Tables in one schema of a database; `shown` is its name in messages, since the URL may contain a password.

    `sealed` is a second schema, closed to other users, for all tables but the public one.
    """

    TYPES = {  # noqa: RUF012
        "bytes": "BYTEA", "text": "TEXT", "integer": "BIGINT", "real": "DOUBLE PRECISION", "boolean": "BOOLEAN",
        "decimal": "NUMERIC", "moment": "TIMESTAMPTZ", "local moment": "TIMESTAMP", "date": "DATE", "time": "TIME",
    }  # fmt: skip

    def __init__(self, role: str, url: str, *, shown: str, schema: str = "public", sealed: str | None = None) -> None:
        super().__init__(role, f"{shown} (PostgreSQL, schema {schema})")
        try:
            import psycopg
        except ImportError:
            raise missing_extra(f"{self.name}: PostgreSQL", package="psycopg", extra="postgres") from None
        self._error = psycopg.Error
        self._schema, self._sealed = schema, sealed or schema
        with self._errors():
            self._base = psycopg.connect(url, autocommit=True)
        try:
            self._lock()
            for name in dict.fromkeys((schema, self._sealed)):
                self._make_schema(name)
            for setting in ("client_min_messages TO warning", "TimeZone TO 'UTC'", "DateStyle TO 'ISO'"):
                self.execute(f"SET {setting}")
        except StoreError:
            self._base.close()
            raise

    def _make_schema(self, name: str) -> None:
        """Create a schema unless it exists; an administrator may have created it for a role with fewer rights."""
        if self.execute("SELECT to_regnamespace(?)", (quoted(name),))[0][0] is None:
            self.execute(f"CREATE SCHEMA {quoted(name)}")
            if name == self._sealed:
                self.execute(f"REVOKE ALL ON SCHEMA {quoted(name)} FROM PUBLIC")

    def _lock(self) -> None:
        """Lock the store for one process on any machine; the lock ends with the connection."""
        text = f"shoal {self.role} {self._schema}"
        number = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), signed=True)
        if not self.execute("SELECT pg_try_advisory_lock(?)", (number,))[0][0]:
            raise StoreError(f"{self.name}: another process is using this store; wait for it")

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._errors(), self._base.cursor() as cursor:
            cursor.execute(_own(sql), tuple(values) or None)
            return cursor.fetchall() if cursor.description else []

    def execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        with self._errors(), self._base.cursor() as cursor:
            cursor.executemany(_own(sql), rows)

    def insert(self, table: Layout, rows: pa.Table) -> None:
        names = ", ".join(map(quoted, table.names))
        sql = f"COPY {self.place(table)} ({names}) FROM STDIN (FORMAT csv)"
        with self._errors(), self._base.cursor() as cursor, cursor.copy(sql) as copy:
            for batch in rows.select(table.names).to_batches(max_chunksize=_COPIED):
                copy.write(_written(batch))

    def read(self, table: Layout, names: Sequence[str], where: str = "", values: Sequence[int] = ()) -> pa.Table:
        # COPY takes no parameters; the values are whole numbers.
        condition = f" WHERE {where.replace('?', '{}').format(*map(int, values))}" if where else ""
        query = f"SELECT {', '.join(map(quoted, names))} FROM {self.place(table)}{condition}"
        sql = f"COPY ({query}) TO STDOUT (FORMAT csv, FORCE_QUOTE *)"
        with self._errors(), self._base.cursor() as cursor, cursor.copy(sql) as copy:
            data = b"".join(bytes(part) for part in copy)
        return _parsed(data, table, names)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        with self._errors():
            self.execute("BEGIN")
            try:
                yield
                self.execute("COMMIT")
            except BaseException:
                if not self._base.closed:
                    self.execute("ROLLBACK")
                raise

    def compact(self, table: Layout) -> None:
        self.execute(f"VACUUM FULL {self.place(table)}")

    def place(self, table: Layout) -> str:
        return f"{quoted(self._schema if table.public else self._sealed)}.{quoted(table.name)}"

    def has(self, table: Layout) -> bool:
        return self.execute("SELECT to_regclass(?)", (self.place(table),))[0][0] is not None

    def holds(self, pieces: Sequence[bytes]) -> bool:
        """Always False: a client sees rows, not files."""
        return False

    def close(self) -> None:
        # The server notices a closed connection late; unlock now, so that the next run finds it unlocked.
        with contextlib.suppress(self._error):
            self._base.execute("SELECT pg_advisory_unlock_all()")
        self._base.close()

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except self._error as error:
            state = getattr(error, "sqlstate", None)
            what = f"the database reports {type(error).__name__}" + (f" ({state})" if state else "")
            raise StoreError(f"{self.name}: {what}; check that it runs and what this role may do") from None


def _own(sql: str) -> str:
    """Use psycopg's placeholders; statements come from this package only."""
    return sql.replace("%", "%%").replace("?", "%s")


def _written(batch: pa.RecordBatch) -> bytes:
    """Write CSV with every value quoted and nulls unquoted."""
    columns = [_hex(column) if pa.types.is_binary(column.type) else column for column in batch.columns]
    out = io.BytesIO()
    options = arrow_csv.WriteOptions(include_header=False, quoting_style="all_valid")
    arrow_csv.write_csv(pa.RecordBatch.from_arrays(columns, names=batch.schema.names), out, options)
    return out.getvalue()


def _hex(column: pa.Array) -> pa.Array:
    return pa.array([None if value is None else "\\x" + value.hex() for value in column.to_pylist()], pa.string())


def _parsed(data: bytes, table: Layout, names: Sequence[str]) -> pa.Table:
    kinds = {name: table.kind(name) for name in names}
    types = {name: pa.string() if kind in ("bytes", "boolean") else ARROW[kind] for name, kind in kinds.items()}
    if not data:
        return pa.schema([(name, ARROW[kind]) for name, kind in kinds.items()]).empty_table()
    read = arrow_csv.read_csv(
        io.BytesIO(data),
        read_options=arrow_csv.ReadOptions(column_names=list(names)),
        parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
        convert_options=arrow_csv.ConvertOptions(
            column_types=types, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
        ),
    )
    columns = [_back(column.combine_chunks(), kinds[name]) for name, column in zip(names, read.columns, strict=True)]
    return pa.table(dict(zip(names, columns, strict=True)))


def _back(column: pa.Array, kind: str) -> pa.Array:
    if kind == "boolean":
        return pa.array([None if value is None else value == "t" for value in column.to_pylist()], pa.bool_())
    if kind != "bytes":
        return column
    texts = column.to_pylist()
    data = b"".join(bytes.fromhex(text[2:]) for text in texts if text is not None)
    lengths = np.array([0 if text is None else len(text) // 2 - 1 for text in texts], dtype=np.int32)
    offsets = pa.array(np.concatenate(([0], np.cumsum(lengths))).astype(np.int32), mask=None)
    if column.null_count:
        return pa.array([None if text is None else bytes.fromhex(text[2:]) for text in texts], pa.binary())
    return pa.BinaryArray.from_buffers(pa.binary(), len(texts), [None, offsets.buffers()[1], pa.py_buffer(data)])

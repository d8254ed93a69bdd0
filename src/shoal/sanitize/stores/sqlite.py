"""SQLite: one file, nothing to install."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from shoal.crypto.safe_open import open_or_create
from shoal.errors import StoreError
from shoal.sanitize.stores.base import ARROW, Layout, Store, quoted

_BESIDE: Final = ("", "-journal", "-wal", "-shm")
_FETCHED: Final = 50_000


class SqliteStore(Store):
    """A database file; `private` ones are readable by their owner only, from the first byte on.

    `sealed` is a second, private file for all tables but the public one. SQLite commits to both files or to none.
    The rollback journal contains old pages and is deleted with the transaction; deleted rows are overwritten.
    """

    TYPES = {  # noqa: RUF012
        "bytes": "BLOB", "text": "TEXT", "integer": "INTEGER", "real": "REAL", "boolean": "INTEGER",
        # SQLite has no such types; its date functions read the text, and a decimal keeps its digits.
        "decimal": "TEXT", "moment": "TEXT", "local moment": "TEXT", "date": "TEXT", "time": "TEXT",
    }  # fmt: skip

    def __init__(self, role: str, path: Path, *, private: bool, sealed: Path | None = None) -> None:
        super().__init__(role, str(path))
        self.path = path
        self._sealed = sealed
        with self._errors():
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(open_or_create(path, private=private))
            self._base = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            for pragma in (
                "secure_delete = ON",
                "temp_store = MEMORY",
                "cache_size = -131072",
                "journal_mode = DELETE",
            ):
                self._base.execute(f"PRAGMA {pragma}")
            if sealed is not None:
                sealed.parent.mkdir(parents=True, exist_ok=True)
                os.close(open_or_create(sealed, private=True))
                self._base.execute("ATTACH DATABASE ? AS sealed", (str(sealed),))

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._errors():
            return self._base.execute(sql, values).fetchall()

    def execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        with self._errors():
            self._base.executemany(sql, rows)

    def insert(self, table: Layout, rows: pa.Table) -> None:
        marks = ", ".join("?" * len(table.names))
        names = ", ".join(map(quoted, table.names))
        sql = f"INSERT INTO {self.place(table)} ({names}) VALUES ({marks})"
        with self._errors():
            for batch in rows.select(table.names).to_batches(max_chunksize=_FETCHED):
                self._base.executemany(sql, zip(*(column.to_pylist() for column in batch.columns), strict=True))

    def read_joined(self, table: Layout, names: Sequence[str], where: str, values: Sequence[int]) -> bytes:
        # One long text built by the database costs a tenth of reading as many rows.
        digits = " || ".join(f"hex({quoted(name)})" for name in names)
        sql = f"SELECT group_concat({digits}, '') FROM {self.place(table)} WHERE {where}"
        return bytes.fromhex(self.execute(sql, values)[0][0] or "")

    def read_some(self, table: Layout, names: Sequence[str], first: int, chosen: Sequence[bytes]) -> pa.Table:
        # Temporary tables are in memory only, so the choice stays secret.
        number, name = map(quoted, table.key)
        self.execute("CREATE TEMP TABLE chosen (one BLOB PRIMARY KEY) WITHOUT ROWID")
        try:
            self.execute_many("INSERT INTO temp.chosen VALUES (?)", [(one,) for one in chosen])
            return self.read(table, names, f"{number} = ? AND {name} IN (SELECT one FROM temp.chosen)", (first,))
        finally:
            self.execute("DROP TABLE temp.chosen")

    def read(self, table: Layout, names: Sequence[str], where: str = "", values: Sequence[int] = ()) -> pa.Table:
        condition = f" WHERE {where}" if where else ""
        schema = pa.schema([(name, ARROW[table.kind(name)]) for name in names])
        flags = [at for at, name in enumerate(names) if table.kind(name) == "boolean"]
        batches = []
        with self._errors():
            cursor = self._base.execute(
                f"SELECT {', '.join(map(quoted, names))} FROM {self.place(table)}{condition}", values
            )
            while rows := cursor.fetchmany(_FETCHED):
                columns: list[Any] = list(zip(*rows, strict=True))
                for at in flags:
                    columns[at] = [None if value is None else bool(value) for value in columns[at]]
                arrays = [pa.array(column, type=field.type) for column, field in zip(columns, schema, strict=True)]
                batches.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
        return pa.Table.from_batches(batches, schema=schema)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            if self._base.in_transaction:
                self._base.execute("ROLLBACK")
            raise

    def compact(self, table: Layout) -> None:
        self.execute("VACUUM")

    def place(self, table: Layout) -> str:
        return f"{self._part(table)}.{quoted(table.name)}"

    def _part(self, table: Layout) -> str:
        return "main" if table.public or self._sealed is None else "sealed"

    def has(self, table: Layout) -> bool:
        sql = f"SELECT 1 FROM {self._part(table)}.sqlite_master WHERE type = 'table' AND name = ?"
        return bool(self.execute(sql, (table.name,)))

    def holds(self, pieces: Sequence[bytes]) -> bool:
        files = [self.path.with_name(self.path.name + ending) for ending in _BESIDE]
        contents = [file.read_bytes() for file in files if file.exists()]
        return any(piece in content for piece in pieces for content in contents)

    def close(self) -> None:
        self._base.close()

    def _ending(self, table: Layout) -> str:
        # Without row ids a table is stored in the order of its key, which is random if order must not reveal anything.
        return " WITHOUT ROWID" if table.key and all(kind != "text" for _, kind in table.columns[:1]) else ""

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            reason = getattr(error, "sqlite_errorname", type(error).__name__)
            raise StoreError(
                f"{self.name}: {_SENTENCES.get(reason, f'the database reports {reason}; check it')}"
            ) from None
        except OSError as error:
            raise StoreError(
                f"{self.name}: cannot be opened ({error.strerror}); check the path and its folder"
            ) from None


_SENTENCES: Final = {
    "SQLITE_NOTADB": "is not an SQLite database; name another file",
    "SQLITE_BUSY": "another program is using this database; wait for it",
    "SQLITE_LOCKED": "another program is using this database; wait for it",
    "SQLITE_FULL": "no space is left on the disk; make room and run again",
    "SQLITE_READONLY": "may not be written; check the permissions",
    "SQLITE_CANTOPEN": "cannot be opened; check the path and its folder",
    "SQLITE_CORRUPT": "the database is damaged; restore it from a copy",
}

"""The contract of a store: a few tables, filled and read as Arrow, in transactions.

SQL is written once, with `?` for values. A store adds bulk reads and writes, and how space is reclaimed.
A database error may contain the row, so its text is never passed on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import PolicyError, StoreError

VERSION: Final = 2
"""2: moments have the types of the database, and sealed tables are apart from the published one."""
RESERVED: Final = "shoal_"
"""The prefix of shoal's own columns; data columns must not have it."""
_LOOKED_UP: Final = 500

Kind = Literal["bytes", "text", "integer", "real", "boolean", "decimal", "moment", "local moment", "date", "time"]
"""A local moment has no time zone."""
ARROW: Final[dict[Kind, pa.DataType]] = {
    "bytes": pa.binary(),
    "text": pa.string(),
    "integer": pa.int64(),
    "real": pa.float64(),
    "boolean": pa.bool_(),
    "decimal": pa.string(),
    "moment": pa.string(),
    "local moment": pa.string(),
    "date": pa.string(),
    "time": pa.string(),
}
"""How a store accepts and returns a kind; it is text where the database reads and writes its own type as text."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A table: its name, its columns and its primary key; `public` if anyone may read it."""

    name: str
    columns: tuple[tuple[str, Kind], ...]
    key: tuple[str, ...] = ()
    public: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The column names."""
        return tuple(name for name, _ in self.columns)

    def kind(self, name: str) -> Kind:
        """Return the kind of a column."""
        return dict(self.columns)[name]


class Store(ABC):
    """A database, or a part of one, that belongs to one role of one process.

    A store with a public table has a sealed part, with rights of its own, where all other tables are.
    """

    TYPES: dict[Kind, str]

    def __init__(self, role: str, name: str) -> None:
        self.role = role
        self.name = name
        """Shown in messages; never a secret."""
        self._meta = Layout(f"shoal_{role}_about", (("name", "text"), ("value", "bytes")), ("name",))

    # ---- what a database brings

    @abstractmethod
    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement; return its rows."""

    @abstractmethod
    def insert(self, table: Layout, rows: pa.Table) -> None:
        """Append rows that have the table's columns, in their order."""

    @abstractmethod
    def read(self, table: Layout, names: Sequence[str], where: str = "", values: Sequence[int] = ()) -> pa.Table:
        """Read columns of all rows, or of those that match ``where``."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[None]:
        """Commit everything done within, or nothing; database errors become StoreError."""

    @abstractmethod
    def compact(self, table: Layout) -> None:
        """Reclaim and overwrite the space of deleted rows, as far as the database can."""

    @abstractmethod
    def place(self, table: Layout) -> str:
        """Return the name of a table for SQL, with the part of the store that it is in."""

    @abstractmethod
    def has(self, table: Layout) -> bool:
        """Return whether a table exists."""

    @abstractmethod
    def holds(self, pieces: Sequence[bytes]) -> bool:
        """Return whether one of these byte strings is still in the database's files."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""

    # ---- the same for all

    def check_version(self) -> bool:
        """Return whether the store exists; raise StoreError if another version of shoal made it."""
        if self.has(self._meta):
            found = self.get("version")
            version = int(found) if found and found.isdigit() else 0
        elif self.has(replace(self._meta, public=True)):
            version = 1  # everything was in the public part
        else:
            return False
        if version != VERSION:
            raise StoreError(
                f"{self.name}: has format version {version}; this shoal reads version {VERSION}. Nothing was changed; "
                "use the shoal it was made with, or start over with new stores and a new [sanitize] sealed"
            )
        return True

    def create(self, tables: Sequence[Layout]) -> None:
        """Create missing tables; call it in a transaction."""
        for table in (self._meta, *tables):
            if not self.has(table):
                self.execute(self._definition(table))
        if self.get("version") is None:
            self.put("version", str(VERSION).encode())

    def get(self, name: str) -> bytes | None:
        """Read a value from the meta table."""
        rows = self.execute(f"SELECT value FROM {self.place(self._meta)} WHERE name = ?", (name,))
        return bytes(rows[0][0]) if rows else None

    def put(self, name: str, value: bytes) -> None:
        """Write a value to the meta table."""
        self.execute(
            f"INSERT INTO {self.place(self._meta)} (name, value) VALUES (?, ?) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (name, value),
        )

    def upsert(self, table: Layout, rows: Sequence[Sequence[Any]]) -> None:
        """Add rows, or replace those of the same key."""
        names = ", ".join(map(quoted, table.names))
        marks = ", ".join("?" * len(table.names))
        rest = ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in table.names if name not in table.key)
        sql = (
            f"INSERT INTO {self.place(table)} ({names}) VALUES ({marks}) "
            f"ON CONFLICT ({', '.join(map(quoted, table.key))}) DO UPDATE SET {rest}"
        )
        self.execute_many(sql, rows)

    @abstractmethod
    def execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each of many rows."""

    def lookup(self, table: Layout, keys: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        """Yield the existing rows of these keys."""
        names = ", ".join(map(quoted, table.names))
        for start in range(0, len(keys), _LOOKED_UP):
            part = keys[start : start + _LOOKED_UP]
            marks = ", ".join("?" * len(part))
            where = f"{quoted(table.key[0])} IN ({marks})"
            yield from self.execute(f"SELECT {names} FROM {self.place(table)} WHERE {where}", part)

    def read_joined(self, table: Layout, names: Sequence[str], where: str, values: Sequence[int]) -> bytes:
        """Return fixed-length byte columns concatenated row by row, rows in any order."""
        rows = self.read(table, names, where, values)
        columns = [column.to_pylist() for column in rows.columns]
        return b"".join(part for row in zip(*columns, strict=True) for part in row)

    def read_some(self, table: Layout, names: Sequence[str], first: int, chosen: Sequence[bytes]) -> pa.Table:
        """Read rows of a table with a two-column key: the first is this number, the second one of those chosen.

        The choice may be secret and must not be written to disk, so all rows are read and then filtered.
        """
        number, name = table.key
        rows = self.read(table, tuple(dict.fromkeys((*names, name))), f"{quoted(number)} = ?", (first,))
        is_chosen = pc.is_in(rows.column(name), value_set=pa.array(chosen, type=pa.binary()))
        return rows.filter(is_chosen).select(list(names))

    def count(self, table: Layout, where: str = "", values: Sequence[Any] = ()) -> int:
        """Count rows."""
        condition = f" WHERE {where}" if where else ""
        return int(self.execute(f"SELECT count(*) FROM {self.place(table)}{condition}", values)[0][0])

    def delete(self, table: Layout, where: str, values: Sequence[Any]) -> None:
        """Remove rows."""
        self.execute(f"DELETE FROM {self.place(table)} WHERE {where}", values)

    def _definition(self, table: Layout) -> str:
        _check_names(table)
        columns = [f"{quoted(name)} {self.TYPES[kind]}" for name, kind in table.columns]
        keys = [f"PRIMARY KEY ({', '.join(map(quoted, table.key))})"] if table.key else []
        return f"CREATE TABLE {self.place(table)} ({', '.join([*columns, *keys])}){self._ending(table)}"

    def _ending(self, table: Layout) -> str:
        return ""


def quoted(name: str) -> str:
    """Quote a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def _check_names(table: Layout) -> None:
    """Some databases ignore case; names must be different in all of them."""
    seen: dict[str, str] = {}
    for name in table.names:
        if any(sign in name for sign in "\0?%{}") or not 0 < len(name.encode()) <= 60:
            raise PolicyError("a column has a name that no store takes; use at most 60 bytes, none of them ? % { }")
        if (other := seen.setdefault(name.lower(), name)) != name or table.names.count(name) > 1:
            raise PolicyError(f"columns {other!r} and {name!r}: cannot be in one table; rename one of them")

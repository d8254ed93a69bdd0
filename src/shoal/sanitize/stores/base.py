"""The contract of a store: a few tables, filled and read as Arrow, in transactions.

SQL is written once, with `?` for values. A store adds how rows get in and out in bulk, and how space is given back.
An error of a database may hold the row it is about, so its text is never passed on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import PolicyError, StoreError

VERSION: Final = 1
RESERVED: Final = "shoal_"
"""Columns of our own begin with this; a column of the data may not."""
_LOOKED_UP: Final = 500

Kind = Literal["bytes", "text", "integer", "real", "boolean"]
ARROW: Final[dict[Kind, pa.DataType]] = {
    "bytes": pa.binary(),
    "text": pa.string(),
    "integer": pa.int64(),
    "real": pa.float64(),
    "boolean": pa.bool_(),
}


@dataclass(frozen=True, slots=True)
class Layout:
    """A table: its name, its columns and what is unique in it."""

    name: str
    columns: tuple[tuple[str, Kind], ...]
    key: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns."""
        return tuple(name for name, _ in self.columns)

    def kind(self, name: str) -> Kind:
        """Of a column."""
        return dict(self.columns)[name]


class Store(ABC):
    """A database, or a part of one, that belongs to one role of one process."""

    TYPES: dict[Kind, str]

    def __init__(self, role: str, name: str) -> None:
        self.role = role
        self.name = name
        """What people are shown; never a secret."""
        self._meta = Layout(f"shoal_{role}_about", (("name", "text"), ("value", "bytes")), ("name",))

    # ---- what a database brings

    @abstractmethod
    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement; give its rows."""

    @abstractmethod
    def insert(self, table: Layout, rows: pa.Table) -> None:
        """Add rows that have the table's columns, in the order they are in."""

    @abstractmethod
    def read(self, table: Layout, names: Sequence[str], where: str = "", values: Sequence[int] = ()) -> pa.Table:
        """Columns of all rows, or of some."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[None]:
        """All that is done within happens, or none of it; StoreError for whatever the database says."""

    @abstractmethod
    def compact(self, table: Layout) -> None:
        """Give back and overwrite the space of deleted rows, as far as the database can."""

    @abstractmethod
    def has(self, table: Layout) -> bool:
        """Whether a table is there."""

    @abstractmethod
    def holds(self, pieces: Sequence[bytes]) -> bool:
        """Whether one of these bytes can still be found where the database keeps its rows."""

    @abstractmethod
    def close(self) -> None:
        """Let go."""

    # ---- the same for all

    def check_version(self) -> bool:
        """Whether the store was made before; StoreError where a newer shoal made it."""
        if not self.has(self._meta):
            return False
        found = self.get("version")
        version = int(found) if found and found.isdigit() else 0
        if version != VERSION:
            raise StoreError(
                f"{self.name}: has format version {version}; this shoal reads version {VERSION}. Nothing was changed; "
                "use the shoal it was made with"
            )
        return True

    def create(self, tables: Sequence[Layout]) -> None:
        """Make what is missing; call it in a transaction."""
        for table in (self._meta, *tables):
            if not self.has(table):
                self.execute(self._definition(table))
        if self.get("version") is None:
            self.put("version", str(VERSION).encode())

    def get(self, name: str) -> bytes | None:
        """A value kept beside the tables."""
        rows = self.execute(f"SELECT value FROM {quoted(self._meta.name)} WHERE name = ?", (name,))
        return bytes(rows[0][0]) if rows else None

    def put(self, name: str, value: bytes) -> None:
        """Keep a value beside the tables."""
        self.execute(
            f"INSERT INTO {quoted(self._meta.name)} (name, value) VALUES (?, ?) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (name, value),
        )

    def upsert(self, table: Layout, rows: Sequence[Sequence[Any]]) -> None:
        """Add rows, or replace those of the same key."""
        names = ", ".join(map(quoted, table.names))
        marks = ", ".join("?" * len(table.names))
        rest = ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in table.names if name not in table.key)
        sql = (
            f"INSERT INTO {quoted(table.name)} ({names}) VALUES ({marks}) "
            f"ON CONFLICT ({', '.join(map(quoted, table.key))}) DO UPDATE SET {rest}"
        )
        self.execute_many(sql, rows)

    @abstractmethod
    def execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each of many rows."""

    def lookup(self, table: Layout, keys: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        """Rows by their key, as far as they are there."""
        names = ", ".join(map(quoted, table.names))
        for start in range(0, len(keys), _LOOKED_UP):
            part = keys[start : start + _LOOKED_UP]
            marks = ", ".join("?" * len(part))
            where = f"{quoted(table.key[0])} IN ({marks})"
            yield from self.execute(f"SELECT {names} FROM {quoted(table.name)} WHERE {where}", part)

    def read_joined(self, table: Layout, names: Sequence[str], where: str, values: Sequence[int]) -> bytes:
        """Columns of bytes of fixed lengths: those of a row one after another, row after row, in any order."""
        rows = self.read(table, names, where, values)
        columns = [column.to_pylist() for column in rows.columns]
        return b"".join(part for row in zip(*columns, strict=True) for part in row)

    def read_some(self, table: Layout, names: Sequence[str], first: int, chosen: Sequence[bytes]) -> pa.Table:
        """Rows of a table with a key of two columns: the first has this number, the second is one of those chosen.

        Which are chosen may be a secret: it must not be written to a disk, so that other rows are read, too, and left.
        """
        number, name = table.key
        rows = self.read(table, tuple(dict.fromkeys((*names, name))), f"{quoted(number)} = ?", (first,))
        is_chosen = pc.is_in(rows.column(name), value_set=pa.array(chosen, type=pa.binary()))
        return rows.filter(is_chosen).select(list(names))

    def count(self, table: Layout, where: str = "", values: Sequence[Any] = ()) -> int:
        """How many rows there are."""
        condition = f" WHERE {where}" if where else ""
        return int(self.execute(f"SELECT count(*) FROM {quoted(table.name)}{condition}", values)[0][0])

    def delete(self, table: Layout, where: str, values: Sequence[Any]) -> None:
        """Remove rows."""
        self.execute(f"DELETE FROM {quoted(table.name)} WHERE {where}", values)

    def _definition(self, table: Layout) -> str:
        _check_names(table)
        columns = [f"{quoted(name)} {self.TYPES[kind]}" for name, kind in table.columns]
        keys = [f"PRIMARY KEY ({', '.join(map(quoted, table.key))})"] if table.key else []
        return f"CREATE TABLE {quoted(table.name)} ({', '.join([*columns, *keys])}){self._ending(table)}"

    def _ending(self, table: Layout) -> str:
        return ""


def quoted(name: str) -> str:
    """A name as SQL takes it."""
    return '"' + name.replace('"', '""') + '"'


def _check_names(table: Layout) -> None:
    """Databases fold capitals or are told apart by them; a table must be the same in all of them."""
    seen: dict[str, str] = {}
    for name in table.names:
        if any(sign in name for sign in "\0?%{}") or not 0 < len(name.encode()) <= 60:
            raise PolicyError("a column has a name that no store takes; use at most 60 bytes, none of them ? % { }")
        if (other := seen.setdefault(name.lower(), name)) != name or table.names.count(name) > 1:
            raise PolicyError(f"columns {other!r} and {name!r}: cannot stand in one table; rename one of them")

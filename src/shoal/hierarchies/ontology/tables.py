"""Ontologies from tables: one row per value, one column per property."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from shoal.errors import PolicyError
from shoal.hierarchies.ontology.compile import Key, Sketch
from shoal.hierarchies.ontology.concepts import IS_A, Tag
from shoal.hierarchies.text_files import csv_lines, decode, read_bytes

Cells = Sequence[str | None]
_APART = "\x1f"


@dataclass(frozen=True, slots=True)
class TableShape:
    """The role of each column.

    Attributes
    ----------
    value
        The column of values.
    properties
        Columns of aggregation properties, by priority.
    is_a
        Columns of classes, from the finest to the coarsest.
    parents
        For a property, the columns above its own, from the finest to the coarsest.
    """

    value: str
    properties: tuple[str, ...]
    is_a: tuple[str, ...]
    parents: Mapping[str, tuple[str, ...]]

    def columns(self) -> tuple[str, ...]:
        """Every column that is read, the value's first."""
        wider = (column for columns in self.parents.values() for column in columns)
        return tuple(dict.fromkeys((self.value, *self.is_a, *self.properties, *wider)))


def table_shape(
    value: str, properties: Iterable[str], is_a: Iterable[str], parents: Mapping[str, Iterable[str]] | None
) -> TableShape:
    """Check the roles of the columns."""
    chains = {column: _names(columns, f"parents[{column!r}]") for column, columns in (parents or {}).items()}
    shape = TableShape(value, _names(properties, "properties"), _names(is_a, "is_a"), chains)
    if not isinstance(value, str) or not value:
        raise PolicyError("ontology: value= must name the column that holds the values")
    if not shape.properties and not shape.is_a:
        raise PolicyError("ontology: name at least one column in properties= or is_a=; otherwise no value has a label")
    lost = sorted(set(chains) - set(shape.properties))
    if lost:
        raise PolicyError(f"ontology: parents= names {lost[0]!r}, which is not among properties=")
    used = (value, *shape.is_a, *shape.properties)
    if len(set(used)) < len(used):
        raise PolicyError("ontology: a column is named twice among value=, is_a= and properties=")
    if IS_A in shape.properties:
        raise PolicyError(f"ontology: a property cannot be called {IS_A!r}; name that column in is_a=")
    return shape


def sketch_table(table: Any, shape: TableShape, *, attribute: str | None, tag: Tag | None, root: str | None) -> Sketch:
    """The attribute that a table describes: the cells of a row describe its value; blank cells are skipped.

    A class is its cell together with the cells above it, so that "Note" of one brand is not "Note" of another.
    """
    where, columns = read_columns(table, shape.columns())
    name = attribute or shape.value
    texts: dict[Key, str] = {}
    parents: dict[Key, list[Key]] = {}
    wider: dict[Key, list[Key]] = {}
    statements: dict[str, dict[Key, list[Key]]] = {column: {} for column in shape.properties}
    values = columns[shape.value]
    keys = [f"{_APART}{value}" if value and value.strip() else None for value in values]
    texts.update((key, value) for key, value in zip(keys, values, strict=True) if key is not None and value is not None)
    listed = list(texts)
    if shape.is_a:
        _link(keys, _chains(IS_A, [columns[column] for column in shape.is_a], texts, parents), parents)
    for column in shape.properties:
        levels = [columns[level] for level in (column, *shape.parents.get(column, ()))]
        _link(keys, _chains(column, levels, texts, wider), statements[column])
    return Sketch(
        name=name, tag=tag, root=f"any {name}" if root is None else root, texts=texts, values=listed, parents=parents,
        properties=shape.properties, statements=statements, wider=wider, where=where,
    )  # fmt: skip


def _link(keys: Iterable[Key | None], things: Iterable[Key | None], links: dict[Key, list[Key]]) -> None:
    """Link each row's thing to its value, once."""
    for key, thing in zip(keys, things, strict=True):
        if key is None or thing is None:
            continue
        known = links.setdefault(key, [])
        if thing not in known:
            known.append(thing)


def _chains(kind: str, levels: Sequence[Cells], texts: dict[Key, str], above: dict[Key, list[Key]]) -> list[Key | None]:
    """The finest thing each row names; links between its levels are added to `above`."""
    known: dict[tuple[str | None, ...], Key | None] = {}
    found: list[Key | None] = []
    for cells in zip(*levels, strict=True):
        if cells not in known:
            known[cells] = _chain(kind, cells, texts, above)
        found.append(known[cells])
    return found


def _chain(kind: str, cells: Cells, texts: dict[Key, str], above: dict[Key, list[Key]]) -> Key | None:
    names = [cell.strip() for cell in cells if cell and cell.strip()]
    names = [name for place, name in enumerate(names) if place == 0 or name != names[place - 1]]
    for place, name in enumerate(names):
        key = _APART.join((kind, *names[place:]))
        texts[key] = name
        if place + 1 < len(names):
            above[key] = [_APART.join((kind, *names[place + 1 :]))]
    return _APART.join((kind, *names)) if names else None


def _names(columns: Iterable[str], what: str) -> tuple[str, ...]:
    if isinstance(columns, str) or not all(isinstance(column, str) and column for column in columns):
        raise PolicyError(f"ontology: {what} must be a list of columns")
    return tuple(columns)


# ---- reading


def read_columns(table: Any, columns: Sequence[str]) -> tuple[str, dict[str, Cells]]:
    """The name of the table for messages, and the named columns as text."""
    if isinstance(table, str | PathLike):
        path = Path(fspath(table))
        if path.suffix.lower() in (".parquet", ".pq"):
            return path.name, _arrow_columns(_parquet(path, columns), columns, path.name)
        return path.name, _csv_columns(path, columns)
    if isinstance(table, Sequence) and all(isinstance(row, Mapping) for row in table):
        return "table", _listed_columns(table, columns)
    return "table", _arrow_columns(table, columns, "table")


def _missing(column: str, where: str) -> PolicyError:
    return PolicyError(f"{where}: has no column {column!r}; name columns it has in value=, properties= and is_a=")


def _listed_columns(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> dict[str, Cells]:
    for column in columns:
        if not any(column in row for row in rows):
            raise _missing(column, "table")
    found = {column: [row.get(column) for row in rows] for column in columns}
    return {column: [None if cell is None else str(cell) for cell in cells] for column, cells in found.items()}


def _arrow_columns(table: Any, columns: Sequence[str], where: str) -> dict[str, Cells]:
    import pyarrow as pa  # slow to import, and lists of rows do not need it

    try:
        read = table if isinstance(table, pa.Table) else pa.table(table)
        for column in columns:
            if column not in read.column_names:
                raise _missing(column, where)
        return {column: read.column(column).cast(pa.string()).to_pylist() for column in columns}
    except (TypeError, ValueError, pa.ArrowException) as error:
        if isinstance(error, PolicyError):
            raise
        raise PolicyError(f"{where}: give a path, an Arrow table or a list of rows, with cells that are text") from None


def _parquet(path: Path, columns: Sequence[str]) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            return file.read(columns=[column for column in columns if column in file.schema_arrow.names])
    except OSError as error:
        raise PolicyError(f"{path.name}: cannot be read ({error.strerror or 'damaged'}); check the path") from None
    except pa.ArrowException:
        raise PolicyError(f"{path.name}: is not Parquet, or is damaged; write it again") from None


def _csv_columns(path: Path, columns: Sequence[str]) -> dict[str, Cells]:
    content = read_bytes(path)
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (gzip.BadGzipFile, EOFError, zlib.error):
            raise PolicyError(f"{path.name}: the compressed file is damaged or broke off; fetch it again") from None
    lines = csv_lines(decode(content, path.name), path.name)
    _, header = next(lines, (0, []))
    for column in columns:
        if column not in header:
            raise _missing(column, path.name)
    rows = []
    for line, cells in lines:
        if len(cells) != len(header):
            raise PolicyError(
                f"{path.name}: line {line}: has more or fewer cells than the header; put text with commas in quotes"
            )
        rows.append(cells)
    return {column: [cells[header.index(column)] for cells in rows] for column in columns}

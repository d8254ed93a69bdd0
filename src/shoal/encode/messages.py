"""Rows become messages of a broker: one value each, in JSON or Avro, and a key from a column."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from shoal.avro.registry import HEADER, SchemaRegistry
from shoal.avro.types import fastavro, parsed, record_schema, single_object_header
from shoal.crypto.safe_open import is_regular, write_file
from shoal.encode.avro_columns import avro_records
from shoal.encode.jsonl import json_objects
from shoal.encode.text import csv_column, is_binary, plain_column
from shoal.errors import OutputError


class MessageEncoder(ABC):
    """A format of messages and the column that their keys come from.

    Parameters
    ----------
    key
        The column whose text is the key of a message; None for messages without keys.
    """

    def __init__(self, *, key: str | None = None) -> None:
        self._key = key

    @abstractmethod
    def open(self, schema: pa.Schema) -> None:
        """Prepare to encode rows of this schema; RunError if a registry does not take it.

        RegistryUnreachable if it does not answer now: call it again.
        """

    @abstractmethod
    def values(self, rows: pa.RecordBatch) -> list[bytes]:
        """The value of every row's message."""

    def keys(self, rows: pa.RecordBatch) -> list[bytes | None] | None:
        """The key of every row's message, None for a missing value; None if messages have no keys.

        Numbers and times are written as in CSV.
        """
        if self._key is None:
            return None
        column = plain_column(rows.column(self._key))
        text = column if is_binary(column.type) else csv_column(column).cast(pa.string())
        return _listed(text)


class JsonMessages(MessageEncoder):
    """One object per message, with every column; the same text as a line of :mod:`shoal.encode.jsonl`."""

    def open(self, schema: pa.Schema) -> None:
        """Nothing to prepare."""

    def values(self, rows: pa.RecordBatch) -> list[bytes]:
        return _listed(json_objects(rows)) if rows.num_rows else []


class TextMessages(MessageEncoder):
    """One text per message: the only column of the rows, as it is."""

    def open(self, schema: pa.Schema) -> None:
        """Nothing to prepare."""

    def values(self, rows: pa.RecordBatch) -> list[bytes]:
        return _listed(rows.column(0))


class AvroMessages(MessageEncoder):
    """One record per message, of a schema that follows from the columns.

    Parameters
    ----------
    name
        Of the record in the schema, such as the name of the topic.
    registry
        Where the schema is registered; every message begins with its number there.
    schema
        The file that the schema is written to if there is no registry. Messages are in the single-object encoding.
    """

    def __init__(
        self, name: str, *, key: str | None = None, registry: SchemaRegistry | None = None, schema: Path | None = None
    ) -> None:
        super().__init__(key=key)
        fastavro()  # if the package is missing, say so before anything is read
        self._name, self._registry, self._file = name, registry, schema
        self._header = b""

    def open(self, schema: pa.Schema) -> None:
        described = record_schema(schema, self._name)
        if self._registry is not None:
            self._header = HEADER.pack(0, self._registry.register(f"{self._name}-value", described))
            return
        self._header = single_object_header(parsed(described))
        if self._file is not None:
            _write(self._file, orjson.dumps(described, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))

    def values(self, rows: pa.RecordBatch) -> list[bytes]:
        return _listed(avro_records(rows, self._header)) if rows.num_rows else []


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        is_regular(path)  # raises if it is a link
        working = path.with_name(f"{path.name}.partial")
        write_file(working, content)
        working.replace(path)
    except OSError as error:
        raise OutputError(f"{path}: the schema cannot be written ({error.strerror}); choose another place") from None


def _listed(texts: Any) -> list[Any]:
    """Every text as bytes."""
    found: list[Any] = texts.cast(pa.binary()).to_pylist()
    return found

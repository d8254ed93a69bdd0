"""Records of Avro, one per message: with the number of a schema in a registry, or all of one schema."""

from __future__ import annotations

import datetime
import io
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

import orjson
import pyarrow as pa

from shoal.avro.registry import HEADER, SchemaRegistry
from shoal.avro.types import (
    NANOSECONDS,
    UnusableSchema,
    fastavro,
    field_types,
    logical_types,
    parsed,
    single_object_header,
)
from shoal.decode.base import Refused
from shoal.decode.json_records import Record
from shoal.errors import InputError

_NO_HEADER: Final = "not in the wire format of the schema registry; leave out [source] registry, or write it so"
_UNKNOWN: Final = "its schema is not in the registry; check [source] registry"
_INVALID: Final = "not valid Avro of its schema; check that writer and reader use the same one"
_Read = Callable[[bytes, int], Record]
_Found = tuple[_Read | None, int, str]


class AvroParser:
    """Parses messages that hold one record of Avro each.

    Parameters
    ----------
    longest
        A longer message is refused.
    too_long, absent
        The reasons for that, and for a message without a value.
    registry
        Where schemas are: every message begins with the number of its own.
    schema
        The file with the schema of every message, if there is no registry. Messages are plain records, or in the
        single-object encoding of this schema.
    """

    is_text: ClassVar[bool] = False

    def __init__(
        self,
        longest: int,
        *,
        too_long: str,
        absent: str,
        registry: SchemaRegistry | None = None,
        schema: Path | None = None,
    ) -> None:
        self._longest, self._too_long, self._absent = longest, too_long, absent
        self._registry = registry
        self._readers: dict[int, _Found] = {}
        self.known: Mapping[str, pa.DataType | None] = {}
        fastavro()  # if the package is missing, say so before anything is read
        if registry is None:
            if schema is None:
                raise InputError("[source]: Avro needs a schema; name the schema's file or a registry")
            try:
                described = parsed(_read_schema(schema))
            except UnusableSchema as unusable:
                raise InputError(f"{schema}: {unusable}") from None
            self.known = field_types(described)
            self._read_plain = self._reader(described)
            self._single_object = single_object_header(described)

    @property
    def is_typed(self) -> bool:
        return self._registry is None

    def parse(self, payloads: Sequence[bytes | None]) -> tuple[list[Record], list[Refused]]:
        """The records (empty for an unusable message), and the refusals.

        RegistryUnreachable if a schema is needed and cannot be fetched now: call it again later.
        """
        records: list[Record] = []
        refused = []
        find = self._find_plain if self._registry is None else self._find_numbered
        for row, payload in enumerate(payloads):
            read, start, reason = find(payload) if payload else (None, 0, self._absent)
            record: Record = {}
            if read is not None and payload is not None:
                try:
                    record = read(payload, start)
                except Exception:  # fastavro raises errors of many kinds, some of which contain values
                    read, reason = None, _INVALID
            if read is None:
                refused.append(Refused(row, None, reason))
            records.append(record)
        return records, refused

    def _find_plain(self, payload: bytes) -> _Found:
        """How to read a message: the reader and where the record starts, or why it cannot be read."""
        if len(payload) > self._longest:
            return None, 0, self._too_long
        return self._read_plain, len(self._single_object) if payload.startswith(self._single_object) else 0, ""

    def _find_numbered(self, payload: bytes) -> _Found:
        if len(payload) > self._longest:
            return None, 0, self._too_long
        if len(payload) < HEADER.size or payload[0]:
            return None, 0, _NO_HEADER
        _, number = HEADER.unpack_from(payload)
        if number not in self._readers:
            self._readers[number] = self._fetched(number)
        return self._readers[number]

    def _fetched(self, number: int) -> _Found:
        """How to read messages of a schema; one that cannot be used concerns its messages only."""
        assert self._registry is not None
        try:
            described = self._registry.schema(number)
            if described is None:
                return None, 0, _UNKNOWN
            schema = parsed(described)
        except UnusableSchema as unusable:
            return None, 0, f"its schema {unusable}"
        self.known = self.known or field_types(schema)
        return self._reader(schema), HEADER.size, ""

    @staticmethod
    def _reader(schema: Any) -> _Read:
        read = fastavro().schemaless_reader
        changes = {
            name: change
            for name, kinds in logical_types(schema).items()
            if (change := next((_CHANGES[kind] for kind in kinds if kind in _CHANGES), None))
        }
        return partial(_read_record, read, schema, changes)


def _read_schema(path: Path) -> Any:
    try:
        return orjson.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); name the file of the schema") from None
    except ValueError:
        raise InputError(f"{path}: is not JSON; name a file with a schema of Avro") from None


def _read_record(
    read: Any, schema: Any, changes: Mapping[str, Callable[[Any], Any]], payload: bytes, start: int
) -> Record:
    stream = io.BytesIO(payload[start:])
    record: Record = read(stream, schema, None)
    if stream.tell() != len(payload) - start:
        raise ValueError  # bytes are left over: this is a record of another schema
    for name, change in changes.items():
        record[name] = change(record[name])
    return record


def _time_of_day(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime.time) else value


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value


def _nanoseconds(value: Any) -> Any:
    return pa.scalar(value, NANOSECONDS) if isinstance(value, int) else value


def _text(value: Any) -> Any:
    return value if value is None else str(value)


_CHANGES: Final[dict[str, Callable[[Any], Any]]] = {
    "uuid": _text, "decimal": _number, "time-millis": _time_of_day, "time-micros": _time_of_day,
    "timestamp-nanos": _nanoseconds, "local-timestamp-nanos": _nanoseconds,
}  # fmt: skip

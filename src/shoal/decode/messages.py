"""Messages of a broker become Arrow batches: a value in JSON or Avro, with its key, headers and time as columns.

Every message is parsed alone. One that cannot be used is refused with a reason and shifts no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.avro.registry import SchemaRegistry
from shoal.decode.avro_records import AvroParser
from shoal.decode.base import Decoded, Refused, plain_type
from shoal.decode.columns import NOT_UTF8, as_text, fit, refused_misfits
from shoal.decode.json_records import Columns, FirstRecords, JsonParser, Record
from shoal.decode.prepared import prepared_schema, with_row_numbers, with_times
from shoal.errors import InputError
from shoal.times import column_ns

MAX_MESSAGE_BYTES: Final = 16 * 1024 * 1024
TOO_LONG: Final = "longer than the longest message allowed; raise max_message_bytes"
TOMBSTONE: Final = "a message without a value (a tombstone); there is nothing to publish"
_NS_PER_MS: Final = 1_000_000
_UTC_TIME: Final = pa.timestamp("ns", tz="UTC")
_TEXTS: Final = pa.list_(pa.string())
_HEADERS: Final = pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))
RAW_MESSAGE: Final = pa.struct(
    [("value", pa.binary()), ("key", pa.binary()), ("time", pa.int64()), ("headers", _HEADERS)]
)
"""A whole message; the time is the broker's, in milliseconds, as clients have it."""
_SINGLE: Final = (
    pa.int64(), pa.float64(), pa.string(), pa.bool_(), _UTC_TIME, pa.timestamp("us", tz="UTC"), pa.date32(),
)  # fmt: skip
_TYPES: Final = {str(kind): kind for single in _SINGLE for kind in (single, pa.list_(single))}

Given = bytes | str | None


@dataclass(frozen=True, slots=True)
class Messages:
    """Consecutive messages, one entry each in every list. Lists that the decoder does not need may be left out."""

    values: Sequence[bytes | None]
    keys: Sequence[Given] | None = None
    times: Sequence[int] | npt.NDArray[np.int64] | None = None
    """When the broker took each message, in nanoseconds since 1970."""
    headers: Sequence[Iterable[tuple[str, Given]] | None] | None = None


@dataclass(frozen=True)
class Envelope:
    """Columns that are taken from around the value of a message."""

    key: str | None = None
    """The column for the key, as text."""
    time: str | None = None
    """The column for the time of the broker."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Columns for headers: the header that each is taken from."""
    raw: str | None = None
    """The column for whole messages, as they came (`RAW_MESSAGE`)."""

    @property
    def columns(self) -> set[str]:
        """The names of all these columns."""
        return {name for name in (self.key, self.time, *self.headers, self.raw) if name is not None}


class RecordParser(Protocol):
    """Parses values of messages, one by one: a parser of JSON or of Avro."""

    @property
    def known(self) -> Mapping[str, pa.DataType | None]:
        """The fields of the first schema, with their types as far as it fixes them; empty in a format without one."""

    @property
    def is_typed(self) -> bool:
        """Whether types are known without any message."""

    @property
    def is_text(self) -> bool:
        """Whether payloads are JSON: types are inferred, not known."""

    def parse(self, payloads: Sequence[bytes | None]) -> tuple[list[Record], list[Refused]]:
        """The records, empty where one is refused, and the refusals."""


class MessageDecoder:
    """Decodes messages of one source. Results do not depend on how messages are split into calls.

    Columns without a declared type get one from the first messages, as many as it takes until each column has appeared
    (at most 1,000): call `learn` until it returns True. `types` then belongs into the position of the source, and back
    into the decoder of a resumed run.

    Parameters
    ----------
    parser
        Of the format.
    needed
        The columns of the batches. Those of `envelope` are taken from there, the others are keys of the value.
    time, unit
        The column of event times, and the unit if they are numbers (``"ms"``, …).
    row
        The column that is the number of the message in the stream, unless messages have it.
    types
        Of an earlier run: nothing is learnt again.
    """

    def __init__(
        self,
        parser: RecordParser,
        needed: Columns,
        *,
        envelope: Envelope | None = None,
        time: str | None = None,
        unit: str | None = None,
        row: str | None = None,
        types: Mapping[str, str] | None = None,
    ) -> None:
        self._parser, self._all, self._envelope = parser, needed.columns, envelope or Envelope()
        self._outer = [name for name in needed.columns if name in self._envelope.columns]
        inner = tuple(name for name in needed.columns if name not in self._outer)
        self._declared = dict(needed.declared)
        self._needed = replace(needed, columns=inner)
        self._time, self._unit, self._row = time, unit, row
        self._inner: pa.Schema | None = None
        self._first = FirstRecords(set(inner) - set(self._declared) - set(needed.optional))
        if types is not None:
            known = {name: _type_of(text) for name, text in types.items()}
            self._inner = pa.schema([(name, known[name]) for name in inner if name in known])
        elif parser.is_typed or set(inner) <= set(self._declared):
            self._fix_types([])

    # ---- types

    @property
    def is_ready(self) -> bool:
        """Whether types are known."""
        return self._inner is not None

    def learn(self, values: Iterable[bytes | None], *, is_last: bool = False) -> bool:
        """Take types from the next of the first messages; returns whether no more are needed.

        Pass the messages in an order that another run would pass them in too. `is_last`: no more will come, so decide
        with these. InputError if a column that the policy names is in none of the first messages.
        """
        for value in values:
            if self._inner is not None or self._first.suffice:
                break
            if value:
                self._first.add(self._parser.parse([value])[0][0])
        if self._inner is None and (is_last or self._first.suffice):
            self._fix_types(self._first.records)
        return self._inner is not None

    def _fix_types(self, records: Sequence[Record]) -> None:
        needed, known = self._needed, self._parser.known
        if known and not records:
            absent = [name for name in needed.columns if not {name} & {*known, *self._declared, *needed.optional}]
            if absent:
                raise InputError(
                    f"{needed.name}: the schema has no field {' and no field '.join(map(repr, absent))}; correct the "
                    "policy or the schema"
                )
        fixed = {name: kind for name, kind in known.items() if kind is not None and name in needed.columns}
        declared = {**fixed, **needed.assumed, **self._declared} if known else self._declared
        declared = {name: plain_type(kind) for name, kind in declared.items() if name in needed.columns}
        self._inner = replace(needed, declared=declared).schema(records, is_live=self._parser.is_text)

    @property
    def types(self) -> dict[str, str]:
        """The types in use, as values that fit in JSON."""
        return {one.name: str(one.type) for one in self._known_schema}

    @property
    def schema(self) -> pa.Schema:
        """The columns of every batch; only once types are known."""
        kinds = {one.name: one.type for one in self._known_schema}
        kinds |= {name: self._outer_type(name) for name in self._outer}
        found = pa.schema([(name, kinds[name]) for name in self._all if name in kinds])
        return prepared_schema(found, self._all, row=self._row, time=self._time if self._unit else None)

    @property
    def numbers_rows(self) -> bool:
        """Whether every message counts as one person, because no column names them."""
        return self._row is not None and self._row not in (*self._known_schema.names, *self._outer)

    @property
    def _known_schema(self) -> pa.Schema:
        if self._inner is None:
            raise InputError(
                f"{self._needed.name}: there is no message yet that types could be taken from; give them in "
                "[source] types"
            )
        return self._inner

    def _outer_type(self, name: str) -> pa.DataType:
        if name == self._envelope.raw:
            return RAW_MESSAGE
        return _UTC_TIME if name == self._envelope.time else self._declared.get(name, pa.string())

    # ---- decoding

    @property
    def needs_keys(self) -> bool:
        """Whether `decode` needs the keys of messages."""
        return bool({self._envelope.key, self._envelope.raw} & set(self._outer))

    @property
    def needs_headers(self) -> bool:
        """Whether `decode` needs the headers of messages."""
        return bool({*self._envelope.headers, self._envelope.raw} & set(self._outer))

    @property
    def needs_times(self) -> bool:
        """Whether `decode` needs the broker's times of messages."""
        return bool({self._envelope.time, self._envelope.raw} & set(self._outer))

    def decode(self, messages: Messages) -> Decoded:
        """All messages, as a batch and refusals; without row numbers, which `numbered` adds.

        RegistryUnreachable if a schema of Avro cannot be fetched now. Nothing has changed: call it again.
        """
        values, inner = messages.values, self._known_schema
        if isinstance(self._parser, JsonParser):
            columns, refused = self._needed.parsed(self._parser, values, inner)
        else:
            records, refused = self._parser.parse(values)
            columns, misfits = self._needed.arrays(records, inner, None)
            refused += misfits
        found = dict(zip(inner.names, columns, strict=True))
        for name in self._outer:
            found[name], wrong = self._outer_column(name, messages)
            refused += wrong
        names = [name for name in self._all if name in found]
        schema = pa.schema([(name, found[name].type) for name in names])
        decoded = Decoded.of([found[name] for name in names], schema, refused, {})
        if self._unit is None or self._time not in names:
            return decoded
        return with_times(decoded, self._time, self._unit)

    def numbered(self, decoded: Decoded, first: int) -> Decoded:
        """Add row numbers if they are needed; `first` is the number of the first of these messages in the stream.

        Call it last, when the order of messages is final.
        """
        return with_row_numbers(decoded, str(self._row), first, self.schema) if self.numbers_rows else decoded

    def event_times(self, decoded: Decoded) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]] | None:
        """Times (ns) of the rows of a batch, and which of them are usable; None if messages have no time column."""
        if self._time is None or self._time not in decoded.batch.schema.names:
            return None
        return column_ns(decoded.batch.column(self._time))

    def _outer_column(self, name: str, messages: Messages) -> tuple[Any, list[Refused]]:
        if name == self._envelope.raw:
            return _whole(messages), []
        if name == self._envelope.time:
            times = np.zeros(len(messages.values), dtype=np.int64) if messages.times is None else messages.times
            return pa.array(times, pa.int64()).cast(pa.timestamp("ns")).cast(_UTC_TIME), []
        if name == self._envelope.key:
            given: Iterable[Given] = messages.keys or [None] * len(messages.values)
        else:
            given = _header(self._envelope.headers[name], messages)
        # A lone surrogate becomes bytes that are not UTF-8, so its message is refused below.
        raw = pa.array(list(map(_bytes, given)), pa.binary())
        text, unreadable = as_text(raw)
        kind = self._outer_type(name)
        column, misfits = fit(text, kind)
        wrong = [Refused(int(row), name, NOT_UTF8) for row in unreadable]
        return column, wrong + refused_misfits(misfits, name, kind)


def _whole(messages: Messages) -> Any:
    """Every message as it came."""
    count = len(messages.values)
    times = np.zeros(count, dtype=np.int64) if messages.times is None else np.asarray(messages.times, dtype=np.int64)
    listed = [[(name, _bytes(value)) for name, value in one] if one else None for one in messages.headers or ()]
    columns = [
        pa.array(messages.values, pa.binary()),
        pa.array(list(map(_bytes, messages.keys)), pa.binary()) if messages.keys else pa.nulls(count, pa.binary()),
        pa.array(np.maximum(times, 0) // _NS_PER_MS),
        pa.array(listed, _HEADERS) if any(listed) else pa.nulls(count, _HEADERS),
    ]
    return pa.StructArray.from_arrays(columns, fields=list(RAW_MESSAGE))


def _bytes(given: Given) -> bytes | None:
    return given.encode(errors="surrogatepass") if isinstance(given, str) else given


def _header(header: str, messages: Messages) -> list[Given]:
    """The value of a header in every message; the last one if it is there several times."""
    if messages.headers is None:
        return [None] * len(messages.values)
    return [dict(one).get(header) if one else None for one in messages.headers]


def _type_of(text: str) -> pa.DataType:
    if text not in _TYPES:
        raise InputError(
            f"the checkpoint has a column of type {text}, which this version does not know; start over with a new "
            "checkpoint folder"
        )
    return _TYPES[text]


OpenDecoder = Callable[[tuple[str, ...], Mapping[str, str] | None], MessageDecoder]
"""Makes the decoder of a source: for columns, and with the types of an earlier run."""


def json_parser(longest: int = MAX_MESSAGE_BYTES) -> JsonParser:
    """The parser of messages in JSON."""
    return JsonParser(longest, "message", too_long=TOO_LONG, absent=TOMBSTONE)


def avro_parser(
    longest: int = MAX_MESSAGE_BYTES, *, registry: SchemaRegistry | None = None, schema: Path | None = None
) -> AvroParser:
    """The parser of messages in Avro, with a registry or the file of a schema."""
    return AvroParser(longest, too_long=TOO_LONG, absent=TOMBSTONE, registry=registry, schema=schema)

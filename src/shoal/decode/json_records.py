"""Objects of JSON, one per line or per message, none of which can shift another."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import orjson
import pyarrow as pa

from shoal.decode.base import Refused
from shoal.decode.columns import NOT_UTF8
from shoal.decode.json_blocks import tidy_arrays
from shoal.decode.json_values import EXACT, infer, is_name, json_column
from shoal.decode.text import HAS_NUL
from shoal.errors import InputError

SAMPLE_RECORDS: Final = 1_000
"""Types come from at most this many of the first records."""

Record = dict[str, Any]


@dataclass(frozen=True)
class Columns:
    """The columns that are needed of every record, and what is known of their types."""

    name: str
    """Of the input, for messages."""
    columns: tuple[str, ...]
    declared: Mapping[str, pa.DataType] = field(default_factory=dict)
    assumed: Mapping[str, pa.DataType] = field(default_factory=dict)
    """Types of columns whose type the first records do not show."""
    lists: Collection[str] = frozenset()
    """Columns of items, alone or in lists."""
    carried: Collection[str] = frozenset()
    """Columns that are only published, never counted or compared."""
    optional: Collection[str] = frozenset()
    """Columns that are left out if no record has them."""

    def schema(self, records: Sequence[Record], *, is_live: bool = False) -> pa.Schema:
        """The types of all columns: declared, or inferred from the first records.

        On a live input only a few records are known: a whole number in a carried column may get a fraction later.
        """
        missing = [name for name in self.columns if name not in self.declared]
        absent = {name for name in missing if not any(name in record for record in records)}
        columns = tuple(name for name in self.columns if name not in absent or name not in self.optional)
        missing = [name for name in missing if name in columns]
        self._require_keys(missing, [record for record in records if record])
        found = {name: self.assumed.get(name) or self._guess(name, records) for name in missing}
        if is_live:
            found |= {name: pa.float64() for name in found if name in self.carried and _may_get_fraction(name, records)}
        return pa.schema([(name, self.declared.get(name) or found[name]) for name in columns])

    def parsed(
        self, parser: JsonParser, texts: Sequence[bytes | None], schema: pa.Schema
    ) -> tuple[list[Any], list[Refused]]:
        """A column for each field of a schema, from texts with one object each, and the refusals."""
        columns = None if self.lists else tidy_arrays(texts, schema, parser.longest)
        if columns is not None:
            return columns, []
        records, refused = parser.parse(texts)
        columns, misfits = self.arrays(records, schema, texts)
        return columns, refused + misfits

    def arrays(
        self, records: Sequence[Record], schema: pa.Schema, texts: Sequence[bytes | None] | None
    ) -> tuple[list[Any], list[Refused]]:
        """A column for each field of a schema, and the refusals of values that do not fit."""
        columns, refused = [], []
        for one in schema:
            name = one.name
            values = [record.get(name) for record in records]
            column, wrong = json_column(values, one, texts, names_only=name in self.lists)
            columns.append(column)
            refused += wrong
        return columns, refused

    def _guess(self, name: str, records: Sequence[Record]) -> pa.DataType:
        values = [record.get(name) for record in records]
        has_lists = name in self.lists and any(isinstance(value, list) for value in values)
        if has_lists:
            return pa.list_(pa.string())
        names = [value for value in values if is_name(value)] if name in self.lists else []
        return infer(names or values)

    def _require_keys(self, names: Sequence[str], records: list[Record]) -> None:
        """Refuse a key that none of the first records has: it is probably misspelt."""
        missing = [repr(name) for name in names if not any(name in record for record in records)]
        if records and missing:
            what = f"is no key {missing[0]}" if len(missing) == 1 else f"are no keys {', '.join(missing)}"
            raise InputError(
                f"{self.name}: there {what} in its first {len(records)} records; correct the policy, or give the "
                "type in [source] types if it comes later"
            )


class FirstRecords:
    """The first records of a live input: as many as it takes until each column has appeared, at most 1,000."""

    def __init__(self, names: Iterable[str]) -> None:
        self.records: list[Record] = []
        self._left = set(names)

    @property
    def suffice(self) -> bool:
        """Whether no more records are needed."""
        return bool(self.records) and (not self._left or len(self.records) >= SAMPLE_RECORDS)

    def add(self, record: Record) -> None:
        """Take the next record; an empty one could not be parsed."""
        self.records.append(record)
        self._left.difference_update(record)


@dataclass(frozen=True)
class JsonParser:
    """Parses texts that hold one object each.

    Parameters
    ----------
    longest
        A longer text is refused.
    per
        What holds one object: a ``line`` or a ``message``.
    too_long, absent
        The reasons for a text that is too long, and for None and an empty text.
    """

    longest: int
    per: str
    too_long: str
    absent: str
    known: ClassVar[Mapping[str, pa.DataType | None]] = {}
    is_typed: ClassVar[bool] = False
    is_text: ClassVar[bool] = True

    def parse(self, texts: Sequence[bytes | None]) -> tuple[list[Record], list[Refused]]:
        """The objects (empty for an unusable text), and the refusals."""
        try:
            records = [orjson.loads(text) for text in texts]  # type: ignore[arg-type]
            if set(map(type, records)) <= {dict} and max(map(len, texts), default=0) <= self.longest:  # type: ignore[arg-type]
                return records, []
        except ValueError:
            pass
        return self._parse_each(texts)

    def _parse_each(self, texts: Sequence[bytes | None]) -> tuple[list[Record], list[Refused]]:
        records: list[Record] = []
        refused = []
        for row, text in enumerate(texts):
            record, reason = self._parse_one(text)
            records.append(record)
            if reason is not None:
                refused.append(Refused(row, None, reason))
        return records, refused

    def _parse_one(self, text: bytes | None) -> tuple[Record, str | None]:
        if not text:
            return {}, self.absent
        if len(text) > self.longest:
            return {}, self.too_long
        try:
            record = orjson.loads(text)
        except ValueError:
            return {}, self._why_invalid(text)
        if isinstance(record, dict):
            return record, None
        return {}, f"not a JSON object; write one object a {self.per}"

    def _why_invalid(self, text: bytes) -> str:
        if b"\0" in text:
            return HAS_NUL
        try:
            text.decode("utf-8")
        except UnicodeDecodeError:
            return NOT_UTF8
        return f"not valid JSON; write one object a {self.per}"


def _may_get_fraction(name: str, records: Sequence[Record]) -> bool:
    """Whether a column has shown whole numbers only, all of them exact as floats."""
    values = [record[name] for record in records if record.get(name) is not None]
    return bool(values) and all(type(value) is int and abs(value) <= EXACT for value in values)

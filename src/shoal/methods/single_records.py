"""Single records: whether they have what is needed, in types that can stand in columns later."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.errors import InputError
from shoal.kernels.text_hashes import hash_texts
from shoal.methods.arrow_input import fits, record_type, require_record
from shoal.methods.base import Record
from shoal.methods.quasi_readers import NumericReader, Reader
from shoal.methods.text_keys import Words
from shoal.schema import Schema


def check_record(
    record: Record, schema: Schema, readers: Sequence[Reader], columns: Sequence[str], known: pa.Schema | None
) -> pa.Schema:
    """Raise InputError where a record cannot be taken; return the types it has, which are those known if there are any.

    Records that wait become columns later, so they must fit one type each.
    """
    require_record(record)
    names = [reader.name for reader in readers]
    _require_keys(record, schema.person, names)
    if known is None:
        measured = [reader.name for reader in readers if isinstance(reader, NumericReader)]
        counted = {schema.person, *schema.sensitive, *names} - set(measured)
        known = _record_types(record, columns, counted=counted, measured=measured)
    _require_types(record, known)
    return known


def _require_keys(record: Record, person: str, quasi: Sequence[str]) -> None:
    """A key that is not there is a missing value, but not the person's, and not all of them."""
    if person not in record:
        raise InputError(f"column {person!r}: the record has no such key; name the keys as the schema does")
    if quasi[0] not in record and not any(name in record for name in quasi[1:]):
        raise InputError(
            f"column {quasi[0]!r}: the record has no such key, nor that of another quasi-identifier; "
            "name the keys as the schema does"
        )


def _record_types(
    record: Record, columns: Sequence[str], *, counted: Collection[str], measured: Sequence[str]
) -> pa.Schema:
    """The types of a record's values; those that are measured may have a fraction later on."""
    types = {name: record_type(record.get(name), is_counted=name in counted) for name in columns}
    types |= {name: pa.float64() for name in measured if record.get(name) is None}
    for name, kind in types.items():
        if kind is None:
            raise InputError(f"column {name!r}: {type(record[name]).__name__} cannot be held; give plain values")
    return pa.schema(types)


def _require_types(record: Record, types: pa.Schema) -> None:
    """Raise InputError where a value does not fit its column."""
    for name, kind in zip(types.names, types.types, strict=True):
        if not _fits(record.get(name), kind):
            raise InputError(f"column {name!r}: a value is not {kind}; give one type")


def _fits(value: Any, kind: pa.DataType) -> bool:
    """Whether a value comes back unchanged out of a column of this type; quick for what is usual."""
    if value is None or (type(value) is str and kind == pa.string() and value.isascii()):
        return True
    if type(value) is float and kind == pa.float64():
        return True
    if type(value) is int and kind == pa.int64():
        return -(2**63) <= value < 2**63
    if type(value) is int and kind == pa.float64() and -(2**53) <= value <= 2**53:
        return True
    return fits(value, kind)


def number_of(reader: Reader, value: Any) -> Any:
    """The number of one value of a quasi-identifier, REFUSED where it cannot be used."""
    try:
        return reader.read_one(value)
    except InputError as error:
        raise InputError(f"column {reader.name!r}: {error}; give one type") from None


def key_of(key: Words, person: str) -> Any:
    """The 128-bit keyed hash of one person, two words."""
    text = person.encode()
    offsets = np.array([0, len(text)], dtype=np.int32)
    keys = np.empty((1, 2), dtype=np.int64)
    hash_texts(key[0], key[1], offsets, np.frombuffer(text, dtype=np.uint8), keys)
    return keys

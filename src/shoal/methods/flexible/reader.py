"""Read records of the flexible method: columns or single values become codes and keys of people.

A value that the tree or the ontology does not list has a negative code made from its keyed hash. All such values are
published alike, but each counts separately when the share of rare records is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.crypto.keys import Secret
from shoal.kernels.flexible.layout import MISSING
from shoal.methods.base import Record
from shoal.methods.flexible.axes import GridAxis, is_moment_type
from shoal.methods.flexible.settings import FlexibleSettings
from shoal.methods.quasi_readers import REFUSED, Bools, CategoricalReader, NumericReader, Reader
from shoal.methods.release import NO_REASON
from shoal.methods.schema_reader import Reasons, SchemaReader, key_of
from shoal.methods.text_keys import Texts, Words, as_text, key_words
from shoal.methods.text_ranks import TextRanks
from shoal.schema import Numeric, Quasi

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_LARGEST_UNKNOWN: Final = MISSING - 1
_DROPPED_BITS: Final = 13
"""Codes pass through floats, which hold 53 bits; 51 bits of the hash are kept."""


@dataclass(frozen=True, slots=True)
class ReadRecords:
    """A batch or a single record as arrays; keys and codes have only the usable records."""

    reasons: Reasons
    """Why each record is refused; NO_REASON where it is usable."""
    keys: Ints
    """Two lines of words that identify the person."""
    codes: Ints
    """One line of codes per quasi-identifier."""
    clamped: int


class ValueReader(CategoricalReader):
    """Reads values of a hierarchy or an ontology; with a key it accepts unlisted values too."""

    def __init__(self, name: str, values: Sequence[str], key: Words | None) -> None:
        self.name = name
        self.ranks = TextRanks({value: rank for rank, value in enumerate(values)})
        self._key = key

    def read_into(self, column: pa.Array, raws: Floats, values: Floats) -> Bools:
        unknown = super().read_into(column, raws, values)
        if self._key is None or not unknown.any():
            return unknown
        texts = Texts.of(column.filter(pa.array(unknown)))
        raws[unknown] = values[unknown] = _unknown_codes(texts.keys(self._key))
        return np.zeros_like(unknown)

    def read_one(self, value: Any) -> Any:
        found = super().read_one(value)
        if found is not REFUSED or self._key is None or (text := as_text(value)) is None:
            return found
        return float(_unknown_codes(key_of(self._key, text))[0])


class FlexibleReader:
    """Turns batches and single records into codes; it has no state besides the bound types."""

    def __init__(self, settings: FlexibleSettings, secret: Secret) -> None:
        self._settings = settings
        self._schema = settings.schema
        unknown_key = key_words(secret.subkey("unknown values"))
        self.readers = [self._reader(role, unknown_key) for role in self._schema.quasi]
        self.columns = SchemaReader(self._schema, self.readers, secret)
        self.unknown_codes = settings.unknown_codes()

    def _reader(self, role: Quasi, unknown_key: Words) -> Reader:
        if isinstance(role, Numeric):
            return NumericReader(role)
        key = unknown_key if self._settings.accepts_unknown(role.name) else None
        return ValueReader(role.name, self._settings.values_of(role.name), key)

    # ---- types

    def set_types(self, schema: pa.Schema) -> tuple[pa.Schema, pa.Schema]:
        """Prepare for input of these types; return the output schema and the schema of the carried columns."""
        output_schema, carried = self.columns.output_schema(schema)
        self._grids = {
            a: GridAxis(role, is_moment=is_moment_type(schema.field(role.name).type), with_root=True)
            for a, role in enumerate(self._schema.quasi)
            if isinstance(role, Numeric)
        }
        self._carried = carried.names
        return output_schema, carried

    # ---- records

    def read(self, batch: pa.RecordBatch) -> tuple[ReadRecords, pa.RecordBatch]:
        """Read a batch; also return the carried columns of usable records."""
        chunk = self.columns.chunk(batch)
        reasons, _ = self.columns.reasons(chunk, [chunk.read(part) for part in range(chunk.parts)])
        usable = reasons == NO_REASON
        clamped = self.columns.count_clamped(chunk.batch, usable)
        carried = chunk.batch.select(self._carried)
        if self._carried:
            carried = carried.filter(pa.array(usable))
        chunk.keep_only(usable)
        codes, keys = self._codes_of(chunk.raws), np.ascontiguousarray(chunk.persons.T)
        return ReadRecords(reasons, keys, codes, clamped), carried

    def read_one(self, record: Record) -> tuple[ReadRecords, tuple[Any, ...]] | int:
        """Read one record and its carried values; return the reason where it is refused."""
        single = self.columns.read_one(record)
        if single.reason is not None:
            return single.reason
        codes = self._codes_of(np.array(single.raws, dtype=np.float64).reshape(-1, 1))
        carried = tuple(record.get(name) for name in self._carried)
        keys = np.ascontiguousarray(single.keys.T)
        return ReadRecords(_USABLE, keys, codes, single.clamped), carried

    def _codes_of(self, raws: Floats) -> Ints:
        found = np.empty(raws.shape, dtype=np.int64)
        for a in range(len(self.readers)):
            found[a] = self._grids[a].cells_of(raws[a]) if a in self._grids else _as_codes(raws[a])
        return found


_USABLE: Final = np.full(1, NO_REASON, dtype=np.int16)


def are_unknown(codes: Ints) -> Bools:
    """Which codes stand for unlisted values."""
    found: Bools = codes <= _LARGEST_UNKNOWN
    return found


def _unknown_codes(keys: Ints) -> Floats:
    """A code below MISSING for each keyed hash."""
    kept = np.ascontiguousarray(keys[:, 0]).view(np.uint64) >> np.uint64(_DROPPED_BITS)
    return _LARGEST_UNKNOWN - kept.astype(np.float64)


def _as_codes(ranks: Floats) -> Ints:
    """Ranks as codes, MISSING for NaN."""
    is_missing = np.isnan(ranks)
    codes = np.where(is_missing, 0.0, ranks).astype(np.int64)
    codes[is_missing] = MISSING
    return codes

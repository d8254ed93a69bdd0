"""Shards: rows that were admitted together are judged apart, by their values, with the same result.

Whether a value is published depends on the people behind this value alone, so each shard judges the values that it
owns and blanks the others. Labels of a hierarchy depend on each other up to its root: one shard owns all values of such
a column. A row goes to every shard that owns one of its values, and the parts of it are joined by its number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.errors import InputError
from shoal.methods.release import IS_RELEASED, NO_REASON, Release
from shoal.methods.text_keys import Ints
from shoal.methods.z.admission import Admitted, Clock
from shoal.methods.z.crowds.columns import CrowdColumn
from shoal.methods.z.reader import Reader

NO_SHARD: Final = -1


def split(admitted: Admitted, shards: int, attributes: Sequence[CrowdColumn], reader: Reader) -> list[Admitted]:
    """One part for each shard; rows that no shard needs, because they are refused or have no value, are spread."""
    if shards < 1:
        raise InputError(f"there are {shards} shards; give at least 1")
    rows = admitted.rows
    owners = owners_of_values(attributes, rows.readings, shards)
    owners[:, rows.reasons != NO_REASON] = NO_SHARD
    spread = np.where((owners == NO_SHARD).all(axis=0), rows.seqs % shards, NO_SHARD)
    parts = []
    for shard in range(shards):
        owned = owners == shard
        here = np.flatnonzero(owned.any(axis=0) | (spread == shard))
        parts.append(Admitted(reader.pick(rows, here, list(owned[:, here])), admitted.clock))
    return parts


def owners_of_values(attributes: Sequence[CrowdColumn], readings: Sequence[Any], shards: int) -> Ints:
    """The shard that owns each value: a line for every attribute; NO_SHARD where a value is missing."""
    return np.stack(
        [
            _owners(column, reading, place % shards, shards)
            for place, (column, reading) in enumerate(zip(attributes, readings, strict=True))
        ]
    )


def _owners(column: CrowdColumn, reading: Any, home: int, shards: int) -> Ints:
    """The shard that owns each value; `home` is that of a column with a hierarchy."""
    owners = np.full(len(reading.present), home) if column.hierarchy is not None else owners_of(reading.keys, shards)
    return np.where(reading.present, owners, NO_SHARD)


def read_admitted(reader: Reader, batches: list[pa.RecordBatch], numbers: Ints, clock: Clock) -> Admitted:
    """Rows that another process admitted, by their numbers; this one neither admits nor counts them."""
    batch = reader.joined(batches)
    if batch.num_rows != len(numbers):
        raise InputError(f"there are {len(numbers)} numbers; give one for each record")
    if (numbers[1:] < numbers[:-1]).any():
        order = np.argsort(numbers, kind="stable")
        batch, numbers = batch.take(pa.array(order)), numbers[order]
    arrivals = reader.read(batch)
    arrivals.seqs = numbers
    return Admitted(arrivals, clock)


def owners_of(keys: Ints, shards: int) -> Ints:
    """The shard of each value by its key; tables use the other half of the key, so that they stay even."""
    half = keys[:, 1].view(np.uint64) >> np.uint64(32)
    owners: Ints = ((half * np.uint64(shards)) >> np.uint64(32)).astype(np.int64)
    return owners


def numbers_of(release: Release) -> Ints:
    """The number of the record behind each row of a release."""
    trace = release.trace
    is_released = np.asarray(trace.column("verdict").indices) == IS_RELEASED
    numbers: Ints = np.asarray(trace.column("row"))[is_released]
    return numbers


def join(releases: Iterable[Release], attributes: Sequence[str]) -> Release:
    """The releases of all shards as one: each record once, by number, with the values that their owners publish."""
    releases = list(releases)
    if not releases:
        raise InputError("there is no release to join; give the release of every shard")
    rows, numbers = pa.concat_batches([release.rows for release in releases]), [numbers_of(one) for one in releases]
    joined = joined_rows(rows, np.concatenate(numbers), attributes)
    return Release(joined, partial(_joined_trace, releases))


def joined_rows(rows: pa.RecordBatch, numbers: Ints, attributes: Sequence[str]) -> pa.RecordBatch:
    """Each row once, by number, with every value that one of its parts has."""
    columns = []
    for field, column in zip(rows.schema, rows.columns, strict=True):
        blank = np.asarray(column.is_null()) if field.name in attributes else np.zeros(len(column), np.bool_)
        columns.append(column.take(pa.array(first_of_each(numbers, blank))))
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def _joined_trace(releases: list[Release]) -> pa.RecordBatch:
    trace = pa.concat_batches([release.trace for release in releases])
    verdicts = np.asarray(trace.column("verdict").indices)  # in one shard released, in another suppressed: released
    return trace.take(pa.array(first_of_each(np.asarray(trace.column("row")), verdicts)))


def first_of_each(numbers: Ints, ranks: npt.NDArray[Any]) -> Ints:
    """The place of the lowest rank of every number, by number."""
    order = np.lexsort((ranks, numbers))
    is_first = np.ones(len(order), dtype=np.bool_)
    is_first[1:] = numbers[order][1:] != numbers[order][:-1]
    return order[is_first]

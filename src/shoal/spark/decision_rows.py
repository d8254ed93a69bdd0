"""What shards of tuples and of flexible k have in common: group numbers, notes, decisions with published rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from shoal.methods.release import DEAD
from shoal.spark.records.columns import (
    AT_END,
    DECIDED,
    DECISION,
    DELAY,
    NOTE,
    ORDER,
    REASON,
    ROW,
    SHARD,
    VERDICT,
    cast,
    decision_schema,
    wire_schema,
)

_FAR: Final = np.int64(2**40)
"""Group numbers of shard s are s + 2^40 n: no two shards share one."""


def groups_of_shard(groups: Any, shard: int) -> Any:
    """The numbers of a shard's groups among those of all shards."""
    return pc.add(pc.multiply(groups, _FAR), shard)


def note_of_shard(shard: int, found: Mapping[str, Any], published: pa.Schema) -> pa.RecordBatch:
    """A note with counts and losses of a shard."""
    schema = decision_schema(published)
    fields = [pa.nulls(1, field.type) for field in schema]
    fields[DECISION.get_field_index(NOTE)] = pa.array([orjson.dumps(found).decode()])
    fields[DECISION.get_field_index(SHARD)] = pa.array([shard], pa.int32())
    return pa.RecordBatch.from_arrays(fields, schema=schema)


def decisions_of_shard(
    shard: int, known: Mapping[str, Any], rows: pa.RecordBatch, is_shown: npt.NDArray[np.bool_], published: pa.Schema
) -> pa.RecordBatch:
    """Decisions about records. Published columns are null unless `is_shown`; so are fields that are not `known`."""
    count = len(is_shown)
    fields = {SHARD: pa.repeat(pa.scalar(shard, pa.int32()), count), **known}
    about = [
        pa.array(fields[field.name]).cast(field.type) if field.name in fields else pa.nulls(count, field.type)
        for field in DECISION
    ]
    taken = pa.array(np.cumsum(is_shown) - 1, mask=~is_shown)
    shown = cast(rows, wire_schema(published)).take(taken)
    return pa.RecordBatch.from_arrays([*about, *shown.columns], schema=decision_schema(published))


def dead_decisions(rows: pa.Array, clocks: pa.Array, reasons: pa.Array, published: pa.Schema) -> pa.RecordBatch:
    """Decisions about records that are refused before any shard sees them."""
    schema, count = decision_schema(published), len(rows)
    fields = [pa.nulls(count, field.type) for field in schema]
    known = {ROW: rows, VERDICT: [DEAD] * count, REASON: reasons, DECIDED: clocks, DELAY: [0] * count,
             SHARD: [-1] * count, ORDER: rows, AT_END: [False] * count}  # fmt: skip
    for name, values in known.items():
        place = schema.get_field_index(name)
        fields[place] = values if isinstance(values, pa.Array) else pa.array(values, schema.field(place).type)
    return pa.RecordBatch.from_arrays(fields, schema=schema)

"""Many JSON objects at once, by Arrow's parser, where it is certain to read them as one by one.

Arrow's parser is more than twice as fast, but it sees one long text: an object may end anywhere in it, and it accepts
some texts that are not JSON. So a block is read this way only if nothing in it could be read differently; otherwise the
objects are parsed one by one (:mod:`shoal.decode.json_records`), with the same result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.json as arrow_json

from shoal.decode.columns import cast_text
from shoal.decode.json_values import EXACT

_READ_AS: Final = {
    pa.string(): pa.string(),
    pa.bool_(): pa.bool_(),
    pa.int64(): pa.int64(),
    pa.float64(): pa.float64(),
    pa.timestamp("ns", tz="UTC"): pa.string(),
}
_DOUBTFUL: Final = (b"NaN", b"Inf", b"9769313486231")
"""Numbers that only Arrow accepts: not a number, infinity, and those that round to infinity."""
_LONG: Final = 2_000
_MOST_NESTED: Final = 1_000
_FEWEST: Final = 16


def tidy_arrays(texts: Sequence[bytes | None], schema: pa.Schema, longest: int) -> list[Any] | None:
    """The columns of objects, one in each text; None if they must be parsed one by one."""
    if len(texts) < _FEWEST or not schema.names or not all(field.type in _READ_AS for field in schema):
        return None
    if None in texts:
        return None
    whole: Sequence[bytes] = texts  # type: ignore[assignment]
    block = b"\n".join(whole)
    if not _are_plain(block, whole, longest) or any(sign in block for sign in _DOUBTFUL) or not _is_utf8(block):
        return None
    try:
        found = _parsed(block, schema)
        # Every text begins and ends an object, so none crosses two of them: equal counts mean one object in each.
        if found.num_rows != len(texts):
            return None
        columns = [
            cast_text(column, field.type) if column.type != field.type else column
            for column, field in zip(found.columns, schema, strict=True)
        ]
    except pa.ArrowInvalid:
        return None
    return None if any(map(_may_differ, columns)) else columns


def _are_plain(block: bytes, texts: Sequence[bytes], longest: int) -> bool:
    """Whether each text may hold one object, and none is nested deeper than the parser of single objects allows."""
    sizes = np.fromiter(map(len, texts), np.int64, len(texts))
    if sizes.min() < len(b"{}") or sizes.max() > longest:
        return False
    signs = np.frombuffer(block, np.uint8)
    ends = np.cumsum(sizes + 1) - 1
    if (signs[ends - sizes] != ord("{")).any() or (signs[ends - 1] != ord("}")).any():
        return False
    long = [texts[at] for at in np.flatnonzero(sizes >= _LONG).tolist()]
    return all(text.count(b"{") + text.count(b"[") < _MOST_NESTED for text in long)


def _is_utf8(block: bytes) -> bool:
    if block.isascii():
        return True
    try:
        block.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _parsed(block: bytes, schema: pa.Schema) -> pa.RecordBatch:
    read = pa.schema([(field.name, _READ_AS[field.type]) for field in schema])
    table = arrow_json.read_json(
        pa.BufferReader(block),
        read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(block) + 1),
        parse_options=arrow_json.ParseOptions(explicit_schema=read, unexpected_field_behavior="ignore"),
    )
    return table.select(schema.names).combine_chunks().to_batches(max_chunksize=None)[0]


def _may_differ(column: Any) -> bool:
    """Whether a column of numbers may hold a whole number that is not exact as a float, or a zero below zero."""
    if column.type != pa.float64():
        return False
    numbers = column.fill_null(1.0).to_numpy(zero_copy_only=False)
    return bool((~(np.abs(numbers) < EXACT)).any() or np.signbit(numbers[numbers == 0]).any())

"""Send pseudonyms as 16 bytes instead of 32 hexadecimal digits, which are most of a released row."""

from __future__ import annotations

from binascii import hexlify, unhexlify
from typing import Final

import numpy as np
import pyarrow as pa

from shoal.kernels.text_hashes import DIGITS

_PERSON: Final = 1
"""The place of the pseudonym in a released row, after the time."""
_SHORT: Final = pa.binary(DIGITS // 2)


def short_schema(published: pa.Schema) -> pa.Schema:
    """The columns of released rows with short pseudonyms."""
    return published.set(_PERSON, published.field(_PERSON).with_type(_SHORT))


def with_short_names(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Released rows with their pseudonyms as bytes."""
    texts = rows.column(_PERSON)
    _, offsets, data = texts.buffers()
    start = int(np.frombuffer(offsets, np.int32)[texts.offset]) if len(texts) else 0
    digits = memoryview(data or b"")[start : start + DIGITS * len(texts)]
    short = pa.Array.from_buffers(_SHORT, len(texts), [None, pa.py_buffer(unhexlify(digits))])
    return rows.set_column(_PERSON, short_schema(rows.schema).field(_PERSON), short)


def with_full_names(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Released rows with their pseudonyms as they are published."""
    short = rows.column(_PERSON)
    data = memoryview(short.buffers()[1] or b"")[_SHORT.byte_width * short.offset :][: _SHORT.byte_width * len(short)]
    offsets = np.arange(0, DIGITS * len(short) + 1, DIGITS, dtype=np.int32)
    texts = pa.StringArray.from_buffers(len(short), pa.py_buffer(offsets), pa.py_buffer(hexlify(data)))
    return rows.set_column(_PERSON, rows.schema.field(_PERSON).with_type(pa.string()), texts)

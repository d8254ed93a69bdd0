"""Values of an array by index, repeated or not: what all rows of a cluster show is made once."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.kernels.instructions import BLOCK
from shoal.kernels.text_hashes import copy_texts, place_texts

Ints = npt.NDArray[np.int64]
_WORD_BITS: Final = 64
_MOST_BYTES: Final = 2**31 - 1
"""Bytes that a column of texts can have."""


def repeated(values: pa.Array, rows: Ints) -> pa.Array:
    """The values at these indices, like Arrow's take; ranges and texts without nulls are copied several times faster.

    NumPy and the kernels do it without the interpreter's lock.
    """
    kind = values.type
    if not values.null_count:
        if pa.types.is_struct(kind):
            return pa.StructArray.from_arrays([repeated(one, rows) for one in values.flatten()], fields=list(kind))
        if pa.types.is_string(kind):
            found = _texts(values, rows)
            if found is not None:
                return found
        elif pa.types.is_primitive(kind) and kind.bit_width == _WORD_BITS:
            known = np.frombuffer(values.buffers()[1], np.int64)[values.offset : values.offset + len(values)]
            return pa.Array.from_buffers(kind, len(rows), [None, pa.py_buffer(known.take(rows, mode="clip"))])
    return values.take(pa.array(rows))


def _texts(values: pa.Array, rows: Ints) -> pa.Array | None:
    """Texts, or None where they are too long for one column."""
    _, starts, data = values.buffers()
    known = np.frombuffer(starts, np.int32)[values.offset : values.offset + len(values) + 1]
    if len(rows) * int(np.diff(known).max(initial=0)) > _MOST_BYTES:
        return None
    padded = np.zeros((data.size if data is not None else 0) + BLOCK, np.uint8)  # whole blocks are copied
    if data is not None:
        padded[:-BLOCK] = np.frombuffer(data, np.uint8)
    offsets = np.empty(len(rows) + 1, np.int32)
    size = place_texts(known, rows, offsets)
    copied = np.empty(size + BLOCK, np.uint8)
    copy_texts(known, padded, rows, offsets, copied)
    return pa.StringArray.from_buffers(len(rows), pa.py_buffer(offsets), pa.py_buffer(copied[:size]))

"""From values of a column to the keys of messages, and from keys to partitions of a Kafka topic."""

from __future__ import annotations

from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.errors import InputError
from shoal.kernels.partitioners import CRC32, MURMUR2, choose_partitions

Partitioner = Literal["murmur2", "crc32"]
_CODES: Final = {"murmur2": MURMUR2, "crc32": CRC32}


def key_texts(values: Any, column: str) -> Any:
    """The keys of values, as text: digits of whole numbers; InputError for other types."""
    if pa.types.is_string(values.type):
        return values
    if not pa.types.is_integer(values.type):
        raise InputError(
            f"column {column!r}: is of type {values.type}; a topic can be keyed by text or whole numbers only, because "
            'others can be written in several ways; declare it as "string" or "int64" in [source] types if it is'
        )
    return values.cast(pa.string())


def text_partitions(texts: Any, partitioner: Partitioner, partitions: int) -> npt.NDArray[np.int64]:
    """The partition of every text; what it is for a missing one does not matter."""
    out = np.empty(len(texts), dtype=np.int64)
    _, offsets, data = texts.buffers()
    if len(texts):
        starts = np.frombuffer(offsets, dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
        content = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, dtype=np.uint8)
        choose_partitions(starts, content, _CODES[partitioner], partitions, out)
    return out

"""Text columns as kernels see them: offsets, bytes, and 128-bit keyed keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.kernels.instructions import BLOCK
from shoal.kernels.text_hashes import copy_texts, hash_texts, place_texts

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]

_NOTHING = np.zeros(1, dtype=np.uint8)


def is_text_like(kind: pa.DataType) -> bool:
    """Whether a column of this type can identify people or hold attribute values."""
    if pa.types.is_dictionary(kind):
        return is_text_like(kind.value_type)
    tests = (
        pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view,
        pa.types.is_integer, pa.types.is_boolean, pa.types.is_null,
    )  # fmt: skip
    return any(test(kind) for test in tests)


def as_text(value: Any) -> str | None:
    """One Python value as the text that its column would have; None where it is missing or cannot be used."""
    if isinstance(value, str):
        return value if value.isascii() or _is_encodable(value) else None
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    return str(int(value)) if isinstance(value, int | np.integer) and is_whole(value) else None


def is_whole(number: Any) -> bool:
    """Whether a column of whole numbers can store a number: it has up to 64 bits."""
    return bool(-(2**63) <= number < 2**64)


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which UTF-8 cannot encode
        return False
    return True


def is_present(column: pa.Array) -> Bools:
    """Which values of a column are not null."""
    is_dictionary = pa.types.is_dictionary(column.type)  # its values may contain a null
    if not column.null_count and not is_dictionary:
        return np.ones(len(column), dtype=np.bool_)
    return np.asarray(column.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class Texts:
    """A column of texts in Arrow's layout: text i is data[offsets[i]:offsets[i + 1]]."""

    offsets: npt.NDArray[np.signedinteger[Any]]
    data: Bytes
    present: Bools

    def __len__(self) -> int:
        return len(self.present)

    @classmethod
    def of(cls, column: pa.Array) -> Texts:
        """Read a column; numbers and truth values become their text."""
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            column = column.cast(pa.string())
        _, offsets, data = column.buffers()
        width: Any = np.int32 if pa.types.is_string(column.type) else np.int64
        return cls(
            np.frombuffer(offsets, dtype=width)[column.offset : column.offset + len(column) + 1],
            np.frombuffer(data, dtype=np.uint8) if data is not None and data.size else _NOTHING,
            is_present(column),
        )

    @property
    def filled(self) -> Bools:
        """Which texts are neither null nor empty."""
        return self.present & (self.offsets[1:] > self.offsets[:-1])

    def keys(self, key: Words) -> Ints:
        """128-bit keyed hashes of all texts, two words per row."""
        out = np.empty((len(self), 2), dtype=np.int64)
        hash_texts(key[0], key[1], self.offsets, self.data, out)
        return out


def pick_texts(column: pa.Array, rows: Ints) -> pa.Array:
    """Some rows of a column, each at most once; a kernel copies texts without nulls faster than Arrow does."""
    if not pa.types.is_string(column.type) or column.null_count:
        return column.take(pa.array(rows))
    texts, offsets = Texts.of(column), np.empty(len(rows) + 1, dtype=np.int32)
    size = place_texts(texts.offsets, rows, offsets)
    data = np.empty(size + BLOCK, dtype=np.uint8)
    copy_texts(texts.offsets, texts.data, rows, offsets, data)
    return pa.StringArray.from_buffers(len(rows), pa.py_buffer(offsets), pa.py_buffer(data[:size]))


def keys_of(column: pa.Array, key: Words) -> tuple[Ints, Bools]:
    """Keys of a column's values and which are not null; each value of a dictionary is hashed once."""
    if not pa.types.is_dictionary(column.type):
        texts = Texts.of(column)
        return texts.keys(key), texts.present
    distinct, _ = keys_of(column.dictionary, key)
    chosen = np.asarray(pc.fill_null(column.indices, 0).to_numpy(zero_copy_only=False), dtype=np.int64)
    present = is_present(column)
    keys = distinct[chosen] if len(distinct) else np.zeros((len(column), 2), dtype=np.int64)
    return keys, present


def person_keys(column: pa.Array, key: Words) -> tuple[Ints, Bools]:
    """Keys of a column of people, and which rows have a person: a text that is not empty."""
    texts = Texts.of(column)
    return texts.keys(key), texts.filled


def key_words(key: bytes) -> Words:
    """The first 16 bytes of a derived key as SipHash takes them."""
    return np.frombuffer(key[:16], dtype="<u8").astype(np.uint64)

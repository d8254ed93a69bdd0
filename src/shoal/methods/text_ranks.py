"""The ranks of values among known labels: text columns are looked up by a kernel, others value by value."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.kernels.columns import read_ranks
from shoal.kernels.text_ranks import FIELDS, fill_table, read_labels
from shoal.methods.text_keys import Texts, as_text, is_present

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class TextRanks:
    """Labels by rank: 0, 1, 2, …"""

    def __init__(self, ranks: dict[str, int]) -> None:
        self._ranks = ranks
        self._labels = Texts.of(pa.array(list(ranks), type=pa.string()))
        self._table = np.zeros((2 << len(ranks).bit_length(), FIELDS), dtype=np.uint64)
        fill_table(self._labels.offsets, self._labels.data, self._table)

    def of(self, value: Any) -> int | None:
        """The rank of one value; None if it is no label."""
        text = as_text(value)
        return None if text is None else self._ranks.get(text)

    def read_into(self, column: pa.Array, raws: Floats, values: Floats) -> Bools:
        """Write the ranks of a column to both, NaN where it has no label; return which rows have an unknown value."""
        refused = np.empty(len(column), dtype=np.bool_)
        if pa.types.is_string(column.type):
            given, known = Texts.of(column), self._labels
            columns = given.offsets, given.data, given.present
            read_labels(*columns, self._table, known.offsets, known.data, raws, values, refused)
        else:
            ranks, column = self._by_dictionary(column)
            read_ranks(ranks, is_present(column), raws, values, refused)
        return refused

    def _by_dictionary(self, column: pa.Array) -> tuple[npt.NDArray[np.int32], pa.Array]:
        """The ranks of a column's values, each value looked up once; below 0 where it is missing or unknown."""
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        texts = _texts(column.dictionary)
        ranks = np.array([-1 if text is None else self._ranks.get(text, -1) for text in texts] + [-1], dtype=np.int32)
        places = np.asarray(pc.fill_null(column.indices, len(texts)).to_numpy(zero_copy_only=False), dtype=np.int64)
        return ranks[places], column


def _texts(labels: pa.Array) -> list[str | None]:
    """Labels as text; text that is not UTF-8 is not in any hierarchy."""
    try:
        return list(labels.cast(pa.string()).to_pylist())
    except UnicodeDecodeError:
        return [_text(label) for label in labels]


def _text(label: pa.Scalar) -> str | None:
    try:
        return label.as_py()  # type: ignore[no-any-return]
    except UnicodeDecodeError:
        return ""

"""Change decoys that equal a real record, as far as they have something that can be changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.sanitize.decoys.cells import Normal, as_column, column_of, is_number, like, numbers, offsets, shifted
from shoal.sanitize.decoys.rounding import within

BLUR: Final = 0.05
"""How much a twin's number is blurred, as a share of the column's spread."""
_TRIES: Final = 4
_PRIME: Final = np.uint64(0x9E3779B97F4A7C15)
Ints = npt.NDArray[np.int64]


class Twins:
    """Changes the numbers of twins: within their cells where they define groups, else a little."""

    def __init__(self, normals: Sequence[Normal], draw: np.random.Generator) -> None:
        self._normals = {normal.name: normal for normal in normals}
        self._draw = draw

    def changed(self, made: pa.Table, data: pa.Table) -> tuple[pa.Table, int]:
        """Return decoys of which those that equal a real record are changed, and how many still do."""
        for _ in range(_TRIES):
            twins = np.flatnonzero(_same(made, data))
            if not len(twins):
                return made, 0
            made = self._changed(made, data, twins)
        return made, int(_same(made, data).sum())

    def _changed(self, made: pa.Table, data: pa.Table, twins: Ints) -> pa.Table:
        for at, field in enumerate(made.schema):
            normal = self._normals.get(field.name)
            column = column_of(made, field.name)
            if not is_number(field.type) or (normal is not None and normal.grid is None):
                continue
            values, is_there = numbers(column)
            real, is_real = numbers(column_of(data, field.name))
            if normal is not None:
                found = offsets(real[is_real], field.type, normal)
                if len(found):
                    shifts = self._draw.choice(found, len(twins)) - offsets(values[twins], field.type, normal)
                    values[twins] = shifted(values[twins], field.type, normal, shifts)
            elif not pa.types.is_timestamp(field.type):
                values[twins] = self._blurred(values[twins], real[is_real])
            whole = as_column(values, is_there, field.type)
            made = made.set_column(at, field, pc.if_else(pa.array(is_there), whole, column))
        return made

    def _blurred(self, values: Any, real: Any) -> Any:
        if not len(real):
            return values
        noise = self._draw.standard_normal(len(values)) * BLUR
        if real.min() > 0:
            made = values * np.exp(noise * (np.log(real).std() or 1.0))
        else:
            made = values + noise * (real.std() or 1.0)
        return like(within(made, real), real)


def _same(made: pa.Table, data: pa.Table) -> npt.NDArray[np.bool_]:
    """Return which rows of a table are in the other, too, by a hash of all their values."""
    size = made.num_rows
    marks = np.zeros(size + data.num_rows, dtype=np.uint64)
    for name in made.schema.names:
        both = pa.chunked_array([*made.column(name).chunks, *data.column(name).chunks]).combine_chunks()
        both = both.chunk(0) if isinstance(both, pa.ChunkedArray) else both
        codes = both.dictionary_encode(null_encoding="encode").indices.to_numpy(zero_copy_only=False)
        marks = (marks ^ codes.astype(np.uint64)) * _PRIME
        marks ^= marks >> np.uint64(29)
    return np.isin(marks[:size], marks[size:])

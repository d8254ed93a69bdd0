"""Missing values put into a stream, as in section 5 of the K-VARP paper."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.reproduce.data.streams import Stream


def remove_values(stream: Stream, *, at_most: int, seed: int) -> Stream:
    """Leave out up to `at_most` quasi-identifiers of every row.

    As in Table 9 of the paper there are as many rows with none missing as with one, two, …: row i of a shuffle loses
    ``i % (at_most + 1)`` of its values, which ones is drawn evenly.
    """
    rows, names = len(stream), stream.quasi
    random = np.random.default_rng([seed, at_most])
    count = np.empty(rows, dtype=np.int64)
    count[random.permutation(rows)] = np.arange(rows) % (at_most + 1)
    rank = random.random((rows, len(names))).argsort(axis=1).argsort(axis=1)
    is_gone = rank < count[:, None]
    table = stream.table
    for at, name in enumerate(names):
        column = table.column(name)
        kept = pc.if_else(pa.array(is_gone[:, at]), pa.scalar(None, column.type), column)
        table = table.set_column(table.schema.get_field_index(name), name, kept)
    return stream.with_table(table)

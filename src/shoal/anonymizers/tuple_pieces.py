"""A piece of a batch on its way in: its columns become numbers one by one, by whoever has time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from shoal.anonymizers.intake import plain
from shoal.anonymizers.tuple_reading import Bools, Reader


class Piece:
    """Rows of a batch, and the numbers of their quasi-identifiers."""

    refused: Callable[[], list[Bools]]
    """Waits until all is read; says by attribute which rows must be refused."""

    def __init__(self, batch: pa.RecordBatch, readers: Sequence[Reader]) -> None:
        columns = [plain(column) for column in batch.columns]
        self.batch = pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
        self._readers = readers
        self.raws = np.empty((len(readers), batch.num_rows))
        self.values = np.empty_like(self.raws)
        """The same as the kernels measure them."""

    def __len__(self) -> int:
        return int(self.batch.num_rows)

    def read(self, a: int) -> Bools:
        """Read one attribute; return which rows must be refused for it."""
        reader = self._readers[a]
        self.raws[a], refused = reader.read(self.batch.column(reader.name))
        self.values[a] = reader.scaled(self.raws[a])
        return refused

    def keep_only(self, usable: Bools) -> None:
        """Forget the numbers of other rows."""
        if not usable.all():
            self.raws = np.ascontiguousarray(self.raws[:, usable])
            self.values = np.ascontiguousarray(self.values[:, usable])

"""A piece of a batch on its way in: its columns become numbers one by one, by whoever has time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from shoal.methods.arrow_input import plain
from shoal.methods.quasi_readers import Bools, Ints, Reader
from shoal.methods.text_keys import Texts, Words


class Piece:
    """Rows of a batch, the keys of their people, and the numbers of their quasi-identifiers."""

    read_all: Callable[[], list[Bools]]
    """Waits until all parts are read; says of each which rows must be refused for it."""
    persons: Ints

    def __init__(self, batch: pa.RecordBatch, person: str, key: Words, readers: Sequence[Reader]) -> None:
        columns = [plain(column) for column in batch.columns]
        self.batch = pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
        self._person, self._key, self._readers = person, key, readers
        self.raws = np.empty((len(readers), batch.num_rows))
        self.values = np.empty_like(self.raws)
        """The same as the kernels measure them."""

    def __len__(self) -> int:
        return int(self.batch.num_rows)

    @property
    def parts(self) -> int:
        """How many parts there are to read: people first, then the quasi-identifiers."""
        return 1 + len(self._readers)

    def read(self, part: int) -> Bools:
        """Read one part; return which rows must be refused for it."""
        return self._read_people() if part == 0 else self._read_attribute(part - 1)

    def _read_people(self) -> Bools:
        people = Texts.of(self.batch.column(self._person))
        self.persons = people.keys(self._key)
        return ~people.filled

    def _read_attribute(self, a: int) -> Bools:
        reader = self._readers[a]
        self.raws[a], refused = reader.read(self.batch.column(reader.name))
        self.values[a] = reader.scaled(self.raws[a])
        return refused

    def keep_only(self, usable: Bools) -> None:
        """Forget the numbers of other rows."""
        if not usable.all():
            self.raws = np.ascontiguousarray(self.raws[:, usable])
            self.values = np.ascontiguousarray(self.values[:, usable])
            self.persons = self.persons[usable]

"""What comes of anonymizing sets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.errors import InputError
from shoal.kernels.sets.records import fingerprint_rows, gather_rows
from shoal.methods.sets.certificate import Certificate
from shoal.methods.sets.certifying import NotCertified
from shoal.methods.sets.data import Codes, Ints, SetData
from shoal.methods.sets.merges import Partition
from shoal.methods.sets.seeding import coin_key

if TYPE_CHECKING:
    from shoal.methods.sets.km_anonymity import KmAnonymity


@dataclass(frozen=True, slots=True)
class Changes:
    """How records differ from those the partition was fitted to, by what they hold."""

    new: int
    gone: int
    unique_new: int
    """New records that hold what no other record here holds."""
    unique_gone: int


class KmResult:
    """Sets generalized by one partition, with the certificate of what they promise.

    A result without a certificate (from :meth:`apply` or :meth:`without`) must pass :meth:`certify` before it is
    published; until then asking for its rows to publish raises an error.
    """

    def __init__(
        self, method: KmAnonymity, data: SetData, partition: Partition, certificate: Certificate | None,
        *, fitted: SetData | None = None,
    ) -> None:  # fmt: skip
        self._method = method
        self._data = data
        self._partition = partition
        self._certificate = certificate
        self._fitted = fitted if fitted is not None else data

    # ---- what it holds

    @property
    def certificate(self) -> Certificate:
        """What is promised; raises NotCertified when nothing is yet."""
        if self._certificate is None:
            raise NotCertified("this result was not certified: call certify() on exactly the records to be published")
        return self._certificate

    @property
    def is_certified(self) -> bool:
        """Whether there is a certificate."""
        return self._certificate is not None

    @property
    def error(self) -> float:
        """What was lost, by the error asked for."""
        return float(self._partition.error)

    @property
    def blocks(self) -> dict[str, tuple[str, ...]]:
        """The items of every block, by its label."""
        names, partition = self._data.names, self._partition
        numbers = np.unique(partition.block_of).tolist()
        return {partition.label(block): tuple(names[item] for item in partition.members(block)) for block in numbers}

    @cached_property
    def records(self) -> list[frozenset[str]]:
        """The generalized records, in input order."""
        starts, blocks = self._in_input_order()
        labels = self._labels()
        return [
            frozenset(labels[block] for block in blocks[begin:end].tolist())
            for begin, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
        ]

    def __len__(self) -> int:
        return len(self._data)

    def __repr__(self) -> str:
        state = "certified" if self.is_certified else "not certified"
        return f"<KmResult of {len(self):,} records in {self._partition.blocks_left:,} blocks, {state}>"

    @property
    def changes(self) -> Changes:
        """How the records differ from those the partition was fitted to."""
        new, unique_new = _not_among(self._data, self._fitted)
        gone, unique_gone = _not_among(self._fitted, self._data)
        return Changes(new, gone, unique_new, unique_gone)

    # ---- publishing

    def published(self, column: str = "items") -> pa.Table:
        """The rows to publish: one list of labels a record, shuffled by the seed. Needs a certificate.

        What is shuffled are the published sets in an order of their own: whoever knows the seed can undo it, and must
        not find out how many items somebody had.
        """
        seed = self.certificate.seed
        starts, blocks, labels = self._by_label()
        first, second = np.empty(len(self), np.uint64), np.empty(len(self), np.uint64)
        fingerprint_rows(starts, blocks, first, second)
        coins = np.random.Generator(np.random.PCG64(coin_key(seed, b"", "shuffle").tolist()))
        order = np.lexsort((second, first, np.diff(starts)))[coins.permutation(len(self))]
        starts, blocks = _gathered(starts, blocks, order.astype(np.int64))
        values = pa.DictionaryArray.from_arrays(pa.array(blocks), pa.array(labels, pa.string()))
        return pa.table({column: pa.LargeListArray.from_arrays(pa.array(starts), values.cast(pa.large_string()))})

    def _by_label(self) -> tuple[Ints, Codes, list[str]]:
        """The generalized sets, with blocks numbered and every set sorted by label, and the labels."""
        block_of = self._partition.block_of
        numbers, places = np.unique(block_of, return_inverse=True)
        names = [self._partition.label(block) for block in numbers.tolist()]
        order = sorted(range(len(names)), key=names.__getitem__)
        ranks = np.empty(len(names), np.int32)
        ranks[order] = np.arange(len(names), dtype=np.int32)
        return *self._data.generalized(ranks[places]), [names[place] for place in order]

    def _labels(self) -> dict[int, str]:
        return {block: self._partition.label(block) for block in np.unique(self._partition.block_of).tolist()}

    def _in_input_order(self) -> tuple[Ints, Codes]:
        back = np.empty(len(self._data), np.int64)
        back[self._data.order] = np.arange(len(self._data))
        return _gathered(*self._data.generalized(self._partition.block_of), back)

    # ---- going on

    def apply(self, records: Any) -> KmResult:
        """The same partition on other records: not certified yet.

        Records are read as by ``anonymize``: all rows of one person, of several days too, are one set. An item that
        nobody had when the partition was fitted is refused.
        """
        data = self._method.read(records, self._partition.names, known=self._fitted.weights > 0)
        return KmResult(self._method, data, self._partition_for(data), None, fitted=self._fitted)

    def without(self, rows: Iterable[int]) -> KmResult:
        """The same records but some, counted from 0 in input order: not certified yet, since all sizes may change."""
        keep = np.ones(len(self._data), np.bool_)
        for row in rows:  # a mask of true and false would be taken for the rows 1 and 0
            if not isinstance(row, (int, np.integer)) or isinstance(row, bool) or not 0 <= row < len(keep):
                raise InputError(f"rows: must be whole numbers from 0 to {len(keep) - 1:,}, counted in input order")
            keep[row] = False
        self._method.check_enough(int(keep.sum()))
        order = np.flatnonzero(keep[self._data.order])
        starts, items = _gathered(*self._data.sets, order[np.argsort(self._data.order[order])])
        data = SetData(starts, items, self._data.names)
        return KmResult(self._method, data, self._partition_for(data), None, fitted=self._fitted)

    def certify(self, *, join: bool = True) -> KmResult:
        """A result that holds its promise on exactly these records; blocks are joined further where they must be.

        With ``join=False`` nothing is joined: NotCertified is raised when the promise does not hold.
        """
        partition, certificate = self._method.certified(self._data, self._partition.copy(), join=join)
        return KmResult(self._method, self._data, partition, certificate, fitted=self._fitted)

    def _partition_for(self, data: SetData) -> Partition:
        partition = self._partition.copy()
        partition.reweigh(data.weights)
        return partition


def _gathered(starts: Ints, items: Codes, order: Ints) -> tuple[Ints, Codes]:
    new_starts = np.empty(len(order) + 1, np.int64)
    sizes = np.diff(starts)[order] if len(order) else np.empty(0, np.int64)
    new_items = np.empty(int(sizes.sum()), np.int32)
    gather_rows(starts, items, order, new_starts, new_items)
    return new_starts, new_items


def _not_among(here: SetData, there: SetData) -> tuple[int, int]:
    """Records whose set nobody has there, counted with how often it comes; and those alone with it here."""
    words = np.rec.fromarrays(here.words)
    others = np.rec.fromarrays(there.words)
    kinds, counts = np.unique(words, return_counts=True)
    known, known_counts = np.unique(others, return_counts=True)
    before: npt.NDArray[np.int64] = np.zeros(len(kinds), np.int64)
    if len(known):
        places = np.minimum(np.searchsorted(known, kinds), len(known) - 1)
        before = np.where(known[places] == kinds, known_counts[places], 0)
    more = np.maximum(counts - before, 0)
    return int(more.sum()), int(((more > 0) & (counts == 1)).sum())

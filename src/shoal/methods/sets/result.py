"""The result of anonymizing sets: what to publish, what was lost, and how to go on with other records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.errors import InputError
from shoal.kernels.sets.records import fingerprint_rows
from shoal.methods.sets.certificate import Certificate, Certifier, NotCertified
from shoal.methods.sets.data import SetData, gathered
from shoal.methods.sets.partition import Partition
from shoal.methods.sets.records import ReadRecords, read_records
from shoal.methods.sets.sampling import random_key
from shoal.methods.sets.search import Search
from shoal.methods.sets.settings import KmSettings


@dataclass(frozen=True, slots=True)
class Changes:
    """How the records differ, by content, from those the partition was fitted to."""

    new: int
    gone: int
    unique_new: int
    """New records whose set no other record here has."""
    unique_gone: int


class KmResult:
    """Sets generalized by one partition, with the certificate of their guarantee.

    A result without a certificate (from :meth:`apply` or :meth:`without`) must pass :meth:`certify` before it can be
    published; until then :meth:`published` raises an error.
    """

    def __init__(
        self, settings: KmSettings, data: SetData, partition: Partition, certificate: Certificate | None,
        *, fitted: SetData | None = None,
    ) -> None:  # fmt: skip
        self._settings = settings
        self._data = data
        self._partition = partition
        self._certificate = certificate
        self._fitted = fitted if fitted is not None else data

    @property
    def certificate(self) -> Certificate:
        """The guarantee; raises NotCertified when there is none yet."""
        if self._certificate is None:
            raise NotCertified("this result was not certified: call certify() on exactly the records to be published")
        return self._certificate

    @property
    def is_certified(self) -> bool:
        """Whether there is a certificate."""
        return self._certificate is not None

    @property
    def error(self) -> float:
        """The information lost, measured by the chosen error."""
        return float(self._partition.error)

    @property
    def blocks(self) -> dict[str, tuple[str, ...]]:
        """The items of every block, by its label."""
        names = self._data.names
        return {label: tuple(names[item] for item in self._partition.members(block))
                for block, label in self._labels().items()}  # fmt: skip

    @cached_property
    def records(self) -> list[frozenset[str]]:
        """The generalized records, in input order."""
        shown = self.shown
        return [
            frozenset(shown.labels[code] for code in shown.codes[begin:end].tolist())
            for begin, end in zip(shown.starts[:-1].tolist(), shown.starts[1:].tolist(), strict=True)
        ]

    @property
    def shown(self) -> ReadRecords:
        """The generalized records in input order, as arrays; labels in alphabetical order."""
        back = np.empty(len(self), np.int64)
        back[self._data.order] = np.arange(len(self))
        starts, ranks, labels = self._ranked()
        return ReadRecords(*gathered(starts, ranks, back), labels)

    def _ranked(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], tuple[str, ...]]:
        """The generalized records as ranks of labels, in the order of the data; and the labels, sorted."""
        block_of, labels = self._partition.block_of, self._labels()
        numbers, positions = np.unique(block_of, return_inverse=True)
        by_label = sorted(range(len(numbers)), key=lambda position: labels[int(numbers[position])])
        ranks = np.empty(len(numbers), np.int32)
        ranks[by_label] = np.arange(len(numbers), dtype=np.int32)
        return *self._data.generalized(ranks[positions]), tuple(sorted(labels.values()))

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

    def published(self, column: str = "items") -> pa.Table:
        """The rows to publish: one list of labels per record, shuffled by the seed. Needs a certificate.

        The published sets are sorted before they are shuffled: anyone who knows the seed can undo the shuffle, and must
        not learn how many items a person had.
        """
        seed = self.certificate.seed
        starts, blocks, labels = self._ranked()
        first, second = np.empty(len(self), np.uint64), np.empty(len(self), np.uint64)
        fingerprint_rows(starts, blocks, first, second)
        order = np.lexsort((second, first, np.diff(starts)))[published_order(seed, len(self))]
        starts, blocks = gathered(starts, blocks, order.astype(np.int64))
        values = pa.DictionaryArray.from_arrays(pa.array(blocks), pa.array(labels, pa.string()))
        return pa.table({column: pa.LargeListArray.from_arrays(pa.array(starts), values.cast(pa.large_string()))})

    def _labels(self) -> dict[int, str]:
        return {block: self._partition.label(block) for block in np.unique(self._partition.block_of).tolist()}

    # ---- other records, the same partition

    def apply(self, records: Any) -> KmResult:
        """The same partition on other records: not certified yet.

        Records are read as by ``anonymize``: all rows of one person, over several days too, are one set. An item that
        no record had when the partition was fitted is refused.
        """
        known = self._fitted.weights > 0
        return self._with(number_records(read_records(records), self._settings, self._partition.names, known))

    def without(self, rows: Iterable[int]) -> KmResult:
        """The records without some of them, counted from 0 in input order: not certified yet, any size may change."""
        keep = np.ones(len(self), np.bool_)
        for row in rows:  # a boolean mask would be taken for the rows 1 and 0
            if not isinstance(row, (int, np.integer)) or isinstance(row, bool) or not 0 <= row < len(keep):
                raise InputError(f"rows: must be whole numbers from 0 to {len(keep) - 1:,}, counted in input order")
            keep[row] = False
        check_enough(int(keep.sum()), self._settings)
        order = np.flatnonzero(keep[self._data.order])
        starts, items = gathered(*self._data.sets, order[np.argsort(self._data.order[order])])
        return self._with(SetData(starts, items, self._data.names))

    def _with(self, data: SetData) -> KmResult:
        partition = self._partition.copy()
        partition.reweigh(data.weights)
        return KmResult(self._settings, data, partition, None, fitted=self._fitted)

    def certify(self, *, join: bool = True) -> KmResult:
        """A result whose guarantee holds on exactly these records; more blocks are merged where necessary.

        With ``join=False`` nothing is merged: NotCertified is raised when the guarantee does not hold.
        """
        search = Search(self._data, self._partition.copy(), self._settings)
        counted: set[int] = set()
        for size in search.sizes:
            if search.should_count(size, counted):
                counted.add(size)
        certifier = Certifier(search, self._settings, counted=frozenset(counted), may_join=join)
        return KmResult(self._settings, self._data, search.partition, certifier.certify(), fitted=self._fitted)


def number_records(
    read: ReadRecords, settings: KmSettings, names: tuple[str, ...], known: npt.NDArray[np.bool_] | None = None
) -> SetData:
    """Records by the numbers of names; raises InputError when there are fewer than k."""
    check_enough(len(read), settings)
    return SetData(read.starts, read.numbered(names, known=known), names)


def published_order(seed: int, count: int) -> npt.NDArray[np.int64]:
    """The order in which sets are published that are sorted by content."""
    random = np.random.Generator(np.random.PCG64(random_key(seed, b"", "shuffle").tolist()))
    return random.permutation(count)


def check_enough(records: int, settings: KmSettings) -> None:
    """Raise InputError when there are fewer records than k."""
    most = max(settings.crowds)
    if records < most:
        raise InputError(f"{records:,} records cannot hide anybody among {most:,}; give more records, or ask for less")


def _not_among(here: SetData, there: SetData) -> tuple[int, int]:
    """Number of records here beyond those there with the same set; and how many of them are alone with their set."""
    kinds, counts = np.unique(np.rec.fromarrays(here.words), return_counts=True)
    known, known_counts = np.unique(np.rec.fromarrays(there.words), return_counts=True)
    before: npt.NDArray[np.int64] = np.zeros(len(kinds), np.int64)
    if len(known):
        positions = np.minimum(np.searchsorted(known, kinds), len(known) - 1)
        before = np.where(known[positions] == kinds, known_counts[positions], 0)
    more = np.maximum(counts - before, 0)
    return int(more.sum()), int(((more > 0) & (counts == 1)).sum())

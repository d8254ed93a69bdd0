"""What every task of an audit of events knows, and the ranges of bins that rows go to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from shoal.auditor.policy import Policy
from shoal.auditor.reading.columns import Ints
from shoal.auditor.z.promise import ZPromise
from shoal.spark.auditor.facts import EntryFacts, FileFacts
from shoal.spark.auditor.hashing import Hashes, mixed
from shoal.spark.auditor.join_trace import TruthBins

VALUES, PSEUDONYMS, PEOPLE, CARRIED, ORDER, EPOCHS = range(6)
"""Ranges of bins, in this order: a bin of values has all records of its values, and so on."""
_RANGES: Final = 6


@dataclass(frozen=True, slots=True)
class Plan:
    """What every task knows."""

    policy: Policy
    promise: ZPromise
    facts: FileFacts
    trace: EntryFacts
    records: TruthBins
    positions: int
    """The released rows of a bin of positions."""
    bins: int
    """The bins of a range."""
    restarts: Ints
    levels: dict[str, str] | None
    """The columns of the trace with the level at which values passed z, by attribute; None if not needed or absent."""

    @property
    def all_bins(self) -> int:
        """The bins of all ranges; those of epochs only if something is promised about epochs."""
        return (_RANGES if self.judges_epochs else EPOCHS) * self.bins

    @property
    def judges_epochs(self) -> bool:
        """Whether the rows of an epoch must meet."""
        return self.promise.k is not None or self.promise.target is not None

    def at(self, part: int, number: int) -> int:
        """A bin of a range."""
        return part * self.bins + number

    def hashed(self, hashes: Hashes) -> Ints:
        """The bin of every hash, within a range."""
        return (mixed([hashes]) % np.uint64(self.bins)).astype(np.int64)

    def of_epochs(self, epoch: Ints) -> Ints:
        """The bin of every epoch, within a range."""
        return self.hashed(epoch.astype(np.uint64))

    def starts(self, rows: Ints) -> Ints:
        """How often the stream had restarted before each record."""
        return np.searchsorted(self.restarts, rows, side="right").astype(np.int64)

"""Which shard a record of the flexible method goes to: cuts of normal quasi-identifiers, learnt on the first window.

Groups are alike in all normal quasi-identifiers. Without root labels, records under different labels right below a root
never share a group, so cuts lie between such labels where there are enough records on both sides, and else between
labels further below.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.methods.flexible.calibration import Calibration, calibrate
from shoal.methods.flexible.decider import Rows
from shoal.methods.flexible.density import density_tables
from shoal.methods.flexible.grouping import Grouping
from shoal.methods.flexible.reader import FlexibleReader, ReadRecords
from shoal.methods.release import NO_REASON
from shoal.methods.text_keys import key_words
from shoal.spark.recipe import Recipe

Ints = npt.NDArray[np.int64]
RECORDS_OF_A_SHARD: Final = 20
"""A shard needs at least this many times k records of the first window."""


class Cut(NamedTuple):
    """Records of a shard whose code in a normal attribute is at least `code` go to the new shard."""

    shard: int
    attribute: int
    code: int
    new: int


class FlexibleSharder:
    """Reads records and says which shard each goes to; learns calibration and cuts on the first records."""

    def __init__(self, recipe: Recipe, types: pa.Schema) -> None:
        self._settings, secret = recipe.settings(), recipe.secret()
        self._reader = FlexibleReader(self._settings, secret)
        self._reader.set_types(types)
        self._types, self._group_key = types, key_words(secret.subkey("table of groups"))

    def usable(self, batch: pa.RecordBatch) -> ReadRecords:
        """Read a batch."""
        return self._reader.read(batch)[0]

    def calibrate(self, batch: pa.RecordBatch) -> Calibration:
        """The calibration by the first records: a whole window of usable ones, or all there are."""
        read = self.usable(batch)
        count, window = read.codes.shape[1], self._settings.window
        numbers = np.arange(count)
        rows = Rows(numbers, numbers, read.keys, read.codes).between(0, min(count, window))
        return calibrate(self._settings, rows.codes, rows.people())

    def learn(self, batch: pa.RecordBatch, calibration: Calibration, shards: int) -> tuple[Cut, ...]:
        """Cuts for at most this many shards."""
        codes = self.usable(batch).codes[:, : self._settings.window]
        paths = self._grouping(calibration).normal_paths(codes)
        least = RECORDS_OF_A_SHARD * max(self._settings.crowds)
        members, cuts, whole = {0: np.arange(codes.shape[1])}, [], set[int]()
        while len(members) < shards and len(whole) < len(members):
            largest = max(members.keys() - whole, key=lambda shard: (len(members[shard]), -shard))
            found = _best_cut(paths, members[largest], least)
            if found is None:
                whole.add(largest)
                continue
            attribute, code = found
            own, new = members[largest], len(members)
            goes = paths[attribute][0][own] >= code
            members[largest], members[new] = own[~goes], own[goes]
            cuts.append(Cut(largest, attribute, code, new))
        return tuple(cuts)

    def shards(self, batch: pa.RecordBatch, calibration: Calibration, cuts: Sequence[Cut]) -> Ints:
        """The shard of every record; that of the first one for refused records."""
        read = self.usable(batch)
        lines = [line for line, _ in self._grouping(calibration).normal_paths(read.codes)]
        found = np.zeros(read.codes.shape[1], np.int64)
        for cut in cuts:
            found[(found == cut.shard) & (lines[cut.attribute] >= cut.code)] = cut.new
        shards = np.zeros(batch.num_rows, np.int64)
        shards[read.reasons == NO_REASON] = found
        return shards

    def _grouping(self, calibration: Calibration) -> Grouping:
        density = density_tables(self._settings, calibration.density)
        unknown = self._reader.unknown_codes
        return Grouping(self._settings, calibration, self._types, self._group_key, density=density, unknown=unknown)


def _best_cut(paths: Sequence[tuple[Ints, Ints]], own: Ints, least: int) -> tuple[int, int] | None:
    """The attribute and code that divide records best: at the coarsest labels, then most evenly."""
    best: tuple[tuple[int, int], int, int] | None = None
    for attribute, (codes, labels) in enumerate(paths):
        order = own[np.argsort(codes[own], kind="stable")]
        for depth in range(len(labels)):
            line = labels[depth][order]
            places = np.flatnonzero((line[1:] != line[:-1]) & (codes[order][1:] != codes[order][:-1])) + 1
            places = places[(places >= least) & (places <= len(order) - least)]
            if len(places):
                place = int(places[np.argmin(np.abs(places - len(order) / 2))])
                score = depth, abs(2 * place - len(order))
                if best is None or score < best[0]:
                    best = score, attribute, int(codes[order[place]])
                break
    return None if best is None else (best[1], best[2])

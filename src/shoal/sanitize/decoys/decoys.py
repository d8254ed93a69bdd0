"""Decoys: records of invented people that cannot be distinguished from real ones in the store.

Every real person has k - 1 shadows, whose ids are derived from the person's with a key. A shadow accompanies its
person (its normal quasi-identifiers are those of the group it fills, numbers shifted within their cell), and
takes everything else from one real record similar to those of its donor, another real person chosen when the shadow was
first made: all columns of that record together, numbers that vary between records blurred a little. Similar means the
same in all columns that are constant for a person, such as the device. So a shadow appears as often and with the same
gaps as a real person, keeps its device, and no column is drawn independently.

With `blend` shadows are in every group, even if it is large enough already: otherwise a record in a large
group would be known to be real.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.sanitize.decoys.cells import (
    Groups,
    Normal,
    as_column,
    cells_of,
    column_of,
    group,
    is_number,
    numbers,
    offsets,
    shifted,
    width_of,
)  # fmt: skip
from shoal.sanitize.decoys.pool import Pool, code_of, turns_of
from shoal.sanitize.decoys.rounding import as_precise, jittered, spikes, within
from shoal.sanitize.decoys.twins import Twins
from shoal.sanitize.pii import Names, as_names
from shoal.sanitize.tags import Blocks, as_blocks, one_way

CANDIDATES: Final = 6
MOVED: Final = 0.6
"""The share of a number's spread that comes from records other than its source."""
_FEW: Final = 12
"""A number with at most this many different values is a code, and is not blurred."""
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Known:
    """What is remembered of people: their donors, and records of donors who are not in the batch."""

    donors: Mapping[bytes, tuple[bytes, ...]]
    owners: tuple[bytes, ...]
    records: pa.Table


class Memory(Protocol):
    """Sealed memory across batches."""

    def recall(self, people: Sequence[bytes]) -> Known:
        """Return the donors of these people, and records of those donors who are not among them."""

    def remember(self, donors: Mapping[bytes, tuple[bytes, ...]], who: Names, records: pa.Table) -> None:
        """Store donors, and some records of every person."""


@dataclass(frozen=True, slots=True)
class Decoys:
    """The decoys of one batch of real records."""

    persons: Blocks
    pii: Blocks
    data: pa.Table
    groups: Ints
    """Groups that are now large enough."""
    twins: int
    """Decoys that still equal a real record in every column except ids, after all attempts to change them."""


class DecoyMaker:
    """Makes decoys, batch by batch.

    Parameters
    ----------
    normals
        Columns that define groups.
    k
        The number of people that every group must have.
    key
        Derives a key for a purpose.
    draw
        The random generator; seeded by the operating system except in tests.
    """

    def __init__(
        self, normals: Sequence[Normal], *, k: int, key: Callable[[str], bytes], draw: np.random.Generator, blend: bool
    ) -> None:
        self._normals = tuple(normals)
        self._shadows = k - 1
        self._k = k
        self._key = key
        self._draw = draw
        self._blend = blend
        self._twins = Twins(normals, draw)

    def make(
        self,
        persons: Blocks,
        pii: Blocks,
        data: pa.Table,
        memory: Memory,
        is_large: Callable[[Ints], npt.NDArray[np.bool_]],
    ) -> Decoys:
        """Make decoys for a batch of at least one real record."""
        people, who = np.unique(as_names(persons), return_inverse=True)
        groups = group(self._key("groups"), data, self._normals)
        rows, shadow = self._places(who, groups, is_large(groups.names))
        pool = self._pool(people, who, data, memory)
        sources = self._sources(rows, who[rows] * self._shadows + shadow, pool.donors[who[rows], shadow], pool)
        ids = self.ids("person", persons[rows], shadow)
        made, twins = self._records(data, rows, shadow, who, sources, pool)
        return Decoys(ids, self.ids("pii", pii[rows], shadow), made, groups.names, twins)

    # ---- who goes where

    def _places(self, who: Ints, groups: Groups, is_large: npt.NDArray[np.bool_]) -> tuple[Ints, Ints]:
        """Return for each decoy the real record it accompanies, and the number of the shadow."""
        if self._blend:
            counts = np.full(len(who), self._shadows)
        else:
            pairs, of = np.unique(groups.of * (who.max(initial=0) + 1) + who, return_inverse=True)
            counts = self._shadows_needed(pairs // (who.max(initial=0) + 1), is_large)[of]
        rows = np.repeat(np.arange(len(who)), counts)
        shadow = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        return rows, shadow

    def _shadows_needed(self, group_of: Ints, is_large: npt.NDArray[np.bool_]) -> Ints:
        """Return how many shadows each person needs in each group; pairs are sorted by group."""
        crowd = np.bincount(group_of, minlength=len(is_large))
        rank = np.arange(len(group_of)) - np.repeat(np.cumsum(crowd) - crowd, crowd)
        missing = np.where(is_large, 0, np.maximum(self._k - crowd, 0))[group_of]
        return np.asarray(np.maximum(0, -(-(missing - rank) // crowd[group_of])))

    def ids(self, what: str, real: Blocks, shadow: Ints) -> Blocks:
        """Return the ids of shadows, given the real ids and the numbers of the shadows."""
        made = np.empty((len(real), 16), dtype=np.uint8)
        for number in range(self._shadows):
            chosen = shadow == number
            made[chosen] = one_way(self._key(f"shadow {what} {number}"), real[chosen])
        return made

    # ---- whom they are like

    def _pool(self, people: Names, who: Ints, data: pa.Table, memory: Memory) -> Pool:
        known = memory.recall(_listed(people))
        number = {name: at for at, name in enumerate(_listed(people))}
        for owner in known.owners:
            number.setdefault(owner, len(number))
        records = pa.concat_tables([data, known.records]) if known.records.num_rows else data
        owners = np.concatenate([who, np.array([number[owner] for owner in known.owners], dtype=np.int64)])
        others = [name for name in data.schema.names if name not in {own.name for own in self._normals}]
        pool = Pool(records, owners, len(number), self._codes(records), others, self._draw)
        pool.donors = self._donors(people, known, number, pool)
        found = list(number)
        fresh = {
            person: tuple(found[donor] for donor in pool.donors[at])
            for at, person in enumerate(_listed(people))
            if person not in known.donors
        }
        memory.remember(fresh, people[who], data)
        return pool

    def _codes(self, records: pa.Table) -> npt.NDArray[np.int64]:
        """Return the codes of the categorical normal columns, one row per column."""
        names = [
            own.name for own in self._normals if own.is_grouped and not is_number(records.schema.field(own.name).type)
        ]
        listed = [code_of(records, name) for name in names]
        return np.array(listed, dtype=np.int64).reshape(len(names), records.num_rows)

    def _donors(self, people: Names, known: Known, number: Mapping[bytes, int], pool: Pool) -> Ints:
        """Return donors as numbers: remembered ones, and for new people others seen in similar places."""
        donors = np.full((len(people), self._shadows), -1, dtype=np.int64)
        for at, person in enumerate(_listed(people)):
            if person in known.donors:
                found = [number.get(donor, -1) for donor in known.donors[person][: self._shadows]]
                donors[at, : len(found)] = found
        lacking, slots = np.nonzero(donors < 0)
        if len(lacking):
            donors[lacking, slots] = self._new_donors(lacking, pool)
        return donors

    def _new_donors(self, lacking: Ints, pool: Pool) -> Ints:
        own = pool.one_of(lacking, self._draw)
        tried = self._draw.integers(0, len(pool.owners), (len(lacking), CANDIDATES * 2))
        score = pool.likeness(own, tried) + pool.plenty(lacking, tried) + self._draw.random(tried.shape)
        score -= 100.0 * (pool.owners[tried] == lacking[:, None])
        return np.asarray(pool.owners[tried[np.arange(len(lacking)), score.argmax(axis=1)]])

    def _sources(self, rows: Ints, shadows: Ints, donors: Ints, pool: Pool) -> Ints:
        """Return for each decoy a record similar to its donor's: of some candidates the one of the most similar place.

        The records of one shadow are taken in turn, so that none is repeated before all were used.
        """
        turn = turns_of(shadows) * CANDIDATES + self._draw.integers(0, 2**31, int(shadows.max(initial=0)) + 1)[shadows]
        tried = np.stack([pool.one_like(donors, rows, turn + at) for at in range(CANDIDATES)], axis=1)
        score = pool.likeness(rows, tried) + 0.02 * self._draw.random(tried.shape)
        return np.asarray(tried[np.arange(len(rows)), score.argmax(axis=1)])

    # ---- what they say

    def _records(
        self, data: pa.Table, rows: Ints, shadow: Ints, who: Ints, sources: Ints, pool: Pool
    ) -> tuple[pa.Table, int]:
        by_name = {normal.name: normal for normal in self._normals}
        shadows = who[rows] * self._shadows + shadow
        pair = pool.one_there(sources, self._draw), pool.one_there(sources, self._draw)
        columns: dict[str, pa.Array] = {}
        for field in data.schema:
            normal = by_name.get(field.name)
            if normal is None:
                columns[field.name] = self._borrowed(field.name, sources, pair, pool)
            elif normal.grid is None or not is_number(field.type):
                columns[field.name] = column_of(data, field.name).take(pa.array(rows))
            else:
                donors = pool.donors[who[rows], shadow]
                columns[field.name] = self._moved(column_of(data, field.name), normal, rows, shadows, donors, pool)
        made = pa.table(columns, schema=data.schema)
        return self._twins.changed(made, data)

    def _borrowed(self, name: str, sources: Ints, pair: tuple[Ints, Ints], pool: Pool) -> pa.Array:
        """Take values from source records; numbers that vary are moved, or decoys would cluster around their sources.

        They move part of the way to the mean of similar records, plus the difference of two other records of the same
        place, the same two in all columns: spread and correlations are preserved.
        """
        column = column_of(pool.records, name)
        kind = column.type
        is_kept = name in pool.staying or len(column.unique()) <= _FEW
        if is_kept or not is_number(kind) or pa.types.is_timestamp(kind):
            return column.take(pa.array(sources))
        real, is_there = numbers(column)
        is_moved = is_there & ~spikes(real)
        is_log = bool(real[is_moved].min(initial=1) > 0)
        values = np.log(np.where(is_moved, real, 1)) if is_log else real.astype(np.float64)
        means = pool.means(values, is_moved)
        values = np.where(is_moved, values, means)
        first, second = pair
        step = (values[first] - values[second]) / np.sqrt(2.0)
        made = means[sources] + np.sqrt(1 - MOVED**2) * (values - means)[sources] + MOVED * step
        made = within(np.exp(made) if is_log else made, real[is_moved])
        made = as_precise(made, real[sources], real[is_moved], self._draw)
        kept = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)[sources]  # not finite, or a frequent value
        is_valid = column.is_valid().to_numpy(zero_copy_only=False)
        return as_column(np.where(is_moved[sources], made, kept), is_valid[sources], kind)

    def _moved(self, column: pa.Array, normal: Normal, rows: Ints, shadows: Ints, donors: Ints, pool: Pool) -> pa.Array:
        """Shift numbers within their cells: those of one shadow in one cell together, so that gaps stay.

        They start at the offset of a real record: one of the donor's, if the donor always comes at the same minute
        of the hour, because then the shadow must, too; else anybody's.
        """
        values, is_there = numbers(column)
        known, is_known = numbers(column_of(pool.records, normal.name))
        within = offsets(known[is_known], column.type, normal)
        if not len(within):
            return column.take(pa.array(rows))
        cells = np.unique(cells_of(values, column.type, normal), return_inverse=True)[1][rows]
        _, first, stays = np.unique(
            shadows * (cells.max(initial=0) + 1) + cells, return_index=True, return_inverse=True
        )
        width = width_of(column.type, normal)
        known = offsets(known, column.type, normal)
        mixed = self._draw.permutation(len(first))
        turns = np.empty(len(first), dtype=np.int64)
        turns[mixed] = turns_of(shadows[first][mixed])
        chosen = pool.turn_of(donors[first], turns)
        is_steady = is_known[chosen] & pool.are_steady(known / width, is_known)[donors[first]]
        begins = np.where(is_steady, known[chosen], self._draw.choice(within, len(first)))
        begins = jittered(begins, within, width, self._draw)
        shifts = (begins - offsets(values[rows[first]], column.type, normal))[stays]
        return as_column(shifted(values[rows], column.type, normal, shifts), is_there[rows], column.type)


def _listed(names: Names) -> list[bytes]:
    """Return names with trailing zero bytes, which NumPy drops."""
    data = names.tobytes()
    return [data[at : at + 16] for at in range(0, len(data), 16)]


__all__ = ["DecoyMaker", "Decoys", "Known", "Memory", "as_blocks"]

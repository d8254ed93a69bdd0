"""The search's view of sets that are divided among machines: it asks all parts, and adds their counts.

Counts are whole numbers, so the search makes the same decisions as on one machine. An itemset that once had k people
keeps them: merging blocks never takes people away. So what has passed is not asked about again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from math import comb
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from shoal.errors import RunError
from shoal.kernels.sets.parts import propose_places
from shoal.kernels.sets.sampling import Draws, Sizes
from shoal.methods.sets.counting import Effort, Violations, by_rarity, thinned, zeros_of
from shoal.methods.sets.data import Codes, Ints, sizes_of
from shoal.methods.sets.supports import Drawn
from shoal.spark.sets.part import Values, combination_table, combinations_of, summed

_FEWEST, _MOST = 64, 8192
"""Proposals drawn at once; more each time all of them pass."""
_ASKED: Final = 64
"""Itemsets asked about at once while one of the last ones failed; then twice as many."""
_COUNTS: Final = 4_000_000
"""Counts of all parts that are added at once."""


class Parts(Protocol):
    """All parts of the sets, wherever they are."""

    def tell(self, question: str, **values: Any) -> None:
        """Change the blocks of every part."""

    def ask(self, question: str, **values: Any) -> list[Values]:
        """The answers of all parts."""


@dataclass(frozen=True)
class DividedSets:
    """What is known of everybody's sets; see :class:`shoal.methods.sets.data.KnownSets`."""

    names: tuple[str, ...]
    people_by_size: npt.NDArray[np.intp]
    """How many people have a set of 0, 1, 2, … items."""
    fingerprint: bytes

    def __len__(self) -> int:
        return int(self.people_by_size.sum())

    @property
    def longest(self) -> int:
        """Number of items in the largest set."""
        return int(np.flatnonzero(self.people_by_size).max(initial=0))

    def sizes(self, size: int, *, by_person: bool) -> Sizes | None:
        """The probability of each set size when itemsets of a size are drawn."""
        return sizes_of(self.people_by_size, size, by_person=by_person)


@dataclass(slots=True)
class _Proposals:
    """Itemsets that were drawn, and what is known of them."""

    key: bytes
    first: int
    itemsets: Codes
    is_sample: npt.NDArray[np.bool_]
    has_passed: npt.NDArray[np.bool_]
    """Whether k people are known to have the image."""

    @property
    def end(self) -> int:
        return self.first + len(self.itemsets)


class DividedSupports:
    """See :class:`shoal.methods.sets.supports.Supports`."""

    _handles = count(1)

    def __init__(self, parts: Parts, data: DividedSets, handle: int = 0, gone: list[int] | None = None) -> None:
        self._parts, self._data = parts, data
        self._handle = next(self._handles)
        self._gone = [] if gone is None else gone
        """Handles of copies that are not used any more."""
        while self._gone:
            parts.tell("drop", handle=self._gone.pop())
        parts.tell("copy", handle=handle, new=self._handle)
        self._proposals: _Proposals | None = None
        self._asked: tuple[Codes, int, npt.NDArray[np.bool_]] | None = None

    def __del__(self) -> None:
        self._gone.append(self._handle)  # sending now could break into another message

    def copy(self) -> DividedSupports:
        return DividedSupports(self._parts, self._data, self._handle, self._gone)

    def people(self) -> Ints:
        found: Ints = sum(answer["people"] for answer in self._parts.ask("people", handle=self._handle))
        return found

    def support(self, blocks: Sequence[int], wanted: int) -> int:
        return min(int(self._supports(self._handle, np.array([blocks], np.int32), np.array([wanted]))[0]), wanted)

    def join(self, kept: int, blocks: Sequence[int]) -> None:
        self._parts.tell("join", handle=self._handle, kept=kept, blocks=np.array(blocks, np.int64))

    def counting(self) -> DividedCounting:
        return DividedCounting(self._parts, self._handle, len(self._data))

    def _supports(self, handle: int, images: Codes, wanted: Ints) -> Ints:
        """People who have all blocks of each image; right up to `wanted`."""
        answers = self._parts.ask("supports", handle=handle, images=images, wanted=wanted.astype(np.int64))
        found: Ints = sum(answer["counts"] for answer in answers)
        return found

    def next_violation(self, block_of: Codes, sets: Codes, first: int, k: int) -> int:
        if self._asked is None or self._asked[0] is not sets or self._asked[1] != k:
            self._asked = sets, k, np.zeros(len(sets), np.bool_)
        has_passed = self._asked[2]
        at = self._first_failing(block_of, sets, first + np.flatnonzero(~has_passed[first:]), has_passed, k)
        return len(sets) if at is None else at

    def _first_failing(
        self, block_of: Codes, sets: Codes, positions: Ints, has_passed: npt.NDArray[np.bool_], k: int
    ) -> int | None:
        """The first of these positions whose itemset has fewer than k people; notes those that have them."""
        begin, portion = 0, _ASKED
        while begin < len(positions):
            some = positions[begin : begin + portion]
            images = images_of(sets[some], block_of)
            passes = self._supports(self._handle, images, np.full(len(some), k)) >= k
            has_passed[some[passes]] = True
            if not passes.all():
                return int(some[np.argmin(passes)])
            begin, portion = begin + portion, 2 * portion
        return None

    # ---- sampling

    def draw(self, draws: Draws, block_of: Codes, first: int, wanted: int) -> Drawn:
        passed, portion = 0, _FEWEST
        while True:
            known = self._proposals
            if known is None or known.key != draws.key.tobytes() or not known.first <= first < known.end:
                known = self._proposals = self._propose(draws, first, portion)
                portion = min(2 * portion, _MOST)
            found = self._judge(known, draws, block_of, first, wanted - passed)
            passed, first = passed + found.passed, found.end
            if found.violation is not None or passed >= wanted:
                return Drawn(first, passed, found.violation)

    def _propose(self, draws: Draws, first: int, portion: int) -> _Proposals:
        rows, places = np.empty(portion, np.int64), np.empty((portion, draws.size), np.int64)
        limits, itemsets = np.empty(portion, np.int64), np.empty((portion, draws.size), np.int32)
        lengths = np.flatnonzero(self._data.people_by_size)
        propose_places(draws, lengths[lengths >= draws.size], first, np.zeros(1, np.uint64), rows, places, limits)
        for answer in self._parts.ask("items", rows=rows, places=places):
            itemsets[answer["at"]] = answer["items"]
        most = np.full(portion, draws.k) if draws.by_person else np.maximum(draws.k, limits + 1)
        people = self._supports(0, itemsets, most)
        return _Proposals(draws.key.tobytes(), first, itemsets, people <= limits, people >= draws.k)

    def _judge(self, known: _Proposals, draws: Draws, block_of: Codes, first: int, wanted: int) -> Drawn:
        """Judge the proposals from `first` on, up to the last one known or the last sample wanted."""
        begin = first - known.first
        so_far = np.cumsum(known.is_sample[begin:])
        stop = begin + min(int(np.searchsorted(so_far, wanted)) + 1, len(so_far))
        counts = known.is_sample | (not draws.samples_only)
        unknown = begin + np.flatnonzero((counts & ~known.has_passed)[begin:stop])
        at = self._first_failing(block_of, known.itemsets, unknown, known.has_passed, draws.k)
        if at is None:
            return Drawn(known.first + stop, int(known.is_sample[begin:stop].sum()), None)
        passed = int(known.is_sample[begin:at].sum())
        return Drawn(known.first + at + 1, passed, known.itemsets[at].tolist())


class DividedCounting:
    """Counts all sets of blocks of a size; see :class:`shoal.methods.sets.counting.CountsOfSize`."""

    def __init__(self, parts: Parts, handle: int, rows: int) -> None:
        self._parts, self._handle, self._rows = parts, handle, rows

    @cached_property
    def _answers(self) -> tuple[Ints, npt.NDArray[np.intp]]:
        answers = self._parts.ask("people", handle=self._handle)
        by_size = np.zeros(max(len(answer["by_size"]) for answer in answers), np.int64)
        for answer in answers:
            by_size[: len(answer["by_size"])] += answer["by_size"]
        return sum(answer["people"] for answer in answers), by_size

    @cached_property
    def _names(self) -> Codes:
        return by_rarity(self._answers[0])

    def steps(self, size: int) -> int:
        return Effort(self._answers[1], len(self._names), self._rows).steps(size)

    def violations(self, size: int, k: int, key: int = 0) -> Violations:
        if size == 1:
            few = np.flatnonzero((self._answers[0] < k) & (self._answers[0] > 0)).astype(np.int32)
            return Violations(len(few), len(self._names), few[:, None])
        if comb(len(self._names), size) >= 1 << 62:
            raise RunError(f"{len(self._names):,} items have too many sets of {size} to count; choose a smaller m")
        table = combination_table(len(self._names), size)
        total, distinct = 0, 0
        sets, hashes = np.empty((0, size), np.int32), np.empty(0, np.uint64)
        for numbers, people in self._counted(size):
            few = numbers[people < k]
            total, distinct = total + len(few), distinct + len(numbers)
            more = self._names[combinations_of(few, table)].reshape(-1, size)
            sets, hashes = np.concatenate((sets, more)), np.concatenate((hashes, hashes_of(more, key)))
            kept = hashes & np.uint64((1 << zeros_of(total)) - 1) == 0
            sets, hashes = sets[kept], hashes[kept]
        return Violations(total, distinct, sets[thinned(sets, hashes, total)])

    def _counted(self, size: int) -> Any:
        """Numbers and people of all combinations that occur, a portion at a time."""
        answers = self._parts.ask("count", handle=self._handle, names=self._names, size=size)
        portions = -(-sum(answer["distinct"] for answer in answers) // _COUNTS)
        some = np.sort(np.concatenate([answer["some"] for answer in answers]))
        cuts = some[[len(some) * portion // portions for portion in range(1, portions)]].tolist()
        for low, high in zip([0, *cuts], [*cuts, 1 << 62], strict=True):
            parts = self._parts.ask("counts", low=low, high=high)
            yield summed(*((part["numbers"], part["counts"]) for part in parts))
        self._parts.tell("forget")


def images_of(itemsets: Codes, block_of: Codes) -> Codes:
    """The blocks of itemsets, each once; -1 elsewhere."""
    images = np.sort(block_of[itemsets], axis=1)
    images[:, 1:][np.diff(images, axis=1) == 0] = -1
    return images


def hashes_of(sets: Codes, key: int) -> npt.NDArray[np.uint64]:
    """The keyed hashes by which the kernel of one machine orders sets of blocks."""
    words = np.full(len(sets), key, np.uint64)
    for column in sets.T:
        words = _mixed(words + (column.astype(np.uint64) + np.uint64(1)))
    return words


def _mixed(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """As `mixed` of :mod:`shoal.kernels.randomness`, on arrays."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))

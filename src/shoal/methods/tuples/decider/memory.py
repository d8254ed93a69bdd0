"""The memory of a tuple stream: its arrays are allocated, grow, are written to snapshots and read back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, Self

import numpy as np
import numpy.typing as npt

from shoal.kernels.tuples import layout as t
from shoal.kernels.tuples.queue import clear_keys, pack_pending, restore_pending
from shoal.methods.schema_arrays import Shape
from shoal.methods.tuples.decider.base import Arrays, Floats, Ints
from shoal.methods.tuples.sensitive import SensitiveCodes

PERSON_WORDS: Final = 2
SPARE_ROWS: Final = 4096
SPARE_GROUPS: Final = 1024
TYPICAL_AT_FIRST: Final = 0.3
"""The loss of a typical cluster, before any cluster is known."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many of each the arrays can hold at once."""

    attributes: int
    k: int
    pending: int
    clusters: int
    sensitive: int = 0
    """Sensitive columns that matter; 0 when no diversity is required."""
    values: int = 0
    """Different values of one sensitive column."""
    recent: int = 0
    """Arrivals whose sensitive values are remembered."""
    is_capped: bool = False
    """Whether a person's share of a cluster is capped: then published rows are remembered with their persons."""

    @property
    def words(self) -> int:
        """Words of a mask that has a bit for each attribute."""
        return (self.attributes + 62) // 63

    @property
    def joined(self) -> int:
        """Published rows that are remembered with their persons."""
        return self.pending + SPARE_ROWS if self.is_capped else 0

    def with_room(self, *, pending: int = 0, clusters: int = 0, values: int = 0) -> Self:
        """Other sizes, with room for the clusters that the pending tuples may form."""
        pending = pending or self.pending
        clusters = max(clusters or self.clusters, pending // self.k + 8)
        return replace(self, pending=pending, clusters=clusters, values=values or self.values)


def make_stream(sizes: Sizes, shape: Shape, plan: npt.NDArray[np.int64], ratios: npt.NDArray[np.float64]) -> t.Stream:
    """An empty stream."""
    wide, words, room = sizes.attributes, sizes.words, sizes.pending
    near = int(plan[t.NEAR])
    seen = (sizes.sensitive, sizes.values)
    out_groups = sizes.pending // sizes.k + SPARE_GROUPS
    stream = t.Stream(
        plan=plan,
        ratios=ratios,
        tally=np.zeros(t.TALLY, dtype=np.int64),
        sums=np.array([0.0] * t.TYPICAL + [TYPICAL_AT_FIRST] + [0.0] * wide),
        attr_f=shape.attr_f,
        attr_i=shape.attr_i,
        tree_f=shape.tree_f,
        tree_i=shape.tree_i,
        pending_f=np.zeros((t.VALUES + 2 * wide + (near + 3 * wide if near else 0), room)),
        pending_i=np.zeros((t.MASKS + words + sizes.sensitive, room), dtype=np.int64),
        tables=np.zeros((2, 1 << (2 * room - 1).bit_length()), dtype=np.int64),
        slots=np.zeros((2, t.KEYS + max(words, PERSON_WORDS), room), dtype=np.int64),
        pool_f=np.zeros((sizes.clusters + 1, 3 * wide)),
        pool_i=np.zeros((sizes.clusters + 1, t.FIELDS + 3 * wide + words + 2 * sizes.is_capped), dtype=np.int64),
        joined=np.zeros((sizes.joined, t.J_KEYS + PERSON_WORDS), dtype=np.int64),
        class_f=np.zeros((sizes.clusters + 1, 2, *seen)),
        sens_f=np.zeros((4, *seen)),
        sens_i=np.zeros((t.SENSITIVE, sizes.sensitive), dtype=np.int64),
        recent=np.zeros((sizes.sensitive, sizes.recent), dtype=np.int64),
        out_i=np.zeros((sizes.pending + SPARE_ROWS, t.OUT_MASKS + words), dtype=np.int64),
        group_f=np.zeros((out_groups, 2 * wide)),
        group_i=np.zeros((out_groups, t.G_FIELDS + 3 * wide), dtype=np.int64),
        group_r=np.zeros((out_groups, *(seen if sizes.recent else (0, 0)))),
    )
    stream.sens_i[t.MISSING] = -1
    clear_keys(stream, t.PEOPLE)
    clear_keys(stream, t.PATTERNS)
    return stream


def no_arrivals(sizes: Sizes) -> t.Arrivals:
    """A batch without rows."""
    nothing = np.zeros(0, dtype=np.int64)
    return t.Arrivals(
        np.zeros((sizes.attributes, 0)), np.zeros((sizes.attributes, 0)), np.zeros((0, sizes.words), dtype=np.int64),
        np.zeros((0, PERSON_WORDS), dtype=np.int64), nothing, nothing, nothing,
        np.zeros((sizes.sensitive, 0), dtype=np.int64),
    )  # fmt: skip


POOL: Final = ("pool_f", "pool_i", "class_f")
"""Arrays with one row for each cluster that may be reused."""
KEPT_TALLY: Final = [
    t.NOW, t.NUMBER, t.GROUPS, t.LIVE, t.INCOMPLETE, t.POOL_SIZE, t.FORMED, t.MERGED, t.REUSED, t.RELEASED,
    t.SUPPRESSED, t.LONGEST, t.DELAYS, t.REF_SIZE, t.LATES, t.LANE, t.FILLED, t.RARE,
]  # fmt: skip
"""The part of the tally that a snapshot keeps; the rest are places in memory."""
_UNDER_WAY: Final = [t.ENDING, t.PASSING, t.UNTIL, t.MAY_STOP, t.AT, t.VARIED_AT_END]
"""The part of the tally that matters only during a call."""
_KEPT_ROWS: Final = np.array([row not in (t.PERSON, t.PART) for row in range(t.KEPT)], dtype=np.int64)
"""People and patterns get new numbers when a state is loaded."""


class Extra(Protocol):
    """Memory that one method needs besides the stream's."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""

    def allocate(self, sizes: Sizes, plan: Ints) -> None:
        """Begin with empty arrays."""

    def dump(self, stream: t.Stream) -> Arrays:
        """The content as named arrays."""

    def load(self, stream: t.Stream, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over what dump() returned, after the stream is loaded."""


class Memory:
    """The arrays of one stream, with the numbers of its sensitive values."""

    def __init__(
        self, shape: Shape, codes: Sequence[SensitiveCodes], plan: Ints, ratios: Floats, extra: Extra | None = None
    ) -> None:
        self.plan, self.ratios = plan, ratios
        self._shape, self._codes, self.extra = shape, codes, extra
        self.sizes = Sizes(
            attributes=shape.attr_f.shape[1], k=int(plan[t.K]), sensitive=len(codes), values=16 if codes else 0,
            pending=256 if plan[t.TIMED] else min(int(plan[t.DEADLINE]) * 3 // 2 + 64, 16_384), clusters=256,
            recent=int(plan[t.REFERENCE]), is_capped=bool(ratios[t.MAX_SHARE]),
        ).with_room()  # fmt: skip
        self._allocate()

    def _allocate(self) -> None:
        self.stream, self._allocated = make_stream(self.sizes, self._shape, self.plan, self.ratios), self.sizes
        self._passed = [(0, 0)] * len(self._codes)
        """For each sensitive column, which version of its codes the kernels know, and how many of them."""
        if self.extra is not None:
            self.extra.allocate(self.sizes, self.plan)

    def _clear(self) -> None:
        """Forget everything; cheaper than allocating new arrays."""
        tally = self.stream.tally
        stamp = tally[t.STAMP]  # stamps that are still in memory must never occur again
        tally[:] = 0
        tally[t.STAMP] = stamp
        clear_keys(self.stream, t.PEOPLE)
        clear_keys(self.stream, t.PATTERNS)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        own: int = sum(array.nbytes for array in self.stream)
        return own if self.extra is None else own + self.extra.nbytes

    # ---- growth

    def resize(self, sizes: Sizes) -> None:
        """Move everything into arrays of other sizes; the kernels' output must be empty."""
        pack_pending(self.stream)
        under_way = self.stream.tally[_UNDER_WAY]
        late = self.stream.tally[t.LATE_PART] - 1  # patterns get new numbers: remember a tuple that has this one
        like_late = np.flatnonzero(self.stream.pending_i[t.PART, : self.stream.tally[t.LIVE]] == late)[:1]
        arrays = self.dump()
        self.sizes = sizes
        self.load(arrays)
        self.stream.tally[_UNDER_WAY] = under_way
        if late >= 0 and len(like_late):
            self.stream.tally[t.LATE_PART] = self.stream.pending_i[t.PART, like_late[0]] + 1

    def make_room(self) -> None:
        """Grow what is too small for another run of the kernels; emptying the output may have been enough."""
        tally, sizes = self.stream.tally, self.sizes
        self.write_joined(self.joined())
        live, known = int(tally[t.LIVE]), int(tally[t.POOL_SIZE])
        pending = sizes.pending * (2 if live >= sizes.pending * 3 // 4 else 1)
        needed = known + pending // sizes.k + 8
        clusters = 2 * needed if needed > sizes.clusters else sizes.clusters
        if (pending, clusters) != (sizes.pending, sizes.clusters):
            self.resize(sizes.with_room(pending=pending, clusters=clusters))

    def know_values(self) -> None:
        """Make room for sensitive values seen for the first time, and pass them to the kernels."""
        most = max((len(column) for column in self._codes), default=0)
        if most > self.sizes.values:
            self.resize(self.sizes.with_room(values=2 * most))
        s = self.stream
        for number, column in enumerate(self._codes):
            if self._passed[number] == (column.version, len(column)):
                continue
            self._passed[number] = (column.version, len(column))
            s.sens_i[t.USED, number] = len(column)
            s.sens_i[t.IS_ORDERED, number] = column.is_ordered
            s.sens_i[t.MISSING, number] = column.missing
            if column.is_ordered:
                s.sens_f[t.ORDER, number, : len(column)] = column.order()
            s.sens_f[t.DECLARED, number, : len(column)] = [column.share(code) for code in range(len(column))]

    # ---- rows published as clusters of the pool, where shares are capped

    def joined(self) -> Ints:
        """Published rows by the index of their cluster in the pool, with the keys of their persons."""
        tally = self.stream.tally
        joined: Ints = self.stream.joined[: int(tally[t.JOINED])].copy()
        joined[:, t.J_CLUSTER] -= int(tally[t.BASE])
        place = joined[:, t.J_CLUSTER]
        return joined[(place >= 0) & (place < int(tally[t.POOL_SIZE]))]

    def write_joined(self, joined: Ints) -> None:
        """Remember these rows and no others, with room for all pending rows to join them."""
        needed = len(joined) + self.sizes.pending
        if self.sizes.is_capped and needed > self.stream.joined.shape[0]:
            room = np.zeros((2 * needed, self.stream.joined.shape[1]), dtype=np.int64)
            self.stream = self.stream._replace(joined=room)
        self.stream.joined[: len(joined)] = joined
        self.stream.tally[t.JOINED], self.stream.tally[t.BASE] = len(joined), 0

    # ---- snapshots

    def dump(self) -> Arrays:
        """Everything that matters, in an order that does not depend on how it came about."""
        pack_pending(self.stream)
        s, live = self.stream, int(self.stream.tally[t.LIVE])
        persons = s.slots[t.PEOPLE][t.KEYS : t.KEYS + PERSON_WORDS, s.pending_i[t.PERSON, :live]].T
        pool = (int(s.tally[t.POOL_HEAD]) + np.arange(int(s.tally[t.POOL_SIZE]))) % (s.pool_i.shape[0] - 1)
        size, end = int(s.tally[t.REF_SIZE]), int(s.tally[t.REF_NEXT])
        recent = (end - size + np.arange(size)) % max(self.sizes.recent, 1)
        floats = 2 * self.sizes.attributes + int(self.plan[t.NEAR])
        return {
            **self.dump_counts(),
            "pending_f": s.pending_f[t.VALUES : t.VALUES + floats, :live].copy(),
            "pending_i": s.pending_i[: t.KEPT, :live] * _KEPT_ROWS[:, None],
            "pending_m": s.pending_i[t.MASKS :, :live].copy(),
            "persons": np.ascontiguousarray(persons),
            "pool_f": s.pool_f[pool],
            "pool_i": s.pool_i[pool][:, : s.pool_i.shape[1] - 2 * self.sizes.is_capped],
            "joined": self.joined(),
            "class_f": s.class_f[pool][..., : int(s.sens_i[t.USED].max(initial=0))],
            "recent": s.recent[:, recent],
            **({} if self.extra is None else self.extra.dump(s)),
        }

    def dump_counts(self) -> Arrays:
        """The counters and sums."""
        return {"tally": self.stream.tally[KEPT_TALLY], "sums": self.stream.sums.copy()}

    def load(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over what dump() returned; memory grows as far as needed."""
        live = arrays["pending_f"].shape[1]
        self.sizes = self._fitting(arrays, live)
        if self.extra is None and self.sizes == self._allocated:
            self._clear()
        else:
            self._allocate()
        self.know_values()
        s = self.stream
        s.tally[KEPT_TALLY] = arrays["tally"]
        s.sums[:] = arrays["sums"]
        s.pending_f[t.VALUES : t.VALUES + len(arrays["pending_f"]), :live] = arrays["pending_f"]
        s.pending_i[: t.KEPT, :live] = arrays["pending_i"]
        s.pending_i[t.MASKS :, :live] = arrays["pending_m"]
        masks = np.ascontiguousarray(arrays["pending_m"][: self.sizes.words].T)
        restore_pending(s, live, np.ascontiguousarray(arrays["persons"]), masks)
        for name in POOL:
            write_front(getattr(s, name), arrays[name])
        self.write_joined(arrays["joined"])
        self._load_recent(arrays["recent"])
        if self.extra is not None:
            self.extra.load(self.stream, arrays)

    def _load_recent(self, recent: Ints) -> None:
        s, size = self.stream, recent.shape[1]
        s.recent[:, :size] = recent
        s.tally[t.REF_NEXT] = size % max(self.sizes.recent, 1)
        for number in range(recent.shape[0]):
            s.sens_f[t.RECENT_COUNT, number] = np.bincount(recent[number], minlength=self.sizes.values)

    def _fitting(self, arrays: Mapping[str, npt.NDArray[Any]], live: int) -> Sizes:
        pending = self.sizes.pending
        while pending < live + 1:
            pending *= 2
        values = max(self.sizes.values, arrays["class_f"].shape[3], *(len(column) for column in self._codes), 0)
        clusters = max(self.sizes.clusters, 2 * len(arrays["pool_i"]) + pending // self.sizes.k + 8)
        return self.sizes.with_room(pending=pending, values=values, clusters=clusters)


def write_front(array: npt.NDArray[Any], content: npt.NDArray[Any]) -> None:
    """Write into the first places of every axis."""
    array[tuple(slice(0, size) for size in content.shape)] = content

"""The state of a tuple stream: its memory, what is decided in it, and how it is written down."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from shoal.kernels.tuples import layout as t
from shoal.kernels.tuples.queue import pack_held, take_back
from shoal.methods.schema_arrays import Shape
from shoal.methods.tuples.allocation import PERSON_WORDS, Sizes, front, make_stream
from shoal.methods.tuples.sensitive import SensitiveCodes

Ints = npt.NDArray[np.int64]
Arrays = dict[str, npt.NDArray[Any]]
Run = Callable[[t.Stream, t.Arrivals, int, int], int]

_SPARE_ROWS: Final = 4096
_SPARE_GROUPS: Final = 1024
_KEPT_TALLY: Final = (
    t.NOW, t.NUMBER, t.GROUPS, t.LIVE, t.INCOMPLETE, t.POOL_SIZE, t.FORMED, t.MERGED, t.REUSED, t.RELEASED,
    t.SUPPRESSED, t.LONGEST, t.DELAYS, t.REF_SIZE, t.LATES, t.LANE, t.VISIBLE,
)  # fmt: skip
"""What of the tally outlives a snapshot; the rest says where things lie in memory."""
_OF_CLUSTERS: Final = ("pool_f", "pool_i", "class_f")


@dataclass(frozen=True, slots=True)
class Decided:
    """Decisions in order, and the generalizations they refer to."""

    rows: Ints
    verdicts: Ints
    groups: Ints
    """Places in the arrays below; NO_GROUP where suppressed."""
    delays: Ints
    at: Ints
    """The arrival during which each was decided."""
    masks: Ints
    numbers: Ints
    reused: Ints
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]
    node: Ints
    shown: Ints
    carriers: Ints
    reference: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def of(cls, stream: t.Stream) -> Self:
        """Take what the kernels have noted, and make room for more."""
        rows, groups = int(stream.tally[t.OUT_ROWS]), int(stream.tally[t.OUT_GROUPS])
        stream.tally[t.OUT_ROWS] = stream.tally[t.OUT_GROUPS] = 0
        out, wide = stream.out_i[:rows].copy(), stream.attr_f.shape[1]
        shown = [stream.group_i[:groups, t.G_FIELDS + n * wide : t.G_FIELDS + (n + 1) * wide].copy() for n in range(3)]
        return cls(
            out[:, t.O_ROW], out[:, t.O_VERDICT], out[:, t.O_GROUP], out[:, t.O_DELAY], out[:, t.O_AT],
            out[:, t.OUT_MASKS :],
            stream.group_i[:groups, t.G_NUMBER].copy(), stream.group_i[:groups, t.G_REUSED].copy(),
            stream.group_f[:groups, :wide].copy(), stream.group_f[:groups, wide:].copy(),
            shown[t.C_NODE], shown[t.C_SHOWN],
            shown[t.C_CARRIERS],
            stream.group_r[:groups].copy(),
        )  # fmt: skip

    def in_order(self, order: Ints) -> Self:
        """The same decisions in another order."""
        own = ("rows", "verdicts", "groups", "delays", "at", "masks")
        return replace(self, **{name: getattr(self, name)[order] for name in own})

    def widened(self, values: int) -> Self:
        """The same with room for this many sensitive values in what clusters were held against."""
        more = values - self.reference.shape[2]
        return replace(self, reference=np.pad(self.reference, ((0, 0), (0, 0), (0, more))))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """One after another."""
        if len(parts) == 1:
            return parts[0]
        moved, groups = [], 0
        for part in parts:
            moved.append(replace(part, groups=np.where(part.groups >= 0, part.groups + groups, part.groups)))
            groups += len(part.numbers)
        names = [field.name for field in fields(cls)]
        widest = max(part.reference.shape[2] for part in parts)
        moved = [part if part.reference.shape[2] == widest else part.widened(widest) for part in moved]
        return cls(*(np.concatenate([getattr(part, name) for part in moved]) for name in names))


class TupleState:
    """One stream's memory; it grows when the kernels ask for room."""

    def __init__(
        self, shape: Shape, plan: Ints, ratios: npt.NDArray[np.float64], *, run: Run, columns: int, recent: int
    ) -> None:
        self._shape, self._plan, self._ratios, self._run = shape, plan, ratios, run
        room = 256 if plan[t.TIMED] else min(int(plan[t.DEADLINE]) * 3 // 2 + 64, 16_384)
        self._sizes = self._sized(columns=columns, recent=recent, values=16 if columns else 0, held=room, clusters=256)
        self.stream = self._fresh()
        self._parts: list[Decided] = []
        self._told: list[tuple[int, int]] = []
        """Of each sensitive column, what the kernels know: which numbering, and how much of it."""
        self._codes: Sequence[SensitiveCodes] = ()
        self._is_ordered: Sequence[bool] = ()

    def _sized(self, *, columns: int, recent: int, values: int, held: int, clusters: int) -> Sizes:
        wide, k = self._shape.attr_f.shape[1], int(self._plan[t.K])
        clusters = max(clusters, held // k + 8)
        joined = held + _SPARE_ROWS if self._ratios[t.MAX_SHARE] else 0
        return Sizes(
            attributes=wide, sensitive=columns, values=values, recent=recent, held=held, clusters=clusters,
            out_rows=held + _SPARE_ROWS, out_groups=held // k + _SPARE_GROUPS, keeps_reference=recent > 0,
            joined=joined,
        )  # fmt: skip

    def _fresh(self) -> t.Stream:
        return make_stream(self._sizes, self._shape, self._plan, self._ratios)

    @property
    def held(self) -> int:
        """Tuples that wait."""
        return int(self.stream.tally[t.LIVE])

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return sum(array.nbytes for array in self.stream)

    @property
    def tally(self) -> Ints:
        """Counts so far."""
        tally: Ints = self.stream.tally
        return tally

    @property
    def sums(self) -> npt.NDArray[np.float64]:
        """Losses so far."""
        sums: npt.NDArray[np.float64] = self.stream.sums
        return sums

    def held_rows(self) -> Ints:
        """Numbers of the rows that wait, ascending."""
        alive = self.stream.held_i[t.ALIVE].astype(np.bool_)
        rows: Ints = self.stream.held_i[t.ROW][alive]
        return rows

    def held_values(self) -> tuple[npt.NDArray[np.float64], Ints]:
        """Values of the tuples that wait, as the kernels measure them, and their rows."""
        alive = self.stream.held_i[t.ALIVE].astype(np.bool_)
        wide = self._sizes.attributes
        return self.stream.held_f[t.VALUES : t.VALUES + wide][:, alive], self.held_rows()

    def oldest_arrived(self) -> int | None:
        """When the tuple that waits longest came."""
        head, tail = int(self.tally[t.HEAD]), int(self.tally[t.TAIL])
        alive = np.flatnonzero(self.stream.held_i[t.ALIVE, head:tail])
        return int(self.stream.held_i[t.ARRIVED, head + int(alive[0])]) if len(alive) else None

    # ---- clusters, for lanes that share them

    # Lanes forget clusters together and keep theirs at the front, so the ring never goes round.

    def clusters_created(self) -> Ints:
        """When the clusters known when the round began were formed."""
        created: Ints = self.stream.pool_i[: int(self.tally[t.VISIBLE]), t.CREATED]
        return created

    def new_clusters(self) -> Arrays:
        """The clusters formed since."""
        start, end = int(self.tally[t.VISIBLE]), int(self.tally[t.POOL_SIZE])
        made = {name: getattr(self.stream, name)[start:end].copy() for name in _OF_CLUSTERS}
        joined = self._joined()
        joined = joined[joined[:, t.J_CLUSTER] >= start]
        joined[:, t.J_CLUSTER] -= start
        return {**made, "joined": joined}

    def known_joined(self) -> Ints:
        """Rows of the clusters known when the round began, with their persons."""
        joined = self._joined()
        return joined[joined[:, t.J_CLUSTER] < int(self.tally[t.VISIBLE])]

    def know_joined(self, known: Ints) -> None:
        """Take these for the rows of the clusters known when the round began."""
        joined = self._joined()
        self._write_joined(np.concatenate([known, joined[joined[:, t.J_CLUSTER] >= int(self.tally[t.VISIBLE])]]))

    def _joined(self) -> Ints:
        """Rows of the clusters of the pool, by the cluster's place in it, with the persons' keys."""
        joined: Ints = self.stream.joined[: int(self.tally[t.JOINED])].copy()
        joined[:, t.J_CLUSTER] -= int(self.tally[t.BASE])
        place = joined[:, t.J_CLUSTER]
        return joined[(place >= 0) & (place < int(self.tally[t.POOL_SIZE]))]

    def _write_joined(self, joined: Ints) -> None:
        """Remember these rows and no others; there is room for all pending rows to join them."""
        needed = len(joined) + self._sizes.held
        if self._sizes.joined and needed > self.stream.joined.shape[0]:
            room = np.zeros((2 * needed, self.stream.joined.shape[1]), dtype=np.int64)
            self.stream = self.stream._replace(joined=room)
        self.stream.joined[: len(joined)] = joined
        self.tally[t.JOINED], self.tally[t.BASE] = len(joined), 0

    def keep_clusters(self, is_kept: npt.NDArray[np.bool_]) -> None:
        """Forget all other clusters known when the round began; none is formed yet."""
        count = int(np.count_nonzero(is_kept))
        for name in _OF_CLUSTERS if count else ():
            array = getattr(self.stream, name)
            array[:count] = array[: len(is_kept)][is_kept]
        joined = self.known_joined()
        joined = joined[is_kept[joined[:, t.J_CLUSTER]]] if len(joined) else joined
        joined[:, t.J_CLUSTER] = (np.cumsum(is_kept) - 1)[joined[:, t.J_CLUSTER]]
        self._write_joined(joined)
        self.tally[t.POOL_SIZE] = self.tally[t.VISIBLE] = count

    def add_clusters(self, clusters: Arrays) -> None:
        """Know these clusters too, in place of those formed since the round began."""
        known = int(self.tally[t.VISIBLE])
        count = known + len(clusters["pool_i"])
        if 2 * count + self._sizes.held // int(self._plan[t.K]) + 8 > self._sizes.clusters:
            self._resize(replace_sizes(self._sized, self._sizes, clusters=2 * self._sizes.clusters + 2 * count))
        joined = clusters["joined"].copy()
        joined[:, t.J_CLUSTER] += known
        self._write_joined(np.concatenate([self.known_joined(), joined]))
        for name in _OF_CLUSTERS:
            front(getattr(self.stream, name)[known:], clusters[name])[...] = clusters[name]
        self.tally[t.POOL_SIZE] = self.tally[t.VISIBLE] = count

    # ---- deciding

    def take(self, arrivals: t.Arrivals) -> Decided:
        """Take arrivals in; decide what must be."""
        self.work(arrivals, 0, len(arrivals.rows))
        return self.decided()

    def work(self, arrivals: t.Arrivals, start: int, stop: int) -> None:
        """Take in a run of arrivals; what is decided waits to be asked for."""
        while True:
            start = self._run(self.stream, arrivals, start, stop)
            if not self.tally[t.FULL]:
                return
            self._parts.append(Decided.of(self.stream))
            self._make_room()

    @property
    def decided_groups(self) -> int:
        """Generalizations noted since decisions were last asked for."""
        return sum(len(part.numbers) for part in self._parts) + int(self.tally[t.OUT_GROUPS])

    @property
    def decided_rows(self) -> int:
        """Decisions noted since they were last asked for."""
        return sum(len(part) for part in self._parts) + int(self.tally[t.OUT_ROWS])

    def decided(self) -> Decided:
        """What was decided since last asked."""
        parts, self._parts = [*self._parts, Decided.of(self.stream)], []
        return Decided.joined(parts)

    def finish(self) -> Decided:
        """Decide everything; the clock stands still."""
        self.tally[t.ENDING] = 1
        decided = self.take(self.no_arrivals())
        self.tally[t.ENDING] = 0
        return decided

    def pass_time(self, now: int) -> Decided:
        """Decide what is due by now."""
        self.tally[t.PASSING], self.tally[t.UNTIL] = 1, max(now, int(self.tally[t.NOW]))
        decided = self.take(self.no_arrivals())
        self.tally[t.PASSING] = 0
        return decided

    def no_arrivals(self) -> t.Arrivals:
        """A batch without rows."""
        wide, words = self._sizes.attributes, self._sizes.words
        nothing = np.zeros(0, dtype=np.int64)
        return t.Arrivals(
            np.zeros((wide, 0)), np.zeros((wide, 0)), np.zeros((0, words), dtype=np.int64),
            np.zeros((0, PERSON_WORDS), dtype=np.int64), nothing, nothing, nothing,
            np.zeros((self._sizes.sensitive, 0), dtype=np.int64),
        )  # fmt: skip

    # ---- room

    def _make_room(self) -> None:
        """Grow what was too small; taking away what was noted may have been enough."""
        sizes, tally = self._sizes, self.tally
        self._write_joined(self._joined())
        live, known = int(tally[t.LIVE]), int(tally[t.POOL_SIZE])
        held = sizes.held * (2 if live >= sizes.held * 3 // 4 else 1)
        clusters = sizes.clusters
        if known + held // int(self._plan[t.K]) + 8 > clusters:
            clusters = 2 * (known + held // int(self._plan[t.K]) + 8)
        if (held, clusters) != (sizes.held, sizes.clusters):
            self._resize(replace_sizes(self._sized, sizes, held=held, clusters=clusters))

    def know_values(self, codes: Sequence[SensitiveCodes], is_ordered: Sequence[bool]) -> None:
        """Make room for sensitive values that have come up, and tell the kernels about them."""
        if len(self._told) != len(codes) or any(new is not old for new, old in zip(codes, self._codes, strict=True)):
            self._told = [(0, 0)] * len(codes)
        self._codes, self._is_ordered = codes, is_ordered
        most = max((len(column) for column in codes), default=0)
        if most > self._sizes.values:
            self._resize(replace_sizes(self._sized, self._sizes, values=2 * most))
        self._tell_values()

    def _tell_values(self) -> None:
        s = self.stream
        for number, column in enumerate(self._codes):
            if self._told[number] == (column.version, len(column)):
                continue
            self._told[number] = (column.version, len(column))
            s.sens_i[t.USED, number] = len(column)
            s.sens_i[t.IS_ORDERED, number] = self._is_ordered[number]
            if self._is_ordered[number]:
                s.sens_f[t.ORDER, number, : len(column)] = column.order()
            s.sens_f[t.DECLARED, number, : len(column)] = [column.share(code) for code in range(len(column))]

    def _resize(self, sizes: Sizes) -> None:
        if self.tally[t.OUT_ROWS]:
            self._parts.append(Decided.of(self.stream))
        arrays = self.dump()
        under_way = [t.ENDING, t.PASSING, t.UNTIL, t.SLACK, t.AT]
        kept = self.tally[under_way]
        self._sizes = sizes
        self.load(arrays)
        self.tally[under_way] = kept

    # ---- writing down

    def dump(self) -> Arrays:
        """Everything that matters, in an order that does not depend on how it came about."""
        pack_held(self.stream)
        s, live = self.stream, self.held
        persons = s.slots[t.PEOPLE][t.KEYS : t.KEYS + PERSON_WORDS, s.held_i[t.PERSON, :live]].T
        pool, recent = self._pool_places(), self._recent_places()
        return {
            "tally": s.tally[list(_KEPT_TALLY)],
            "sums": s.sums.copy(),
            "held_f": s.held_f[
                t.VALUES : t.VALUES + 2 * self._sizes.attributes + int(self._plan[t.NEAR]), :live
            ].copy(),
            "held_i": s.held_i[: t.KEPT, :live] * _KEPT_ROWS[:, None],
            "held_m": s.held_i[t.MASKS :, :live].copy(),
            "persons": np.ascontiguousarray(persons),
            "pool_f": s.pool_f[pool],
            "pool_i": s.pool_i[pool][:, : s.pool_i.shape[1] - 2 * (self._sizes.joined > 0)],
            "joined": self._joined(),
            "class_f": s.class_f[pool][..., : int(s.sens_i[t.USED].max(initial=0))],
            "recent": s.recent[:, recent],
        }

    def _pool_places(self) -> Ints:
        s = self.stream
        ring = s.pool_i.shape[0] - 1
        places: Ints = (int(s.tally[t.POOL_HEAD]) + np.arange(int(s.tally[t.POOL_SIZE]))) % ring
        return places

    def _recent_places(self) -> Ints:
        size, end = int(self.tally[t.REF_SIZE]), int(self.tally[t.REF_NEXT])
        return (end - size + np.arange(size)) % max(self._sizes.recent, 1)

    def load(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take over what dump wrote; memory grows as far as needed."""
        self._sizes = self._fitting(arrays)
        s = self.stream = self._fresh()
        self._told = [(0, 0)] * len(self._codes)
        self._tell_values()
        s.tally[list(_KEPT_TALLY)] = arrays["tally"]
        s.sums[:] = arrays["sums"]
        live = arrays["held_f"].shape[1]
        s.held_f[t.VALUES : t.VALUES + len(arrays["held_f"]), :live] = arrays["held_f"]
        s.held_i[: t.KEPT, :live] = arrays["held_i"]
        s.held_i[t.MASKS :, :live] = arrays["held_m"]
        words = self._sizes.words
        masks = np.ascontiguousarray(arrays["held_m"][:words].T)
        take_back(s, live, np.ascontiguousarray(arrays["persons"]), masks)
        for name in _OF_CLUSTERS:
            front(getattr(s, name), arrays[name])[...] = arrays[name]
        if "joined" in arrays:  # a snapshot from before shares were capped has none
            self._write_joined(arrays["joined"])
        self._load_recent(arrays["recent"])

    def _load_recent(self, recent: Ints) -> None:
        s, size = self.stream, recent.shape[1]
        s.recent[:, :size] = recent
        s.tally[t.REF_NEXT] = size % max(self._sizes.recent, 1)
        for number in range(recent.shape[0]):
            s.sens_f[t.RECENT_COUNT, number] = np.bincount(recent[number], minlength=self._sizes.values)

    def _fitting(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Sizes:
        sizes, live = self._sizes, arrays["held_f"].shape[1]
        held = sizes.held
        while held < live + 1:
            held *= 2
        values = max(sizes.values, arrays["class_f"].shape[3], max((len(column) for column in self._codes), default=0))
        clusters = max(sizes.clusters, 2 * len(arrays["pool_i"]) + held // int(self._plan[t.K]) + 8)
        return replace_sizes(self._sized, sizes, held=held, values=values, clusters=clusters)


_KEPT_ROWS: Final = np.array([row not in (t.PERSON, t.PART) for row in range(t.KEPT)], dtype=np.int64)
"""Numbers of people and patterns are given anew."""


def replace_sizes(
    sized: Callable[..., Sizes], sizes: Sizes, *, held: int = 0, values: int = 0, clusters: int = 0
) -> Sizes:
    """The same sizes with some of them changed."""
    return sized(
        columns=sizes.sensitive, recent=sizes.recent, values=values or sizes.values, held=held or sizes.held,
        clusters=clusters or sizes.clusters,
    )  # fmt: skip

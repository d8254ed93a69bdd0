"""What the naive twins of the tuple-stream methods share: values, distance, hull, loss, reuse, diversity, event loop.

Everything is plain lists, dicts and floats, and every decision looks at everything again. Sums over attributes start
at 0.0 and go in the order of the schema, so that compiled code can be compared for equality.

What one call returns (a push, an advance, a flush) is one event, in the order of deciding. It is published as a set; in
which order is stated in publish_order.py.

What the description of the methods leaves open is decided here as follows.

- Numbers are made float64 when they come in; times, deadlines and reuse ages stay whole nanoseconds.
- A record is dead for the first of these reasons: no person (None or empty), no time where time is needed, then the
  attributes in order of the schema. Dead records count as rows, but move no clock and are no arrivals.
- A suppressed row has an empty vector (all None), and None for group, reused and carriers; both its losses are 1.
- Sensitive values: None and NaN are one value of their own, before all others in order. A sensitive column is text
  if any of its values in question is, else numeric.
- l, entropy_l and t must hold for every sensitive column by itself. They are repaired in this order: l, entropy_l, t,
  and each in the first column where it fails. For l a candidate helps if its value there is new; entropy and distance
  there must get better by more than 1e-12, or rounding would decide. After each addition the candidates are gone
  through again from the first. Only the candidates the method would have taken its k-1 from are considered, no others.
- Points of a grid are exact multiples, rounded once to the nearest float; snapping compares values with those floats.
- Weights of a reference (counted or declared) are divided by their sum.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

SLACK = 1e-12
NANOSECONDS = 1e9


class Decision(NamedTuple):
    """What became of one row."""

    row: int
    verdict: str
    group: int | None
    published: tuple[Any, ...]
    delay: int
    reused: bool | None
    carriers: tuple[int, ...] | None
    own_loss: float
    all_loss: float
    reason: str | None = None


# ---- attributes


class Num:
    """A number; it leaves as a range (lo, hi)."""

    kind = "numeric"

    def __init__(
        self, name: str, low: float, high: float, weight: float = 1, grid: float | None = None, outside: str = "refuse"
    ):
        self.name, self.low, self.high, self.weight = name, float(low), float(high), float(weight)
        self.grid = None if grid is None else float(grid)
        self.outside = outside

    def read(self, value: Any) -> float | None:
        """The value to work with; None if it is outside of the domain and not to be clamped."""
        value = float(value)
        if self.outside == "clamp":
            return min(max(value, self.low), self.high)
        return value if self.low <= value <= self.high else None

    def scaled(self, value: float) -> float:
        if self.high == self.low:
            return 0.0
        return (value - self.low) / (self.high - self.low)

    def place(self, value: float) -> float:
        """Where lanes are divided: by the scaled value."""
        return self.scaled(value)

    def distance(self, one: float, other: float) -> float:
        return abs(self.scaled(one) - self.scaled(other))

    def hull(self, values: Sequence[float]) -> tuple[float, float]:
        lo, hi = min(values), max(values)
        if self.grid is not None:
            return self._snapped(lo, math.floor, -1), self._snapped(hi, math.ceil, 1)
        return lo, hi

    def _snapped(self, value: float, to_whole: Callable[[float], int], outward: int) -> float:
        """The nearest point outward, each the float nearest to the exact multiple."""
        low, grid = (Fraction(repr(number)) for number in (self.low, self.grid))
        steps = to_whole((Fraction(repr(value)) - low) / grid)
        while (float(low + steps * grid) - value) * outward < 0:
            steps += outward
        while (float(low + (steps - outward) * grid) - value) * outward >= 0:
            steps -= outward
        return min(max(float(low + steps * grid), self.low), self.high)

    def covers(self, hull: tuple[float, float], value: float) -> bool:
        return hull[0] <= value <= hull[1]

    def loss(self, hull: tuple[float, float]) -> float:
        return self.scaled(hull[1]) - self.scaled(hull[0])


class Cat:
    """A label; it leaves as a node of its tree. `nested` is a dict in dicts, or a list of leaves, under one root."""

    kind = "categorical"

    def __init__(self, name: str, nested: Mapping[str, Any], weight: float = 1):
        self.name, self.weight = name, float(weight)
        ((self.root, below),) = nested.items()
        self.parent: dict[str, str | None] = {self.root: None}
        self.leaves: list[str] = []
        self._plant(self.root, below)
        self.width = Counter(node for leaf in self.leaves for node in self.path(leaf))
        self._ranks = {
            leaf: float(at) for at, leaf in enumerate(sorted(self.leaves, key=lambda one: self.path(one)[::-1]))
        }
        self._distances: dict[tuple[str, str], float] = {}

    def _plant(self, label: str, below: Any) -> None:
        if not below:
            self.leaves.append(label)
            return
        for child in below:
            assert child not in self.parent, "a label may stand in a tree once"
            self.parent[child] = label
            self._plant(child, below[child] if isinstance(below, Mapping) else None)

    def path(self, label: str) -> list[str]:
        """The node and what is above it, up to the root."""
        nodes = [label]
        while (above := self.parent[nodes[-1]]) is not None:
            nodes.append(above)
        return nodes

    def read(self, value: Any) -> str | None:
        return value if value in self.leaves else None

    def place(self, value: str) -> float:
        """Where lanes are divided: by the rank of the leaf, children in the order of their labels."""
        return self._ranks[value]

    def distance(self, one: str, other: str) -> float:
        if (one, other) not in self._distances:  # by far the most frequent question
            self._distances[one, other] = self.loss(self.hull([one, other]))
        return self._distances[one, other]

    def hull(self, values: Sequence[str]) -> str:
        paths = [self.path(value) for value in set(values)]
        return next(node for node in paths[0] if all(node in path for path in paths))

    def covers(self, hull: str, value: str) -> bool:
        return hull in self.path(value)

    def loss(self, hull: str) -> float:
        if self.width[self.root] == 1:
            return 0.0
        return (self.width[hull] - 1) / (self.width[self.root] - 1)


Attribute = Num | Cat


# ---- tuples and clusters


@dataclass(eq=False)
class Held:
    """A tuple that waits; `number` counts usable arrivals, `arrived` is that number or the clock."""

    row: int
    number: int
    person: Hashable
    values: tuple[Any, ...]
    sensitive: tuple[Any, ...]
    arrived: int
    due: int
    late: bool = False

    def __post_init__(self) -> None:
        self.carried = frozenset(at for at, value in enumerate(self.values) if value is not None)


@dataclass(eq=False)
class Cluster:
    """A published generalization; `hulls` has None where no member carried the attribute."""

    hulls: tuple[Any, ...]
    shown: tuple[bool, ...]
    carriers: tuple[int, ...]
    patterns: frozenset[frozenset[int]]
    """The sets of attributes its members carried."""
    classes: list[Counter[Any]]
    """How often each sensitive value stands in its rows, column by column, reused rows included."""
    reference: Sequence[Mapping[Any, float]] = ()
    number: int = -1
    created: int = 0
    rows: Counter[Hashable] = field(default_factory=Counter)
    """How many of its rows are whose, reused rows included."""


def distance(attributes: Sequence[Attribute], one: Held, other: Held) -> float:
    total = weights = 0.0
    for at, attribute in enumerate(attributes):
        if at in one.carried and at in other.carried:
            total += attribute.weight * attribute.distance(one.values[at], other.values[at])
            weights += attribute.weight
    return total / weights if weights else 1.0


def hulls(attributes: Sequence[Attribute], members: Sequence[Held]) -> tuple[Any, ...]:
    """The least range or node over the members that carry the attribute, None where none does."""
    made: list[Any] = []
    for at, attribute in enumerate(attributes):
        values = [one.values[at] for one in members if at in one.carried]
        made.append(attribute.hull(values) if values else None)
    return tuple(made)


def hull_loss(attributes: Sequence[Attribute], members: Sequence[Held]) -> float:
    """Mean loss over all attributes of the members' hull; an attribute that no one carries costs nothing."""
    total = weights = 0.0
    for attribute, hull in zip(attributes, hulls(attributes, members), strict=True):
        total += attribute.weight * (0.0 if hull is None else attribute.loss(hull))
        weights += attribute.weight
    return total / weights


def own_loss(attributes: Sequence[Attribute], one: Held, cluster: Cluster) -> float:
    """Mean loss over the attributes the tuple carries; 1 for one that is not shown."""
    total = weights = 0.0
    for at, attribute in enumerate(attributes):
        if at in one.carried:
            total += attribute.weight * (attribute.loss(cluster.hulls[at]) if cluster.shown[at] else 1.0)
            weights += attribute.weight
    return total / weights if weights else 0.0


def all_loss(attributes: Sequence[Attribute], published: Sequence[Any]) -> float:
    """Mean loss over all attributes of what a row shows; 1 for one it does not show."""
    total = weights = 0.0
    for attribute, shown in zip(attributes, published, strict=True):
        total += attribute.weight * (1.0 if shown is None else attribute.loss(shown))
        weights += attribute.weight
    return total / weights


def cost(own: float, delay: float, alpha: float) -> float:
    """Equation 8 of the FAST paper; the delay in arrivals or seconds."""
    return own * (1 + alpha) ** delay


def people(tuples: Iterable[Held]) -> set[Hashable]:
    return {one.person for one in tuples}


# ---- diversity of the sensitive values


def known(counts: Mapping[Any, float]) -> dict[Any, float]:
    """Counts without the missing value."""
    return {value: count for value, count in counts.items() if value is not None and count}


def entropy(counts: Mapping[Any, float]) -> float:
    total = sum(counts.values())
    return -sum(count / total * math.log(count / total) for count in counts.values() if count)


def in_order(value: Any) -> tuple[bool, Any]:
    return (value is not None, value)


def closeness(counts: Mapping[Any, float], reference: Mapping[Any, float]) -> float:
    """The greater of two distances: of all values, a missing one included, and of the known ones."""
    return max(apart(counts, reference), apart(known(counts), known(reference)))


def apart(counts: Mapping[Any, float], reference: Mapping[Any, float]) -> float:
    """Distance of two distributions: total variation for text, ordered earth mover's distance for numbers."""
    if not counts or not reference:
        return 1.0 if counts else 0.0
    values = sorted({value for one in (counts, reference) for value in one if one[value]}, key=in_order)
    ours, theirs = sum(counts.values()), sum(reference.values())
    more = [counts.get(value, 0) / ours - reference.get(value, 0) / theirs for value in values]
    if any(isinstance(value, str) for value in values):
        return 0.5 * sum(abs(one) for one in more)
    if len(values) == 1:
        return 0.0
    moved = carried = 0.0
    for one in more:
        carried += one
        moved += abs(carried)
    return moved / (len(values) - 1)


@dataclass(frozen=True)
class Diversity:
    """What a class must keep of its sensitive values; None asks for nothing."""

    distinct: int | None = None
    entropy: float | None = None
    t: float | None = None

    def failing(
        self, classes: Sequence[Counter[Any]], reference: Sequence[Mapping[Any, float]]
    ) -> tuple[str, int] | None:
        """The first of the three that does not hold, and the first column it fails in."""
        for name, holds in (("l", self._is_rich), ("entropy_l", self._is_even), ("t", self._is_close)):
            for at, column in enumerate(classes):
                if not holds(column, reference[at] if reference else {}):
                    return name, at
        return None

    def helps(
        self,
        failing: tuple[str, int],
        before: Sequence[Counter[Any]],
        added: Held,
        reference: Sequence[Mapping[Any, float]],
    ) -> bool:
        """Whether the class gets better where it fails if this tuple joins it."""
        name, at = failing
        old, new = before[at], with_values(before, added.sensitive)[at]
        if name == "l":
            return len(known(new)) > len(known(old))
        if name == "entropy_l":
            return entropy(known(new)) > entropy(known(old)) + SLACK
        return closeness(new, reference[at]) < closeness(old, reference[at]) - SLACK

    def _is_rich(self, column: Counter[Any], _: Mapping[Any, float]) -> bool:
        return self.distinct is None or not known(column) or len(known(column)) >= self.distinct

    def _is_even(self, column: Counter[Any], _: Mapping[Any, float]) -> bool:
        is_even = self.entropy is None or entropy(known(column)) >= math.log(self.entropy) - SLACK
        return is_even or not known(column)

    def _is_close(self, column: Counter[Any], reference: Mapping[Any, float]) -> bool:
        return self.t is None or closeness(column, reference) <= self.t + SLACK


def with_values(classes: Sequence[Counter[Any]], sensitive: Sequence[Any]) -> list[Counter[Any]]:
    return [column + Counter([value]) for column, value in zip(classes, sensitive, strict=True)]


def count_values(rows: Iterable[Sequence[Any]]) -> list[Counter[Any]]:
    return [Counter(column) for column in zip(*rows, strict=True)]


# ---- the event loop


@dataclass
class TupleTwin:
    """A method as the event loop sees it. A method says whom the expiring tuple may leave with (`candidates`).

    Count mode (`by="count"`): tuple i is due when arrival i + deadline has been inserted. Time mode: `time`,
    `deadline` and `reuse` are whole nanoseconds; what is due leaves before the arrival that moved the clock comes in.
    """

    attributes: Sequence[Attribute]
    k: int = 5
    deadline: int = 30
    reuse: int = 20
    missing: str = "own"
    min_carriers: int | None = None
    l: int | None = None  # noqa: E741
    entropy_l: float | None = None
    t: float | None = None
    reference: int | Sequence[Mapping[Any, float]] = 1000
    groups: bool = False
    max_share: float | None = None
    by: str = "count"
    imputes: bool = field(default=False, init=False)
    """Whether paper mode shows a range also in rows that carry no value."""
    exact_reuse: bool = field(default=False, init=False)
    """Whether a cluster may be reused by tuples with exactly its members' attributes only."""
    may_be_late: bool = field(default=False, init=False)
    """Whether a due tuple that cannot leave stays held, marked late, instead of being suppressed."""
    step: int = field(default=1, init=False)
    """What is added to the number of a cluster to number the next."""

    def __post_init__(self) -> None:
        self.diversity = Diversity(self.l, self.entropy_l, self.t)
        self.rows = 0
        self.arrivals = 0
        self.clusters = 0
        self.clock: int | None = None
        self.held: dict[int, Held] = {}
        self.rare_patterns = 0
        self.at_end: int | None = None
        """How many people were pending when the flush began; 0 if all their tuples could be published together."""
        self.pool: list[Cluster] = []
        self.recent: deque[tuple[Any, ...]] = deque(maxlen=self.reference if isinstance(self.reference, int) else 0)

    # -- what comes in

    def push(
        self, person: Hashable, values: Sequence[Any], time: int | None = None, sensitive: Sequence[Any] = ()
    ) -> list[Decision]:
        row, self.rows = self.rows, self.rows + 1
        read, reason = self._read(person, values, time)
        if reason is not None:
            return [Decision(row, "dead", None, (), 0, None, None, 0.0, 0.0, reason)]
        decisions = self.advance(time)
        arrived = self.arrivals if self.by == "count" else self.clock
        one = Held(
            row, self.arrivals, person, read, tuple(map(blank_to_none, sensitive)), arrived, arrived + self.deadline
        )
        self.arrivals += 1
        self.held[one.number] = one
        self.recent.append(one.sensitive)
        self.insert(one)
        if self.by == "count":
            decisions += self.decide_due()
        return decisions + self.after_insert(one)

    def advance(self, now: int | None) -> list[Decision]:
        if self.by == "count":
            return []
        self.clock = now if self.clock is None else max(self.clock, now)
        return self.decide_due()

    def flush(self) -> list[Decision]:
        self.at_end = self.divided_people()
        decisions: list[Decision] = []
        while self.held:
            decisions += self.decide(next(iter(self.held.values())), self.now, can_wait=False)
        self.at_end = None
        return decisions

    @property
    def now(self) -> int:
        return self.arrivals - 1 if self.by == "count" else self.clock

    def _read(self, person: Hashable, values: Sequence[Any], time: int | None) -> tuple[tuple[Any, ...], str | None]:
        if person is None or person == "":
            return (), "null-person"
        if self.by == "time" and time is None:
            return (), "null-time"
        read = []
        for attribute, value in zip(self.attributes, map(blank_to_none, values), strict=True):
            taken = None if value is None else attribute.read(value)
            if value is not None and taken is None:
                return (), f"{'outside' if attribute.kind == 'numeric' else 'unknown'}:{attribute.name}"
            read.append(taken)
        return tuple(read), None

    # -- what a method may do otherwise

    def insert(self, one: Held) -> None:
        """A tuple came in."""

    def after_insert(self, one: Held) -> list[Decision]:
        """A tuple came in, and everything due has been decided."""
        return []

    def alike(self, first: Held) -> list[Held]:
        """Pending tuples that may be published with one, itself among them."""
        return [one for one in self.held.values() if self.missing != "own" or one.carried == first.carried]

    def candidates(self, first: Held) -> list[Held] | None:
        """Tuples the expiring one may form a cluster with, itself among them; None if they are too few people."""
        raise NotImplementedError

    def reusable(self, cluster: Cluster) -> bool:
        """Whether a new cluster is kept for reuse."""
        return True

    def keep(self, cluster: Cluster) -> None:
        self.pool.append(cluster)

    def reported(self, loss: float, one: Held, now: int) -> float:
        return loss

    # -- deciding

    def decide_due(self) -> list[Decision]:
        decisions: list[Decision] = []
        while True:
            oldest = next((one for one in self.held.values() if not one.late), None)
            if oldest is None or oldest.due > self.now:
                return decisions
            now = oldest.due if self.by == "time" else self.now
            decisions += self.decide(oldest, now, can_wait=self.may_be_late)
            oldest.late = True  # of no consequence if it has left

    def decide(self, first: Held, now: int, *, can_wait: bool = False) -> list[Decision]:
        """Reuse when not worse, else a new cluster, else suppression (or, if it can wait, nothing)."""
        self.forget_old(now)
        members = self.new_members(first)
        fresh = None if members is None else self.form(members)
        old = self.best_reusable(first)
        if old is not None and (fresh is None or self.loss(first, old) <= self.loss(first, fresh)):
            return [self.release_by_reuse(first, old, now)]
        if fresh is not None:
            return self.publish([(members, fresh)], now)
        return [] if can_wait else [self.suppress(first, now)]

    def new_members(self, first: Held) -> list[Held] | None:
        near = self.candidates(first)
        return None if near is None else self.choose(first, near)

    def choose(self, first: Held, tuples: Iterable[Held]) -> list[Held] | None:
        """The tuple and its k-1 nearest of other people, and more if diversity asks for them."""
        ranked = sorted(
            (one for one in tuples if one is not first),
            key=lambda one: (distance(self.attributes, first, one), one.number),
        )
        members = [first]
        for one in ranked:
            if len(members) < self.k and one.person not in people(members):
                members.append(one)
        return self.diversify(members, ranked) if len(members) >= self.k else None

    def diversify(self, members: list[Held], ranked: list[Held]) -> list[Held] | None:
        reference = self.reference_now()
        while True:
            classes = count_values(one.sensitive for one in members)
            failing = self.diversity.failing(classes, reference)
            if failing is None:
                return members
            taken = people(members)
            helping = (
                one
                for one in ranked
                if one.person not in taken and self.diversity.helps(failing, classes, one, reference)
            )
            added = next(helping, None)
            if added is None:
                return None
            members = [*members, added]

    def reference_now(self) -> Sequence[Mapping[Any, float]]:
        if self.t is None:
            return ()
        return count_values(self.recent) if isinstance(self.reference, int) else self.reference

    # -- clusters

    def form(self, members: Sequence[Held]) -> Cluster:
        places = range(len(self.attributes))
        carriers = tuple(len(people(one for one in members if at in one.carried)) for at in places)
        everyone = [all(at in one.carried for one in members) for at in places]
        return Cluster(
            hulls(self.attributes, members),
            tuple(self.is_shown(carriers[at], everyone[at]) for at in places),
            carriers,
            frozenset(one.carried for one in members),
            count_values(one.sensitive for one in members),
            self.reference_now(),
            rows=Counter(one.person for one in members),
        )

    def is_fair(self, rows: Counter[Hashable]) -> bool:
        return self.max_share is None or max(rows.values()) <= self.max_share * rows.total() + 1e-9

    def is_shown(self, carriers: int, by_everyone: bool) -> bool:
        if self.missing == "paper":
            return carriers >= 1
        if self.missing in ("own", "hidden"):
            return by_everyone
        return carriers >= (math.ceil(self.k / 2) if self.min_carriers is None else self.min_carriers)

    def forget_old(self, now: int) -> None:
        self.pool = [cluster for cluster in self.pool if now - cluster.created <= self.reuse]

    def best_reusable(self, one: Held) -> Cluster | None:
        """The one of least loss, of equals the oldest."""
        if self.groups:
            return None
        fitting = [cluster for cluster in self.pool if self.may_reuse(one, cluster)]
        return min(fitting, key=lambda cluster: self.loss(one, cluster), default=None)

    def may_reuse(self, one: Held, cluster: Cluster) -> bool:
        if not all(
            cluster.shown[at] and self.attributes[at].covers(cluster.hulls[at], one.values[at]) for at in one.carried
        ):
            return False
        if self.missing == "hidden" and any(shown and at not in one.carried for at, shown in enumerate(cluster.shown)):
            return False
        if (self.exact_reuse or self.missing == "own") and cluster.patterns != {one.carried}:
            return False
        if not self.is_fair(cluster.rows + Counter([one.person])):
            return False
        return self.diversity.failing(with_values(cluster.classes, one.sensitive), cluster.reference) is None

    def loss(self, one: Held, cluster: Cluster) -> float:
        return own_loss(self.attributes, one, cluster)

    # -- what goes out

    def publish(self, formed: Sequence[tuple[Sequence[Held], Cluster]], now: int) -> list[Decision]:
        """New clusters are numbered as they come; the rows of all of them leave in the order they arrived."""
        leaving = []
        for members, cluster in formed:
            cluster.number, cluster.created = self.clusters, now
            self.clusters += self.step
            if self.reusable(cluster):
                self.keep(cluster)
            leaving += [(one, cluster) for one in members]
        leaving.sort(key=lambda pair: pair[0].number)
        return [self.release(one, cluster, now, reused=False) for one, cluster in leaving]

    def release_by_reuse(self, one: Held, cluster: Cluster, now: int) -> Decision:
        cluster.classes = with_values(cluster.classes, one.sensitive)
        cluster.rows[one.person] += 1
        return self.release(one, cluster, now, reused=True)

    def release(self, one: Held, cluster: Cluster, now: int, *, reused: bool) -> Decision:
        del self.held[one.number]
        published = self.published(one, cluster)
        return Decision(
            one.row,
            "released",
            cluster.number,
            published,
            now - one.arrived,
            reused,
            cluster.carriers,
            self.reported(self.loss(one, cluster), one, now),
            self.reported(all_loss(self.attributes, published), one, now),
        )

    def published(self, one: Held, cluster: Cluster) -> tuple[Any, ...]:
        own_only = self.missing == "paper" and not self.imputes
        return tuple(
            hull if shown and (at in one.carried or not own_only) else None
            for at, (hull, shown) in enumerate(zip(cluster.hulls, cluster.shown, strict=True))
        )

    def divided_people(self) -> int:
        """How many people are pending; 0 if all their tuples may be published together."""
        is_divided = self.missing == "own" and any(None in one.values for one in self.held.values())
        return len(people(self.held.values())) if is_divided else 0

    def suppress(self, one: Held, now: int) -> Decision:
        pending = self.divided_people() if self.at_end is None else self.at_end
        self.rare_patterns += len(people(self.alike(one))) < self.k <= pending
        del self.held[one.number]
        empty = (None,) * len(self.attributes)
        return Decision(one.row, "suppressed", None, empty, now - one.arrived, None, None, 1.0, 1.0)


def blank_to_none(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value

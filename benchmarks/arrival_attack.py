"""What knowing a tuple's arrival reveals: python -m benchmarks.arrival_attack [--data FOLDER] [--rows N]

An attacker looks for the published row of one tuple. Every attacker knows the settings.

- `class`: knows the tuple's class. The baseline: k-anonymity allows 1/k.
- `arrival`: knows the number of the tuple's arrival.
- `arrival + values`: also knows its quasi-identifiers.

A live attacker sees at which arrival each row is published, and the file. An attacker afterwards has the file only.
Both know how often rows of each kind (how long after the arrival, at which place among equal neighbours) are the one
they look for, learned from the tuples with even arrival numbers; the tuples with odd ones are attacked.

`before` is the same release with the rows of each event put back into the order in which they were once published: by
decision, and in a decision by arrival. Per tuple there is one best guess (the average over equally good ones), and the
tuple is pinned where only one row is possible at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.measure import Report, parse, parser
from shoal import Castle, Fads, Fast, IotAnonymization, KVarp, LeastLoss
from shoal.reproduce.data.adult import read_adult
from shoal.reproduce.data.adult_imitation import imitate_adult
from shoal.reproduce.data.streams import Stream, remove_values

Ints = np.ndarray[Any, np.dtype[np.int64]]
Floats = np.ndarray[Any, np.dtype[np.float64]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]

METHODS = {
    "fads": Fads, "fast": Fast, "k-varp": KVarp, "iot-anonymization": IotAnonymization, "castle": Castle,
    "least-loss": LeastLoss,
}  # fmt: skip
WITH_GAPS = {"k-varp", "iot-anonymization"}
"""Without missing values these decide as FADS does."""
KS = (5, 10, 50)
LAGS, PLACES = 40, 8
ALONE, FIRST, OTHERS = 0, 1, 2
"""Kinds of places among equal neighbours; others are divided into PLACES."""


# ---- what was published


@dataclass(frozen=True)
class Published:
    """Rows of a release in order."""

    arrived: Ints
    """The arrival number of each: what the attacker looks for."""
    event: Ints
    """The arrival at which each was published."""
    cluster: Ints
    is_reused: Bools
    look: Ints
    """A number for each different combination of published quasi-identifiers."""
    suppressed: int

    def __len__(self) -> int:
        return len(self.arrived)

    def as_before(self, *, by_arrival: bool) -> Published:
        """The same rows in the order in which they were published before it was made secret."""
        first, formed = self.arrived.copy(), ~self.is_reused
        oldest = np.full(int(self.cluster.max()) + 1, np.iinfo(np.int64).max)
        np.minimum.at(oldest, self.cluster[formed], self.arrived[formed])
        if not by_arrival:
            first[formed] = oldest[self.cluster[formed]]
        order = np.lexsort((self.arrived, first, self.event))
        names = ("arrived", "event", "cluster", "is_reused", "look")
        return replace(self, **{name: getattr(self, name)[order] for name in names})


def publish(stream: Stream, method: str, settings: Mapping[str, Any]) -> tuple[Published, Bools]:
    """Run a method without its end; return what was published, and which clusters cover which tuples."""
    made = METHODS[method](stream.schema, key=bytes(16), **settings)
    release = made.push_batch(stream.table)
    trace = release.trace.filter(pc.equal(release.trace.column("verdict").cast(pa.string()), "released"))
    names, first, cluster = np.unique(trace.column("group").to_numpy(), return_index=True, return_inverse=True)
    shown = release.rows.select(list(stream.quasi)).take(pa.array(first)).to_pylist()
    looks: dict[str, int] = {}
    look = np.array([looks.setdefault(str(row), len(looks)) for row in shown])
    covers = np.ones((len(stream), len(names)), np.bool_)
    for name in stream.quasi:
        covers &= covering(stream, name, [row[name] for row in shown])
    published = Published(
        arrived=trace.column("row").to_numpy(),
        event=trace.column("event").to_numpy(),
        cluster=cluster,
        is_reused=np.asarray(trace.column("reused").to_numpy(zero_copy_only=False), np.bool_),
        look=look[cluster],
        suppressed=int(made.counts["suppressed"]),
    )
    return published, covers


def covering(stream: Stream, name: str, shown: Sequence[Any]) -> Bools:
    """For every tuple and every published value of one column: whether the value may be the tuple's; nulls may be."""
    column = stream.table.column(name).combine_chunks()
    if name in stream.domains:
        values = column.cast(pa.float64()).to_numpy(zero_copy_only=False)[:, None]
        low = np.array([-np.inf if cell is None else cell["lo"] for cell in shown])
        high = np.array([np.inf if cell is None else cell["hi"] for cell in shown])
        return ~((values < low) | (values > high))
    column = column.dictionary_encode(null_encoding="encode")
    below = {**dict(leaves_below(stream.trees[name])), None: {*column.dictionary.to_pylist()}}
    found = [[value is None or value in below[label] for label in shown] for value in column.dictionary.to_pylist()]
    return np.array(found)[column.indices.to_numpy()]


def leaves_below(tree: Any) -> Iterator[tuple[str, set[str]]]:
    """Every label of a tree with its leaves."""
    for label in tree:
        inner = list(leaves_below(tree[label])) if isinstance(tree, Mapping) and tree[label] else []
        yield from inner
        yield label, set().union(*(leaves for _, leaves in inner)) if inner else {label}


# ---- the attackers


@dataclass(frozen=True)
class Sight:
    """What an attacker sees of every row: when it was published, and where it stands among equal neighbours."""

    moment: Ints
    """The arrival at which it was published, or its place in the file."""
    kind: Ints
    earliest: int
    latest: int
    """The moment less the arrival of the tuple lies between these."""
    is_single: bool
    """Whether a row published a whole deadline after an arrival must be of an event with that tuple."""
    puts_first: bool
    """Whether that tuple is known to come first."""

    def candidates(self, arrival: int) -> Ints:
        """Rows that may be of the tuple."""
        first = np.searchsorted(self.moment, arrival + self.earliest, side="left")
        last = np.searchsorted(self.moment, arrival + self.latest, side="right")
        if self.is_single:
            due = np.searchsorted(self.moment, arrival + self.latest, side="left")
            if due < last:
                return np.arange(due, due + 1 if self.puts_first else last)
        return np.arange(first, last)

    def cell(self, rows: Ints, arrival: int) -> Ints:
        """The kind of each row as seen by an attacker who knows this arrival."""
        lag = (self.moment[rows] - arrival - self.earliest) * LAGS // (self.latest - self.earliest)
        return lag * (OTHERS + PLACES) + self.kind[rows]


def kinds(blocks: Ints) -> Ints:
    """Of every row: alone among its neighbours, the first of its block, or where in the block it stands."""
    starts = np.flatnonzero(np.append(True, np.diff(blocks) != 0))
    size = np.diff(np.append(starts, len(blocks)))
    place, sizes = np.arange(len(blocks)) - np.repeat(starts, size), np.repeat(size, size)
    found = OTHERS + (place - 1) * PLACES // np.maximum(sizes - 1, 1)
    found[place == 0] = FIRST
    found[sizes == 1] = ALONE
    return found


def live(published: Published, settings: Mapping[str, Any], method: str, *, is_before: bool) -> Sight:
    """What one sees who watches."""
    blocks = np.cumsum(np.append(0, (np.diff(published.event) != 0) | (np.diff(published.look) != 0)))
    is_single = method != "fast"
    return Sight(published.event, kinds(blocks), 0, settings["deadline"], is_single, is_single and is_before)


def afterwards(published: Published, settings: Mapping[str, Any], _: str, *, is_before: bool) -> Sight:
    """What one sees who reads the file."""
    reach = settings["deadline"]
    blocks = np.cumsum(np.append(0, np.diff(published.look) != 0))
    earliest = -reach - published.suppressed
    return Sight(np.arange(len(published)), kinds(blocks), earliest, reach, is_single=False, puts_first=False)


@dataclass(frozen=True)
class Found:
    """How well an attack went, as shares of the tuples attacked."""

    pinned: float
    guessed: float


def attack(published: Published, sight: Sight, covers: Bools | None, targets: Ints, known: Ints) -> Found:
    """Look for the rows of the targets; rows of `known` tuples teach what to look for."""
    odds = learn(published, sight, known)
    pinned, guessed = 0, 0.0
    for arrival in targets.tolist():
        rows = sight.candidates(arrival)
        if covers is not None:
            rows = rows[covers[arrival, published.cluster[rows]]]
        pinned += len(rows) == 1
        weight = odds[sight.cell(rows, arrival)]
        best = rows[weight >= weight.max(initial=0.0) * (1 - 1e-12)]
        guessed += float(np.mean(published.arrived[best] == arrival)) if len(best) else 0.0
    return Found(pinned / len(targets), guessed / len(targets))


def learn(published: Published, sight: Sight, known: Ints) -> Floats:
    """How much more often a row of each kind is the one looked for than any other candidate is."""
    cells = (LAGS + 1) * (OTHERS + PLACES)
    hits, all_seen = np.zeros(cells), np.full(cells, 0.5)
    for arrival in known.tolist():
        rows = sight.candidates(arrival)
        seen = sight.cell(rows, arrival)
        all_seen += np.bincount(seen, minlength=cells)
        hits += np.bincount(seen[published.arrived[rows] == arrival], minlength=cells)
    return (hits + 1e-9) / all_seen


def class_alone(published: Published, targets: Ints) -> float:
    """How often an attacker who knows the class guesses right."""
    size = np.bincount(published.look)
    place = np.full(int(max(published.arrived.max(), targets.max())) + 1, -1)
    place[published.arrived] = np.arange(len(published))
    return float(np.mean(1 / size[published.look[place[targets]]]))


# ---- the tables


@dataclass(frozen=True)
class Attacked:
    """One setting under all attacks."""

    method: str
    k: int
    groups: bool
    class_alone: float
    reused: float
    found: dict[tuple[str, bool, bool], Found]
    """By how the attacker looks (live, afterwards), what they know (values too), and the order (before)."""

    def change(self, how: str, name: str, *, knows_values: bool) -> str:
        """Percent before and after."""
        before, after = (getattr(self.found[how, knows_values, is_before], name) for is_before in (True, False))
        return f"{100 * before:.1f} → {100 * after:.1f}"


def lines(attacked: Sequence[Attacked], how: str) -> Iterator[list[str]]:
    """A line for every method, with and without groups; in each cell the figures of all k."""
    for first in {(one.groups, one.method): one for one in attacked}.values():
        same = [one for one in attacked if (one.groups, one.method) == (first.groups, first.method)]
        cells = [
            " · ".join(one.change(how, name, knows_values=knows_values) for one in same)
            for name, knows_values in (("pinned", True), ("guessed", False), ("guessed", True))
        ]
        alone = " · ".join(f"{100 * one.class_alone:.1f}" for one in same)
        yield [first.method, str(first.groups).lower(), alone, *cells]


def attack_method(stream: Stream, method: str, settings: Mapping[str, Any], tried: int) -> Attacked:
    """Run a method, and all attacks on what it published."""
    published, covers = publish(stream, method, settings)
    before = published.as_before(by_arrival=method == "castle")
    settled = published.arrived[published.arrived < len(stream) - settings["deadline"]]
    draw = np.random.default_rng(1)
    targets, known = (draw.permutation(settled[settled % 2 == odd])[:tried] for odd in (1, 0))
    sights: dict[str, Callable[..., Sight]] = {"live": live, "afterwards": afterwards}
    found = {
        (how, knows, is_before): attack(
            shown, see(shown, settings, method, is_before=is_before), covers if knows else None, targets, known
        )
        for how, see in sights.items()
        for is_before, shown in ((True, before), (False, published))
        for knows in (False, True)
    }
    for knows in (False, True):  # who watches has the file too
        for is_before in (False, True):
            both = [found[how, knows, is_before] for how in sights]
            found["live", knows, is_before] = Found(max(one.pinned for one in both), max(one.guessed for one in both))
    alone = class_alone(published, targets)
    reused = float(published.is_reused.mean())
    return Attacked(method, settings["k"], settings["groups"], alone, reused, found)


COLUMNS = [
    "method", "`groups`", "class alone: guessed", "arrival + values: pinned", "arrival: guessed",
    "arrival + values: guessed",
]  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Attack every method and print tables."""
    options = parser(__doc__, data="UCI's adult.data")
    options.add_argument("--rows", type=int, help="tuples in the stream (default: 8,000; 600 when tiny)")
    given = parse(options, arguments)
    rows = given.rows or (600 if given.tiny else 8_000)
    tried = 60 if given.tiny else 600
    stream = (read_adult(given.data) if given.data else imitate_adult(rows, seed=1)).head(rows)
    report = Report(__file__, given, data=stream.origin)
    gaps = remove_values(stream, at_most=3, seed=1)
    deadline = min(2000, len(stream) // 4)
    ks = KS[:1] if given.tiny else KS
    attacked = []
    for groups in (False, True):
        for method in METHODS:
            for k in ks:
                reuse = deadline // (2 if method == "fast" else 10)  # longer than a round of FAST, or nothing is reused
                settings = {"k": k, "deadline": deadline, "reuse": reuse, "groups": groups}
                attacked.append(attack_method(gaps if method in WITH_GAPS else stream, method, settings, tried))
                print(method, k, groups, flush=True)
    for how in ("live", "afterwards"):
        report.table(how, COLUMNS, lines(attacked, how))
    report.figures["reused"] = {f"{one.method} k={one.k} groups={one.groups}": one.reused for one in attacked}
    report.write()


if __name__ == "__main__":
    main()

"""What combinations cost: rows that leave with combine = "k" beside plain z, how near the least loss, how long.

python -m benchmarks.z_combine [--data FOLDER] [--only gap price growth] [--k 2 5 10]

Generated visits, and where a folder is given the real streams that are in it: checkins.csv(.gz) with user, time, venue
and ratings.csv(.gz) with userId, timestamp, movieId, there or one folder below.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
from tests.reference.z_combining import as_entries, least_loss

from shoal.anonymizers.z_anonymity import ZAnonymity
from shoal.anonymizers.z_sets import shared_by
from shoal.testing.visits import make_visits


@dataclass(frozen=True)
class Stream:
    """Events in order of time, and the window and thresholds to try on them."""

    name: str
    table: pa.Table
    window: str
    zs: tuple[int, ...]


def generated(people: int, events: int) -> Stream:
    """A day of visits."""
    visits = make_visits(people=people, sites=max(people // 2, 500), events=events)
    table = pa.table(
        {
            "ts": pa.array(visits.times, pa.timestamp("ns")),
            "user": pa.array(visits.people).take(pa.array(visits.person)),
            "item": pa.array(visits.sites).take(pa.array(visits.site)),
        }
    )
    return Stream(f"visits of {people:,} people", table, "1h", (5, 20))


def real(folder: Path) -> list[Stream]:
    """The real streams of a folder."""
    found = []
    for name, columns, window in (
        ("checkins", ("time", "user", "venue"), "168h"),
        ("ratings", ("timestamp", "userId", "movieId"), "8760h"),
    ):
        for path in sorted([*folder.glob(f"{name}.csv*"), *folder.glob(f"*/{name}.csv*")])[:1]:
            table = arrow_csv.read_csv(path).select(columns).rename_columns(["ts", "user", "item"])
            stream = Stream(f"{name} ({path.parent.name})", table.sort_by("ts"), window, (3, 5, 10))
            found.append(stream)
    return found


def run(stream: Stream, **settings: Any) -> tuple[pa.Table, float]:
    """What leaves, and the seconds it took."""
    begun = time.perf_counter()
    method = ZAnonymity(
        person="user", time="ts", attribute="item", window=stream.window, max_gap="8760h", key=bytes(16), **settings
    )
    rows = [method.push_batch(stream.table).rows, method.flush().rows]
    return pa.Table.from_batches(rows), time.perf_counter() - begun


def entries(released: pa.Table) -> tuple[Any, Any, Any]:
    """(person of an epoch, item, rows) of a release; a pseudonym is a person in one epoch."""
    people = np.asarray(released.column("user").combine_chunks().dictionary_encode().indices, np.int64)
    items = np.asarray(pc.cast(released.column("item"), pa.string()).combine_chunks().dictionary_encode().indices)
    kinds = int(items.max(initial=0)) + 1
    pairs, counts = np.unique(people * kinds + items, return_counts=True)
    return pairs // kinds, pairs % kinds, counts.astype(np.int64)


def sets_of(owners: Any, items: Any) -> dict[int, frozenset[int]]:
    """The set of each person."""
    found: dict[int, set[int]] = {}
    for owner, item in zip(owners.tolist(), items.tolist(), strict=True):
        found.setdefault(owner, set()).add(item)
    return {owner: frozenset(shown) for owner, shown in found.items()}


def by_epoch(released: pa.Table, stream: Stream) -> list[pa.Table]:
    """A release cut at the ends of epochs."""
    if not released.num_rows:
        return []
    moments = released.column("ts")
    seconds = (
        moments.cast(pa.timestamp("s"), safe=False).cast(pa.int64()) if pa.types.is_timestamp(moments.type) else moments
    )
    epochs = np.asarray(seconds) // (int(stream.window.removesuffix("h")) * 3600)
    bounds = [0, *(np.flatnonzero(np.diff(epochs)) + 1).tolist(), len(epochs)]
    return [released.slice(start, stop - start) for start, stop in pairwise(bounds)]


def shared_people(released: pa.Table, stream: Stream, k: int) -> tuple[int, int, int]:
    """People shown (one an epoch), those whose set k people have, and the rows of these: all that would be left
    if everybody else were dropped whole."""
    people = alike = rows = 0
    for part in by_epoch(released, stream):
        owners, items, counts = entries(part)
        sets = sets_of(owners, items)
        sizes = Counter(sets.values())
        is_shared = {owner: sizes[shown] >= k for owner, shown in sets.items()}
        people += len(sets)
        alike += sum(is_shared.values())
        rows += int(counts[[is_shared[owner] for owner in owners.tolist()]].sum()) if len(owners) else 0
    return people, alike, rows


def pushed_up(owners: Any, items: Any, weights: Any, k: int) -> int:
    """Rows left when items are ranked by support and people who are fewer than k drop their rarest, again and again."""
    support = np.bincount(items, weights=weights) if len(items) else np.zeros(1)
    ranked = {
        owner: tuple(sorted(shown, key=lambda item: (-support[item], item)))
        for owner, shown in sets_of(owners, items).items()
    }
    for length in range(max(map(len, ranked.values()), default=0), 0, -1):
        sizes = Counter(shown for shown in ranked.values() if len(shown) == length)
        for owner, shown in ranked.items():
            if len(shown) == length and sizes[shown] < k:
                ranked[owner] = shown[:-1]
    kept = {owner: set(shown) for owner, shown in ranked.items()}
    pairs = zip(owners.tolist(), items.tolist(), weights.tolist(), strict=True)
    return sum(weight for owner, item, weight in pairs if item in kept[owner])


def price(stream: Stream, ks: list[int]) -> None:
    """Rows and people with and without combinations."""
    print(f"\n{stream.name}: {stream.table.num_rows:,} rows, window and epoch {stream.window}")
    print(
        "  z   k | rows: plain  combined  of plain | whole people  prefix tree | people in company: plain  combined | s"
    )
    for z in stream.zs:
        plain, plain_s = run(stream, z=z)
        if not plain.num_rows:
            print(f"{z:3}     | nothing leaves")
            continue
        for k in ks:
            combined, seconds = run(stream, z=z, combine="k", k=k)
            people, alike, whole = shared_people(plain, stream, k)
            shown, company, _ = shared_people(combined, stream, k)
            pushed = sum(pushed_up(*entries(part), k) for part in by_epoch(plain, stream))
            print(
                f"{z:3} {k:3} | {plain.num_rows:10,} {combined.num_rows:9,}   {combined.num_rows / plain.num_rows:6.1%}"
                f" |      {whole / plain.num_rows:6.1%}      {pushed / plain.num_rows:6.1%} "
                f"|   {alike / people:6.1%} of {people:7,}   {company / max(shown, 1):6.1%} of {shown:7,} "
                f"| {plain_s:.1f} → {seconds:.1f}",
                flush=True,
            )


def made_sets(people: int, kinds: int, mean: float, seed: int = 0) -> tuple[Any, Any, Any]:
    """Sets with tastes and a heavy tail, as entries."""
    random = np.random.default_rng(seed)
    sizes = np.minimum(random.geometric(1 / mean, people), 400)
    owners = np.repeat(np.arange(people), sizes)
    tastes = random.integers(0, 10, people)[owners]
    drawn = np.minimum((random.pareto(0.8, len(owners)) * 2).astype(np.int64), kinds - 1)
    items = np.where(random.random(len(owners)) < 0.6, (drawn * 10 + tastes) % kinds, drawn)
    pairs, counts = np.unique(owners * kinds + items, return_counts=True)
    return pairs // kinds, pairs % kinds, counts.astype(np.int64)


def growth(ks: list[int]) -> None:
    """Seconds of one epoch by people and by the size of sets."""
    print(
        "\none epoch     people   mean set  (person, item) pairs   rows         "
        + "  ".join(f"k={k:<3}    " for k in ks)
    )
    shapes = [(12_500, 8.0), (25_000, 8.0), (50_000, 8.0), (100_000, 8.0), (200_000, 8.0)]
    shapes += [(20_000, 15.0), (20_000, 30.0), (20_000, 60.0), (20_000, 120.0)]
    for people, mean in shapes:
        owners, items, weights = made_sets(people, max(people // 20, 1000), mean)
        cells = []
        for k in ks:
            begun = time.perf_counter()
            keep = shared_by(k, owners, items, weights)
            cells.append(f"{time.perf_counter() - begun:5.1f} s {weights[keep].sum() / weights.sum():4.0%}")
        real_mean = len(owners) / people
        print(
            f"           {people:9,} {real_mean:10.1f} {len(owners):21,} {weights.sum():10,}   " + "  ".join(cells),
            flush=True,
        )


def gap() -> None:
    """Loss beside the least there is, on inputs small enough to try everything."""
    print("\nsmall inputs  people  items  k | all rows  least lost  lost here       prefix tree | least reached")
    for k, people, kinds, mean in ((2, 8, 6, 2.5), (3, 9, 6, 2.5), (2, 10, 12, 4.0), (3, 10, 5, 2.0), (4, 11, 8, 3.0)):
        random = np.random.default_rng(7)
        chances = np.minimum(mean / np.arange(1, kinds + 1) / sum(1 / np.arange(1, kinds + 1)), 0.9)
        totals, reached = np.zeros(4, np.int64), 0
        for _ in range(60):
            sets = [
                {item: int(random.integers(1, 4)) for item in range(kinds) if random.random() < chances[item]}
                for _ in range(people)
            ]
            owners, items, weights = as_entries(sets)
            lost = int(weights[~shared_by(k, owners, items, weights)].sum())
            least = least_loss(sets, k)
            naive = int(weights.sum()) - pushed_up(owners, items, weights, k)
            totals += (int(weights.sum()), least, lost, naive)
            reached += lost == least
        whole, least, lost, naive = totals.tolist()
        print(
            f"              {people:6} {kinds:6} {k:2} | {whole:8} {least:11} {lost:5} (+{lost / least - 1:.1%}) "
            f"{naive:5} (+{naive / least - 1:.1%}) | {reached} of 60",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", nargs="*", default=["gap", "price", "growth"])
    parser.add_argument("--k", nargs="*", type=int, default=[2, 5, 10])
    given = parser.parse_args()
    print(f"{os.cpu_count()} × {platform.processor() or platform.machine()}, Python {platform.python_version()}")
    shared_by(2, *made_sets(100, 20, 3.0))  # compiles
    if "gap" in given.only:
        gap()
    if "price" in given.only:
        for stream in [
            generated(3000, 200_000),
            generated(20_000, 1_000_000),
            *(real(given.data) if given.data else []),
        ]:
            price(stream, given.k)
    if "growth" in given.only:
        growth(given.k)


if __name__ == "__main__":
    main()

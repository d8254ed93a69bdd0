"""What combinations cost: rows published with combine = "k" and with z alone, how near the least loss, how long.

python -m benchmarks.z_combine [--data FOLDER] [--only gap price growth] [--k 2 5 10]

Generated visits, and where a folder is given the real streams that are in it: checkins.csv(.gz) with user, time, venue
and ratings.csv(.gz) with userId, timestamp, movieId, there or one folder below.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
from tests.reference.z_combining import as_entries, least_loss

from benchmarks.measure import Cost, Report, measured, parse, parser, short
from shoal.methods.z.epochs.shared_sets import shared_by
from shoal.methods.z.z_anonymity import ZAnonymity
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


def run(stream: Stream, **settings: Any) -> tuple[pa.Table, Cost]:
    """What is published, and what it took."""

    def push() -> pa.Table:
        method = ZAnonymity(
            person="user", time="ts", attribute="item", window=stream.window, max_gap="8760h", key=bytes(16), **settings
        )
        return pa.Table.from_batches([method.push_batch(stream.table).rows, method.flush().rows])

    cost, rows = measured(push)
    return rows, cost


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


PRICE = ["data", "z", "k", "rows: z alone", "combined", "of z alone", "whole people dropped", "prefix tree",
         "people in company: z alone", "combined", "processor seconds: z alone", "combined", "threads"]  # fmt: skip


def price(stream: Stream, ks: Sequence[int]) -> list[list[str]]:
    """Rows and people with and without combinations."""
    lines = []
    for z in stream.zs:
        plain, plain_cost = run(stream, z=z)
        if not plain.num_rows:
            continue
        for k in ks:
            combined, cost = run(stream, z=z, combine="k", k=k)
            people, alike, whole = shared_people(plain, stream, k)
            shown, company, _ = shared_people(combined, stream, k)
            pushed = sum(pushed_up(*entries(part), k) for part in by_epoch(plain, stream))
            all_rows = plain.num_rows
            shares = [f"{count / all_rows:.1%}" for count in (combined.num_rows, whole, pushed)]
            company_of = [f"{alike / people:.1%} of {people:,}", f"{company / max(shown, 1):.1%} of {shown:,}"]
            times = [short(plain_cost.processor), short(cost.processor), str(cost.threads)]
            counts = [f"{all_rows:,}", f"{combined.num_rows:,}"]
            lines.append([stream.name, str(z), str(k), *counts, *shares, *company_of, *times])
    return lines


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


GROWTH = [(12_500, 8.0), (25_000, 8.0), (50_000, 8.0), (100_000, 8.0), (200_000, 8.0), (20_000, 15.0),
          (20_000, 30.0), (20_000, 60.0), (20_000, 120.0)]  # fmt: skip


def growth(ks: Sequence[int], shapes: Sequence[tuple[int, float]]) -> list[list[str]]:
    """Processor seconds of one epoch by people and by the size of sets, and the share of rows kept."""
    lines = []
    for people, mean in shapes:
        owners, items, weights = made_sets(people, max(people // 20, 1000), mean)
        cells = []
        for k in ks:
            cost, keep = measured(lambda k=k: shared_by(k, owners, items, weights))  # noqa: B023 - called at once
            cells.append(f"{cost.processor:.1f} s, {weights[keep].sum() / weights.sum():.0%}")
        lines.append([f"{people:,}", f"{len(owners) / people:.1f}", f"{len(owners):,}", f"{weights.sum():,}", *cells])
    return lines


SMALL = ((2, 8, 6, 2.5), (3, 9, 6, 2.5), (2, 10, 12, 4.0), (3, 10, 5, 2.0), (4, 11, 8, 3.0))


def gap(inputs: int, shapes: Sequence[tuple[int, int, int, float]]) -> list[list[str]]:
    """Loss compared with the least there is, on inputs small enough to try everything."""
    lines = []
    for k, people, kinds, mean in shapes:
        random = np.random.default_rng(7)
        chances = np.minimum(mean / np.arange(1, kinds + 1) / sum(1 / np.arange(1, kinds + 1)), 0.9)
        totals, reached = np.zeros(4, np.int64), 0
        for _ in range(inputs):
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
        more = [f"{count} (+{count / max(least, 1) - 1:.1%})" for count in (lost, naive)]
        lines.append([str(cell) for cell in (people, kinds, k, whole, least, *more, f"{reached} of {inputs}")])
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what was asked for."""
    asked = parser(__doc__, data="checkins.csv and ratings.csv")
    asked.add_argument("--only", nargs="*", default=["gap", "price", "growth"])
    asked.add_argument("--k", nargs="*", type=int, default=[2, 5, 10])
    given = parse(asked, arguments)
    found = real(given.data) if given.data else []
    report = Report(__file__, given, data=", ".join(["synthetic visits", *(stream.name for stream in found)]))
    ks = [5] if given.tiny else given.k
    shared_by(2, *made_sets(100, 20, 3.0))  # compiles
    if "gap" in given.only:
        columns = ["people", "items", "k", "all rows", "least lost", "lost here", "prefix tree", "least reached"]
        report.table("gap", columns, gap(2, SMALL[:1]) if given.tiny else gap(60, SMALL))
    if "price" in given.only:
        sizes = [(100, 1500)] if given.tiny else [(3000, 200_000), (20_000, 1_000_000)]
        streams = [*(generated(*size) for size in sizes), *found]
        lines = [line for stream in streams for line in price(stream, ks)]
        report.table("price", PRICE, lines)
        kept = "; ".join(f"{line[0]}: {line[5]}" for line in lines if line[1:3] == ["5", "5"])
        report.text("kept", f'Rows that `combine = "k"` with k = 5 keeps of those that z = 5 alone releases: {kept}.')
    if "growth" in given.only:
        columns = ["people", "mean set", "(person, item) pairs", "rows", *(f"k = {k}" for k in ks)]
        report.table("growth", columns, growth(ks, [(200, 4.0)] if given.tiny else GROWTH))
    report.write()


if __name__ == "__main__":
    main()

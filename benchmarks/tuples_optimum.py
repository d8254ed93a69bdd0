"""How far LeastLoss is from the optimum: python -m benchmarks.tuples_optimum [--data FOLDER]

Three comparisons, all without reuse. *Small windows*: the best partition of a few random rows into clusters of at least
k, by dynamic programming over all subsets. *The future known*: annealing over the clusters of a whole stream, in which
rows may share a cluster if the oldest is still pending when the youngest arrives. *One window*: the whole stream at
once, for Mondrian, LeastLoss and annealing. Annealing finds an upper bound of the optimum, not the optimum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from benchmarks.measure import Report, parse, parser
from benchmarks.tuple_streams import real_streams, synthetic_streams
from shoal import Castle, Fads, LeastLoss
from shoal.reproduce.data.streams import Stream

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Rows:
    """A stream as numbers: scaled values or ranks of leaves, and what a range of ranks loses, for each attribute."""

    def __init__(self, stream: Stream) -> None:
        columns, tables, starts, widths = [], [np.zeros(0)], [], []
        for name, (low, high) in stream.domains.items():
            columns.append((stream.table[name].to_numpy().astype(np.float64) - low) / (high - low))
            starts.append(-1)
            widths.append(0)
        for name, tree in stream.trees.items():
            leaves: list[str] = []
            spans = _spans(tree, leaves)
            rank = {leaf: place for place, leaf in enumerate(leaves)}
            columns.append(np.array([rank[leaf] for leaf in stream.table[name].to_pylist()], dtype=np.float64))
            starts.append(sum(map(len, tables)))
            widths.append(len(leaves))
            tables.append(_losses(spans, len(leaves)).ravel())
        self.values = np.ascontiguousarray(np.array(columns).T)
        self.tables, self.starts, self.widths = np.concatenate(tables), np.array(starts), np.array(widths)

    def mean_loss(self, clusters: Ints) -> float:
        """Average loss of rows in numbered clusters."""
        total = 0.0
        for number in np.unique(clusters):
            members = self.values[clusters == number]
            total += len(members) * hull_loss(
                members.min(axis=0), members.max(axis=0), self.tables, self.starts, self.widths
            )
        return total / len(clusters)


def _spans(tree: Any, leaves: list[str]) -> list[tuple[int, int]]:
    """First and last leaf of every node; lists the leaves in order."""
    found = []
    for name, below in tree.items() if isinstance(tree, dict) else [(leaf, None) for leaf in tree]:
        first = len(leaves)
        if below:
            found += _spans(below, leaves)
        else:
            leaves.append(name)
        found.append((first, len(leaves) - 1))
    return found


def _losses(spans: Sequence[tuple[int, int]], leaves: int) -> Floats:
    """What the smallest node over leaves i to j loses."""
    losses = np.ones((leaves, leaves))
    for first, last in sorted(set(spans), key=lambda span: span[0] - span[1]):
        losses[first : last + 1, first : last + 1] = (last - first) / max(leaves - 1, 1)
    return losses


@njit
def hull_loss(low, high, tables, starts, widths):
    """Average loss of a hull over its attributes."""
    total = 0.0
    for a in range(len(starts)):
        if starts[a] < 0:
            total += high[a] - low[a]
        else:
            total += tables[starts[a] + int(low[a]) * widths[a] + int(high[a])]
    return total / len(starts)


# ---- small windows


@njit
def best_partition(values, k, tables, starts, widths):
    """The least average loss of a partition into clusters of at least k, by dynamic programming over subsets."""
    rows, attributes = values.shape
    full = 1 << rows
    cost, best = np.full(full, np.inf), np.full(full, np.inf)
    low, high = np.empty(attributes), np.empty(attributes)
    for mask in range(1, full):
        low[:], high[:], size = np.inf, -np.inf, 0
        for row in range(rows):
            if mask >> row & 1:
                size += 1
                for a in range(attributes):
                    low[a], high[a] = min(low[a], values[row, a]), max(high[a], values[row, a])
        if k <= size < 2 * k:  # a larger cluster is never better than two
            cost[mask] = size * hull_loss(low, high, tables, starts, widths)
    best[0] = 0.0
    for mask in range(1, full):
        lowest = mask & -mask
        rest = mask ^ lowest
        part = rest
        while True:
            found = cost[part | lowest] + best[rest ^ part]
            best[mask] = min(best[mask], found)
            if part == 0:
                break
            part = (part - 1) & rest
    return best[full - 1] / rows


def window_loss(method: Any, window: Stream, k: int) -> float:
    """Loss of a method that has the whole window."""
    made = method(window.schema, k=k, deadline=len(window) + 1, reuse=0, key=bytes(16))
    made.push_batch(window.table)
    made.flush()
    return float(made.metrics["loss"])


def small_windows(stream: Stream, k: int, rows: int, windows: int) -> list[float]:
    """Average optimum, and how far LeastLoss, FADS and CASTLE are above it."""
    optimum, ours, draw = 0.0, np.zeros(3), np.random.default_rng(1)
    for _ in range(windows):
        window = stream.with_table(stream.table.take(np.sort(draw.choice(len(stream), rows, replace=False))))
        found = Rows(window)
        optimum += best_partition(found.values, k, found.tables, found.starts, found.widths) / windows
        ours += np.array([window_loss(method, window, k) for method in (LeastLoss, Fads, Castle)]) / windows
    return [optimum, *(ours / optimum - 1)]


# ---- annealing


@njit
def anneal(  # noqa: PLR0917 - compiled
    values, cluster, members, sizes, reach, moves, hot, cold, seed, tables, starts, widths
):
    """Swap rows between clusters, as annealing accepts it; rows of a cluster are at most `reach` arrivals apart."""
    np.random.seed(seed)
    rows, attributes = values.shape
    count = len(sizes)
    low, high = np.empty(attributes), np.empty(attributes)
    losses = np.empty(count)
    place = np.empty(rows, np.int64)
    for c in range(count):
        for m in range(sizes[c]):
            place[members[c, m]] = m
        losses[c] = _loss_with(values, members[c], sizes[c], -1, -1, low, high, tables, starts, widths)
    for move in range(moves):
        heat = hot * (cold / hot) ** (move / moves)
        first = np.random.randint(rows)
        if move & 1:  # a row that sets a bound of its cluster
            c, a = cluster[first], np.random.randint(attributes)
            is_high = np.random.random() < 0.5
            for m in range(sizes[c]):
                row = members[c, m]
                if (values[row, a] > values[first, a]) == is_high and values[row, a] != values[first, a]:
                    first = row
        begin, end = max(0, first - reach), min(rows, first + reach + 1)
        second = begin + np.random.randint(end - begin)
        c, d = cluster[first], cluster[second]
        if c == d or not _fits(members[c], sizes[c], first, second, reach):
            continue
        if not _fits(members[d], sizes[d], second, first, reach):
            continue
        one = _loss_with(values, members[c], sizes[c], first, second, low, high, tables, starts, widths)
        gain = sizes[c] * (losses[c] - one)
        if gain < -sizes[d] * losses[d] - 20.0 * heat:
            continue
        other = _loss_with(values, members[d], sizes[d], second, first, low, high, tables, starts, widths)
        gain += sizes[d] * (losses[d] - other)
        if gain >= 0.0 or np.random.random() < np.exp(gain / heat):
            members[c, place[first]], members[d, place[second]] = second, first
            place[first], place[second] = place[second], place[first]
            cluster[first], cluster[second] = d, c
            losses[c], losses[d] = one, other
    return (sizes * losses).sum() / rows


@njit
def _fits(members, size, out, new, reach):
    """Whether a new row is near enough in time to all other members."""
    is_near = True
    for m in range(size):
        is_near &= members[m] == out or abs(members[m] - new) <= reach
    return is_near


@njit
def _loss_with(values, members, size, out, new, low, high, tables, starts, widths):
    """Loss of a cluster in which one row is replaced."""
    low[:], high[:] = np.inf, -np.inf
    for m in range(size):
        row = new if members[m] == out else members[m]
        for a in range(len(low)):
            low[a], high[a] = min(low[a], values[row, a]), max(high[a], values[row, a])
    return hull_loss(low, high, tables, starts, widths)


def annealed(rows: Rows, clusters: Ints, reach: int, moves: int) -> float:
    """Average loss after annealing from given clusters."""
    numbers, cluster = np.unique(clusters, return_inverse=True)
    sizes = np.bincount(cluster, minlength=len(numbers))
    members = np.zeros((len(numbers), sizes.max()), dtype=np.int64)
    for number in range(len(numbers)):
        members[number, : sizes[number]] = np.flatnonzero(cluster == number)
    heats = (0.1, 0.003)
    return float(
        anneal(rows.values, cluster, members, sizes, reach, moves, *heats, 1, rows.tables, rows.starts, rows.widths)
    )


def clusters_of(stream: Stream, k: int, deadline: int) -> Ints:
    """The cluster of every row, as LeastLoss forms them without reuse."""
    made = LeastLoss(stream.schema, k=k, deadline=deadline, reuse=0, key=bytes(16))
    clusters = np.zeros(len(stream), dtype=np.int64)
    for release in (made.push_batch(stream.table), made.flush()):
        clusters[release.trace["row"].to_numpy()] = release.trace["group"].to_numpy()
    return clusters


def mondrian(rows: Rows, k: int) -> Ints:
    """Clusters by halving at the median of the attribute that loses most, as long as both halves have k rows."""
    clusters, number, waiting = np.zeros(len(rows.values), dtype=np.int64), 0, [np.arange(len(rows.values))]
    while waiting:
        chosen = waiting.pop()
        values = rows.values[chosen]
        spread = [
            values[:, a].max() - values[:, a].min() if rows.starts[a] < 0 else
            rows.tables[rows.starts[a] + int(values[:, a].min()) * rows.widths[a] + int(values[:, a].max())]
            for a in range(values.shape[1])
        ]  # fmt: skip
        for a in np.argsort(spread)[::-1]:
            middle = np.median(values[:, a])
            left = values[:, a] <= middle if (values[:, a] <= middle).sum() < len(chosen) else values[:, a] < middle
            if k <= left.sum() <= len(chosen) - k:
                waiting += [chosen[left], chosen[~left]]
                break
        else:
            clusters[chosen] = number
            number += 1
    return clusters


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the three tables."""
    asked = parser(__doc__, data="UCI's files of Adult and PM2.5")
    asked.add_argument("--rows", type=int, default=30_000)
    asked.add_argument("--moves", type=int, default=40_000_000)
    given = parse(asked, arguments)
    rows, moves = (200, 2000) if given.tiny else (given.rows, given.moves)
    found = real_streams(given.data, rows) if given.data else synthetic_streams(rows)
    streams = {name: found[name] for name in ("adult", "pm25") if name in found}
    report = Report(__file__, given, data=", ".join(streams) if given.data else "synthetic")
    windows, size = (2, 6) if given.tiny else (40, 15)
    table = []
    for name, stream in streams.items():
        for k in (3,) if given.tiny else (3, 5):
            optimum, *above = small_windows(stream, k, size, windows)
            table.append([name, str(k), f"{optimum:.3f}", *(f"+{share:.0%}" for share in above)])
    report.table("windows", ["data", "k", f"optimum of {size} rows", "least-loss", "fads", "castle"], table)
    adult, k, deadline = streams["adult"], 5 if given.tiny else 50, 50 if given.tiny else 2000
    numbers, table = Rows(adult), []
    for what, reach in ((f"deadline {deadline}", deadline), ("one window", len(adult))):
        ours = clusters_of(adult, k, reach)
        halved = f"{numbers.mean_loss(mondrian(numbers, k)):.3f}" if reach == len(adult) else ""
        best = annealed(numbers, ours, reach, moves)
        table.append([what, halved, f"{numbers.mean_loss(ours):.3f}", f"{best:.3f}"])
    report.table("annealing", [f"adult, k = {k}", "mondrian", "least-loss", "annealing, future known"], table)
    report.write()


if __name__ == "__main__":
    main()

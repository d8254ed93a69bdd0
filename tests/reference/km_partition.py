"""Partitions the slow way: a list of sets, everything counted again from the definitions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

Block = frozenset[int]
Cost = Callable[[Block], float]


class NaiveTree:
    """`paths[item]` are the labels from the item up to the root."""

    def __init__(self, paths: list[tuple[str, ...]]) -> None:
        self.paths = paths
        self.blocks = {frozenset([item]) for item in range(len(paths))}

    def below(self, label: str, height: int) -> Block:
        """Items under the node `height` steps below the root."""
        return frozenset(i for i, path in enumerate(self.paths) if len(path) > height and path[-1 - height] == label)

    def coarser(self, block: Block) -> set[Block]:
        """The joined blocks that are one step away from here."""
        path = self.paths[min(block)]
        above = [self.below(path[-1 - height], height) for height in range(len(path))]
        bigger = [found for found in above if found > block]
        return {min(bigger, key=len)} if bigger else set()

    def join(self, joined: Block) -> None:
        self.blocks = {block for block in self.blocks if not block <= joined} | {joined}


class NaiveGraph:
    """`pairs` of items that lie side by side; `together` are items that start in one block."""

    def __init__(self, count: int, pairs: Iterable[tuple[int, int]], together: Iterable[Block] = ()) -> None:
        self.pairs = {frozenset(pair) for pair in pairs}
        joined = set(together)
        single = set(range(count)).difference(*joined)
        self.blocks = joined | {frozenset([item]) for item in single}

    def touches(self, first: Iterable[int], second: Iterable[int]) -> bool:
        return any(frozenset([one, other]) in self.pairs for one in first for other in second)

    def coarser(self, block: Block) -> set[Block]:
        return {block | other for other in self.blocks if other != block and self.touches(block, other)}

    def join(self, joined: Block) -> None:
        self.blocks = {block for block in self.blocks if not block <= joined} | {joined}

    def hangs_together(self, block: Block) -> bool:
        """Flood from one item."""
        reached = {min(block)}
        while True:
            more = {item for item in block - reached if self.touches([item], reached)}
            if not more:
                return reached == set(block)
            reached |= more


def error(blocks: Iterable[Block], weights: list[int], cost: Cost) -> float:
    return sum(cost(block) for block in blocks) / max(1, sum(weights))


def ncp(weights: list[int]) -> Cost:
    return lambda block: sum(weights[i] for i in block) * len(block) / len(weights) if len(block) > 1 else 0.0


def haversine(first: tuple[float, float], second: tuple[float, float]) -> float:
    (x, y), (u, v) = (tuple(map(math.radians, point)) for point in (first, second))
    squared = math.sin((v - y) / 2) ** 2 + math.cos(y) * math.cos(v) * math.sin((u - x) / 2) ** 2
    return 2 * 6371008.8 * math.asin(math.sqrt(min(1.0, squared)))


def distance(weights: list[int], points: list, site_of: list[int], cells: list, metres: Callable) -> Cost:
    """`cells` are (area, centroid) of each site; points and centroids are (x, y)."""

    def cost(block: Block) -> float:
        sites = {site_of[item] for item in block}
        area = sum(cells[site][0] for site in sites)
        centre = tuple(sum(cells[site][0] * cells[site][1][axis] for site in sites) / area for axis in (0, 1))
        return sum(weights[item] * metres(points[item], centre) for item in block)

    return cost

"""Local recoding of sets: what it loses, compared with one cut for all records and with parts that have a cut each.

python -m benchmarks.sets_local --data FOLDER [--names BMS-WebView-2 retail] [-k 5] [-m 2] [--top 100]

"parts" is the published idea of local recoding (LRA: Terrovitis, Mamoulis, Kalnis, VLDB Journal 2011): records are
sorted by their items, divided into parts of equal size, and each part gets a cut of its own; sorted once by the tree
and once by how popular items are, in 2 to 8 parts, the best of these. Pairs are the most frequent pairs of items: a
label stands for each of its items with equal probability; the error is |estimate - count| / max(estimate, count),
averaged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

from benchmarks.measure import Meter, Report, apart, parse, parser, short
from benchmarks.sets_speed import data_files, tree_for
from shoal import Hierarchy
from shoal.methods.sets.km_anonymity import KmApriori
from shoal.methods.sets.records import read_records

NAMES = ("BMS-WebView-2", "retail", "BMS-WebView-1", "foodmart")
PARTS = (2, 4, 8)
Sets = list[frozenset[str]]


def read(path: Path) -> Sets:
    """The sets of a file."""
    found = read_records(path)
    codes, starts = found.codes.tolist(), found.starts.tolist()
    return [frozenset(found.labels[code] for code in codes[begin:end]) for begin, end in pairwise(starts)]


def in_parts(sets: Sets, tree: Hierarchy, k: int, m: int, parts: int, rank: dict[str, int]) -> float:
    """NCP if sorted records are divided into parts and each part has a cut of its own."""
    ordered = sorted(sets, key=lambda one: sorted(rank[item] for item in one))
    lost = 0.0
    for part in range(parts):
        own = ordered[part * len(sets) // parts : (part + 1) * len(sets) // parts]
        lost += KmApriori(k, m, generalize=tree).anonymize(own).error * sum(map(len, own))
    return lost / sum(map(len, sets))


def best_parts(sets: Sets, tree: Hierarchy, k: int, m: int) -> float:
    """The least NCP of all ways to sort and divide."""
    counted = Counter(item for one in sets for item in one)
    by_tree = {label: place for place, label in enumerate(tree.labels)}
    popular = {item: place for place, (item, _) in enumerate(counted.most_common())}
    return min(in_parts(sets, tree, k, m, parts, rank) for parts in PARTS for rank in (by_tree, popular))


def frequent_pairs(sets: Sets, top: int) -> list[tuple[tuple[str, str], int]]:
    """The most frequent pairs of items."""
    counted = Counter(pair for one in sets for pair in combinations(sorted(one), 2))
    return counted.most_common(top)


def error_of_pairs(
    pairs: Iterable[tuple[tuple[str, str], int]], published: Sequence[frozenset[str]], tree: Hierarchy
) -> float:
    """The mean error of the counts of pairs, estimated from published sets."""
    leaves = dict(zip(tree.labels, tree.leaf_counts.tolist(), strict=True))
    wanted = {item for pair, _ in pairs for item in pair}
    paths = {item: tree.path(item) for item in wanted}
    shapes = Counter(published)
    holders: dict[str, set[frozenset[str]]] = {}
    for shape in shapes:
        for label in shape:
            holders.setdefault(label, set()).add(shape)

    def chances(item: str) -> dict[frozenset[str], float]:
        return {shape: 1 / leaves[label] for label in paths[item] for shape in holders.get(label, ())}

    chance = {item: chances(item) for item in wanted}
    errors = []
    for (one, other), count in pairs:
        first, second = sorted((chance[one], chance[other]), key=len)
        estimate = sum(part * second[shape] * shapes[shape] for shape, part in first.items() if shape in second)
        errors.append(abs(estimate - count) / max(estimate, count))
    return sum(errors) / len(errors)


def _labels(published: Iterable[frozenset[str]]) -> int:
    return len(frozenset().union(*set(published)))


def measure(path: str, k: int, m: int, top: int) -> dict[str, Any]:
    """Anonymize in three ways."""
    sets, tree = read(Path(path)), tree_for(Path(path))
    few = [frozenset(tree.labels[-2:]), frozenset(tree.labels[-1:])] * k
    KmApriori(k, m, generalize=tree, recoding="local").anonymize(few)  # compiles
    pairs = frequent_pairs(sets, top)
    found: dict[str, Any] = {"records": len(sets)}
    for recoding in ("global", "local"):
        with Meter() as meter:
            result = KmApriori(k, m, generalize=tree, recoding=recoding).anonymize(sets)
        found |= {f"{recoding}_ncp": result.error, f"{recoding}_labels": _labels(result.records),
                  f"{recoding}_seconds": meter.cost.wall,
                  f"{recoding}_pairs": error_of_pairs(pairs, result.records, tree)}  # fmt: skip
    return found | {"parts_ncp": best_parts(sets, tree, k, m)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all data asked for."""
    asked = parser(__doc__, data="the files as downloaded")
    asked.add_argument("--names", nargs="+", default=NAMES)
    asked.add_argument("-k", type=int, default=5)
    asked.add_argument("-m", type=int, nargs="+", default=[2])
    asked.add_argument("--top", type=int, default=100)
    given = parse(asked, arguments)
    report = Report(__file__, given, data="as published" if given.data else "synthetic baskets (no folder was given)")
    rows = []
    with data_files(given.data, given.names, tiny=given.tiny) as paths:
        for path in paths:
            for m in given.m:
                one = apart(measure, here=given.tiny, path=str(path), k=given.k, m=m, top=given.top)
                rows.append([
                    path.name.partition(".")[0], f"{one['records']:,}", m, f"{one['parts_ncp']:.4f}",
                    f"{one['global_ncp']:.4f}", f"{one['local_ncp']:.4f}",
                    f"{one['local_ncp'] / one['global_ncp']:.2f}" if one["global_ncp"] else "–",
                    f"{one['global_pairs']:.2f}", f"{one['local_pairs']:.2f}",
                    f"{one['global_labels']:,}", f"{one['local_labels']:,}",
                    short(one["global_seconds"]), short(one["local_seconds"]),
                ])  # fmt: skip
    columns = ["data", "people", "m", "NCP: parts", "global", "local", "local / global", "pairs: global", "local",
               "labels: global", "local", "seconds: global", "local"]  # fmt: skip
    report.table("loss", columns, rows)
    report.write()


if __name__ == "__main__":
    main()

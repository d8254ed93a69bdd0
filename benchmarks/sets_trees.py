"""Sets without a taxonomy: trees over items by name, by co-occurrence and by popularity, and what each loses.

python -m benchmarks.sets_trees --data FOLDER [--names BMS-WebView-1] [-k 10] [-m 1 2]

The tree by popularity is what `shoal init` and `shoal.anonymize` build. All have five branches at each node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks.measure import Report, parse, parser
from benchmarks.sets_speed import data_files
from shoal.hierarchies import Hierarchy
from shoal.inspection.sets import FANOUT, popular_tree
from shoal.methods.sets.km_anonymity import KmAnonymity
from shoal.methods.sets.records import read_records

NAMES = ("BMS-WebView-1", "foodmart")


def read(path: Path) -> list[frozenset[str]]:
    """The sets of a file."""
    found = read_records(path)
    codes, starts = found.codes.tolist(), found.starts.tolist()
    return [frozenset(found.labels[code] for code in codes[begin:end]) for begin, end in pairwise(starts)]


def by_co_occurrence(sets: list[frozenset[str]], counts: Counter[str], k: int) -> list[str]:
    """Items in the order of the Fiedler vector of their similarity; pairs of fewer than k people do not count."""
    items = sorted(counts)
    number = {item: place for place, item in enumerate(items)}
    together = np.zeros((len(items), len(items)))
    for one in sets:
        places = [number[item] for item in one]
        for place in places:
            together[place, places] += 1
    together[together < k] = 0
    own = np.maximum(np.diag(together), 1)
    alike = together / np.sqrt(np.outer(own, own))
    np.fill_diagonal(alike, 1)
    degree = alike.sum(axis=1)
    vectors = np.linalg.eigh(np.eye(len(items)) - alike / np.sqrt(np.outer(degree, degree)))[1]
    return [items[place] for place in np.argsort(vectors[:, 1] / np.sqrt(degree))]


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare the three trees."""
    asked = parser(__doc__, data="the files as downloaded")
    asked.add_argument("--names", nargs="+", default=NAMES)
    asked.add_argument("-k", type=int, default=10)
    asked.add_argument("-m", type=int, nargs="+", default=[1, 2])
    given = parse(asked, arguments)
    report = Report(__file__, given, data="as published" if given.data else "synthetic baskets (no folder was given)")
    rows = []
    with data_files(given.data, given.names, tiny=given.tiny) as paths:
        for path in paths:
            sets = read(path)
            counts = Counter(item for one in sets for item in one)
            order = by_co_occurrence(sets, counts, given.k)
            trees = {
                "by name (`balanced = 5`)": Hierarchy.balanced(counts, FANOUT),
                "by co-occurrence": _in_order(order),
                "by popularity": Hierarchy.from_nested(popular_tree(counts, given.k)),
            }
            for m in [1] if given.tiny else given.m:
                for name, tree in trees.items():
                    settings = {"k": given.k, "m": m, "sigma": 1, "trials": 1}
                    result = KmAnonymity(generalize=tree, **settings).anonymize(sets)
                    merged = [item for item in counts if item not in result.blocks]
                    shares = len(merged) / len(counts), sum(counts[item] for item in merged) / counts.total()
                    what = [path.name.partition(".")[0], m, name, f"{len(result.blocks):,} of {len(counts):,}"]
                    rows.append([*what, f"{result.error:.4f}", *(f"{share:.1%}" for share in shares)])
    columns = ["data", "m", "tree", "blocks", "NCP", "items generalized", "of what people have"]
    report.table("trees", columns, rows)
    report.write()


def _in_order(items: list[str]) -> Hierarchy:
    """A balanced tree over items in any order."""
    width = len(str(len(items)))
    tree = Hierarchy.balanced([f"{place:0{width}}" for place in range(len(items))], FANOUT).to_dict()
    names = {f"{place:0{width}}": item for place, item in enumerate(items)}
    labels = [names.get(label, f"block {label}") if label != "*" else label for label in tree["labels"]]
    return Hierarchy.from_dict({**tree, "labels": labels})


if __name__ == "__main__":
    main()

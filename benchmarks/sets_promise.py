"""Is the promise kept? Releases certified by 760 samples (exact) and by 45,845 (hoeffding2), on samples of their own.

python -m benchmarks.sets_promise [--people 3000] [--seeds 20] [--fresh 100000] [--sigma 0.99] [-k 10] [-m 5]

Fresh itemsets are drawn and judged here with whole numbers as sets of people, by no code of the library.
"""

from __future__ import annotations

import random
import sys
from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import comb
from typing import Any

from benchmarks.measure import Report, parse, parser
from shoal.methods.sets.km_anonymity import KmAnonymity
from shoal.models.proportions import clopper_pearson
from shoal.models.sample_size import BOUNDS, promise
from shoal.reproduce.data.city import make_city

COUNTED = 2


@dataclass
class Found:
    """What the releases certified by one bound showed."""

    shares: list[float] = field(default_factory=list)
    """Of violating itemsets, one for every release and sampled size."""
    violating: int = 0
    drawn: int = 0
    blocks: list[int] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)


def bits_of(records: list[list[str]]) -> dict[str, int]:
    """Who has an item: bit number u is set for person u."""
    found: dict[str, bytearray] = {}
    for person, record in enumerate(records):
        for item in record:
            found.setdefault(item, bytearray(len(records) // 8 + 1))[person >> 3] |= 1 << (person & 7)
    return {item: int.from_bytes(bits, "little") for item, bits in found.items()}


def draw(records: list[list[str]], people: dict[str, int], size: int, coins: random.Random) -> Iterator[list[str]]:
    """Itemsets of a size, all that occur equally likely, without end."""
    upto = list(accumulate(comb(len(record), size) for record in records))
    while True:
        record = records[bisect(upto, coins.randrange(upto[-1]))]
        itemset = coins.sample(record, size)
        if coins.random() * together(itemset, people) < 1:
            yield itemset


def together(names: Any, people: dict[str, int]) -> int:
    """How many people have all of these."""
    common = -1
    for name in names:
        common &= people[name]
    return common.bit_count()


def check(records: list[list[str]], people: dict[str, int], settings: dict[str, Any], fresh: int, found: Found) -> None:
    """Certify one release and count the fresh itemsets that fewer than k people have in it."""
    result = KmAnonymity(counted=COUNTED, trials=1, **settings).anonymize(records)
    found.blocks.append(len(result.blocks))
    found.errors.append(result.error)
    block_of = {item: label for label, items in result.blocks.items() for item in items}
    crowds = bits_of([list({block_of[item] for item in record}) for record in records])
    for size in range(COUNTED + 1, settings["m"] + 1):
        draws = draw(records, people, size, random.Random(f"{settings['seed']} {size} fresh"))
        images = ({block_of[item] for item in next(draws)} for _ in range(fresh))
        violating = sum(together(image, crowds) < settings["k"] for image in images)
        found.shares.append(violating / fresh)
        found.violating += violating
        found.drawn += fresh


def row_of(bound: Any, sigma: float, found: Found) -> list[str]:
    """What one bound promised and how it was kept."""
    asked = promise(sigma, bound)
    above = sum(share > asked.epsilon for share in found.shares)
    low, high = clopper_pearson(found.violating, found.drawn, 0.99)
    releases = len(found.blocks)
    return [
        bound, f"{asked.samples:,}", f"{asked.epsilon:.5f}", f"{asked.delta:.5f}", str(releases),
        f"{sum(found.blocks) / releases:.1f}", f"{sum(found.errors) / releases:.0f}",
        f"{found.violating / found.drawn:.6f} ({low:.6f} to {high:.6f})", f"{max(found.shares):.6f}",
        f"{above} of {len(found.shares)}",
    ]  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare the bounds, side by side on the same cities."""
    asked = parser(__doc__)
    asked.add_argument("--people", type=int, default=3000)
    asked.add_argument("--seeds", type=int, default=20)
    asked.add_argument("--fresh", type=int, default=100_000)
    asked.add_argument("--sigma", type=float, default=0.99)
    asked.add_argument("-k", type=int, default=10)
    asked.add_argument("-m", type=int, default=5)
    asked.add_argument("--bounds", nargs="+", choices=BOUNDS, default=["exact", "hoeffding2"])
    given = parse(asked, arguments)
    if given.tiny:
        given.people, given.seeds, given.fresh, given.sigma, given.k, given.m = 300, 1, 50, 0.9, 3, 3
    report = Report(__file__, given, data="synthetic cities")
    found = {bound: Found() for bound in given.bounds}
    for seed in range(given.seeds):
        city = make_city(given.people, seed=seed)
        records = city.records.to_pylist()
        people = bits_of(records)
        for bound in given.bounds:
            settings = {"k": given.k, "m": given.m, "sigma": given.sigma, "generalize": city.places, "seed": seed}
            check(records, people, {**settings, "bound": bound}, given.fresh, found[bound])
        print(f"seed {seed} done", file=sys.stderr, flush=True)
    columns = ["bound", "samples", "ε", "δ a size", "releases", "blocks", "error in m", "violating on average",
               "worst release and size", "above ε"]  # fmt: skip
    report.table("bounds", columns, [row_of(bound, given.sigma, found[bound]) for bound in given.bounds])
    report.write()


if __name__ == "__main__":
    main()

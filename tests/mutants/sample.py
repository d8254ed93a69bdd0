"""Which of the defects that can be planted are tried: drawn by a seed, in turn over kinds and files."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle

from tests.mutants.generate import KINDS, Defect


def drawn(found: Sequence[Defect], most: int, seed: str) -> list[Defect]:
    """Draw one of each kind in turn, from the file that fewest were drawn from; the first n do not depend on `most`.

    The order is that of digests, so that a defect more or less elsewhere changes little of the sample.
    """
    ranked = sorted(found, key=lambda one: hashlib.sha256(f"{seed} {one.name}".encode()).digest())
    left = {kind: [one for one in ranked if one.kind == kind] for kind in KINDS}
    taken: Counter[str] = Counter()
    chosen: list[Defect] = []
    for kind in cycle(KINDS):
        if len(chosen) >= min(most, len(found)):
            return chosen
        if left[kind]:
            one = min(left[kind], key=lambda one: taken[one.file])
            left[kind].remove(one)
            taken[one.file] += 1
            chosen.append(one)
    return chosen


def in_turn(samples: Mapping[str, Sequence[Defect]]) -> Iterator[tuple[str, Defect]]:
    """The first of each package, then the second of each, and so on: a run that is cut off has tried all packages."""
    for place in range(max(map(len, samples.values()), default=0)):
        for package, sample in samples.items():
            if place < len(sample):
                yield package, sample[place]

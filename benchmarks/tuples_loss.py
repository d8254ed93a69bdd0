"""What LeastLoss is worth: python -m benchmarks.tuples_loss [--data FOLDER] [--rows N]

Average loss beside FADS (nothing missing) and K-VARP in its paper's mode (at most m values missing), on two data sets.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from shoal import Fads, KVarp, LeastLoss
from shoal.studies.adult import read_adult
from shoal.studies.adult_imitation import imitate_adult
from shoal.studies.missing import remove_values
from shoal.studies.pm25 import read_pm25
from shoal.studies.pm25_imitation import imitate_pm25
from shoal.studies.streams import Stream

MISSING = (0, 1, 2, 3, 5, 7, 9)


def loss(stream: Stream, make: Callable[..., Any], **settings: Any) -> float:
    """The average loss over the attributes rows carry."""
    method = make(stream.schema, deadline=2000, reuse=200, key=bytes(16), **settings)
    method.push_batch(stream.table)
    method.flush()
    found: float = method.metrics["loss"]
    return found


def print_table(stream: Stream) -> None:
    """A line for each k: the loss and how much less it is."""
    print(f"{stream.origin}, {len(stream):,} rows")
    print("| k | " + " | ".join(f"m = {missing}" for missing in MISSING) + " |")
    print("|---" * (len(MISSING) + 1) + "|")
    for k in (5, 50, 100):
        cells = []
        for missing in MISSING:
            holed = remove_values(stream, at_most=missing, seed=1) if missing else stream
            peer = loss(holed, KVarp, k=k, nulls="paper") if missing else loss(holed, Fads, k=k)
            ours = loss(holed, LeastLoss, k=k)
            cells.append(f"{ours:.3f} / {peer:.3f}, −{1 - ours / peer:.0%}")
        print(f"| {k} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with UCI's files of Adult and PM2.5; without it, imitations")
    parser.add_argument("--rows", type=int, default=30_000)
    given = parser.parse_args()
    adult = read_adult(given.data) if given.data else imitate_adult(given.rows, seed=1)
    pm25 = read_pm25(given.data) if given.data else imitate_pm25(given.rows, seed=1)
    for stream in (adult, pm25):
        print_table(stream.head(given.rows))


if __name__ == "__main__":
    main()

"""What LeastLoss is worth: python -m benchmarks.tuples_loss [--data FOLDER] [--rows N]

Average loss compared with FADS (nothing missing) and K-VARP in its paper's mode (at most m values missing),
on two data sets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.measure import Report, parse, parser
from benchmarks.real_data import folder_with
from shoal import Fads, KVarp, LeastLoss
from shoal.reproduce.data.adult import read_adult
from shoal.reproduce.data.adult_imitation import imitate_adult
from shoal.reproduce.data.pm25 import FILES as PM25_FILES
from shoal.reproduce.data.pm25 import read_pm25
from shoal.reproduce.data.pm25_imitation import imitate_pm25
from shoal.reproduce.data.streams import Stream, remove_values

MISSING = (0, 1, 2, 3, 5, 7, 9)


def loss(stream: Stream, make: Callable[..., Any], **settings: Any) -> float:
    """The average loss over the attributes rows carry."""
    method = make(stream.schema, deadline=min(2000, len(stream) // 4), reuse=200, key=bytes(16), **settings)
    method.push_batch(stream.table)
    method.flush()
    found: float = method.metrics["loss"]
    return found


def rows_of(stream: Stream, crowds: Sequence[int], missing: Sequence[int]) -> list[list[str]]:
    """A line for each k: the loss and how much less it is."""
    rows = []
    for k in crowds:
        cells = []
        for most in missing:
            holed = remove_values(stream, at_most=most, seed=1) if most else stream
            peer = loss(holed, KVarp, k=k, missing="paper") if most else loss(holed, Fads, k=k, missing="covered")
            ours = loss(holed, LeastLoss, k=k, missing="covered")
            cells.append(f"{ours:.3f} / {peer:.3f}, −{1 - ours / peer:.0%}")
        rows.append([str(k), *cells])
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure both tables."""
    asked = parser(__doc__, data="UCI's files of Adult and PM2.5")
    asked.add_argument("--rows", type=int, default=30_000)
    given = parse(asked, arguments)
    rows = 400 if given.tiny else given.rows
    adult, pm25 = folder_with(given.data, "adult.data"), folder_with(given.data, *PM25_FILES)
    streams = {
        "adult": read_adult(adult) if adult else imitate_adult(rows, seed=1),
        "pm25": read_pm25(pm25) if pm25 else imitate_pm25(rows, seed=1),
    }
    report = Report(__file__, given, data="; ".join(stream.origin for stream in streams.values()))
    crowds, missing = ((5,), (0, 3)) if given.tiny else ((5, 50, 100), MISSING)
    for name, stream in streams.items():
        columns = ["k", *(f"m = {most}" for most in missing)]
        report.table(name, columns, rows_of(stream.head(rows), crowds, missing))
    report.write()


if __name__ == "__main__":
    main()

"""Loss against delay per method: python -m benchmarks.tuples_frontier [--data FOLDER] [--figure PNG]

Adult (14 quasi-identifiers), k = 50, reuse 200, deadlines of 500, 2000 and 8000 arrivals.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import Report, parse, parser
from benchmarks.tuple_streams import real_streams, synthetic_streams
from shoal.reproduce.tuples.frontier import draw_frontier, frontier

METHODS = ("least-loss", "fads", "castle", "k-varp")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the table; draw it if a file is named."""
    asked = parser(__doc__, data="UCI's file of Adult")
    asked.add_argument("--figure", type=Path, help="write the picture to this PNG")
    asked.add_argument("--rows", type=int, default=30_000)
    given = parse(asked, arguments)
    rows, k = (300, 5) if given.tiny else (given.rows, 50)
    deadlines = (20, 80) if given.tiny else (500, 2000, 8000)
    stream = (real_streams(given.data, rows) if given.data else synthetic_streams(rows))["adult"]
    report = Report(__file__, given, data=stream.origin)
    found = list(frontier(stream.table, stream.schema, METHODS, deadlines, k=k, reuse=200, key=bytes(16)))
    table = []
    for method in METHODS:
        mine = [one for one in found if one["method"] == method]
        table.append([method, *(f"{one['loss']:.3f} ({one['delay']:.0f})" for one in mine)])
    report.table("loss", ["method", *(f"deadline {deadline}" for deadline in deadlines)], table)
    report.write()
    if given.figure:
        draw_frontier(given.figure, found, title=f"Loss against delay: Adult, k = {k}")


if __name__ == "__main__":
    main()

"""What `missing` costs least-loss: python -m benchmarks.missing_modes [--data FOLDER]

Every data set of the folder, with up to seven quasi-identifiers, as it is and with values removed at random. For each
mode: what is lost, which rows are suppressed, and how many cells show a value that their record does not have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.measure import Report, parse, parser
from benchmarks.tuple_streams import first_columns, real_streams, synthetic_streams, without
from benchmarks.tuples_missing import missing
from shoal import LeastLoss
from shoal.reproduce.data.streams import Stream

MODES = ("own", "hidden", "covered")
WAYS = {"nothing": "none", "one 40%": "one 40%", "half 60%": "half 60%", "all 25%": "all 25%"}


def decided(stream: Stream, k: int, mode: str) -> Mapping[str, Any]:
    """The metrics of least-loss after it has decided a whole stream."""
    deadline = min(1000, len(stream) // 4)
    made = LeastLoss(stream.schema, k=k, deadline=deadline, reuse=200, missing=mode, key=bytes(16))
    made.push_batch(stream.table)
    made.flush()
    return made.metrics


def lines(name: str, stream: Stream, k: int) -> list[list[str]]:
    """A line for each way of missing, if anything is missing."""
    found = []
    for title, way in WAYS.items():
        holed = without(stream, missing(stream.quasi)[way])
        cells = len(stream) * len(stream.quasi)
        gaps = sum(holed.table.column(column).null_count for column in stream.quasi) / cells
        if not gaps:
            continue
        made = {mode: decided(holed, k, mode) for mode in MODES}
        losses = [f"{one['loss']:.3f}" for one in made.values()]
        suppressed = [f"{one['suppressed'] / len(stream):.1%}" for one in made.values()]
        found.append(
            [name, title, str(k), f"{gaps:.0%}", *losses, *suppressed, f"{made['covered']['filled'] / cells:.1%}"]
        )
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the table."""
    asked = parser(__doc__, data="published data sets")
    asked.add_argument("--rows", type=int, default=6000)
    given = parse(asked, arguments)
    rows = 300 if given.tiny else given.rows
    streams = real_streams(given.data, rows) if given.data else synthetic_streams(rows)
    report = Report(__file__, given, data=", ".join(streams) if given.data else "synthetic")
    ks = (3,) if given.tiny else (5, 50)
    table = [line for k in ks for name, stream in streams.items() for line in lines(name, first_columns(stream), k)]
    titles = [*(f"loss, `{mode}`" for mode in MODES), *(f"suppressed, `{mode}`" for mode in MODES)]
    report.table("modes", ["data", "removed", "k", "missing", *titles, "made up, `covered`"], table)
    report.write()


if __name__ == "__main__":
    main()

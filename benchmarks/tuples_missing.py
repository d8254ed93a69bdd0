"""Loss with missing values, against the best other method: python -m benchmarks.tuples_missing [--data FOLDER]

Every data set of the folder, with up to seven quasi-identifiers; values of one, two, half or all columns are removed at
random. The others are FADS, CASTLE and K-VARP, all with `missing = "covered"`. Two lanes of least-loss are
compared with one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.measure import Report, parse, parser
from benchmarks.tuple_streams import first_columns, real_streams, synthetic_streams, without
from shoal import Castle, Fads, KVarp, LeastLoss
from shoal.reproduce.data.streams import Stream

OTHERS = (Fads, Castle, KVarp)
CROWDS = (5, 10, 50, 100)
BEARABLE = 1.02


def missing(quasi: Sequence[str]) -> dict[str, Mapping[str, float]]:
    """Which share of which columns is removed."""
    return {
        "none": {},
        "one 40%": {quasi[0]: 0.4},
        "one 80%": {quasi[0]: 0.8},
        "two 61, 74%": {quasi[0]: 0.61, quasi[-1]: 0.74},
        "half 60%": dict.fromkeys(quasi[::2], 0.6),
        "all 25%": dict.fromkeys(quasi, 0.25),
        "all 50%": dict.fromkeys(quasi, 0.5),
        "all 75%": dict.fromkeys(quasi, 0.75),
    }


def loss(method: Any, stream: Stream, k: int) -> float:
    """The average loss over the attributes rows carry; suppressed rows lose 1."""
    made = method(stream.schema, k=k, deadline=min(1000, len(stream) // 4), reuse=200, missing="covered", key=bytes(16))
    made.push_batch(stream.table)
    made.flush()
    return float(made.metrics["loss"])


def ratios(stream: Stream, crowds: Sequence[int]) -> dict[str, list[float]]:
    """Loss of least-loss over that of the best other method, for each way of missing and each k."""
    found = {}
    for name, shares in missing(stream.quasi).items():
        holed = without(stream, shares)
        found[name] = [loss(LeastLoss, holed, k) / min(loss(method, holed, k) for method in OTHERS) for k in crowds]
    return found


def lanes(stream: Stream, crowds: Sequence[int], deadline: int) -> dict[str, list[float]]:
    """Loss of least-loss in two lanes over that in one, for each way of missing and each k."""
    found: dict[str, list[float]] = {}
    for name, shares in missing(stream.quasi).items():
        holed = without(stream, shares)
        for k in crowds:
            settings = {"k": k, "deadline": deadline, "reuse": 200, "missing": "covered", "key": bytes(16)}
            one, two = (LeastLoss(stream.schema, threads=threads, **settings) for threads in (1, 2))
            for made in (one, two):
                made.push_batch(holed.table)
                made.flush()
            found.setdefault(name, []).append(two.metrics["loss"] / one.metrics["loss"])
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the table and count the cases that are worse than bearable."""
    asked = parser(__doc__, data="published data sets")
    asked.add_argument("--rows", type=int, default=6000)
    given = parse(asked, arguments)
    rows = 300 if given.tiny else given.rows
    streams = real_streams(given.data, rows) if given.data else synthetic_streams(rows)
    report = Report(__file__, given, data=", ".join(streams) if given.data else "synthetic")
    crowds = CROWDS[:1] if given.tiny else CROWDS
    table, cases, in_lanes = [], [], []
    for name, stream in streams.items():
        found = ratios(first_columns(stream), crowds)
        cases += [(ratio, name, way, k) for way, row in found.items() for k, ratio in zip(crowds, row, strict=True)]
        table.append([name, *map(_span, found.values())])
        own = lanes(stream, (3,) if given.tiny else (5, 50), 100 if given.tiny else 2000)
        in_lanes.append([name, *map(_span, own.values())])
    report.table("ratios", ["data", *missing(["a", "b"])], table)
    report.table("lanes", ["data", *missing(["a", "b"])], in_lanes)
    worse = sorted((case for case in cases if case[0] > BEARABLE), reverse=True)
    named = "; ".join(f"{name}, {way}, k = {k}: {ratio - 1:+.1%}" for ratio, name, way, k in worse)
    report.text("cases", f"{len(cases)} cases; more than 2% worse than the best other: {len(worse)}. {named}".strip())
    report.write()


def _span(row: Sequence[float]) -> str:
    return f"{min(row) - 1:+.0%} … {max(row) - 1:+.0%}"


if __name__ == "__main__":
    main()

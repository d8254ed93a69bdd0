"""What a cap on one person's share of a class costs: loss and suppressed rows, by how much one person sends.

python -m benchmarks.max_share

20,000 tuples with two numbers. One person sends a tenth or six tenths of them, all near one place; 2,000 others the
rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from benchmarks.measure import Report, parse, parser
from shoal import Castle, Fads, Fast, LeastLoss, Numeric, Schema

METHODS = {"least-loss": LeastLoss, "fads": Fads, "fast": Fast, "castle": Castle}
HEAVY = (0.1, 0.6)
CAPS = (None, 0.5, 0.2)


def stream(rows: int, people: int, heavy: float) -> pa.Table:
    """Tuples; person 0 sends a share `heavy` of them, near the middle."""
    random = np.random.default_rng(0)
    is_heavy = random.random(rows) < heavy
    person = np.where(is_heavy, 0, 1 + random.integers(0, people, rows))
    columns = [np.where(is_heavy, 0.5 + random.normal(0, 0.01, rows), random.random(rows)) for _ in range(2)]
    return pa.table({"id": pa.array(person).cast(pa.string()), **dict(zip("xy", columns, strict=True))})


def run(
    name: str, table: pa.Table, cap: float | None, *, k: int, deadline: int, reuse: int
) -> tuple[float, int, float]:
    """Average loss over all rows (1 for a suppressed one), rows suppressed, and the largest share of a class."""
    schema = Schema(person="id", quasi=[Numeric("x", 0, 1), Numeric("y", 0, 1)])
    method = METHODS[name](schema, k=k, deadline=deadline, reuse=reuse, max_share=cap, key=bytes(16))
    releases = [method.push_batch(table), method.flush()]
    rows, trace = (pa.Table.from_batches([getattr(one, part) for one in releases]) for part in ("rows", "trace"))
    is_released = np.asarray(trace["verdict"].cast("string")) == "released"
    ranges = [rows.column(column).combine_chunks() for column in "xy"]
    ends = [np.asarray(one.field(end)) for one in ranges for end in ("lo", "hi")]
    widths = (ends[1] - ends[0] + ends[3] - ends[2]) / 2  # both domains are 0 to 1
    suppressed = table.num_rows - rows.num_rows
    persons = np.asarray(table["id"].take(pa.array(trace["row"].to_numpy()[is_released])))
    classes = list(zip(*(one.tolist() for one in ends), strict=True))
    sizes, own = Counter(classes), Counter(zip(classes, persons.tolist(), strict=True))
    largest = max((count / sizes[one] for (one, _), count in own.items()), default=0.0)
    return (float(widths.sum()) + suppressed) / table.num_rows, suppressed, largest


def main(arguments: Sequence[str] | None = None) -> None:
    """One line for every share that one person sends and every cap."""
    given = parse(parser(__doc__), arguments)
    report = Report(__file__, given, data="synthetic tuples")
    rows, people, spans = 20_000, 2_000, {"k": 10, "deadline": 1000, "reuse": 500}
    if given.tiny:
        rows, people, spans = 300, 60, {"k": 3, "deadline": 30, "reuse": 30}
    lines = []
    for heavy in HEAVY:
        table = stream(rows, people, heavy)
        for cap in CAPS[:2] if given.tiny else CAPS:
            found = [run(name, table, cap, **spans) for name in METHODS]
            shares = [largest for _, _, largest in found]
            assert cap is None or max(shares) <= cap
            cells = [f"{loss:.3f}, {suppressed:,}" for loss, suppressed, _ in found]
            largest_seen = f"{min(shares):.2f} to {max(shares):.2f}"
            lines.append([f"{heavy:.0%}", "none" if cap is None else str(cap), largest_seen, *cells])
    names = [f"`{name}`: loss, rows suppressed" for name in METHODS]
    report.table("costs", ["of one person", "cap", "largest share of a class", *names], lines)
    report.write()


if __name__ == "__main__":
    main()

"""How k^m-anonymity of the synthetic city grows: with people, m, σ and the sizes that are counted.

python -m benchmarks.sets_growth [people|m|sigma|counted] [--people N …]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from benchmarks.measure import TIME_COLUMNS, Report, apart, parse, parser, short
from benchmarks.sets_city import measure
from shoal.models.sample_size import promise

SETTING: dict[str, Any] = {"k": 20, "m": 11, "sigma": 0.99, "counted": 2, "trials": 1, "seed": 0}
PEOPLE = (10_000, 30_000, 100_000, 300_000, 1_000_000)
COUNTED = (2, 3, 4)
SIZES = (2, 3, 5, 8, 11, 15)
SIGMAS = (0.9, 0.95, 0.99, 0.999)
FEW = 100_000


def rows_of(name: str, steps: Sequence[float], setting: dict[str, Any], *, tiny: bool) -> list[list[str]]:
    """One run a step."""
    rows = []
    for step in steps:
        found = apart(measure, here=tiny, **{**setting, name: step})
        times = [short(found["worked"]), short(found["seconds"]), str(found["threads"])]
        sizes = [f"{found['megabytes']:,.0f}", str(found["blocks"]), f"{found['error']:.0f}"]
        rows.append([f"{step:,}", *times, *sizes, f"{promise(found['sigma']).samples:,}"])
        print(" | ".join([name, *rows[-1]]), file=sys.stderr, flush=True)
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure one growth, or all."""
    asked = parser(__doc__)
    asked.add_argument("what", nargs="?", choices=("people", "m", "sigma", "counted"))
    asked.add_argument("--people", type=int, nargs="+", help="steps; for the others the first one is taken")
    given = parse(asked, arguments)
    few = 300 if given.tiny else given.people[0] if given.people else FEW
    setting = {**SETTING, "people": few} | ({"k": 5, "m": 3} if given.tiny else {})
    growths: dict[str, tuple[Sequence[float], Sequence[float]]] = {
        "people": (given.people or PEOPLE, (300,)), "m": (SIZES, (3,)), "sigma": (SIGMAS, (0.9,)),
        "counted": (COUNTED, (2,)),
    }  # fmt: skip
    report = Report(__file__, given, data="a synthetic city")
    for name, (steps, tiny_steps) in growths.items():
        if given.what in (None, name):
            rows = rows_of(name, tiny_steps if given.tiny else steps, setting, tiny=given.tiny)
            report.table(name, [name, *TIME_COLUMNS, "MB", "blocks", "error in m", "samples a size"], rows)
    report.write()


if __name__ == "__main__":
    main()

"""k^m-anonymity of the synthetic city: seconds by phase, peak memory, blocks and error.

python -m benchmarks.sets_city                   (4,427,486 people: six minutes of processor time and 4.2 GB)
python -m benchmarks.sets_city --people 4427486 --sigma 0.999
python -m benchmarks.sets_city --people 100000 --counted 4
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from benchmarks.measure import TIME_COLUMNS, Meter, Report, apart, parse, parser, peak_megabytes, short
from shoal.methods.sets.km_anonymity import KmAnonymity
from shoal.reproduce.data.city import make_city, make_places


class Phases:
    """Seconds, those of all processors together, and blocks left, by what was being done."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.worked: dict[str, float] = {}
        self.blocks: dict[str, int] = {}
        self._phase, self._since, self._worked = "", 0.0, 0.0
        self._begun = time.perf_counter()

    def __call__(self, what: str, size: int, blocks: int) -> None:
        """Accept what a run reports."""
        self.enter(f"{what} {size}")
        self.blocks[self._phase] = blocks

    def enter(self, phase: str) -> None:
        """End one phase and begin another."""
        now, worked = time.perf_counter(), time.process_time()
        if self._phase and phase != self._phase:
            # A long run says how far it is, and what it took so far is known even if it does not end.
            print(f"{self._phase}: {now - self._begun:.1f} s, processors {worked:.1f} s", file=sys.stderr, flush=True)
        if self._phase:
            self.seconds[self._phase] = self.seconds.get(self._phase, 0.0) + now - self._since
            self.worked[self._phase] = self.worked.get(self._phase, 0.0) + worked - self._worked
        self._phase, self._since, self._worked = phase, now, worked

    @contextmanager
    def within(self, phase: str) -> Iterator[None]:
        """Time a block."""
        self.enter(phase)
        yield
        self.enter("")


def measure(people: int, *, city_seed: int = 0, **settings: Any) -> dict[str, Any]:
    """Make a city, anonymize it, and say what it took."""
    phases = Phases()
    _compile(settings)
    with phases.within("making the city"):
        city = make_city(people, seed=city_seed)
        places, records = city.places, city.records
        del city
    city_megabytes = peak_megabytes()
    with Meter() as meter, phases.within("reading"):
        result = KmAnonymity(generalize=places, **settings).anonymize(records, progress=phases)
    return {
        "people": people, **settings, "seconds": meter.cost.wall, "worked": meter.cost.processor,
        "threads": meter.cost.threads, "phases": phases.seconds, "worked_by_phase": phases.worked,
        "blocks_by_phase": phases.blocks, "blocks": len(result.blocks), "error": result.error,
        "city_megabytes": city_megabytes, "megabytes": peak_megabytes(),
    }  # fmt: skip


def _compile(settings: dict[str, Any]) -> None:
    city = make_city(500, seed=1)
    KmAnonymity(generalize=make_places(1), **{**settings, "k": 5, "m": 3, "counted": 2}).anonymize(city.records)


def phase_rows(found: dict[str, Any]) -> list[list[str]]:
    """What each phase took."""
    return [
        [phase, short(found["worked_by_phase"][phase]), short(seconds), found["blocks_by_phase"].get(phase, "")]
        for phase, seconds in found["phases"].items()
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure one city."""
    asked = parser(__doc__)
    asked.add_argument("--people", type=int, default=4_427_486)
    asked.add_argument("-k", type=int, default=20)
    asked.add_argument("-m", type=int, default=11)
    asked.add_argument("--sigma", type=float, default=0.99)
    asked.add_argument("--counted", type=int, default=2, help="sizes up to this are counted, all others sampled")
    asked.add_argument("--trials", type=int, default=1)
    asked.add_argument("--seed", type=int, default=0)
    given = parse(asked, arguments)
    settings = {name: getattr(given, name) for name in ("k", "m", "sigma", "counted", "trials", "seed")}
    if given.tiny:
        settings |= {"k": 5, "m": 3}
    report = Report(__file__, given, data="a synthetic city")
    people = 500 if given.tiny else given.people
    found = apart(measure, here=given.tiny, people=people, **settings)
    times = [short(found["worked"]), short(found["seconds"]), found["threads"]]
    row = [f"{people:,}", settings["sigma"], *times, f"{found['megabytes']:,.0f}", found["blocks"]]
    columns = ["people", "σ", *TIME_COLUMNS, "MB", "blocks", "error in m"]
    report.table("runs", columns, [[*row, f"{found['error']:.0f}"]])
    report.table("phases", ["phase", *TIME_COLUMNS[:2], "blocks left"], phase_rows(found))
    report.write()


if __name__ == "__main__":
    main()

"""k^m-anonymity of the invented city: seconds by phase, peak memory, blocks and error.

python -m benchmarks.sets_city --people 100000
python -m benchmarks.sets_city --people 4427486 --sigma 0.999
python -m benchmarks.sets_city --people 100000 --counted 4
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from shoal.anonymizers.km_anonymity import KmAnonymity
from shoal.studies.city import make_city, make_places


class Phases:
    """Seconds, those of all processors together, and blocks left, by what was being done."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.worked: dict[str, float] = {}
        self.blocks: dict[str, int] = {}
        self._phase, self._since, self._worked = "", 0.0, 0.0
        self._begun = time.perf_counter()

    def __call__(self, what: str, size: int, blocks: int) -> None:
        """Take what a run tells of itself."""
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


def peak_megabytes() -> float:
    """The most memory this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(people: int, *, city_seed: int = 0, **settings: Any) -> dict[str, Any]:
    """Make a city, anonymize it, and say what it took."""
    phases = Phases()
    _compile(settings)
    with phases.within("making the city"):
        city = make_city(people, seed=city_seed)
        places, records = city.places, city.records
        del city
    city_megabytes = peak_megabytes()
    begun, worked = time.perf_counter(), time.process_time()
    with phases.within("reading"):
        result = KmAnonymity(generalize=places, **settings).anonymize(records, progress=phases)
    return {
        "people": people, **settings, "seconds": time.perf_counter() - begun,
        "worked": time.process_time() - worked, "phases": phases.seconds, "worked_by_phase": phases.worked,
        "blocks_by_phase": phases.blocks, "blocks": len(result.blocks), "error": result.error,
        "city_megabytes": city_megabytes, "megabytes": peak_megabytes(),
    }  # fmt: skip


def measure_apart(people: int, **settings: Any) -> dict[str, Any]:
    """Measure in a fresh process, so that its peak of memory is its own."""
    given = json.dumps({"people": people, **settings})
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.sets_city", "--child", given], stdout=subprocess.PIPE, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _compile(settings: dict[str, Any]) -> None:
    city = make_city(500, seed=1)
    KmAnonymity(generalize=make_places(1), **{**settings, "k": 5, "m": 3, "counted": 2}).anonymize(city.records)


def show(found: dict[str, Any]) -> None:
    """Print one run."""
    print(f"{found['people']:,} people: {found['seconds']:.1f} s (processors {found['worked']:.1f} s)")
    print(f"  peak {found['megabytes']:,.0f} MB (when the city was made {found['city_megabytes']:,.0f} MB)")
    print(f"  {found['blocks']} blocks, error {found['error']:.1f} m")
    for phase, seconds in found["phases"].items():
        blocks = found["blocks_by_phase"].get(phase)
        worked = found["worked_by_phase"][phase]
        left = f"   {blocks} blocks" if blocks else ""
        print(f"  {phase:18s} {seconds:8.2f} s  (processors {worked:8.2f} s){left}", flush=True)


def main() -> None:
    """Measure every number of people asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, nargs="+", default=[10_000])
    parser.add_argument("-k", type=int, default=20)
    parser.add_argument("-m", type=int, default=11)
    parser.add_argument("--sigma", type=float, default=0.99)
    parser.add_argument("--counted", type=int, default=2, help="sizes up to this are counted, all others sampled")
    parser.add_argument("--trials", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(measure(**json.loads(given.child))))
        return
    settings = {name: getattr(given, name) for name in ("k", "m", "sigma", "counted", "trials", "seed")}
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; {settings}")
    for people in given.people:
        show(measure_apart(people, **settings))


if __name__ == "__main__":
    main()

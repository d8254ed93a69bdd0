"""How k^m-anonymity of the invented city grows: with people, with m, and with σ.

python -m benchmarks.sets_growth [people|m|sigma] [--people N …]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import Any

from benchmarks.sets_city import measure_apart
from shoal.models.km_bounds import promise

SETTING: dict[str, Any] = {"k": 20, "m": 11, "sigma": 0.99, "counted": 2, "trials": 1, "seed": 0}
PEOPLE = (10_000, 30_000, 100_000, 300_000, 1_000_000, 4_427_486)
SIZES = (2, 3, 5, 8, 11, 15)
SIGMAS = (0.9, 0.95, 0.99, 0.999, 0.9999)
FEW = 100_000


def show_header(name: str) -> None:
    """Print what stands in each column."""
    columns = ("seconds", "processors", "MB", "blocks", "error in m")
    print(f"{name:>12s}" + "".join(f"{column:>12s}" for column in columns) + "   samples a size")


def show(value: float, found: dict[str, Any]) -> None:
    """Print one run."""
    numbers = (found["seconds"], found["worked"], found["megabytes"], found["blocks"], found["error"])
    samples = promise(found["sigma"]).samples
    print(f"{value:12,g}" + "".join(f"{number:12,.1f}" for number in numbers) + f"   {samples:,}", flush=True)


def grow_people(steps: Iterable[int]) -> None:
    """From ten thousand people to the paper's four million."""
    show_header("people")
    for people in steps:
        show(people, measure_apart(people, **SETTING))


def grow_m(people: int) -> None:
    """What every further item that is known costs."""
    show_header("m")
    for m in SIZES:
        show(m, measure_apart(people, **{**SETTING, "m": m}))


def grow_sigma(people: int) -> None:
    """What a stronger promise costs."""
    show_header("sigma")
    for sigma in SIGMAS:
        show(sigma, measure_apart(people, **{**SETTING, "sigma": sigma}))


def main() -> None:
    """Measure one growth, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("people", "m", "sigma"))
    parser.add_argument("--people", type=int, nargs="+", help="steps; for m and sigma the first one is taken")
    given = parser.parse_args()
    few = given.people[0] if given.people else FEW
    growths: dict[str, Callable[[], None]] = {
        "people": lambda: grow_people(given.people or PEOPLE),
        "m": lambda: grow_m(few),
        "sigma": lambda: grow_sigma(few),
    }
    print(f"{SETTING}; m and sigma at {few:,} people")
    for name, grow in growths.items():
        if given.what in (None, name):
            grow()


if __name__ == "__main__":
    main()

"""The whole study of the paper on k^m-anonymity, as of `shoal reproduce km`: claims, blocks, time and memory.

python -m benchmarks.sets_study                          (400,000 people: two minutes of processor time)
python -m benchmarks.sets_study --people 4427486         (the paper's: a quarter of an hour of processor time, and 6 GB)
python -m benchmarks.sets_study --people 100000 --page FOLDER
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.measure import TIME_COLUMNS, Meter, Report, apart, parse, parser, peak_megabytes, short
from shoal.reproduce.data.city import make_city
from shoal.reproduce.sets.claims import KmClaims
from shoal.reproduce.sets.page import write_km_page
from shoal.reproduce.sets.study import QUICK, KmPlan, run_km_study

SEED = 1
PARTS = {"counting": "counting sizes 1 to 4", "sampling": "sampling sizes 5 to 11", "certifying": "certifying",
         "uniqueness": "uniqueness, before and after", "mixing": "length of the paper's chain",
         "reading": "reading"}  # fmt: skip


class Parts:
    """Processor and wall clock seconds by the part of the study."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {part: [0.0, 0.0] for part in PARTS}
        self._part, self._step, self._since = "reading", "", self._now()

    def __call__(self, done: int, steps: int, step: str) -> None:
        """Accept what the study reports."""
        now, spent = self._now(), self.seconds[self._part]
        spent[0] += now[0] - self._since[0]
        spent[1] += now[1] - self._since[1]
        self._part, self._since = next(part for part in PARTS if part in step), now
        short_step = re.sub(r", \d+ blocks left", "", step)
        if short_step != self._step:  # a long run says how far it is
            megabytes = peak_megabytes()
            print(f"{done} of {steps}, {now[0]:.0f} s, {megabytes:,.0f} MB: {step}", file=sys.stderr, flush=True)
        self._step = short_step

    def _now(self) -> tuple[float, float]:
        return time.process_time(), time.perf_counter()


def measure(people: int, *, quick: bool, page: str | None) -> dict[str, Any]:
    """Run the study; return its claims, its runs and what it took."""
    run_km_study(make_city(500, seed=SEED), QUICK, lambda *_: None)  # compiles on a new machine
    plan, parts = QUICK if quick else KmPlan(seed=SEED), Parts()
    with Meter() as meter:
        city = make_city(people, seed=SEED)
        findings = run_km_study(city, plan, parts)
    parts(plan.steps, plan.steps, "mixing: done")
    if page:
        Path(page).mkdir(parents=True, exist_ok=True)
        write_km_page(Path(page), city, plan, findings)
    claims = [[one.paper, one.found, one.agrees] for one in KmClaims(findings, people).all()]
    return {
        "claims": claims, "runs": findings.tables["km_runs"].records, "parts": parts.seconds,
        "cost": [meter.cost.processor, meter.cost.wall, meter.cost.threads], "megabytes": peak_megabytes(),
    }  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study once."""
    asked = parser(__doc__)
    asked.add_argument("--people", type=int, default=400_000)
    asked.add_argument("--page", help="folder for the page with pictures, as of `shoal reproduce km`")
    given = parse(asked, arguments)
    if given.page:
        given.words = [word for word in given.words if word not in ("--page", given.page)]
    people = 500 if given.tiny else given.people
    report = Report(__file__, given, data="a synthetic city")
    found = apart(measure, here=given.tiny, people=people, quick=given.tiny, page=given.page)
    words = {True: "yes", False: "no", None: "–"}
    claims = [[*said, words[agrees]] for *said, agrees in found["claims"]]
    report.table("claims", ["the paper", "here", "agrees"], claims)
    agreeing = [agrees for *_, agrees in found["claims"] if agrees is not None]
    processor, wall, threads = found["cost"]
    row = [f"{people:,}", short(processor), short(wall), threads, f"{found['megabytes']:,.0f}",
           f"{sum(agreeing)} of {len(agreeing)}"]  # fmt: skip
    report.table("cost", ["people", *TIME_COLUMNS, "MB", "claims that agree"], [row])
    rows = [[PARTS[part], *map(short, seconds)] for part, seconds in found["parts"].items()]
    report.table("parts", ["part of the study", *TIME_COLUMNS[:2]], rows)
    columns = ["k", "σ", "m", "blocks", "error in m", "area of a block in km²", "longest record", "samples a size",
               "attempts"]  # fmt: skip
    report.table("runs", columns, [_run(one) for one in found["runs"]])
    report.write()


def _run(one: dict[str, Any]) -> list[str]:
    whole = [f"{one[name]:,}" for name in ("longest_record", "samples_a_size", "attempts")]
    numbers = [str(one[name]) for name in ("k", "sigma", "m", "blocks")]
    return [*numbers, f"{one['error_m']:.0f}", f"{one['block_km2']:.2f}", *whole]


if __name__ == "__main__":
    main()

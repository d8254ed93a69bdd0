"""The experiments of the K-VARP paper (section 5): a growing number of missing values, on Adult and PM2.5."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

from shoal.reproduce.data.streams import Stream, remove_values
from shoal.reproduce.study import Progress, Record, Table
from shoal.reproduce.tuples.running import judge, loss_if_imputed_is_lost, run_method, warm_up

Unit = Literal["arrivals", "milliseconds"]

FADS: Final = "FADS for varied streams"
IOT: Final = "IoT Anonymization"
K_VARP: Final = "K-VARP, as published"
K_VARP_COVERED: Final = "K-VARP, covered"
LEAST_LOSS: Final = "least-loss, covered (ours)"
_METHODS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    FADS: ("fads-varied", {"missing": "paper", "late_penalty": 0.001}),
    IOT: ("iot-anonymization", {"missing": "paper"}),
    K_VARP: ("k-varp", {"missing": "paper", "likeness": 0.2}),
    K_VARP_COVERED: ("k-varp", {"missing": "covered", "likeness": 0.2}),
    LEAST_LOSS: ("least-loss", {"missing": "covered"}),
}
METHODS: Final = tuple(_METHODS)
PAPERS_METHODS: Final = (FADS, IOT, K_VARP)
ARRIVALS_PER_UNIT: Final[dict[Unit, int]] = {"arrivals": 1, "milliseconds": 2}
"""In the paper a row arrives every half millisecond."""


@dataclass(frozen=True, slots=True)
class KVarpPlan:
    """What to run; the defaults are the paper's Table 8."""

    k: int = 50
    deadline: int = 2000
    reuse: int = 200
    at_most: tuple[int, ...] = tuple(range(10))
    sizes: tuple[int, ...] = tuple(range(5000, 30_001, 5000))
    """Rows of the streams of Table 9."""
    missing_in_sizes: int = 3
    unit: Unit = "arrivals"
    seed: int = 1

    def settings(self, unit: Unit) -> dict[str, int]:
        """k, deadline and reuse, the last two in arrivals."""
        each = ARRIVALS_PER_UNIT[unit]
        return {"k": self.k, "deadline": self.deadline * each, "reuse": self.reuse * each}


QUICK: Final = KVarpPlan(k=10, deadline=200, reuse=20, at_most=(0, 1, 3), sizes=(600, 1200))


def run_kvarp_study(streams: Sequence[Stream], plan: KVarpPlan, progress: Progress) -> dict[str, Table]:
    """Run the study; return its tables by file name."""
    runs = [(stream, at_most) for stream in streams for at_most in plan.at_most]
    sized = [(stream, rows) for stream in streams for rows in plan.sizes if rows <= len(stream)]
    steps, done = len(runs) * (len(METHODS) + 1) + len(sized) * len(PAPERS_METHODS), 0
    records: list[Record] = []
    by_unit: list[Record] = []
    for stream, at_most in runs:
        varied = remove_values(stream, at_most=at_most, seed=plan.seed)
        _warm_up(varied, plan, partial(progress, done, steps))
        place = {"data": stream.name, "at_most": at_most}
        for method in METHODS:
            progress(done, steps, f"{stream.name}, at most {at_most} missing: {method}")
            records.append({**place, "method": method, **_measure(method, varied, plan)})
            done += 1
        progress(done, steps, f"{stream.name}, at most {at_most} missing: {K_VARP}, times in another unit")
        by_unit += [{**place, **_measure_unit(varied, plan, unit)} for unit in ARRIVALS_PER_UNIT]
        done += 1
    caption = f"{K_VARP}: the paper's times read as arrivals, and as milliseconds (two arrivals each)"
    tables = (
        Table("kvarp_runs", "Figures 5 to 10: every method by the largest number of missing values", records),
        Table("kvarp_units", caption, by_unit),
        Table(
            "kvarp_sizes", f"Streams of the sizes in Table 9, at most {plan.missing_in_sizes} values missing",
            list(_by_size(sized, plan, lambda at, step: progress(done + at, steps, step))),
        ),
    )  # fmt: skip
    return {table.name: table for table in tables}


def _by_size(
    sized: Sequence[tuple[Stream, int]], plan: KVarpPlan, progress: Callable[[int, str], None]
) -> Iterator[Record]:
    for at, (stream, rows) in enumerate(sized):
        varied = remove_values(stream.head(rows), at_most=plan.missing_in_sizes, seed=plan.seed)
        for place, method in enumerate(PAPERS_METHODS):
            progress(at * len(PAPERS_METHODS) + place, f"{stream.name}, {rows:,} rows: {method}")
            kind, own = _METHODS[method]
            outcome = run_method(kind, varied, {**plan.settings(plan.unit), **own})
            yield {
                "data": stream.name, "rows": rows, "method": method, "loss": outcome.metrics["loss"],
                "loss_if_imputed_is_lost": loss_if_imputed_is_lost(outcome) if method == IOT else None,
                "formed": outcome.metrics["formed"], "suppressed": outcome.metrics["suppressed"],
                "seconds": outcome.seconds,
            }  # fmt: skip


def _warm_up(stream: Stream, plan: KVarpPlan, progress: Callable[[str], None]) -> None:
    """Compile before every stream: its missing values decide which kernels run, and with which types."""
    for method, (kind, own) in _METHODS.items():
        progress(f"warming up {method}")
        warm_up(kind, stream, {**plan.settings(plan.unit), **own})


def _measure(method: str, stream: Stream, plan: KVarpPlan) -> Record:
    kind, own = _METHODS[method]
    outcome = run_method(kind, stream, {**plan.settings(plan.unit), **own})
    found, crowds = outcome.metrics, judge(outcome)
    return {
        "loss": found["loss"],
        "loss_if_imputed_is_lost": loss_if_imputed_is_lost(outcome) if method == IOT else None,
        "loss_all": found["loss_all"],
        "formed": found["formed"],
        "self_clustered": found["formed"] - found["merged"],
        "reused": found["reused"],
        "suppressed": found["suppressed"],
        "longest_delay": int(found["max_delay"]),
        "seconds": outcome.seconds,
        "smallest_class": crowds.smallest,
        "rows_below_k": crowds.below_k_share,
        "rows_alone": crowds.alone_share,
        "promise_kept": crowds.is_kept,
    }


def _measure_unit(stream: Stream, plan: KVarpPlan, unit: Unit) -> Record:
    kind, own = _METHODS[K_VARP]
    settings = plan.settings(unit)
    found = run_method(kind, stream, {**settings, **own}).metrics
    return {
        "unit": unit,
        "deadline_arrivals": settings["deadline"],
        "reuse_arrivals": settings["reuse"],
        "loss": found["loss"],
        "formed": found["formed"],
        "reused": found["reused"],
    }

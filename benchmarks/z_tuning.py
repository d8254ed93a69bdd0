"""What `shoal tune` predicts and what is counted: by one average window, and by the time of the day.

python -m benchmarks.z_tuning [--data FOLDER]

Real check-ins are checkins.csv(.gz) with user, time, lat and lon, in the folder or one folder below.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.measure import Report, parse, parser
from benchmarks.z_targets import checkins
from shoal.models.z.events import Events, read_events
from shoal.models.z.model import ZModel
from shoal.models.z.tuning import Target, WindowTuning, tune
from shoal.testing.visits import make_visits

HOUR_NS = 3600 * 10**9
FEWEST_SHOWN = 300
NAMES = {HOUR_NS // 6: "10min", HOUR_NS: "1h", 6 * HOUR_NS: "6h", 24 * HOUR_NS: "1d", 168 * HOUR_NS: "7d"}


def day(seed: int, people: int, events: int) -> Events:
    """A synthetic day of web visits; people 3000, events 400,000 and seed 7 make the demo's."""
    made = make_visits(people=people, events=events, seed=seed)
    return Events(made.times, made.person, made.site)


def days(count: int, people: int, events: int) -> Events:
    """Days whose popular sites differ."""
    parts = [day(seed, people, events) for seed in range(count)]
    times = [part.times + number * 24 * HOUR_NS for number, part in enumerate(parts)]
    columns = ([part.persons for part in parts], [part.values for part in parts])
    return Events(np.concatenate(times), *(np.concatenate(column) for column in columns))


def cases(*, tiny: bool) -> Iterator[tuple[str, Events, int]]:
    """Name, events and window."""
    if tiny:
        yield "a day", day(1, 200, 4000), HOUR_NS
        return
    yield "the demo", day(7, 3000, 400_000), HOUR_NS
    yield "the demo", day(7, 3000, 400_000), HOUR_NS // 6
    for seed in (1, 2):
        yield f"another day (seed {seed})", day(seed, 3000, 400_000), HOUR_NS
    yield "10,000 people", day(3, 10_000, 600_000), HOUR_NS
    yield "500 people", day(3, 500, 60_000), HOUR_NS
    yield "five days, other sites every day", days(5, 3000, 150_000), HOUR_NS


def row(name: str, window: WindowTuning, k: int) -> list[str]:
    """The largest misses over all z that show enough people, and predictions at the z proposed."""
    counted = [one for one in window.curve if min(one[1].shown, one[2].shown) >= FEWEST_SHOWN]
    average = ZModel.of_estimate(window.estimate, window.window_ns)
    misses = [
        [abs(average.p_shown_k_anonymous(model.z, k, samples=8000).value - used.over_shown)
         for model, used, _ in counted],
        [abs(model.shown.value - used.over_shown) for model, used, _ in counted],
        [abs(model.ahead.value - unused.over_shown) for model, _, unused in counted],
    ]  # fmt: skip
    largest = [f"{max(one, default=0):.1%}" for one in misses]
    best = window.best or (window.candidates[0] if window.candidates else None)
    kept = "in between" if window.is_interleaved else "latest"
    if best is None:
        return [name, window.window, kept, *largest, "none", "–", "–"]
    found = f"{best.z}{'' if best.held else ', not held'}"
    return [name, window.window, kept, *largest, found, f"{best.predicted.ahead.value:.1%}",
            f"{best.later.over_shown or 0:.1%}"]  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Tune every stream."""
    given = parse(parser(__doc__, data="checkins.csv with user, time, lat and lon"), arguments)
    report = Report(__file__, given, data="synthetic visits")
    rows = []
    for name, events, window in cases(tiny=given.tiny):
        (found,) = tune(events, [(NAMES[window], window)], Target(2, 0.95)).windows
        rows.append(row(name, found, 2))
    real = checkins(given.data) if given.data else None
    if real is not None:
        report.data += f"; {real.num_rows:,} check-ins"
        events = read_events(real)
        for window in (6 * HOUR_NS, 24 * HOUR_NS, 168 * HOUR_NS):
            (found,) = tune(events, [(NAMES[window], window)], Target(2, 0.8)).windows
            rows.append(row("check-ins (p = 0.8)", found, 2))
    columns = [
        "stream", "window", "windows kept back", "largest miss: one average window", "by the time of the day",
        "for unused windows", "z", "predicted for unused windows", "counted there",
    ]  # fmt: skip
    report.table("predicted", columns, rows)
    report.write()


if __name__ == "__main__":
    main()

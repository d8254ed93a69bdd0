"""A z that follows the stream compared with zanon's controller: on the same streams, stationary and drifting.

python -m benchmarks.z_following            (a quarter of an hour; zanon takes nearly all of it)
python -m benchmarks.z_following --no-peer  (a minute)
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

import shoal
from benchmarks.measure import Report, parse, parser
from benchmarks.z_drifts import KINDS, WINDOW_S, Drift, make_drift
from shoal.models.z.windows import WindowCurve, window_curves

ROTATION_NS = WINDOW_S * 10**9
Rows = tuple[np.ndarray, np.ndarray, np.ndarray]


def by_shoal(stream: Drift, k: int, p: float) -> tuple[Rows, list[int]]:
    """What shoal releases (times, people, values), and its z window by window."""
    target = shoal.KTarget(k=k, p=p)
    ours = shoal.ZAnonymity(target=target, window=WINDOW_S, person="user", time="ts", attribute="site", key=bytes(16))
    trace = ours.push_batch(stream.batch()).trace
    left = np.flatnonzero(np.asarray(trace["verdict"].cast("string")) == "released")
    rows = trace["row"].to_numpy()[left]
    return (stream.times[rows], stream.persons[rows], stream.values[rows]), [one.z for one in ours.outcomes]


def by_zanon(stream: Drift, k: int, p: float) -> tuple[Rows, list[int]]:
    """What the package zanon releases by its own controller, and its z at every change."""
    from zanonymity import zanon

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        peer = zanon.zanon(WINDOW_S, p, k)
        columns = (stream.times.tolist(), stream.persons.tolist(), stream.values.tolist())
        for time, person, value in zip(*columns, strict=True):
            peer.anonymize((time / 1e9, str(person), str(value)))
        peer.endFiles()
        with open("output.txt") as lines:
            found = [line.rstrip("\n").split("\t") for line in lines]
        with open("output.json") as file:
            changes = json.load(file)["z"]
    times = np.array([float(row[0]) for row in found])
    persons, values = (np.array([int(row[place]) for row in found]) for place in (1, 2))
    return ((times * 1e9).astype(np.int64), persons, values), changes


def judge(rows: Rows, stream: Drift, k: int, p: float) -> tuple[float, float, float]:
    """Windows in which the promise held, of all and of those that show anybody; and the share of rows released."""
    windows: dict[int, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for window, person, value in zip(
        (rows[0] // ROTATION_NS).tolist(), rows[1].tolist(), rows[2].tolist(), strict=True
    ):
        windows[window][person].add(value)
    met = 0
    for sets in windows.values():
        alike = Counter(frozenset(items) for items in sets.values())
        met += sum(people for people in alike.values() if people >= k) >= p * len(sets)
    all_windows = len(np.unique(stream.times // ROTATION_NS))
    silent = all_windows - len(windows)
    return (met + silent) / all_windows, met / max(len(windows), 1), len(rows[0]) / len(stream.times)


def best_fixed(curves: list[WindowCurve], p: float) -> tuple[int, float] | None:
    """The smallest fixed z that would have held in 99% of windows, and what it would have released."""
    events = sum(curve.events for curve in curves)
    z = 2
    while (released := sum(curve.rows_at(z) for curve in curves) / events) >= 0.01:
        shares = [curve.at(z) for curve in curves]
        if np.mean([anonymous >= p * shown for shown, anonymous in shares]) >= 0.99:
            return z, released
        z += max(1, z // 50)
    return None


def restlessness(z: list[int]) -> float:
    """How far z moves from one window to the next, on average, as a factor; where it stays, 1."""
    usable = [value for value in z if 0 < value < 2**31 - 1]
    steps = np.abs(np.diff(np.log(usable))) if len(usable) > 1 else np.zeros(1)
    return float(np.exp(steps.mean()))


def main(arguments: Sequence[str] | None = None) -> None:
    """Judge both controllers on every kind of stream."""
    asked = parser(__doc__)
    asked.add_argument("--users", type=int, default=600)
    asked.add_argument("--windows", type=int, default=200)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--k", type=int, default=2)
    asked.add_argument("--p", type=float, nargs="+", default=[0.8, 0.95, 0.99])
    asked.add_argument("--kinds", nargs="+", default=KINDS)
    asked.add_argument("--no-peer", action="store_true")
    given = parse(asked, arguments)
    if given.tiny:
        given.users, given.windows, given.p, given.kinds = 30, 4, [0.8], ["stationary"]
    report = Report(__file__, given, data="synthetic streams, stationary and drifting")
    makers = {"shoal": by_shoal} if given.no_peer else {"shoal": by_shoal, "zanon": by_zanon}
    rows: list[list[str]] = []
    held_by: dict[str, list[float]] = {name: [] for name in makers}
    for kind in given.kinds:
        stream = make_drift(kind, users=given.users, windows=given.windows, seed=given.seed)
        curves = window_curves(
            stream.times, stream.persons, stream.values, window_ns=ROTATION_NS, rotation_ns=ROTATION_NS, k=given.k
        )
        for p in given.p:
            fixed = best_fixed(curves, p)
            row = [kind, str(p), *((str(fixed[0]), f"{fixed[1]:.1%}") if fixed else ("not reachable", ""))]
            for name, make in makers.items():
                released, z = make(stream, given.k, p)
                held, shown, share = judge(released, stream, given.k, p)
                held_by[name].append(held)
                row += [f"{held:.1%}", f"{shown:.1%}", f"{share:.1%}", f"{restlessness(z):.3f}"]
            rows.append(row)
            print(" | ".join(row), file=sys.stderr, flush=True)
    what = ("windows held", "held where anybody is shown", "released", "z moves by")
    columns = ["stream", "p", "best fixed z", "it releases", *(f"{name}: {one}" for name in makers for one in what)]
    report.table("targets", columns, rows)
    ranges = [f"{name} in {min(held):.1%} to {max(held):.1%}" for name, held in held_by.items()]
    report.text("held", f"Windows in which the target was met, over all streams and targets: {', '.join(ranges)}.")
    report.write()


if __name__ == "__main__":
    main()

"""What minimality gives away where l is promised: python -m benchmarks.minimality [--data FOLDER] [--rows N]

Methods add people beyond k until a cluster is l-diverse. Adult (occupation, 15 values) and check-ins (homes in 20
areas or 3 regions), k = 5. Without --data: an imitation of Adult alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import shoal
from benchmarks.attack_matrix import QUASI, SENSITIVE, homes, publish, regions, split
from benchmarks.measure import Report, parse, parser
from benchmarks.real_data import folder_with
from benchmarks.tuple_streams import _READERS
from shoal.auditor import Attack
from shoal.reproduce.data.adult_imitation import imitate_adult
from shoal.reproduce.data.streams import Stream

METHODS = ("least-loss", "fads", "fast", "castle")
K, TARGETS = 5, 1000


def attacked(stream: Stream, method: str, level: int) -> Attack:
    """Publish the stream with l, and attack it."""
    settings = {"k": K, "l": level}
    parts = publish(stream, method, settings)
    report = shoal.attack(parts, split(stream)[0], stream.policy(method, settings), trace=parts, targets=TARGETS)
    return report["minimality"]


def line(data: str, method: str, level: int, found: Attack) -> list[str]:
    """A line of the table."""
    if found.success is None:
        return [data, f"`{method}`", str(level), "–", "", "", "", found.why_not]
    rate = found.success
    return [
        data, f"`{method}`", str(level), f"{rate.value:.3f}", f"{rate.low:.3f} to {rate.high:.3f}",
        f"{found.control:.3f}", f"{found.guess:.3f}", f"{rate.n:,}",
    ]  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Attack every method on both streams."""
    options = parser(__doc__, data="adult.data and checkins.csv")
    options.add_argument("--rows", type=int, help="rows of each stream (default: 10,000; 400 when tiny)")
    given = parse(options, arguments)
    rows = given.rows or (400 if given.tiny else 10_000)
    folder, place = folder_with(given.data, "adult.data"), folder_with(given.data, "checkins.csv")
    adult = (_READERS["adult"][1](folder, rows) if folder else imitate_adult(rows, seed=1)).head(rows)
    streams = {"Adult, 15 values": (adult.narrowed(QUASI, [SENSITIVE]), (3, 5))}
    if place:
        areas = homes(_READERS["check-ins"][1](place, rows))
        streams |= {"check-ins, 20 values": (areas, (3, 5)), "check-ins, 3 values": (regions(areas), (2, 3))}
    report = Report(__file__, given, data=adult.origin + ("; Gowalla check-ins, New York" if place else ""))
    found = [
        (data, method, level, attacked(stream, method, level))
        for data, (stream, levels) in streams.items() for method in METHODS for level in levels
    ]  # fmt: skip
    title = ["data", "method", "l", "success", "95% interval", "most common value", "guess", "classes"]
    report.table("rates", title, [line(*one) for one in found])
    report.figures["rates"] = {f"{data} | {method} | {level}": one.to_dict() for data, method, level, one in found}
    report.write()


if __name__ == "__main__":
    main()

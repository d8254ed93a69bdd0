"""How much several rows of a person give away: python -m benchmarks.several_rows [--data FOLDER] [--rows N]

Check-ins whose people have a constant secret, the area of their home (one of 20). FADS and least-loss with k = 5 and 10
publish them; the attacker knows the classes of 1, 3, 10 or 30 rows of a person. Without --data: imitated check-ins.
"""

from __future__ import annotations

from collections.abc import Sequence

import shoal
from benchmarks.attack_matrix import homes, imitated_checkins, publish, split
from benchmarks.measure import Report, parse, parser
from benchmarks.real_data import folder_with
from benchmarks.tuple_streams import _READERS

ATTACKS = ("1 row", "several rows", "10 rows", "30 rows")
TITLES = ("1 row", "up to 3 rows", "10 rows", "30 rows")


def main(arguments: Sequence[str] | None = None) -> None:
    """Attack every release and print how often the secret is found."""
    options = parser(__doc__, data="checkins.csv")
    options.add_argument("--rows", type=int, help="rows of the stream (default: 40,000; 400 when tiny)")
    given = parse(options, arguments)
    rows = given.rows or (400 if given.tiny else 40_000)
    place = folder_with(given.data, "checkins.csv")
    stream = homes(_READERS["check-ins"][1](place, rows) if place else imitated_checkins(rows))
    report = Report(__file__, given, data="Gowalla check-ins, New York" if place else "imitated check-ins")
    found = []
    for method in ("fads", "least-loss"):
        for k in (5, 10):
            parts, inside = publish(stream, method, {"k": k}), split(stream)[0]
            policy = stream.policy(method, {"k": k})
            attacked = shoal.attack(parts, inside, policy, trace=parts, targets=100 if given.tiny else 1500)
            rates = [attacked[name].success for name in ATTACKS]
            report.figures[f"{method} | {k}"] = [attacked[name].to_dict() for name in ATTACKS]
            guess = max(attacked[name].guess or 0.0 for name in ATTACKS)
            people = [attacked.facts.get(f"{which}_rows_of_a_person", 1) for which in ("median", "most")]
            found.append([
                method, str(k), *("–" if rate is None else f"{rate.value:.2f}" for rate in rates), f"{guess:.2f}",
                *(f"{one:,.0f}" for one in people),
            ])  # fmt: skip
    columns = ["method", "k", *TITLES, "guess up to", "rows of a person: median", "most"]
    report.table("secrets", columns, found)
    report.write()


if __name__ == "__main__":
    main()

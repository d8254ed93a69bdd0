"""Can a phone's owner be found in an external release? python -m benchmarks.flexible_traces [--people N]

The traceability attack on a synthetic measurement campaign. An adversary knows the cell a person lives in and the hours
of the week in which the person measured there, perhaps the model of the phone too, and has what was published: labels
of place, network, time and device, and the speed as it was measured. Rows whose labels cover what is known are the
candidates. The same is tried on the raw data, with and without pseudonyms.

- `least`, `median`: people behind a person's candidate rows, counted with the truth; `below`: the share of people with
  fewer than promised (K, or K_s where the model is known), `alone`: with no other.
- `guess`: the share of the person's rows among those candidates whose labels are the finest. `over`: the share of
  people for whom that is above 1/K (1/K_s): people are counted, not rows, and one may have most rows of a group.
- `together`: of people with at least three groups at home, how many other people (median) are in all of these groups,
  and how many have none such: an adversary who knows where everyone was can identify them in the release.
- `precision`: the share of the candidates that are the person's; `recall`: the share of the person's rows, at home or
  elsewhere, that are among them. With pseudonyms the adversary takes all rows of the one that has most candidates.
- `chained`: from a row of the person at home on to the next published row at another place with the same device label:
  how often that is the same person. `rare chained`: the same where the label is rare, with at most 1% of the rows.
  `by chance`: any later row elsewhere instead.
- Speeds: the share of rows whose carried speed no other row has, alone or among the rows that cover home and hour: one
  who saw the number on the phone has found the row. Carry rounded speeds, or none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.measure import Report, parse, parser
from shoal.reproduce.data.measurements import synthetic_measurements
from shoal.reproduce.flexible.attack import chain, find, speeds, targets, together
from shoal.reproduce.flexible.releases import Release, Shown, Truth, publish, raw


def measure(people: int, records: int, seed: int, count: int, ks: list[int]) -> dict[str, Any]:
    """Attack the raw data and the releases."""
    data = synthetic_measurements(people, records, seed)
    truth = Truth.of(data)
    known = targets(truth, count, seed)
    seen: list[tuple[Shown, dict[str, float | None]]] = [
        (raw(truth, has_pseudonyms=True), {}), (raw(truth, has_pseudonyms=False), {}),
        *((release.shown, facts(release)) for release in (publish(data, truth, k) for k in ks)),
    ]  # fmt: skip
    lines = [
        {
            "data": shown.name, **more, "home": find(shown, known, knows_device=False),
            "home and device": find(shown, known, knows_device=True), "chain": chain(shown, known),
            "together": together(shown, known), "speed": speeds(shown, known),
        }
        for shown, more in seen
    ]  # fmt: skip
    return {"people": people, "records": records, "seed": seed, "targets": len(known), "lines": lines}


def facts(release: Release) -> dict[str, float | None]:
    """What is reported of a release next to the attack."""
    return {"pending": float(release.pending), "loss": release.loss, "k_s": float(release.k_s)}


def _text(value: float | None) -> str:
    if value is None:
        return "–"
    return (
        f"{value:,}"
        if isinstance(value, int)
        else f"{value:.4f}"
        if 0 < value < 0.1
        else f"{value:.3f}"
        if value < 1
        else f"{value:,.1f}"
    )


ATTACKS = (
    ("K_s", lambda line: f"{line['k_s']:.0f}" if "k_s" in line else "–"),
    ("home and hours known: people it could be, least / median", lambda line: _people(line["home"])),
    ("… of the rows picked, theirs", lambda line: _share(line["home"]["precision"])),
    ("… people with fewer than K candidates", lambda line: _share(line["home"]["below"])),
    ("device known too: people it could be, least / median", lambda line: _people(line["home and device"])),
    ("… of the rows picked, theirs", lambda line: _share(line["home and device"]["precision"])),
    ("… people with fewer than K_s candidates", lambda line: _share(line["home and device"]["below"])),
    ("… best guess by the finest labels is right", lambda line: _share(line["home and device"]["guess"])),
    ("… people for whom it is right more often than 1/K_s", lambda line: _share(line["home and device"]["over"])),
    ("next row elsewhere with the same rare label is theirs", lambda line: _links(line["chain"])),
    ("any later row elsewhere is theirs (chance)", lambda line: _share(line["chain"]["by chance"])),
    (
        "exact speed (carried) and home: the row is found",
        lambda line: _share(line["speed"]["with home and hour at 0.01"]),
    ),
    ("speed to 1 Mbit/s and home: the row is found", lambda line: _share(line["speed"]["with home and hour at 1"])),
    ("no one else is in all groups of a person", lambda line: _share(line["together"]["no one else"])),
)
"""The rows of the table: a name, and how its figure is read from a result."""


def attack_rows(lines: list[dict[str, Any]]) -> list[list[str]]:
    """The most telling figures, one column for each kind of release."""
    return [[name, *(cell(line) for line in lines)] for name, cell in ATTACKS]


def _share(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.2%}" if 0 < value < 0.01 else f"{value:.1%}"


def _people(found: dict[str, Any]) -> str:
    return f"{found['least']} / {found['median']:,.0f}"


def _links(found: dict[str, Any]) -> str:
    return f"{_share(found['rare chained'])} of {found['rare links']:,}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print tables."""
    options = parser(__doc__)
    options.add_argument("--people", type=int, default=2_000)
    options.add_argument("--records", type=int, default=30_000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--targets", type=int, default=400, help="people who are looked for")
    options.add_argument("--k", type=int, nargs="+", default=[3, 6, 12])
    given = parse(options, arguments)
    if given.tiny:
        given.people, given.records, given.targets, given.k = 100, 1_000, 10, [3]
    report = Report(__file__, given, data="a synthetic campaign of measurements")
    found = measure(given.people, given.records, given.seed, given.targets, given.k)
    report.figures = found
    people = ["least", "median", "promised", "below", "alone", "guess", "over", "precision", "recall"]
    tables = {
        "home": ("home", people),
        "device": ("home and device", people),
        "chain": ("chain", ["links", "chained", "rare links", "rare chained", "by chance"]),
        "together": ("together", ["people", "others", "no one else"]),
        "speed": ("speed", list(found["lines"][0]["speed"])),
    }
    report.table("attack", ["", *(line["data"] for line in found["lines"])], attack_rows(found["lines"]))
    for name, (part, columns) in tables.items():
        rows = [[line["data"], *(_text(line[part][column]) for column in columns)] for line in found["lines"]]
        report.table(name, ["", *columns], rows)
    report.write()


if __name__ == "__main__":
    main()
